"""The protobuf decoder: what it reads, and that it refuses the rest."""

import pytest

from sim_cluster.api import protobuf
from sim_cluster.api.errors import ApiError


def varint(value: int) -> bytes:
    text = b""
    while value > 0x7F:
        text += bytes([value & 0x7F | 0x80])
        value >>= 7
    return text + bytes([value])


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(version: str, kind: str, raw: bytes) -> bytes:
    meta = field(1, version) + field(2, kind)
    return protobuf.MAGIC + field(1, meta) + field(2, raw)


def test_names_and_maps_are_read() -> None:
    metadata = field(1, "c") + field(3, "ns") + field(2, "")
    raw = field(1, metadata) + field(2, field(1, "key") + field(2, "value"))

    obj = protobuf.decode(envelope("v1", "ConfigMap", raw))

    assert obj == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "ns"},
        "data": {"key": "value"},
    }


def test_bytes_become_base64() -> None:
    raw = field(2, field(1, "k") + field(2, b"v"))

    assert protobuf.decode(envelope("v1", "Secret", raw))["data"] == {"k": "dg=="}


def test_a_pointer_to_zero_is_zero_and_a_plain_zero_is_absent() -> None:
    spec = field(1, 0) + field(5, 0)

    obj = protobuf.decode(envelope("apps/v1", "Deployment", field(2, spec)))

    assert obj["spec"] == {"replicas": 0}


def test_an_inlined_message_becomes_fields_of_its_parent() -> None:
    reference = field(1, field(1, "secret-name")) + field(2, "key")
    source = field(4, reference)
    variable = field(1, "V") + field(3, source)
    container = field(1, "c") + field(7, variable)
    obj = protobuf.decode(envelope("v1", "Pod", field(2, field(2, container))))

    value = obj["spec"]["containers"][0]["env"][0]["valueFrom"]
    assert value == {"secretKeyRef": {"name": "secret-name", "key": "key"}}


def test_numbers_and_names_of_ports_are_told_apart() -> None:
    by_number = field(1, "a") + field(3, 80) + field(4, field(1, 0) + field(2, 8080))
    by_name = field(1, "b") + field(3, 81) + field(4, field(1, 1) + field(3, "http"))

    raw = field(2, field(1, by_number) + field(1, by_name))
    ports = protobuf.decode(envelope("v1", "Service", raw))["spec"]["ports"]

    assert [port["targetPort"] for port in ports] == [8080, "http"]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        protobuf.decode(envelope("nothing.example/v1", "Thing", b""))

    assert caught.value.code == 415


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        protobuf.decode(envelope("v1", "ConfigMap", field(99, "x")))

    assert caught.value.code == 400


def test_a_body_without_the_mark_is_refused() -> None:
    with pytest.raises(ApiError):
        protobuf.decode(b"{}")
