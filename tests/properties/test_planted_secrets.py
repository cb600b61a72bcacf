"""The secret of a plugin stays in the config, wherever and however users write it.

It may occur in the config repository, but not in results: no object of any other repository, no file of the cache,
and no output.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, example, settings
from hypothesis import given as for_all

from tests.properties.planted_secrets import MARK, texts
from tests.support.command_line import run_in
from tests.support.examples import examples
from tests.support.git_repositories import git, read_refs
from tests.support.world import World
from tests.unit.controllers.plugin_presets.controller_world import (
    EAST,
    WEST,
    build_definition,
    build_files,
    build_option,
    build_organization,
    build_preset,
    build_value,
    list_findings,
    list_plugins,
    run_controller,
)

ROUNDS = int(os.environ.get("RECONCILER_SECRET_ROUNDS", "3"))
CONFIG = Path("config")


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@for_all(texts())
def test_the_controller_neither_reports_nor_renders_it(documents: list[str]) -> None:
    result = run_controller(documents)

    assert MARK in "".join(documents)
    provenance = [
        (variant.provenance.list_layers(), variant.provenance.list_objects())
        for variant in result.variants
        if variant.provenance
    ]
    facts = [variant.dependencies for variant in result.variants]
    assert MARK not in repr(
        [list_findings(result), result.stalled, result.statuses, list_plugins(result), provenance, facts]
    )


@pytest.mark.slow
@settings(max_examples=ROUNDS, deadline=None, suppress_health_check=[*HealthCheck])
@for_all(texts())
@example([
    build_definition([build_option("token", "secret")]), build_definition(name="other"), EAST, WEST, build_preset(),
    build_preset(name="others", definition="other"), build_organization([build_value("token", MARK)]),
])  # fmt: skip
def test_no_byte_of_it_leaves_the_config(documents: list[str]) -> None:
    folder = Path(mkdtemp(prefix="secrets-"))
    try:
        world = World.create(folder / "world")
        world.write(build_files(EAST, WEST, build_definition([build_option("token", "secret")]), build_preset()))
        result = collect_output(world)
        publish(world)
        shutil.rmtree(world.config)
        world.write(build_files(*documents))
        result += collect_output(world)
        publish(world)
        result += collect_output(world)

        text = b"".join(everything_kept(world.folder))
        assert b"logs-east" in text
        assert "logs-east" in result
        assert MARK not in result
        assert MARK.encode() not in text
    finally:
        shutil.rmtree(folder)


def publish(world: World) -> None:
    """Publish every draft as it is."""
    for ref, commit in read_refs(world.fleet).items():
        if ref.startswith("refs/heads/drafts/"):
            git(world.fleet, "update-ref", ref.replace("/drafts/", "/clusters/"), commit)


def collect_output(world: World) -> str:
    """Run a sync and all read-only commands. Return everything that is printed, logged, or written for users."""
    (world.folder / "reconciler.yaml").write_text(
        f"config: {{url: {world.config}}}\nfleet: {{url: {world.fleet}}}\ncache: {world.folder / 'cache'}\n"
        "rules: {plugin_outputs: [values, helmrelease]}\n"
    )
    places = [f"{item}/plugins/{name}-{item}" for item in ("east", "west") for name in ("logs", "others")]
    commands = [
        ["validate"], ["plan"], ["plan", "-o", "json"], ["sync"], ["drafts"], ["status"],
        ["render", "--output", str(world.folder / "out")],
        *(["show", place] for place in places), *(["explain", place] for place in places),
    ]  # fmt: skip
    string_io = StringIO()
    with redirect_stdout(string_io), redirect_stderr(string_io):
        ended = [
            run_in(world.folder, {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, *command) for command in commands
        ]
    return string_io.getvalue() + "".join(result.stdout + result.stderr for result in ended)


def everything_kept(folder: Path) -> Iterator[bytes]:
    """Yield every object of every repository, including objects without a reference, every ref and every other file."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and CONFIG not in path.relative_to(folder).parents:
            yield path.read_bytes()
        elif (path / "objects").is_dir() and (path / "HEAD").is_file():
            for listed in (["cat-file", "--batch-all-objects", "--batch"], ["for-each-ref"]):
                yield subprocess.run(["git", "-C", path, *listed], capture_output=True, check=True).stdout


def test_what_is_kept_is_looked_through(tmp_path: Path) -> None:
    """The search above finds an object that no ref refers to."""
    world = World.create(tmp_path / "world")
    git(world.fleet, "hash-object", "-w", "--stdin", stdin=MARK.encode())

    assert MARK.encode() in b"".join(everything_kept(world.folder))
