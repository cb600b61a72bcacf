"""Updates of whole packages: what must hold for any three packages, generated and real."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.api.kpt import UpdateStrategy
from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import select_errors
from reconciler.krm.yaml import parse_yaml
from reconciler.packages.clone import ResolvedUpstream, clone_package
from reconciler.packages.update.options import MergeOptions, create_compat_options
from reconciler.packages.update.sides import UpdateResult
from reconciler.packages.update.three_way import merge_packages, update_package
from tests.support.examples import examples

DATA = Path(__file__).resolve().parents[2] / "../shared/data/packages"
SAFE, COMPAT = MergeOptions(), create_compat_options()
STRATEGIES: tuple[UpdateStrategy, ...] = ("resource-merge", "fast-forward", "force-delete-replace", "copy-merge")
LOCK = ResolvedUpstream("https://example.com/blueprints.git", "app", "v2", "2" * 40)
ROUNDS = 60
MERGE = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = st.sampled_from("abcd")
VALUES = st.sampled_from(["1", "2", "yes", "[x, y]", "{k: v}"])
FOLDERS = st.sampled_from(["", "sub/", "remote/"])


@st.composite
def resources(draw: st.DrawFn) -> str:
    """Return a resource: few names and values, so that sides meet."""
    lines = ["apiVersion: v1", f"kind: {draw(st.sampled_from(['ConfigMap', 'Secret']))}"]
    lines += [f"metadata: # kpt-merge: /{draw(NAMES)}" if draw(st.integers(0, 5)) == 0 else "metadata:"]
    lines += [f"  name: {draw(NAMES)}"]
    fields = draw(st.dictionaries(NAMES, VALUES, max_size=3))
    lines += ["data:"] * bool(fields) + [f"  {key}: {value}" for key, value in fields.items()]
    return "\n".join(["# about it"] * draw(st.integers(0, 1)) + lines) + "\n"


@st.composite
def packages(draw: st.DrawFn) -> FileTree:
    """Return a package with a few resource files, text files, and subpackages."""
    files = {"Kptfile": kptfile("app")}
    for folder in draw(st.sets(FOLDERS, max_size=3)):
        if folder:
            files[f"{folder}Kptfile"] = kptfile(folder.strip("/"), follows=folder == "remote/")
        for name in draw(st.sets(st.sampled_from(["x.yaml", "y.yaml"]))):
            files[folder + name] = "---\n".join(draw(st.lists(resources(), min_size=1, max_size=3)))
        if draw(st.booleans()):
            files[f"{folder}notes.txt"] = draw(VALUES)
        if draw(st.integers(0, 9)) == 0:
            files[f"{folder}broken.yaml"] = f"a: [{draw(VALUES)}\n"
    modes = draw(st.sets(st.sampled_from(sorted(files)), max_size=1))
    return FileTree({path: File(text.encode(), path in modes) for path, text in files.items()})


@st.composite
def descendants(draw: st.DrawFn, package: FileTree) -> FileTree:
    """Return the package after up to three edits."""
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(sorted(package)))
        documents = package[path].data.decode().split("---\n")
        index = draw(st.integers(0, len(documents) - 1))
        match draw(st.sampled_from(["delete", "add", "remove", "value", "move", "rename"])):
            case "delete" if path != "Kptfile":
                package = package.without_files(path)
            case "add" if path.endswith(".yaml"):
                documents.insert(index, draw(resources()))
                package = package.with_files({path: "---\n".join(documents).encode()})
            case "remove" if path.endswith(".yaml"):
                rest = "---\n".join(documents[:index] + documents[index + 1 :])
                package = package.with_files({path: rest.encode()}) if rest else package.without_files(path)
            case "value":
                documents[index] = documents[index].replace("  a: 1", "  a: 7").replace("  b: ", "  e: new\n  b: ")
                package = package.with_files({path: "---\n".join(documents).encode()})
            case "move" if path.endswith("x.yaml") and path.replace("x.", "z.") not in package:
                package = package.without_files(path).with_files({path.replace("x.", "z."): package[path]})
            case "rename" if path.endswith(".yaml"):
                text = documents[index].replace("metadata:\n  name: a", "metadata: # kpt-merge: /a\n  name: site-a")
                documents[index] = text
                package = package.with_files({path: "---\n".join(documents).encode()})
    return package


@st.composite
def families(draw: st.DrawFn) -> tuple[FileTree, FileTree, FileTree]:
    """Return a package and two descendants of it, or three that have little to do with each other."""
    origin = draw(packages())
    if draw(st.integers(0, 3)) == 0:
        return origin, draw(packages()), draw(packages())
    return origin, draw(descendants(origin)), draw(descendants(origin))


def kptfile(name: str, *, follows: bool = False) -> str:
    text = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n"
    place = "  type: git\n  git:\n    repo: r\n    directory: d\n    ref: v1\n"
    return text + (f"upstream:\n{place}upstreamLock:\n{place}    commit: c\n" if follows else "")


def safely(origin: FileTree, updated: FileTree, local: FileTree, lock: ResolvedUpstream | None = None) -> UpdateResult:
    result = update_package(origin, updated, local, "resource-merge", SAFE, lock)

    assert not select_errors(result.findings) or result.files == local
    return result


def data(files: FileTree) -> dict[str, Any]:
    """Return the data of resource files in a fixed order, and other files unchanged."""
    return {path: _meaning(path, file.data) for path, file in files.items()}


def _meaning(path: str, content: bytes) -> Any:
    if not path.endswith(".yaml") or path.endswith("broken.yaml"):
        return content
    return sorted(json.dumps(document.data, sort_keys=True) for document in parse_yaml(content).documents)


def have_common_additions_in_different_files(base: FileTree, theirs: FileTree, ours: FileTree) -> bool:
    """Return whether both sides add a resource in different files. Its file can then depend on the direction."""
    before, upstream, local = (set(_list_locations(files)) for files in (base, theirs, ours))
    existing = {resource for resource, _ in before}
    added_upstream, added_locally = ({item for item in side if item[0] not in existing} for side in (upstream, local))
    common = {resource for resource, _ in added_upstream} & {resource for resource, _ in added_locally}
    return any(resource in common for resource, _ in added_upstream ^ added_locally)


def list_resources(files: FileTree) -> list[str]:
    """Return the data of all resources in a fixed order, and ignore in which files they are."""
    return sorted(text for texts in data(files).values() if isinstance(texts, list) for text in texts)


def _list_locations(files: FileTree) -> Iterator[tuple[tuple[str, str], str]]:
    for path, texts in data(files).items():
        for text in texts if isinstance(texts, list) else ():
            resource = json.loads(text)
            yield (resource["kind"], resource["metadata"]["name"]), path


@pytest.mark.slow
@MERGE
@given(packages(), packages())
def test_where_upstream_did_nothing_the_local_package_stays(origin: FileTree, local: FileTree) -> None:
    assert safely(origin, origin, local) == UpdateResult(local)


@pytest.mark.slow
@MERGE
@given(packages(), packages())
def test_without_local_changes_the_result_is_the_upstream(origin: FileTree, updated: FileTree) -> None:
    result = safely(origin, updated, origin)

    assert (result.files, result.conflicts) == (updated, ())


@pytest.mark.slow
@MERGE
@given(packages(), packages())
def test_what_is_there_already_changes_nothing(origin: FileTree, updated: FileTree) -> None:
    result = safely(origin, updated, updated)

    assert (result.files, result.conflicts) == (updated, ())


@MERGE
@given(families())
def test_a_second_update_is_silent(family: tuple[FileTree, FileTree, FileTree]) -> None:
    origin, updated, local = family
    first = safely(origin, updated, local, LOCK)
    if not select_errors(first.findings):
        assert safely(updated, updated, first.files, LOCK) == UpdateResult(first.files)
        assert safely(origin, updated, first.files, LOCK).files == first.files


@pytest.mark.slow
@MERGE
@given(families())
def test_without_conflicts_it_does_not_matter_who_is_upstream(family: tuple[FileTree, FileTree, FileTree]) -> None:
    base, theirs, ours = family
    update_result, other = merge_packages(base, theirs, ours, SAFE), merge_packages(base, ours, theirs, SAFE)
    if not update_result.conflicts and not select_errors(update_result.findings):
        if not have_common_additions_in_different_files(base, theirs, ours):
            assert data(update_result.files) == data(other.files)
        assert list_resources(update_result.files) == list_resources(other.files)


def test_a_resource_that_both_sides_add_to_different_files_is_merged_in_the_local_file() -> None:
    def add(path: str, value: str) -> FileTree:
        content = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: n\ndata:\n  {value}\n".encode()
        return FileTree({"Kptfile": kptfile, path: File(content)})

    kptfile = File(b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n")
    result = merge_packages(FileTree({"Kptfile": kptfile}), add("new.yaml", "k: a"), add("mine.yaml", "k: b"), SAFE)

    assert result.files == add("mine.yaml", "k: a")
    assert [(conflict.file, conflict.pointer) for conflict in result.conflicts] == [("mine.yaml", "/data/k")]


def test_a_resource_that_both_sides_add_to_a_moved_file_stays_in_the_local_file() -> None:
    config_map = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n"
    secret = b"apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n"
    kptfile = File(b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n")
    both = File(secret + b"---\n" + config_map)
    base = FileTree({"Kptfile": kptfile, "x.yaml": File(config_map)})
    kept, moved = (FileTree({"Kptfile": kptfile, path: both}) for path in ("x.yaml", "z.yaml"))

    assert merge_packages(base, kept, moved, SAFE).files == moved
    assert merge_packages(base, moved, kept, SAFE).files == FileTree({
        "Kptfile": kptfile, "x.yaml": File(secret), "z.yaml": File(config_map),
    })  # fmt: skip


@pytest.mark.slow
@MERGE
@given(families(), st.sampled_from(STRATEGIES))
def test_upstreams_own_way_ends(family: tuple[FileTree, FileTree, FileTree], strategy: UpdateStrategy) -> None:
    origin, updated, local = family
    result = update_package(origin, updated, local, strategy, COMPAT, LOCK)

    assert result.files == local or not select_errors(result.findings)


@pytest.fixture(scope="module")
def real_packages() -> list[FileTree]:
    if not DATA.is_dir():
        pytest.skip("the packages of other projects are not on this machine")
    roots = sorted(path.parent for path in DATA.rglob("Kptfile"))
    return [
        FileTree({p.relative_to(root).as_posix(): File(p.read_bytes()) for p in root.rglob("*") if p.is_file()})
        for root in roots
    ]


@pytest.mark.slow
def test_any_three_real_packages_come_to_one(real_packages: list[FileTree]) -> None:
    chosen = random.Random(3)
    for _ in range(ROUNDS):
        origin, updated, local = (chosen.choice(real_packages) for _ in range(3))
        strategy, options = chosen.choice(STRATEGIES), chosen.choice((SAFE, COMPAT))
        result = update_package(origin, updated, local, strategy, options, LOCK)

        assert "Kptfile" in result.files
        assert result.files == local or not select_errors(result.findings)


def test_an_edited_clone_of_a_real_package_gets_what_upstream_changed(real_packages: list[FileTree]) -> None:
    for upstream in real_packages:
        local, _ = clone_package(upstream, "site", LOCK, upstream)
        touched = {path: file for path, file in upstream.items() if path.endswith(".yaml")}
        newer = upstream.with_files({path: b"# changed upstream\n" + file.data for path, file in touched.items()})
        result = update_package(upstream, newer, local, "resource-merge", SAFE, LOCK)
        file_tree, _ = clone_package(newer, "site", LOCK, newer)

        assert result.conflicts == ()
        assert {p: f.data for p, f in result.files.items()} == {p: f.data for p, f in file_tree.items()}
