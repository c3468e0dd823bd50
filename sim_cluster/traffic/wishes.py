"""
Traffic asked for in JSON, for those who drive a running cluster by hand.

    {"service": "chat", "shape": "constant", "level_per_s": 5}
    {"service": "chat", "shape": "day", "trough_per_s": 2, "peak_per_s": 30, "duration_s": 240}
    {"service": "chat", "trace": "azure2023_conv.csv.gz", "faster": 2}
    {"service": "chat", "shape": "none"}                                     stops it

With `namespace`, `prompt_tokens`, `output_tokens` (means), `dispersion` and `seed` as options.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sim_cluster.traffic.arrivals import Arrival, draw_arrivals, read_trace
from sim_cluster.traffic.lengths import LogNormalLengths
from sim_cluster.traffic.shapes import CompressedDay, Constant, Ramp, Spike, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sim_cluster.informer import Key
    from sim_cluster.traffic.shapes import Shape

SHAPES: Final[Mapping[str, type[Shape]]] = {
    "constant": Constant,
    "ramp": Ramp,
    "step": Step,
    "spike": Spike,
    "day": CompressedDay,
}
_OPTIONS: Final = frozenset(
    {"namespace", "service", "shape", "prompt_tokens", "output_tokens", "dispersion", "seed"}
)


def read_service(wish: Mapping[str, Any]) -> Key:
    """Read which Service the traffic is for."""
    if "service" not in wish:
        raise ValueError(f"service must be the name of a Service, got {dict(wish)}")
    return str(wish.get("namespace", "default")), str(wish["service"])


def read_arrivals(wish: Mapping[str, Any]) -> Iterable[Arrival]:
    """
    Read what is to arrive.

    Raises
    ------
    ValueError
        If the shape is not known, or its fields are not those it has.
    """
    if "trace" in wish:
        return read_trace(Path(wish["trace"]), faster=float(wish.get("faster", 1)))
    name = str(wish.get("shape"))
    if name == "none":
        return ()
    if name not in SHAPES:
        raise ValueError(f"shape must be one of {', '.join(SHAPES)} or none, got {name!r}")
    fields = {key: float(value) for key, value in wish.items() if key not in _OPTIONS}
    try:
        shape = SHAPES[name](**fields)
    except TypeError as error:
        raise ValueError(f"shape must have the fields of {name}: {error}") from error
    lengths = LogNormalLengths(
        mean_prompt_tokens=float(wish.get("prompt_tokens", 800)),
        mean_output_tokens=float(wish.get("output_tokens", 150)),
    )
    return draw_arrivals(
        shape,
        lengths,
        seed=int(wish.get("seed", 0)),
        dispersion=float(wish.get("dispersion", 1)),
    )
