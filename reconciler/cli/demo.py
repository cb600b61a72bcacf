"""`reconciler demo`: a complete small world, made from `fixtures/demo`, with the main job run on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from reconciler import __file__ as package_file
from reconciler.cli.ends import told_plainly
from reconciler.cli.exits import CannotRunError
from reconciler.cli.shared import progress, read_settings, set_up_logs
from reconciler.daemon.explain import explainer
from reconciler.daemon.reconcile import Report, reconcile
from reconciler.daemon.review import Place
from reconciler.daemon.tools import Publisher
from reconciler.gitio.create import create_repository
from reconciler.gitio.folder import read_folder
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.verdicts import PushUnit, RefUpdate
from reconciler.gitio.writer import NewCommit, Put
from reconciler.reporting.explain import explain
from reconciler.reporting.explain_words import explanation_text
from reconciler.reporting.explanation import Explanation
from reconciler.reporting.plan import plan_text
from reconciler.settings import Settings
from reconciler.snapshot.files import FileTree
from reconciler.wiring import build_keep, build_parts, build_push

# the day of the demo's upstream commits: equal input, equal commit ids, on every machine
_SECONDS = 1_767_225_600
_WHY = ("chicago", "gateway", "Deployment/gateway", "/spec/template/spec/containers/0/image")
_NEXT = """
What to try next, from {folder}:

  git -C fleet.git log --stat drafts/lisbon          # the draft that a reviewer sees
  git -C fleet.git show drafts/lisbon:.reconciler/gateway.yaml
  git -C fleet.git show drafts/boston:.reconciler/gateway.yaml   # .status.overrides: what a policy changed for Boston
  git -C fleet.git show reconciler/status:summary.yaml

  sed -i.bak 's/auth.eu-west/login.eu-west/' config/regions.yaml && rm config/regions.yaml.bak
  reconciler plan config --fleet fleet.git           # Berlin and Lisbon move, Boston and Chicago do not
  reconciler sync config --fleet fleet.git           # and their drafts say so

  sed -i.bak 's/mirror.us-east/cache.us-east/' config/policies.yaml && rm config/policies.yaml.bak
  reconciler plan config --fleet fleet.git           # an override policy: this time Boston and Chicago move

  sed -i.bak 's/numbers:1.0/numbers:1.1/' config/apps.yaml && rm config/apps.yaml.bak
  reconciler plan config --fleet fleet.git           # a new build of a component: one draft, in Lisbon
  reconciler explain lisbon/components/fair/edge/numbers Deployment/numbers --config config --fleet fleet.git

  sed -i.bak 's/before-all-others/before-most/' config/policies.yaml && rm config/policies.yaml.bak
  reconciler plan config --fleet fleet.git           # a policy on a Kafka: its pools in Chicago inherit it
  reconciler explain chicago/plugins/watchman-chicago Plugin/watchman-chicago keep.days \\
    --config config --fleet fleet.git                # who says how long the watchman keeps what he saw

  sed -i.bak 's/revision: v1/revision: v2/' config/gateway.yaml && rm config/gateway.yaml.bak
  reconciler plan config --fleet fleet.git           # a new upstream version, on all four
"""


@click.command("demo")
@click.argument("folder", metavar="[DIR]", default="demo", type=click.Path(path_type=Path))
def command(folder: Path) -> int:
    """Build a small world in DIR (default: ./demo), sync it, and show the drafts that came out."""
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CannotRunError(f"{folder} must be absent or empty: the demo builds its world there")
    with told_plainly():
        _build(folder)
        _show(folder)
    click.echo(_NEXT.format(folder=folder))
    return 0


def _build(folder: Path) -> None:
    fixtures = _fixtures()
    shutil.copytree(fixtures / "config", folder / "config")
    create_repository(folder / "catalog.git")
    create_repository(folder / "fleet.git")
    first, second = (read_folder(fixtures / name).files for name in ("catalog", "catalog-v2"))
    mirror = Mirror.open(folder / ".cache", str(folder / "catalog.git"))
    commits = mirror.write(
        [
            NewCommit((), _puts(first), "catalog: the gateway, and monitoring", _SECONDS),
            NewCommit((0,), _puts(second), "gateway: one per zone, 1.5.1", _SECONDS + 86_400),
        ]
    )
    refs = {"heads/main": 1, "tags/gateway/v1": 0, "tags/monitoring/v1": 0, "tags/gateway/v2": 1}
    updates = tuple(RefUpdate(f"refs/{name}", commits[index], None) for name, index in refs.items())
    assert mirror.push([PushUnit("catalog", updates)]).done


def _puts(files: FileTree) -> tuple[Put, ...]:
    return tuple(Put(path, file.data, file.mode) for path, file in files.items())


def _show(folder: Path) -> None:
    settings = _settings(folder)
    set_up_logs(settings, service=False)
    click.echo(f"A world in {folder}: the config, a catalog of packages, and a fleet of four clusters.\n")
    click.echo(plan_text(_pass(settings, build_keep()).plan, 0) + "\n")
    for one in _pass(settings, build_push(settings)).written.values():
        for branch, head in one.heads.items():
            click.echo(f"pushed   {branch} at {head[:12]}")
    cluster, package, resource, pointer = _WHY
    click.echo("\nEvery value has its story. Three had a hand in the image of Chicago's gateway; in short:\n")
    click.echo(f"  reconciler explain {cluster}/{package} {resource} {pointer} --config config --fleet fleet.git\n")
    click.echo(explanation_text(_explained(settings, Place(cluster, package), resource, pointer)), nl=False)


def _pass(settings: Settings, publisher: Publisher) -> Report:
    with progress() as show:
        parts = build_parts(settings, settings.config.url, missing_is_empty=True, progress=show)
        with parts.remotes as remotes:
            return reconcile(parts.source, remotes, parts.tools, publisher)


def _explained(settings: Settings, place: Place, resource: str, pointer: str) -> Explanation:
    parts = build_parts(settings, settings.config.url)
    with parts.remotes as remotes:
        return explain(explainer(place, parts.source, remotes, parts.tools).explained(), resource, pointer)


def _settings(folder: Path) -> Settings:
    config, fleet, cache = (str(folder / name) for name in ("config", "fleet.git", ".cache"))
    return read_settings(None, config=config, fleet=fleet, cache=cache)


def _fixtures() -> Path:
    package = Path(package_file).parent
    for place in (package.parent / "fixtures" / "demo", package / "_fixtures" / "demo"):
        if place.is_dir():
            return place
    raise CannotRunError("the demo's files are missing from this installation")
