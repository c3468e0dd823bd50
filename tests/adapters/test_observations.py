"""Rows of all fleets to the observations of one: joined on live pods, unknown with a reason."""

import math

import pytest

from fleetline.adapters.arrivals import conserved_arrivals
from fleetline.adapters.engine_metrics import Quantity
from fleetline.adapters.observations import (
    PodView,
    Rows,
    length_distribution,
    model_mean,
    percentile,
    view_pods,
)
from fleetline.adapters.prometheus import Row, read_row
from fleetline.adapters.readings import scrape_interval_s
from fleetline.adapters.scope import TAG, Scope

SCOPE = Scope(namespaces=("chat",))
MODEL = ("chat", "llama", "")
TTFT = "timeToFirstToken/vllm:time_to_first_token_seconds"


def pod_row(pod: str, tag: str, value: float, *, namespace: str = "chat") -> Row:
    return Row({"namespace": namespace, "pod": pod, "model_name": "llama", TAG: tag}, value)


def model_row(tag: str, value: float, **labels: str) -> Row:
    return Row({"namespace": "chat", "model_name": "llama", TAG: tag, **labels}, value)


def buckets(*pairs: tuple[str, float]) -> Rows:
    rows = Rows()
    rows.add_buckets([model_row(f"{TTFT}/bucket", rate, le=bound) for bound, rate in pairs], SCOPE)
    return rows


def ttft(rows: Rows, *, target_s: float, at: int = 95):
    return percentile(
        rows,
        [MODEL],
        Quantity.TIME_TO_FIRST_TOKEN,
        percentile=at,
        target_s=target_s,
        window_s=60.0,
    )


def test_only_rows_of_the_fleets_pods_count() -> None:
    rows = Rows()
    tag = "running/vllm:num_requests_running/"
    rows.add_pods(
        [
            pod_row("chat-1", tag, 3.0),
            pod_row("gone", tag, 90.0),
            pod_row("chat-1", tag, 50.0, namespace="other"),
        ],
        "gauge/",
        SCOPE,
    )

    view = view_pods(rows, "chat", ["chat-1"], "gauge/", None)

    assert view.values == {Quantity.RUNNING: {"chat-1": 3.0}}


def test_two_names_of_one_quantity_are_never_added_up() -> None:
    rows = Rows()
    rows.add_pods(
        [
            pod_row("chat-1", "kvCacheUtilization/vllm:gpu_cache_usage_perc/", 0.5),
            pod_row("chat-1", "kvCacheUtilization/vllm:kv_cache_usage_perc/", 0.6),
        ],
        "gauge/",
        SCOPE,
    )

    view = view_pods(rows, "chat", ["chat-1"], "gauge/", None)

    assert view.values[Quantity.KV_CACHE_UTILIZATION] == {"chat-1": 0.6}
    assert view.sources[Quantity.KV_CACHE_UTILIZATION] == "vllm:kv_cache_usage_perc"


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e308", "abc", None, 5, ["1"], {"a": 1}])
def test_a_sample_that_is_no_finite_number_is_rejected(value: object) -> None:
    assert read_row({"metric": {}, "value": [0, value]}) is None


@pytest.mark.parametrize("entry", [None, 3, "x", [], {}, {"metric": {}}, {"metric": 1, "value": 2}])
def test_what_is_no_sample_is_rejected(entry: object) -> None:
    assert read_row(entry) is None


def test_a_percentile_is_interpolated_in_its_bucket() -> None:
    # 10 requests/s: 9 within 0.25 s, all within 0.5 s; p95 lies in the middle of that bucket.
    rows = buckets(("0.25", 9.0), ("0.5", 10.0), ("+Inf", 10.0))

    assert ttft(rows, target_s=0.5).value == pytest.approx(0.375)


def test_a_target_inside_the_bucket_cannot_be_judged() -> None:
    rows = buckets(("0.25", 9.0), ("0.5", 10.0), ("+Inf", 10.0))

    assert not ttft(rows, target_s=0.4).is_known


def test_beyond_the_last_bound_at_least_that_bound_is_known() -> None:
    rows = buckets(("0.25", 1.0), ("+Inf", 10.0))

    assert ttft(rows, target_s=0.1).value == 0.25


def test_too_few_requests_have_no_percentile() -> None:
    rows = buckets(("0.25", 0.1), ("+Inf", 0.1))

    assert not ttft(rows, target_s=0.5).is_known


def test_buckets_that_are_not_monotone_are_mended() -> None:
    rows = buckets(("0.25", 9.0), ("0.5", 8.5), ("+Inf", 10.0))

    assert ttft(rows, target_s=0.25, at=50).is_known


def test_a_mean_needs_requests() -> None:
    rows = Rows()
    rows.add_models([model_row(f"{TTFT}/sum", 400.0), model_row(f"{TTFT}/count", 0.02)], SCOPE)

    mean = model_mean(rows, [MODEL], Quantity.TIME_TO_FIRST_TOKEN, window_s=60.0, least=5.0)

    assert not mean.is_known


def test_lengths_come_from_histograms() -> None:
    rows = Rows()
    rows.add_buckets(
        [
            model_row("promptTokens/vllm:request_prompt_tokens/bucket", 1.0, le="100"),
            model_row("promptTokens/vllm:request_prompt_tokens/bucket", 2.0, le="1000"),
            model_row("outputTokens/vllm:request_generation_tokens/bucket", 2.0, le="50"),
        ],
        SCOPE,
    )

    lengths = length_distribution(rows, [MODEL], "")

    assert lengths is not None
    assert lengths.mean_prompt_tokens == pytest.approx((math.sqrt(100) + math.sqrt(1e5)) / 2)


def view(**values: dict[str, float]) -> PodView:
    names = {"running": Quantity.RUNNING, "waiting": Quantity.WAITING}
    return PodView(
        values={names.get(name, Quantity.COMPLETIONS): pods for name, pods in values.items()}
    )


def arrivals(
    gauges: PodView,
    *,
    done: PodView,
    growth: PodView,
    fresh: PodView,
    young: set[str],
    doubtful: set[str] | None = None,
    counts: bool = False,
) -> tuple[float | None, int]:
    reading, whole = conserved_arrivals(
        gauges,
        (done, growth, fresh),
        frozenset(young),
        window_s=60.0,
        doubtful=frozenset(doubtful or ()),
        counts=counts,
    )
    return reading.value, whole


def test_arrivals_are_completions_plus_growth() -> None:
    # 8 complete a second while 120 more came to be inside within 60 s: 10 a second arrive.
    value = arrivals(
        view(running={"a": 200.0}, waiting={"a": 0.0}),
        done=view(completions={"a": 8.0}),
        growth=view(running={"a": 2.0}),
        fresh=view(),
        young=set(),
    )

    assert value == (10.0, 1)


def test_all_that_a_young_pod_counted_arrived_within_the_window() -> None:
    value = arrivals(
        view(running={"new": 30.0}, waiting={"new": 0.0}),
        done=view(),
        growth=view(),
        fresh=view(completions={"new": 90.0}),
        young={"new"},
    )

    assert value == (2.0, 1)


def test_an_old_pod_without_a_past_is_not_taken_for_a_young_one() -> None:
    # Prometheus was away: the counter of months must not look like a minute's arrivals.
    value = arrivals(
        view(running={"old": 30.0}, waiting={"old": 0.0}),
        done=view(),
        growth=view(),
        fresh=view(completions={"old": 9e6}),
        young=set(),
    )

    assert value == (None, 0)


@pytest.mark.parametrize(
    ("done", "waiting", "doubtful"),
    [
        pytest.param({"a": 8.0, "b": 8.0}, {"a": 0.0, "b": 0.0}, {"b"}, id="it stands still"),
        pytest.param({"a": 8.0}, {"a": 0.0, "b": 0.0}, set(), id="busy without completions"),
        pytest.param({"a": 8.0, "b": 8.0}, {"a": 0.0}, set(), id="no queue to be seen"),
    ],
)
def test_a_pod_that_shows_half_of_it_is_not_counted(
    done: dict[str, float], waiting: dict[str, float], doubtful: set[str]
) -> None:
    value = arrivals(
        view(running={"a": 20.0, "b": 20.0}, waiting=waiting),
        done=view(completions=done),
        growth=view(running={"a": 0.0, "b": 0.0}),
        fresh=view(),
        young=set(),
        doubtful=doubtful,
    )

    assert value == (8.0, 1)


def test_when_all_stand_still_arrivals_are_no_zero() -> None:
    value = arrivals(
        view(running={"a": 20.0}, waiting={"a": 0.0}),
        done=view(completions={"a": 0.0}),
        growth=view(running={"a": 0.0}),
        fresh=view(),
        young=set(),
        doubtful={"a"},
    )

    assert value == (None, 0)


def test_a_counter_that_was_there_and_is_gone_is_no_zero() -> None:
    idle = view(running={"a": 0.0}, waiting={"a": 0.0})
    growth = view(running={"a": 0.0})

    gone = arrivals(idle, done=view(), growth=growth, fresh=view(), young=set(), counts=True)
    never = arrivals(idle, done=view(), growth=growth, fresh=view(), young=set(), counts=False)

    assert gone == (None, 0)
    assert never == (0.0, 1)


def test_silence_is_a_known_zero() -> None:
    value = arrivals(
        view(running={"a": 0.0}, waiting={"a": 0.0}),
        done=view(completions={"a": 0.0}),
        growth=view(running={"a": 0.0}),
        fresh=view(),
        young=set(),
    )

    assert value == (0.0, 1)


def test_no_series_is_no_zero() -> None:
    assert arrivals(view(), done=view(), growth=view(), fresh=view(), young=set()) == (None, 0)


def test_the_scrape_interval_is_read_off_the_time_stamps() -> None:
    samples = [[15.0 * index, "1"] for index in range(5)]

    assert scrape_interval_s({"values": samples}) == 15.0
    assert scrape_interval_s({"values": samples[:2]}) is None
    assert scrape_interval_s("nonsense") is None
