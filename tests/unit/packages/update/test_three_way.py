"""Updates of whole packages in profile safe: what reaches the local package, what stays, and what is told."""

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
from reconciler.packages.update import (
    MergeOptions,
    create_compat_options,
    get_update_strategy,
    merge_packages,
    update_package,
)
from reconciler.packages.update import resource_files as reading
from reconciler.packages.update import resource_merge as resources
from tests.unit.packages.builders import texts, tree
from tests.unit.packages.update.builders import SAFE, merged, package, run, sub, thing

LOCK = ResolvedUpstream("https://example.com/blueprints.git", "app", "v2", "c0ffee")
LOCAL_WINS = replace(SAFE, rules=replace(RULES, winner="local"))
A, B, C = thing("a", "1"), thing("b", "1"), thing("c", "1")


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
            thing("a", "2"),
            thing("site-a", "1").replace("metadata:", "metadata: # kpt-merge: /a"),
            thing("site-a", "2").replace("metadata:", "metadata: # kpt-merge: /a"),
            id="renamed-here-with-a-merge-comment",
        ),
        pytest.param(
            A,
            thing("a", "2"),
            thing("site-a", "1").replace("metadata:", "metadata: # kpt-merge: default/a"),
            thing("site-a", "2").replace("metadata:", "metadata: # kpt-merge: default/a"),
            id="a-merge-comment-that-says-default",
        ),
        pytest.param(
            A,
            thing("a", "2"),
            thing("x\n  annotations:\n    internal.kpt.dev/upstream-identifier: '|ConfigMap|default|a'", "1"),
            thing("x\n  annotations:\n    internal.kpt.dev/upstream-identifier: '|ConfigMap|default|a'", "2"),
            id="renamed-here-with-an-identifier",
        ),
        pytest.param("# a\n", "# b\n", "# a\n", "# b\n", id="no-resource-at-all"),
        pytest.param("x: 1\ny: 1\n", "x: 2\ny: 1\n", "x: 1\ny: 3\n", "x: 2\ny: 3\n", id="values-without-a-name"),
        pytest.param(A, "# note\n" + A, A.replace("metadata:", "metadata: # kpt-merge: /a"), "# note\n" + A.replace(
            "metadata:", "metadata: # kpt-merge: /a"), id="only-a-merge-comment-here"),
    ],
)  # fmt: skip
def test_a_resource_file(origin: str, updated: str, local: str, expected: str) -> None:
    text, result = merged(origin, updated, local)

    assert text == expected
    assert (result.conflicts, result.findings) == ((), ())


@pytest.mark.parametrize(
    ("origin", "updated", "local", "options", "expected", "values"),
    [
        pytest.param(
            A, thing("a", "2"), thing("a", "3"), SAFE, thing("a", "2"), ("field", "upstream", "D2"), id="field"
        ),
        pytest.param(
            A, thing("a", "2"), thing("a", "3"), LOCAL_WINS, thing("a", "3"), ("field", "local", "D2"), id="field-local"
        ),
        pytest.param(
            A, "", thing("a", "3"), SAFE, thing("a", "3"), ("resource", "local", "deleted-upstream"), id="gone-upstream"
        ),
        pytest.param(
            A, "", f"# mine\n{A}", SAFE, f"# mine\n{A}", ("resource", "local", "deleted-upstream"), id="gone-and-noted"
        ),
        pytest.param(A, thing("a", "2"), "", SAFE, "", ("resource", "local", "deleted-locally"), id="gone-here"),
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
def test_what_both_sides_changed(
    origin: str, updated: str, local: str, options: MergeOptions, expected: str, values: tuple[str, str, str]
) -> None:
    text, result = merged(origin, updated, local, options)

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
    text, _ = merged(origin, "", local, create_compat_options())

    assert text == expected


def test_a_conflict_names_its_resource_and_the_three_values() -> None:
    _, result = merged(A, "", thing("a", "3"))
    conflict = result.conflicts[0]

    assert conflict.resource == "ConfigMap/_cluster/a"
    assert (conflict.base["data"], conflict.local["data"]) == ({"value": 1}, {"value": 3})
    assert conflict.upstream is ABSENT


def test_a_resource_that_was_moved_here_gets_upstreams_change_there() -> None:
    origin, updated = package({"r.yaml": f"{A}---\n{B}"}), package({"r.yaml": f"{thing('a', '2')}---\n{B}"})
    result = update_package(
        origin, updated, package({"r.yaml": B, "mine.yaml": f"{C}---\n{A}"}), "resource-merge", SAFE
    )

    assert texts(result.files.without_files("Kptfile")) == {"mine.yaml": f"{C}---\n{thing('a', '2')}", "r.yaml": B}
    assert result.conflicts == ()


def test_a_changed_resource_that_upstream_moved_goes_with_it() -> None:
    local = package({"r.yaml": thing("a", "3")})
    result = update_package(
        package({"r.yaml": A}), package({"new.yaml": f"{B}---\n{A}"}), local, "resource-merge", SAFE
    )

    assert texts(result.files.without_files("Kptfile")) == {"new.yaml": f"{B}---\n{thing('a', '3')}"}
    assert result.conflicts == ()


def test_moves_are_not_followed_where_two_files_could_be_meant() -> None:
    local = package({"b.yaml": A, "c.yaml": A})
    result = update_package(package({"r.yaml": A}), package({"r.yaml": thing("a", "2")}), local, "resource-merge", SAFE)

    assert texts(result.files.without_files("Kptfile")) == {"b.yaml": A, "c.yaml": A}
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
def test_an_opaque_file(
    origin: str | None, updated: str | None, local: str | None, expected: str | None, rules: list[str]
) -> None:
    sides = (package({"notes.txt": text} if text else {}) for text in (origin, updated, local))
    result = run(sides, LOCAL_WINS)

    assert texts(result.files).get("notes.txt") == expected
    assert [conflict.rule for conflict in result.conflicts] == rules


@pytest.mark.parametrize("path", ["run.sh", "r.yaml"])
def test_the_executable_bit_is_the_sides_that_changed_it(path: str) -> None:
    origin, updated, local = (package({path: text}) for text in (A, A + "# end\n", A + "# end\n"))
    executable = origin.with_files({path: File(A.encode(), executable=True)})

    assert update_package(origin, executable, local, "resource-merge", SAFE).files[path] == File(local[path].data, True)
    assert update_package(origin, updated, executable, "resource-merge", SAFE).files[path] == File(
        updated[path].data, True
    )


def test_files_that_one_side_left_alone_are_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    for module, reader in (
        (reading, "parse_entries"),
        (reading, "parse_cached"),
        (resources, "add_comments_to_content"),
    ):
        monkeypatch.setattr(module, reader, lambda *arguments: read.extend(arguments))
    origin = package({"here.yaml": A, "there.yaml": A, "both.yaml": A, "new-here.yaml": A, "same.yaml": A})
    updated = origin.with_files({"there.yaml": B.encode(), "both.yaml": B.encode(), "new.yaml": B.encode()})
    local = origin.with_files({"here.yaml": B.encode(), "both.yaml": B.encode(), "mine.yaml": b"a: ["})
    result = update_package(origin, updated, local, "resource-merge", SAFE)

    assert read == []
    assert texts(result.files) == texts(updated.with_files({"here.yaml": B.encode(), "mine.yaml": b"a: ["}))


def test_a_file_that_any_side_hides_is_opaque() -> None:
    template = "name: {{ x }}\n"
    origin = package({".krmignore": "t.yaml\n", "t.yaml": template})
    result = update_package(origin, origin.with_files({"t.yaml": b"name: {{ y }}\n"}), origin, "resource-merge", SAFE)

    assert texts(result.files)["t.yaml"] == "name: {{ y }}\n"
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


def custom(*peers: str) -> str:
    items = "".join(f"  - id: {peer}\n" for peer in peers)
    return f"apiVersion: example.com/v1\nkind: List\nmetadata:\n  name: l\nspec:\n  peers:\n{items}"


@pytest.mark.parametrize("side", [0, 1, 2])
def test_list_keys_come_from_the_crds_of_any_side(side: int) -> None:
    files = [{"l.yaml": custom("a")}, {"l.yaml": custom("a", "new")}, {"l.yaml": custom("a", "mine")}]
    files[side]["crd.yaml"] = CRD
    result = run(package(file) for file in files)

    assert texts(result.files)["l.yaml"] == custom("a", "mine", "new")
    assert result.conflicts == ()


def test_the_lock_and_the_merge_comments_are_written() -> None:
    origin, updated = package({"r.yaml": A, "old.yaml": B}), package({"r.yaml": A, "new.yaml": C, "old.yaml": B})
    result = update_package(origin, updated, origin, "resource-merge", SAFE, LOCK)
    kptfile = read_kptfile(result.files["Kptfile"].data)

    assert isinstance(kptfile, Kptfile)
    assert kptfile.data["upstreamLock"]["git"]["commit"] == "c0ffee"
    assert kptfile.data["upstream"]["git"]["ref"] == "v2"
    # what the update did not touch stays as people have it
    assert texts(result.files)["r.yaml"] == A
    assert texts(result.files)["new.yaml"] == C.replace("metadata:", "metadata: # kpt-merge: /c")


def test_a_package_without_a_kptfile_cannot_be_locked() -> None:
    local = tree({"r.yaml": A})
    result = update_package(tree({"r.yaml": A}), tree({"r.yaml": B}), local, "resource-merge", SAFE, LOCK)

    assert [finding.code for finding in result.findings] == ["KptfileMissing"]
    assert result.files == local


@pytest.mark.parametrize(
    ("local", "updated", "rules", "codes"),
    [
        pytest.param("kind: [", sub("app") + "info: {}\n", [], ["KptfileSyntax"], id="the-roots-own"),
        pytest.param(sub("app") + "info: {}\n", "kind: [", ["D17"], ["KptfileSyntax"], id="upstreams"),
    ],
)
def test_a_kptfile_that_cannot_be_read(local: str, updated: str, rules: list[str], codes: list[str]) -> None:
    sides = (tree({"Kptfile": text}) for text in (sub("app"), updated, local))
    result = run(sides)

    assert texts(result.files)["Kptfile"] == local
    assert [conflict.rule for conflict in result.conflicts] == rules
    assert [finding.code for finding in result.findings] == codes


def test_conflicts_in_a_kptfile_name_the_file() -> None:
    files = [tree({"Kptfile": sub("app"), "sub/Kptfile": f"{sub('sub')}info:\n  site: {item}\n"}) for item in "abc"]
    result = run(files)

    assert [(conflict.file, conflict.pointer) for conflict in result.conflicts] == [("sub/Kptfile", "/info/site")]


def test_two_sides_of_one_package_are_merged_whole() -> None:
    base = package({"r.yaml": A, "sub/Kptfile": sub("sub"), "sub/r.yaml": A})
    theirs = base.without_files("sub/Kptfile", "sub/r.yaml").with_files({"Kptfile": sub("renamed").encode()})
    ours = base.with_files({"r.yaml": B.encode(), "sub/notes.txt": b"mine"})
    result = merge_packages(base, theirs, ours, SAFE)

    assert texts(result.files) == {"Kptfile": sub("renamed"), "r.yaml": B, "sub/notes.txt": "mine"}
    assert result.conflicts == ()


def test_packages_that_both_sides_added_are_merged() -> None:
    base = package({})
    theirs = package({"sub/Kptfile": sub("sub"), "sub/r.yaml": A, "sub/theirs.yaml": C})
    ours = package({"sub/Kptfile": sub("sub"), "sub/r.yaml": f"{A}---\n{B}"})
    result = merge_packages(base, theirs, ours, SAFE)

    assert texts(result.files)["sub/r.yaml"] == f"{A}---\n{B}"
    assert texts(result.files)["sub/theirs.yaml"] == C
    assert result.conflicts == ()


@pytest.mark.parametrize(
    ("kptfile", "expected"),
    [
        pytest.param(sub("app"), "resource-merge", id="nothing-said"),
        pytest.param(sub("app", "r / v1", strategy="copy-merge"), "copy-merge", id="said"),
    ],
)
def test_strategy_of(kptfile: str, expected: str) -> None:
    read = read_kptfile(kptfile.encode())

    assert isinstance(read, Kptfile)
    assert get_update_strategy(read.upstream) == expected


@pytest.mark.parametrize("edited", ["updated", "local"])
def test_a_package_that_one_side_left_alone_is_not_parsed(monkeypatch: pytest.MonkeyPatch, edited: str) -> None:
    origin = package({f"{name}.yaml": f"{A}data: {{untouched: {name}}}\n" for name in "abc"})
    changed = origin.with_files({"b.yaml": B.encode(), "new.yaml": B.encode()}).without_files("c.yaml")
    updated, local = (changed, origin) if edited == "updated" else (origin, changed)
    parses: list[str] = []
    monkeypatch.setattr(compose, "CParser", parses.append)
    parse_cached.cache_clear()
    result = update_package(origin, updated, local, "resource-merge", SAFE)

    assert (result.files, parses) == (changed, [])
