"""Events exist in two groups with other field names; they are stored as the older kind."""

from sim_cluster.api.errors import Json

_NAMES = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)
"""Field of `events.k8s.io/v1`, and the same field of `v1`."""


def as_stored(obj: Json) -> Json:
    """An event of the newer kind as one of the older."""
    names = dict(_NAMES)
    renamed = {names.get(key, key): value for key, value in obj.items()}
    return {**renamed, "apiVersion": "v1"}


def as_served(obj: Json) -> Json:
    """An event of the older kind as one of the newer."""
    names = {old: new for new, old in _NAMES}
    renamed = {names.get(key, key): value for key, value in obj.items()}
    return {**renamed, "apiVersion": "events.k8s.io/v1"}
