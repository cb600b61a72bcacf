"""Finds the programs that render sources, and runs them with limits, with a fixed environment and without a network."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Final, Literal

from reconciler.catalog.files import FileTree
from reconciler.lazy_dataclasses import dataclass
from reconciler.processes.process import (
    ProcessLimits,
    ProcessResult,
    ProcessSpec,
    ProcessTimeoutError,
    compute_program_digest,
    limit_resources,
    run_process,
)
from reconciler.telemetry.event_log import log

SandboxMode = Literal["auto", "require", "none"]

PROGRAM_FOLDERS: Final = (Path("/usr/local/bin"), Path("/usr/bin"), Path("/opt/homebrew/bin"))
"""Folders in which programs are searched, before the folder of the Python interpreter."""

_TEMPORARY_FILE_SYSTEM = Path("/dev/shm")  # A file system in memory, whose files no disk stores.  # noqa: S108  # nosec B108
_UNSHARE = ("--user", "--net")
_UNSHARE_SECONDS = 10.0
_UNSHARE_BYTES = 67_108_864
# The address of the proxy for programs that must not use the network. Requests to it fail at once, because no process
# listens on it.
_CLOSED_PROXY = "http://127.0.0.1:9"
_MEMORY_SHARE = 0.75
_READ_ONLY_FILE, _READ_ONLY_FOLDER = 0o400, 0o500


class SandboxUnavailableError(Exception):
    """The settings require a sandbox without a network, and this machine does not support it."""


@dataclass(frozen=True)
class Program:
    """A program file and the SHA-256 digest of its content."""

    path: Path
    digest: str


class ProgramFinder:
    """Finds one program by its name.

    Args:
        name: The file name of the program.
        path: The path of the program. None searches the usual folders.
        search_path: The `PATH` variable, whose folders are searched last. "" for the daemon.
    """

    def __init__(self, name: str, path: Path | None, search_path: str) -> None:
        self._name = name
        self._path = path
        self._search_path = search_path

    def list_candidates(self) -> tuple[Path, ...]:
        """Return the paths at which the program is searched, in order."""
        if self._path is not None:
            return (self._path,)
        folders = (
            *PROGRAM_FOLDERS,
            Path(sys.executable).parent,
            *map(Path, filter(None, self._search_path.split(":"))),
        )
        return tuple(dict.fromkeys(folder / self._name for folder in folders))

    def find(self) -> Program | None:
        """Return the program. Return None if it is not found."""
        for path in self.list_candidates():
            try:
                if path.is_file() and os.access(path, os.X_OK):
                    return Program(path, compute_program_digest(path))
            except OSError:
                continue  # The file does not exist, or it cannot be read: try the next folder.
        return None


class ProgramRunner:
    """Runs programs on read-only copies of input files."""

    def __init__(self, sandbox: SandboxMode) -> None:
        self._sandbox = sandbox
        self._lock = Lock()
        self._is_isolated: bool | None = None

    def run(
        self, program: Path, arguments: Sequence[str], inputs: Mapping[str, FileTree | bytes], limits: ProcessLimits
    ) -> ProcessResult:
        """Run a program in a temporary folder that contains `inputs`.

        `inputs` maps names to contents. A `FileTree` is written as a subfolder, and bytes are written as a file.
        Raises:
            ProcessTimeoutError: The program exceeded the time limit.
            SandboxUnavailableError: The settings require a sandbox that this machine does not support.
            OSError: The input cannot be written, or the program cannot be started.
        """
        prefix = self._build_prefix()
        with _create_folder(_count_bytes(inputs)) as folder:
            work, home = folder / "work", folder / "home"
            home.mkdir()
            _write_inputs(work, inputs)
            command = limit_resources((*prefix, str(program), *arguments), limits)
            spec = ProcessSpec(command, work, _build_environment(home, limits, has_network=not prefix))
            result = run_process(spec, b"", limits)
        if result.exit_code and result.stderr.startswith(("unshare: ", f"{program} cannot be started: ")):
            # The program was not started. The exit code is that of the wrapper command that should have started the
            # program.
            raise OSError(result.stderr.strip())
        return result

    def _build_prefix(self) -> tuple[str, ...]:
        if self._sandbox == "none":
            return ()
        unshare = shutil.which("unshare", path="/usr/bin:/bin")
        with self._lock:
            if self._is_isolated is None:
                self._is_isolated = unshare is not None and _can_isolate(unshare)
                if not self._is_isolated and self._sandbox == "auto":
                    log.warning("sandbox_unavailable", message="programs that render sources can use the network")
        if unshare is not None and self._is_isolated:
            return (unshare, *_UNSHARE, "--")
        if self._sandbox == "require":
            raise SandboxUnavailableError(
                'the setting `sources.sandbox` is "require", but `unshare --user --net` does not work on this machine.'
                " Next step: allow user namespaces, or change the setting"
            )
        return ()


def _can_isolate(unshare: str) -> bool:
    limits = ProcessLimits(_UNSHARE_SECONDS, _UNSHARE_BYTES, _UNSHARE_BYTES)
    try:
        return run_process(ProcessSpec((unshare, *_UNSHARE, "--", unshare, "--version")), b"", limits).exit_code == 0
    except (OSError, ProcessTimeoutError):
        return False


def _build_environment(home: Path, limits: ProcessLimits, *, has_network: bool) -> dict[str, str]:
    folders = ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS", "TMPDIR")
    proxies = ("HTTP_PROXY", "HTTPS_PROXY") if has_network else ()
    return {
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PATH": "/nonexistent",
        "KUBECONFIG": "/dev/null",
        "GOMEMLIMIT": str(int(limits.memory_bytes * _MEMORY_SHARE)),
        "GOMAXPROCS": "1",
        **dict.fromkeys(folders, str(home)),
        **dict.fromkeys(proxies, _CLOSED_PROXY),
    }


@contextmanager
def _create_folder(input_bytes: int) -> Iterator[Path]:
    """Create a private temporary folder, in memory if there is enough space, and delete it afterwards."""
    # Prefer a folder in memory, because values can be confidential and must not stay on a disk.
    parent = _TEMPORARY_FILE_SYSTEM if _has_space(_TEMPORARY_FILE_SYSTEM, 2 * input_bytes) else None
    with TemporaryDirectory(prefix="reconciler-source-", dir=parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _has_space(folder: Path, size: int) -> bool:
    try:
        return os.access(folder, os.W_OK | os.X_OK) and shutil.disk_usage(folder).free > size
    except OSError:
        return False


def _count_bytes(inputs: Mapping[str, FileTree | bytes]) -> int:
    return sum(len(content) if isinstance(content, bytes) else content.byte_count for content in inputs.values())


def _write_inputs(folder: Path, inputs: Mapping[str, FileTree | bytes]) -> None:
    folder.mkdir()
    for name, content in inputs.items():
        if isinstance(content, bytes):
            _write_read_only(folder / name, content)
            continue
        (folder / name).mkdir()
        for path, file in content.items():
            if ".." in path.split("/") or path.startswith("/"):
                raise ValueError(f'the path "{path}" is outside of the folder of the source')
            _write_read_only(folder / name / path, file.data)
    for path, _, _ in os.walk(folder, topdown=False):
        Path(path).chmod(_READ_ONLY_FOLDER)


def _write_read_only(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(_READ_ONLY_FILE)
