"""Packages whose pipelines run programs: drafted, gated where those fail, left alone while the world does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reconciler.bootstrap import Services, build_push_publisher, build_services
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
class Machine:
    """A world with one package that runs a program."""

    world: World
    program: Path
    functions: FunctionSettings = field(default_factory=FunctionSettings)

    def becomes(self, source: str) -> None:
        program(self.program, source)

    def allows(self, *programs: Path, seconds: int = 60) -> None:
        """Start anew with other settings."""
        self.functions = FunctionSettings(exec=tuple(map(str, programs)), timeout_seconds=seconds)
        self.world = World(self.world.folder, functions=self.functions)

    def service(self) -> tuple[PassRunner, Services]:
        """Return the passes of a service, and the parts they are made of."""
        fleet, cache = FleetSettings(url=str(self.world.fleet)), str(self.world.folder / "cache")
        settings = Settings(fleet=fleet, cache=cache, functions=self.functions)
        parts = build_services(settings, self.world.source)
        return PassRunner(parts.source, parts.remotes, parts.pass_services, build_push_publisher(settings)), parts

    def draft(self) -> str:
        return self.world.text("drafts/berlin", "web/deployment.yaml")

    def refs(self) -> dict[str, str]:
        """All refs of the fleet but the status branch."""
        return {name: head for name, head in read_refs(self.world.fleet).items() if not name.endswith("/status")}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    path = tmp_path / "programs" / "scale"
    world = World.create(tmp_path)
    files = package("web")
    files["Kptfile"] += f"pipeline:\n  mutators:\n  - exec: {path}\n"
    world.release("web", "v1", files)
    world.write(
        {"repositories.yaml": f"{catalog()}---\n{repository('berlin')}", "web.yaml": variant("web", "berlin", "web")}
    )
    machine = Machine(world, path)
    machine.allows(path)
    return machine


def test_a_program_edits_the_draft_and_a_second_pass_is_silent(machine: Machine) -> None:
    machine.becomes(SCALE)

    first = machine.world.sync()

    assert first.outcomes == {"berlin/web": "draft"}
    assert "  replicas: 7 # enough for a small site\n" in machine.draft()
    assert machine.world.sync().is_unchanged


def test_a_program_that_fails_leaves_the_draft_unrendered_and_gated(machine: Machine) -> None:
    machine.becomes(FAIL)

    first = machine.world.sync()

    status = machine.world.text("drafts/berlin", ".reconciler/web.yaml")
    assert first.codes == {"RenderFailed"}
    assert "  replicas: 2 # enough for a small site\n" in machine.draft()
    assert "no such size" in status
    assert "exitCode: 3" in status
    assert machine.world.sync().is_unchanged


def test_a_program_that_nobody_listed_does_not_run(machine: Machine) -> None:
    machine.becomes(SCALE)
    machine.allows()

    first = machine.world.sync()

    assert first.codes == {"FunctionUnavailable"}
    assert [
        str(machine.program) in finding.message and "functions.exec does not allow" in finding.message
        for finding in first.findings
    ]
    assert "replicas: 2" in machine.draft()


def test_listing_a_program_renders_its_packages(machine: Machine) -> None:
    machine.becomes(SCALE)
    machine.allows()
    machine.world.sync()

    machine.allows(machine.program)
    machine.world.sync()

    assert "replicas: 7" in machine.draft()
    assert machine.world.sync().is_unchanged


@pytest.mark.parametrize(
    "source",
    [pytest.param(HANG, id="time-out"), pytest.param(KILL, id="kill")],
)
def test_nothing_is_written_while_the_world_fails(machine: Machine, source: str) -> None:
    machine.becomes(source)
    machine.allows(machine.program, seconds=1)

    first = machine.world.sync()

    assert first.outcomes == {"berlin/web": "FunctionInterrupted"}
    (finding,) = first.findings
    assert finding.severity == "error"
    assert finding.message.startswith("package berlin/web was not changed: ")
    assert finding.message.endswith("(next step: retry)")
    assert not first.report.is_clean
    assert machine.refs() == {}
    machine.becomes(SCALE)
    machine.allows(machine.program)
    assert machine.world.sync().outcomes == {"berlin/web": "draft"}
    assert machine.world.sync().is_unchanged


def test_what_stands_stays_while_the_world_fails(machine: Machine) -> None:
    machine.becomes(SCALE)
    machine.world.sync()
    before = machine.refs()
    machine.becomes(KILL)

    second, third = machine.world.sync(), machine.world.sync()

    assert second.codes == third.codes == {"FunctionInterrupted"}
    assert machine.refs() == before
    assert third.before == third.after, "told once"
    machine.becomes(SCALE)
    assert machine.world.sync().report.render_count == 0, "what runs is what had run"
    assert machine.refs() == before


def test_a_changed_program_is_the_cause_of_a_draft(machine: Machine) -> None:
    machine.becomes(SCALE)
    machine.world.sync()
    machine.becomes(SCALE.replace("=7", "=8"))

    machine.world.sync()

    assert "replicas: 8" in machine.draft()
    assert f"function {machine.program} changed" in git(machine.world.fleet, "log", "-1", "drafts/berlin")
    assert machine.world.sync().is_unchanged


def test_a_changed_program_that_comes_to_the_same_is_no_draft(machine: Machine) -> None:
    machine.becomes(SCALE)
    machine.world.sync()
    machine.becomes(SCALE + "# says the same\n")

    pass_result = machine.world.sync()

    assert pass_result.outcomes == {"berlin/web": "drafted"}
    assert pass_result.report.render_count == 1
    assert machine.world.sync().is_unchanged


def test_the_service_tries_again_without_a_moved_head(machine: Machine) -> None:
    machine.becomes(KILL)
    passes, parts = machine.service()

    assert passes.run(), "one function does not slow the service down"
    machine.becomes(SCALE)
    assert passes.run()
    assert machine.refs() == {}, "it rests"
    parts.backoff.retry_now()
    assert passes.run()
    assert "replicas: 7" in machine.draft()


def test_the_service_notices_a_changed_program(machine: Machine) -> None:
    machine.becomes(SCALE)
    passes, _ = machine.service()
    assert passes.run()
    before = machine.refs()
    assert passes.run()
    assert machine.refs() == before

    machine.becomes(SCALE.replace("=7", "=8"))

    assert passes.run()
    assert "replicas: 8" in machine.draft()


def test_a_program_cannot_write_outside_its_package(machine: Machine) -> None:
    escape = "rl['items'][1]['metadata'].setdefault('annotations', {})['config.kubernetes.io/path'] = '../../x.yaml'"
    machine.becomes(editing(escape))

    first = machine.world.sync()

    assert first.codes == {"RenderFailed"}
    assert "must not modify resources outside of package" in first.findings[0].message
    assert not [path for path in machine.world.paths(machine.world.fleet, "drafts/berlin") if "x.yaml" in path]
