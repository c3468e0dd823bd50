"""JSON Patch (RFC 6902), refusing what the real API server refuses."""

from copy import deepcopy
from typing import Any

from sim_cluster.api.errors import ApiError, Json, bad_request

MOST_OPERATIONS = 10_000
"""Operations that one patch may hold."""


def _failed() -> ApiError:
    """What the real API server says of any operation that cannot be carried out."""
    message = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", message, details={})


def _tokens(pointer: str) -> list[str]:
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise _failed()
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _step(node: Any, token: str) -> Any:
    try:
        return node[int(token)] if isinstance(node, list) else node[token]
    except (KeyError, IndexError, ValueError, TypeError):
        raise _failed() from None


def _parent(document: Any, tokens: list[str]) -> Any:
    node = document
    for token in tokens[:-1]:
        node = _step(node, token)
    return node


def _add(document: Any, pointer: str, value: Any) -> Any:
    tokens = _tokens(pointer)
    if not tokens:
        return value
    parent = _parent(document, tokens)
    last = tokens[-1]
    if isinstance(parent, list):
        index = len(parent) if last == "-" else int(last)
        if not 0 <= index <= len(parent):
            raise _failed()
        parent.insert(index, value)
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise _failed()
    return document


def _remove(document: Any, pointer: str) -> Any:
    tokens = _tokens(pointer)
    parent = _parent(document, tokens)
    value = _step(parent, tokens[-1])
    del parent[int(tokens[-1]) if isinstance(parent, list) else tokens[-1]]
    return value


def _read(document: Any, pointer: str) -> Any:
    node = document
    for token in _tokens(pointer):
        node = _step(node, token)
    return node


def _test(document: Any, operation: Json) -> None:
    pointer = operation["path"]
    try:
        found = _read(document, pointer)
    except ApiError:
        if operation.get("value") is None:
            return
        raise
    if found != operation.get("value"):
        raise _failed()


def apply_json_patch(document: Json, operations: Any) -> Json:
    """The document after all operations; the one given is left alone."""
    if not isinstance(operations, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type"
            " []handlers.jsonPatchOp"
        )
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
            _remove(document, pointer)
        case "replace":
            _read(document, pointer)
            tokens = _tokens(pointer)
            if not tokens:
                return deepcopy(operation.get("value"))
            parent = _parent(document, tokens)
            key = int(tokens[-1]) if isinstance(parent, list) else tokens[-1]
            parent[key] = deepcopy(operation.get("value"))
        case "move":
            return _add(document, pointer, _remove(document, operation["from"]))
        case "copy":
            return _add(document, pointer, deepcopy(_read(document, operation["from"])))
        case "test":
            _test(document, operation)
        case _:
            raise _failed()
    return document
