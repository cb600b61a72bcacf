"""Programs for tests: functions and a container engine."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.packages.functions.function import FunctionContext, FunctionOutput
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS, FunctionMatch
from reconciler.packages.functions.starlark import run_in_process
from reconciler.processes.process import ProcessLimits
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.runners.commands import CommandFunctions
from reconciler.runners.containers import ContainerEngine, ContainerFunctions, EngineOptions, PullPolicy
from reconciler.runners.functions import CombinedFunctionProvider
from reconciler.runners.interrupted_calls import InterruptedCalls
from tests.unit.packages.builders import parse_items

PREFIX = "ghcr.io/kptdev/krm-functions-catalog"
BOUNDS = ProcessLimits(20, 512 * 1024 * 1024, 1_000_000)
# An engine without containers: each image is a Python program in FOLDER/images, with the reference as its name.
_ENGINE = """
import hashlib, json, os, pathlib, subprocess, sys
folder = pathlib.Path({folder!r})
words = sys.argv[1:]
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps(words) + "\\n")
def image(reference):
    return folder / "images" / reference.replace("/", "_")
if (folder / "down").exists():
    sys.exit("Cannot connect to the Docker daemon. Is it running?")
if words[:2] == ["image", "inspect"]:
    if not image(words[-1]).exists():
        sys.exit("Error: No such image: " + words[-1])
    print("sha256:" + hashlib.sha256(image(words[-1]).read_bytes()).hexdigest())
elif words[0] == "pull":
    there = folder / "registry" / words[-1].replace("/", "_")
    if not there.exists():
        sys.exit("manifest unknown")
    image(words[-1]).write_bytes(there.read_bytes())
elif words[0] == "run":
    for one in (folder / "images").iterdir():
        if "sha256:" + hashlib.sha256(one.read_bytes()).hexdigest() == words[-1]:
            os.execv(sys.executable, [sys.executable, str(one)])
    sys.exit(125)
"""


def program(path: Path, source: str, interpreter: str = sys.executable) -> Path:
    """Write an executable program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{interpreter}\n{dedent(source)}")
    path.chmod(0o755)
    return path


def editing(change: str) -> str:
    """Return a function's source: `change` is done with `rl`, the resource list."""
    return f"import sys, yaml\nrl = yaml.safe_load(sys.stdin)\n{dedent(change)}\nyaml.safe_dump(rl, sys.stdout)\n"


def engine(folder: Path, name: str = "docker") -> Path:
    """Write an engine and return the folder to put on the PATH."""
    for item in ("images", "registry"):
        (folder / item).mkdir(parents=True, exist_ok=True)
    return program(folder / "bin" / name, _ENGINE.format(folder=str(folder))).parent


def put_image(folder: Path, reference: str, source: str, place: str = "images") -> None:
    """Add an image to the local images of the engine, or to its registry."""
    (folder / place / reference.replace("/", "_")).write_text(source)


class Clock:
    """A manual clock, in seconds."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def functions(
    exec: tuple[str, ...] = (),  # noqa: A002  # the setting's name
    containers: tuple[str, ...] = (),
    pull: PullPolicy = "IfNotPresent",
    bounds: ProcessLimits = BOUNDS,
    clock: Clock | None = None,
) -> CombinedFunctionProvider:
    """Return all functions, as the program builds them. The back-off after a failure is 5 seconds of `clock`."""
    spoiled = InterruptedCalls(Backoff(5, 60, clock or Clock()))
    images = ContainerFunctions(containers, PREFIX, ContainerEngine(EngineOptions("", pull), bounds), bounds, spoiled)
    return CombinedFunctionProvider(
        BUILTIN_FUNCTIONS, CommandFunctions(exec, bounds, spoiled), images, PREFIX, run_in_process,
        lambda: pytest.fail("no chart is rendered"),
    )  # fmt: skip


def call(value: object, text: str, config: dict[str, object] | None = None) -> FunctionOutput:
    """Call a function with the documents of a text."""
    assert isinstance(value, FunctionMatch), value
    return value.function(parse_items(text), config, FunctionContext())


def command(path: Path, *arguments: str) -> FunctionSpec:
    """Return the entry of a pipeline that runs a program."""
    return FunctionSpec(exec=" ".join([str(path), *arguments]))
