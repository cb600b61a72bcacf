"""Where a value that no rule set is from, by what the source and the edits tell, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from reconciler.packages.package import Package, PackageResource
from reconciler.planning.outcome import Rendered
from reconciler.planning.source import Source
from reconciler.reporting.origins import Origins
from tests.unit.reporting.world import tree

FILE = "web.yaml"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web{more}}}\ndata: {data}\n"


def text(data: str, more: str = "") -> str:
    return MAP.format(data=data, more=more)


def origins(
    stages: Sequence[Mapping[str, str]], path: tuple[str, ...] = ("data",), ruled: Sequence[tuple[str, ...]] = ()
) -> dict[str, str]:
    """Return kinds by path; the trees are as it came, with the branch's edits, with the draft's, and as rendered."""
    came, merged, drafted, files = map(tree, stages)
    rendered = Rendered(files, source=Source(drafted, merged, came))
    resource: PackageResource = Package(files).resources[0]
    return {"/".join(one.path): one.kind for one in Origins(rendered).of(resource, path, ruled)}


def of_data(stages: Sequence[str], *ruled: str) -> dict[str, str]:
    return origins([{FILE: text(one)} for one in stages], ruled=[("data", one) for one in ruled])


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        pytest.param(["{a: 1}"] * 4, {"data": "source"}, id="as-it-came"),
        pytest.param(["{a: 1, b: 1}", "{a: 2, b: 1}", "{a: 2, b: 1}", "{a: 2, b: 1}"],
                     {"data/a": "edit", "data/b": "source"}, id="edited-on-the-branch"),
        pytest.param(["{a: 1, b: 1}", "{a: 1, b: 1}", "{a: 2, b: 1}", "{a: 2, b: 1}"],
                     {"data/a": "draft", "data/b": "source"}, id="edited-on-the-draft"),
        pytest.param(["{a: 1}", "{a: 2}", "{a: 1}", "{a: 1}"], {"data/a": "draft"}, id="put-back-on-the-draft"),
        pytest.param(["{a: 1, b: 1}", "{a: 1, b: 1}", "{a: 1, b: 1}", "{a: 2, b: 1}"],
                     {"data/a": "render", "data/b": "source"}, id="rendered"),
        pytest.param(["{a: 1}", "{a: 2}", "{a: 2}", "{a: 3}"], {"data/a": "render"}, id="rendered-over-an-edit"),
        pytest.param(["{a: 1}"] * 3 + ["{a: '1'}"], {"data/a": "render"}, id="a-type-is-part-of-a-value"),
        pytest.param(["{a: [1, 2]}"] * 3 + ["{a: [1, 3]}"], {"data/a/0": "source", "data/a/1": "render"}, id="item"),
        pytest.param(["{a: [1, 2]}"] * 3 + ["{a: [0, 1, 2]}"], {"data/a": "render"}, id="list-of-another-length"),
        pytest.param(["{a: {}}"] * 3 + ["{a: {}, b: {}}"], {"data/a": "source", "data/b": "render"}, id="empty"),
    ],
)  # fmt: skip
def test_kinds(stages: list[str], expected: dict[str, str]) -> None:
    assert of_data(stages) == expected


def test_what_is_ruled_is_told_by_others() -> None:
    assert of_data(["{a: 1, b: 1}"] * 3 + ["{a: 2, b: 1}"], "a") == {"data/b": "source"}
    assert origins([{FILE: text("{a: 1}")}] * 4, ("data", "a"), [("data",)]) == {}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({FILE: text("{a: 1}")}, {"moved.yaml": text("{a: 1}")}, "source", id="moved-file"),
        pytest.param({FILE: text("{a: 1}")}, {FILE: text("{a: 1}", ", namespace: x")}, "source", id="namespace"),
        pytest.param({FILE: text("{a: 1}")}, {"moved.yaml": text("{a: 1}", ", namespace: x")}, "unknown", id="both"),
        pytest.param({FILE: text("{a: 1}")}, {FILE: text("{a: 1}").replace("web", "app")}, "unknown", id="renamed"),
        pytest.param({}, {FILE: text("{a: 1}")}, "unknown", id="made-by-a-function"),
        pytest.param(
            {FILE: text("{a: 2}"), "b.yaml": text("{a: 1}")}, {"b.yaml": text("{a: 1}"), FILE: text("{a: 2}")},
            "source", id="of-two-the-one-in-this-file",
        ),
    ],
)  # fmt: skip
def test_which_resource_of_the_source_it_is(before: dict[str, str], after: dict[str, str], expected: str) -> None:
    assert origins([before, before, before, after]) == {"data": expected}


def test_a_resource_that_people_added_is_theirs_whole() -> None:
    added = {FILE: text("{a: 1}")}

    assert origins([{}, added, added, added]) == {"data/a": "edit"}
    assert origins([{}, {}, added, added]) == {"data/a": "draft"}
