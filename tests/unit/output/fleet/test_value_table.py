"""Tests of the tables of values for changes with many variants."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.output.fleet.model import ReviewChange
from reconciler.output.fleet.target_data import TargetData
from reconciler.output.fleet.value_table import MIN_VARIANTS, ValueCount
from tests.unit.output.fleet.builders import build_draft, build_index
from tests.unit.output.report.builders import CONFLICT

TARGETS = [f"c{number:02}" for number in range(30)]
BuildFiles = Callable[[int, str], dict[str, str]]


def format_config_map(name: str, **data: str) -> str:
    fields = "".join(f"  {key}: {value}\n" for key, value in data.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n{fields}"


def build_change(count: int, build_before: BuildFiles, build_after: BuildFiles) -> ReviewChange:
    """Return a change of this number of targets. The functions return the files of a target by its number."""
    drafts = (build_draft(name, build_before(i, name), build_after(i, name)) for i, name in enumerate(TARGETS[:count]))
    (change,) = build_index(*drafts).changes
    return change


def use_size(step: int) -> BuildFiles:
    return lambda number, _: {"s.yaml": format_config_map("settings", size=f'"{number + step}"')}


def test_variants_with_equal_fields_are_one_table() -> None:
    change = build_change(MIN_VARIANTS, use_size(0), use_size(1))

    (table,) = change.groups.tables
    (row,) = table.rows
    assert (row.resource, row.path, len(row.values)) == ("ConfigMap settings", "data.size", MIN_VARIANTS)
    assert (row.values[3], table.target_count) == (ValueCount("3 → 4", ("c03",)), MIN_VARIANTS)
    assert change.groups.others == ()
    assert row.format_line() == "ConfigMap settings: data.size 0 → 1 on 1, 1 → 2 on 1, 2 → 3 on 1, and 8 more"
    assert row.format_line(MIN_VARIANTS).endswith(", 10 → 11 on 1")


def test_few_variants_are_no_table() -> None:
    change = build_change(MIN_VARIANTS - 1, use_size(0), use_size(1))
    assert (change.groups.tables, change.groups.others) == ((), change.variants)


def test_values_of_several_targets_are_counted_per_field() -> None:
    def build(step: int) -> BuildFiles:
        return lambda number, _: {
            "s.yaml": format_config_map("settings", size=f'"{step + number % 2}"', other=f'"{step * (number + 1)}"')
        }

    change = build_change(20, build(1), build(3))

    rows = {row.path: row.format_line() for row in change.groups.tables[0].rows}
    assert rows["data.size"] == "ConfigMap settings: data.size 1 → 3 on 10, 2 → 4 on 10"


def test_names_of_targets_do_not_separate_values() -> None:
    def build(step: int) -> BuildFiles:
        return lambda number, name: {
            "s.yaml": format_config_map(f"settings-{name}", size=f'"{number + step}"', host=f"v{step}.{name}.example")
        }

    rows = build_change(MIN_VARIANTS, build(0), build(1)).groups.tables[0].rows

    assert {row.resource for row in rows} == {"ConfigMap settings-*"}
    (host,) = (row for row in rows if row.path == "data.host")
    assert [value.text for value in host.values] == ["v0.*.example → v1.*.example"]


def replace_last(clusters: list[TargetData], **fields: object) -> list[TargetData]:
    files = [use_size(step)(99, "") for step in (0, 1)]
    return [*clusters, build_draft("z", *files, **fields)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"conflicts": [CONFLICT]}, id="conflict"),
        pytest.param({"unmet_gates": ["reviewed"]}, id="unmet gate"),
    ],
)
def test_variants_with_a_reason_that_blocks_them_are_in_no_table(fields: dict[str, object]) -> None:
    clusters = [
        build_draft(name, use_size(0)(number, name), use_size(1)(number, name))
        for number, name in enumerate(TARGETS[:MIN_VARIANTS])
    ]
    (change,) = build_index(*replace_last(clusters, **fields)).changes

    assert len(change.groups.tables[0].variants) == MIN_VARIANTS
    assert [variant.members[0].target for variant in change.groups.others] == ["z"]


def test_variants_with_other_fields_are_in_no_table() -> None:
    def build(step: int) -> BuildFiles:
        return lambda number, _: {
            "s.yaml": format_config_map("settings", **{"size" if number else "speed": f'"{number + step}"'})
        }

    change = build_change(MIN_VARIANTS + 1, build(0), build(1))

    assert [row.path for row in change.groups.tables[0].rows] == ["data.size"]
    assert [variant.members[0].target for variant in change.groups.others] == ["c00"]


def test_added_resources_have_no_fields() -> None:
    change = build_change(MIN_VARIANTS, lambda _number, _name: {}, use_size(1))

    (row,) = change.groups.tables[0].rows
    assert row.format_line() == f"ConfigMap settings: added on {MIN_VARIANTS}"
