"""Tests of updates of whole packages in the profile safe: merged files, conflicts and findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.catalog.files import File
from reconciler.krm.findings import Severity
from reconciler.krm.merge3 import SAFE as RULES
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import compose
from reconciler.packages.clone import ResolvedUpstream, add_comments_to_content
from reconciler.packages.kptfile import Kptfile, read_kptfile
from reconciler.packages.parsing import parse_cached
from reconciler.packages.update import resource_files as reading
from reconciler.packages.update import resource_merge as resources
from reconciler.packages.update.options import MergeOptions, create_compat_options
from reconciler.packages.update.three_way import get_update_strategy, merge_packages, update_package
from tests.unit.packages.builders import build_tree, read_texts
from tests.unit.packages.update.builders import (
    SAFE,
    build_package,
    format_kptfile,
    format_resource,
    run_update,
    update_resource_file,
)

LOCK = ResolvedUpstream("https://example.com/blueprints.git", "app", "v2", "c0ffee")
LOCAL_WINS = replace(SAFE, rules=replace(RULES, winner="local"))
A, B, C = format_resource("a", "1"), format_resource("b", "1"), format_resource("c", "1")


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(A, A, "# mine\n" + A, "# mine\n" + A, id="unchanged-upstream"),
        pytest.param(A, "# new\n" + A, A, "# new\n" + A, id="unchanged-here-takes-upstreams-bytes"),
        pytest.param(A, A, "", "", id="deleted-here"),
        pytest.param(A, "", A, "", id="deleted-upstream"),
        pytest.param("", A, "", A, id="new-upstream"),
        pytest.param("", "", A, A, id="new-here"),
        pytest.param("", A, A, A, id="new-on-both-sides-alike"),
        pytest.param(A, f"{A}---\n{B}", f"# mine\n{A}", f"# mine\n{A}---\n{B}", id="new-resource-in-an-edited-file"),
        pytest.param(f"{A}---\n{B}", A, f"{C}---\n{A}---\n{B}", f"{C}---\n{A}", id="resource-removed-upstream"),
        pytest.param(f"{A}---\n{B}", f"{A}---\n{B}---\n{C}", A, f"{A}---\n{C}", id="resource-removed-here"),
        pytest.param(
            f"{A}---\n{B}",
            A,
            f"{A}---\n{add_comments_to_content(B.encode(), 'compat').decode()}",  # type: ignore[union-attr]
            A,
            id="resource-removed-upstream-that-kpt-marked-here",
        ),
        pytest.param(A, f"{B}---\n{A}", f"{A}---\n{C}", f"{B}---\n{A}---\n{C}", id="new-one-in-front"),
        pytest.param(
            f"{A}---\n{B}", f"{B}---\n{A}", f"{A}---\n{C}---\n{B}", f"{B}---\n{C}---\n{A}", id="upstreams-new-order"
        ),
        pytest.param(
            A,
            format_resource("a", "2"),
            format_resource("site-a", "1").replace("metadata:", "metadata: # kpt-merge: /a"),
            format_resource("site-a", "2").replace("metadata:", "metadata: # kpt-merge: /a"),
            id="renamed-here-with-a-merge-comment",
        ),
        pytest.param(
            A,
            format_resource("a", "2"),
            format_resource("site-a", "1").replace("metadata:", "metadata: # kpt-merge: default/a"),
            format_resource("site-a", "2").replace("metadata:", "metadata: # kpt-merge: default/a"),
            id="merge-comment-with-default",
        ),
        pytest.param(
            A,
            format_resource("a", "2"),
            format_resource("x\n  annotations:\n    internal.kpt.dev/upstream-identifier: '|ConfigMap|default|a'", "1"),
            format_resource("x\n  annotations:\n    internal.kpt.dev/upstream-identifier: '|ConfigMap|default|a'", "2"),
            id="renamed-here-with-an-identifier",
        ),
        pytest.param("# a\n", "# b\n", "# a\n", "# b\n", id="no-resource-at-all"),
        pytest.param("x: 1\ny: 1\n", "x: 2\ny: 1\n", "x: 1\ny: 3\n", "x: 2\ny: 3\n", id="values-without-a-name"),
        pytest.param(A, "# note\n" + A, A.replace("metadata:", "metadata: # kpt-merge: /a"), "# note\n" + A.replace(
            "metadata:", "metadata: # kpt-merge: /a"), id="only-a-merge-comment-here"),
    ],
)  # fmt: skip
def test_merge_of_a_resource_file(origin: str, updated: str, local: str, expected: str) -> None:
    text, result = update_resource_file(origin, updated, local)

    assert text == expected
    assert (result.conflicts, result.findings) == ((), ())


@pytest.mark.parametrize(
    ("origin", "updated", "local", "options", "expected", "values"),
    [
        pytest.param(
            A,
            format_resource("a", "2"),
            format_resource("a", "3"),
            SAFE,
            format_resource("a", "2"),
            ("field", "upstream", "D2"),
            id="field",
        ),
        pytest.param(
            A,
            format_resource("a", "2"),
            format_resource("a", "3"),
            LOCAL_WINS,
            format_resource("a", "3"),
            ("field", "local", "D2"),
            id="field-local",
        ),
        pytest.param(
            A,
            "",
            format_resource("a", "3"),
            SAFE,
            format_resource("a", "3"),
            ("resource", "local", "deleted-upstream"),
            id="gone-upstream",
        ),
        pytest.param(
            A, "", f"# mine\n{A}", SAFE, f"# mine\n{A}", ("resource", "local", "deleted-upstream"), id="gone-and-noted"
        ),
        pytest.param(
            A, format_resource("a", "2"), "", SAFE, "", ("resource", "local", "deleted-locally"), id="gone-here"
        ),
        pytest.param("a: [", "a: [1", "a: [2", SAFE, "a: [1", ("file", "upstream", "D17"), id="broken"),
        pytest.param("a: [", "a: [1", "a: [2", LOCAL_WINS, "a: [2", ("file", "local", "D17"), id="broken-local"),
        pytest.param(A, "a: [", B, SAFE, B, ("file", "local", "D17"), id="broken-upstream"),
        pytest.param(A, B, "a: [", LOCAL_WINS, B, ("file", "upstream", "D17"), id="broken-here"),
        pytest.param("# a\n", "# b\n", "# c\n", SAFE, "# b\n", ("file", "upstream", "D17"), id="only-comments"),
        pytest.param(
            f"{A}---\n{A}", A, f"{A}---\n{A}---\n{B}", SAFE, A, ("file", "upstream", "D17"), id="a-resource-twice"
        ),
    ],
)
def test_changes_of_both_sides(
    origin: str, updated: str, local: str, options: MergeOptions, expected: str, values: tuple[str, str, str]
) -> None:
    text, result = update_resource_file(origin, updated, local, options)

    assert text == expected
    assert [(conflict.kind, conflict.chosen, conflict.rule) for conflict in result.conflicts] == [values]
    assert result.conflicts[0].file == "r.yaml"
    assert all(finding.severity is Severity.WARNING for finding in result.findings)


@pytest.mark.parametrize(
    ("origin", "local", "expected"),
    [
        pytest.param(A, A, A, id="the-last-ones-stay"),
        pytest.param(A, f"{A}---\n{B}", B, id="one-of-several-goes"),
    ],
)
def test_kpt_cannot_remove_the_last_resources(origin: str, local: str, expected: str) -> None:
    text, _ = update_resource_file(origin, "", local, create_compat_options())

    assert text == expected


def test_conflict_contains_its_resource_and_the_three_values() -> None:
    _, result = update_resource_file(A, "", format_resource("a", "3"))
    conflict = result.conflicts[0]

    assert conflict.resource == "ConfigMap/_cluster/a"
    assert (conflict.base["data"], conflict.local["data"]) == ({"value": 1}, {"value": 3})
    assert conflict.upstream is ABSENT


def test_locally_moved_resource_receives_the_change_of_upstream() -> None:
    origin, updated = (
        build_package({"r.yaml": f"{A}---\n{B}"}),
        build_package({"r.yaml": f"{format_resource('a', '2')}---\n{B}"}),
    )
    result = update_package(
        origin, updated, build_package({"r.yaml": B, "mine.yaml": f"{C}---\n{A}"}), "resource-merge", SAFE
    )

    assert read_texts(result.files.without_files("Kptfile")) == {
        "mine.yaml": f"{C}---\n{format_resource('a', '2')}",
        "r.yaml": B,
    }
    assert result.conflicts == ()


def test_locally_changed_resource_moves_with_upstream() -> None:
    local = build_package({"r.yaml": format_resource("a", "3")})
    result = update_package(
        build_package({"r.yaml": A}), build_package({"new.yaml": f"{B}---\n{A}"}), local, "resource-merge", SAFE
    )

    assert read_texts(result.files.without_files("Kptfile")) == {"new.yaml": f"{B}---\n{format_resource('a', '3')}"}
    assert result.conflicts == ()


def test_ambiguous_moves_are_not_followed() -> None:
    local = build_package({"b.yaml": A, "c.yaml": A})
    result = update_package(
        build_package({"r.yaml": A}),
        build_package({"r.yaml": format_resource("a", "2")}),
        local,
        "resource-merge",
        SAFE,
    )

    assert read_texts(result.files.without_files("Kptfile")) == {"b.yaml": A, "c.yaml": A}
    assert [conflict.rule for conflict in result.conflicts] == ["deleted-locally"]


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected", "rules"),
    [
        pytest.param("1", "2", "1", "2", [], id="changed-upstream"),
        pytest.param("1", "2", "3", "3", ["D16"], id="changed-on-both-sides"),
        pytest.param("1", "2", None, None, ["deleted-locally"], id="deleted-here"),
        pytest.param("1", "1", None, None, [], id="deleted-here-and-unchanged-upstream"),
        pytest.param("1", None, "2", "2", ["deleted-upstream"], id="deleted-upstream-and-changed-here"),
        pytest.param("1", None, "1", None, [], id="deleted-upstream"),
        pytest.param(None, "1", "1", "1", [], id="added-alike"),
    ],
)
def test_merge_of_an_opaque_file(
    origin: str | None, updated: str | None, local: str | None, expected: str | None, rules: list[str]
) -> None:
    sides = (build_package({"notes.txt": text} if text else {}) for text in (origin, updated, local))
    result = run_update(sides, LOCAL_WINS)

    assert read_texts(result.files).get("notes.txt") == expected
    assert [conflict.rule for conflict in result.conflicts] == rules


@pytest.mark.parametrize("path", ["run.sh", "r.yaml"])
def test_executable_bit_comes_from_the_changed_side(path: str) -> None:
    origin, updated, local = (build_package({path: text}) for text in (A, A + "# end\n", A + "# end\n"))
    executable = origin.with_files({path: File(A.encode(), executable=True)})

    assert update_package(origin, executable, local, "resource-merge", SAFE).files[path] == File(local[path].data, True)
    assert update_package(origin, updated, executable, "resource-merge", SAFE).files[path] == File(
        updated[path].data, True
    )


def test_files_without_changes_on_one_side_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    for module, reader in (
        (reading, "parse_entries"),
        (reading, "parse_cached"),
        (resources, "add_comments_to_content"),
    ):
        monkeypatch.setattr(module, reader, lambda *arguments: read.extend(arguments))
    origin = build_package({"here.yaml": A, "there.yaml": A, "both.yaml": A, "new-here.yaml": A, "same.yaml": A})
    updated = origin.with_files({"there.yaml": B.encode(), "both.yaml": B.encode(), "new.yaml": B.encode()})
    changes = {"here.yaml": b"kind: ConfigMap\nmetadata: {name: c}\n", "mine.yaml": b"a: ["}
    local = origin.with_files({**changes, "both.yaml": B.encode()})
    result = update_package(origin, updated, local, "resource-merge", SAFE)

    assert read == []
    assert read_texts(result.files) == read_texts(updated.with_files(changes))


def test_file_that_one_side_ignores_is_opaque() -> None:
    template = "name: {{ x }}\n"
    origin = build_package({".krmignore": "t.yaml\n", "t.yaml": template})
    result = update_package(origin, origin.with_files({"t.yaml": b"name: {{ y }}\n"}), origin, "resource-merge", SAFE)

    assert read_texts(result.files)["t.yaml"] == "name: {{ y }}\n"
    assert result.findings == ()


CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: lists.example.com
spec:
  group: example.com
  names: {kind: List, plural: lists}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              peers:
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [id]
                items: {properties: {id: {type: string}}}
"""


def format_custom_list(*peers: str) -> str:
    items = "".join(f"  - id: {peer}\n" for peer in peers)
    return f"apiVersion: example.com/v1\nkind: List\nmetadata:\n  name: l\nspec:\n  peers:\n{items}"


@pytest.mark.parametrize("side", [0, 1, 2])
def test_list_keys_come_from_the_crds_of_any_side(side: int) -> None:
    files = [
        {"l.yaml": format_custom_list("a")},
        {"l.yaml": format_custom_list("a", "new")},
        {"l.yaml": format_custom_list("a", "mine")},
    ]
    files[side]["crd.yaml"] = CRD
    result = run_update(build_package(file) for file in files)

    assert read_texts(result.files)["l.yaml"] == format_custom_list("a", "mine", "new")
    assert result.conflicts == ()


def test_lock_and_merge_comments_are_written() -> None:
    origin, updated = (
        build_package({"r.yaml": A, "old.yaml": B}),
        build_package({"r.yaml": A, "new.yaml": C, "old.yaml": B}),
    )
    result = update_package(origin, updated, origin, "resource-merge", SAFE, LOCK)
    kptfile = read_kptfile(result.files["Kptfile"].data)

    assert isinstance(kptfile, Kptfile)
    assert kptfile.data["upstreamLock"]["git"]["commit"] == "c0ffee"
    assert kptfile.data["upstream"]["git"]["ref"] == "v2"
    # Files that the update does not change keep their local text.
    assert read_texts(result.files)["r.yaml"] == A
    assert read_texts(result.files)["new.yaml"] == C.replace("metadata:", "metadata: # kpt-merge: /c")


def test_package_without_kptfile_cannot_have_a_lock() -> None:
    local = build_tree({"r.yaml": A})
    result = update_package(build_tree({"r.yaml": A}), build_tree({"r.yaml": B}), local, "resource-merge", SAFE, LOCK)

    assert [finding.code for finding in result.findings] == ["KptfileMissing"]
    assert result.files == local


@pytest.mark.parametrize(
    ("local", "updated", "rules", "codes"),
    [
        pytest.param("kind: [", format_kptfile("app") + "info: {}\n", [], ["KptfileSyntax"], id="the-roots-own"),
        pytest.param(format_kptfile("app") + "info: {}\n", "kind: [", ["D17"], ["KptfileSyntax"], id="upstreams"),
    ],
)
def test_unreadable_kptfile(local: str, updated: str, rules: list[str], codes: list[str]) -> None:
    sides = (build_tree({"Kptfile": text}) for text in (format_kptfile("app"), updated, local))
    result = run_update(sides)

    assert read_texts(result.files)["Kptfile"] == local
    assert [conflict.rule for conflict in result.conflicts] == rules
    assert [finding.code for finding in result.findings] == codes


def test_conflicts_in_a_kptfile_contain_the_file() -> None:
    files = [
        build_tree({"Kptfile": format_kptfile("app"), "sub/Kptfile": f"{format_kptfile('sub')}info:\n  site: {item}\n"})
        for item in "abc"
    ]
    result = run_update(files)

    assert [(conflict.file, conflict.pointer) for conflict in result.conflicts] == [("sub/Kptfile", "/info/site")]


def test_merge_packages_merges_two_versions_completely() -> None:
    base = build_package({"r.yaml": A, "sub/Kptfile": format_kptfile("sub"), "sub/r.yaml": A})
    theirs = base.without_files("sub/Kptfile", "sub/r.yaml").with_files({"Kptfile": format_kptfile("renamed").encode()})
    ours = base.with_files({"r.yaml": B.encode(), "sub/notes.txt": b"mine"})
    result = merge_packages(base, theirs, ours, SAFE)

    assert read_texts(result.files) == {"Kptfile": format_kptfile("renamed"), "r.yaml": B, "sub/notes.txt": "mine"}
    assert result.conflicts == ()


def test_packages_that_both_sides_added_are_merged() -> None:
    base = build_package({})
    theirs = build_package({"sub/Kptfile": format_kptfile("sub"), "sub/r.yaml": A, "sub/theirs.yaml": C})
    ours = build_package({"sub/Kptfile": format_kptfile("sub"), "sub/r.yaml": f"{A}---\n{B}"})
    result = merge_packages(base, theirs, ours, SAFE)

    assert read_texts(result.files)["sub/r.yaml"] == f"{A}---\n{B}"
    assert read_texts(result.files)["sub/theirs.yaml"] == C
    assert result.conflicts == ()


@pytest.mark.parametrize(
    ("kptfile", "expected"),
    [
        pytest.param(format_kptfile("app"), "resource-merge", id="no-strategy"),
        pytest.param(format_kptfile("app", "r / v1", strategy="copy-merge"), "copy-merge", id="explicit-strategy"),
    ],
)
def test_update_strategy_of_an_upstream(kptfile: str, expected: str) -> None:
    read = read_kptfile(kptfile.encode())

    assert isinstance(read, Kptfile)
    assert get_update_strategy(read.upstream) == expected


@pytest.mark.parametrize("edited", ["updated", "local"])
def test_package_that_one_side_did_not_change_is_not_parsed(monkeypatch: pytest.MonkeyPatch, edited: str) -> None:
    origin = build_package({f"{name}.yaml": f"{A}data: {{untouched: {name}}}\n" for name in "abc"})
    changed = origin.with_files({"b.yaml": B.encode(), "new.yaml": B.encode()}).without_files("c.yaml")
    updated, local = (changed, origin) if edited == "updated" else (origin, changed)
    parses: list[str] = []
    monkeypatch.setattr(compose, "CParser", parses.append)
    parse_cached.cache_clear()
    result = update_package(origin, updated, local, "resource-merge", SAFE)

    assert (result.files, parses) == (changed, [])
