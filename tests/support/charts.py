"""Charts and chart engines for tests: file trees from texts and folders, and programs that replace engines."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from reconciler.catalog.files import File, FileTree
from reconciler.krm.version_ranges import VersionRange, parse_range
from reconciler.packages.charts.package_files import OutputRules
from reconciler.packages.charts.request import ChartRequest
from reconciler.processes.process import ProcessLimits
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.sources.engine_programs import EngineProgram
from reconciler.sources.helm import HelmEngine, HelmOptions
from reconciler.sources.helm_program import HELM
from reconciler.sources.limits import SourceLimits
from reconciler.sources.programs import ProgramFinder, ProgramRunner, SandboxMode
from reconciler.sources.render_cache import RenderCache
from tests.support.programs import PROJECT

SOURCES = PROJECT / "fixtures/sources"
REQUEST = ChartRequest("web", "shop", "1.34.0")
RULES = OutputRules(max_resources=100, is_strict=False)
LIMITS = ProcessLimits(30, 1 << 30, 1_000_000)
BACKOFF_SECONDS = 10.0
# A program with the interface of helm or kustomize. Its behavior is in the file `behavior.json` beside it. It writes
# each of its calls to the file `calls`, and the input that it received to the file `inputs`.
_FAKE_PROGRAM = """#!{python}
import json, pathlib, sys, os, time
folder = pathlib.Path({folder!r})
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
behavior = json.loads((folder / "behavior.json").read_text())
if sys.argv[1] == "version":
    print(behavior.get("version", {version!r}))
    sys.exit()
files = {{str(path): path.read_text() for path in sorted(pathlib.Path().rglob("*")) if path.is_file()}}
(folder / "inputs").write_text(json.dumps({{"files": files, "environment": dict(os.environ)}}))
exec(behavior.get("code", ""))
sys.stdout.buffer.write(behavior.get("output", "").encode("utf-8", "surrogateescape"))
sys.stderr.write(behavior.get("stderr", ""))
sys.exit(behavior.get("exit_code", 0))
"""


class FakeProgram:
    """A program that replaces an engine. `behave` sets its output, and `calls` returns the arguments of its calls.

    Attributes:
        name: The file name of the program.
        command: The first argument of a render.
        version: The version that the program prints by default.
    """

    name: ClassVar[str]
    command: ClassVar[str]
    version: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / self.name
        folder.mkdir(parents=True, exist_ok=True)
        self.behave()
        self.install()

    def install(self) -> None:
        """Write the program file."""
        self.path.write_text(_FAKE_PROGRAM.format(python=sys.executable, folder=str(self.folder), version=self.version))
        self.path.chmod(0o755)

    def behave(self, **behavior: object) -> None:
        """Set the keys `output`, `stderr`, `exit_code`, `version` and `code` of the next calls."""
        (self.folder / "behavior.json").write_text(json.dumps(behavior))

    def calls(self, command: str = "") -> list[list[str]]:
        """Return the arguments of the calls of a command. The default is the command of renders."""
        command = command or self.command
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [arguments for line in lines if (arguments := json.loads(line))[0] == command]

    def inputs(self) -> dict[str, dict[str, str]]:
        """Return the files and the environment of the last render."""
        content: dict[str, dict[str, str]] = json.loads((self.folder / "inputs").read_text())
        return content


class FakeHelm(FakeProgram):
    """A program that replaces helm."""

    name, command, version = "helm", "template", "v3.22"


class FakeKustomize(FakeProgram):
    """A program that replaces kustomize."""

    name, command, version = "kustomize", "build", "v5.8.2"


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def build_engine(
    program: Path | str,
    cache: Path,
    limits: ProcessLimits = LIMITS,
    clock: Clock | None = None,
    rules: OutputRules = RULES,
    sandbox: SandboxMode = "auto",
) -> HelmEngine:
    """Return an engine that uses a program file and a cache folder."""
    runner, renders = ProgramRunner(sandbox), RenderCache(cache, 1 << 30, 1 << 24)
    finder = ProgramFinder("helm", Path(program), "")
    backoff = Backoff(BACKOFF_SECONDS, BACKOFF_SECONDS, clock or Clock())
    helm = EngineProgram(HELM, read_range(">=3.14 <5"), finder, runner, renders, limits, backoff)
    return HelmEngine(HelmOptions(limits, rules, SourceLimits()), helm, runner, renders, backoff)


def read_range(text: str) -> VersionRange:
    """Return a valid range of versions."""
    parsed = parse_range(text)
    assert parsed is not None
    return parsed


def read_source(name: str, version: str = "1.0.0") -> dict[str, str]:
    """Return the files of a chart in `fixtures/sources` with a version."""
    folder = SOURCES / name
    files = {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {**files, "Chart.yaml": files["Chart.yaml"].replace("1.0.0", version)}


def read_folder(folder: Path) -> FileTree:
    """Return the files of a folder."""
    return FileTree(
        {str(path.relative_to(folder)): File(path.read_bytes()) for path in folder.rglob("*") if path.is_file()}
    )


def build_chart(templates: Mapping[str, str] | None = None, **files: str) -> FileTree:
    """Return a chart with the name `web` and the version 1.2.3.

    Args:
        templates: The texts of template files by name.
        files: The texts of other files. `values_yaml` stands for `values.yaml`.
    """
    texts = {"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n"}
    texts |= {f"templates/{name}": text for name, text in (templates or {}).items()}
    texts |= {name.replace("_yaml", ".yaml"): text for name, text in files.items()}
    return FileTree({path: File(text.encode()) for path, text in texts.items()})


def format_config_map(name: str, value: str = "x") -> str:
    """Return the text of a ConfigMap."""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: {value}\n"
