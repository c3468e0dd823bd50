"""The sockets of a client, so that it can end when they are closed and not a moment later.

A TLS connection that is cut short says goodbye to its server after `close` has returned; an event
loop that ends meanwhile leaks it.
"""

from __future__ import annotations

import asyncio
import socket
import time
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import AddrInfoType

_LONGEST_S, _POLL_S = 2.0, 0.002


class OpenSockets:
    """Makes sockets and remembers them, but does not keep them."""

    def __init__(self) -> None:
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def make(self, address: AddrInfoType) -> socket.socket:
        """Make a socket for an address: a `socket_factory` for aiohttp."""
        made = socket.socket(address[0], address[1], address[2])
        self._sockets.add(made)
        return made

    async def until_closed(self) -> None:
        """Wait until the last one is closed, or for two seconds."""
        deadline_s = time.monotonic() + _LONGEST_S
        while any(each.fileno() >= 0 for each in self._sockets):
            if time.monotonic() > deadline_s:
                return
            await asyncio.sleep(_POLL_S)
