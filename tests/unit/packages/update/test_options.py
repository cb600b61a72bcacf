"""Switches: what every deviation changes when it is turned off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from reconciler.krm.findings import Severity
from reconciler.packages.update import MergeOptions, create_compat_options
from tests.unit.packages.builders import texts
from tests.unit.packages.update.builders import SAFE, package, run, sub, thing
from tests.unit.packages.update.test_three_way import CRD, custom

A, B = thing("a", "1"), thing("b", "1")
IDENTIFIED = thing("x\n  annotations:\n    internal.kpt.dev/upstream-identifier: '|ConfigMap|default|a'", "1")
FOLLOWS = sub("remote", "r d v1", "c1")
Sides = tuple[Mapping[str, str], Mapping[str, str], Mapping[str, str]]

CASES: dict[str, tuple[Sides, Mapping[str, str], Mapping[str, str]]] = {
    "follow_moves": (
        ({"r.yaml": A}, {"r.yaml": thing("a", "2")}, {"m.yaml": A}),
        {"m.yaml": thing("a", "2")},
        {"m.yaml": A},
    ),
    "match_identifiers": (
        ({"r.yaml": A}, {"r.yaml": thing("a", "2")}, {"r.yaml": IDENTIFIED}),
        {"r.yaml": IDENTIFIED.replace('value: 1', "value: 2")},
        {"r.yaml": IDENTIFIED},
    ),
    "take_untouched": (
        ({"r.yaml": f"# old\n---\n{A}"}, {"r.yaml": f"# new\n---\n{B}"}, {"r.yaml": f"# old\n---\n{A}"}),
        {"r.yaml": f"# new\n---\n{B}"},
        {"r.yaml": f"# old\n---\n{B}"},
    ),
    "remember_deletions": (
        ({"n.txt": "1"}, {"n.txt": "2"}, {}),
        {},
        {"n.txt": "2"},
    ),
    "keep_untouched": (
        ({"r.yaml": f"{A}---\n{A}"}, {"r.yaml": f"{A}---\n{A}"}, {"r.yaml": f"{A}---\n{A}"}),
        {"r.yaml": f"{A}---\n{A}"},
        {"r.yaml": f"{A}---\n{A}"},
    ),
    "crds_of_all_sides": (
        ({"l.yaml": custom("a")}, {"l.yaml": custom("a", "new"), "crd.yaml": CRD}, {"l.yaml": custom("a", "mine")}),
        {"l.yaml": custom("a", "mine", "new"), "crd.yaml": CRD.lstrip()},
        {"l.yaml": custom("a", "new"), "crd.yaml": CRD.lstrip()},
    ),
    "vendored": (
        (
            {"s/Kptfile": FOLLOWS, "s/r.yaml": A},
            {"s/Kptfile": FOLLOWS, "s/r.yaml": B},
            {"s/Kptfile": FOLLOWS, "s/r.yaml": A},
        ),
        {"s/Kptfile": FOLLOWS, "s/r.yaml": B},
        {"s/Kptfile": FOLLOWS, "s/r.yaml": A},
    ),
}  # fmt: skip


def without_switch(name: str) -> MergeOptions:
    switched: dict[str, Any] = {name: False}
    return replace(SAFE, **switched)


@pytest.mark.parametrize("name", CASES)
def test_a_switch(name: str) -> None:
    sides, on, off = CASES[name]
    trees = [package(files) for files in sides]
    with_it = run(trees)
    without = run(trees, without_switch(name))

    assert texts(with_it.files.without_files("Kptfile")) == on
    assert texts(without.files.without_files("Kptfile")) == off
    assert with_it != without


def test_a_broken_file_ends_the_update_where_it_is_not_isolated() -> None:
    trees = [package({"r.yaml": A, "x.yaml": text}) for text in ("a: [", "a: [1", "a: [2")]
    local = trees[2].with_files({"r.yaml": B.encode()})
    result = run([*trees[:2], local], replace(SAFE, isolate_broken=False))

    assert result.files == local
    assert [(finding.code, finding.severity, finding.location.file) for finding in result.findings] == [
        ("YamlSyntax", Severity.ERROR, "x.yaml")
    ]


def test_every_deviation_is_off_in_compat() -> None:
    switches = [field.name for field in fields(MergeOptions) if field.type == "bool"]

    assert {*CASES, "isolate_broken", "match_positions"} == set(switches)
    assert not any(getattr(create_compat_options(), name) for name in switches)


def test_what_a_local_krmignore_hides_counts_as_deleted_in_compat() -> None:
    sides = [
        package({"r.yaml": A}),
        package({"r.yaml": thing("a", "2")}),
        package({"r.yaml": A, ".krmignore": "r.yaml\n"}),
    ]
    result = run(sides, create_compat_options())

    assert result.files == sides[2]


def test_documents_are_ordered_by_their_merged_number_in_compat() -> None:
    c = thing("c", "1")
    sides = [package({"r.yaml": "---\n".join(item)}) for item in ([A, B], [B, A], [A, B, c])]
    result = run(sides, create_compat_options())

    assert texts(result.files)["r.yaml"] == "---\n".join([B, A, c])


@pytest.mark.parametrize("path", [".gitignore", ".github/owners.txt"])
def test_paths_with_git_in_their_name_stay_in_compat(path: str) -> None:
    sides = [package({path: text}) for text in "121"]
    result = run(sides, create_compat_options())

    assert texts(result.files)[path] == "1"


def test_a_kptfile_that_upstream_took_away_stays_without_upstreams_part_in_compat() -> None:
    kptfile = sub("s") + "info:\n  site: x\n"
    sides = [package({"s/Kptfile": kptfile, "s/r.yaml": A}), package({"s/r.yaml": A}), package({"s/Kptfile": kptfile})]
    result = run(sides, create_compat_options())

    assert texts(result.files)["s/Kptfile"] == sub("s") + "info: {}\n"
