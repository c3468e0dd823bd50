"""
`prometheus-api-client` behind one hard shell, in threads of its own.

The library sends the query and unpacks the answer; `prometheus_session` decides what may pass.
Warnings, which the library drops, are kept: an answer with warnings is a partial one.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3
from prometheus_api_client import PrometheusConnect

from fleetline.adapters.prometheus_session import Exchange, Failure, PrometheusError, Shell
from fleetline.adapters.sample_stream import Row, Take, read_row
from fleetline.errors import ManifestError

__all__ = ["Answer", "Failure", "Prometheus", "PrometheusError", "Row", "read_row", "together"]

WORKERS: Final = 2
"""Queries at once: more would only share the same processors, and each would take longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a query brought."""

    rows: tuple[Row, ...]
    rejected: int = 0
    """Samples that were no finite numbers: known to be there, of unknown value."""
    warnings: tuple[str, ...] = ()
    """Whatever Prometheus said about missing data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of the past, and how far apart its moments are; a moment if it has no length."""

    start_s: float
    """Unix time. [s]"""
    end_s: float
    step_s: float = 15.0


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
        """Prometheus' clock less ours, from the Date header. [s]"""

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

    async def feed(self, promql: str, take: Take) -> tuple[str, ...]:
        """
        Ask for an instant vector that may be large; returns the warnings.

        `take` gets the rows in batches: in a thread while the answer comes, and the last here. If
        the query fails after some were taken, all are to be forgotten.

        Raises
        ------
        PrometheusError
            If there is no well-formed success within the deadline.
        """
        result, warnings = await self.raw(promql, take)
        take([row for entry in result if (row := read_row(entry)) is not None])
        return warnings

    async def names(self, selector: str) -> frozenset[str]:
        """
        Ask which metric names have series that match: the index tells, no sample is touched.

        Where a proxy answers queries only, the series are counted, which is slow for thousands.

        Raises
        ------
        PrometheusError
            If there is no well-formed success within the deadline.
        """

        def ask(connection: PrometheusConnect) -> Any:
            return connection.get_label_values("__name__", params={"match[]": selector})

        try:
            result, _ = await self._exchange(ask, lists=True)
        except PrometheusError as error:
            if error.failure not in (Failure.BAD_RESPONSE, Failure.QUERY_ERROR):
                raise
            answer = await self.query(f"count by (__name__) ({selector})")
            return frozenset(row.labels.get("__name__", "") for row in answer.rows)
        return frozenset(name for name in result if isinstance(name, str))

    async def raw(
        self, promql: str, take: Take | None = None, *, span: Span | None = None
    ) -> tuple[list[Any], tuple[str, ...]]:
        """Ask for any vector or matrix, now or in the past: its entries as sent, and warnings."""
        return await self._exchange(functools.partial(_query, promql=promql, span=span), take)

    async def _exchange(
        self,
        ask: Callable[[PrometheusConnect], Any],
        take: Take | None = None,
        *,
        lists: bool = False,
    ) -> tuple[list[Any], tuple[str, ...]]:
        self.queries += 1
        loop = asyncio.get_running_loop()
        work = functools.partial(self._ask, ask, take, lists)
        try:
            async with self._slots, asyncio.timeout(self._deadline_s):
                result, exchange = await loop.run_in_executor(self._pool, work)
        except TimeoutError:
            raise PrometheusError(
                Failure.UNREACHABLE,
                f"cannot query Prometheus: no answer in {self._deadline_s:g} s",
            ) from None
        if exchange.clock_skew_s is not None:
            self.clock_skew_s = exchange.clock_skew_s
        if not isinstance(result, list):
            raise PrometheusError(Failure.BAD_RESPONSE, "answer must be a list of series")
        return result, exchange.warnings

    def _ask(
        self,
        ask: Callable[[PrometheusConnect], Any],
        take: Take | None,
        lists: bool,  # noqa: FBT001 - of a partial
    ) -> tuple[Any, Exchange]:
        """Send one query (in a thread); after a 401 once more with the token as it is now."""
        try:
            return self._send(ask, take, lists=lists)
        except PrometheusError as error:
            if error.failure is not Failure.UNAUTHORIZED or self._token_file is None:
                raise
            return self._send(ask, take, lists=lists)

    def _send(
        self, ask: Callable[[PrometheusConnect], Any], take: Take | None, *, lists: bool
    ) -> tuple[Any, Exchange]:
        with Shell(
            token=self._token(),
            ca_file=self._ca_file,
            deadline_s=self._deadline_s,
            take=take,
            lists=lists,
        ) as session:
            connection = PrometheusConnect(
                url=self._url, session=session, retry=urllib3.Retry(0, redirect=0), method="POST"
            )
            return ask(connection), session.exchange

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


async def together(*asked: Coroutine[Any, Any, tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Await questions side by side; as soon as one fails, the others are given up."""
    tasks = [asyncio.create_task(one) for one in asked]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _query(connection: PrometheusConnect, *, promql: str, span: Span | None) -> Any:
    """Ask about now, a moment, or a part of the past."""
    if span is None:
        return connection.custom_query(promql)
    if span.end_s <= span.start_s:
        return connection.custom_query(promql, params={"time": span.start_s})
    start, end = (datetime.fromtimestamp(at_s, UTC) for at_s in (span.start_s, span.end_s))
    return connection.custom_query_range(promql, start, end, f"{span.step_s:g}s")
