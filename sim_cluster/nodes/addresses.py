"""
Addresses of pods: all of 127.0.0.0/8 is this machine's own, so each pod can have one of its own.

A listening socket is bound when the address is given out and begins to listen when the engine
serves: until then connections are refused, as with the real one. An address that another
simulation on this machine has taken is skipped.
"""

from __future__ import annotations

import errno
import logging
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG = logging.getLogger(__name__)
_TRIES: Final = 4096
_LAST_OCTET: Final = 254


def loopback_addresses() -> Iterator[str]:
    """Yield 127.1.0.1, 127.1.0.2 and so on, 16 million of them."""
    for second in range(1, 255):
        for third in range(256):
            for fourth in range(1, _LAST_OCTET + 1):
                yield f"127.{second}.{third}.{fourth}"


class AddressBook:
    """Gives out addresses, and sockets while there are fewer than `most_sockets`."""

    def __init__(self, *, most_sockets: int) -> None:
        self._most_sockets = most_sockets
        self._fresh = loopback_addresses()
        self._returned: list[str] = []
        self._sockets: dict[str, socket.socket] = {}

    def take(self, port: int | None) -> str:
        """Give out an address, with a socket bound to `port` if there may be one more."""
        if port is None or len(self._sockets) >= self._most_sockets:
            return self._next()
        for _ in range(_TRIES):
            address = self._next()
            bound = _bind(address, port)
            if bound is not None:
                self._sockets[address] = bound
                return address
        _LOG.warning("no address has port %d free: pods share one /metrics", port)
        return self._next()

    def socket_of(self, address: str) -> socket.socket | None:
        """Return the socket that was bound for an address."""
        return self._sockets.get(address)

    def give_back(self, address: str) -> None:
        """Close the address's socket and let others have it, the longest unused first."""
        bound = self._sockets.pop(address, None)
        if bound is not None:
            bound.close()
        self._returned.append(address)

    def close(self) -> None:
        """Close every socket."""
        for bound in self._sockets.values():
            bound.close()
        self._sockets.clear()

    def _next(self) -> str:
        # an address rests for a while, lest a scrape of the old pod reach the new one
        if len(self._returned) > _LAST_OCTET:
            return self._returned.pop(0)
        return next(self._fresh)


def _bind(address: str, port: int) -> socket.socket | None:
    fresh = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    fresh.setblocking(False)
    try:  # without SO_REUSEADDR: it would let two simulations bind what only one can listen on
        fresh.bind((address, port))
    except OSError as error:
        fresh.close()
        if error.errno in {errno.EADDRINUSE, errno.EACCES}:
            return None
        raise
    return fresh
