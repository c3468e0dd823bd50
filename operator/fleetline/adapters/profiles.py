"""AcceleratorProfile JSON to catalogue entries: an administrator's additions and corrections."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from fleetline.adapters.catalog import GIGA, MICRO, TERA, Catalog
from fleetline.adapters.fields import Json, integer, required, table, text
from fleetline.errors import ManifestError, ModelError
from fleetline.model.hardware import Accelerator, Efficiency

RATES: Final = {
    "memoryGigabytes": ("memory_bytes", GIGA),
    "bandwidthGigabytesPerSecond": ("bandwidth_bytes_per_s", GIGA),
    "bf16TeraflopPerSecond": ("bf16_flop_per_s", TERA),
    "fp8TeraflopPerSecond": ("fp8_flop_per_s", TERA),
    "fp4TeraflopPerSecond": ("fp4_flop_per_s", TERA),
    "int8TeraopPerSecond": ("int8_flop_per_s", TERA),
    "interconnectGigabytesPerSecond": ("interconnect_bytes_per_s", GIGA),
}
EFFICIENCIES: Final = {
    "bandwidthPercent": ("bandwidth", 0.01),
    "kvBandwidthPercent": ("kv_bandwidth", 0.01),
    "computePercent": ("compute", 0.01),
    "prefillPercent": ("prefill", 0.01),
    "fourBitComputePercent": ("four_bit_compute", 0.01),
    "expertComputePercent": ("expert_compute", 0.01),
    "expertPrefillPercent": ("expert_prefill", 0.01),
    "layerMicroseconds": ("layer_s", MICRO),
    "parallelLayerMicroseconds": ("parallel_layer_s", MICRO),
    "expertLayerMicroseconds": ("expert_layer_s", MICRO),
    "latentLayerMicroseconds": ("latent_layer_s", MICRO),
    "sequenceMicroseconds": ("sequence_s", MICRO),
}
MOST: Final = 10**9
PRICE: Final = r"[0-9]{1,9}(\.[0-9]{1,9})?"
NEEDED: Final = ("memoryGigabytes", "bandwidthGigabytesPerSecond", "bf16TeraflopPerSecond")


def with_profiles(catalog: Catalog, profiles: Iterable[Json]) -> tuple[Catalog, tuple[str, ...]]:
    """Return the catalogue with the profiles, and what is wrong with those not understood."""
    problems: list[str] = []
    for profile in profiles:
        try:
            catalog = _with(catalog, profile)
        except (ManifestError, ModelError) as error:
            name = str((profile.get("metadata") or {}).get("name", ""))
            problems.append(f"AcceleratorProfile {name}: {error}")
    return catalog, tuple(problems)


def _with(catalog: Catalog, profile: Json) -> Catalog:
    spec = table(profile, "", "spec")
    name = str((profile.get("metadata") or {}).get("name", ""))
    corrected = text(spec, "spec", "corrects", r"\S.*", 63)
    given: dict[str, Any] = {
        field: amount * unit
        for key, (field, unit) in RATES.items()
        if (amount := integer(spec, "spec", key, 1, MOST)) is not None
    }
    if corrected is not None:
        known = catalog.accelerator(corrected)
        base = replace(known, **given)
    else:
        for key in NEEDED:
            required(spec.get(key), f"spec.{key}")
        vendor = text(spec, "spec", "vendor", r".+", 63) or "unknown"
        base = Accelerator(name=name, vendor=vendor, **given)
    price = text(spec, "spec", "usdPerHour", PRICE, 32)
    products = spec.get("products") or ()
    return catalog.with_accelerator(
        replace(base, efficiency=_efficiency(base.efficiency, spec)),
        price_usd_per_hour=None if price is None else float(price),
        products=tuple(str(product) for product in products),
    )


def _efficiency(known: Efficiency, spec: Json) -> Efficiency:
    given = table(spec, "spec", "efficiency")
    where = "spec.efficiency"
    changes = {
        field: amount * unit
        for key, (field, unit) in EFFICIENCIES.items()
        if (amount := integer(given, where, key, 0, MOST)) is not None
    }
    return replace(known, **changes)
