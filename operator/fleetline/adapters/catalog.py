"""
The catalogue: accelerators, models and prices by name, read from `fleetline/catalog/*.yaml`.

All units of those files are converted here, and nowhere else, to SI base units.
"""

import difflib
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Final, Self

import yaml

from fleetline.errors import ManifestError
from fleetline.model.architecture import Architecture
from fleetline.model.hardware import Accelerator, Efficiency, Precision

GIGA: Final = 1e9
TERA: Final = 1e12
MICRO: Final = 1e-6

FORMAT_WORDS: Final = {
    "fp8": Precision.FP8,
    "w8a8": Precision.INT8,
    "int8": Precision.INT8,
    "nvfp4": Precision.FP4,
    "mxfp4": Precision.FP4,
    "fp4": Precision.FP4,
    "awq": Precision.INT4,
    "gptq": Precision.INT4,
    "int4": Precision.INT4,
    "w4a16": Precision.INT4,
}
"""Words in a model's name that tell the format of its weights."""

VARIANT_WORDS: Final = {
    *FORMAT_WORDS,
    *("instruct", "hf", "it", "chat", "base", "dynamic", "quantized", "preview", "bnb", "4bit"),
    *("meta", "dynamo", "turbo", "hq", "original", "2501", "2407", "2507", "0528", "thinking"),
}
"""Words in a model's name that do not change its shape."""

ALIASES: Final = {
    "llama-3-8b": "llama-3.1-8b",
    "llama-3-70b": "llama-3.1-70b",
    "llama-3.3-70b": "llama-3.1-70b",
    "llama-3-405b": "llama-3.1-405b",
    "llama-7b": "llama-2-7b",
    "llama-13b": "llama-2-13b",
    "llama-70b": "llama-2-70b",
    "llama2-7b": "llama-2-7b",
    "llama2-13b": "llama-2-13b",
    "llama2-70b": "llama-2-70b",
    "llama3-8b": "llama-3.1-8b",
    "llama3-70b": "llama-3.1-70b",
    "codellama-7b": "llama-2-7b",
    "codellama-13b": "llama-2-13b",
    "qwen2-0.5b": "qwen2.5-0.5b",
    "qwen2-7b": "qwen2.5-7b",
    "qwen2-72b": "qwen2.5-72b",
    "deepseek-v3": "deepseek-r1",
    "deepseek-v3.1": "deepseek-r1",
    "llama-4-scout-17b-16e": "llama-4-scout",
    "llama-4-maverick-17b-128e": "llama-4-maverick",
    "mistral-small": "mistral-small-24b",
    "kimi-k2": "kimi-k2.5",
    "minimax-m2": "minimax-m2.5",
}
"""Other names of the same shape: later releases of one architecture, and old spellings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogAccelerator:
    """One entry of accelerators.yaml: the hardware and how nodes announce it."""

    accelerator: Accelerator | None
    """None if the data sheet's rates are not known."""
    labels: Mapping[str, tuple[str, ...]]
    devices_per_card: int = 1
    """Devices that Kubernetes counts per card; the figures are for the card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogModel:
    """One entry of models.yaml: the shape, and the format its weights are published in."""

    architecture: Architecture
    weight_precision: Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Everything known by name; immutable."""

    accelerators: Mapping[str, CatalogAccelerator]
    models: Mapping[str, CatalogModel]
    hugging_face_names: Mapping[str, str]
    prices_usd_per_hour: Mapping[str, float]

    def accelerator(self, name: str) -> Accelerator:
        """
        Look up an accelerator, ignoring case, spaces and a remark in parentheses.

        Raises
        ------
        ManifestError
            If the name is not in the catalogue, or its rates are not known.
        """
        entry = self.accelerators[self.accelerator_key(name)]
        if entry.accelerator is None:
            raise ManifestError(
                f"accelerator must have known rates (an AcceleratorProfile adds them), got {name!r}"
            )
        return entry.accelerator

    def accelerator_key(self, name: str) -> str:
        """Catalogue key of an accelerator's name; ManifestError if there is none."""
        wanted = _plain(name)
        for key in self.accelerators:
            if _plain(key) == wanted:
                return key
        raise ManifestError(_unknown("accelerator", name, self.accelerators))

    def model_key(self, name: str) -> str:
        """Catalogue key of a model's name; ManifestError if there is none."""
        if name in self.models:
            return name
        published = name.lower()
        if published in self.hugging_face_names:
            return self.hugging_face_names[published]
        shape = _shape_of(name)
        for key in (shape, ALIASES.get(shape, "")):
            if key in self.models:
                return key
        raise ManifestError(_unknown("model", name, self.models))

    def architecture(self, name: str) -> Architecture:
        """
        Look up a model by catalogue key, published name or a usual spelling of it.

        Raises
        ------
        ManifestError
            If the name is not in the catalogue.
        """
        return self.models[self.model_key(name)].architecture

    def weight_precision(self, name: str) -> Precision:
        """Format of the weights: as the name says (`...-FP8`), else as the model is published."""
        words = re.split(r"[-_ /]", name.lower())
        named = next((FORMAT_WORDS[word] for word in words if word in FORMAT_WORDS), None)
        return named or self.models[self.model_key(name)].weight_precision

    def price_usd_per_hour(self, accelerator_name: str) -> float | None:
        """Price of one accelerator for an hour; None if no price is known. [USD/h]"""
        return self.prices_usd_per_hour.get(self.accelerator_key(accelerator_name))

    def with_accelerator(
        self,
        accelerator: Accelerator,
        *,
        price_usd_per_hour: float | None,
        products: tuple[str, ...],
    ) -> Self:
        """
        Return a catalogue in which an administrator's entry adds to or replaces ours.

        Nodes that announce an accelerator of ours keep doing so when its figures are corrected.
        """
        known = self.accelerators.get(
            accelerator.name, CatalogAccelerator(accelerator=accelerator, labels={})
        )
        added = {
            source: (*known.labels.get(source, ()), *products)
            for source in ("nvidia_product", "amd_product")
        }
        entry = replace(known, accelerator=accelerator, labels={**known.labels, **added})
        prices = dict(self.prices_usd_per_hour)
        if price_usd_per_hour is not None:
            prices[accelerator.name] = price_usd_per_hour
        return replace(
            self,
            accelerators={**self.accelerators, accelerator.name: entry},
            prices_usd_per_hour=prices,
        )


@functools.cache
def load_catalog() -> Catalog:
    """Read the packaged files once."""
    models = {key: _model(key, raw) for key, raw in _read("models").items()}
    return Catalog(
        accelerators={key: _accelerator(key, raw) for key, raw in _read("accelerators").items()},
        models=models,
        hugging_face_names={
            raw["hugging_face"].lower(): key for key, raw in _read("models").items()
        },
        prices_usd_per_hour={
            key: float(offers[0]["usd_per_accelerator_hour"])
            for key, offers in _read("prices").items()
        },
    )


def _read(name: str) -> dict[str, Any]:
    text = resources.files("fleetline.catalog").joinpath(f"{name}.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return loaded


def _accelerator(key: str, raw: Mapping[str, Any]) -> CatalogAccelerator:
    labels = {source: tuple(map(str, names)) for source, names in raw.get("labels", {}).items()}
    devices = raw.get("devices_per_card", 1)
    bf16 = raw.get("bf16_teraflop_per_s")
    if bf16 is None:
        return CatalogAccelerator(accelerator=None, labels=labels, devices_per_card=devices)

    def rate(field: str, unit: float) -> float | None:
        return raw[field] * unit if field in raw else None

    return CatalogAccelerator(
        accelerator=Accelerator(
            name=key,
            vendor=raw["vendor"],
            memory_bytes=raw["memory_gigabytes"] * GIGA,
            bandwidth_bytes_per_s=raw["bandwidth_gigabytes_per_s"] * GIGA,
            bf16_flop_per_s=bf16 * TERA,
            fp8_flop_per_s=rate("fp8_teraflop_per_s", TERA),
            fp4_flop_per_s=rate("fp4_teraflop_per_s", TERA),
            int8_flop_per_s=rate("int8_teraop_per_s", TERA),
            interconnect_bytes_per_s=rate("interconnect_gigabytes_per_s", GIGA),
            efficiency=_efficiency(raw.get("measured_efficiency", {})),
        ),
        labels=labels,
        devices_per_card=devices,
    )


def _efficiency(raw: Mapping[str, float]) -> Efficiency:
    fields = {
        name.replace("_microseconds", "_s"): value * MICRO
        if name.endswith("_microseconds")
        else value
        for name, value in raw.items()
    }
    return Efficiency(**fields)


def _model(key: str, raw: Mapping[str, Any]) -> CatalogModel:
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
        tied_embeddings=raw.get("tied_embeddings", False),
        max_context_tokens=raw["max_context_tokens"],
    )
    return CatalogModel(
        architecture=architecture, weight_precision=Precision(raw["weight_precision"])
    )


@functools.lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    """Letters and digits only, lower case, without a remark in parentheses."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\(.*?\)", "", name).lower())


def _shape_of(name: str) -> str:
    """Reduce `meta-llama/Meta-Llama-3.1-8B-Instruct-FP8` to `llama-3.1-8b`."""
    last = re.sub(r"\(.*?\)", "", name).strip().lower().rsplit("/", 1)[-1]
    words = [word for word in re.split(r"[-_ :]+", last) if word]
    kept = [
        word for word in words if word not in VARIANT_WORDS and not re.fullmatch(r"v0\.\d+", word)
    ]
    return "-".join(kept)


def _unknown(what: str, name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name.lower(), [key.lower() for key in known], n=3, cutoff=0.5)
    keys = {key.lower(): key for key in known}
    hint = (
        f"the closest are {', '.join(keys[key] for key in near)}" if near else "see the catalogue"
    )
    return f"{what} must be a name in the catalogue ({hint}), got {name!r}"
