"""Tests of merge options: the effect of each deviation when it is disabled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from reconciler.krm.findings import Severity
from reconciler.packages.update.options import MergeOptions, create_compat_options
from tests.unit.packages.builders import read_texts
from tests.unit.packages.update.builders import SAFE, build_package, format_kptfile, format_resource, run_update
from tests.unit.packages.update.test_three_way import CRD, format_custom_list

A, B = format_resource("a", "1"), format_resource("b", "1")
IDENTIFIED = format_resource("x\n  annotations:\n    internal.kpt.dev/upstream-identifier: '|ConfigMap|default|a'", "1")
FOLLOWS = format_kptfile("remote", "r d v1", "c1")
Sides = tuple[Mapping[str, str], Mapping[str, str], Mapping[str, str]]

CASES: dict[str, tuple[Sides, Mapping[str, str], Mapping[str, str]]] = {
    "follow_moves": (
        ({"r.yaml": A}, {"r.yaml": format_resource("a", "2")}, {"m.yaml": A}),
        {"m.yaml": format_resource("a", "2")},
        {"m.yaml": A},
    ),
    "match_identifiers": (
        ({"r.yaml": A}, {"r.yaml": format_resource("a", "2")}, {"r.yaml": IDENTIFIED}),
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
        ({"l.yaml": format_custom_list("a")}, {"l.yaml": format_custom_list("a", "new"), "crd.yaml": CRD}, {"l.yaml": format_custom_list("a", "mine")}),
        {"l.yaml": format_custom_list("a", "mine", "new"), "crd.yaml": CRD.lstrip()},
        {"l.yaml": format_custom_list("a", "new"), "crd.yaml": CRD.lstrip()},
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


def disable_option(name: str) -> MergeOptions:
    switched: dict[str, Any] = {name: False}
    return replace(SAFE, **switched)


@pytest.mark.parametrize("name", CASES)
def test_option_changes_the_result(name: str) -> None:
    sides, on, off = CASES[name]
    trees = [build_package(files) for files in sides]
    with_it = run_update(trees)
    without = run_update(trees, disable_option(name))

    assert read_texts(with_it.files.without_files("Kptfile")) == on
    assert read_texts(without.files.without_files("Kptfile")) == off
    assert with_it != without


def test_broken_file_stops_the_update_without_isolation() -> None:
    trees = [build_package({"r.yaml": A, "x.yaml": text}) for text in ("a: [", "a: [1", "a: [2")]
    local = trees[2].with_files({"r.yaml": B.encode()})
    result = run_update([*trees[:2], local], replace(SAFE, isolate_broken=False))

    assert result.files == local
    assert [(finding.code, finding.severity, finding.location.file) for finding in result.findings] == [
        ("YamlSyntax", Severity.ERROR, "x.yaml")
    ]


def test_every_deviation_is_off_in_compat() -> None:
    switches = [field.name for field in fields(MergeOptions) if field.type == "bool"]

    assert {*CASES, "isolate_broken", "match_positions", "merges_sops_documents"} == set(switches)
    assert not any(getattr(create_compat_options(), name) for name in switches)


def test_resource_in_a_local_krmignore_counts_as_deleted_in_compat() -> None:
    sides = [
        build_package({"r.yaml": A}),
        build_package({"r.yaml": format_resource("a", "2")}),
        build_package({"r.yaml": A, ".krmignore": "r.yaml\n"}),
    ]
    result = run_update(sides, create_compat_options())

    assert result.files == sides[2]


def test_documents_have_the_order_of_upstream_in_compat() -> None:
    c = format_resource("c", "1")
    sides = [build_package({"r.yaml": "---\n".join(item)}) for item in ([A, B], [B, A], [A, B, c])]
    result = run_update(sides, create_compat_options())

    assert read_texts(result.files)["r.yaml"] == "---\n".join([B, A, c])


@pytest.mark.parametrize("path", [".gitignore", ".github/owners.txt"])
def test_paths_that_contain_git_stay_in_compat(path: str) -> None:
    sides = [build_package({path: text}) for text in "121"]
    result = run_update(sides, create_compat_options())

    assert read_texts(result.files)[path] == "1"


def test_kptfile_that_upstream_deleted_stays_without_its_upstream_part_in_compat() -> None:
    kptfile = format_kptfile("s") + "info:\n  site: x\n"
    sides = [
        build_package({"s/Kptfile": kptfile, "s/r.yaml": A}),
        build_package({"s/r.yaml": A}),
        build_package({"s/Kptfile": kptfile}),
    ]
    result = run_update(sides, create_compat_options())

    assert read_texts(result.files)["s/Kptfile"] == format_kptfile("s") + "info: {}\n"
