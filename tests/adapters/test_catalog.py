"""The catalogue: names resolve tolerantly, units are right, every number has a source."""

from importlib import resources
from typing import Any

import pytest
import yaml

from fleetline.adapters.catalog import load_catalog
from fleetline.errors import ManifestError
from fleetline.model.hardware import Precision


def packaged(name: str) -> dict[str, Any]:
    text = resources.files("fleetline.catalog").joinpath(f"{name}.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


@pytest.mark.parametrize("name", ["accelerators", "models"])
def test_every_entry_names_its_source(name: str) -> None:
    assert [key for key, entry in packaged(name).items() if not entry.get("source")] == []


def test_every_price_is_dated_and_has_a_source() -> None:
    offers = [offer for offers in packaged("prices").values() for offer in offers]

    assert all(offer["date"] and offer["source"] for offer in offers)


def test_every_price_belongs_to_a_known_accelerator() -> None:
    assert set(packaged("prices")) <= set(packaged("accelerators"))


def test_units_are_converted_to_si() -> None:
    h100 = load_catalog().accelerator("H100-SXM")

    assert h100.bandwidth_bytes_per_s == 3.35e12
    assert h100.memory_bytes == 80e9
    assert h100.ridge_point_flop_per_byte() == pytest.approx(295, abs=0.5)


@pytest.mark.parametrize(
    ("spelling", "key"),
    [
        ("llama-3.1-8b", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("Meta-Llama-3-8B", "llama-3.1-8b"),
        ("RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8", "llama-3.1-70b"),
        ("Llama-3.3-70B-Instruct", "llama-3.1-70b"),
        ("deepseek-ai/DeepSeek-V3.1-NVFP4", "deepseek-r1"),
        ("Mistral-7B-v0.1", "mistral-7b"),
        ("Qwen2-7B", "qwen2.5-7b"),
        ("LLaMA 70B", "llama-2-70b"),
        ("GPT-J 6B", "gpt-j-6b"),
    ],
)
def test_a_model_is_found_by_its_usual_spellings(spelling: str, key: str) -> None:
    assert load_catalog().model_key(spelling) == key


@pytest.mark.parametrize("spelling", ["H100-SXM (inferred)", "h100 sxm", "H100_SXM"])
def test_an_accelerator_is_found_by_its_usual_spellings(spelling: str) -> None:
    assert load_catalog().accelerator(spelling).name == "H100-SXM"


def test_an_unknown_name_is_refused_with_the_closest_ones() -> None:
    with pytest.raises(
        ManifestError, match=r"model must be a name in the catalogue .*llama-3.1-8b"
    ):
        load_catalog().architecture("llama-3.1-9b")


def test_an_accelerator_without_rates_is_refused() -> None:
    with pytest.raises(ManifestError, match="AcceleratorProfile adds them"):
        load_catalog().accelerator("RTX-PRO-4500")


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("Llama-3.1-8B", Precision.BF16),
        ("Llama-3.1-8B-Instruct-FP8", Precision.FP8),
        ("Qwen3-32B-NVFP4", Precision.FP4),
        ("Llama-3.1-70B-AWQ", Precision.INT4),
    ],
)
def test_the_name_tells_the_format_of_the_weights(name: str, precision: Precision) -> None:
    assert load_catalog().weight_precision(name) is precision


@pytest.mark.parametrize("key", list(packaged("models")))
def test_routed_experts_are_a_part_of_all_weights(key: str) -> None:
    architecture = load_catalog().architecture(key)

    assert architecture.active_parameters <= architecture.parameters
    assert architecture.expert_parameters < architecture.parameters
