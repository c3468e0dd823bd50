"""Whether the objectives held in a window of the demo, for the requests that arrived in it."""

from collections.abc import Sequence

from sim_cluster.traffic.truth import RequestRecord, percentile_of


def in_window(
    records: Sequence[RequestRecord], origin_s: float, index: int, width_s: float
) -> list[RequestRecord]:
    """Requests that arrived in one window of the day."""
    begin_s = origin_s + index * width_s
    return [record for record in records if begin_s <= record.arrival_s < begin_s + width_s]


def latency_s(record: RequestRecord, metric: str) -> float | None:
    """One latency of one request; None if it has no such latency. [s]"""
    match metric:
        case "TimeToFirstToken":
            return record.time_to_first_token_s
        case "EndToEnd":
            return record.residence_time_s
        case _:
            return record.time_per_output_token_s


def holds(records: Sequence[RequestRecord], metric: str, percentile: int, target_s: float) -> bool:
    """Whether a percentile of the requests is inside its target; unfinished ones are not."""
    values = [value for record in records if (value := latency_s(record, metric)) is not None]
    found = percentile_of(values, percentile)
    return found is None or found <= target_s
