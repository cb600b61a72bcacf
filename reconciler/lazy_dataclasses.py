"""Dataclasses that generate their methods at the first use, which makes the import of their modules fast.

`dataclass` in this module has the behavior of `dataclasses.dataclass`. The standard library compiles up to six methods
of each class when the module of the class is imported. A command imports hundreds of dataclasses, but uses only a
fraction of them. The compilation of all methods took half of the start-up time.

Import `dataclass`, `field` and the related functions from this module.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, FrozenInstanceError, asdict, field, fields
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["asdict", "dataclass", "field", "fields", "replace"]

_FIELD_OPTIONS = {"slots", "kw_only"}
_LAZY_OPTIONS = {"frozen", "eq", *_FIELD_OPTIONS}
_GENERATED_NAMES = {"__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"}

if TYPE_CHECKING:
    # Only type checkers read this branch. They support only the functions of the standard library.
    from dataclasses import dataclass, replace
else:

    def replace(instance: Any, /, **changes: Any) -> Any:
        """Return a copy of a dataclass instance with new values of some fields, like `dataclasses.replace`.

        This function is several times faster than `dataclasses.replace`, which inspects every field in each call.
        """
        cls = instance.__class__
        copy = _COPY_FUNCTIONS.get(cls)
        if copy is None:
            copy = _COPY_FUNCTIONS[cls] = _generate_copy(cls)
        return copy(instance, **changes)

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Make a class a dataclass, like `dataclasses.dataclass`.

        The methods are generated at their first use. If the class itself defines a method such as `__eq__`, or has
        options such as `order`, the standard library generates all methods when the class is created.
        """
        if cls is None:
            return lambda decorated: dataclass(decorated, **options)
        if not options.keys() <= _LAZY_OPTIONS or not _GENERATED_NAMES.isdisjoint(vars(cls)):
            return dataclasses.dataclass(**options)(cls)
        # Set a docstring, because the standard library would otherwise compute a docstring from the signature, which is
        # slow.
        cls.__doc__ = cls.__doc__ or cls.__name__
        # Collect the fields now, because `fields`, `replace` and subclasses read them. With these arguments, the
        # standard library generates none of the methods.
        field_options = {name: value for name, value in options.items() if name in _FIELD_OPTIONS}
        cls = dataclasses.dataclass(init=False, repr=False, eq=False, **field_options)(cls)
        _add_methods(cls, is_frozen=options.get("frozen", False), has_eq=options.get("eq", True))
        return cls


_COPY_FUNCTIONS: dict[type, Callable[..., Any]] = {}


def _generate_copy(cls: type) -> Any:
    """Return a function that copies an instance of `cls`. Its keyword arguments are the new values of fields."""
    items = fields(cls)
    if not all(item.init for item in items) or any(item.name.startswith("__") for item in items):
        return dataclasses.replace
    parameters = [f"{item.name}=_MISSING" for item in items]
    values = [f"{item.name}=__copied.{item.name} if {item.name} is _MISSING else {item.name}" for item in items]
    scope = {"_MISSING": MISSING, "_cls": cls}
    return _compile("_copy", ["__copied", "/", "*", *parameters], [f"return _cls({', '.join(values)})"], scope)


def _add_methods(cls: type, *, is_frozen: bool, has_eq: bool) -> None:
    methods: dict[str, Any] = {
        "__init__": _create_stub(cls, "__init__", lambda: _generate_init(cls, is_frozen=is_frozen)),
        "__repr__": _format_repr,
    }
    if has_eq:
        methods["__eq__"] = _create_stub(cls, "__eq__", lambda: _generate_eq(cls))
        methods["__hash__"] = _create_stub(cls, "__hash__", lambda: _generate_hash(cls)) if is_frozen else None
    if is_frozen:
        methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
        if "__slots__" in vars(cls):
            # Without these methods, pickle would assign the fields, which a frozen class does not allow.
            methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
    for name, method in methods.items():
        setattr(cls, name, method)


def _create_stub(cls: type, name: str, generate: Callable[[], Any]) -> Callable[..., Any]:
    """Return a method that replaces itself with the generated method, and calls the generated method."""

    def stub(self: object, *arguments: Any, **named: Any) -> Any:
        # No lock is necessary: if two threads generate the method at the same time, both methods are equivalent.
        method = generate()
        method.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, method)
        return method(self, *arguments, **named)

    return stub


def _generate_init(cls: type, *, is_frozen: bool) -> Any:
    scope: dict[str, Any] = {"_MISSING": MISSING, "_set_field": object.__setattr__}
    positional, keyword, lines = ["self"], ["*"], []
    for item in fields(cls):
        name = item.name
        parameter = value = name
        if item.default_factory is not MISSING:
            scope[f"_create_{name}"] = item.default_factory
            parameter = f"{name}=_MISSING"
            value = f"_create_{name}() if {name} is _MISSING else {name}" if item.init else f"_create_{name}()"
        elif item.default is not MISSING:
            scope[f"_default_{name}"] = item.default
            parameter, value = f"{name}=_default_{name}", name if item.init else f"_default_{name}"
        elif not item.init:
            continue
        if item.init:
            (keyword if item.kw_only else positional).append(parameter)
        lines.append(f"_set_field(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return _compile("__init__", [*positional, *(keyword if len(keyword) > 1 else ())], lines or ["pass"], scope)


def _generate_eq(cls: type) -> Any:
    names = [item.name for item in fields(cls) if item.compare]
    is_equal = f"{_format_tuple('self', names)} == {_format_tuple('other', names)}"
    line = f"return {is_equal} if other.__class__ is self.__class__ else NotImplemented"
    return _compile("__eq__", ["self", "other"], [line], {})


def _generate_hash(cls: type) -> Any:
    names = [item.name for item in fields(cls) if (item.compare if item.hash is None else item.hash)]
    return _compile("__hash__", ["self"], [f"return hash({_format_tuple('self', names)})"], {})


def _format_tuple(value: str, names: Iterable[str]) -> str:
    return f"({''.join(f'{value}.{name}, ' for name in names)})"


def _compile(name: str, parameters: Sequence[str], lines: Sequence[str], scope: dict[str, Any]) -> Any:
    # It is safe to execute this code, because it contains only the names of fields, which are identifiers in a class.
    exec(f"def {name}({', '.join(parameters)}):\n  " + "\n  ".join(lines), scope)  # noqa: S102  # nosec
    return scope[name]


@recursive_repr()
def _format_repr(self: Any) -> str:
    values = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
    return f"{self.__class__.__qualname__}({', '.join(values)})"


def _refuse_assignment(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[object]:
    return [getattr(self, item.name) for item in fields(self)]


def _set_state(self: Any, state: Iterable[object]) -> None:
    for item, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
