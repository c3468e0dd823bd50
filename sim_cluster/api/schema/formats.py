"""String formats that structural schemas enforce."""

import ipaddress
import re
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

_DATE_TIME = re.compile(r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$")
_DURATION = re.compile(r"^([+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w))+$|^0$")
_DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")


def _date_time(value: str) -> None:
    if not _DATE_TIME.match(value):
        raise ValueError(value)
    datetime.fromisoformat(value.upper())


def _duration(value: str) -> None:
    if not _DURATION.match(value):
        raise ValueError(value)


def _ipv4(value: str) -> None:
    ipaddress.IPv4Address(value)


def _ipv6(value: str) -> None:
    ipaddress.IPv6Address(value)


def _cidr(value: str) -> None:
    ipaddress.ip_network(value, strict=False)


def _label(value: str) -> None:
    if not _DNS_LABEL.match(value) or len(value) > 63:
        raise ValueError(value)


def _date(value: str) -> None:
    datetime.strptime(value, "%Y-%m-%d")  # noqa: DTZ007 - a date has no zone


def _uri(value: str) -> None:
    if not re.match(r"^[A-Za-z][A-Za-z0-9+.-]*:|^/", value):
        raise ValueError(value)


def _uuid(value: str) -> None:
    UUID(value)


_CHECKS: dict[str, Callable[[str], None]] = {
    "date-time": _date_time,
    "datetime": _date_time,
    "duration": _duration,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "cidr": _cidr,
    "date": _date,
    "uri": _uri,
    "uuid": _uuid,
    "k8s-short-name": _label,
}


def format_error(value: str, name: str) -> bool:
    """Whether a string breaks its format; formats that are not known are not enforced."""
    check = _CHECKS.get(name)
    if check is None:
        return False
    try:
        check(value)
    except ValueError:
        return True
    return False
