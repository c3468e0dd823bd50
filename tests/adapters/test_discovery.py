"""What a replica is made of: the CR first, then template and nodes; each value knows its source."""

import pytest

from fleetline.adapters.catalog import load_catalog
from fleetline.adapters.discovery import Discovery, Source, discover
from fleetline.adapters.engine_flags import read_template
from fleetline.adapters.node_labels import accelerator_of_node
from fleetline.adapters.replica_spec import EngineSpec, EngineType, ReplicaSpec
from fleetline.model.hardware import Precision

CATALOG = load_catalog()


def node(product: str):
    return accelerator_of_node(
        CATALOG, {"nvidia.com/gpu.product": product}, {"nvidia.com/gpu": "8"}
    )


def template(image: str, *args: str, env: dict[str, str] | None = None, gpus: int = 1):
    container = {
        "image": image,
        "args": list(args),
        "env": [{"name": name, "value": value} for name, value in (env or {}).items()],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    sidecar = {"image": "envoyproxy/envoy:v1", "args": ["--model", "none"]}
    return {"spec": {"containers": [sidecar, container]}}


def source_of(found: Discovery, name: str) -> Source:
    return next(one.source for one in found.found if one.name == name)


H100 = node("NVIDIA-H100-80GB-HBM3")
VLLM = ("vllm/vllm-openai:v0.12", "--model", "meta-llama/Llama-3.1-8B-Instruct")


@pytest.mark.parametrize(
    ("words", "sequences", "budget", "parallel"),
    [
        pytest.param(
            template(*VLLM, "--max-num-seqs=64", "--max-num-batched-tokens", "4096", "-tp", "2"),
            *(64, 4096, 2),
            id="vLLM",
        ),
        pytest.param(
            template("x", "sh", "-c", "vllm serve Qwen/Qwen2.5-7B --max-num-seqs 32"),
            *(32, 8192, 1),
            id="vLLM inside a shell",
        ),
        pytest.param(
            template(
                *("lmsysorg/sglang:latest", "--model-path", "meta-llama/Llama-3.1-8B-Instruct"),
                *("--max-running-requests", "96", "--chunked-prefill-size", "2048", "--tp", "4"),
            ),
            *(96, 2048, 4),
            id="SGLang",
        ),
        pytest.param(
            template(
                "ghcr.io/huggingface/text-generation-inference:3",
                env={
                    "MODEL_ID": "meta-llama/Llama-3.1-8B-Instruct",
                    "MAX_BATCH_SIZE": "48",
                    "NUM_SHARD": "2",
                },
                gpus=2,
            ),
            *(48, 4096, 2),
            id="TGI by environment",
        ),
        pytest.param(
            template(
                *("nvcr.io/nvidia/tensorrt-llm/release:1", "trtllm-serve"),
                *("meta-llama/Llama-3.1-8B-Instruct", "--max_batch_size", "128", "--tp_size", "2"),
            ),
            *(128, 8192, 2),
            id="TensorRT-LLM",
        ),
    ],
)
def test_flags_are_read(words, sequences: int, budget: int, parallel: int) -> None:
    found = discover(ReplicaSpec(), words, [H100], CATALOG)

    assert found.replica is not None
    assert found.replica.max_sequences == sequences
    assert found.replica.step_token_budget == budget
    assert found.replica.tensor_parallel == parallel


def test_the_spec_wins_over_the_template() -> None:
    spec = ReplicaSpec(engine=EngineSpec(max_sequences=16), accelerator_name="L40S")

    found = discover(spec, template(*VLLM, "--max-num-seqs", "64"), [H100], CATALOG)

    assert found.replica is not None
    assert (found.replica.max_sequences, found.replica.accelerator.name) == (16, "L40S")
    assert source_of(found, "engine.maxSequences") is Source.SPEC
    assert source_of(found, "engine.stepTokenBudget") is Source.DEFAULT
    assert source_of(found, "model.name") is Source.POD_TEMPLATE


def test_no_accelerator_is_ever_guessed() -> None:
    found = discover(ReplicaSpec(), template(*VLLM), [], CATALOG)

    assert found.replica is None
    assert "spec.accelerator.name" in found.unknown_because
    assert source_of(found, "accelerator.name") is Source.UNKNOWN


def test_an_unknown_model_is_named() -> None:
    found = discover(ReplicaSpec(), template("vllm", "--model", "acme/rocket-9"), [H100], CATALOG)

    assert found.replica is None
    assert "acme/rocket-9" in found.unknown_because


def test_of_mixed_accelerators_the_slowest_counts() -> None:
    found = discover(ReplicaSpec(), template(*VLLM), [H100, node("NVIDIA-L40S")], CATALOG)

    assert found.replica is not None
    assert found.replica.accelerator.name == "L40S"
    assert found.accelerator_names == ("H100-SXM", "L40S")


def test_quantization_changes_the_weights() -> None:
    words = template(*VLLM, "--quantization", "fp8", "--kv-cache-dtype", "fp8_e4m3")

    found = discover(ReplicaSpec(), words, [H100], CATALOG)

    assert found.replica is not None
    assert found.replica.weight_precision is Precision.FP8
    assert found.replica.kv_precision is Precision.FP8


def test_the_engine_is_told_by_its_image() -> None:
    assert read_template(template("docker.io/vllm/vllm-openai")).type is EngineType.VLLM
    assert read_template(template("example/unknown")).type is None
    assert read_template({}).type is None
