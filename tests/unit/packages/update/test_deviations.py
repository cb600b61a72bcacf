"""Deviations by number: every switch has one, and a number turns just its switch."""

from dataclasses import fields, replace

import pytest

from reconciler.krm.merge3 import COMPAT, SAFE
from reconciler.packages.update import MergeOptions, create_compat_options
from reconciler.packages.update.options import DEVIATIONS, build_merge_options


def switches(options: MergeOptions) -> dict[str, object]:
    mapping = {
        field.name: getattr(options, field.name) for field in fields(options) if field.name not in ("rules", "shapes")
    }
    return {**mapping, **{field.name: getattr(options.rules, field.name) for field in fields(options.rules)}}


@pytest.mark.parametrize("number", DEVIATIONS)
def test_a_number_turns_one_switch(number: str) -> None:
    before, after = switches(MergeOptions()), switches(build_merge_options("safe", {number: False}))

    assert [name for name in before if before[name] != after[name]] != []
    assert sum(before[name] != after[name] for name in before) == 1


def test_a_profile_is_its_deviations() -> None:
    assert build_merge_options("safe", {}).rules == SAFE
    assert build_merge_options("compat", {}).rules == COMPAT
    off = build_merge_options("safe", dict.fromkeys(DEVIATIONS, False))
    whole = switches(replace(create_compat_options(), profile="safe"))
    # whether remote subpackages are updated along is no deviation with a number
    assert {name for name, on in switches(off).items() if on != whole[name]} <= {"vendored"}
