"""
Fault knobs: make the server misbehave the way real ones do, for tests.

    api.faults.fail(code=429, retry_after_s=1, times=2, verb="patch", resource="deployments")
    api.faults.delay(seconds=5, resource="leases")
    api.faults.hang(verb="watch")
    api.faults.drop_watches()
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from sim_cluster.api.errors import ApiError

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(slots=True, kw_only=True)
class Fault:
    """One misbehaviour, for the requests that fit all of its filters."""

    code: int = 0
    message: str = ""
    retry_after_s: int | None = None
    delay_s: float = 0.0
    is_hang: bool = False
    is_silent: bool = False
    times: int | None = None
    """Requests that it still strikes; None for all."""
    probability: float = 1.0
    verb: str = "*"
    resource: str = "*"
    """Plural, with `/subresource` for one; a plural alone strikes its subresources too."""
    user: str = "*"
    namespace: str = "*"
    struck: int = 0
    """Requests that it has struck."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the fault is removed; what hangs then goes on."""

    def fits(self, verb: str, resource: str, user: str, namespace: str) -> bool:
        """Whether it concerns a request."""
        if self.times == 0:
            return False
        return (
            self.verb in ("*", verb)
            and self.resource in ("*", resource, resource.partition("/")[0])
            and self.user in ("*", user)
            and self.namespace in ("*", namespace)
        )

    def error(self) -> ApiError:
        """The failure that the client gets."""
        reason = _REASONS.get(self.code, "Unknown")
        message = self.message or f"injected fault: {self.code} {reason}"
        return ApiError(self.code, reason, message, retry_after_s=self.retry_after_s)


@dataclass(slots=True)
class Faults:
    """All faults that are in force."""

    seed: int = 0
    active: list[Fault] = field(default_factory=list)
    _random: random.Random = field(default_factory=random.Random, repr=False)
    _drop: Callable[[str], int] = field(default=lambda _resource: 0, repr=False)

    def __post_init__(self) -> None:
        self._random.seed(self.seed)

    def fail(self, code: int, **filters: object) -> Fault:
        """Answer with an error, for example `fail(429, retry_after_s=1, times=3)`."""
        return self._add(code=code, **filters)

    def delay(self, seconds: float, **filters: object) -> Fault:
        """Answer late."""
        return self._add(delay_s=seconds, **filters)

    def hang(self, **filters: object) -> Fault:
        """Do not answer at all until the client gives up or the fault is removed."""
        return self._add(is_hang=True, **filters)

    def silent_watches(self, **filters: object) -> Fault:
        """Accept watches and never send anything on them, as behind a dead connection."""
        return self._add(is_silent=True, verb="watch", **filters)

    def expire_watches(self, **filters: object) -> Fault:
        """Answer watches with an ERROR event of code 410."""
        return self._add(code=410, verb="watch", **filters)

    def drop_watches(self, resource: str = "*") -> int:
        """Cut the watches that are open now; returns how many."""
        return self._drop(resource)

    def remove(self, fault: Fault) -> None:
        """End one fault."""
        fault.ended.set()
        if fault in self.active:
            self.active.remove(fault)

    def clear(self) -> None:
        """End all faults."""
        for fault in list(self.active):
            self.remove(fault)

    def connect(self, drop: Callable[[str], int]) -> None:
        """Tell how open watches are cut (called by the server)."""
        self._drop = drop

    def strike(self, verb: str, resource: str, user: str, namespace: str) -> Fault | None:
        """The fault that hits a request, counted down; None when none does."""
        for fault in self.active:
            if not fault.fits(verb, resource, user, namespace):
                continue
            if fault.probability < 1.0 and self._random.random() >= fault.probability:
                continue
            if fault.times is not None:
                fault.times -= 1
            fault.struck += 1
            return fault
        return None

    def _add(self, **settings: object) -> Fault:
        fault = Fault(**settings)  # type: ignore[arg-type]  # checked by the dataclass
        self.active.append(fault)
        return fault
