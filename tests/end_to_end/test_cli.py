"""Tests of each command of the program: its output and its exit status.

Most rows run the command line within the process of the tests; one of each exit status is a process (`run_program`).
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from reconciler.krm.schema.validation import list_installed_releases
from tests.support.command_line import CommandResult, run_in
from tests.support.daemon import ENVIRONMENT, run_program, start_program, wait_for_event
from tests.support.git_repositories import git, read_file, read_refs, write_hook
from tests.support.programs import find_program
from tests.support.showcase_environment import build_showcase

PROJECT = Path(__file__).resolve().parents[2]


def run(folder: Path, *arguments: str) -> CommandResult:
    return run_in(folder, ENVIRONMENT, *arguments)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("showcase") / "world"
    build_showcase(folder)
    result = sync(folder)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture
def world(template: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "world"
    subprocess.run(["cp", "-r", template, folder], check=True)
    return folder


def change(world: Path, name: str, old: str, new: str) -> None:
    file = world / "config" / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def sync(world: Path, *more: str) -> CommandResult:
    return run(world, "sync", "config", "--fleet", "fleet.git", "--cache", ".cache", *more)


def plan(world: Path, *more: str) -> CommandResult:
    return run(world, "plan", "config", "--fleet", "fleet.git", "--cache", ".cache", *more)


def list_changed_packages(result: CommandResult) -> list[tuple[str, str]]:
    """Return the targets and the packages of the drafts in the JSON output of `plan`."""
    changes = [item for item in json.loads(result.stdout)["items"] if item["type"] == "change"]
    return sorted((package["target"], package["package"]) for change in changes for package in change["packages"])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the demo, and its output."""
    folder = tmp_path_factory.mktemp("demo")
    process = run_program(folder, "demo")
    assert process.returncode == 0, process.stderr
    return folder / "demo", process.stdout


def test_the_demo_creates_a_draft_on_each_cluster(demo: tuple[Path, str]) -> None:
    fleet = demo[0] / "fleet.git"

    assert {name for name in read_refs(fleet) if "/drafts/" in name} == {
        f"refs/heads/drafts/{cluster}" for cluster in ("berlin", "boston", "chicago", "lisbon")
    }
    assert "https://api.eu-west.example.com" in read_file(fleet, "drafts/lisbon", "gateway/endpoints.yaml")
    assert "mirror.us-east.example.com" in read_file(fleet, "drafts/boston", "gateway/deployment.yaml")
    assert git(fleet, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.slow
def test_the_commands_that_the_demo_suggests_succeed(demo: tuple[Path, str], tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    subprocess.run(["cp", "-r", demo[0], folder], check=True)
    lines = [line.strip() for line in demo[1].replace("\\\n", " ").splitlines()]
    suggested = [shlex.split(line)[1:] for line in lines if line.startswith("reconciler ")]
    statuses = [run(folder, *arguments, "--cache", ".cache").returncode for arguments in suggested]

    assert suggested
    assert set(statuses) <= {0, 2}


@pytest.mark.slow
def test_the_demo_has_a_chart(demo: tuple[Path, str], tmp_path: Path) -> None:
    helm = find_program("helm")
    folder = tmp_path / "demo"
    subprocess.run(["cp", "-r", demo[0], folder], check=True)
    (folder / "dashboard.yaml").rename(folder / "config/dashboard.yaml")
    (folder / "settings.yaml").write_text(json.dumps({"sources": {"helm": {"program": helm}}}))
    options = ("--fleet", "fleet.git", "--cache", ".cache", "--settings", "settings.yaml")
    result = run(folder, "sync", "config", *options)

    assert result.returncode == 0, result.stderr
    text = read_file(folder / "fleet.git", "drafts/boston", "dashboard/deployment-dashboard.yaml")
    assert 'value: "Metrics of boston"' in text
    assert run(folder, "plan", "config", *options).stdout.startswith("Plan: no changes")


@pytest.mark.slow
def test_a_draft_records_the_changes_of_override_policies(world: Path) -> None:
    boston = read_file(world / "fleet.git", "drafts/boston", ".reconciler/gateway.yaml")
    lisbon = read_file(world / "fleet.git", "drafts/lisbon", ".reconciler/gateway.yaml")
    change(world, "policies.yaml", "mirror.us-east", "cache.us-east")
    drafts = list_changed_packages(plan(world, "-o", "json"))

    assert "after: mirror.us-east.example.com/gateway:1.4.0" in boston
    assert "overrides:" not in lisbon
    assert drafts == [("boston", "gateway"), ("chicago", "gateway")]


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize(
    ("edits", "options", "expected"),
    [
        pytest.param(
            [
                ("gateway.yaml", "role: edge", "role: egde"),
                ("monitoring.yaml", "monitoring, revision: v1", "monitoring, revision: v9"),
                ("policies.yaml", "region: us-east", "region: us-eest"),
            ],
            (),
            [
                "gateway.yaml:2: warning NoMatch",
                "gateway.yaml:9: warning SelectorMatchesNothing",
                "monitoring.yaml:7: error UpstreamNotFound",
                "policies.yaml:10: warning RuleMatchesNoCluster",
            ],
            id="config",
        ),
        pytest.param(
            [
                ("policies.yaml", '"our shop in ${cluster.name}"', "7"),
                ("apps.yaml", "networking.k8s.io/v1", "extensions/v1beta1"),
            ],
            ("--rendered", "--kubernetes-version", "1.31"),
            [
                "berlin/resources/edge policies.yaml:25 (Placement edge): error ResourceInvalid",
                "boston/plugins/watchman-boston plugin.yaml:1 (Plugin shops/watchman-boston): info SchemaMissing",
                "boston/resources/streams streams.yaml:10 (Placement streams): info SchemaMissing",
                "boston/resources/streams streams.yaml:48 (Placement streams): info SchemaMissing",
                "chicago/components/market/edge/numbers apps.yaml:64 (EnvBinding edge/numbers-market): error ApiNotServed",
            ],
            id="rendered",
            marks=pytest.mark.skipif(not list_installed_releases(), reason="the extra k8s-schemas is not installed"),
        ),
    ],
)
def test_validate_reports_each_error_at_its_line(
    edits: list[tuple[str, str, str]], options: tuple[str, ...], expected: list[str], world: Path
) -> None:
    for file, old, new in edits:
        change(world, file, old, new)
    result = run(world, "validate", "config", "--fleet", "fleet.git", *options, "--cache", ".cache")

    lines = result.stdout.splitlines()
    assert result.returncode == 1, result.stderr
    assert [line[: len(start)] for line, start in zip(lines, expected, strict=True)] == expected


def test_a_warning_fails_only_where_it_is_asked_for(world: Path) -> None:
    change(world, "policies.yaml", "region: us-east", "region: us-eest")
    values = ("validate", "config", "--cache", ".cache", "--fail-on")
    codes = [run(world, *values, least).returncode for least in ("error", "warning", "info")]

    assert codes == [0, 1, 1]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(("--schemas", "."), "require --rendered", id="schemas-of-nothing"),
        pytest.param(("--rendered", "--kubernetes-version", "new"), 'as "1.31"', id="a-version-that-is-none"),
        pytest.param(("--rendered", "--schemas", "nowhere"), "must name a folder", id="a-folder-that-is-none"),
    ],
)
def test_what_cannot_be_validated_by(options: tuple[str, ...], text: str, world: Path) -> None:
    result = run(world, "validate", "config", "--cache", ".cache", *options)

    assert (result.returncode, text in result.stderr) == (3, True)


def test_a_second_sync_is_silent(world: Path) -> None:
    before = read_refs(world / "fleet.git")
    result = sync(world, "-o", "json")

    assert result.returncode == 0, result.stderr
    data = json.loads(result.stdout)
    assert (data["kind"], data["items"], data["summary"]["renders"]) == ("Sync", [], 0)
    assert sync(world).stdout == "Sync: no changes; 17 unchanged\n"
    assert read_refs(world / "fleet.git") == before


def test_a_changed_region_moves_its_own_clusters_and_no_other(world: Path) -> None:
    before = read_refs(world / "fleet.git")
    change(world, "regions.yaml", "auth.eu-west", "login.eu-west")
    planned = plan(world, "-o", "json")
    synced = sync(world)
    after = read_refs(world / "fleet.git")

    assert planned.returncode == 2, planned.stderr
    assert {package for _, package in list_changed_packages(planned)} == {"gateway"}
    assert synced.returncode == 0, synced.stderr
    moved = {name for name in after if "/drafts/" in name and after[name] != before[name]}
    assert moved == {"refs/heads/drafts/berlin", "refs/heads/drafts/lisbon"}


@pytest.mark.slow
@pytest.mark.parametrize("has_draft", [True, False], ids=["the-draft-stands", "the-draft-is-new"])
def test_a_refused_push_reports_where_the_remote_is(world: Path, has_draft: bool) -> None:
    fleet, branch = world / "fleet.git", "refs/heads/drafts/lisbon"
    if not has_draft:
        for ref in (branch, "refs/reconciler/state/lisbon", "refs/heads/clusters/lisbon"):
            git(fleet, "update-ref", "-d", ref)
    before = read_refs(fleet).get(branch)
    write_hook(fleet, "update", f'[ "$1" != {branch} ]')
    regions = world / "config" / "regions.yaml"
    regions.write_text(regions.read_text().replace("auth.eu-west", "login.eu-west"))

    result, data = sync(world), sync(world, "-o", "json")

    assert result.returncode == 1
    assert "PushRefused" in result.stdout
    at = f"on the remote, it is at {before[:12]}" if before else "the remote has no such branch"
    assert f"draft    drafts/lisbon was not pushed (PushRefused): {at}" in result.stdout
    assert "drafts/lisbon is at" not in result.stdout
    assert result.stdout.splitlines()[0].startswith("Sync: ")
    assert f"drafts/berlin is at {read_refs(fleet)['refs/heads/drafts/berlin'][:12]}" in result.stdout
    assert read_refs(fleet).get(branch) == before
    (draft,) = (item for item in json.loads(data.stdout)["items"] if item["target"] == "lisbon")
    assert draft == {
        "target": "lisbon", "branch": "drafts/lisbon", "reason": "PushRefused",
        **({"remoteHead": before} if before else {}),
    }  # fmt: skip


def test_a_plan_pushes_nothing(world: Path) -> None:
    before = read_refs(world / "fleet.git")
    change(world, "gateway.yaml", "revision: v1", "revision: v2")
    result = plan(world)

    assert result.returncode == 2, result.stderr
    assert "replicas 2 → 3" in result.stdout
    assert read_refs(world / "fleet.git") == before


def test_a_plan_without_differences_ends_with_0(world: Path) -> None:
    assert plan(world).returncode == 0


@pytest.mark.slow
def test_the_config_may_be_named_by_the_settings(world: Path) -> None:
    (world / "reconciler.yaml").write_text("config: {url: config}\nfleet: {url: fleet.git}\n")

    ends = {command: run(world, command).returncode for command in ("plan", "validate", "sync")}

    assert ends == {"plan": 0, "validate": 0, "sync": 0}
    assert run(world, "render", "--output", "out").returncode == 0


def test_a_plan_lists_the_unreadable_target(world: Path) -> None:
    change(world, "repositories.yaml", "git: {repo: ./fleet.git}", "git: {repo: ./new.git}")

    result = plan(world, "-o", "json")

    data = json.loads(result.stdout)
    assert (result.returncode, len(list_changed_packages(result))) == (1, 17), result.stderr
    assert {(finding["code"], finding["severity"]) for finding in data["findings"]} == {
        ("RepositoryUnreachable", "error")
    }
    assert all("sync` would not change the target" in finding["message"] for finding in data["findings"])


def test_an_unwritten_status_is_reported(world: Path) -> None:
    result = run(world, "sync", "config", "--fleet", "nowhere.git", "-o", "json")
    output = run(world, "sync", "config", "--fleet", "nowhere.git")

    assert (result.returncode, output.returncode) == (1, 1)
    assert "nowhere.git" in json.loads(result.stdout)["summary"]["statusError"]
    assert "the status was not written" in output.stdout


def test_a_broken_file_is_named_and_spoils_only_itself(world: Path) -> None:
    (world / "config" / "broken.yaml").write_text("kind: PackageVariant\nmetadata: [\n")
    change(world, "regions.yaml", "auth.eu-west", "login.eu-west")
    validated = run(world, "validate", "config", "--cache", ".cache")
    synced = sync(world)

    assert validated.returncode == 1
    assert "broken.yaml:3: error YamlSyntax" in validated.stdout
    assert synced.returncode == 1
    assert "login.eu-west" in read_file(world / "fleet.git", "drafts/berlin", "gateway/endpoints.yaml")
    assert "broken.yaml" in read_file(world / "fleet.git", "reconciler/status", "summary.yaml")


@pytest.mark.parametrize("form", ["json", "sarif", "gitlab"])
def test_findings_come_in_forms_for_tools(world: Path, form: str) -> None:
    (world / "config" / "broken.yaml").write_text("a: [\n")
    result = run(world, "validate", "config", "--cache", ".cache", "-o", form)

    assert "YamlSyntax" in json.dumps(json.loads(result.stdout))


def test_status_tells_how_the_fleet_stands(world: Path) -> None:
    result = run(world, "status", "--fleet", "fleet.git", "--cache", ".cache")

    # Plugins of a preset are ready when they are published. A draft that waits for a review is no problem.
    last_pass, *lines = result.stdout.splitlines()
    assert re.fullmatch(
        r"last pass: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(\d+ (s|min) ago\), success, [\d.]+ s; config tree:[0-9a-f]{7}",
        last_pass,
    )
    assert (result.returncode, lines) == (
        0,
        [
            "17 packages on 4 targets: 17 drafted, 1 not ready",
            "not ready  PluginPreset shops/watchman: AllPluginsReady: 0 of 2 plugins are ready",
        ],
    )


def test_render_writes_what_the_branches_would_hold(world: Path) -> None:
    result = run(world, "render", "config", "--output", "out", "--cache", ".cache")
    second_result = run(world, "render", "config", "--output", "out", "--cache", ".cache")
    forced = run(world, "render", "config", "--output", "out", "--cache", ".cache", "--force")

    assert (result.returncode, second_result.returncode, forced.returncode) == (0, 3, 0)
    assert "must be absent or empty" in second_result.stderr
    assert (world / "out/berlin/gateway/Kptfile").is_file()
    assert (result.stdout, result.stderr) == ("", "")
    assert (world / "out/status/objects/default/PackageVariant/monitoring-berlin.yaml").is_file()


@pytest.mark.parametrize(
    ("config", "out", "text"),
    [
        pytest.param("config", ".", "must not contain the config", id="around-the-config"),
        pytest.param("config", "config", "must not contain the config", id="the-config"),
        pytest.param("config", "config/out", "must not be in", id="in-the-config"),
        pytest.param("config", "fleet.git", "must not contain a Git repository", id="a-repository"),
        pytest.param("nowhere", "out", "must be a repository or a folder", id="no-config"),
        pytest.param("config", "/proc/no/such", "/proc/no", id="nowhere-to-write"),
    ],
)
def test_render_removes_nothing_when_it_cannot_run(world: Path, config: str, out: str, text: str) -> None:
    (world / "out").mkdir()
    (world / "out" / "earlier.txt").write_text("kept")

    result = run(world, "render", config, "--output", out, "--cache", ".cache", "--force")

    assert (result.returncode, text in result.stderr) == (3, True), result.stderr
    assert (world / "out" / "earlier.txt").exists()
    assert (world / "config" / "gateway.yaml").exists()
    assert (world / "fleet.git" / "HEAD").exists()


def test_force_replaces_what_is_in_the_output(world: Path) -> None:
    (world / "out" / "old").mkdir(parents=True)
    (world / "out" / "stale.yaml").write_text("a: 1")

    result = run(world, "render", "config", "--output", "out", "--cache", ".cache", "--force")

    assert result.returncode == 0, result.stderr
    assert {path.name for path in (world / "out").iterdir()} == {"berlin", "boston", "chicago", "lisbon", "status"}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["sync", "config", "--fleet", "fleet.git"], 0, id="fine"),
        pytest.param(["validate", "config"], 1, id="a-finding"),
        pytest.param(["plan", "config", "--fleet", "fleet.git"], 2, id="differences"),
        pytest.param(["plan", "nowhere"], 3, id="cannot-run"),
    ],
)
def test_a_process_ends_with_the_status_of_its_command(world: Path, arguments: list[str], code: int) -> None:
    if code == 1:
        (world / "config" / "broken.yaml").write_text("a: [\n")
    if code == 2:
        change(world, "gateway.yaml", "revision: v1", "revision: v2")

    process = run_program(world, *arguments)

    assert process.returncode == code, process.stderr
    assert bool(process.stdout) == (code != 3)
    assert bool(process.stderr) == (code == 3)


def test_a_demo_that_has_nowhere_to_stand(tmp_path: Path) -> None:
    result = run(tmp_path, "demo", "/proc/no/such")

    assert (result.returncode, "Traceback" in result.stderr) == (3, False), result.stderr


@pytest.mark.parametrize(
    ("arguments", "expected_message"),
    [
        pytest.param(["plan"], "CONFIG is missing", id="no-config-named"),
        pytest.param(["plan", "--watched"], "No such option", id="usage"),
        pytest.param(["plan", "nowhere"], "nowhere must be a repository or a folder", id="no-config"),
        pytest.param(["sync", "config", "--shard", "4/3"], "must be i/n, which means shard i of n", id="no-such-shard"),
        pytest.param(["sync", "config"], "the repository for the status branch is not set", id="no-place-for-status"),
        pytest.param(["sync", "config", "--settings", "s.yaml"], "s.yaml:2: git.timeout", id="bad-settings"),
        pytest.param(
            ["status", "--fleet", "catalog.git"], "contains no status: run `reconciler sync`", id="no-status-yet"
        ),
        pytest.param(["demo", "config"], "must not exist or must be empty", id="demo-would-overwrite"),
    ],
)
def test_invalid_arguments_exit_with_3_and_one_sentence(
    world: Path, arguments: list[str], expected_message: str
) -> None:
    (world / "s.yaml").write_text("git:\n  timeout: 3\n")
    result = run(world, *arguments)

    assert result.returncode == 3
    assert expected_message in result.stderr
    assert "Traceback" not in result.stderr


def test_render_lists_the_packages_in_the_folder(world: Path) -> None:
    change(world, "gateway.yaml", "revision: v1", "revision: v9")
    result = run(world, "render", "config", "--output", "out", "--cache", ".cache", "-o", "json")
    data = json.loads(result.stdout)
    packages = [item for item in data["items"] if item["type"] == "package"]

    assert (result.returncode, result.stderr) == (1, "")
    assert (data["kind"], data["summary"]["folder"], data["summary"]["packages"]) == ("Render", "out", len(packages))
    assert all((world / "out" / package["path"]).is_dir() for package in packages)
    assert ("boston", "plugins/watchman-boston") in {(package["target"], package["package"]) for package in packages}
    assert {finding["code"] for finding in data["findings"]} == {"UpstreamNotFound"}


SHARDS = ("1/3", "2/3", "3/3")


@pytest.mark.slow
def test_shards_plan_and_render_each_its_own_clusters(world: Path) -> None:
    change(world, "gateway.yaml", "revision: v1", "revision: v2")
    whole = list_changed_packages(plan(world, "-o", "json"))
    parts = [list_changed_packages(plan(world, "-o", "json", "--shard", shard)) for shard in SHARDS]
    rendered = [
        run(world, "render", "config", "-O", f"out{shard[0]}", "--cache", ".cache", "--shard", shard)
        for shard in SHARDS
    ]

    folders = [sorted(path.name for path in (world / f"out{shard[0]}").iterdir()) for shard in SHARDS]
    assert sorted(package for part in parts for package in part) == whole
    assert [result.returncode for result in rendered] == [0, 0, 0]
    assert sorted(name for names in folders for name in names) == ["berlin", "boston", "chicago", "lisbon", "status"]
    assert "status" in folders[0]


@pytest.mark.slow
def test_processes_of_all_shards_at_once_leave_what_one_leaves(world: Path) -> None:
    change(world, "regions.yaml", "auth.us-east", "login.us-east")
    change(world, "gateway.yaml", "revision: v1", "revision: v2")
    subprocess.run(["cp", "-r", world / "fleet.git", world / "kept.git"], check=True)
    sync(world)
    expected = read_refs(world / "fleet.git")
    file = read_file(world / "fleet.git", "refs/heads/reconciler/status", "summary.yaml")
    subprocess.run(["rm", "-rf", world / "fleet.git"], check=True)
    (world / "kept.git").rename(world / "fleet.git")

    started = [
        start_program(world, "sync", "config", "--fleet", "fleet.git", "--shard", item) for item in (*SHARDS, *SHARDS)
    ]
    for process in started:
        with process:
            _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    sync(world, "--shard", "1/3")

    refs = read_refs(world / "fleet.git")
    without = [{name: commit for name, commit in item.items() if "status" not in name} for item in (refs, expected)]
    assert without[0] == without[1]
    assert read_file(world / "fleet.git", "refs/heads/reconciler/status", "summary.yaml") == file


@pytest.mark.slow
def test_a_closed_output_pipe_is_no_error_finding(tmp_path: Path) -> None:
    with start_program(tmp_path, "schema", "all") as process:
        assert process.stdout
        process.stdout.close()
        code = process.wait(60)

    assert code == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    ("arguments", "how"),
    [
        pytest.param(("verify",), "the option --config", id="where-it-is-an-option"),
        pytest.param(("validate",), "the argument CONFIG", id="where-it-is-an-argument"),
    ],
)
def test_a_missing_config_argument(arguments: tuple[str, ...], how: str, tmp_path: Path) -> None:
    result = run(tmp_path, *arguments)

    assert (result.returncode, f"CONFIG is missing: give {how}, or set" in result.stderr) == (3, True), result.stderr


@pytest.mark.slow
def test_the_service_reconciles_serves_signals_and_stops(world: Path) -> None:
    (world / "reconciler.yaml").write_text("poll_seconds: 3600\n")
    with start_program(world, "run", "config", "--fleet", "fleet.git", "--cache", ".cache") as service:
        first = wait_for_event(service, "pass_completed")
        change(world, "regions.yaml", "auth.us-east", "login.us-east")
        service.send_signal(signal.SIGUSR1)
        written = wait_for_event(service, "draft_pushed")
        (world / "reconciler.yaml").write_text("poll_second: 1\n")
        service.send_signal(signal.SIGHUP)
        refused = wait_for_event(service, "settings_refused")
        service.send_signal(signal.SIGTERM)
        stopping = wait_for_event(service, "daemon_stopping")
        stopped = wait_for_event(service, "daemon_stopped")
        code = service.wait(60)

    assert (first["renders"], first["result"], first["trigger"]) == (0, "success", ["start"])
    assert first["packages"] == {
        "published": 0, "draft": 17, "proposed": 0, "blocked": 0, "on_hold": 0, "pending_deletion": 0, "declined": 0,
        "orphaned": 0,
    }  # fmt: skip
    assert written["target"] == "boston"
    assert "poll_second: unknown setting" in str(refused["message"])
    assert (stopping["signal"], stopped["exit_status"], code) == ("SIGTERM", 0, 0)


@pytest.mark.slow
def test_the_cache_is_private_and_one_that_others_can_write_to_is_refused(world: Path) -> None:
    cache = world / ".cache"
    cache.chmod(0o755)

    assert sync(world).returncode == 0
    assert cache.stat().st_mode & 0o7777 == 0o700

    cache.chmod(0o777)
    before = read_refs(world / "fleet.git")
    refused = sync(world)

    assert refused.returncode == 3
    assert "has mode 0777" in refused.stderr
    assert f"chmod 700 {cache.relative_to(world)}" in refused.stderr or f"chmod 700 {cache}" in refused.stderr
    assert read_refs(world / "fleet.git") == before
