"""Reading one field of a manifest: its type, its range, and the message that names it."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from fleetline.errors import ManifestError

Json = Mapping[str, Any]
Choice = TypeVar("Choice", bound=StrEnum)


def table(parent: Json, where: str, name: str) -> Json:
    """Read an object; absent and null are an empty one."""
    value = parent.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ManifestError(f"{where}.{name} must be an object, got {shown(value)}")
    return value


def rows(parent: Json, where: str, name: str, most: int) -> list[Json] | None:
    """Read a list of 1 to `most` objects; None if absent."""
    value = parent.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise ManifestError(f"{where}.{name} must be a list of objects, got {shown(value)}")
    _check_size(f"{where}.{name}", len(value), most)
    return value


def texts(
    parent: Json, where: str, name: str, pattern: str, *, longest: int, most: int
) -> tuple[str, ...]:
    """Read a list of 1 to `most` different strings; none if absent."""
    value = parent.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ManifestError(f"{where}.{name} must be a list of strings, got {shown(value)}")
    _check_size(f"{where}.{name}", len(value), most)
    items = {f"{name}[{index}]": item for index, item in enumerate(value)}
    read = tuple(required(text(items, where, key, pattern, longest), key) for key in items)
    if len(set(read)) < len(read):
        raise ManifestError(f"{where}.{name} must be a set, got one value twice")
    return read


def _check_size(where: str, size: int, most: int) -> None:
    if size < 1:
        raise ManifestError(f"{where} must have at least 1 item, got {size}")
    if size > most:
        raise ManifestError(f"{where} must have at most {most} items, got {size}")


def integer(parent: Json, where: str, name: str, low: int, high: int) -> int | None:
    """Read a whole number within bounds; None if absent."""
    value = parent.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ManifestError(f"{where}.{name} must be an integer, got {shown(value)}")
    if value < low:
        raise ManifestError(f"{where}.{name} must be >= {low}, got {value}")
    if value > high:
        raise ManifestError(f"{where}.{name} must be <= {high}, got {value}")
    return value


def flag(parent: Json, where: str, name: str) -> bool | None:
    """Read a boolean; None if absent. The string "false" is none."""
    value = parent.get(name)
    if value is not None and not isinstance(value, bool):
        raise ManifestError(f"{where}.{name} must be true or false, got {shown(value)}")
    return value


def text(parent: Json, where: str, name: str, pattern: str, longest: int) -> str | None:
    """Read a string that matches a pattern as a whole; None if absent."""
    value = parent.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ManifestError(f"{where}.{name} must be a string, got {shown(value)}")
    if not 1 <= len(value) <= longest:
        raise ManifestError(f"{where}.{name} must have 1 to {longest} characters, got {len(value)}")
    if not re.fullmatch(pattern, value):
        raise ManifestError(f"{where}.{name} must match {pattern}, got {shown(value)}")
    return value


def choice(parent: Json, where: str, name: str, choices: type[Choice]) -> Choice | None:
    """Read one of a closed set of words; None if absent."""
    value = parent.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or value not in set(choices):
        allowed = ", ".join(choices)
        raise ManifestError(f"{where}.{name} must be one of {allowed}, got {shown(value)}")
    return choices(value)


def required(value: Any, where: str) -> Any:
    """Insist on a value."""
    if value is None:
        raise ManifestError(f"{where} must be given, got none")
    return value


def shown(value: Any) -> str:
    """Print a foreign value, shortened."""
    printed = repr(value)
    return printed if len(printed) <= 80 else f"{printed[:80]}..."
