"""
The Kubernetes API over `kubernetes.aio`: JSON in, JSON out, every request with a deadline.

The official client brings configuration, TLS, tokens and their rotation; its typed models are left
out, because building them for 20,000 pods would take longer than a turn. Credentials are read
again after a 401.
"""

import asyncio
import contextlib
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import aiohttp
import msgspec
from kubernetes.aio import client

from fleetline import __version__
from fleetline.adapters.api_configuration import read_configuration
from fleetline.adapters.api_failures import ApiError, plainly, refusal
from fleetline.adapters.listing import Page
from fleetline.errors import FleetlineError, ObservationError

Json = dict[str, Any]
Item = TypeVar("Item")

MERGE_PATCH: Final = "application/merge-patch+json"
FIELD_MANAGER: Final = "fleetline"
"""Owner of the fields that are written."""

PAGE: Final = 500
"""Objects per page of a list: bounds the memory of one answer."""

WATCH_S: Final = 240
"""After this time a watch is renewed. [s]"""

SILENCE_S: Final = 90.0
"""A watch without a word for so long is dead: bookmarks come every minute. [s]"""

MOST_BYTES: Final = 256 * 2**20


class ApiClient:
    """One connection pool to one API server."""

    def __init__(self, kubeconfig: Path | None, *, deadline_s: float) -> None:
        """
        Prepare; nothing is read before `connect`.

        Parameters
        ----------
        kubeconfig
            Kubeconfig file; None inside a pod.
        deadline_s
            Longest time of one request, reading the answer included. [s]
        """
        self._kubeconfig = kubeconfig
        self._deadline_s = deadline_s
        self._client: Any = None  # the generated client is untyped in places
        self._rotation = asyncio.Lock()
        self.throttled_until_s = 0.0
        """Time on the loop's clock before which the server asked not to be written to. [s]"""

    async def connect(self) -> None:
        """Read the configuration (again) and open a pool with it."""
        settings = await read_configuration(self._kubeconfig)
        old, self._client = self._client, client.ApiClient(configuration=settings)
        self._client.user_agent = f"fleetline/{__version__}"
        if old is not None:
            await old.close()

    async def close(self) -> None:
        """Close the pool."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Read one object."""
        answer: Json = await self._request("GET", path, query)
        return answer

    async def patch(self, path: str, body: Json, query: Mapping[str, str] | None = None) -> Json:
        """Merge-patch one object or subresource."""
        answer: Json = await self._request("PATCH", path, query, body)
        return answer

    async def post(self, path: str, body: Json) -> Json:
        """Create one object."""
        answer: Json = await self._request("POST", path, None, body)
        return answer

    async def put(self, path: str, body: Json) -> Json:
        """Replace one object."""
        answer: Json = await self._request("PUT", path, None, body)
        return answer

    async def pages(self, path: str) -> AsyncIterator[Json]:
        """Yield the objects of a collection, page by page."""
        parameters = {"limit": str(PAGE)}
        while True:
            page = await self.get(path, parameters)
            for item in page.get("items") or []:
                yield item
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                return
            parameters["continue"] = following

    async def page(
        self, path: str, reader: "msgspec.json.Decoder[Page[Item]]", following: str = ""
    ) -> Page[Item]:
        """Read one page of a collection, and of each object only what `reader` knows."""
        query = {"limit": str(PAGE)} | ({"continue": following} if following else {})
        page: Page[Item] = await self._request("GET", path, query, read=reader.decode)
        return page

    async def items(
        self, path: str, reader: "msgspec.json.Decoder[Page[Item]]"
    ) -> AsyncIterator[Item]:
        """Yield the objects of a collection, page by page, each as far as `reader` knows it."""
        page = await self.page(path, reader)
        while True:
            for item in page.items or ():
                yield item
            if not page.metadata.following:
                return
            page = await self.page(path, reader, page.metadata.following)

    @contextlib.asynccontextmanager
    async def watch(self, path: str, version: str) -> AsyncGenerator[AsyncIterator[bytes]]:
        """
        Watch a collection from a resource version on: lines of JSON, until the server ends it.

        Raises
        ------
        ObservationError
            If the watch is refused or cut, or nothing was heard for `SILENCE_S`.
        """
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCH_S)}
        limits = aiohttp.ClientTimeout(
            total=WATCH_S + SILENCE_S, connect=self._deadline_s, sock_read=SILENCE_S
        )
        with plainly("watch", path, deadline_s=self._deadline_s):
            query["resourceVersion"] = version
            response = await self._send("GET", path, query, None, limits)
            try:
                yield response.response.content
            finally:
                response.response.close()

    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Json | None = None,
        read: Callable[[bytes], Any] = msgspec.json.decode,
    ) -> Any:
        connected = self._client
        with plainly(method, path, deadline_s=self._deadline_s):
            async with asyncio.timeout(self._deadline_s):
                try:
                    return await self._once(method, path, query, body, read)
                except ApiError as error:
                    if error.status != 401:
                        raise
                    await self._rotate(connected)
                    return await self._once(method, path, query, body, read)

    async def _rotate(self, rejected: Any) -> None:
        """Read new credentials, once for all requests that were rejected with the old ones."""
        async with self._rotation:
            if self._client is not rejected:
                return
            try:
                await self.connect()
            except FleetlineError as error:
                raise ObservationError(str(error)) from None  # it may be there again at next turn

    async def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Json | None,
        read: Callable[[bytes], Any],
    ) -> Any:
        response = await self._send(method, path, query, body, self._deadline_s)
        length = response.getheader("Content-Length")
        if length is not None and int(length) > MOST_BYTES:
            response.response.close()
            raise ObservationError(f"answer to {path} must be <= {MOST_BYTES} bytes, got {length}")
        answer = read(await response.read())
        if not isinstance(answer, (dict, Page)):
            raise ObservationError(f"answer to {path} must be an object, got {type(answer)}")
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Json | None,
        limit: float | aiohttp.ClientTimeout,
    ) -> Any:
        """Send a request; its response if that is no refusal, the body not yet read."""
        api = self._client
        if api is None:
            raise ObservationError("cannot reach the API server: not connected")
        headers = {"Accept": "application/json", "User-Agent": api.user_agent}
        if body is not None:
            headers["Content-Type"] = MERGE_PATCH if method == "PATCH" else "application/json"
        await api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        url = f"{api.configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            response: Any = await api.call_api(method, url, headers, body, _request_timeout=limit)
        if response.status >= 300:
            refused = refusal(method, path, response, await response.read())
            self._slow_down(refused)
            raise refused
        return response

    def _slow_down(self, refused: ApiError) -> None:
        """Remember for how long the server asked not to be written to."""
        if refused.status == 429 and refused.retry_after_s is not None:
            loop = asyncio.get_running_loop()
            self.throttled_until_s = loop.time() + min(refused.retry_after_s, 60.0)
