"""An API server's refusal."""

from __future__ import annotations

import orjson


class ApiError(Exception):
    """The API server answered, and the answer is no."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


def error_of(status: int, raw: bytes) -> ApiError:
    """Read the Status object of a refusal; some proxies answer in plain text."""
    try:
        answer = orjson.loads(raw)
    except ValueError:
        return ApiError(status, "Unknown", raw.decode(errors="replace")[:500])
    return ApiError(status, answer.get("reason", "Unknown"), answer.get("message", ""))
