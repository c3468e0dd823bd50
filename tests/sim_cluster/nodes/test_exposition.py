"""The metrics of a simulated pod are those of the real engine, as far as a reader can tell."""

import json
from importlib import resources
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from fleetline.model.roofline import step_time
from sim_cluster.nodes import aggregate
from sim_cluster.serving.replica import Request
from tests.sim_cluster.nodes.replicas import Sink, a_replica, after_load, types_in, values_of

RECORDED = json.loads(
    (Path(__file__).parents[2] / "data/nodes/vllm_families.json").read_text("utf-8")
)
"""Families, types, labels and buckets of a real vLLM 0.32."""

INVENTED_LABELS = {"vllm:cache_config_info"}
"""Its labels are the engine's whole cache configuration: we write those that readers use."""


def test_every_family_of_the_real_engine_is_there_with_its_type() -> None:
    assert types_in(a_replica().metrics_text()) == {
        name: family["type"] for name, family in RECORDED.items()
    }


@pytest.mark.parametrize("name", sorted(set(RECORDED) - INVENTED_LABELS))
def test_labels_and_their_values_are_those_of_the_real_engine(name: str) -> None:
    samples = {
        sample.name: sample.labels
        for family in text_string_to_metric_families(a_replica().metrics_text())
        for sample in family.samples
        if sample.name in {name, f"{name}_bucket"}
    }

    (labels,) = samples.values()

    assert sorted(set(labels) - {"le"}) == RECORDED[name]["labels"]


@pytest.mark.parametrize("name", [name for name, family in RECORDED.items() if "buckets" in family])
def test_buckets_are_those_of_the_real_engine(name: str) -> None:
    bounds = [
        sample.labels["le"]
        for family in text_string_to_metric_families(a_replica().metrics_text())
        for sample in family.samples
        if sample.name == f"{name}_bucket"
    ]

    assert bounds == RECORDED[name]["buckets"]


def test_values_of_the_extra_label_are_those_of_the_real_engine() -> None:
    name = "vllm:request_success_total"

    reasons = [
        sample.labels["finished_reason"]
        for family in text_string_to_metric_families(a_replica().metrics_text())
        for sample in family.samples
        if sample.name == name
    ]

    assert reasons == RECORDED[name]["values"]["finished_reason"]


def test_counts_agree_with_what_was_served() -> None:
    samples = values_of(after_load(a_replica("--served-model-name", "chat")).metrics_text())

    assert samples["vllm:prompt_tokens_total"] == 40 * 500
    assert samples["vllm:generation_tokens_total"] == 40 * 50
    assert samples["vllm:time_to_first_token_seconds_count"] == 40
    assert samples["vllm:inter_token_latency_seconds_count"] == 40 * 49
    assert samples["vllm:e2e_request_latency_seconds_count"] == 40
    assert samples["vllm:iteration_tokens_total_sum"] == 40 * (500 + 49)
    assert samples["vllm:num_requests_running"] == 0


def test_a_lone_request_takes_the_time_of_its_steps() -> None:
    replica, sink = a_replica(), Sink()
    step = step_time(replica.spec.replica)

    replica.submit(Request(id=1, arrival_s=0.0, prompt_tokens=500, output_tokens=1), sink)
    replica.advance(10.0)

    pairs = 500 * 499 / 2
    prefill_s = step.step_s(sequences=0, context_tokens=0, prefill_tokens=500, prefill_pairs=pairs)
    (completion,) = sink.completions
    assert completion.time_to_first_token_s == pytest.approx(step.request_s + prefill_s)


def test_running_and_kv_cache_follow_the_load() -> None:
    replica = a_replica()
    for number in range(10):
        replica.submit(
            Request(id=number, arrival_s=0.0, prompt_tokens=500, output_tokens=500), Sink()
        )

    replica.advance(1.0)
    samples = values_of(replica.metrics_text())

    assert samples["vllm:num_requests_running"] == 10
    assert 0.001 < samples["vllm:kv_cache_usage_perc"] < 0.2


def test_a_full_batch_shows_as_waiting_requests() -> None:
    replica = a_replica("--max-num-seqs=4")
    for number in range(10):
        replica.submit(
            Request(id=number, arrival_s=0.0, prompt_tokens=500, output_tokens=500), Sink()
        )

    replica.advance(1.0)
    samples = values_of(replica.metrics_text())

    assert samples["vllm:num_requests_running"] == 4
    assert samples["vllm:num_requests_waiting"] == 6


def test_data_parallel_ranks_share_the_load() -> None:
    replica = a_replica("--max-num-seqs=4", "--data-parallel-size=2")
    for number in range(10):
        replica.submit(
            Request(id=number, arrival_s=0.0, prompt_tokens=500, output_tokens=500), Sink()
        )

    replica.advance(1.0)
    samples = values_of(replica.metrics_text())

    # two ranks of four slots each
    assert samples["vllm:num_requests_running"] == 8
    assert samples["vllm:num_requests_waiting"] == 2


def test_sglang_speaks_its_own_names() -> None:
    text = after_load(a_replica(command=("python", "-m", "sglang.launch_server"))).metrics_text()

    samples = values_of(text)

    assert samples["sglang:num_requests_total"] == 40
    assert samples["sglang:generation_tokens_total"] == 2000
    assert samples["sglang:time_to_first_token_seconds_count"] == 40
    assert "vllm:" not in text


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_all_that_the_product_reads_of_an_engine_is_there(engine: str) -> None:
    read = yaml.safe_load(
        resources.files("fleetline.catalog").joinpath("engine_metrics.yaml").read_text("utf-8")
    )
    command = ("python", "-m", "sglang.launch_server") if engine == "sglang" else ("vllm", "serve")
    shown = {
        line.split()[2]
        for line in a_replica(command=command).metrics_text().splitlines()
        if line.startswith("# TYPE")
    }

    wanted = {
        quantity: [name for name in one["names"] if str(name).startswith(f"{engine}:")]
        for quantity, one in read.items()
    }

    missing = {
        quantity: names for quantity, names in wanted.items() if names and not shown & set(names)
    }
    assert missing == {}


def test_sglang_cannot_resolve_a_first_token_below_a_tenth_of_a_second() -> None:
    text = after_load(a_replica(command=("python", "-m", "sglang.launch_server"))).metrics_text()

    bounds = [
        float(sample.labels["le"])
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "sglang:time_to_first_token_seconds_bucket"
    ]

    assert bounds[0] == 0.1


@pytest.mark.parametrize(
    ("options", "hits"), [((), 400), (("--no-enable-prefix-caching",), 0)], ids=["on", "off"]
)
def test_a_cached_prefix_counts_if_the_engine_caches(options: tuple[str, ...], hits: int) -> None:
    replica = a_replica(*options)
    request = Request(
        id=1, arrival_s=0.0, prompt_tokens=500, output_tokens=5, cached_prompt_tokens=400
    )
    replica.submit(request, Sink())

    replica.advance(10.0)

    assert values_of(replica.metrics_text())["vllm:prefix_cache_hits_total"] == hits


def test_the_aggregate_carries_the_labels_that_a_scrape_would_add() -> None:
    text = aggregate.text([after_load(a_replica())])

    families = {family.name: family for family in text_string_to_metric_families(text)}
    labels = families["vllm:generation_tokens"].samples[0].labels

    assert (labels["namespace"], labels["pod"]) == ("default", "chat-0")
    assert families["vllm:generation_tokens"].samples[0].value == 2000


def test_the_aggregate_follows_replicas_that_come_serve_and_go() -> None:
    first, second, kept = a_replica(), a_replica(), aggregate.Aggregate()

    for replicas in ([first], [first, second], [first, after_load(second)], [second], []):
        assert kept.content(replicas).decode() == aggregate.text(replicas)
