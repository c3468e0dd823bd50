"""Numbers and times as a status writes them: decimal strings, RFC 3339, nothing that is unknown."""

import math
import time
from typing import Any, Final

Json = dict[str, Any]
DIGITS: Final = 3
MOST_PLACES: Final = 12


def timestamp(at_s: float | None) -> str | None:
    """RFC 3339, as Kubernetes writes it."""
    return None if at_s is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def decimal(value: float | None) -> str | None:
    """Write a number with three digits, without an exponent; None if it is not finite."""
    if value is None or not math.isfinite(value):
        return None
    if value == 0:
        return "0"
    places = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{round(value, places):.{min(places, MOST_PLACES)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def known(table: Json) -> Json:
    """Leave out what is None."""
    return {name: value for name, value in table.items() if value is not None}
