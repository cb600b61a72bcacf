"""`lazy_dataclasses.dataclass` has the behavior of `dataclasses.dataclass`, and generates methods at the first use."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, ClassVar

import pytest

from reconciler import lazy_dataclasses
from reconciler.lazy_dataclasses import field, fields, replace

Decorator = Callable[..., Any]
OPTIONS = ({}, {"frozen": True}, {"frozen": True, "eq": False}, {"eq": False}, {"frozen": True, "slots": True},
           {"slots": True}, {"frozen": True, "order": True})  # fmt: skip


def define_classes(decorator: Decorator, **options: bool) -> tuple[type, type]:
    """Define a class with each kind of field, and a subclass, with a decorator."""

    @decorator(**options)
    class Base:
        kind: ClassVar[str] = "base"
        name: str
        size: int = 3
        items: list[int] = field(default_factory=list)
        secret: str = field(default="s", repr=False, compare=False)
        computed: dict[str, int] = field(default_factory=dict, init=False, compare=False, repr=False)
        label: str = field(default="l", kw_only=True)

    @decorator(**options)
    class Derived(Base):
        size: int = 4
        extra: tuple[int, ...] = ()

    return Base, Derived


def describe(action: Callable[[], Any]) -> Any:
    """Return the result of an action, or the type and text of its exception."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - the test compares exceptions
        return type(error).__name__, str(error).replace(" at 0x", " ")


def observe(base: type, derived: type) -> dict[str, Any]:
    """Return all observable results of two classes."""
    value, other = base("a", items=[1]), derived("a", 3, [1], label="l")

    def assign() -> None:
        value.name = "b"

    def delete() -> None:
        del value.size

    return {
        "repr": repr(base("a")), "derived repr": repr(other), "undefined": describe(base),
        "unexpected": describe(lambda: base("a", unknown=1)), "positional keyword": describe(lambda: base(*"abcdef")),
        "equal": base("a", items=[1]) == value, "different": base("a") == value, "not compared": base("a", secret="x") == base("a"),
        "other class": value == other, "other type": value == 1, "not equal": base("a") != value,
        "hash": describe(lambda: hash(base("a")) == hash(base("a")) if base.__eq__ is not object.__eq__ else None),
        "hashable": describe(lambda: hash(base("a", items=()))  if base.__eq__ is not object.__eq__ else None),
        "less": describe(lambda: base("a") < base("b")),
        "replace": repr(replace(other, name="z", extra=(1,))), "fields": [item.name for item in fields(derived)],
        "asdict": dataclasses.asdict(other), "match": derived.__match_args__, "class variable": base.kind,
        "assign": describe(assign), "delete": describe(delete), "no shared default": base("a").items is not base("a").items,
        "computed": value.computed, "has dict": hasattr(value, "__dict__"),
    }  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "default")
def test_results_equal_those_of_the_standard_library(options: dict[str, bool]) -> None:
    expected = observe(*define_classes(dataclasses.dataclass, **options))
    assert observe(*define_classes(lazy_dataclasses.dataclass, **options)) == expected


@lazy_dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int = 2

    @cached_property
    def total(self) -> int:
        return self.x + self.y


@lazy_dataclasses.dataclass(frozen=True, slots=True)
class SlotPoint:
    x: int
    y: int = 2


@pytest.mark.parametrize("cls", [Point, SlotPoint])
def test_values_survive_pickle(cls: Any) -> None:
    assert pickle.loads(pickle.dumps(cls(1))) == cls(1)


def test_an_unpickled_value_can_be_compared_before_the_first_call_of_the_class() -> None:
    new = lazy_dataclasses.dataclass(frozen=True)(type("New", (), {"__annotations__": {"x": int}}))
    first, second = new.__new__(new), new.__new__(new)
    for value in (first, second):
        vars(value)["x"] = 1
    assert first == second
    assert hash(first) == hash(second)


def test_cached_properties_work() -> None:
    assert Point(1).total == 3


def test_methods_are_generated_at_the_first_use() -> None:
    @lazy_dataclasses.dataclass(frozen=True)
    class Value:
        x: int

    stub = vars(Value)["__init__"]
    value = Value(1)
    assert vars(Value)["__init__"] is not stub
    stub = vars(Value)["__eq__"]
    assert value == Value(1)
    assert vars(Value)["__eq__"] is not stub


def test_a_post_init_of_a_base_class_runs() -> None:
    class Base:
        def __post_init__(self) -> None:
            object.__setattr__(self, "doubled", vars(self)["x"] * 2)

    @lazy_dataclasses.dataclass(frozen=True)
    class Value(Base):
        x: int

    assert vars(Value(2)) == {"x": 2, "doubled": 4}


def test_own_methods_are_kept() -> None:
    @lazy_dataclasses.dataclass(frozen=True)
    class Value:
        x: int

        def __eq__(self, other: object) -> bool:
            return True

    assert Value(1) == Value(2)
    assert hash(Value(1)) == hash(Value(1)) != hash(Value(2))


def test_a_subclass_without_the_decorator_uses_the_methods_of_its_base() -> None:
    class Named(Point):
        pass

    assert Named(1) == Named(1) != Point(1)
    assert repr(Named(1)).endswith("Named(x=1, y=2)")


def test_several_threads_can_create_the_first_value() -> None:
    for _ in range(20):
        new = lazy_dataclasses.dataclass(frozen=True)(type("New", (), {"__annotations__": {"x": int}}))
        with ThreadPoolExecutor(8) as pool:
            values = list(pool.map(new, [1] * 8))
        assert set(values) == {new(1)}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("changes", [{}, {"name": "b"}, {"label": "m", "parts": (2,)}, {"unknown": 1}], ids=str)
def test_replace_returns_the_copy_of_the_standard_library(options: dict[str, bool], changes: dict[str, Any]) -> None:
    @lazy_dataclasses.dataclass(**options)
    class Part:
        name: str
        parts: tuple[int, ...] = field(default=(), compare=False)
        label: str = field(default="l", kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "name", self.name.upper())

    @lazy_dataclasses.dataclass(**options)
    class Derived(Part):
        extra: int = 0

    for item in (Part("a", (1,), label="k"), Derived("a", extra=5)):
        expected = describe(lambda item=item: repr(dataclasses.replace(item, **changes)))
        result = describe(lambda item=item: repr(replace(item, **changes)))
        assert result == expected or (result[0], expected[0]) == ("TypeError", "TypeError")


def test_replace_refuses_other_objects() -> None:
    with pytest.raises(TypeError):
        replace("text")  # type: ignore[type-var]
