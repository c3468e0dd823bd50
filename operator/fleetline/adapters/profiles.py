"""AcceleratorProfile JSON to catalogue entries: an administrator's additions and corrections."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from fleetline.adapters.catalog import GIGA, MICRO, TERA, Catalog
from fleetline.adapters.fields import Json, integer, table, text, texts
from fleetline.errors import ManifestError, ModelError
from fleetline.model.hardware import Accelerator, Efficiency

MOST: Final = 1_000_000
RATES: Final = {
    "memoryGigabytes": ("memory_bytes", GIGA, 100_000),
    "bandwidthGigabytesPerSecond": ("bandwidth_bytes_per_s", GIGA, MOST),
    "bf16TeraflopPerSecond": ("bf16_flop_per_s", TERA, MOST),
    "fp8TeraflopPerSecond": ("fp8_flop_per_s", TERA, MOST),
    "fp4TeraflopPerSecond": ("fp4_flop_per_s", TERA, MOST),
    "int8TeraopPerSecond": ("int8_flop_per_s", TERA, MOST),
    "interconnectGigabytesPerSecond": ("interconnect_bytes_per_s", GIGA, MOST),
}
"""Field of an accelerator, its unit, and the most that the definition allows; the least is 1."""

SHARES: Final = {
    "bandwidthPercent": "bandwidth",
    "kvBandwidthPercent": "kv_bandwidth",
    "computePercent": "compute",
    "prefillPercent": "prefill",
    "fourBitComputePercent": "four_bit_compute",
    "expertComputePercent": "expert_compute",
    "expertPrefillPercent": "expert_prefill",
}
"""Efficiencies from 1 to 100 percent."""

TIMES: Final = {
    "layerMicroseconds": "layer_s",
    "parallelLayerMicroseconds": "parallel_layer_s",
    "expertLayerMicroseconds": "expert_layer_s",
    "latentLayerMicroseconds": "latent_layer_s",
    "sequenceMicroseconds": "sequence_s",
}
WORD: Final = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
VENDOR: Final = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
PRICE: Final = r"[0-9]{1,6}(\.[0-9]{1,6})?"
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
    corrected = text(spec, "spec", "corrects", WORD, 63)
    vendor = text(spec, "spec", "vendor", VENDOR, 63) or "unknown"
    given: dict[str, Any] = {
        field: amount * unit
        for key, (field, unit, most) in RATES.items()
        if (amount := integer(spec, "spec", key, 1, most)) is not None
    }
    price = text(spec, "spec", "usdPerHour", PRICE, 16)
    products = texts(spec, "spec", "products", WORD, longest=63, most=64)
    _check_whole(spec)
    if corrected is None:
        base = Accelerator(name=name, vendor=vendor, **given)
    else:
        base = replace(catalog.accelerator(corrected), **given)
    return catalog.with_accelerator(
        replace(base, efficiency=_efficiency(base.efficiency, spec)),
        price_usd_per_hour=None if price is None else float(price),
        products=products,
    )


def _check_whole(spec: Json) -> None:
    """Refuse an accelerator without its figures, and a correction of nothing."""
    if spec.get("corrects") is None:
        if any(spec.get(key) is None for key in NEEDED):
            raise ManifestError(
                f"spec must be complete ({', '.join(NEEDED)}) unless spec.corrects names a "
                "catalogue entry"
            )
    elif all(spec.get(key) is None for key in (*RATES, "efficiency", "usdPerHour", "products")):
        raise ManifestError(
            "spec must be more than corrects, at least one figure, product or price"
        )


def _efficiency(known: Efficiency, spec: Json) -> Efficiency:
    given = table(spec, "spec", "efficiency")
    where = "spec.efficiency"
    if not given and spec.get("efficiency") is not None:
        raise ManifestError(f"{where} must have at least 1 field, got none")
    shares = {
        field: percent / 100
        for key, field in SHARES.items()
        if (percent := integer(given, where, key, 1, 100)) is not None
    }
    times_s = {
        field: amount * MICRO
        for key, field in TIMES.items()
        if (amount := integer(given, where, key, 0, MOST)) is not None
    }
    return replace(known, **shares, **times_s)
