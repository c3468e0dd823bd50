"""The best a peer could have done: the cheapest setting that in hindsight meets the target."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from fleetline.replay.baselines import BASELINES
from fleetline.replay.site import Site
from fleetline.replay.tasks import Outcome, Task

WINDOWS_TARGET: Final = 0.99
"""Share of windows in which the objectives must hold. 0..1"""

REFINEMENTS: Final = 1
"""How often the grid is refined around its best setting."""

Perform = Callable[[Sequence[Task]], list[Outcome]]


def best(outcomes: Iterable[Outcome]) -> Outcome:
    """
    Choose the fewest GPU-hours among those that met the windows target.

    If none did, the one with most windows met, and of these the cheapest.
    """
    return min(outcomes, key=_order)


def meets_target(outcome: Outcome) -> bool:
    """Tell whether the windows target was met."""
    return outcome.score.windows_met >= WINDOWS_TARGET


def tune(names: Sequence[str], site: Site, perform: Perform) -> dict[str, list[Outcome]]:
    """
    Run the grid of each peer, then settings between the best one and its neighbours.

    Returns every outcome by name, in the order of the settings.
    """
    found = {name: perform(_tasks(name, BASELINES[name].tunings(site))) for name in names}
    for _ in range(REFINEMENTS):
        tasks = [task for name in names for task in _tasks(name, _finer(found[name]))]
        for outcome in perform(tasks):
            found[outcome.task.policy].append(outcome)
        found = {name: sorted(ones, key=_setting) for name, ones in found.items()}
    return found


def between(low: Any, high: Any) -> Any | None:
    """
    Return parameters half-way between two that differ in numbers only; None if there are none.

    Floats meet at their geometric mean, counts at the rounded mean.
    """
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(low):
        a, b = getattr(low, field.name), getattr(high, field.name)
        if a == b:
            continue
        if isinstance(a, float) and isinstance(b, float) and a > 0 and b > 0:
            changed[field.name] = math.sqrt(a * b)
        elif type(a) is int and type(b) is int and abs(a - b) > 1:
            changed[field.name] = (a + b) // 2
        else:
            return None
    return dataclasses.replace(low, **changed) if changed else None


def _tasks(name: str, settings: Iterable[Any]) -> list[Task]:
    return [
        Task(name=f"{name}@best", policy=name, parameters=one, is_shown=False) for one in settings
    ]


def _finer(outcomes: list[Outcome]) -> list[Any]:
    top = best(outcomes)
    near = [pair for pair in pairwise(outcomes) if top in pair]
    settings = [between(a.task.parameters, b.task.parameters) for a, b in near]
    return [one for one in settings if one is not None]


def _setting(outcome: Outcome) -> tuple[tuple[str, float], ...]:
    """Order settings by their numbers, words first, so that neighbours are alike."""
    parameters = outcome.task.parameters
    values = [getattr(parameters, field.name) for field in dataclasses.fields(parameters)]
    words = tuple((str(one), 0.0) for one in values if isinstance(one, str))
    numbers = tuple(("", float(one)) for one in values if type(one) in {int, float})
    return (*words, *numbers)


def _order(outcome: Outcome) -> tuple[float, float]:
    one = outcome.score
    if meets_target(outcome):
        return (-1.0, one.gpu_hours)
    return (1.0 - one.windows_met, one.gpu_hours)
