"""Simulated pods with an engine, what they serve, and what their metrics say."""

from prometheus_client.parser import text_string_to_metric_families

from sim_cluster.nodes import catalog
from sim_cluster.nodes.engine_spec import read_engine
from sim_cluster.nodes.live_replica import LiveReplica
from sim_cluster.serving.replica import Completion, Request


class Sink:
    """A client that only counts."""

    def __init__(self) -> None:
        self.completions: list[Completion] = []
        self.lost_requests: list[Request] = []

    def completed(self, completion: Completion) -> None:
        self.completions.append(completion)

    def lost(self, request: Request) -> None:
        self.lost_requests.append(request)


def a_replica(*options: str, command: tuple[str, ...] = ("vllm", "serve")) -> LiveReplica:
    words = [*command, "meta-llama/Llama-3.1-8B-Instruct", *options]
    if "sglang" in command[-1]:
        words = [*command, "--model-path", "meta-llama/Llama-3.1-8B-Instruct", *options]
    pod = {"metadata": {}, "spec": {"containers": [{"name": "engine", "command": words}]}}
    spec = read_engine(pod, catalog.accelerator("H100-SXM").accelerator)
    assert spec is not None
    return LiveReplica(("default", "chat-0"), spec, created_s=1.7e9)


def after_load(replica: LiveReplica) -> LiveReplica:
    """Forty requests in four seconds, all answered."""
    sink = Sink()
    for number in range(40):
        replica.submit(
            Request(id=number, arrival_s=number / 10, prompt_tokens=500, output_tokens=50), sink
        )
    replica.advance(60.0)
    return replica


def types_in(text: str) -> dict[str, str]:
    lines = [line.split() for line in text.splitlines() if line.startswith("# TYPE vllm:")]
    return {words[2]: words[3] for words in lines}


def values_of(text: str) -> dict[str, float]:
    """Last value of each sample name."""
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
