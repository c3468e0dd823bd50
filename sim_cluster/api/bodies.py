"""Bodies of requests: JSON, YAML or protobuf -> objects."""

from typing import Any

import orjson
import yaml

from sim_cluster.api import protobuf
from sim_cluster.api.errors import ApiError, Json, bad_request, unsupported_media_type
from sim_cluster.api.schema.pruning import duplicate_fields

SUPPORTED = ("application/json", "application/yaml", protobuf.MEDIA_TYPE)
MOST_BYTES = 3 * 1024 * 1024
"""Largest body, as the real API server limits it."""


def media_type(header: str) -> str:
    """The media type of a header, without its parameters."""
    return header.partition(";")[0].strip().lower()


def decode(content_type: str, body: bytes) -> tuple[Json, list[str]]:
    """The object of a body, and the fields that it gives twice."""
    if len(body) > MOST_BYTES:
        message = f"Request entity too large: limit is {MOST_BYTES}"
        raise ApiError(413, "RequestEntityTooLarge", message)
    kind = media_type(content_type) or "application/json"
    if kind == protobuf.MEDIA_TYPE:
        return protobuf.decode(body), []
    parsed: Any
    if kind == "application/json":
        try:
            parsed = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error
        duplicates = duplicate_fields(body, parsed)
    elif kind == "application/yaml":
        try:
            parsed = yaml.safe_load(body)
        except yaml.YAMLError as error:
            raise bad_request(f"error parsing YAML: {error}") from error
        duplicates = []
    else:
        raise unsupported_media_type(kind, SUPPORTED)
    if not isinstance(parsed, dict):
        raise bad_request("couldn't get version/kind; json parse error: the body is not an object")
    return parsed, duplicates


def decode_options(content_type: str, body: bytes) -> Json:
    """DeleteOptions; empty without a body."""
    return decode(content_type, body)[0] if body else {}
