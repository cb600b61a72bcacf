"""Tests of objects that the config lacks without evidence of a deletion: packages stay, and an error names the file."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from reconciler.bootstrap.services import build_services
from reconciler.inspect.validate import validate
from reconciler.krm.findings import Severity
from reconciler.settings import Settings
from tests.support import prepared_worlds
from tests.support.git_repositories import commit_files, git, make_bare, read_refs
from tests.support.prepared_worlds import begin
from tests.support.world import PassResult, World, catalog, config_map, injected_set, package, repository, variant

METRICS = variant("metrics-berlin", "berlin", "metrics")
OTHER = config_map("other")
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def errors_by_code(pass_result: PassResult) -> dict[str, str]:
    """Return the locations of the errors of a pass, by code."""
    return {
        finding.code: str(finding.location) for finding in pass_result.findings if finding.severity is Severity.ERROR
    }


def is_kept(pass_result: PassResult, code: str, where: str = "") -> bool:
    """Return whether the package of Berlin is held with this error at this location."""
    result = errors_by_code(pass_result)
    return pass_result.outcomes.get("berlin/metrics") == "DeletionHeld" and result.get(code, "").startswith(where or "")


def list_removal_branches(world: World) -> list[str]:
    return [name for name in read_refs(world.fleet) if name.startswith("refs/heads/removals/")]


# The tests of this section change the content of one file.


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return a world with published packages. The tests only plan, and the fixture `config` restores the config."""
    return begin(tmp_path_factory.mktemp("absence") / "world", prepared_worlds.published)


@pytest.fixture
def config(shared_world: World) -> Iterator[World]:
    shutil.rmtree(shared_world.folder / "config-before", ignore_errors=True)
    shutil.copytree(shared_world.config, shared_world.folder / "config-before", symlinks=True)
    yield shared_world
    shutil.rmtree(shared_world.config)
    (shared_world.folder / "config-before").rename(shared_world.config)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param(LFS, "FileInconclusive", id="lfs-pointer"),
        pytest.param("<!DOCTYPE html>\n<html><body>502</body></html>\n", "FileInconclusive", id="html-page"),
        pytest.param('{"message":"Not Found"}\n', "FileInconclusive", id="json-error"),
        pytest.param(
            '{"kind":"Status","apiVersion":"v1","code":404}\n', "FileInconclusive", id="status-of-an-api-server"
        ),
        pytest.param(textwrap.indent(METRICS, "  ").replace("  api", "- api", 1), "FileInconclusive", id="list"),
        pytest.param(METRICS.replace("kind:", "Kind:"), "FileInconclusive", id="Kind"),
        pytest.param(METRICS.replace("kind: PackageVariant\n", ""), "FileInconclusive", id="no-kind"),
        pytest.param(METRICS.replace("apiVersion:", "apiversion:"), "FileInconclusive", id="no-apiVersion"),
        pytest.param("", "FileInconclusive", id="empty"),
        pytest.param("# TODO\n", "FileInconclusive", id="only-comments"),
        pytest.param("---\n...\n", "FileInconclusive", id="only-separators"),
        pytest.param("null\n", "FileInconclusive", id="null"),
        pytest.param("apiVersion: v1\nkind: List\nitems: []\n", "FileInconclusive", id="empty-list"),
        pytest.param(f"{OTHER}---\njust text\n", "FileInconclusive", id="one-bad-document-of-two"),
        pytest.param(METRICS[: METRICS.index("kind")], "FileInconclusive", id="truncated-after-a-line"),
        pytest.param(
            METRICS.replace(
                "  name: metrics-berlin\n",
                "  name: metrics-berlin\n  annotations: {config.kubernetes.io/local-config: 'true'}\n",
            ),
            "FileInconclusive",
            id="local-config",
        ),
        pytest.param(METRICS[:-10], "YamlSyntax", id="truncated-in-a-line"),
        pytest.param(f"<<<<<<< HEAD\n{METRICS}=======\n{METRICS}>>>>>>> feature\n", "YamlSyntax", id="merge-conflict"),
        pytest.param(METRICS.encode("utf-16"), "YamlEncoding", id="utf-16"),
        pytest.param(METRICS.encode("utf-16-le"), "YamlSyntax", id="utf-16-without-a-mark"),
        pytest.param(b"\x7fELF\x00\x01\xff\xfe", "YamlEncoding", id="binary"),
        pytest.param(METRICS.replace("  name: metrics-berlin\n", "  labels: {}\n"), "NameMissing", id="no-name"),
    ],
)
def test_file_with_invalid_config_keeps_its_packages(config: World, content: str | bytes, code: str) -> None:
    (config.config / "metrics.yaml").write_bytes(content.encode() if isinstance(content, str) else content)

    after = config.plan()

    assert is_kept(after, code, "metrics.yaml:"), errors_by_code(after)


def find_validation_errors(world: World, source: Path) -> dict[str, str]:
    """Return the locations of the errors of `validate`, by code."""
    settings = Settings.model_validate({"fleet": {"url": str(world.fleet)}, "cache": str(world.folder / "cache")})
    parts = build_services(settings, str(source))
    with parts.remotes as remotes:
        findings = validate(parts.source, remotes, parts.pass_services).findings
    return {finding.code: str(finding.location) for finding in findings if finding.severity is Severity.ERROR}


@pytest.mark.parametrize("content", [LFS, '{"message":"Not Found"}\n', ""], ids=["lfs-pointer", "json-error", "empty"])
def test_validate_reports_file_that_is_no_evidence_of_a_deletion(config: World, content: str) -> None:
    before = find_validation_errors(config, config.config)
    config.write({"metrics.yaml": content})

    assert (before, find_validation_errors(config, config.config)) == ({}, {"FileInconclusive": "metrics.yaml:1"})


@pytest.mark.parametrize("name", ["metrics.YAML", "metrics.Yml", "Metrics.JSON"])
def test_file_extension_in_another_case_keeps_its_packages(config: World, name: str) -> None:
    config.write({"metrics.yaml": None, name: METRICS})

    after = config.plan()

    assert is_kept(after, "FileInconclusive", "metrics.yaml:1")
    assert name in str([finding.message for finding in after.findings])


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"metrics.yaml": None}, id="the-file-is-deleted"),
        pytest.param({"metrics.yaml": OTHER}, id="another-object-is-in-its-place"),
        pytest.param({"metrics.yaml": f"{OTHER}---\n# nothing\n"}, id="its-document-is-deleted"),
        pytest.param({"metrics.yaml": None, "metrics.yaml.bak": METRICS}, id="renamed-to-what-is-no-config"),
        pytest.param({"metrics.yaml": None, ".metrics.yaml": METRICS}, id="renamed-to-a-hidden-name"),
        pytest.param(
            {"metrics.yaml": None, "values.yaml": "a: [1]\n"}, id="a-file-that-never-had-objects-is-no-config"
        ),
    ],
)
def test_evidence_of_a_deletion_leads_to_a_removal_draft(config: World, files: Mapping[str, str | None]) -> None:
    config.write(files)

    after = config.plan()

    assert (after.outcomes["berlin/metrics"], errors_by_code(after)) == ("proposed", {})


def wrap_in_list(text: str, kind: str = "List", api_version: str = "v1") -> str:
    item = textwrap.indent(text, "    ").replace("    ", "  - ", 1)
    return f"apiVersion: {api_version}\nkind: {kind}\nitems:\n{item}"


BARE = METRICS.partition("kind: PackageVariant\n")[2]


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"metrics.yaml": wrap_in_list(METRICS)}, id="v1-List"),
        pytest.param({"metrics.yaml": wrap_in_list(wrap_in_list(METRICS))}, id="a-List-in-a-List"),
        pytest.param(
            {"metrics.yaml": wrap_in_list(METRICS, "PackageVariantList", "config.porch.kpt.dev/v1alpha1")},
            id="typed-list",
        ),
        pytest.param(
            {"metrics.yaml": wrap_in_list(BARE, "PackageVariantList", "config.porch.kpt.dev/v1alpha1")},
            id="typed-list-whose-items-leave-out-the-kind",
        ),
        pytest.param({"metrics.yaml": None, "all/m.yml": METRICS}, id="another-file"),
        pytest.param({"metrics.yaml": LFS, "all/m.yml": METRICS}, id="another-file-and-the-old-one-is-no-config"),
        pytest.param({"metrics.yaml": None, "Metrics.yaml": METRICS}, id="the-name-in-another-case"),
    ],
)
def test_moved_object_keeps_its_package(config: World, files: Mapping[str, str | None]) -> None:
    config.write(files)

    after = config.plan()

    assert (after.outcomes["berlin/metrics"], errors_by_code(after)) == ("published", {})


def make_dangling_link(file: Path) -> None:
    file.symlink_to("nowhere.yaml")


def make_link(file: Path) -> None:
    (file.parent / "target.txt").write_text(METRICS)
    file.symlink_to("target.txt")


def make_folder(file: Path) -> None:
    file.mkdir()


def make_full_folder(file: Path) -> None:
    file.mkdir()
    (file / "readme.md").write_text("moved\n")


@pytest.mark.parametrize("make", [make_dangling_link, make_link, make_folder, make_full_folder])
def test_path_that_is_not_a_regular_file_keeps_its_packages(config: World, make: Callable[[Path], None]) -> None:
    file = config.config / "metrics.yaml"
    file.unlink()
    make(file)

    after = config.plan()

    assert is_kept(after, "FileInconclusive", "metrics.yaml:1"), errors_by_code(after)


@pytest.mark.parametrize("pattern", ["metrics.yaml", "*.yaml\n!clusters/*\n!catalog.yaml\n!gateway.yaml", "/m*"])
def test_ignored_file_keeps_its_packages(config: World, pattern: str) -> None:
    config.write({".krmignore": pattern})

    after = config.plan()

    assert is_kept(after, "FileInconclusive", "metrics.yaml:1"), errors_by_code(after)


@pytest.mark.parametrize("content", [LFS, "[]\n", ""])
def test_set_in_a_file_with_invalid_config_keeps_all_its_packages(config: World, content: str) -> None:
    config.write({"gateway.yaml": content})

    after = config.plan()

    assert errors_by_code(after).get("FileInconclusive", "").startswith("gateway.yaml:1")
    assert {after.outcomes[f"{cluster}/gateway"] for cluster in ("berlin", "lisbon")} == {"DeletionHeld"}


def test_file_has_one_finding_for_all_its_objects(config: World) -> None:
    config.write({"gateway.yaml": "# nothing\n", "metrics.yaml": "# nothing\n"})

    findings = [finding for finding in config.plan().findings if finding.code == "FileInconclusive"]

    assert [finding.location.file for finding in findings] == ["gateway.yaml", "metrics.yaml"]
    assert "PackageVariantSet default/gateway" in findings[0].message


# The tests of this section change the whole config.


def test_config_without_files_is_an_error(config: World) -> None:
    for path in sorted(config.config.rglob("*.yaml")):
        path.unlink()

    assert "ConfigEmpty" in errors_by_code(config.plan())


def test_config_with_only_ignored_files_is_an_error(config: World) -> None:
    config.write({".krmignore": "*\n"})

    (finding,) = [item for item in config.plan().findings if item.severity is Severity.ERROR]

    assert (finding.code, "excluded by .krmignore" in finding.message) == ("ConfigEmpty", True)


def test_deletion_of_all_owners_is_held_when_the_repositories_stay(config: World) -> None:
    config.write(dict.fromkeys(("gateway.yaml", "metrics.yaml", "regions/north.yaml", "regions/south.yaml")))

    after = config.plan()

    # The daemon can have read another folder. Therefore each target requires a confirmation.
    assert set(errors_by_code(after)) == {"DeletionHeld"}


SITES = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata: {name: sites}
spec:
  upstream: {repo: catalog, package: metrics, revision: v1}
  targets:
    - objectSelector: {apiVersion: v1, kind: ConfigMap, matchLabels: {site: "yes"}}
      template: {downstream: {package: site}}
"""


def selected_config_map(name: str) -> str:
    return config_map(name).replace(f"  name: {name}\n", f"  name: {name}\n  labels: {{site: 'yes'}}\n")


def test_selected_object_is_not_deleted_when_its_file_is_invalid(tmp_path: Path) -> None:
    world = begin(tmp_path, prepared_worlds.published)
    world.write(
        {
            "sites.yaml": SITES,
            "sites/berlin.yaml": selected_config_map("berlin"),
            "sites/lisbon.yaml": selected_config_map("lisbon"),
        }
    )
    assert world.sync().outcomes["lisbon/site"] == "draft"
    world.merge("lisbon", "squash")
    world.sync_until_unchanged()
    world.write({"sites/lisbon.yaml": LFS})

    after = world.sync()

    assert errors_by_code(after)["FileInconclusive"].startswith("sites/lisbon.yaml:1")
    assert (after.outcomes["lisbon/site"], list_removal_branches(world)) == ("DeletionHeld", [])


# The tests of this section run several passes.


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world in which all packages of Berlin and Lisbon are published."""
    return begin(tmp_path, prepared_worlds.published)


def test_error_stays_until_the_file_is_corrected_or_deleted(world: World) -> None:
    world.write({"metrics.yaml": LFS})
    assert is_kept(world.sync(), "FileInconclusive")
    pass_result = world.sync()
    assert (pass_result.is_unchanged, is_kept(pass_result, "FileInconclusive"), list_removal_branches(world)) == (
        True,
        True,
        [],
    )
    world.write({"metrics.yaml": METRICS})
    assert (world.sync_until_unchanged().outcomes["berlin/metrics"], errors_by_code(world.sync())) == ("published", {})
    world.write({"metrics.yaml": LFS})
    world.sync()
    world.write({"metrics.yaml": None})

    assert world.sync().outcomes["berlin/metrics"] == "proposed"
    assert world.sync().is_unchanged


def test_service_reports_dangling_link_in_every_pass_until_its_deletion(world: World) -> None:
    with_link = world.config / "metrics.yaml"
    service = world.service()
    service.run()
    with_link.unlink()
    with_link.symlink_to("nowhere")
    for _ in range(3):
        service.run()
        assert "FileInconclusive" in {finding.code for finding in service.summary.findings}
    assert list_removal_branches(world) == []
    with_link.unlink()

    service.run()

    assert list_removal_branches(world) == ["refs/heads/removals/berlin"]


def test_moved_file_is_checked_at_its_last_path(world: World) -> None:
    world.write({"metrics.yaml": None, "moved/m.yaml": METRICS})
    assert world.sync().changed_branches == set()
    assert world.sync().is_unchanged
    world.write({"metrics.yaml": LFS, "moved/m.yaml": None})

    after = world.sync()

    assert (after.outcomes["berlin/metrics"], errors_by_code(after)) == ("proposed", {})


def test_state_without_source_files_is_rewritten_once(world: World) -> None:
    remove_recorded_sources(world)

    first = world.sync()

    assert first.changed_branches == set()
    assert {name for name in first.after if first.after[name] != first.before[name]} >= {
        f"refs/reconciler/state/{cluster}" for cluster in ("berlin", "lisbon")
    }
    assert errors_by_code(first) == {}
    assert world.sync().is_unchanged


def test_state_without_source_files_is_no_evidence(world: World) -> None:
    remove_recorded_sources(world)
    world.write({"metrics.yaml": None})

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "DeletionHeld"
    assert "does not contain the config file of the owner" in next(
        finding.message for finding in after.findings if finding.code == "DeletionHeld"
    )


def remove_recorded_sources(world: World) -> None:
    """Write the states in the format of versions that recorded no source files."""
    for cluster in ("berlin", "lisbon"):
        ref = f"refs/reconciler/state/{cluster}"
        for name in git(world.fleet, "ls-tree", "-r", "--name-only", ref).splitlines():
            if name.startswith("packages/"):
                record = json.loads(git(world.fleet, "show", f"{ref}:{name}"))
                del record["sources"]
                commit_files(world.fleet, ref, {name: json.dumps(record).encode()})


# The tests of this section use a config in a Git repository.


class ConfigWorld(World):
    """A world with a config in a Git repository."""

    @property
    def source(self) -> str:
        return str(self.repo)

    @property
    def repo(self) -> Path:
        return self.folder / "config.git"

    def commit_config(self, files: Mapping[str, str | None], branch: str = "main") -> str:
        data = {path: None if text is None else text.encode() for path, text in files.items()}
        return commit_files(self.repo, f"refs/heads/{branch}", data, "by hand", 1_200_000_000)

    def replace_tree(self, path: str, mode: str, object_id: str) -> None:
        """Commit a tree with another kind of entry at the path."""
        index = self.folder / "index"
        index.unlink(missing_ok=True)
        work_tree = self.folder / "config-worktree"
        git(self.folder, "clone", "--quiet", str(self.repo), str(work_tree))
        git(work_tree, "rm", "--quiet", "-r", "--cached", path)
        git(work_tree, "update-index", "--add", "--cacheinfo", f"{mode},{object_id},{path}")
        git(work_tree, "commit", "--quiet", "-m", "by hand")
        git(work_tree, "push", "--quiet", "origin", "HEAD:main")


OWNERS = {f"apps/{name}.yaml": variant(name, "berlin", name, upstream="metrics") for name in ("a", "b", "c", "d")}
TARGETS = {"catalog.yaml": catalog(), "targets/berlin.yaml": repository("berlin")}


def create_git_world(folder: Path) -> ConfigWorld:
    """Return a world with four published packages of Berlin and a config in a Git repository."""
    world = ConfigWorld(folder)
    for name in ("catalog", "fleet", "config"):
        make_bare(folder / f"{name}.git")
    world.release("metrics", "v1", package("metrics"))
    world.commit_config({**TARGETS, **OWNERS})
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    return world


@pytest.fixture
def git_world(tmp_path: Path) -> ConfigWorld:
    return begin(tmp_path, create_git_world)


def is_nothing_removed(world: World, pass_result: PassResult, code: str) -> bool:
    """Return whether this pass and a second pass remove nothing and report an error with this code."""
    second_pass_result = world.sync()
    return (
        code in errors_by_code(pass_result)
        and code in errors_by_code(second_pass_result)
        and second_pass_result.is_unchanged
        and list_removal_branches(world) == []
    )


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    ("path", "mode"),
    [
        pytest.param("apps/a.yaml", "120000", id="link"),
        pytest.param("apps/a.yaml", "160000", id="submodule"),
        pytest.param("apps", "160000", id="its-folder-is-a-submodule"),
        pytest.param("apps", "120000", id="its-folder-is-a-link"),
        pytest.param("apps", "100644", id="its-folder-is-a-file"),
    ],
)
def test_tree_entry_of_another_kind_keeps_the_packages(git_world: ConfigWorld, path: str, mode: str) -> None:
    blob = git(git_world.repo, "hash-object", "-w", "--stdin", stdin=b"elsewhere")
    git_world.replace_tree(path, mode, "1" * 40 if mode == "160000" else blob)

    assert is_nothing_removed(git_world, git_world.sync(), "FileInconclusive")


def test_deleted_file_in_a_repository_is_evidence(git_world: ConfigWorld) -> None:
    git_world.commit_config({"apps/a.yaml": None})

    after = git_world.sync()

    assert (after.outcomes["berlin/a"], errors_by_code(after)) == ("proposed", {})
    assert git_world.sync().is_unchanged


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"README.md": "new\n"}, id="nothing-of-it"),
        pytest.param(TARGETS, id="only-the-targets"),
        pytest.param({**TARGETS, "apps/a.yaml": OWNERS["apps/a.yaml"]}, id="some-owners"),
        pytest.param({**TARGETS, **OWNERS, "README.md": "new\n"}, id="all-owners"),
    ],
)
def test_unrelated_history_removes_nothing(git_world: ConfigWorld, files: dict[str, str]) -> None:
    git_world.commit_config(files, "other")
    git(git_world.repo, "update-ref", "refs/heads/main", "refs/heads/other")

    after = git_world.sync()

    assert is_nothing_removed(
        git_world, after, "ConfigEmpty" if "catalog.yaml" not in files else "ConfigHistoryReplaced"
    )


def test_unrelated_history_is_accepted_by_annotation_or_merge(git_world: ConfigWorld) -> None:
    old = git(git_world.repo, "rev-parse", "main")
    root = git(git_world.repo, "rev-list", "--max-parents=0", "main")
    deleted = {**TARGETS, **{path: text for path, text in OWNERS.items() if path != "apps/a.yaml"}}
    new = git_world.commit_config(deleted, "other")
    git(git_world.repo, "update-ref", "refs/heads/main", new)
    held = git_world.sync()
    assert held.outcomes["berlin/a"] == "DeletionHeld"
    result = next(finding.message for finding in held.findings if finding.code == "ConfigHistoryReplaced")
    assert f'reconciler.dev/ack-reset: "{root[:12]}"' in result
    merged = git(git_world.repo, "commit-tree", f"{new}^{{tree}}", "-p", new, "-p", old, "-m", "keep the history")
    git(git_world.repo, "update-ref", "refs/heads/main", merged)
    assert (errors_by_code(git_world.plan()), git_world.plan().outcomes["berlin/a"]) == ({}, "proposed")
    git(git_world.repo, "update-ref", "refs/heads/main", new)
    line = f'  annotations: {{reconciler.dev/ack-reset: "{root[:12]}"}}\n'
    accepting = repository("berlin").replace("metadata:\n", f"metadata:\n{line}")

    git_world.commit_config({"targets/berlin.yaml": accepting})

    assert git_world.sync().outcomes["berlin/a"] == "proposed"
    git_world.commit_config({"targets/berlin.yaml": repository("berlin")})
    assert errors_by_code(git_world.sync()) == {}


def test_rewritten_history_with_the_same_root_is_related(git_world: ConfigWorld) -> None:
    git_world.commit_config({"notes.md": "one\n"})
    git_world.sync()
    git(git_world.repo, "update-ref", "refs/heads/main", "refs/heads/main~1")
    git_world.commit_config({"apps/a.yaml": None})

    assert errors_by_code(git_world.sync()) == {}


# The tests of this section change the setting `config.directory`.


def use_directory(world: World, directory: str, **more: object) -> ConfigWorld:
    return ConfigWorld(world.folder, config={"directory": directory}, **more)


def test_missing_directory_of_a_repository_removes_nothing(git_world: ConfigWorld) -> None:
    elsewhere = use_directory(git_world, "prod")

    assert is_nothing_removed(elsewhere, elsewhere.sync(), "ConfigDirectoryMissing")


def test_missing_directory_of_a_folder_removes_nothing(world: World) -> None:
    elsewhere = World(world.folder, config={"directory": "prod"})

    assert is_nothing_removed(elsewhere, elsewhere.sync(), "ConfigDirectoryMissing")


def test_directory_that_hides_most_owners_removes_nothing(git_world: ConfigWorld) -> None:
    git_world.commit_config({"prod/catalog.yaml": catalog(), "prod/berlin.yaml": repository("berlin")})
    elsewhere = use_directory(git_world, "prod")

    assert is_nothing_removed(elsewhere, elsewhere.sync(), "ConfigDirectoryHides")


def test_directory_that_hides_few_owners_removes_their_packages(git_world: ConfigWorld) -> None:
    three = {f"prod/{path}": text for path, text in OWNERS.items() if path != "apps/a.yaml"}
    git_world.commit_config({**{f"prod/{path}": text for path, text in TARGETS.items()}, **three})
    elsewhere = use_directory(git_world, "prod", guards={"max_delete_percent": 30})

    after = elsewhere.sync()

    assert (after.outcomes["berlin/a"], errors_by_code(after)) == ("proposed", {})
    assert elsewhere.sync().is_unchanged


def test_config_that_moves_into_a_directory_removes_nothing(git_world: ConfigWorld) -> None:
    files = {**TARGETS, **OWNERS}
    git_world.commit_config({**{f"prod/{path}": text for path, text in files.items()}, **dict.fromkeys(files)})
    elsewhere = use_directory(git_world, "prod")

    after = elsewhere.sync()

    assert (after.changed_branches, errors_by_code(after)) == (set(), {})
    assert elsewhere.sync().is_unchanged
    elsewhere.commit_config({"prod/apps/a.yaml": LFS})
    assert errors_by_code(elsewhere.sync())["FileInconclusive"].startswith("apps/a.yaml:1")


# The tests of this section have owners that are not ready.


def in_namespace(text: str, namespace: str) -> str:
    return text.replace("metadata:\n", f"metadata:\n  namespace: {namespace}\n", 1)


GATEWAYS = injected_set("gateway", ("berlin", "lisbon"))


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"gateway.yaml": in_namespace(GATEWAYS, "other")}, id="set-in-another-namespace"),
        pytest.param(
            {"gateway.yaml": in_namespace(injected_set("gateway", ["berlin", "lisbon"], "v9"), "other")},
            id="set-in-another-namespace-with-an-unknown-revision",
        ),
        pytest.param(
            {"gateway.yaml": None, "new.yaml": in_namespace(GATEWAYS, "other").replace("name: gateway", "name: new")},
            id="set-with-another-name-in-another-file",
        ),
        pytest.param(
            {
                "gateway.yaml": in_namespace(GATEWAYS, "other").replace(
                    "- repositories:\n        - name: berlin\n        - name: lisbon\n", "- repositorySelector: {}\n"
                )
            },
            id="set-in-another-namespace-with-a-selector",
        ),
        pytest.param(
            {"gateway.yaml": GATEWAYS.replace("name: gateway\n", "name: new\n", 1).replace("v1}", "v9}")},
            id="renamed-set-that-fails",
        ),
        pytest.param(
            {"gateway.yaml": GATEWAYS.replace("name: gateway\n", "name: new\n", 1) + "  x: y\n"}, id="invalid"
        ),
    ],
)
def test_removal_waits_when_an_owner_that_is_not_ready_may_request_the_package(
    config: World, files: Mapping[str, str | None]
) -> None:
    config.write(files)

    after = config.plan()

    assert {after.outcomes[f"{cluster}/gateway"] for cluster in ("berlin", "lisbon")} == {"RemovalWaits"}
    assert errors_by_code(after)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(in_namespace(METRICS, "other"), id="another-namespace"),
        pytest.param(METRICS.replace("metrics-berlin", "new").replace("v1}", "v9}"), id="another-name"),
    ],
)
def test_moved_package_variant_that_is_not_ready_keeps_its_package(config: World, text: str) -> None:
    config.write({"metrics.yaml": text})

    after = config.plan()

    # A requested package that the daemon cannot render now has no removal decision.
    assert after.outcomes.get("berlin/metrics") in ("RemovalWaits", None)
    assert errors_by_code(after)


def test_owner_that_is_not_ready_and_requests_another_package_does_not_delay_removal(config: World) -> None:
    config.write({"metrics.yaml": None, "x.yaml": variant("x", "lisbon", "metrics", "v9")})

    assert config.plan().outcomes["berlin/metrics"] == "proposed"


# The tests of this section set the deletion limit of a target.


def acknowledge_deletions(text: str, token: str) -> str:
    return text.replace("metadata:\n", f'metadata:\n  annotations: {{reconciler.dev/ack-deletions: "{token}"}}\n', 1)


def test_acknowledged_deletions_exceed_the_limit_of_the_target(git_world: ConfigWorld) -> None:
    guarded = ConfigWorld(git_world.folder, guards={"max_delete_percent": 30})
    guarded.commit_config({"apps/a.yaml": None, "apps/b.yaml": None})

    held = guarded.sync()

    assert {held.outcomes[f"berlin/{item}"] for item in "ab"} == {"DeletionHeld"}
    assert errors_by_code(held) == {"DeletionHeld": "targets/berlin.yaml:1 Repository/default/berlin"}
    assert guarded.sync().is_unchanged
    message = next(finding.message for finding in held.findings if finding.code == "DeletionHeld")
    (token,) = re.findall(r'annotate Repository berlin with reconciler.dev/ack-deletions: "([0-9a-f]{16})"', message)
    guarded.commit_config({"targets/berlin.yaml": acknowledge_deletions(repository("berlin"), token)})
    after = guarded.sync()
    assert {after.outcomes[f"berlin/{item}"] for item in "ab"} == {"proposed"}
    assert errors_by_code(after) == {}
    assert guarded.sync().is_unchanged


def test_deletion_below_the_limit_needs_no_acknowledgment(git_world: ConfigWorld) -> None:
    guarded = ConfigWorld(git_world.folder, guards={"max_delete_percent": 30})
    guarded.commit_config({"apps/a.yaml": None})

    assert guarded.sync().outcomes["berlin/a"] == "proposed"


def test_deletion_of_all_packages_of_a_target_is_held(git_world: ConfigWorld) -> None:
    guarded = ConfigWorld(git_world.folder, guards={"max_delete_percent": 30})
    guarded.commit_config(dict.fromkeys(OWNERS))

    after = guarded.sync()

    assert {after.outcomes[f"berlin/{item}"] for item in "abcd"} == {"DeletionHeld"}
    assert list_removal_branches(guarded) == []
