"""Counts of requests, so that tests can say "nothing was written"."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

WRITES = ("create", "update", "patch", "delete", "deletecollection")


class Kind(NamedTuple):
    """What is counted apart."""

    verb: str
    resource: str
    user: str
    user_agent: str


@dataclass(slots=True)
class RequestCounts:
    """Requests answered so far, by verb, resource, user and user agent."""

    by_kind: Counter[Kind] = field(default_factory=Counter)

    def add(self, verb: str, resource: str, user: str, user_agent: str) -> None:
        """Count one request."""
        self.by_kind[Kind(verb, resource, user, user_agent)] += 1

    def count(
        self, *, verb: str = "*", resource: str = "*", user: str = "*", user_agent: str = ""
    ) -> int:
        """Requests that fit; `user_agent` is a prefix, `resource` is `plural[/subresource]`."""
        return sum(
            number
            for kind, number in self.by_kind.items()
            if verb in ("*", kind.verb)
            and resource in ("*", kind.resource)
            and user in ("*", kind.user)
            and kind.user_agent.startswith(user_agent)
        )

    def writes(self, *, resource: str = "*", user: str = "*", user_agent: str = "") -> int:
        """Requests that change something."""
        return sum(
            self.count(verb=verb, resource=resource, user=user, user_agent=user_agent)
            for verb in WRITES
        )

    def clear(self) -> None:
        """Start from nothing."""
        self.by_kind.clear()
