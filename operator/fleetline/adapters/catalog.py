"""
The catalogue: accelerators, models and prices by name, read from `fleetline/catalog/*.yaml`.

All units of those files are converted here, and nowhere else, to SI base units.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Final, Self

import yaml

from fleetline.adapters.spelling import format_of, plain, shapes_of, unknown
from fleetline.errors import ManifestError
from fleetline.model.architecture import Architecture
from fleetline.model.hardware import Accelerator, Efficiency, Precision

GIGA: Final = 1e9
TERA: Final = 1e12
MICRO: Final = 1e-6


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
        wanted = plain(name)
        for key in self.accelerators:
            if plain(key) == wanted:
                return key
        raise ManifestError(unknown("accelerator", name, self.accelerators))

    def model_key(self, name: str) -> str:
        """Catalogue key of a model's name; ManifestError if there is none."""
        if name in self.models:
            return name
        published = name.lower()
        if published in self.hugging_face_names:
            return self.hugging_face_names[published]
        for key in shapes_of(name):
            if key in self.models:
                return key
        raise ManifestError(unknown("model", name, self.models))

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
        return format_of(name) or self.models[self.model_key(name)].weight_precision

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
