"""The data that a function of a package can read about its parent process and about other child processes."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler import process_protection
from tests.runners.programs import program
from tests.support.daemon import run_program
from tests.support.world import World, catalog, package, repository, variant

CANARY = "canary-7f3a9c51"
PROJECT = Path(__file__).resolve().parents[2]
MODULE = Path(process_protection.__file__)
needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")

# A function that looks for a text in the environment and the arguments of every process and in its own descriptors.
SPY = """
import json, os, pathlib
seen = {"parents": [], "hits": [], "descriptors": sorted(os.listdir("/proc/self/fd"))}
pid = os.getpid()
while pid > 1:
    pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    seen["parents"].append(pid)
for folder in pathlib.Path("/proc").iterdir():
    for name in ("environ", "cmdline") if folder.name.isdigit() else ():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            continue
        if CANARY.encode() in content:
            seen["hits"].append(f"{folder}/{name}")
pathlib.Path(REPORT).write_text(json.dumps(seen))
print(sys.stdin.read())
"""


def spying_world(folder: Path, report: Path) -> World:
    """Return a world with one package whose pipeline runs the spy."""
    path = folder / "programs" / "spy"
    source = SPY.replace("CANARY", repr(CANARY)).replace("REPORT", repr(str(report)))
    program(path, f"import sys{source}")
    world = World.create(folder)
    files = package("web")
    files["Kptfile"] += f"pipeline:\n  mutators:\n  - exec: {path}\n"
    world.release("web", "v1", files)
    world.write(
        {"repositories.yaml": f"{catalog()}---\n{repository('berlin')}", "web.yaml": variant("web", "berlin", "web")}
    )
    (folder / "settings.yaml").write_text(f"functions: {{exec: [{path}]}}\n")
    return world


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("command", ["sync", "plan"])
def test_a_function_finds_no_secret_of_the_environment(tmp_path: Path, command: str) -> None:
    report = tmp_path / "report.json"
    world = spying_world(tmp_path, report)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(PROJECT),
        "AWS_SECRET_ACCESS_KEY": CANARY, "RECONCILER_TOKEN": CANARY, "RECONCILER_LOG__LEVEL": "info",
        "GIT_CONFIG_PARAMETERS": f"'x.y={CANARY}'", "CI_JOB_TOKEN": CANARY, "SOPS_AGE_KEY": CANARY,
    }  # fmt: skip
    arguments = [command, str(world.config), "--fleet", str(world.fleet), "--cache", str(tmp_path / "cache")]

    settings = ("--settings", str(tmp_path / "settings.yaml"))
    process = run_program(tmp_path, *arguments, *settings, environment=environment)

    assert report.exists(), process.stderr
    data = json.loads(report.read_text())
    assert len(data["parents"]) > 1
    assert data["hits"] == []
    assert len(data["descriptors"]) == 4, "the three streams, and the folder that it lists"


@pytest.mark.slow
@needs_proc
def test_the_settings_are_still_read_from_the_environment(tmp_path: Path) -> None:
    code = (
        "from reconciler.process_protection import protect_process; protect_process();"
        "from reconciler.cli.options import read_settings; import os;"
        "print(read_settings(None).poll_seconds, sorted(one for one in os.environ if one.startswith('RECONCILER')))"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "RECONCILER_POLL_SECONDS": "7"}

    process = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert process.stdout == "7.0 []\n"


@needs_proc
@pytest.mark.skipif(os.getuid() != 0, reason="only root can start processes of another user")
def test_another_process_of_an_ordinary_user_reads_no_memory() -> None:
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    if python is None:
        pytest.skip("the Python of the tests is not readable for other users, and there is no other one")
    look = "for f in mem fd/0 environ; do head -c 1 /proc/$PPID/$f >/dev/null 2>&1 && echo $f; done"
    # the folders of the tests belong to root: the module is read from standard input
    code = (
        "import subprocess, sys, types; module = types.ModuleType('protection'); exec(sys.stdin.read(), vars(module));"
        f"command = ['sh', '-c', {look!r}];"
        "look = lambda: subprocess.run(command, stdin=0, capture_output=True, text=True).stdout.split();"
        "before = look(); module.protect_process(); print(before, look())"
    )

    process = subprocess.run(
        [python, "-I", "-c", code], env={"PATH": "/usr/bin:/bin", "SECRET": CANARY}, user=65534, group=65534,
        extra_groups=[], cwd="/", input=MODULE.read_text(), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert process.returncode == 0, process.stderr
    # without protection at least the environment is readable
    before, after = process.stdout.split("] [")
    assert ("environ" in before, after) == (True, "]\n")


@needs_proc
def test_a_protected_process_is_not_dumpable(tmp_path: Path) -> None:
    code = (
        "import ctypes; from reconciler.process_protection import protect_process; protect_process();"
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)}

    process = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert process.stdout == "0\n"
    assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 1, "the process of the tests itself is not protected"
