"""The JSON paths of printer columns: fields, indices, `[*]` and filters on equality."""

import re
from functools import lru_cache
from typing import Any

_PART = re.compile(
    r"\.(?P<field>(?:\\.|[^.\[\]])+)"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[(?P<all>\*)\]"
    r"|\['(?P<quoted>[^']+)'\]"
    r"|\[\?\(@\.(?P<key>[\w./-]+)\s*==\s*[\"'](?P<value>[^\"']*)[\"']\)\]"
)


@lru_cache(maxsize=512)
def _parts(path: str) -> tuple[re.Match[str], ...]:
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if not text.startswith((".", "[")):
        text = "." + text
    return tuple(_PART.finditer(text))


def values_at(obj: Any, path: str) -> list[Any]:
    """All values that a path leads to; empty when there are none."""
    found = [obj]
    for part in _parts(path):
        found = [value for node in found for value in _step(node, part)]
    return found


def _step(node: Any, part: re.Match[str]) -> list[Any]:
    field = part["field"] or part["quoted"]
    if field is not None:
        name = field.replace("\\.", ".")
        return [node[name]] if isinstance(node, dict) and name in node else []
    if part["all"] is not None:
        values = node.values() if isinstance(node, dict) else node
        return list(values) if isinstance(node, (dict, list)) else []
    if not isinstance(node, list):
        return []
    if part["index"] is not None:
        index = int(part["index"])
        return [node[index]] if -len(node) <= index < len(node) else []
    key, wanted = part["key"], part["value"]
    return [item for item in node if isinstance(item, dict) and str(item.get(key)) == wanted]
