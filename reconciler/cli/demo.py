"""`reconciler demo`: create example repositories from the files in `fixtures/demo`, and run one pass."""

from __future__ import annotations

import shutil
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import click

from reconciler import __file__ as package_file
from reconciler.bootstrap import publishers
from reconciler.bootstrap import services as bootstrap_services
from reconciler.catalog.files import FileTree
from reconciler.cli import run
from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import SUCCESS, CannotRunError
from reconciler.cli.options import read_settings, set_up_logs, show_progress
from reconciler.git import folder as git_folder
from reconciler.git import local_repository, object_writer, push_outcomes
from reconciler.git import mirror as git_mirror
from reconciler.planning.layout import refs as layout_refs
from reconciler.planning.model import outcomes
from reconciler.reconcile import reconcile_pass

if TYPE_CHECKING:
    from reconciler.settings import Settings

if TYPE_CHECKING:
    from reconciler.git.object_writer import PutFile
    from reconciler.planning.decide.fleet_plan import FleetPlan
    from reconciler.reconcile.reconcile_pass import PassReport
    from reconciler.reconcile.services import PlanPublisher

# Use a fixed date for the commits of the catalog, so that they have the same commit IDs on every machine.
_COMMIT_SECONDS = 1_767_225_600
_EXAMPLE_TARGET, _EXAMPLE_PACKAGE = "boston", "gateway"
_INTRODUCTION = """Created a demo platform in {folder}:

  config/      the configuration of four clusters: berlin and lisbon (eu-west), boston and chicago (us-east)
  catalog.git  a package repository with two versions of the package "gateway", and the Helm chart "dashboard"
  fleet.git    one target branch and one draft branch for each cluster
"""
_NEXT_COMMANDS = """Commands to try next, in {folder}:

  reconciler show lisbon --config config
  reconciler explain chicago/plugins/monitoring-agent-chicago Plugin/monitoring-agent-chicago retention.days \\
    --config config --fleet fleet.git

Change an input of two clusters, then show the plan and push it:

  sed -i.bak 's/auth.eu-west/login.eu-west/' config/regions.yaml && rm config/regions.yaml.bak
  reconciler plan config --fleet fleet.git
  reconciler sync config --fleet fleet.git

Install the next version of the gateway on all clusters:

  sed -i.bak 's/revision: v1/revision: v2/' config/gateway.yaml && rm config/gateway.yaml.bak
  reconciler plan config --fleet fleet.git

Install the Helm chart on all clusters (this requires the program helm):

  mv dashboard.yaml config/
  reconciler plan config --fleet fleet.git
"""
_CONSOLE_TEXT = """
The console runs at http://127.0.0.1:{port}/

Open the address in a browser on this machine, select a change, and press "Approve…". Ctrl+C stops the service.
"""


@click.command("demo")
@click.argument("folder", metavar="[DIR]", default="demo", type=click.Path(path_type=Path))
@click.option(
    "--serve", "should_serve", is_flag=True,
    help="Then run the service with the web console, and print the address of the console.",
)  # fmt: skip
def command(folder: Path, should_serve: bool) -> int:
    """Create example repositories in DIR (default: ./demo), run one pass, and show the drafts.

    With --serve, the service runs until you press Ctrl+C. Review the drafts in a browser on this machine.
    """
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CannotRunError(f"{folder} must not exist or must be empty: the demo writes its files there")
    with report_errors():
        _build(folder)
        _reconcile_and_print(folder)
    return _serve(folder) if should_serve else SUCCESS


def _serve(folder: Path) -> int:
    def announce(port: int) -> None:
        click.echo(_CONSOLE_TEXT.format(port=port), nl=False)

    names = {"--config": "config", "--fleet": "fleet.git", "--cache": ".cache"}
    options = tuple(text for option, name in names.items() for text in (option, str(folder / name)))
    return run.run_service(lambda: _add_console(_read_settings(folder)), None, options, announce=announce)


def _add_console(settings: Settings) -> Settings:
    return settings.model_copy(
        update={
            "server": settings.server.model_copy(update={"listen": "127.0.0.1:0"}),
            "console": settings.console.model_copy(update={"enabled": True}),
            "log": settings.log.model_copy(update={"level": "warning"}),
        }
    )


def _build(folder: Path) -> None:
    fixtures = _find_fixtures()
    shutil.copytree(fixtures / "config", folder / "config")
    # The config does not contain the chart, because the demo must also run without the program helm.
    shutil.copy(fixtures / "dashboard.yaml", folder)
    local_repository.create_repository(folder / "catalog.git")
    local_repository.create_repository(folder / "fleet.git")
    first, second, chart = (
        git_folder.read_folder(fixtures / name).files for name in ("catalog", "catalog-v2", "catalog-chart")
    )
    mirror = git_mirror.Mirror.open(folder / ".cache", str(folder / "catalog.git"))
    commits = mirror.write_commits(
        [
            object_writer.NewCommit((), _build_puts(first), "gateway: add version 1", _COMMIT_SECONDS),
            object_writer.NewCommit(
                (0,), _build_puts(second), "gateway: run one replica per zone, image 1.5.1", _COMMIT_SECONDS + 86_400
            ),
            object_writer.NewCommit((1,), _build_puts(chart), "dashboard: add version 1", _COMMIT_SECONDS + 172_800),
        ]
    )
    refs = {"heads/main": 2, "tags/gateway/v1": 0, "tags/gateway/v2": 1, "tags/dashboard/v1": 2}
    updates = tuple(push_outcomes.RefUpdate(f"refs/{name}", commits[index], None) for name, index in refs.items())
    assert mirror.push([push_outcomes.PushUnit("catalog", updates)]).is_complete


def _build_puts(files: FileTree) -> tuple[PutFile, ...]:
    return tuple(object_writer.PutFile(path, file.data, file.mode) for path, file in files.items())


def _reconcile_and_print(folder: Path) -> None:
    settings = _read_settings(folder)
    # Log only errors. The demo always creates target branches, and a warning about them would be the first line that a
    # new user reads.
    set_up_logs(settings, service=False, command_level="error")
    report = _run_pass(settings, publishers.build_push_publisher(settings))
    click.echo(_INTRODUCTION.format(folder=folder))
    click.echo(_format_summary(report.plan) + "\n")
    example = f"git -C fleet.git log drafts/{_EXAMPLE_TARGET} -- {_EXAMPLE_PACKAGE}"
    click.echo(f"One of these drafts, as its reviewer reads it ({example}):\n")
    click.echo(indent(_get_example_message(report.plan), "  ") + "\n")
    click.echo(_NEXT_COMMANDS.format(folder=folder), nl=False)


def _format_summary(plan: FleetPlan) -> str:
    packages: dict[str, list[str]] = {}
    for target, outcome in plan.list_outcomes():
        if isinstance(outcome, outcomes.Draft):
            packages.setdefault(target.name, []).append(outcome.variant.target.package)
    count = sum(map(len, packages.values()))
    lines = [f"  drafts/{target:<8} {', '.join(sorted(names))}" for target, names in sorted(packages.items())]
    return "\n".join([f"Pushed {count} drafts to {len(packages)} draft branches:\n", *lines])


def _get_example_message(plan: FleetPlan) -> str:
    """Return the commit message of the example draft without its trailers."""
    steps = (
        step
        for target in plan.targets
        if target.target.name == _EXAMPLE_TARGET
        for layout in target.branch_actions
        if isinstance(layout, layout_refs.PushCommits)
        for step in layout.commits
    )
    message = next(step.message for step in steps if step.package == _EXAMPLE_PACKAGE)
    return message.rstrip("\n").rpartition("\n\n")[0]


def _run_pass(settings: Settings, publisher: PlanPublisher) -> PassReport:
    with show_progress() as report_progress:
        services = bootstrap_services.build_services(
            settings, settings.config.url, should_treat_missing_as_empty=True, report_progress=report_progress
        )
        with services.remotes as remotes:
            return reconcile_pass.run_pass(services.source, remotes, services.pass_services, publisher)


def _read_settings(folder: Path) -> Settings:
    config, fleet, cache = (str(folder / name) for name in ("config", "fleet.git", ".cache"))
    return read_settings(None, config=config, fleet=fleet, cache=cache)


def _find_fixtures() -> Path:
    package = Path(package_file).parent
    for folder in (package.parent / "fixtures" / "demo", package / "_fixtures" / "demo"):
        if folder.is_dir():
            return folder
    raise CannotRunError("the demo's files are missing from this installation")
