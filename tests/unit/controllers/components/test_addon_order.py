"""Tests of the order of addons: the declared order, then the order of names."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.components.addon_order import (
    AddonOrderConstraints,
    find_unsatisfiable_order,
    is_order_declared,
    order_instances,
)
from reconciler.controllers.components.field_findings import FieldFinding
from reconciler.controllers.components.model import AddonInstance

AT = ("spec", "platformAddons")
NAMES = "abcdef"


def format_order(names: str, **constraints: AddonOrderConstraints) -> str:
    """Return the order of instances as `addon` or `addon/id`, or the finding code and the cycle."""
    instances = [AddonInstance(*name.split("/")) for name in names.split()]
    result = order_instances(instances, constraints, AT)
    if isinstance(result, FieldFinding):
        return f"{result.code.name}: {result.message.partition('addons: ')[2]}"
    return " ".join(str(addon_instance).removesuffix("/default") for addon_instance in result)


@pytest.mark.parametrize(
    ("names", "constraints", "expected"),
    [
        pytest.param("c a b", {}, "a b c", id="names-where-nothing-is-declared"),
        pytest.param(
            "tls volume init", {"init": AddonOrderConstraints(requires=("volume",))}, "tls volume init", id="requires"
        ),
        pytest.param("a b c", {"a": AddonOrderConstraints(after=("c",))}, "b c a", id="after"),
        pytest.param("a b c", {"c": AddonOrderConstraints(before=("a",))}, "b c a", id="before"),
        pytest.param(
            "a b", {"a": AddonOrderConstraints(("x",), ("y",), ("z",))}, "a b", id="row-46-absent-names-have-no-effect"
        ),
        pytest.param(
            "b/2 a b/1", {"a": AddonOrderConstraints(after=("b",))}, "b/1 b/2 a", id="every-instance-of-the-other"
        ),
        pytest.param(
            "a/2 a/1 b", {"a": AddonOrderConstraints(after=("b",))}, "b a/1 a/2", id="every-instance-of-its-own"
        ),
        pytest.param("a/2 b a/10", {}, "a/10 a/2 b", id="ids-by-code-points"),
        pytest.param("a B", {}, "B a", id="names-by-code-points"),
        pytest.param("a b", {"b": AddonOrderConstraints(("a", "a"), ("a",))}, "a b", id="declared-more-than-once"),
        pytest.param("", {}, "", id="no-instances"),
        pytest.param(
            "b a",
            {"a": AddonOrderConstraints(("a",))},
            'AddonOrderCycle: a → a; causes of the cycle: "a" requires "a"',
            id="row-45-requires-itself",
        ),
        pytest.param(
            "a",
            {"a": AddonOrderConstraints(before=("a",))},
            'AddonOrderCycle: a → a; causes of the cycle: "a" has loadOrder.before "a"',
            id="itself",
        ),
        pytest.param(
            "a b",
            {"a": AddonOrderConstraints(before=("b",)), "b": AddonOrderConstraints(before=("a",))},
            'AddonOrderCycle: a → b → a; causes of the cycle: "a" has loadOrder.before "b", "b" has loadOrder.before "a"',
            id="row-47-each-before-the-other",
        ),
        pytest.param(
            "a m z/1 z/2 n",
            {
                "z": AddonOrderConstraints(("n",)),
                "n": AddonOrderConstraints(after=("m",)),
                "m": AddonOrderConstraints(("z",)),
                "a": AddonOrderConstraints(("z",)),
            },
            'AddonOrderCycle: m → n → z → m; causes of the cycle: "n" has loadOrder.after "m", "z" requires "n", "m" requires "z"',
            id="addon-outside-of-the-cycle-is-not-listed",
        ),
    ],
)
def test_order_of_instances(names: str, constraints: dict[str, AddonOrderConstraints], expected: str) -> None:
    assert format_order(names, **constraints) == expected


def test_order_of_a_database_init_addon() -> None:
    """A stable sort by name does not give this order."""
    names = ("tls-certificate", "persistent-volume", "database-init")
    constraints = {"database-init": AddonOrderConstraints(requires=("persistent-volume",))}

    result = order_instances(map(AddonInstance, names), constraints, AT)

    assert not isinstance(result, FieldFinding)
    assert [addon_instance.addon for addon_instance in result] == [
        "persistent-volume",
        "database-init",
        "tls-certificate",
    ]


def test_cycle_is_reported_at_the_list_of_addons() -> None:
    result = order_instances([AddonInstance("a")], {"a": AddonOrderConstraints(requires=("a",))}, AT)

    assert isinstance(result, FieldFinding)
    assert result.path == AT
    assert result.message.startswith("spec.platformAddons must not contain a cycle in the order of addons")


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        pytest.param({}, [], id="nothing-declared"),
        pytest.param(
            {"plat": AddonOrderConstraints(after=("dev",))},
            ['platform addon "plat", whose loadOrder.after contains the developer addon "dev"'],
            id="platform-after-developer",
        ),
        pytest.param(
            {"dev": AddonOrderConstraints(before=("plat",))},
            ['developer addon "dev", whose loadOrder.before contains the platform addon "plat"'],
            id="developer-before-platform",
        ),
        pytest.param({"dev": AddonOrderConstraints(after=("plat",))}, [], id="developer-after-platform"),
        pytest.param({"plat": AddonOrderConstraints(before=("dev",))}, [], id="platform-before-developer"),
        pytest.param({"plat": AddonOrderConstraints(after=("gone",))}, [], id="absent-addon"),
        pytest.param(
            {"plat": AddonOrderConstraints(after=("dev", "dev"))},
            ['platform addon "plat", whose loadOrder.after contains the developer addon "dev"'],
            id="reported-once",
        ),
    ],
)
def test_unsatisfiable_order_is_reported(constraints: dict[str, AddonOrderConstraints], expected: list[str]) -> None:
    field_findings = find_unsatisfiable_order(["plat", "other"], ["dev"], constraints, AT)

    assert [
        field_finding.message.partition(", but")[0].partition("uses the ")[2] for field_finding in field_findings
    ] == expected
    assert {field_finding.code.name for field_finding in field_findings} <= {"LoadOrderUnsatisfiable"}


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        pytest.param("a", "b", True, id="the-one-declares-it"),
        pytest.param("b", "a", True, id="the-other-declares-it"),
        pytest.param("b", "c", True, id="by-requires"),
        pytest.param("a", "c", False, id="a-chain-of-declarations-is-none-between-its-ends"),
        pytest.param("a", "d", False, id="nothing-declared"),
        pytest.param("a", "a", False, id="two-instances-of-one"),
    ],
)
def test_order_is_declared_directly(text: str, other: str, expected: bool) -> None:
    constraints = {"a": AddonOrderConstraints(after=("b",)), "b": AddonOrderConstraints(requires=("c",))}

    assert is_order_declared(AddonInstance(text, "1"), AddonInstance(other, "2"), constraints) == expected


name_tuples = st.lists(st.sampled_from(NAMES), max_size=2).map(tuple)
constraint_maps = st.dictionaries(
    st.sampled_from(NAMES), st.builds(AddonOrderConstraints, name_tuples, name_tuples, name_tuples), max_size=4
)
instance_lists = st.lists(st.builds(AddonInstance, st.sampled_from(NAMES), st.sampled_from("12")), unique=True)


def list_order_pairs(
    instances: list[AddonInstance], constraints: dict[str, AddonOrderConstraints]
) -> list[tuple[AddonInstance, AddonInstance]]:
    """Return all pairs of instances of which the first must run before the second."""
    values = []
    for addon_instance in instances:
        addon_constraints = constraints.get(addon_instance.addon, AddonOrderConstraints())
        for other in instances:
            values += [(other, addon_instance)] * (
                other.addon in (*addon_constraints.requires, *addon_constraints.after)
            )
            values += [(addon_instance, other)] * (other.addon in addon_constraints.before)
    return values


def order_naively(instances: list[AddonInstance], constraints: dict[str, AddonOrderConstraints]) -> list[AddonInstance]:
    """Return the order with a reference implementation that takes one instance at a time."""
    remaining, addon_instances = sorted(instances), list[AddonInstance]()
    ordered_pairs = list_order_pairs(instances, constraints)
    while free := [
        addon_instance
        for addon_instance in remaining
        if all(first in addon_instances for first, second in ordered_pairs if second == addon_instance)
    ]:
        addon_instances.append(free[0])
        remaining.remove(free[0])
    return addon_instances


@given(instance_lists, constraint_maps, st.randoms())
def test_any_declarations_give_the_reference_order_or_a_cycle(instances, constraints, random) -> None:  # type: ignore[no-untyped-def]
    slow = order_naively(instances, constraints)
    shuffled = random.sample(instances, len(instances))

    result = order_instances(shuffled, constraints, AT)

    assert isinstance(result, FieldFinding) == (len(slow) < len(instances))
    if isinstance(result, FieldFinding):
        assert result == order_instances(instances, constraints, AT)
        names = result.message.partition("addons: ")[2].partition(";")[0].split(" → ")
        declared = {(first.addon, second.addon) for first, second in list_order_pairs(instances, constraints)}
        assert names[0] == names[-1] == min(names)
        assert set(pairwise(names)) <= declared
    else:
        assert list(result) == slow
