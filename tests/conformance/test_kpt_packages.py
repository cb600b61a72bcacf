"""The test tables of kpt about whole packages: strategies, package diff, `get` and `update`, in the profile compat.

Every row must give the files or the error of kpt. A row whose packages are missing in the data is skipped with this
reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.api.kpt import GitUpstream, UpdateStrategy
from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import select_errors
from reconciler.packages.clone import add_merge_comments
from reconciler.packages.update.fetching import (
    FetchedPackage,
    get_package,
    list_ref_candidates,
    replace_package,
    update_from_upstream,
)
from reconciler.packages.update.options import create_compat_options
from reconciler.packages.update.package_diff import list_changed_files
from reconciler.packages.update.sides import MergeSides, UpdateResult
from reconciler.packages.update.strategies import UpdateUnit, update_unit
from reconciler.packages.update.three_way import update_package
from tests.support.go_text import raw_string

DATA = Path(__file__).resolve().parents[2] / "../shared/data/kpt/packages.json"
TABLES: dict[str, list[dict[str, Any]]] = json.loads(DATA.read_text()) if DATA.exists() else {}
OPTIONS = create_compat_options()

# Packages that the tables name and the data does not contain.
ABSENT_DATA = "<testutil.Dataset"

pytestmark = pytest.mark.skipif(not TABLES, reason="the test data of other projects is not beside this project")


def rows(*tables: str) -> list[Any]:
    return [pytest.param(row, id=f"{table}-{row['case']}") for table in tables for row in TABLES.get(table, [])]


def tree(files: Mapping[str, str] | None) -> FileTree:
    content = {path: raw_string(text) for path, text in (files or {}).items()}
    content = {path: _kptfile(text) if path.endswith("Kptfile") else text for path, text in content.items()}
    return FileTree({path: File(text.encode()) for path, text in content.items()})


def _kptfile(text: str) -> str:
    """Return a Kptfile with the render status that the table of kpt builds with function calls."""
    data = yaml.safe_load(text)
    if any(key.startswith("<WithStatus") for key in data.get("status") or {}):
        rendered = {"type": "Rendered", "status": "True", "reason": "RenderSuccess"}
        data["status"] = {"conditions": [rendered], "renderStatus": {"mutationSteps": [{"exitCode": 0}]}}
        return yaml.safe_dump(data, sort_keys=False)
    return text


def comparable(files: FileTree) -> dict[str, Any]:
    """Return files in the form in which the README of the data compares them."""
    return {path: _comparable_file(path, file.data) for path, file in files.items()}


def _comparable_file(path: str, data: bytes) -> Any:
    if path.rpartition("/")[2] == "Kptfile":
        return {key: value for key, value in yaml.safe_load(data).items() if key != "status"}
    lines = [line for line in data.decode().splitlines() if line.strip()]
    return lines[1:] if lines[:1] == ["---"] else lines


def messages(updated: UpdateResult) -> str:
    return "\n".join(finding.message for finding in select_errors(updated.findings))


class Repositories:
    """Repositories that receive the commits of the tables in order. The name of a commit is its number."""

    def __init__(self, contents: Mapping[str, list[dict[str, Any]]]) -> None:
        self.contents = contents
        self.commits: dict[tuple[str, str], FileTree] = {}
        self.refs: dict[tuple[str, str], str] = {}
        self.branches: dict[str, str] = {}
        for name in contents:
            self.commit(name, 0)

    def commit_the_rest(self) -> None:
        for name, commits in self.contents.items():
            for number in range(1, len(commits)):
                self.commit(name, number)

    def commit(self, name: str, number: int) -> None:
        content, commit = self.contents[name][number], f"<commit:{name}:{number}>"
        self.branches[name] = content.get("Branch") or self.branches.get(name, "main")
        self.commits[name, commit] = tree(content["Pkg"])
        for ref in filter(None, (self.branches[name], content.get("Tag"), commit)):
            self.refs[name, ref] = commit

    def fetch(self, repo: str, directory: str, ref: str) -> FetchedPackage:
        name = repo.removeprefix("<repo:").removesuffix(">")
        result = next(
            ref_candidate for ref_candidate in list_ref_candidates(directory, ref) if (name, ref_candidate) in self.refs
        )
        commit = self.refs[name, result]
        return FetchedPackage(self.commits[name, commit].subtree(directory.strip("/")), commit, result)


def got(
    repositories: Repositories, directory: str = "/", ref: str = "", strategy: UpdateStrategy = "resource-merge"
) -> FileTree:
    source = GitUpstream(repo="<repo:upstream>", directory=directory, ref=ref or repositories.branches["upstream"])
    package = get_package(repositories, source, "<root>", OPTIONS, strategy)

    assert messages(package) == ""
    return package.files


def changed_locally(files: FileTree, row: Mapping[str, Any]) -> FileTree:
    """Return the package with the local changes. The Kptfile of its root has the upstream of the package."""
    pkg = (row.get("updatedLocal") or {}).get("Pkg")
    if not pkg:
        return files
    local, before = dict(pkg), yaml.safe_load(files["Kptfile"].data)
    root = yaml.safe_load(local.get("Kptfile", "{}"))
    local["Kptfile"] = yaml.safe_dump({**before, **root}, sort_keys=False)
    return tree(local)


def check(updated: UpdateResult, expected: Mapping[str, str]) -> None:
    assert messages(updated) == ""
    assert comparable(updated.files) == comparable(add_merge_comments(tree(expected), "compat")[0])


@pytest.mark.parametrize(
    ("strategy", "row"),
    [
        pytest.param(strategy, *param.values, id=param.id)
        for strategy, table in {
            "resource-merge": "TestUpdate_ResourceMerge",
            "fast-forward": "TestUpdate_FastForward",
            "force-delete-replace": "TestUpdate_Replace",
            "copy-merge": "TestCopyMerge",
        }.items()
        for param in rows(table)
    ],
)
def test_strategies(strategy: UpdateStrategy, row: dict[str, Any]) -> None:
    folder = row["relPackagePath"].strip("/")
    trees = [tree(row[side]) for side in ("origin", "updated", "local")]
    sides = [file_tree.subtree(folder) for file_tree in trees]
    if row["isRoot"]:
        result = update_package(sides[0], sides[1], sides[2], strategy, OPTIONS)
    else:
        result = update_unit(UpdateUnit("", MergeSides(*sides), OPTIONS, is_root=False), strategy)
    whole = replace_package(UpdateResult(trees[2]), folder, result)

    if row.get("expectedErr"):
        assert row["expectedErr"] in messages(result)
    else:
        assert messages(result) == ""
        assert comparable(whole.files) == comparable(tree(row["expected"]))


@pytest.mark.parametrize("row", rows("TestPkgDiff"))
def test_package_diff(row: dict[str, Any]) -> None:
    both = MergeSides(tree(row["pkg1"]), tree(row["pkg2"]), FileTree())
    roots = both.split_by_package(both.packages)[""]

    assert list(list_changed_files(roots.origin, roots.updated)) == sorted(row["diff"]["args"] or [])


@pytest.mark.parametrize("row", rows("TestCommand_Run_localPackageChanges"))
def test_local_changes(row: dict[str, Any]) -> None:
    if ABSENT_DATA in json.dumps(row):
        pytest.skip("the test data does not contain the packages of this case")
    repositories = Repositories({"upstream": [row["initialUpstream"], row["updatedUpstream"]]})
    local = changed_locally(got(repositories, strategy=row["strategy"]), row)
    repositories.commit_the_rest()
    updated = update_from_upstream(local, repositories, OPTIONS, strategy=row["strategy"])
    kptfile = {"Kptfile": updated.files["Kptfile"].data.decode()}

    if row.get("expectedErr"):
        assert row["expectedErr"] in messages(updated)
    else:
        check(updated, {**row["expectedLocal"]["Pkg"], **kptfile})


def local_subpackage_runs() -> Iterator[Any]:
    for row in TABLES.get("TestCommand_Run_local_subpackages", []):
        for result in row["expectedResults"]:
            for strategy in result["strategies"]:
                yield pytest.param(row, result, strategy, id=f"{row['case']}-{strategy}")


@pytest.mark.parametrize(("row", "result", "strategy"), list(local_subpackage_runs()))
def test_local_subpackages(row: dict[str, Any], result: dict[str, Any], strategy: UpdateStrategy) -> None:
    repositories = Repositories(row["reposChanges"])
    local = changed_locally(got(repositories), row)
    repositories.commit_the_rest()
    updated = update_from_upstream(local, repositories, OPTIONS, strategy=strategy)

    if "expectedErrMsg" in result:
        assert result["expectedErrMsg"] in messages(updated)
    else:
        check(updated, {path: text.replace("PLACEHOLDER", strategy) for path, text in result["expectedLocal"].items()})


@pytest.mark.parametrize("row", rows("TestRun_remote_subpackages"))
def test_remote_subpackages(row: dict[str, Any]) -> None:
    repositories = Repositories(row["reposChanges"])
    local = changed_locally(got(repositories), row)
    repositories.commit_the_rest()
    # The runner of kpt sets no strategy, so that the strategy of the Kptfile applies.
    updated = update_from_upstream(local, repositories, OPTIONS)

    if row.get("expectedErrMsg"):
        assert row["expectedErrMsg"] in messages(updated)
    else:
        check(updated, row["expectedLocal"])


@pytest.mark.parametrize("row", rows("TestRootPackageIsUnfetched"))
def test_root_that_was_never_fetched(row: dict[str, Any]) -> None:
    repositories = Repositories(row["reposChanges"])
    git = {"repo": "<repo:upstream>", "directory": row["directory"], "ref": row["ref"]}
    upstream = {"type": "git", "git": git, "updateStrategy": "resource-merge"}
    kptfile = {"apiVersion": "kpt.dev/v1", "kind": "Kptfile", "metadata": {"name": "<root>"}, "upstream": upstream}
    local = tree({"Kptfile": yaml.safe_dump(kptfile, sort_keys=False)})

    check(update_from_upstream(local, repositories, OPTIONS), row["expectedLocal"])


@pytest.mark.parametrize("row", rows("TestCommand_Run_toBranchRefWithSubpkgs"))
def test_subpackages_from_the_same_repository_move_along(row: dict[str, Any]) -> None:
    repositories = Repositories(row["reposChanges"])
    local = with_variants(got(repositories), repositories, row["expectedLocal"])
    repositories.commit_the_rest()
    folder = row.get("updateSubPkg", "")
    part_of = local.subtree(folder)
    updated = update_from_upstream(part_of, repositories, OPTIONS, ref=row["updateRef"], strategy=row.get("strategy"))

    check(replace_package(UpdateResult(local), folder, updated), row["expectedLocal"])


def with_variants(files: FileTree, repositories: Repositories, expected: Mapping[str, str]) -> FileTree:
    """Return the package with the subpackages that the function of the row fetches."""
    for path, text in sorted(expected.items()):
        data = yaml.safe_load(text) if path.endswith("/Kptfile") else {}
        if "upstream" in data:
            folder = path.removesuffix("/Kptfile")
            variant = get_package(
                repositories,
                GitUpstream(repo="<repo:upstream>", directory=data["upstream"]["git"]["directory"], ref="master"),
                data["metadata"]["name"],
                OPTIONS,
            )
            files = files.with_files({f"{folder}/{inner}": file for inner, file in variant.files.items()})
    return files


@pytest.mark.parametrize("row", rows("TestCommand_Run_subpackages"))
def test_get(row: dict[str, Any]) -> None:
    repositories = Repositories(row["reposContent"])
    repositories.commit_the_rest()
    files = got(repositories, row["directory"], row["ref"], row.get("updateStrategy") or "resource-merge")

    check(UpdateResult(files), row["expectedResult"])
