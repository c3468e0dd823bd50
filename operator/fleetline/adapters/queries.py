"""
PromQL: a handful of templates that answer for all fleets at once, grouped by namespace and pod.

Every selector carries the namespaces of the fleets. Duplicates of a highly available pair, which
differ only in labels that no engine sets, fall together in the inner `max`. Rates come before sums.
"""

import re
from collections.abc import Collection, Iterable
from typing import Final

from fleetline.adapters.engine_metrics import Candidate, Kind, Quantity, Question, questions
from fleetline.adapters.scope import TAG, Scope, escaped, of_pods

IDENTITY: Final = (
    *("engine", "engine_type", "dp_rank", "finished_reason", "is_streaming", "err"),
    *("cache_source", "version"),
)
"""Labels that engines set to tell their own series apart; these are summed over."""

WHOLE: Final = 0.9
"""Share of a window's scrapes with which a rate that fell is whole: none of four may be lost."""

GATEWAY_WHOLE: Final = 0.7
"""Share of the most scrapes of a window with which a gateway's rate is whole: one may be lost."""

GATEWAY_PAST_S: Final = 1800.0
"""How far back the most scrapes are looked for. [s]"""

LENGTHS_WINDOW_S: Final = 1800.0


def existing_names(scope: Scope) -> str:
    """Ask which of all candidate names exist in the fleets' namespaces."""
    return f"count by (__name__) ({candidate_series(scope)})"


def candidate_series(scope: Scope) -> str:
    """Select the series of all candidate names."""
    names = {
        question.scraped_name(candidate)
        for question in questions().values()
        for candidate in question.candidates
    }
    selector = scope.selector("").removeprefix("{")
    pattern = "|".join(sorted(re.escape(name) for name in names))
    return f'{{__name__=~"{escaped(pattern)}", {selector}'


def names_of(quantity: Quantity) -> tuple[str, ...]:
    """Names under which a quantity may be scraped, in order of preference."""
    question = questions()[quantity]
    return tuple(question.scraped_name(candidate) for candidate in question.candidates)


def samples(scope: Scope, name: str, places: Iterable[tuple[str, str]]) -> str:
    """Ask for the raw samples of a few pods: their time stamps tell the scrape interval."""
    pods = escaped("|".join(sorted({re.escape(pod) for _, pod in places})))
    selector = scope.selector(name).removesuffix("}")
    return f'{selector}, {scope.pod_label}=~"{pods}"}}[2m]'


def pod_gauges(scope: Scope, existing: frozenset[str]) -> str:
    """Ask for running, waiting and KV cache utilization now, by pod."""
    wanted = (Quantity.RUNNING, Quantity.WAITING, Quantity.KV_CACHE_UTILIZATION)
    return _union(
        _tagged(_per_pod(scope, question, scope.selector(one.name, one.labels)), question, one)
        for question, one in _present(wanted, existing)
    )


def pod_completions(scope: Scope, existing: frozenset[str]) -> str:
    """Ask for completed requests per second over the window, by pod."""
    return _union(
        _tagged(
            _per_pod(scope, question, f"rate({scope.selector(one.name)}{_window(scope)})"),
            question,
            one,
        )
        for question, one in _present((Quantity.COMPLETIONS,), existing)
    )


def short_completions(
    scope: Scope, existing: frozenset[str], pods: Collection[str], interval_s: float
) -> str:
    """
    Ask for the counts of those pods whose counter covers a part of the window only.

    A rate divides by the whole window: of a counter that Prometheus saw for half of it (it was
    away, or the engine did not show it), the rate is half of what happened.
    """
    least = WHOLE * scope.window_s / interval_s
    arms = []
    for question, one in _present((Quantity.COMPLETIONS,), existing):
        over = f"{of_pods(scope, scope.selector(one.name), pods)}{_window(scope)}"
        seen = f"max by ({scope.by_pod}) (count_over_time({over}))"
        last = _per_pod(scope, question, f"last_over_time({over})")
        arms.append(_tagged(f"({last}) and ({seen} < {least:g})", question, one))
    return _union(arms)


def pod_growth(scope: Scope, existing: frozenset[str]) -> str:
    """Ask by how much running and waiting requests grew per second over the window, by pod."""
    arms = []
    for question, one in _present((Quantity.RUNNING, Quantity.WAITING), existing):
        selector = scope.selector(one.name, one.labels)
        now = _per_pod(scope, question, selector)
        before = _per_pod(scope, question, f"{selector} offset {_seconds(scope.window_s)}")
        arms.append(_tagged(f"(({now}) - ({before})) / {scope.window_s:g}", question, one))
    return _union(arms)


def young_completions(
    scope: Scope, existing: frozenset[str], pods: Collection[str] | None = None
) -> str:
    """
    Ask for the counts of series that did not exist a window ago: all of it happened since.

    Only young pods have such; `pods` names them, unless they are too many to be named.
    """
    if pods is not None and not pods:
        return ""
    arms = []
    for question, one in _present((Quantity.COMPLETIONS,), existing):
        selector = of_pods(scope, scope.selector(one.name), pods)
        now = _per_pod(scope, question, selector)
        before = _per_pod(scope, question, f"{selector} offset {_seconds(scope.window_s)}")
        arms.append(_tagged(f"({now}) unless ({before})", question, one))
    return _union(arms)


def model_means(scope: Scope, existing: frozenset[str]) -> str:
    """Ask for rates of sums and counts, and of token counters, by model; and for sample ages."""
    arms = []
    histograms = (
        *(Quantity.TIME_TO_FIRST_TOKEN, Quantity.INTER_TOKEN_LATENCY, Quantity.END_TO_END),
        *(Quantity.PROMPT_TOKENS, Quantity.OUTPUT_TOKENS),
    )
    for question, one in _present(histograms, existing):
        for part in ("sum", "count"):
            rate = f"rate({scope.selector(f'{one.name}_{part}')}{_window(scope)})"
            arms.append(_tagged(_per_model(scope, rate), question, one, part))
    counters = (
        *(Quantity.PREEMPTIONS, Quantity.PREFIX_HITS, Quantity.PREFIX_QUERIES),
        *(Quantity.PROMPT_TOKENS_TOTAL, Quantity.OUTPUT_TOKENS_TOTAL),
    )
    for question, one in _present(counters, existing):
        rate = f"rate({scope.selector(one.name)}{_window(scope)})"
        arms.append(_tagged(_per_model(scope, rate), question, one))
    for question, one in _present((Quantity.RUNNING,), existing):
        newest = f"max by ({scope.by_model}) (timestamp({scope.selector(one.name, one.labels)}))"
        arms.append(_tagged(f"time() - {newest}", question, one, "age"))
    return _union(arms)


def model_buckets(scope: Scope, existing: frozenset[str], wanted: Iterable[Quantity]) -> str:
    """Ask for histogram buckets per second over the window, by model."""
    return _buckets(scope, existing, wanted, scope.window_s)


def length_buckets(scope: Scope, existing: frozenset[str]) -> str:
    """Ask for the buckets of prompt and output lengths over half an hour, by model."""
    wanted = (Quantity.PROMPT_TOKENS, Quantity.OUTPUT_TOKENS)
    return _buckets(scope, existing, wanted, LENGTHS_WINDOW_S)


def gateway_rates(scope: Scope, counters: Iterable[tuple[str, str]]) -> str:
    """
    Ask for the rates of gateway counters, each by its model label, in the fleets' namespaces.

    Those that were scraped for a part of the window only are left out: how often a gateway is
    scraped tells the fullest window of the last half hour.
    """
    arms = []
    for counter, label in sorted(set(counters)):
        selector, window, by = scope.selector(counter), _window(scope), scope.namespace_label
        rate = f"rate({selector}{window})"
        inner = f"max by ({by}, {scope.pod_label}, {label}) ({rate})"
        seen = f"max by ({by}, {label}) (count_over_time({selector}{window}))"
        usual = f"max_over_time(({seen})[{_seconds(GATEWAY_PAST_S)}:{_seconds(scope.window_s)}])"
        total = f"sum by ({by}, {label}) ({inner}) and ({seen} >= {GATEWAY_WHOLE:g} * {usual})"
        arms.append(f'label_replace({total}, "{TAG}", "{counter}/{label}", "", "")')
    return _union(arms)


def _buckets(
    scope: Scope, existing: frozenset[str], wanted: Iterable[Quantity], window_s: float
) -> str:
    arms = []
    for question, one in _present(tuple(wanted), existing):
        rate = f"rate({scope.selector(f'{one.name}_bucket')}[{_seconds(window_s)}])"
        arms.append(_tagged(_per_model(scope, rate, "le"), question, one, "bucket"))
    return _union(arms)


def _present(
    wanted: Iterable[Quantity], existing: frozenset[str]
) -> list[tuple[Question, Candidate]]:
    """Candidates that exist; a name that answers two questions is asked for both."""
    table = questions()
    return [
        (table[quantity], candidate)
        for quantity in dict.fromkeys(wanted)
        for candidate in table[quantity].candidates
        if table[quantity].scraped_name(candidate) in existing
    ]


def _per_pod(scope: Scope, question: Question, expression: str) -> str:
    outer = "avg" if question.kind is Kind.RATIO else "sum"
    inner = f"max by ({scope.by_pod}, {', '.join(IDENTITY)}) ({expression})"
    return f"{outer} by ({scope.by_pod}) ({inner})"


def _per_model(scope: Scope, expression: str, *more: str) -> str:
    inner = f"max by ({', '.join((scope.by_pod, *IDENTITY, *more))}) ({expression})"
    return f"sum by ({', '.join((scope.by_model, *more))}) ({inner})"


def _tagged(expression: str, question: Question, candidate: Candidate, part: str = "") -> str:
    tag = f"{question.quantity}/{candidate.name}/{part}"
    return f'label_replace({expression}, "{TAG}", "{escaped(tag)}", "", "")'


def _union(arms: Iterable[str]) -> str:
    return " or ".join(arms)


def _window(scope: Scope) -> str:
    return f"[{_seconds(scope.window_s)}]"


def _seconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
