"""Durations as people write them in manifests and options: `500ms`, `1m30s` (GEP-2257)."""

import re
from typing import Final

from fleetline.errors import ManifestError

PATTERN: Final = re.compile(r"(?:[0-9]{1,5}(?:h|ms|m|s)){1,4}")
UNIT_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3}


def parse_duration_s(where: str, text: str) -> float:
    """
    Read a duration above zero. [s]

    Raises
    ------
    ManifestError
        If the text is not up to four whole numbers with a unit h, m, s or ms, or is zero.
    """
    if not isinstance(text, str) or not PATTERN.fullmatch(text):
        raise ManifestError(
            f"{where} must be a duration such as 500ms, 2s or 1m30s, got {str(text)[:80]!r}"
        )
    parts = re.findall(r"([0-9]+)(h|ms|m|s)", text)
    total_s = sum(int(amount) * UNIT_S[unit] for amount, unit in parts)
    if total_s <= 0:
        raise ManifestError(f"{where} must be > 0, got {text!r}")
    return total_s
