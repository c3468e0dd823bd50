"""Find objects of an informer's copy by something other than their name, without a search."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from sim_cluster.informer import Informer, key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim_cluster.api_client import Object
    from sim_cluster.informer import Key

Term = TypeVar("Term", bound=Hashable)


class Index(Generic[Term]):
    """All objects under each of the terms that a function reads from them."""

    def __init__(self, informer: Informer, terms: Callable[[Object], Iterable[Term]]) -> None:
        self._terms = terms
        self._found: dict[Term, dict[Key, Object]] = {}
        informer.on_change(self._update)

    def __getitem__(self, term: Term) -> Mapping[Key, Object]:
        return self._found.get(term, {})

    def _update(self, before: Object | None, after: Object | None) -> None:
        old = set(self._terms(before)) if before is not None else set()
        new = set(self._terms(after)) if after is not None else set()
        if before is not None:
            key = key_of(before)
            for term in old - new:
                remaining = self._found[term]
                del remaining[key]
                if not remaining:
                    del self._found[term]
        if after is not None:
            key = key_of(after)
            for term in new:
                self._found.setdefault(term, {})[key] = after
