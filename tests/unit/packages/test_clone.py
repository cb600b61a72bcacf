"""Tests of cloned packages: the Kptfile has the upstream, resources have merge comments, and nothing else changes."""

from __future__ import annotations

from reconciler.packages.clone import ResolvedUpstream, clone_package, read_upstream, read_upstream_lock
from reconciler.packages.kptfile import Kptfile, read_kptfile
from tests.unit.packages.builders import KPTFILE, build_tree, read_texts

LOCK = ResolvedUpstream("https://example.com/blueprints.git", "base", "v1", "c0ffee")
UPSTREAM = {
    "Kptfile": KPTFILE + "upstream:\n  type: git\n  git: {repo: x, directory: y, ref: z}\n"
    "  updateStrategy: fast-forward\ninfo:\n  description: text # why\n",
    "README.md": "# Read me\r\n",
    "r.yaml": "# header\napiVersion: v1\nkind: Service\nmetadata:\n  name:   web\n\nspec: {}\n",
    "broken.yaml": "a: [\n",
    "sub/Kptfile": KPTFILE,
}


def test_clone_package() -> None:
    files, findings = clone_package(build_tree(UPSTREAM), "site", LOCK)

    kptfile = read_kptfile(files["Kptfile"].data)
    assert isinstance(kptfile, Kptfile)
    git = {"repo": LOCK.repo, "directory": "base", "ref": "v1"}
    assert kptfile.name == "site"
    assert kptfile.data["upstream"] == {"type": "git", "git": git}
    assert kptfile.data["upstreamLock"] == {"type": "git", "git": git | {"commit": "c0ffee"}}
    assert "description: text # why\n" in read_texts(files)["Kptfile"]
    assert [(finding.location.file, finding.severity) for finding in findings] == [("broken.yaml", "warning")]


def test_nothing_else_changes() -> None:
    before, (after, _) = read_texts(build_tree(UPSTREAM)), clone_package(build_tree(UPSTREAM), "site", LOCK)

    changed = {path for path, text in read_texts(after).items() if text != before.get(path)}
    assert changed == {"Kptfile", "r.yaml"}
    assert read_texts(after)["r.yaml"] == before["r.yaml"].replace("metadata:", "metadata: # kpt-merge: /web")


def test_clone_of_a_clone_keeps_merge_comments() -> None:
    once, _ = clone_package(build_tree(UPSTREAM), "site", LOCK)
    twice, _ = clone_package(once, "site", LOCK)

    assert read_texts(twice) == read_texts(once)


def test_folder_without_kptfile_receives_one() -> None:
    files, _ = clone_package(build_tree({"r.txt": "x"}), "site", LOCK)

    kptfile = read_kptfile(files["Kptfile"].data)
    assert isinstance(kptfile, Kptfile)
    assert kptfile.name == "site"


def test_unreadable_kptfile_is_an_error() -> None:
    before = build_tree({"Kptfile": "apiVersion: kpt.dev/v1alpha1\nkind: Kptfile\n"})

    after, findings = clone_package(before, "site", LOCK)

    assert after == before
    assert [finding.code for finding in findings] == ["KptfileDeprecated"]


def test_local_update_strategy_stays() -> None:
    base = build_tree(UPSTREAM)
    own = base["Kptfile"].data.replace(b"fast-forward", b"copy-merge")

    files, _ = clone_package(base.with_files({"Kptfile": own}), "site", LOCK, base=base)

    kptfile = read_kptfile(files["Kptfile"].data)
    assert isinstance(kptfile, Kptfile)
    assert kptfile.upstream
    assert (kptfile.upstream.update_strategy, read_upstream(files)) == ("copy-merge", kptfile.upstream)
    assert read_upstream_lock(files) == LOCK
