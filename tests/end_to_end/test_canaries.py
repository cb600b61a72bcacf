"""Secrets in all possible locations: no output, commit message, status, file name or process contains them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

import pytest

from reconciler.cli import entry
from reconciler.redaction import register_secret
from tests.support.command_line import CommandResult, run_in
from tests.support.daemon import run_program, start_program
from tests.support.git_http import GitHost, serve
from tests.support.git_repositories import git, read_refs
from tests.support.processes import find_in_processes
from tests.support.world import STATE, World, catalog, config_map, package, repository, variant

PROJECT = Path(__file__).resolve().parents[2]
# Another run of this test on the same machine has other values, because the test reads the arguments of all processes.
RUN = os.getpid()
CANARIES = {
    "read token": f"canary-1-zqx81-{RUN}",
    "write token": f"canary-10-zqx90-{RUN}",
    "forge token": f"canary-2-zqx82-{RUN}",
    "webhook secret": f"canary-11-zqx91-{RUN}",
    "environment": f"canary-3-zqx83-{RUN}",
    "URL of a Repository": f"canary-4/zqx84-{RUN}",
    "URL without a scheme": f"canary-5-zqx85-{RUN}",
    "Secret": f"canary-6-zqx86-{RUN}",
    "URL in a Kptfile": f"canary-7/zqx87-{RUN}",
    "URL in a resource": f"canary-8/zqx88-{RUN}",
    "argument": f"canary-9/zqx89-{RUN}",
}
# Parts count too, because a password with a slash can be cut at the slash. They are not hexadecimal, so that no commit ID
# contains them.
NEEDLES = [part for text in CANARIES.values() for part in (text, text.partition("/")[2]) if part]
LOGINS = {f"robot:{CANARIES[f'{use} token']}": use for use in ("read", "write")}
NEEDLES += [base64.b64encode(text.encode()).decode() for text in (CANARIES["Secret"], *LOGINS)]
SECRET = f"""\
apiVersion: v1
kind: Secret
metadata: {{name: web}}
stringData: {{password: {CANARIES["Secret"]}}}
data: {{other: {base64.b64encode(CANARIES["Secret"].encode()).decode()}}}
"""
KPTFILE_URL = f"https://robot:{CANARIES['URL in a Kptfile']}@git.example/x.git"
PROCESSES = [["plan", "{config}"]]
PATHS = ["/readyz?verbose", "/metrics", "/hooks", "/none?token={token}"]
COMMANDS = [
    ["validate", "{config}"],
    ["sync", "{config}", "-o", "json"],
    ["status"],
    ["doctor", "{config}"],
    ["doctor", "{config}", "-o", "json"],
    ["report", "{config}", "-o", "json"],
    ["drafts", "{config}"],
    ["show", "berlin/web", "--config", "{config}"],
    ["explain", "berlin/web", "--config", "{config}"],
]


def request(port: int, path: str) -> str:
    """Return the status, the headers and the body of a response."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST" if path == "/hooks" else "GET", path, body=b"{}")
        response = connection.getresponse()
        return f"{response.status}\n{response.headers}\n{response.read().decode()}"
    finally:
        connection.close()


@dataclass
class Scene:
    """A fleet that requires credentials, a config with errors, and the output of all commands."""

    world: World
    environment: dict[str, str]
    host: GitHost
    exposed: list[str] = field(default_factory=list)
    output: dict[str, str] = field(default_factory=dict)

    def start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a process."""
        process = run_program(self.world.folder, *self._words(arguments), environment=self.environment)
        self.output[" ".join(arguments)] = process.stdout + process.stderr
        return process

    def run_service(self) -> None:
        """Run the service until its first pass has completed, and read the paths of its server."""
        arguments = ("run", str(self.world.config))
        with start_program(self.world.folder, *arguments, environment=self.environment) as process:
            try:
                assert process.stderr is not None
                lines = []
                port = 0
                for line in process.stderr:
                    lines.append(line)
                    event = json.loads(line)
                    port = event["port"] if event["event"] == "server_started" else port
                    if event["event"] == "pass_completed":
                        break
                for path in PATHS:
                    self.output[f"GET {path}"] = request(port, path.format(token=CANARIES["read token"]))
                process.terminate()
                stdout, stderr = process.communicate(timeout=120)
                self.output["run"] = "".join(lines) + stdout + stderr
            finally:
                process.kill()

    def run(self, *arguments: str) -> CommandResult:
        """Run a command within this process, which is faster; it does not protect its environment."""
        result = run_in(self.world.folder, self.environment, *self._words(arguments))
        self.output[" ".join(arguments)] = result.stdout + result.stderr
        return result

    def _words(self, arguments: Sequence[str]) -> list[str]:
        return [word.format(config=self.world.config) for word in arguments]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("canaries")
    world = World.create(folder / "world")
    database = f"postgres://web:{CANARIES['URL in a resource']}@db.example/web"
    world.release("web", "v1", package("web", secret=SECRET, settings=config_map("settings", database=database)))
    inner = {f"sub/{path}": text for path, text in package("sub").items()}
    inner["sub/Kptfile"] += f"upstream: {{type: git, git: {{repo: '{KPTFILE_URL}', directory: /, ref: v1}}}}\n"
    world.release("nested", "v1", {**package("nested"), **inner})
    git(world.fleet, "config", "http.receivepack", "true")
    with serve(GitHost(folder, permissions=LOGINS)) as host:
        files = {
            "catalog.yaml": catalog().replace("./catalog.git", f"{host.url}/world/catalog.git"),
            "berlin.yaml": repository("berlin", f"{host.url}/world/fleet.git"),
            "leaky.yaml": repository("leaky", f"https://robot:{CANARIES['URL of a Repository']}@git.example/a.git"),
            "bare.yaml": repository("bare", f"{CANARIES['URL without a scheme']}@git.example/a.git"),
            "web.yaml": variant("web", "berlin", "web"),
            "nested.yaml": variant("nested", "berlin", "nested"),
            "lost.yaml": variant("lost", "leaky", "web"),
        }
        world.write(files)
        for use in ("read", "write", "forge"):
            (world.folder / use).write_text(f"{CANARIES[f'{use} token']}\n")
        (world.folder / "webhook").write_text(f"{CANARIES['webhook secret']}\n")
        uses = [f"{use}: {{token_file: {world.folder}/{use}, username: robot}}" for use in ("read", "write")]
        entry = f"{{url: '127.0.0.1:*', {', '.join(uses)}, api: {{token_file: {world.folder}/forge}}}}"
        (world.folder / "reconciler.yaml").write_text(
            f"fleet: {{url: '{host.url}/world/fleet.git'}}\ncache: cache\n"
            f"git: {{credentials: [{entry}], allowed_urls: ['{host.url}', 'https://git.example']}}\n"
            f"forge: {{hosts: [{{url: '{host.url}/world', kind: gitea, api: 'http://127.0.0.1:1/api/v1'}}]}}\n"
            f"webhooks: {{secret_file: {world.folder}/webhook}}\n"
            "server: {listen: '127.0.0.1:0'}\nlog: {level: debug}\n"
        )
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(PROJECT),
            "RECONCILER_TOKEN": CANARIES["environment"], "CI_JOB_TOKEN": CANARIES["environment"],
        }  # fmt: skip
        scene = Scene(world, environment, host)
        host.observe = lambda: scene.exposed.extend(find_in_processes(*NEEDLES))
        for command in PROCESSES:
            scene.start(*command)
        scene.run_service()
        host.observe = lambda: None
        for command in COMMANDS:
            scene.run(*command)
        yield scene


def found_in(text: str) -> list[str]:
    return [needle for needle in NEEDLES if needle in text]


@pytest.mark.slow
def test_the_scene_does_what_it_is_for(scene: Scene) -> None:
    refs = read_refs(scene.world.fleet)

    assert {"refs/heads/drafts/berlin", "refs/heads/reconciler/status"} <= refs.keys()
    assert "postgres://db.example/web" in scene.output["show berlin/web --config {config}"]
    assert CANARIES["Secret"] in scene.world.text("drafts/berlin", "web/secret.yaml")
    assert scene.output["plan {config}"].count("CredentialInUrl") >= 3
    assert all(scene.output.values()), "each command prints output"
    assert '"event": "pass_completed"' in scene.output["run"]
    assert scene.output["GET /metrics"].startswith("200")
    assert {use for _, login in scene.host.uses for use in [LOGINS[login]]} == {"read", "write"}


@pytest.mark.parametrize(
    "command", [*(" ".join(item) for item in (*PROCESSES, *COMMANDS)), "run", *(f"GET {path}" for path in PATHS)]
)
def test_no_output_contains_a_secret(scene: Scene, command: str) -> None:
    assert found_in(scene.output[command]) == []


def test_no_process_shows_a_secret(scene: Scene) -> None:
    assert scene.exposed == []


def test_no_message_status_or_state_contains_a_secret(scene: Scene) -> None:
    fleet = scene.world.fleet
    for ref in read_refs(fleet):
        assert found_in(git(fleet, "log", "--format=%an %ae %cn %ce %B", ref)) == [], ref
        if "reconciler/" in ref:
            # a state keeps the trees of drafts, Secrets included; what it records about them is JSON
            files = ("destination.json", "packages") if ref.startswith(STATE) else (".",)
            assert found_in(git(fleet, "log", "-p", "-m", "--root", "--format=", ref, "--", *files)) == [], ref
        else:
            assert found_in("\n".join(git(fleet, "ls-tree", "-r", "--name-only", ref).splitlines())) == [], ref
    status = git(fleet, "grep", "-h", "", "refs/heads/drafts/berlin", "--", ".reconciler")
    assert found_in(status) == []


def test_no_file_of_the_cache_has_a_secret_in_its_name_or_settings(scene: Scene) -> None:
    cache = scene.world.folder / "cache"
    files = [path for path in cache.rglob("*") if "objects" not in path.parts]

    assert files
    for path in files:
        content = path.read_text(errors="replace") if path.is_file() else ""
        assert found_in(f"{path}\n{content}") == [], path


ARGUMENT = f"u:{CANARIES['argument']}@h.example/a"


@pytest.mark.parametrize(
    ("environment", "arguments"),
    [
        pytest.param({"RECONCILER_FLEET__URL": f"https://{ARGUMENT}"}, ["plan", "{config}"], id="a-variable"),
        pytest.param({}, ["plan", "{config}", "--fleet", f"https://{ARGUMENT}"], id="an-option"),
        pytest.param({}, ["sync", ARGUMENT], id="an-argument-without-a-scheme"),
        pytest.param({}, ["plan", "{config}", f"https://{ARGUMENT}"], id="too-many-arguments"),
        pytest.param({}, ["pkg", "get", f"https://{ARGUMENT}/b"], id="a-package"),
        pytest.param({}, ["pkg", "get", f"https://{ARGUMENT}.git/b@v1"], id="a-package-at-a-ref"),
    ],
)
def test_a_secret_that_the_operator_wrote_is_refused_and_not_repeated(
    scene: Scene, environment: dict[str, str], arguments: list[str]
) -> None:
    result = Scene(scene.world, scene.environment | environment, scene.host).run(*arguments)

    assert result.returncode == 3
    assert result.stderr
    assert found_in(result.stdout + result.stderr) == []


def test_a_traceback_contains_no_secret(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    secret = "a-registered-password"
    register_secret(secret)

    def crash(*_: object, **__: object) -> None:
        local = f"https://robot:{CANARIES['argument']}@git.example/a"
        raise RuntimeError(f"cannot read {local} with {secret}")

    monkeypatch.setattr(entry.commands, "main", crash)

    assert entry.run(["plan"]) == 70
    shown = capsys.readouterr().err
    assert "RuntimeError: cannot read https://git.example/a with *****" in shown
    assert found_in(shown) == []
