"""
The product's catalogue as the simulated hardware needs it: data only, read from its YAML files.

The simulator may use the same data and the same physics of one step as the product, but no code
of the product's adapters, so that agreement between the two is evidence.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import yaml

from fleetline.model.architecture import Architecture
from fleetline.model.hardware import Accelerator, Efficiency, Precision

if TYPE_CHECKING:
    from collections.abc import Mapping

GIGA: Final = 1e9
TERA: Final = 1e12
MICRO: Final = 1e-6

_NAME_NOISE: Final = frozenset({"instruct", "hf", "it", "chat", "meta", "fp8", "dynamic"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """An accelerator, and how nodes that carry it announce it."""

    accelerator: Accelerator
    memory_gigabytes: float
    labels: Mapping[str, tuple[str, ...]]
    has_slices: bool = False
    """Whether it can be cut into MIG slices."""


@functools.cache
def accelerator(name: str) -> CatalogEntry:
    """Look up an accelerator by its catalogue key, in any case."""
    entries = _read("accelerators")
    for key, raw in entries.items():
        if key.lower() == name.lower():
            return _entry(key, raw)
    raise ValueError(f"accelerator must be one of {', '.join(entries)}, got {name!r}")


@functools.cache
def model(name: str) -> tuple[Architecture, Precision]:
    """Look up a model by catalogue key, published name, or a usual spelling of either."""
    models = _read("models")
    for key, raw in models.items():
        if name.lower() in (key, raw["hugging_face"].lower()):
            return _model(key, raw)
    plain = _plain(name)
    for key, raw in models.items():
        if plain in (_plain(key), _plain(raw["hugging_face"])):
            return _model(key, raw)
    raise ValueError(f"model must be a name in the catalogue, got {name!r}")


@functools.cache
def _read(name: str) -> dict[str, Any]:
    text = resources.files("fleetline.catalog").joinpath(f"{name}.yaml").read_text("utf-8")
    return dict(yaml.load(text, Loader=yaml.CSafeLoader))


@functools.cache
def _plain(name: str) -> str:
    """Reduce `meta-llama/Meta-Llama-3.1-8B-Instruct` to `llama-3.1-8b`."""
    words = re.split(r"[-_ ]+", name.lower().rsplit("/", 1)[-1])
    return "-".join(word for word in words if word not in _NAME_NOISE)


def _entry(key: str, raw: Mapping[str, Any]) -> CatalogEntry:
    if "bf16_teraflop_per_s" not in raw:
        raise ValueError(f"accelerator must have known rates, got {key!r}")
    devices = raw.get("devices_per_card", 1)

    def rate(field: str, unit: float = TERA) -> float | None:
        return raw[field] * unit / devices if field in raw else None

    hardware = Accelerator(
        name=key,
        vendor=raw["vendor"],
        memory_bytes=raw["memory_gigabytes"] * GIGA / devices,
        bandwidth_bytes_per_s=raw["bandwidth_gigabytes_per_s"] * GIGA / devices,
        bf16_flop_per_s=raw["bf16_teraflop_per_s"] * TERA / devices,
        fp8_flop_per_s=rate("fp8_teraflop_per_s"),
        fp4_flop_per_s=rate("fp4_teraflop_per_s"),
        int8_flop_per_s=rate("int8_teraop_per_s"),
        interconnect_bytes_per_s=rate("interconnect_gigabytes_per_s", GIGA),
        efficiency=_efficiency(raw.get("measured_efficiency", {})),
    )
    labels = {source: tuple(map(str, names)) for source, names in raw.get("labels", {}).items()}
    memory_gigabytes = raw["memory_gigabytes"] / devices
    return CatalogEntry(
        accelerator=hardware,
        memory_gigabytes=memory_gigabytes,
        labels=labels,
        has_slices="mig_profiles" in raw,
    )


def _efficiency(raw: Mapping[str, float]) -> Efficiency:
    fields = {
        name.replace("_microseconds", "_s"): value * (MICRO if "_microseconds" in name else 1)
        for name, value in raw.items()
    }
    return Efficiency(**fields)


def _model(key: str, raw: Mapping[str, Any]) -> tuple[Architecture, Precision]:
    architecture = Architecture(
        name=key,
        layers=raw["layers"],
        hidden_size=raw["hidden_size"],
        parameters=raw["parameters_billions"] * GIGA,
        active_parameters=raw["active_parameters_billions"] * GIGA,
        attention_heads=raw["attention_heads"],
        head_size=raw["head_size"],
        vocabulary_size=raw["vocabulary_size"],
        kv_values_per_token=raw["kv_values_per_token"],
        window_kv_values_per_token=raw.get("window_kv_values_per_token", 0),
        window_tokens=raw.get("window_tokens", 0),
        latent_attention=raw["attention"] == "mla",
        kv_heads=raw["kv_heads"],
        experts=raw.get("experts", 0),
        experts_per_token=raw.get("experts_per_token", 0),
        expert_parameters=raw.get("expert_parameters_billions", 0.0) * GIGA,
        max_context_tokens=raw["max_context_tokens"],
    )
    return architecture, Precision(raw["weight_precision"])
