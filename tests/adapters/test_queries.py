"""Every query that is sent, read by Prometheus' own grammar: valid, and confined to its fleets."""

import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetline.adapters import queries
from fleetline.adapters.engine_metrics import Quantity, questions
from fleetline.adapters.scope import Scope, escaped
from fleetline.adapters.standstill import standstill

SCOPE = Scope(namespaces=("chat", "code"), window_s=60.0)
ALL = frozenset(
    question.scraped_name(candidate)
    for question in questions().values()
    for candidate in question.candidates
)

SENT = {
    "names": queries.existing_names(SCOPE),
    "gauges": queries.pod_gauges(SCOPE, ALL),
    "completions": queries.pod_completions(SCOPE, ALL),
    "short": queries.short_completions(SCOPE, ALL, {"chat-1"}, 15.0),
    "growth": queries.pod_growth(SCOPE, ALL),
    "young": queries.young_completions(SCOPE, ALL),
    "means": queries.model_means(SCOPE, ALL),
    "buckets": queries.model_buckets(SCOPE, ALL, [Quantity.TIME_TO_FIRST_TOKEN]),
    "lengths": queries.length_buckets(SCOPE, ALL),
    "gateways": queries.gateway_rates(SCOPE, [("llm_d_epp_request_total", "model_name")]),
    "standstill": standstill(SCOPE, ALL),
    "samples": queries.samples(SCOPE, "vllm:num_requests_running", [("chat", "chat-1")]),
}


def selectors(query: str) -> list[str]:
    """Print the vector selectors of a query, as the parser understood them."""
    printed = str(promql_parser.parse(query).prettify())
    return [part.split("}")[0] for part in printed.split("{")[1:]]


@pytest.mark.parametrize("query", SENT.values(), ids=SENT.keys())
def test_each_query_is_valid(query: str) -> None:
    promql_parser.parse(query)


@pytest.mark.parametrize("query", SENT.values(), ids=SENT.keys())
def test_each_selector_is_confined_to_the_fleets_namespaces(query: str) -> None:
    found = selectors(query)

    assert found
    assert all('namespace=~"chat|code"' in one for one in found)


def test_there_are_at_most_twelve() -> None:
    assert len(SENT) <= 12


def test_what_does_not_exist_is_not_asked_for() -> None:
    assert queries.pod_gauges(SCOPE, frozenset()) == ""
    assert "sglang" not in queries.pod_gauges(SCOPE, frozenset({"vllm:num_requests_running"}))


@given(st.text())
def test_any_label_value_stays_one_literal(value: str) -> None:
    query = f'up{{pod="{escaped(value)}"}}'

    parsed = promql_parser.parse(query)

    assert isinstance(parsed, promql_parser.VectorSelector)
    assert [(one.name, one.value) for one in parsed.matchers.matchers] == [("pod", value)]
