"""
Bodies in Kubernetes' protobuf encoding, which kubectl and helm send for built-in kinds.

The wire is read by the field numbers in `facts.json`. A message that is not in that table is
refused, so is a field that the table does not have.
"""

import base64
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from sim_cluster.api.errors import Json, bad_request, unsupported_media_type
from sim_cluster.api.resources import facts, schema_name

MAGIC = b"k8s\x00"
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_META = "k8s.io.apimachinery.pkg.apis.meta.v1."
_META_KINDS = frozenset(
    {"DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "Status", "ListOptions"}
)
_VARINTS = frozenset({"int32", "int64", "uint32", "uint64", "bool"})


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def wire_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and raw value of each field of a message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire_type == 2:
            length, at = _varint(data, at)
            yield number, data[at : at + length]
            at += length
        elif wire_type == 1:
            yield number, data[at : at + 8]
            at += 8
        elif wire_type == 5:
            yield number, data[at : at + 4]
            at += 4
        else:
            raise bad_request(f"protobuf wire type must be 0, 1, 2 or 5, got {wire_type}")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _time_text(data: bytes, *, has_fraction: bool) -> str | None:
    seconds = nanos = 0
    for number, value in wire_fields(data):
        if number == 1:
            seconds = _signed(int(value))
        elif number == 2:
            nanos = int(value)
    if not data or seconds <= -62135596800:  # no time, or the zero time of Go
        return None
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{text}.{nanos // 1000:06d}Z" if has_fraction else f"{text}Z"


def _raw_json(data: bytes) -> Any:
    for _, value in wire_fields(data):
        if isinstance(value, bytes):
            return orjson.loads(value)
    return None


def _int_or_string(data: bytes) -> int | str:
    found: dict[int, Any] = dict(wire_fields(data))
    if found.get(1, 0) == 0:
        return _signed(found.get(2, 0))
    return bytes(found.get(3, b"")).decode()


def _first_text(data: bytes) -> str:
    return next((v.decode() for _, v in wire_fields(data) if isinstance(v, bytes)), "")


def _texts(data: bytes) -> list[str]:
    return [value.decode() for _, value in wire_fields(data) if isinstance(value, bytes)]


_SPECIAL: dict[str, Callable[[bytes], Any]] = {
    _META + "Time": lambda data: _time_text(data, has_fraction=False),
    _META + "MicroTime": lambda data: _time_text(data, has_fraction=True),
    _META + "Duration": _first_text,
    _META + "FieldsV1": _raw_json,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw_json,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _first_text,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.api.authentication.v1.ExtraValue": _texts,
    "k8s.io.api.authorization.v1.ExtraValue": _texts,
}
"""Messages that JSON writes in a form of their own."""


def _scalar(kind: str, value: int | bytes) -> Any:
    if kind == "string":
        return bytes(value).decode()
    if kind == "bytes":
        return base64.b64encode(bytes(value)).decode()
    if kind == "bool":
        return bool(value)
    if kind in _VARINTS and isinstance(value, int):
        return _signed(value)
    if kind == "double" and isinstance(value, bytes):
        return struct.unpack("<d", value)[0]
    raise bad_request(f"protobuf type {kind} is not read")


def _value(kind: str, value: int | bytes) -> Any:
    if "." not in kind:
        return _scalar(kind, value)
    special = _SPECIAL.get(kind)
    data = _message(value)
    return special(data) if special is not None else decode_message(kind, data)


def _message(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise bad_request("protobuf field must be a message, got a number")
    return value


def _map_entry(kind: str, data: bytes) -> tuple[str, Any]:
    found = dict(wire_fields(data))
    key = bytes(found.get(1, b"")).decode()
    if 2 in found:
        return key, _value(kind, found[2])
    return key, "" if kind in ("string", "bytes") else _value(kind, b"")


def _is_inline(message: str, name: str, kind: str) -> bool:
    if "." not in kind:
        return False
    schema = facts()["schemas"].get("io.k8s." + message.removeprefix("k8s.io."))
    return schema is not None and name not in (schema.get("properties") or {})


def decode_message(message: str, data: bytes) -> Json:
    """A message as the JSON object that the same client would send as JSON."""
    table = facts()["messages"].get(message)
    if table is None:
        raise unsupported_media_type(f"{MEDIA_TYPE} of {message}", ["application/json"])
    result: Json = {}
    for number, raw in wire_fields(data):
        entry = table.get(str(number))
        if entry is None:
            raise bad_request(f"protobuf field {number} of {message} is not known")
        name, repetition, kind, held = entry
        if repetition == "map":
            key, value = _map_entry(kind, _message(raw))
            result.setdefault(name, {})[key] = value
        elif repetition == "repeated":
            result.setdefault(name, []).append(_value(kind, raw))
        elif _is_inline(message, name, kind):
            result.update(decode_message(kind, _message(raw)))
        else:
            value = _value(kind, raw)
            if value is not None and (held in ("pointer", "always") or _says_something(value)):
                result[name] = value
    return result


def _says_something(value: Any) -> bool:
    return value not in ("", 0, False, [], {})


def decode(body: bytes) -> Json:
    """The object of an enveloped body, with its `kind` and `apiVersion`."""
    if not body.startswith(MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix")
    envelope = dict(wire_fields(body[len(MAGIC) :]))
    type_meta = dict(wire_fields(bytes(envelope.get(1, b""))))
    api_version = bytes(type_meta.get(1, b"")).decode()
    kind = bytes(type_meta.get(2, b"")).decode()
    group, _, version = api_version.rpartition("/")
    message = _message_name(group, version, kind)
    obj = decode_message(message, bytes(envelope.get(2, b"")))
    return {"apiVersion": api_version, "kind": kind, **obj}


def _message_name(group: str, version: str, kind: str) -> str:
    if kind in _META_KINDS:
        return _META + kind
    name = schema_name(group, version, kind)
    if not name:
        raise unsupported_media_type(
            f"{MEDIA_TYPE} of {group}/{version} {kind}", ["application/json"]
        )
    return "k8s.io." + name.removeprefix("io.k8s.")
