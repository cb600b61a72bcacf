"""`reconciler pkg`: commands for one package, from a real repository to a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.cli.entry import run
from tests.support.daemon import run_program
from tests.support.git_repositories import commit_files, git, make_bare
from tests.support.world import config_map, deployment

MAIN = "refs/heads/main"


def kptfile(name: str, more: str = "") -> str:
    return f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n{more}"


def mutators(*functions: str) -> str:
    return "pipeline:\n  mutators:\n" + "".join(f"    - {function}\n" for function in functions)


LABELS = "{image: set-labels:v0.2.0, configMap: {tier: front}}"
FAILS = "{image: set-namespace:v0.4.1}"


@dataclass(frozen=True)
class Ended:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The package in its JSON output."""
        (data,) = json.loads(self.out)["items"]
        package: dict[str, Any] = data
        return package


Pkg = Callable[..., Ended]


@pytest.fixture
def pkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pkg:
    for name in [name for name in os.environ if name.startswith(("RECONCILER", "GIT_", "KPT", "KRM"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RECONCILER_CACHE", str(tmp_path / ".cache"))
    monkeypatch.chdir(tmp_path)

    def ended(*arguments: str) -> Ended:
        code = run(["pkg", *arguments])
        return Ended(code, *capsys.readouterr())

    return ended


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    path = make_bare(tmp_path / "up.git")
    release(path, "v1", {"Kptfile": kptfile("web"), "web.yaml": deployment("web"), "db/Kptfile": kptfile("db"),
                         "db/db.yaml": config_map("db", size="1"), "README.md": "read me\n"})  # fmt: skip
    return path


def release(repository: Path, version: str, files: Mapping[str, str | None], folder: str = "web") -> str:
    content = {f"{folder}/{path}": text.encode() if text is not None else None for path, text in files.items()}
    commit = commit_files(repository, MAIN, content)
    git(repository, "update-ref", f"refs/tags/{folder}/{version}", commit)
    return commit


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(files)}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


# get


def test_get_brings_a_package_with_its_subpackages(pkg: Pkg, upstream: Path, tmp_path: Path) -> None:
    result = pkg("get", "up.git/web@v1")
    output = contents(tmp_path / "web")
    root = yaml.safe_load(output["Kptfile"])
    git_of = {"repo": str(upstream), "directory": "/web", "ref": "v1"}

    assert result.code == 0, result.err
    assert list(output) == ["Kptfile", "README.md", "db/Kptfile", "db/db.yaml", "web.yaml"]
    assert root["upstream"] == {"type": "git", "git": git_of, "updateStrategy": "resource-merge"}
    assert root["upstreamLock"]["git"]["commit"] == git(upstream, "rev-parse", "main")
    assert list(root) == ["apiVersion", "kind", "metadata", "upstream", "upstreamLock"]
    assert output["web.yaml"] == deployment("web").replace("metadata:\n", "metadata: # kpt-merge: /web\n", 1)


def test_get_uses_the_default_branch_without_a_ref(pkg: Pkg, upstream: Path, tmp_path: Path) -> None:
    result = pkg("get", "up.git/web", "mine", "--strategy", "copy-merge", "--for-deployment", "-o", "json")
    root = yaml.safe_load((tmp_path / "mine/Kptfile").read_text())
    context = yaml.safe_load((tmp_path / "mine/package-context.yaml").read_text())

    assert (result.code, result.data["outcome"], result.data["upstream"]["ref"]) == (0, "got", "main")
    assert root["metadata"]["name"] == "mine"
    assert root["upstream"]["git"]["ref"] == "main"
    assert root["upstream"]["updateStrategy"] == "copy-merge"
    assert context["data"] == {"name": "mine"}


def test_get_brings_what_subpackages_follow(pkg: Pkg, upstream: Path, tmp_path: Path) -> None:
    far = make_bare(tmp_path / "far.git")
    release(far, "v1", {"Kptfile": kptfile("cache"), "c.yaml": config_map("c", size="1")}, "cache")
    follows = f"upstream:\n  type: git\n  git:\n    repo: {far}\n    directory: /cache\n    ref: v1\n"
    release(upstream, "v2", {"cache/Kptfile": kptfile("cache", follows)})

    result = pkg("get", "up.git/web@v2")

    assert result.code == 0, result.err
    assert "size: 1" in (tmp_path / "web/cache/c.yaml").read_text()
    assert "commit: " in (tmp_path / "web/cache/Kptfile").read_text()


@pytest.mark.parametrize(
    ("files", "arguments", "code", "content"),
    [
        pytest.param({}, ["up.git/web@v7"], 3, 'no branch or tag "v7"', id="no-such-ref"),
        pytest.param({}, ["up.git/nothing@main"], 3, 'must have a folder "nothing"', id="no-such-folder"),
        pytest.param({}, ["away.git/web"], 3, "away.git", id="no-such-repository"),
        pytest.param({}, ["https://ada:hunter2@h/r.git/web"], 3, "CredentialInUrl", id="credentials"),
        pytest.param(
            {"web/mine": "mine"}, ["up.git/web"], 3, "must not exist, or must be an empty folder", id="not-empty"
        ),
        pytest.param({"web": "a file"}, ["up.git/web"], 3, "must not exist, or must be an empty folder", id="a-file"),
        pytest.param({}, ["up.git/web", "--strategy", "rebase"], 3, "'rebase' is not one of", id="strategy"),
    ],
)
def test_get_that_fails_leaves_everything_as_it_was(
    pkg: Pkg, upstream: Path, tmp_path: Path, files: dict[str, str], arguments: list[str], code: int, content: str
) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    result = pkg("get", *arguments)

    assert (result.code, content in result.err, "hunter2" in result.err + result.out) == (code, True, False), result
    assert contents(tmp_path / "web") == {
        path.removeprefix("web/"): text for path, text in files.items() if "/" in path
    }


def test_get_of_a_package_that_is_wrong_names_file_and_line(pkg: Pkg, upstream: Path, tmp_path: Path) -> None:
    release(upstream, "v2", {"Kptfile": kptfile("web", "pipeline: [\n")})

    result = pkg("get", "up.git/web@v2")

    assert (result.code, "Kptfile:6: error KptfileSyntax" in result.out) == (1, True), result
    assert not (tmp_path / "web").exists()


def test_a_package_from_afar_must_not_name_repositories_of_this_machine(pkg: Pkg, upstream: Path) -> None:
    from reconciler.bootstrap.package_services import build_package_services
    from reconciler.git.errors import UrlRefusedError
    from reconciler.settings import Settings

    parts = build_package_services(Settings(), Path("web"), "https://example.com/r.git")

    with pytest.raises(UrlRefusedError, match="may use this path only if"):
        parts.upstreams.fetch(str(upstream), "web", "main")


# update


@pytest.fixture
def web(pkg: Pkg, upstream: Path, tmp_path: Path) -> Path:
    assert pkg("get", "up.git/web@v1").code == 0
    release(upstream, "v2", {"web.yaml": deployment("web", replicas=4, image="2.0"), "README.md": "read more\n"})
    return tmp_path / "web"


@pytest.mark.parametrize("command", [("update", "web@v2"), ("diff", "web")])
def test_credentials_in_the_upstream_of_a_kptfile_are_refused(
    pkg: Pkg, web: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    edit(web / "Kptfile", str(tmp_path / "up.git"), "https://ada:hun/ter2@h.example/up.git")
    before = contents(web)

    result = pkg(*command)

    assert (result.code, "CredentialInUrl" in result.err, "ter2" in result.err + result.out) == (3, True, False), result
    assert contents(web) == before


def test_update_merges_and_keeps_edits(pkg: Pkg, web: Path) -> None:
    edit(web / "web.yaml", "replicas: 2 # enough", "replicas: 2 # not enough")
    edit(web / "db/db.yaml", "size: 1", "size: 5")
    before, untouched = contents(web), (web / "db/db.yaml").stat()
    result = pkg("update", "web@v2")
    after = contents(web)

    assert result.code == 0, result.err
    assert "Deployment web: replicas 2 → 4" in result.out
    assert after == {
        **before,
        "README.md": "read more\n",
        "web.yaml": before["web.yaml"].replace("replicas: 2", "replicas: 4").replace("web:1.0", "web:2.0"),
        "Kptfile": after["Kptfile"],
    }
    assert (web / "db/db.yaml").stat().st_ino == untouched.st_ino
    assert yaml.safe_load(after["Kptfile"])["upstream"]["git"]["ref"] == "v2"


def test_a_second_update_writes_nothing(pkg: Pkg, web: Path) -> None:
    assert pkg("update", "web@v2").code == 0
    before = {path: path.stat().st_ino for path in web.rglob("*")}

    result = pkg("update", "web", "-o", "json")

    assert (result.code, result.data["outcome"]) == (0, "unchanged")
    assert {path: path.stat().st_ino for path in web.rglob("*")} == before


@pytest.mark.parametrize(
    ("policy", "code", "chosen", "replicas"),
    [
        pytest.param("upstream", 0, "upstream", 4, id="upstream"),
        pytest.param("local", 0, "local", 7, id="local"),
        pytest.param("block", 1, "none", 7, id="block"),
    ],
)
def test_conflicts_are_reported_and_resolved_by_the_option(
    pkg: Pkg, web: Path, policy: str, code: int, chosen: str, replicas: int
) -> None:
    edit(web / "web.yaml", "replicas: 2", "replicas: 7")
    before = contents(web)
    result = pkg("update", "web@v2", "--conflicts", policy, "-o", "json")

    assert (result.code, result.data["conflicts"]) == (code, [{
        "kind": "field", "file": "web.yaml", "resource": "Deployment/_cluster/web", "pointer": "/spec/replicas",
        "base": 2, "local": 7, "upstream": 4, "chosen": chosen, "rule": "D2",
    }])  # fmt: skip
    assert f"replicas: {replicas}" in (web / "web.yaml").read_text()
    assert (contents(web) == before) == (policy == "block")


def test_conflicts_in_words(pkg: Pkg, web: Path) -> None:
    edit(web / "web.yaml", "replicas: 2", "replicas: 7")
    (web / "README.md").write_text("mine\n")

    result = pkg("update", "web@v2")

    assert (
        "web.yaml Deployment/_cluster/web /spec/replicas: base 2, local 7, upstream 4: the local side is kept (rule D2)"
        in result.out
    )
    assert "README.md: file changed locally, changed upstream: the local side is kept (rule D16)" in result.out


@pytest.mark.parametrize("command", ["update", "diff"])
@pytest.mark.parametrize("url", ["https://u:se/same@e.com/x.git", "u:sesame@host:x.git", "sesame@e.com/o/r"])
def test_a_url_with_credentials_in_place_of_a_folder_is_refused_and_not_shown(pkg: Pkg, command: str, url: str) -> None:
    result = pkg(command, url)

    assert result.code == 3
    assert "same" not in result.out + result.err
    assert "must be DIR or DIR@REF" in result.err


def test_a_secret_is_never_shown(pkg: Pkg, upstream: Path, tmp_path: Path) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  p: {}\n"
    release(upstream, "v3", {"s.yaml": secret.format("hunter1")})
    assert pkg("get", "up.git/web@v3").code == 0
    release(upstream, "v4", {"s.yaml": secret.format("hunter2")})
    edit(tmp_path / "web/s.yaml", "hunter1", "hunter3")

    results = [pkg("update", "web@v4", "--dry-run"), pkg("update", "web@v4", "--dry-run", "-o", "json")]
    results += [pkg("diff", "web"), pkg("diff", "web@v4", "-o", "json"), pkg("update", "web@v4")]

    assert [result.code for result in results] == [2, 2, 2, 2, 0]
    assert not [result for result in results if "hunter" in result.out + result.err]


def test_a_dry_run_shows_the_diff_and_writes_nothing(pkg: Pkg, web: Path) -> None:
    before = contents(web)
    result = pkg("update", "web", "--ref", "v2", "--dry-run")

    assert (result.code, contents(web)) == (2, before), result.err
    assert "-  replicas: 2 # enough" in result.out
    assert "+  replicas: 4 # enough" in result.out


def test_a_strategy_is_remembered(pkg: Pkg, web: Path) -> None:
    assert pkg("update", "web@v2", "--strategy", "force-delete-replace").code == 0
    assert pkg("update", "web@main").code == 0

    assert yaml.safe_load((web / "Kptfile").read_text())["upstream"]["updateStrategy"] == "force-delete-replace"


def test_fast_forward_names_the_files_that_were_changed(pkg: Pkg, web: Path) -> None:
    edit(web / "web.yaml", "replicas: 2", "replicas: 7")
    before = contents(web)
    result = pkg("update", "web@v2", "--strategy", "fast-forward")

    assert (result.code, contents(web)) == (1, before)
    assert "web.yaml: error FastForwardLocalChanges" in result.out


def test_links_are_not_followed_and_stay(pkg: Pkg, web: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    (web / "web.yaml").rename(outside)
    (web / "web.yaml").symlink_to(outside)
    before = outside.read_text()
    result = pkg("update", "web@v2")

    assert result.code == 0, result.err
    assert "Deployment" in result.out
    assert (web / "web.yaml").is_symlink()
    assert outside.read_text() == before


def test_a_link_where_a_new_file_is_to_be_is_refused(pkg: Pkg, web: Path, upstream: Path, tmp_path: Path) -> None:
    release(upstream, "v3", {"new.yaml": config_map("new", a="1")})
    (web / "new.yaml").symlink_to(tmp_path / "outside.yaml")
    before = contents(web)
    result = pkg("update", "web@v3")

    assert (result.code, "new.yaml must be a regular file" in result.err) == (3, True), result
    assert contents(web) == before


@pytest.mark.parametrize(
    ("text", "code", "content"),
    [
        pytest.param("", 1, "Kptfile: error KptfileMissing", id="none"),
        pytest.param(kptfile("web"), 1, "UpstreamMissing: the Kptfile must have the field upstream.git", id="no-upstream"),
        pytest.param("kind: [\n", 1, "Kptfile:2: error KptfileSyntax", id="syntax"),
        pytest.param(kptfile("web", "upstream: {updateStrategy: rebase}\n"), 1,
                     "Kptfile:5: error KptfileInvalid: upstream.updateStrategy", id="strategy"),
        pytest.param(kptfile("web", "upstream: {type: git, git: {repo: 'ext::sh -c ls', ref: v1}}\n"), 3,
                     "must not start with a Git remote helper", id="hostile-address"),
    ],
)  # fmt: skip
def test_a_failed_update_reports_the_reason(pkg: Pkg, tmp_path: Path, text: str, code: int, content: str) -> None:
    (tmp_path / "web").mkdir()
    if text:
        (tmp_path / "web/Kptfile").write_text(text)

    result = pkg("update", "web")

    assert (result.code, content in result.out + result.err, "Traceback" in result.err) == (code, True, False), result


# in a work tree


def commit_all(folder: Path) -> None:
    git(folder, "add", "--all", "--force", ".")
    git(folder, "commit", "--quiet", "-m", "all")


@pytest.fixture
def tracked(web: Path) -> Path:
    git(web, "init", "--quiet")
    commit_all(web)
    return web


def test_what_git_could_not_bring_back_is_not_replaced(pkg: Pkg, tracked: Path) -> None:
    edit(tracked / "web.yaml", "# enough", "# not enough")
    before = contents(tracked)
    refused = pkg("update", "web@v2")
    remaining = contents(tracked)
    forced = pkg("update", "web@v2", "--allow-uncommitted")

    assert (refused.code, remaining) == (3, before)
    assert "web.yaml must be committed" in refused.err
    assert (forced.code, "not enough" in (tracked / "web.yaml").read_text()) == (0, True)


def test_uncommitted_files_that_stay_block_no_update(pkg: Pkg, tracked: Path) -> None:
    edit(tracked / "db/db.yaml", "size: 1", "size: 5")
    (tracked / "notes.txt").write_text("mine")
    index = (tracked / ".git/index").read_bytes()

    result = pkg("update", "web@v2")

    assert result.code == 0, result.err
    assert "size: 5" in (tracked / "db/db.yaml").read_text()
    assert (tracked / ".git/index").read_bytes() == index


# diff


@pytest.mark.parametrize(
    ("arguments", "code", "values"),
    [
        pytest.param(["web"], 2, {"web.yaml"}, id="what-people-changed"),
        pytest.param(["web@v2"], 2, {"web.yaml", "README.md"}, id="against-a-ref"),
        pytest.param(["web", "--against", "web/v2"], 2, {"web.yaml", "README.md"}, id="against-a-ref-apart"),
        pytest.param(["web", "--against", "latest"], 2, {"web.yaml"}, id="against-what-is-followed"),
        pytest.param(["web@v2", "--to", "3way"], 2, {"web.yaml", "README.md", "Kptfile"}, id="what-an-update-does"),
    ],
)
def test_diff(pkg: Pkg, web: Path, arguments: list[str], code: int, values: set[str]) -> None:
    edit(web / "web.yaml", "replicas: 2", "replicas: 7")
    before = contents(web)
    result = pkg("diff", *arguments, "-o", "json")

    assert (result.code, {diff["path"] for diff in result.data["diffs"]}) == (code, values), result.err
    assert contents(web) == before


def test_diff_in_words(pkg: Pkg, web: Path) -> None:
    assert pkg("diff", "web").code == 0

    edit(web / "web.yaml", "replicas: 2", "replicas: 7")
    result = pkg("diff", "web")

    assert result.code == 2
    assert "Deployment web: replicas 2 → 7" in result.out
    assert "-  replicas: 2 # enough" in result.out
    assert "kpt-merge" not in "".join(line for line in result.out.splitlines() if line.startswith(("+", "-")))


# render


def packaged(folder: Path, *functions: str, more: str = "") -> Path:
    folder.mkdir()
    text = kptfile("web", mutators(*functions)).replace("metadata:\n", f"metadata:\n{more}")
    (folder / "Kptfile").write_text(text)
    (folder / "web.yaml").write_text("# licence\n" + deployment("web"))
    (folder / "other.txt").write_text("no resource\r\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    return folder


def test_render_writes_what_functions_change_and_nothing_else(pkg: Pkg, tmp_path: Path) -> None:
    folder = packaged(tmp_path / "web", LABELS)
    other = (folder / "other.txt").stat().st_ino
    result = pkg("render", "web", "--results-dir", "results")
    second_result = pkg("render", "web", "-o", "json")
    results = yaml.safe_load((tmp_path / "results/results.yaml").read_text())

    assert result.code == 0, result.out
    assert "mutator set-labels:v0.2.0: passed" in result.out
    assert (folder / "web.yaml").read_text().startswith("# licence\napiVersion: apps/v1\n")
    assert "tier: front" in (folder / "web.yaml").read_text()
    assert "Rendered" not in (folder / "Kptfile").read_text()
    assert (folder / "other.txt").stat().st_ino == other
    assert (second_result.code, second_result.data["outcome"], "changes" in second_result.data) == (
        0,
        "rendered",
        False,
    )
    assert (results["kind"], results["exitCode"], len(results["items"])) == ("FunctionResultList", 0, 1)


@pytest.mark.parametrize(
    ("more", "saved"),
    [
        pytest.param("", False, id="nothing-is-written"),
        pytest.param('  annotations: {kpt.dev/save-on-render-failure: "true"}\n', True, id="unless-requested"),
    ],
)
def test_render_that_fails(pkg: Pkg, tmp_path: Path, more: str, saved: bool) -> None:
    folder = packaged(tmp_path / "web", LABELS, FAILS, more=more)
    before = contents(folder)
    result = pkg("render", "web", "--results-dir", "results", "-o", "json")
    results = yaml.safe_load((tmp_path / "results/results.yaml").read_text())

    assert (result.code, result.data["failure"]["function"]) == (1, "set-namespace:v0.4.1")
    assert ("tier: front" in (folder / "web.yaml").read_text(), contents(folder) != before) == (saved, saved)
    assert (results["exitCode"], [item["exitCode"] for item in results["items"]]) == (1, [0, 1])


@pytest.mark.parametrize(
    ("function", "text"),
    [
        pytest.param("{exec: /bin/cat}", "functions.exec", id="commands-are-off"),
        pytest.param("{image: example.com/own/fn:v1}", "functions.containers", id="containers-are-off"),
        pytest.param("{image: 'not an image'}", "pipeline.mutators[0].image", id="invalid"),
    ],
)
def test_render_runs_nothing_that_is_not_listed(pkg: Pkg, tmp_path: Path, function: str, text: str) -> None:
    folder = packaged(tmp_path / "web", function)
    before = contents(folder)
    result = pkg("render", "web")

    assert (result.code, text in result.out, contents(folder) == before) == (1, True, True), result.out


# the process


@pytest.mark.slow
def test_the_wires_are_connected(upstream: Path, tmp_path: Path) -> None:
    assert run_program(tmp_path, "pkg", "get", f"{upstream}/web@v1").returncode == 0
    assert run_program(tmp_path, "pkg", "diff", "web").returncode == 0
    assert run_program(tmp_path, "pkg", "update").returncode == 1
    assert run_program(tmp_path, "pkg", "fly").returncode == 3
    assert "Merge upstream changes into a package" in run_program(tmp_path, "pkg", "--help").stdout
