"""Tests of deviations: every option has a number, and a number changes only its option."""

from dataclasses import fields, replace

import pytest

from reconciler.krm.merge3 import COMPAT, SAFE
from reconciler.packages.update.options import DEVIATIONS, MergeOptions, build_merge_options, create_compat_options


def list_switches(options: MergeOptions) -> dict[str, object]:
    mapping = {
        field.name: getattr(options, field.name) for field in fields(options) if field.name not in ("rules", "shapes")
    }
    return {**mapping, **{field.name: getattr(options.rules, field.name) for field in fields(options.rules)}}


@pytest.mark.parametrize("number", DEVIATIONS)
def test_number_changes_one_switch(number: str) -> None:
    before, after = list_switches(MergeOptions()), list_switches(build_merge_options("safe", {number: False}))

    assert [name for name in before if before[name] != after[name]] != []
    assert sum(before[name] != after[name] for name in before) == 1


def test_profile_is_the_sum_of_its_deviations() -> None:
    assert build_merge_options("safe", {}).rules == SAFE
    assert build_merge_options("compat", {}).rules == COMPAT
    off = build_merge_options("safe", dict.fromkeys(DEVIATIONS, False))
    whole = list_switches(replace(create_compat_options(), profile="safe"))
    # The update of remote subpackages is not a deviation with a number.
    assert {name for name, on in list_switches(off).items() if on != whole[name]} <= {"vendored"}
