"""Tests of packages with executables in the pipeline: drafts, gated drafts after errors, and interrupted functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reconciler.bootstrap.publishers import build_push_publisher
from reconciler.bootstrap.services import Services, build_services
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.settings import FleetSettings, FunctionSettings, Settings
from tests.runners.programs import editing, program
from tests.support.git_repositories import git, read_refs
from tests.support.world import World, catalog, package, repository, variant

SCALE = editing("[item['spec'].update(replicas=7) for item in rl['items'] if item['kind'] == 'Deployment']")
FAIL = editing("rl['results'] = [{'message': 'no such size', 'severity': 'error'}]") + "sys.exit(3)\n"
HANG = "import time; time.sleep(60)"
KILL = "import os; os.kill(os.getpid(), 9)"


@dataclass
class ProgramWorld:
    """A world with one package that runs an executable."""

    world: World
    program: Path
    functions: FunctionSettings = field(default_factory=FunctionSettings)

    def write_program(self, source: str) -> None:
        program(self.program, source)

    def allow_programs(self, *programs: Path, seconds: int = 60) -> None:
        """Create the world again with other function settings."""
        self.functions = FunctionSettings(exec=tuple(map(str, programs)), timeout_seconds=seconds)
        self.world = World(self.world.folder, functions=self.functions)

    def create_service(self) -> tuple[PassRunner, Services]:
        """Return the pass runner of a service whose clock stands still, and its services."""
        fleet, cache = FleetSettings(url=str(self.world.fleet)), str(self.world.folder / "cache")
        settings = Settings(fleet=fleet, cache=cache, functions=self.functions)
        parts = build_services(settings, self.world.source, monotonic_clock=lambda: 0.0)
        return PassRunner(parts.source, parts.remotes, parts.pass_services, build_push_publisher(settings)), parts

    def read_draft(self) -> str:
        return self.world.text("drafts/berlin", "web/deployment.yaml")

    def read_refs_without_status(self) -> dict[str, str]:
        """Return all refs of the fleet except the status branch."""
        return {name: head for name, head in read_refs(self.world.fleet).items() if not name.endswith("/status")}


@pytest.fixture
def program_world(tmp_path: Path) -> ProgramWorld:
    path = tmp_path / "programs" / "scale"
    world = World.create(tmp_path)
    files = package("web")
    files["Kptfile"] += f"pipeline:\n  mutators:\n  - exec: {path}\n"
    world.release("web", "v1", files)
    world.write(
        {"repositories.yaml": f"{catalog()}---\n{repository('berlin')}", "web.yaml": variant("web", "berlin", "web")}
    )
    program_world = ProgramWorld(world, path)
    program_world.allow_programs(path)
    return program_world


def test_program_changes_the_draft_and_second_pass_changes_nothing(program_world: ProgramWorld) -> None:
    program_world.write_program(SCALE)

    first = program_world.world.sync()

    assert first.outcomes == {"berlin/web": "draft"}
    assert "  replicas: 7 # enough for a small site\n" in program_world.read_draft()
    assert program_world.world.sync().is_unchanged


def test_failed_program_leaves_a_gated_draft_without_its_changes(program_world: ProgramWorld) -> None:
    program_world.write_program(FAIL)

    first = program_world.world.sync()

    status = program_world.world.text("drafts/berlin", ".reconciler/web.yaml")
    assert first.codes == {"RenderFailed"}
    assert "  replicas: 2 # enough for a small site\n" in program_world.read_draft()
    assert "no such size" in status
    assert "exitCode: 3" in status
    assert program_world.world.sync().is_unchanged


def test_program_that_is_not_allowed_does_not_run(program_world: ProgramWorld) -> None:
    program_world.write_program(SCALE)
    program_world.allow_programs()

    first = program_world.world.sync()

    assert first.codes == {"FunctionUnavailable"}
    assert all(
        str(program_world.program) in finding.message and "to the setting `functions.exec`" in finding.message
        for finding in first.findings
    )
    assert "replicas: 2" in program_world.read_draft()


def test_allowing_a_program_renders_its_packages_again(program_world: ProgramWorld) -> None:
    program_world.write_program(SCALE)
    program_world.allow_programs()
    program_world.world.sync()

    program_world.allow_programs(program_world.program)
    program_world.world.sync()

    assert "replicas: 7" in program_world.read_draft()
    assert program_world.world.sync().is_unchanged


@pytest.mark.parametrize(
    "source",
    [pytest.param(HANG, id="time-out"), pytest.param(KILL, id="kill")],
)
def test_interrupted_program_writes_no_draft(program_world: ProgramWorld, source: str) -> None:
    program_world.write_program(source)
    program_world.allow_programs(program_world.program, seconds=1)

    first = program_world.world.sync()

    assert first.outcomes == {"berlin/web": "FunctionInterrupted"}
    (finding,) = first.findings
    assert finding.severity == "error"
    assert finding.message.startswith("package berlin/web was not changed, because ")
    assert finding.message.endswith("The daemon tries again in the next pass")
    assert not first.report.is_clean
    assert program_world.read_refs_without_status() == {}
    program_world.write_program(SCALE)
    program_world.allow_programs(program_world.program)
    assert program_world.world.sync().outcomes == {"berlin/web": "draft"}
    assert program_world.world.sync().is_unchanged


def test_interrupted_program_keeps_the_open_draft(program_world: ProgramWorld) -> None:
    program_world.write_program(SCALE)
    program_world.world.sync()
    before = program_world.read_refs_without_status()
    program_world.write_program(KILL)

    second, third = program_world.world.sync(), program_world.world.sync()

    assert second.codes == third.codes == {"FunctionInterrupted"}
    assert program_world.read_refs_without_status() == before
    assert third.before == third.after, "the second pass changes nothing"
    program_world.write_program(SCALE)
    assert program_world.world.sync().report.render_count == 0, "the program has its earlier content"
    assert program_world.read_refs_without_status() == before


def test_changed_program_creates_a_draft_commit(program_world: ProgramWorld) -> None:
    program_world.write_program(SCALE)
    program_world.world.sync()
    program_world.write_program(SCALE.replace("=7", "=8"))

    program_world.world.sync()

    assert "replicas: 8" in program_world.read_draft()
    assert f"function {program_world.program} changed" in git(program_world.world.fleet, "log", "-1", "drafts/berlin")
    assert program_world.world.sync().is_unchanged


def test_changed_program_with_the_same_result_creates_no_draft_commit(program_world: ProgramWorld) -> None:
    program_world.write_program(SCALE)
    program_world.world.sync()
    program_world.write_program(SCALE + "# the same output\n")

    pass_result = program_world.world.sync()

    assert pass_result.outcomes == {"berlin/web": "drafted"}
    assert pass_result.report.render_count == 1
    assert program_world.world.sync().is_unchanged


@pytest.mark.slow
def test_service_runs_an_interrupted_program_again_after_the_back_off(program_world: ProgramWorld) -> None:
    program_world.write_program(KILL)
    passes, parts = program_world.create_service()

    assert passes.run(), "one function causes no back-off of the service"
    program_world.write_program(SCALE)
    assert passes.run()
    assert program_world.read_refs_without_status() == {}, "the service waits for the back-off"
    parts.backoff.retry_now()
    assert passes.run()
    assert "replicas: 7" in program_world.read_draft()


def test_service_detects_a_changed_program(program_world: ProgramWorld) -> None:
    program_world.write_program(SCALE)
    passes, _ = program_world.create_service()
    assert passes.run()
    before = program_world.read_refs_without_status()
    assert passes.run()
    assert program_world.read_refs_without_status() == before

    program_world.write_program(SCALE.replace("=7", "=8"))

    assert passes.run()
    assert "replicas: 8" in program_world.read_draft()


def test_program_cannot_write_outside_its_package(program_world: ProgramWorld) -> None:
    escape = "rl['items'][1]['metadata'].setdefault('annotations', {})['config.kubernetes.io/path'] = '../../x.yaml'"
    program_world.write_program(editing(escape))

    first = program_world.world.sync()

    assert first.codes == {"RenderFailed"}
    assert "must not modify resources outside of package" in first.findings[0].message
    assert not [
        path for path in program_world.world.paths(program_world.world.fleet, "drafts/berlin") if "x.yaml" in path
    ]
