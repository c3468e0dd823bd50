"""What users ask for: a percentile of a latency below a target."""

from dataclasses import dataclass
from enum import StrEnum

from fleetline.errors import ModelError


class Metric(StrEnum):
    """The latencies that an objective may bound; names as in the API."""

    TIME_TO_FIRST_TOKEN = "TimeToFirstToken"  # noqa: S105 - a name, not a secret
    TIME_PER_OUTPUT_TOKEN = "TimePerOutputToken"  # noqa: S105
    INTER_TOKEN_LATENCY = "InterTokenLatency"  # noqa: S105
    END_TO_END = "EndToEnd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """`percentile` of the requests see `metric` at or below `target_s`."""

    metric: Metric
    percentile: int = 95
    target_s: float

    def __post_init__(self) -> None:
        """Refuse targets that nothing can meet."""
        if not 50 <= self.percentile <= 99:
            raise ModelError(f"percentile must be an integer from 50 to 99, got {self.percentile}")
        if not self.target_s > 0:
            raise ModelError(f"target must be > 0 s, got {self.target_s:g}")

    def __str__(self) -> str:
        """Print as people write it: `TimeToFirstToken p95 <= 0.5 s`."""
        return f"{self.metric} p{self.percentile} <= {self.target_s:g} s"
