"""
CEL rules of CRDs (`x-kubernetes-validations`), evaluated by Google's CEL.

Each place of a schema that has rules is compiled once. Messages are those of the real API server.
"""

import re
from functools import lru_cache
from typing import Any

from cel_expr_python import cel

from sim_cluster.api.errors import Json, cause
from sim_cluster.api.schema.cel_library import environment
from sim_cluster.api.schema.structural import Node
from sim_cluster.api.schema.validation import shown

_REASONS = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}
_OLD = re.compile(r"\boldSelf\b")
_READS_OLD = re.compile(r"\b(oldSelf|hasOldSelf)\b")


class CompileError(Exception):
    """A rule that is not CEL."""


@lru_cache(maxsize=2048)
def _compiled(expression: str) -> Any:
    try:
        return environment().compile(expression)
    except Exception as error:
        raise CompileError(str(error)) from error


class Rule:
    """One rule of one place."""

    __slots__ = (
        "_field",
        "_message",
        "_program",
        "_reason",
        "_rule",
        "_said",
        "is_optional",
        "needs_old",
        "reads_old",
    )

    def __init__(self, raw: Json) -> None:
        self._rule: str = raw["rule"]
        self.is_optional = bool(raw.get("optionalOldSelf"))
        self.needs_old = bool(_OLD.search(self._rule))
        """Whether it compares with the state before, and so says nothing of a new object."""
        self._program = _compiled(self._text_of(self._rule))
        expression = raw.get("messageExpression")
        self._message = _compiled(self._text_of(expression)) if expression else None
        texts = (self._text_of(self._rule), self._text_of(expression or ""))
        self.reads_old = any(map(_READS_OLD.search, texts))  # the program or the message does
        self._said: str = (raw.get("message") or "").strip()
        self._reason: str = raw.get("reason") or "FieldValueInvalid"
        self._field: str = raw.get("fieldPath") or ""

    def _text_of(self, expression: str) -> str:
        """The expression; an optional `oldSelf` is written out as CEL's optional value."""
        if not self.is_optional:
            return expression.strip()
        optional = "(hasOldSelf ? optional.of(oldSelf) : optional.none())"
        return _OLD.sub(optional, expression.strip())

    def error(self, path: str, value: Any, variables: Json) -> Json | None:
        """The field error when the rule does not hold."""
        outcome = _evaluate(self._program, variables)
        if outcome is True:
            return None
        where = f"{path}{self._field}" if path else self._field.lstrip(".")
        if outcome is not False:
            detail = f"{outcome} evaluating rule: {self._said or self._rule.strip()}"
            text = f'Invalid value: "{_type_name(value)}": {detail}'
            return cause("FieldValueInvalid", path or "<nil>", text)
        detail = self._said or f"failed rule: {self._rule.strip()}"
        if self._message is not None:
            made = _evaluate(self._message, variables)
            if isinstance(made, str) and made.strip() and "\n" not in made:
                detail = made.strip()
        return cause(self._reason, where or "<nil>", self._text(value, detail))

    def _text(self, value: Any, detail: str) -> str:
        words = _REASONS[self._reason]
        if self._reason in {"FieldValueForbidden", "FieldValueRequired"}:
            return f"{words}: {detail}"
        is_long = isinstance(value, (dict, list))
        text = words if is_long else f"{words}: {shown(value)}"
        return text if self._reason == "FieldValueDuplicate" else f"{text}: {detail}"


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {dict: "object", list: "array", str: "string", int: "integer", float: "number"}
    return names.get(type(value), "object")


def _evaluate(program: Any, variables: Json) -> Any:
    """The plain result, or the error's text when it cannot be evaluated."""
    try:
        value = program.eval(data=variables)
        if value.type() == cel.Type.ERROR:
            return _error_text(str(value.value()))
        return value.plain_value()
    except Exception as error:  # noqa: BLE001 - foreign: any failure is "not evaluated"
        return _error_text(str(error))


def _error_text(text: str) -> str:
    if converted := re.search(r"String to (Duration|Timestamp) conversion failed", text):
        kind = f"google.protobuf.{converted[1]}"
        return f"type conversion error from 'string' to '{kind}'"
    match = re.search(r"Key not found in map\s*:?\s*'?\"?(\w+)", text, re.IGNORECASE)
    return f"no such key: {match[1]}" if match else text


_RESERVED = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for",
        "function", "if", "import", "let", "loop", "package", "namespace", "return", "var",
        "void", "while",
    }
)  # fmt: skip


@lru_cache(maxsize=4096)
def escape_name(name: str) -> str:
    """A property name as rules must write it."""
    if name in _RESERVED:
        return f"__{name}__"
    for mark, written in (
        ("__", "__underscores__"),
        (".", "__dot__"),
        ("-", "__dash__"),
        ("/", "__slash__"),
    ):
        name = name.replace(mark, written)
    return name


def escaped(value: Any, node: Node | None) -> Any:
    """A value with its property names as rules write them; keys of maps stay as they are."""
    if isinstance(value, dict):
        is_map = node is not None and node.is_map
        return {
            (key if is_map else escape_name(key)): escaped(
                member, node.member(key) if node is not None else None
            )
            for key, member in value.items()
        }
    if isinstance(value, list):
        items = node.items if node is not None else None
        return [escaped(item, items) for item in value]
    if isinstance(value, int) and node is not None and node.kind == "number":
        return float(value)
    if isinstance(value, str) and node is not None:
        return typed_string(value, node.schema.get("format", ""))
    return value


def typed_string(value: str, form: str) -> Any:
    """A string of format `duration` or `date-time` as CEL sees it."""
    if form == "duration":
        return environment().compile("duration(x)").eval(data={"x": value}).plain_value()
    if form in {"date-time", "datetime"}:
        return environment().compile("timestamp(x)").eval(data={"x": value}).plain_value()
    return value


@lru_cache(maxsize=4096)
def _rules_of(node: Node) -> tuple[Rule, ...]:
    return tuple(Rule(raw) for raw in node.schema.get("x-kubernetes-validations") or ())


@lru_cache(maxsize=4096)
def has_rules(node: Node) -> bool:
    """Whether any place at or below a node has rules."""
    if node.ref:
        return False
    return bool(node.schema.get("x-kubernetes-validations")) or any(map(has_rules, node.children()))


@lru_cache(maxsize=4096)
def _ruled_properties(node: Node) -> dict[str, Node]:
    """The properties with rules, of their own or further below."""
    named = ((name, node.member(name)) for name in node.property_names)
    return {name: child for name, child in named if child is not None and has_rules(child)}


def evaluate(obj: Any, node: Node, old: Any = None, path: str = "") -> list[Json]:
    """Field errors of all rules that do not hold; `old` is the state before an update."""
    errors: list[Json] = []
    _evaluate_place(obj, node, old, path, errors)
    return errors


def _evaluate_place(value: Any, node: Node, old: Any, path: str, errors: list[Json]) -> None:
    if value is None or not has_rules(node):
        return
    errors += _broken_rules(value, node, old, path)
    if isinstance(value, dict):
        ruled = _ruled_properties(node)
        for key, member in value.items():
            child = ruled.get(key) if key in node.property_names else node.values
            if child is not None:
                before = old.get(key) if isinstance(old, dict) else None
                where = f"{path}.{key}" if path else key
                where = f"{path}[{key}]" if node.is_map else where
                _evaluate_place(member, child, before, where, errors)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            before = _counterpart(item, node, old)
            _evaluate_place(item, node.items, before, f"{path}[{index}]", errors)


def _broken_rules(value: Any, node: Node, old: Any, path: str) -> list[Json]:
    rules = _rules_of(node)
    if not rules:
        return []
    variables: Json = {"self": escaped(value, node)}
    if any(rule.reads_old for rule in rules):
        variables["hasOldSelf"] = old is not None
        variables["oldSelf"] = escaped(old, node) if old is not None else None
    errors = [
        rule.error(path, value, variables)
        for rule in rules
        if old is not None or rule.is_optional or not rule.needs_old
    ]
    return [error for error in errors if error is not None]


def _counterpart(item: Any, node: Node, old: Any) -> Any:
    """The same item of a keyed list before the update; lists without keys have none."""
    if node.list_type != "map" or not isinstance(old, list):
        return None
    for candidate in old:
        if all(candidate.get(key) == item.get(key) for key in node.list_keys):
            return candidate
    return None
