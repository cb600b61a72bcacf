"""`reconciler init`: from options, and from questions on a terminal."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from reconciler.bootstrap.repository_type import detect_repository_type
from tests.support.artifact_servers import ArtifactServer, serve
from tests.support.command_line import CommandResult, run_in
from tests.support.daemon import ENVIRONMENT
from tests.support.git_repositories import commit_files, git, make_bare, point_ref
from tests.support.terminal import run_on_terminal

KPTFILE = b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: gateway\n"
CONFIG_MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: gateway\n  namespace: web\ndata:\n  zone: a\n"
OPTIONS = (
    "--catalog", "catalog=catalog.git", "--fleet", "fleet.git",
    "--cluster", "berlin,region=eu", "--cluster", "ohio,region=us", "--package", "catalog/gateway@v1", "--yes",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a catalog, which contains the package gateway, and an empty fleet repository."""
    catalog = make_bare(tmp_path / "catalog.git")
    make_bare(tmp_path / "fleet.git")
    commit = commit_files(
        catalog, "refs/heads/main", {"gateway/Kptfile": KPTFILE, "gateway/zone.yaml": CONFIG_MAP}, "gateway"
    )
    point_ref(catalog, "refs/tags/gateway/v1", commit)
    return tmp_path


def init(folder: Path, *arguments: str) -> CommandResult:
    return run_in(folder, ENVIRONMENT, "init", *arguments)


def read_files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_a_config_is_created_from_options_and_has_drafts(folder: Path) -> None:
    result = init(folder, "platform", *OPTIONS)

    assert result.returncode == 2, result.stderr
    assert "Plan: 2 packages to install on 2 clusters" in result.stdout
    assert [*read_files(folder / "platform")] == [
        "README.md", "config/clusters.yaml", "config/gateway.yaml", "config/repositories.yaml", "reconciler.yaml",
    ]  # fmt: skip
    synced = run_in(folder / "platform", ENVIRONMENT, "sync")
    assert synced.returncode == 0, synced.stderr
    assert "gateway/zone.yaml" in git(folder / "fleet.git", "ls-tree", "-r", "--name-only", "drafts/ohio")


@pytest.mark.slow
def test_a_terminal_asks_for_all_values_and_writes_the_files_of_the_options(folder: Path) -> None:
    answers = [
        ("Name of the catalog [catalog]:", ""),
        ("URL or path of the catalog:", "./catalog.git"),
        ("Repository with the branches of the clusters [./fleet.git]:", ""),
        ("Clusters with labels", "berlin,region=e/u"),
        ('Error: the label "region" is invalid', "berlin,region=eu ohio,region=us"),
        ("Package for all clusters, such as catalog/gateway@v1", "catalog/gateway@v1"),
    ]
    status, output = run_on_terminal(folder, ENVIRONMENT, ["init", "asked"], answers)

    assert status == 2, output
    command = next(line for line in output.splitlines() if line.strip().startswith("reconciler init asked"))
    _, _, _, *arguments = shlex.split(command)
    assert init(folder, "given", *arguments).returncode == 2
    assert read_files(folder / "asked") == read_files(folder / "given")
    assert init(folder, "options", *OPTIONS).returncode == 2
    assert read_files(folder / "options") == read_files(folder / "given")


@pytest.mark.slow
def test_a_terminal_asks_only_for_missing_values(folder: Path) -> None:
    given = OPTIONS[: OPTIONS.index("--package")]
    answers = [("Package for all clusters", "")]
    status, output = run_on_terminal(folder, ENVIRONMENT, ["init", "platform", *given], answers)

    assert status == 0, output
    assert "URL" not in output
    assert not (folder / "platform/config/gateway.yaml").exists()


def test_a_second_run_changes_nothing_unless_it_is_forced(folder: Path) -> None:
    init(folder, "platform", *OPTIONS)
    (folder / "platform/config/clusters.yaml").write_text("# edited\n")
    before = read_files(folder / "platform")

    second = init(folder, "platform", *OPTIONS)

    assert second.returncode == 3
    assert (
        "nothing was written, because these files exist in platform: README.md, config/clusters.yaml" in second.stderr
    )
    assert read_files(folder / "platform") == before
    assert init(folder, "platform", *OPTIONS, "--force").returncode == 2
    assert "berlin" in read_files(folder / "platform")["config/clusters.yaml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (OPTIONS[:-1], "Without a terminal, it also requires --yes"),
        (("--fleet", "fleet.git", "--yes"), "init requires --catalog, --fleet, and --cluster or --clusters"),
        (("--catalog", "catalog=https://ada:secret@example.com/c.git", *OPTIONS[2:]), "must not contain a user name"),
        ((*OPTIONS[:2], "--fleet", "https://secret@example.com/f.git", *OPTIONS[4:]), "must not contain a user name"),
        ((*OPTIONS, "--selector", "region=asia"), "no cluster has the labels 'region=asia'"),
        ((*OPTIONS, "--clusters", "missing.csv"), "missing.csv: No such file or directory"),
    ],
    ids=["no-terminal", "missing-option", "password-of-a-catalog", "token-of-the-fleet", "selector", "missing-file"],
)
def test_an_invalid_call_writes_nothing(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    result = init(folder, "platform", *arguments)

    assert result.returncode == 3
    assert message in result.stderr
    assert "secret" not in result.stderr
    assert not (folder / "platform").exists()


def test_a_folder_in_a_target_branch_is_refused(folder: Path) -> None:
    git(folder, "init", "--quiet", "--initial-branch=clusters/berlin", "fleet")

    result = init(folder, "fleet/platform", *OPTIONS)

    assert result.returncode == 3
    assert "must not be in a work tree of the branch 'clusters/berlin'" in result.stderr
    assert not (folder / "fleet/platform").exists()


def test_an_unreadable_catalog_is_an_error_of_the_plan_and_the_files_are_written(folder: Path) -> None:
    result = init(folder, "platform", "--catalog", "catalog=absent.git", *OPTIONS[2:])

    assert result.returncode == 1
    assert "error" in result.stdout
    assert (folder / "platform/config/gateway.yaml").exists()


def test_the_json_output_lists_the_files(folder: Path) -> None:
    (folder / "clusters.csv").write_text("name,region\nberlin,eu\nohio,us\n")
    options = [*OPTIONS[:4], *OPTIONS[8:], "--clusters", "clusters.csv", "--selector", "region=us", "-o", "json"]
    data = json.loads(init(folder, "platform", *options).stdout)

    assert data["kind"] == "Scaffold"
    assert [item["path"] for item in data["items"]] == [*read_files(folder / "platform")]
    assert (data["summary"]["install"], data["summary"]["folder"]) == (1, "platform")


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("/charts/index.yaml", b"apiVersion: v1\nentries: {}\n", "helm"),
        ("/charts/index.yaml", b"<html>Sign in</html>", "git"),
        ("/other", b"entries: {}\n", "git"),
    ],
    ids=["index", "page-of-a-login", "no-index"],
)
def test_a_url_with_an_index_is_a_chart_repository(path: str, content: bytes, expected: str) -> None:
    with serve(ArtifactServer(files={path: content})) as server:
        assert detect_repository_type(f"{server.url}/charts") == expected
        assert server.paths == ["GET /charts/index.yaml"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("oci://example.com/apps", "oci"),
        ("http://127.0.0.1:1/charts", "git"),
        ("https://example.com/catalog.git", "git"),
        ("./catalog", "git"),
    ],
)
def test_other_urls_need_no_answer_of_a_server(url: str, expected: str) -> None:
    assert detect_repository_type(url) == expected
