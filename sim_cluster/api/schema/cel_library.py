"""The CEL environment of rules: Google's CEL, its extensions, and Kubernetes' functions."""

import re
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_encoders, ext_math, ext_optional, ext_strings

_DYN, _BOOL, _INT, _STRING = cel.Type.DYN, cel.Type.BOOL, cel.Type.INT, cel.Type.STRING
_MAP, _LIST = cel.Type.MAP, cel.Type.LIST
_SUFFIXES = {
    "n": Decimal(10) ** -9, "u": Decimal(10) ** -6, "m": Decimal(10) ** -3, "": Decimal(1),
    "k": Decimal(10) ** 3, "M": Decimal(10) ** 6, "G": Decimal(10) ** 9, "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15, "E": Decimal(10) ** 18, "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20, "Gi": Decimal(2) ** 30, "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50, "Ei": Decimal(2) ** 60,
}  # fmt: skip
_QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]i?|))$")


def quantity_value(text: str) -> Decimal:
    """The number of a quantity such as `500m` or `2Gi`."""
    match = _QUANTITY.match(text)
    if match is None or (match[3] or "") not in _SUFFIXES:
        message = f"quantity must match the form NUMBER[SUFFIX], got {text!r}"
        raise ValueError(message)
    number = Decimal(match[1] + (match[2] or ""))
    return number * _SUFFIXES[match[3] or ""]


def _is_quantity(text: str) -> bool:
    try:
        quantity_value(text)
    except ValueError:
        return False
    return True


def _compare(left: Any, right: Any) -> int:
    one, other = quantity_value(_amount(left)), quantity_value(_amount(right))
    return (one > other) - (one < other)


def _amount(value: Any) -> str:
    """A quantity is carried through CEL as a map of one member."""
    return str(value["quantity"]) if isinstance(value, dict) else str(value)


def _quantity(text: str) -> dict[str, str]:
    quantity_value(text)
    return {"quantity": text}


def _find(text: str, pattern: str) -> str:
    match = re.search(pattern, text)
    return match[0] if match else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [match[0] for match in re.finditer(pattern, text)]


def _is_sorted(items: list[Any]) -> bool:
    return all(one <= other for one, other in pairwise(items))


def _function(name: str, parameters: list[Any], result: Any, call: Any) -> Any:
    overload = cel.Overload(f"k8s_{name}_{len(parameters)}_member", result, parameters, True, call)
    return cel.FunctionDecl(name, [overload])


def _functions() -> list[Any]:
    quantity = cel.Overload("k8s_quantity", _MAP, [_STRING], False, _quantity)
    is_quantity = cel.Overload("k8s_is_quantity", _BOOL, [_STRING], False, _is_quantity)
    return [
        cel.FunctionDecl("quantity", [quantity]),
        cel.FunctionDecl("isQuantity", [is_quantity]),
        _function("isGreaterThan", [_MAP, _MAP], _BOOL, lambda a, b: _compare(a, b) > 0),
        _function("isLessThan", [_MAP, _MAP], _BOOL, lambda a, b: _compare(a, b) < 0),
        _function("compareTo", [_MAP, _MAP], _INT, _compare),
        _function("asInteger", [_MAP], _INT, lambda q: int(quantity_value(_amount(q)))),
        _function("find", [_STRING, _STRING], _STRING, _find),
        _function("findAll", [_STRING, _STRING], cel.Type.List(_STRING), _find_all),
        _function("isSorted", [_LIST], _BOOL, _is_sorted),
        _function("sum", [_LIST], _DYN, sum),
        _function("min", [_LIST], _DYN, min),
        _function("max", [_LIST], _DYN, max),
    ]


@lru_cache(maxsize=1)
def environment() -> Any:
    """The environment in which rules are compiled: `self`, `oldSelf` and all functions."""
    return cel.NewEnv(
        variables={"self": _DYN, "oldSelf": _DYN, "hasOldSelf": _BOOL, "x": _STRING},
        extensions=[
            ext_strings.ExtStrings(),
            ext_math.ExtMath(),
            ext_encoders.ExtEncoders(),
            ext_optional.ExtOptional(),
        ],
        functions=_functions(),
    )
