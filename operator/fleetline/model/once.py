"""A property that is worked out once, when it is first needed."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class once(Generic[Value]):  # noqa: N801 - used like a function
    """
    Decorate a method without arguments; later reads find its value in the object itself.

    Until Python 3.12 `functools.cached_property` holds a lock, which takes longer than the array
    operation that it keeps.
    """

    def __init__(self, work_out: Callable[[Any], Value]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, _owner: type, name: str) -> None:
        """Remember under which name it is read."""
        self._name = name

    def __get__(self, one: object, _owner: type) -> Value:
        """Work it out at the first read."""
        value = one.__dict__[self._name] = self._work_out(one)
        return value
