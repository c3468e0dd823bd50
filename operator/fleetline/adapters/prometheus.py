"""
`prometheus-api-client` behind one hard shell: a total deadline, a size cap, strict reading.

The library sends the query and unpacks the answer; the session below decides what may pass: no
redirects (they would carry credentials elsewhere), no proxies or passwords from the environment,
no retries that sleep, nothing but a well-formed success. Warnings, which the library drops, are
kept: an answer with warnings is a partial one.
"""

import asyncio
import email.utils
import json
import math
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

import requests
import urllib3
from prometheus_api_client import PrometheusConnect

from fleetline import __version__
from fleetline.errors import ManifestError, ObservationError

MOST_BYTES: Final = 64 * 2**20
CHUNK_BYTES: Final = 2**16
CONNECT_S: Final = 2.0
WORKERS: Final = 4
LARGEST: Final = 1e15
"""Rates, counts and seconds beyond this are nonsense."""

WARNING_CHARACTERS: Final = 200


class Failure(StrEnum):
    """Why a query has no answer; reasons of the condition MetricsAvailable."""

    UNREACHABLE = "PrometheusUnreachable"
    UNAUTHORIZED = "Unauthorized"
    QUERY_ERROR = "QueryError"
    BAD_RESPONSE = "BadResponse"


class PrometheusError(ObservationError):
    """Prometheus gave no usable answer."""

    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Row:
    """One sample of an instant vector: finite and not negative, or absent."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a query brought."""

    rows: tuple[Row, ...]
    rejected: int = 0
    """Samples that were no finite numbers: known to be there, of unknown value."""
    warnings: tuple[str, ...] = ()
    """Whatever Prometheus said about missing data."""


@dataclass(slots=True)
class _Exchange:
    """What one request left behind besides its body."""

    warnings: tuple[str, ...] = ()
    server_time_s: float | None = None


class Shell(requests.Session):
    """A session that does one request within a deadline and lets only sound answers through."""

    def __init__(self, *, token: str | None, ca_file: str | None, deadline_s: float) -> None:
        super().__init__()
        self.trust_env = False
        self.verify = ca_file or True
        self.headers["User-Agent"] = f"fleetline/{__version__}"
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self._deadline_s = deadline_s
        self.exchange = _Exchange()

    def request(self, method: Any, url: Any, *_: Any, **options: Any) -> requests.Response:
        """Send, read within the deadline, and refuse what is not a success."""
        ends_s = time.monotonic() + self._deadline_s
        options |= {
            "timeout": (min(CONNECT_S, self._deadline_s), self._deadline_s),
            "allow_redirects": False,
            "stream": True,
            "verify": self.verify,
        }
        try:
            response = super().request(method, url, **options)
            content = _read(response, ends_s)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise PrometheusError(Failure.UNREACHABLE, _cause(error)) from None
        response._content = content  # noqa: SLF001 - as `stream=False` would have left it
        self.exchange = _Exchange(_checked(response, content), _server_time_s(response))
        return response


class Prometheus:
    """Queries in a bounded pool of threads: the event loop never waits for a socket."""

    def __init__(
        self,
        url: str,
        *,
        deadline_s: float,
        token_file: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        """
        Prepare; nothing is sent before the first query.

        Raises
        ------
        ManifestError
            If the URL is none of http or https.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ManifestError(f"--prometheus-url must be an http or https URL, got {url!r}")
        self._url = url.rstrip("/")
        self._deadline_s = deadline_s
        self._token_file = token_file
        self._ca_file = ca_file
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="prometheus")
        self._slots = asyncio.Semaphore(WORKERS)
        self.queries = 0
        """Queries sent so far."""
        self.clock_skew_s: float | None = None
        """Prometheus' clock less ours, from the Date header."""

    def close(self) -> None:
        """Let the threads end; those in a request end with its deadline."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def query(self, promql: str) -> Answer:
        """
        Ask for an instant vector.

        Raises
        ------
        PrometheusError
            If there is no well-formed success within the deadline.
        """
        result, warnings = await self.raw(promql)
        rows, rejected = [], 0
        for entry in result:
            row = read_row(entry)
            rows.append(row) if row is not None else None
            rejected += row is None
        return Answer(rows=tuple(rows), rejected=rejected, warnings=warnings)

    async def raw(self, promql: str) -> tuple[list[Any], tuple[str, ...]]:
        """Ask for any vector or matrix: its entries as sent, and the warnings."""
        self.queries += 1
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._deadline_s), self._slots:
                result, exchange = await loop.run_in_executor(self._pool, self._ask, promql)
        except TimeoutError:
            raise PrometheusError(
                Failure.UNREACHABLE,
                f"cannot query Prometheus: no answer in {self._deadline_s:g} s",
            ) from None
        if exchange.server_time_s is not None:
            self.clock_skew_s = exchange.server_time_s - time.time()
        if not isinstance(result, list):
            raise PrometheusError(Failure.BAD_RESPONSE, "answer must be a list of series")
        return result, exchange.warnings

    def _ask(self, promql: str) -> tuple[Any, _Exchange]:
        """Send one query (in a thread); after a 401 once more with the token as it is now."""
        try:
            return self._send(promql)
        except PrometheusError as error:
            if error.failure is not Failure.UNAUTHORIZED or self._token_file is None:
                raise
            return self._send(promql)

    def _send(self, promql: str) -> tuple[Any, _Exchange]:
        with Shell(
            token=self._token(), ca_file=self._ca_file, deadline_s=self._deadline_s
        ) as session:
            connection = PrometheusConnect(
                url=self._url, session=session, retry=urllib3.Retry(0, redirect=0), method="POST"
            )
            return connection.custom_query(promql), session.exchange

    def _token(self) -> str | None:
        if self._token_file is None:
            return None
        try:
            with open(self._token_file, encoding="utf-8") as file:  # noqa: PTH123
                return file.read().strip()
        except OSError as error:
            raise PrometheusError(
                Failure.UNAUTHORIZED, f"cannot read the Prometheus token: {error.strerror}"
            ) from None


def read_row(entry: Any) -> Row | None:
    """Read one sample strictly: a finite number from 0 to 1e15; None for anything else."""
    try:
        labels, (_, told) = entry["metric"], entry["value"]
        value = float(told) if isinstance(told, str) else math.nan
    except (KeyError, TypeError, ValueError):
        return None
    if not isinstance(labels, dict) or not math.isfinite(value) or abs(value) > LARGEST:
        return None
    return Row(labels, value)


def _read(response: requests.Response, ends_s: float) -> bytes:
    """Read the body piece by piece, so that neither a drip nor a flood outlasts the limits."""
    raw, pieces, size = response.raw, [], 0
    try:
        while piece := raw.read1(CHUNK_BYTES, decode_content=True):
            pieces.append(piece)
            size += len(piece)
            if size > MOST_BYTES:
                raise PrometheusError(
                    Failure.BAD_RESPONSE, f"answer must be <= {MOST_BYTES} bytes, got more"
                )
            if time.monotonic() > ends_s:
                raise PrometheusError(
                    Failure.UNREACHABLE, "cannot query Prometheus: its answer comes too slowly"
                )
    finally:
        response.close()
    return b"".join(pieces)


def _checked(response: requests.Response, content: bytes) -> tuple[str, ...]:
    """Return the warnings of a success; raise for everything else."""
    status = response.status_code
    if status in (401, 403):
        raise PrometheusError(
            Failure.UNAUTHORIZED, f"cannot query Prometheus: it answers {status}, not allowed"
        )
    if 300 <= status < 400:
        raise PrometheusError(
            Failure.BAD_RESPONSE, f"cannot query Prometheus: it redirects ({status})"
        )
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        failure = Failure.BAD_RESPONSE if status == 200 else Failure.UNREACHABLE
        raise PrometheusError(failure, f"cannot query Prometheus: status {status}, no JSON object")
    if status != 200 or answer.get("status") != "success":
        kind = str(answer.get("errorType") or "error")[:40]
        failure = Failure.UNREACHABLE if status in (429, 502, 503, 504) else Failure.QUERY_ERROR
        raise PrometheusError(failure, f"cannot query Prometheus: status {status}, {kind}")
    data = answer.get("data")
    if not isinstance(data, dict) or "result" not in data:
        raise PrometheusError(Failure.BAD_RESPONSE, "cannot query Prometheus: no result in answer")
    warnings = answer.get("warnings")
    if not isinstance(warnings, list):
        return ()
    return tuple(str(one)[:WARNING_CHARACTERS] for one in warnings)


def _server_time_s(response: requests.Response) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(response.headers["Date"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return None


def _cause(error: Exception) -> str:
    """Say what went wrong without the address or any of the answer."""
    if isinstance(error, requests.Timeout):
        return "cannot query Prometheus: no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "cannot query Prometheus: its certificate is not trusted"
    if isinstance(error, requests.ConnectionError):
        return "cannot query Prometheus: no connection"
    return f"cannot query Prometheus: {type(error).__name__}"
