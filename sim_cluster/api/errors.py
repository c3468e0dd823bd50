"""Failures of the API, each with the HTTP code, reason and words of the real API server."""

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]


class ApiError(Exception):
    """A request that ends in a `Status` of kind Failure."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Json | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s

    def status(self) -> Json:
        """The `Status` object that the client receives."""
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        details = dict(self.details or {})
        if self.retry_after_s is not None:
            details["retryAfterSeconds"] = self.retry_after_s
        if details or self.details is not None:
            status["details"] = details
        return {**status, "code": self.code}


def success(details: Json) -> Json:
    """The `Status` object that tells of an immediate deletion."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


def qualified(group: str, name: str) -> str:
    """A resource or kind with its group, as messages name it."""
    return f"{name}.{group}" if group else name


def _details(group: str, kind: str, name: str) -> Json:
    details = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in details.items() if value}


def not_found(group: str, plural: str, name: str) -> ApiError:
    """No object of that name."""
    message = f'{qualified(group, plural)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_details(group, plural, name))


def unknown_path() -> ApiError:
    """No such group, version or resource."""
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", message, details={})


def already_exists(group: str, plural: str, name: str) -> ApiError:
    """A second object of one name."""
    message = f'{qualified(group, plural)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_details(group, plural, name))


STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def conflict(group: str, plural: str, name: str, cause: str = STALE) -> ApiError:
    """A write that rests on an old version, or on the wrong object."""
    message = f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {cause}'
    return ApiError(409, "Conflict", message, details=_details(group, plural, name))


def bad_request(message: str) -> ApiError:
    """A request that cannot be understood."""
    return ApiError(400, "BadRequest", message)


def invalid(group: str, kind: str, name: str, causes: Sequence[Json]) -> ApiError:
    """An object that was understood and is refused: one cause for each field."""
    texts = [f"{cause['field']}: {cause['message']}" for cause in causes]
    detail = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{qualified(group, kind)} "{name}" is invalid: {detail}'
    details = {**_details(group, kind, name), "causes": list(causes)}
    return ApiError(422, "Invalid", message, details=details)


def forbidden(group: str, plural: str, name: str, cause: str) -> ApiError:
    """A request that the user, or the state of the namespace, does not allow."""
    target = f'{qualified(group, plural)} "{name}"' if name else qualified(group, plural)
    message = f"{target} is forbidden: {cause}"
    return ApiError(403, "Forbidden", message, details=_details(group, plural, name))


def unauthorized() -> ApiError:
    """No credentials, or credentials that nobody issued."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> ApiError:
    """A verb that the resource does not have."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, details={})


def expired(message: str) -> ApiError:
    """A resourceVersion or continue token that is older than what is kept."""
    return ApiError(410, "Expired", message)


def unsupported_media_type(got: str, supported: Sequence[str]) -> ApiError:
    """A body in a format that is not read."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(supported)
        + (f" (got {got})" if got else "")
    )
    return ApiError(415, "UnsupportedMediaType", message)


def not_implemented(what: str) -> ApiError:
    """A part of Kubernetes that this server does not have, and says so."""
    return ApiError(501, "NotImplemented", f"the in-memory API server does not implement {what}")


def cause(reason: str, field: str, message: str) -> Json:
    """One field error, in the shape of `StatusCause`."""
    return {"reason": reason, "message": message, "field": field}
