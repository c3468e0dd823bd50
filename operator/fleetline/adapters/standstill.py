"""
Pods whose metrics cannot be believed: an exporter that hangs shows the same page for ever.

    still   busy, yet no gauge and no counter moved over two scrapes or more
    dead    not even the process' own CPU time moved: also while it is idle
    old     the newest sample is older than three scrapes (pushed, or with a time stamp of its own)

An idle engine is told from a frozen one by that: its gauges are zero and its process still runs.
One query names the pods, none in the usual case. What stands still is asked only about pods that
are busy and whose gauges are what they were at the last look: of 20,000 pods the counters alone
would take Prometheus seconds. After a thaw a counter jumps by all that happened
meanwhile, so a pod is believed again only after a whole window of rates.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from fleetline.adapters.engine_metrics import Quantity, questions
from fleetline.adapters.pod_rows import Place, PodRows
from fleetline.adapters.prometheus import Row
from fleetline.adapters.scope import TAG, Scope, of_pods
from fleetline.control.evidence import STALE_S

STEPWISE: Final = (
    "vllm:generation_tokens_total",
    "vllm:inter_token_latency_seconds_count",
    "vllm:time_per_output_token_seconds_count",
    "sglang:inter_token_latency_seconds_count",
)
"""Counters that move with every step of a busy engine; the others' move when a request ends."""

INSIDE: Final = (f"{Quantity.RUNNING}/", f"{Quantity.WAITING}/")
"""How the tags of rows begin that tell of requests inside."""

CPU: Final = "process_cpu_seconds_total"
"""Python's and Go's Prometheus clients show it; every scrape costs a little of it."""

STALE_WINDOWS: Final = 0.75
"""Three scrapes, as a share of the window of rates (four scrapes)."""


class Standstill:
    """Asks for such pods and remembers them until a window after they moved again."""

    def __init__(self) -> None:
        """Know none yet."""
        self._until_s: dict[Place, float] = {}
        self._busy: dict[Place, tuple[float, ...]] = {}
        """Gauges of the busy pods at the last look."""
        self.suspects: frozenset[str] = frozenset()
        """Busy pods that show what they showed at the look before."""

    def compare(self, gauges: PodRows | None) -> None:
        """Look at the gauges of all pods."""
        busy: dict[Place, tuple[float, ...]] = {}
        for place, shown in gauges.items() if gauges else ():
            if any(value > 0 and tag.startswith(INSIDE) for tag, _, value in shown):
                busy[place] = tuple(value for _, _, value in shown)
        same = (place for place, values in busy.items() if self._busy.get(place) == values)
        self.suspects = frozenset(pod for _, pod in same)
        self._busy = busy

    def note(self, rows: Iterable[Row], scope: Scope, *, now_s: float) -> None:
        """Take the answer to `standstill` at a moment."""
        for row in rows:
            place = row.labels.get(scope.namespace_label, ""), row.labels.get(scope.pod_label, "")
            self._until_s[place] = now_s + scope.window_s
        self._until_s = {place: at_s for place, at_s in self._until_s.items() if at_s >= now_s}

    def among(self, namespace: str, pods: Sequence[str]) -> frozenset[str]:
        """Return those of some pods that are not to be believed."""
        return frozenset(pod for pod in pods if (namespace, pod) in self._until_s)


def standstill(
    scope: Scope, existing: frozenset[str], suspects: Collection[str] | None = None
) -> str:
    """
    Ask for the pods that are still, dead or old; empty if nothing shows running requests.

    Only `suspects` may be still; None: any.
    """
    running = _selectors(scope, Quantity.RUNNING, existing)
    if not running:
        return ""
    by = f"{scope.namespace_label}, {scope.pod_label}"
    arms = [_dead(scope, by, running), _old(scope, by, running)]
    if suspects is None or suspects:
        stepwise = [
            of_pods(scope, scope.selector(name), suspects) for name in STEPWISE if name in existing
        ]
        if stepwise:
            arms.append(_still(scope, existing, by, stepwise, scope.window_s / 2, pods=suspects))
        arms.append(_still(scope, existing, by, [], scope.window_s, unless=stepwise, pods=suspects))
    tagged = [f'label_replace({arm}, "{TAG}", "standstill", "", "")' for arm in arms]
    return " or ".join(tagged)


def _still(
    scope: Scope,
    existing: frozenset[str],
    by: str,
    stepwise: Sequence[str],
    over_s: float,
    *,
    unless: Sequence[str] = (),
    pods: Collection[str] | None = None,
) -> str:
    """Busy pods of which nothing moved over a time; only those (not) having `stepwise` counters."""
    gauges = [
        *_selectors(scope, Quantity.RUNNING, existing, pods),
        *_selectors(scope, Quantity.WAITING, existing, pods),
    ]
    moving = [*gauges, *_selectors(scope, Quantity.COMPLETIONS, existing, pods), *stepwise]
    span = f"[{round(over_s * 1000)}ms]"
    busy = " or ".join(f"max by ({by}) ({one}) > 0" for one in gauges)
    moved = " or ".join(f"max by ({by}) (changes({one}{span})) > 0" for one in moving)
    sampled = " or ".join(
        f"max by ({by}) (count_over_time({one}{span})) > 1" for one in stepwise or gauges
    )
    others = " or ".join(f"max by ({by}) ({one})" for one in unless)
    but = f" unless on ({by}) ({others})" if others else ""
    return f"(({busy}) and on ({by}) ({sampled})){but} unless on ({by}) ({moved})"


def _dead(scope: Scope, by: str, running: Sequence[str]) -> str:
    """Pods whose scraped process used no CPU time at all over a window."""
    span, same = f"[{round(scope.window_s * 1000)}ms]", f"{by}, instance"
    cpu = scope.selector(CPU)
    shown = " or ".join(running)
    alive = f"changes({cpu}{span}) > 0"
    sampled = f"count_over_time({cpu}{span}) > 2"
    return f"max by ({by}) ((({shown}) and on ({same}) ({sampled})) unless on ({same}) ({alive}))"


def _old(scope: Scope, by: str, running: Sequence[str]) -> str:
    """Pods whose newest sample is old."""
    oldest_s = max(STALE_S, STALE_WINDOWS * scope.window_s)
    ages = " or ".join(f"min by ({by}) (time() - timestamp({one}))" for one in running)
    return f"({ages}) > {oldest_s:g}"


def _selectors(
    scope: Scope,
    quantity: Quantity,
    existing: frozenset[str],
    pods: Collection[str] | None = None,
) -> list[str]:
    question = questions()[quantity]
    return [
        of_pods(scope, scope.selector(one.name, one.labels), pods)
        for one in question.candidates
        if question.scraped_name(one) in existing
    ]
