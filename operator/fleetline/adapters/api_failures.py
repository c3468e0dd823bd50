"""
What goes wrong on the way to the API server, in plain words.

A refusal is an `ApiError`; whatever else happens (no answer, no route, no credentials) is an
`ObservationError`, to be tried again.
"""

import contextlib
import json
from collections.abc import Generator
from typing import Any, Final

import aiohttp
from kubernetes.aio.config import ConfigException

from fleetline.errors import ObservationError

ERROR_CHARACTERS: Final = 300


class ApiError(ObservationError):
    """The API server refused a request."""

    def __init__(self, status: int, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


@contextlib.contextmanager
def plainly(method: str, path: str, *, deadline_s: float) -> Generator[None]:
    """Say in plain words what went wrong on the way."""
    try:
        yield
    except TimeoutError:
        raise ObservationError(
            f"cannot {method} {path} from the API server: no answer in {deadline_s:g} s"
        ) from None
    except (aiohttp.ClientError, OSError, ValueError, ConfigException) as error:
        raise ObservationError(
            f"cannot {method} {path} from the API server: {_plain(error)}"
        ) from None


def refusal(method: str, path: str, response: Any, content: bytes) -> ApiError:
    """What a response with a status from 300 on says."""
    told = response.getheader("Retry-After") or ""
    return ApiError(
        response.status,
        f"cannot {method} {path}: {response.status} {_status_message(content)}",
        retry_after_s=float(told) if told.isdigit() else None,
    )


def _status_message(content: bytes) -> str:
    """Message of a Kubernetes `Status`; nothing of any other body."""
    try:
        status = json.loads(content)
    except ValueError:
        return "(no Kubernetes status)"
    told = status.get("message") if isinstance(status, dict) else None
    return str(told or "")[:ERROR_CHARACTERS]


def _plain(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:ERROR_CHARACTERS]
