"""JSON Patch (RFC 6902), refusing what the real API server refuses."""

from copy import deepcopy
from typing import Any

from sim_cluster.api.errors import ApiError, Json, bad_request

MOST_OPERATIONS = 10_000
"""Operations that one patch may hold."""


def _failed(message: str) -> ApiError:
    return ApiError(422, "Invalid", message, details={})


def _tokens(pointer: str) -> list[str]:
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise _failed("the server rejected our request due to an error in our request")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _missing(operation: str, pointer: str) -> ApiError:
    return _failed(
        f"{operation} operation does not apply: doc is missing path: {pointer}: missing value"
    )


def _step(node: Any, token: str, operation: str, pointer: str) -> Any:
    try:
        return node[int(token)] if isinstance(node, list) else node[token]
    except (KeyError, IndexError, ValueError, TypeError):
        raise _missing(operation, pointer) from None


def _parent(document: Any, tokens: list[str], operation: str, pointer: str) -> Any:
    node = document
    for token in tokens[:-1]:
        node = _step(node, token, operation, pointer)
    return node


def _add(document: Any, pointer: str, value: Any) -> Any:
    tokens = _tokens(pointer)
    if not tokens:
        return value
    parent = _parent(document, tokens, "add", pointer)
    last = tokens[-1]
    if isinstance(parent, list):
        index = len(parent) if last == "-" else int(last)
        if not 0 <= index <= len(parent):
            raise _failed(
                f"add operation does not apply: doc is missing path: {pointer}: invalid index"
            )
        parent.insert(index, value)
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise _missing("add", pointer)
    return document


def _remove(document: Any, pointer: str, operation: str) -> Any:
    tokens = _tokens(pointer)
    parent = _parent(document, tokens, operation, pointer)
    value = _step(parent, tokens[-1], operation, pointer)
    del parent[int(tokens[-1]) if isinstance(parent, list) else tokens[-1]]
    return value


def _read(document: Any, pointer: str, operation: str) -> Any:
    node = document
    for token in _tokens(pointer):
        node = _step(node, token, operation, pointer)
    return node


def _test(document: Any, operation: Json) -> None:
    pointer = operation["path"]
    try:
        found = _read(document, pointer, "test")
    except ApiError:
        if operation.get("value") is None:
            return
        raise
    if found != operation.get("value"):
        raise _failed(f"testing value {pointer} failed: test failed")


def apply_json_patch(document: Json, operations: Any) -> Json:
    """The document after all operations; the one given is left alone."""
    if not isinstance(operations, list):
        raise bad_request("json patch must be a list of operations")
    if len(operations) > MOST_OPERATIONS:
        raise ApiError(
            413,
            "RequestEntityTooLarge",
            "The allowed maximum operations in a JSON"
            f" patch is {MOST_OPERATIONS}, got {len(operations)}",
        )
    result: Any = deepcopy(document)
    for operation in operations:
        result = _apply(result, operation)
    patched: Json = result
    return patched


def _apply(document: Any, operation: Json) -> Any:
    kind, pointer = operation.get("op"), operation.get("path", "")
    match kind:
        case "add":
            return _add(document, pointer, deepcopy(operation.get("value")))
        case "remove":
            _remove(document, pointer, "remove")
        case "replace":
            _read(document, pointer, "replace")
            tokens = _tokens(pointer)
            if not tokens:
                return deepcopy(operation.get("value"))
            parent = _parent(document, tokens, "replace", pointer)
            key = int(tokens[-1]) if isinstance(parent, list) else tokens[-1]
            parent[key] = deepcopy(operation.get("value"))
        case "move":
            return _add(document, pointer, _remove(document, operation["from"], "move"))
        case "copy":
            return _add(document, pointer, deepcopy(_read(document, operation["from"], "copy")))
        case "test":
            _test(document, operation)
        case _:
            raise _failed(f"unexpected kind: {kind}")
    return document
