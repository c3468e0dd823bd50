"""Which policies are asked for, their runs, and the bounds beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fleetline.errors import ManifestError
from fleetline.replay.baselines import BASELINES
from fleetline.replay.bounds import clairvoyant, fluid_gpu_hours
from fleetline.replay.hindsight import Perform, best, tune
from fleetline.replay.ours import OurParameters
from fleetline.replay.scenario import Scenario, site_of
from fleetline.replay.site import Site
from fleetline.replay.tasks import NAMES, OURS, Outcome, Task

ALL: Final = "all"
BEST: Final = "@best"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to run on one trace."""

    defaults: tuple[str, ...]
    """Policies at their defaults."""
    tuned: tuple[str, ...]
    """Peers at their best in hindsight."""
    order: tuple[str, ...]
    """Names as asked for."""
    sweeps: bool = False
    """Whether every setting that was tried is reported."""
    has_bounds: bool = True
    wants_requests: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """What came of every policy on one trace."""

    scenario: Scenario
    site: Site
    policies: tuple[Outcome, ...]
    clairvoyant: Outcome | None
    fluid_gpu_hours: float
    tried: dict[str, list[Outcome]] = field(default_factory=dict)
    """Every setting of a tuned peer, in order."""

    def as_json(self) -> dict[str, Any]:
        """Present with the keys that scripts rely on."""
        trace = self.scenario.trace
        bounds: dict[str, Any] = {"fluid": {"gpu_hours": self.fluid_gpu_hours}}
        if self.clairvoyant is not None:
            bounds["clairvoyant"] = self.clairvoyant.as_json()
        answer: dict[str, Any] = {
            "trace": trace.name,
            "requests": len(trace.arrivals),
            "duration_s": trace.duration_s,
            "policies": [one.as_json() for one in self.policies],
            "bounds": bounds,
        }
        if self.tried:
            answer["sweep"] = [one.as_json() for ones in self.tried.values() for one in ones]
        return answer


def parse_policies(text: str, **options: bool) -> Request:
    """
    Read `fleetline,kpa,hpa-inflight@best`, `all` or `all@best`.

    Raises
    ------
    ManifestError
        If a name is unknown, or our own policy is to be tuned: it has nothing to tune.
    """
    order: list[str] = []
    for word in (word.strip() for word in text.split(",") if word.strip()):
        if word == ALL:
            order += NAMES
        elif word == ALL + BEST:
            order += [name + BEST for name in BASELINES]
        else:
            order.append(word)
    order = list(dict.fromkeys(order))
    if not order:
        raise ManifestError(f"--policy must name at least one policy, got {text!r}")
    for name in order:
        if name.removesuffix(BEST) not in NAMES:
            raise ManifestError(
                f"--policy must be one of {', '.join((*NAMES, ALL))} or NAME@best, got {name!r}"
            )
        if name == OURS + BEST:
            raise ManifestError(f"--policy must be a peer to be tuned, got {name!r}")
    return Request(
        defaults=tuple(name for name in order if not name.endswith(BEST)),
        tuned=tuple(name.removesuffix(BEST) for name in order if name.endswith(BEST)),
        order=tuple(order),
        **options,
    )


def answer(scenario: Scenario, request: Request, perform: Perform) -> Answer:
    """Run everything that was asked for on one trace."""
    site = site_of(scenario)
    outcomes = {
        one.task.name: one
        for one in perform([_default(name, scenario, site, request) for name in request.defaults])
    }
    swept = tuple(name for name in request.defaults if name in BASELINES) if request.sweeps else ()
    peers = tuple(dict.fromkeys((*request.tuned, *swept)))
    tried = tune(peers, site, perform) if peers else {}
    winners = [best(tried[name]).task for name in request.tuned]
    outcomes |= {one.task.name: one for one in perform([_shown(one, request) for one in winners])}
    return Answer(
        scenario=scenario,
        site=site,
        policies=tuple(outcomes[name] for name in request.order),
        clairvoyant=clairvoyant(scenario, perform) if request.has_bounds else None,
        fluid_gpu_hours=fluid_gpu_hours(scenario),
        tried=tried if request.sweeps else {},
    )


def steps_of(request: Request) -> Sequence[str]:
    """Name what will be run, for a person who waits."""
    tuned = [f"{name}{BEST}" for name in request.tuned]
    return [*request.defaults, *tuned, *(["clairvoyant"] if request.has_bounds else [])]


def _default(name: str, scenario: Scenario, site: Site, request: Request) -> Task:
    parameters = (
        OurParameters(period_s=scenario.period_s, queue_drain_s=scenario.queue_drain_s)
        if name == OURS
        else BASELINES[name].default(site)
    )
    return Task(
        name=name, policy=name, parameters=parameters, wants_requests=request.wants_requests
    )


def _shown(task: Task, request: Request) -> Task:
    """Run the winner once more, now with what the report draws."""
    return Task(
        name=task.name,
        policy=task.policy,
        parameters=task.parameters,
        wants_requests=request.wants_requests,
    )
