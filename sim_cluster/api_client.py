"""A light Kubernetes client for everything that is simulated: controllers, nodes, traffic.

It speaks plain JSON over HTTP, so the same code runs above the in-memory API and a real API server.
Objects are the dictionaries that travel on the wire.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import orjson

from sim_cluster.api_error import ApiError, error_of
from sim_cluster.connection import Connection, read_kubeconfig
from sim_cluster.open_sockets import OpenSockets

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path
    from types import TracebackType

    from sim_cluster.resources import Resource

__all__ = ["APPLY_PATCH", "JSON_PATCH", "MERGE_PATCH", "ApiClient", "ApiError", "Object"]

Object = dict[str, Any]
"""A Kubernetes object as it travels: JSON."""

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_REQUESTS_AT_ONCE = 64
_REQUEST_TIMEOUT_S = 30.0
_TRIES_WHEN_THROTTLED = 5
_PAGE_SIZE = 1000


class ApiClient:
    """One user's session with one API server."""

    def __init__(self, connection: Connection, *, user_agent: str = "sim-cluster") -> None:
        self._connection = connection
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._sockets = OpenSockets()
        self._slots = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    @classmethod
    def from_kubeconfig(cls, path: Path, *, user_agent: str = "sim-cluster") -> Self:
        """Make a client for the current context of a kubeconfig."""
        return cls(read_kubeconfig(path), user_agent=user_agent)

    async def __aenter__(self) -> Self:
        headers = {"Accept": "application/json", "User-Agent": self._user_agent}
        if self._connection.token is not None:
            headers["Authorization"] = f"Bearer {self._connection.token}"
        self._session = aiohttp.ClientSession(
            headers=headers,
            connector=aiohttp.TCPConnector(
                limit=0, ssl=self._connection.ssl_context or True, socket_factory=self._sockets.make
            ),
            timeout=aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT_S),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            await self._sockets.until_closed()

    async def get(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        subresource: str | None = None,
    ) -> Object:
        """Read one object."""
        return await self.request("GET", resource.path(namespace, name, subresource))

    async def find(self, resource: Resource, namespace: str | None, name: str) -> Object | None:
        """Read one object, or None where there is none."""
        try:
            return await self.get(resource, namespace, name)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> tuple[list[Object], str]:
        """Read a whole collection page by page; with the resourceVersion to watch from."""
        query = {"limit": str(_PAGE_SIZE)}
        query |= {"labelSelector": label_selector} if label_selector else {}
        query |= {"fieldSelector": field_selector} if field_selector else {}
        items: list[Object] = []
        while True:
            page = await self.request("GET", resource.path(namespace), query=query)
            items += page.get("items") or []
            token = page["metadata"].get("continue")
            if not token:
                return items, page["metadata"]["resourceVersion"]
            query["continue"] = token

    async def create(
        self, resource: Resource, body: Object, *, subresource: str | None = None
    ) -> Object:
        """Create the object; `body` says its namespace and, for a subresource, its name."""
        metadata = body["metadata"]
        name = metadata["name"] if subresource else None
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        path = resource.path(metadata.get("namespace"), name, subresource)
        return await self.request("POST", path, body=whole)

    async def replace(
        self, resource: Resource, body: Object, *, subresource: str | None = None
    ) -> Object:
        """Write the whole object; a stale `metadata.resourceVersion` answers 409."""
        metadata = body["metadata"]
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
        return await self.request("PUT", path, body=whole)

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Any,
        *,
        subresource: str | None = None,
        content_type: str = MERGE_PATCH,
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """Change the named fields; a merge patch unless `content_type` says otherwise."""
        path = resource.path(namespace, name, subresource)
        return await self.request("PATCH", path, body=body, content_type=content_type, query=query)

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        options: Mapping[str, Any] | None = None,
    ) -> bool:
        """Delete one object; say whether it was there."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **options} if options else None
        try:
            await self.request("DELETE", resource.path(namespace, name), body=body)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """Send one request; where the server says 429 it is sent again after the time it names."""
        for left in range(_TRIES_WHEN_THROTTLED - 1, -1, -1):
            request = self._open(method, path, body=body, content_type=content_type, query=query)
            async with self._slots, request as answer:
                raw = await answer.read()
                wait_s = float(answer.headers.get("Retry-After", "1"))
                status = answer.status
            if status != 429 or left == 0:
                break
            await asyncio.sleep(min(wait_s, 5.0))
        if status >= 400:
            raise error_of(status, raw)
        return dict(orjson.loads(raw)) if raw else {}

    async def text(self, path: str) -> str:
        """Read what is not JSON, such as the API server's own metrics."""
        async with self._slots, self._open("GET", path, query=None) as answer:
            raw = await answer.read()
            if answer.status >= 400:
                raise error_of(answer.status, raw)
            return raw.decode()

    async def watch(
        self, path: str, query: Mapping[str, str], *, timeout_s: float
    ) -> AsyncGenerator[Object, None]:
        """Yield the events of one watch until the server ends it or `timeout_s` has passed."""
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        query = {**query, "watch": "true"}
        async with self._open("GET", path, query=query, timeout=timeout) as answer:
            if answer.status >= 400:
                raise error_of(answer.status, await answer.read())
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield orjson.loads(line)

    def _open(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        body: Any = None,
        content_type: str = "",
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> aiohttp.client._RequestContextManager:
        if self._session is None:
            raise RuntimeError("ApiClient must be entered with `async with` before it is used")
        return self._session.request(
            method,
            self._connection.url + path,
            params=query,
            data=None if body is None else orjson.dumps(body),
            headers={} if body is None else {"Content-Type": content_type},
            timeout=timeout or self._session.timeout,
        )
