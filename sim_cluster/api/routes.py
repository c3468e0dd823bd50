"""URLs, taken apart."""

from dataclasses import dataclass
from functools import lru_cache

_WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The resource part of a URL, and the verb that RBAC checks."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    verb: str = ""


@lru_cache(maxsize=1024)
def parse(method: str, path: str, *, is_watch: bool) -> Route | None:
    """The route of a resource URL; None when it is not one."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if rest[0] == "watch" and len(rest) > 1:
        rest, is_watch = rest[1:], True
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "")[:3]
    if plural == "namespaces" and not namespace:
        namespace = name or ""
    verb = _verb(method, name, is_watch=is_watch)
    return Route(
        group=group,
        version=version,
        plural=plural,
        namespace=namespace,
        name=name,
        subresource="/".join(rest[2:]) or subresource,
        verb=verb,
    )


def _verb(method: str, name: str, *, is_watch: bool) -> str:
    if method in {"GET", "HEAD"}:
        if is_watch:
            return "watch"
        return "get" if name else "list"
    verb = _WRITES.get(method, method.lower())
    return "deletecollection" if verb == "delete" and not name else verb
