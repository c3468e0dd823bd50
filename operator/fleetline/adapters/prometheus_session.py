"""
One HTTP exchange with Prometheus, in a hard shell: a deadline, a size cap, strict reading.

No redirects (they would carry credentials elsewhere), no proxies or passwords from the environment,
no retries that sleep, nothing but a well-formed success.
"""

import email.utils
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec
import requests
import urllib3

from fleetline import __version__
from fleetline.adapters.sample_stream import SampleStream, Take
from fleetline.errors import ObservationError

MOST_BYTES: Final = 64 * 2**20
CHUNK_BYTES: Final = 2**16
CONNECT_S: Final = 2.0
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


@dataclass(slots=True)
class Exchange:
    """What one request left behind besides its body."""

    warnings: tuple[str, ...] = ()
    clock_skew_s: float | None = None
    """The server's clock less ours as its answer begins; None if it does not tell. [s]"""


class _Parsed(requests.Response):
    """A response whose JSON was parsed already: a second time would double time and memory."""

    def __init__(self, response: requests.Response, answer: dict[str, Any]) -> None:
        super().__init__()
        self.status_code = response.status_code
        self._answer = answer

    def json(self, **_: Any) -> dict[str, Any]:
        return self._answer


class Shell(requests.Session):
    """A session that does one request within a deadline and lets only sound answers through."""

    def __init__(
        self,
        *,
        token: str | None,
        ca_file: str | None,
        deadline_s: float,
        take: Take | None = None,
        lists: bool = False,
    ) -> None:
        """
        Prepare one request.

        Parameters
        ----------
        token, ca_file, deadline_s
            Who asks, whom it trusts, and how long it waits. [s]
        take
            Where rows go while they come; None: they are in the answer.
        lists
            Whether the answer is a list of names, not samples.
        """
        super().__init__()
        self.trust_env = False
        self.verify = ca_file or True
        self.headers["User-Agent"] = f"fleetline/{__version__}"
        self.headers["Accept-Encoding"] = "identity"  # bytes are cheaper than the time to pack them
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self._deadline_s = deadline_s
        self._take = take
        self._lists = lists
        self.exchange = Exchange()

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
            skew_s = _clock_skew_s(response)  # now: the body may take seconds
            take = self._take if response.status_code == 200 else None
            content = _read(response, ends_s, SampleStream(take))
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise PrometheusError(Failure.UNREACHABLE, _cause(error)) from None
        answer = _checked(response, content, lists=self._lists)
        self.exchange = Exchange(_warnings(answer), skew_s)
        return _Parsed(response, answer)


def _read(response: requests.Response, ends_s: float, stream: SampleStream) -> bytes:
    """Read the body piece by piece, so that neither a drip nor a flood outlasts the limits."""
    raw, size = response.raw, 0
    try:
        while piece := raw.read1(CHUNK_BYTES, decode_content=True):
            stream.add(piece)
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
    return stream.rest()


def _checked(response: requests.Response, content: bytes, *, lists: bool) -> dict[str, Any]:
    """Return the answer of a success; raise for everything else."""
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
        answer = msgspec.json.decode(content)
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
    sound = isinstance(data, list) if lists else isinstance(data, dict) and "result" in data
    if not sound:
        raise PrometheusError(Failure.BAD_RESPONSE, "cannot query Prometheus: no result in answer")
    return answer


def _warnings(answer: dict[str, Any]) -> tuple[str, ...]:
    warnings = answer.get("warnings")
    if not isinstance(warnings, list):
        return ()
    return tuple(str(one)[:WARNING_CHARACTERS] for one in warnings)


def _clock_skew_s(response: requests.Response) -> float | None:
    try:
        told_s = email.utils.parsedate_to_datetime(response.headers["Date"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return None
    return told_s - time.time()


def _cause(error: Exception) -> str:
    """Say what went wrong without the address or any of the answer."""
    if isinstance(error, requests.Timeout):
        return "cannot query Prometheus: no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "cannot query Prometheus: its certificate is not trusted"
    if isinstance(error, requests.ConnectionError):
        return "cannot query Prometheus: no connection"
    return f"cannot query Prometheus: {type(error).__name__}"
