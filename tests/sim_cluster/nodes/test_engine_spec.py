"""What a pod runs is read from its command line, as the engine itself would read it."""

from typing import Any

import pytest

from fleetline.model.hardware import Precision
from sim_cluster.nodes import catalog
from sim_cluster.nodes.engine_spec import EngineSpec, read_engine

H100 = catalog.accelerator("H100-SXM").accelerator
MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def spec_of(container: dict[str, Any], **metadata: Any) -> EngineSpec | None:
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "engine", **container}]}}
    return read_engine(pod, H100)


@pytest.mark.parametrize(
    "container",
    [
        pytest.param({"command": ["vllm", "serve", MODEL]}, id="the usual command"),
        pytest.param({"args": ["serve", MODEL, "--port", "8000"]}, id="arguments of the image"),
        pytest.param({"args": ["--model", MODEL]}, id="the older entry point"),
        pytest.param({"args": [f"--model={MODEL}"]}, id="with an equals sign"),
        pytest.param({"command": ["sh", "-c"], "args": [f"exec vllm serve {MODEL}"]}, id="a shell"),
        pytest.param(
            {
                "command": ["vllm", "serve", "$(MODEL)"],
                "env": [{"name": "MODEL", "value": MODEL}],
            },
            id="from the environment",
        ),
        pytest.param(
            {"command": ["python", "-m", "sglang.launch_server", "--model-path", MODEL]},
            id="sglang",
        ),
    ],
)
def test_the_model_is_found(container: dict[str, Any]) -> None:
    spec = spec_of(container)

    assert spec is not None
    assert spec.replica.architecture.name == "llama-3.1-8b"
    assert spec.served_name == MODEL


def test_engine_options_reach_the_replica() -> None:
    spec = spec_of(
        {
            "command": ["vllm", "serve", "llama-3.1-70b"],
            "args": [
                *("--tensor-parallel-size", "4", "--max-num-seqs=128"),
                *("--max-num-batched-tokens", "4096", "--quantization", "fp8"),
                *("--kv-cache-dtype", "fp8", "--gpu-memory-utilization", "0.95"),
                *("--served-model-name", "chat", "--port", "9000"),
            ],
        }
    )

    assert spec is not None
    replica = spec.replica
    assert (replica.tensor_parallel, replica.max_sequences) == (4, 128)
    assert (replica.step_token_budget, replica.memory_utilization) == (4096, 0.95)
    assert (replica.weight_precision, replica.kv_precision) == (Precision.FP8, Precision.FP8)
    assert (spec.served_name, spec.port, spec.dialect) == ("chat", 9000, "vllm")


def test_sglang_options_mean_the_same_under_their_own_names() -> None:
    spec = spec_of(
        {
            "command": ["python3", "-m", "sglang.launch_server", "--model-path", "llama-3.1-70b"],
            "args": ["--tp", "8", "--max-running-requests", "64", "--mem-fraction-static", "0.8"],
        }
    )

    assert spec is not None
    assert spec.dialect == "sglang"
    assert (spec.replica.tensor_parallel, spec.replica.max_sequences) == (8, 64)
    assert spec.replica.memory_utilization == 0.8


def test_a_pod_that_serves_no_model_has_no_engine() -> None:
    assert spec_of({"image": "pause", "command": ["/pause"]}) is None


def test_an_annotation_names_the_model_of_a_silent_image() -> None:
    spec = spec_of({"image": "ours"}, annotations={"sim.fleetline.dev/model": "llama-3.1-8b"})

    assert spec is not None
    assert spec.replica.architecture.name == "llama-3.1-8b"


def test_an_unknown_model_is_refused_with_its_name() -> None:
    with pytest.raises(ValueError, match="got 'acme/none-1b'"):
        spec_of({"command": ["vllm", "serve", "acme/none-1b"]})
