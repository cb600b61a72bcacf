"""Functions that are commands of this machine (`exec`), for those that the operator listed (kpt.md 13)."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from reconciler.packages.functions.exchange import Answer, read_answer, refused_answer, request_text
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    InterruptedFunctionError,
    Item,
    Output,
)
from reconciler.packages.functions.registry import Found, Missing
from reconciler.packages.functions.words import clean_words
from reconciler.packages.kptfile import FunctionSpec
from reconciler.runners.process import Bounds, Ended, Start, TookTooLongError, run_process
from reconciler.runners.spoiled import SpoiledCalls
from reconciler.snapshot.trace import ABSENT

# who sends these is not the function; a crash is
KILLS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
_BECOME = str(Path(__file__).with_name("become.py"))
# nothing of ours; the rest is what scripts need to find their interpreter, and to write the same text everywhere
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


class Commands:
    """The commands that may run: those whose program a pattern matches.

    A pattern is an absolute path; `*` and `?` stand for characters of one folder or file name. The program must be
    written as the plain absolute path that it is, without `.` or `..`.
    """

    def __init__(self, patterns: Sequence[str], bounds: Bounds, spoiled: SpoiledCalls) -> None:
        self._patterns = tuple(patterns)
        self._bounds = bounds
        self._spoiled = spoiled
        self._digests: dict[str, str] = {}

    def find(self, spec: FunctionSpec) -> Found | Missing:
        """Return what runs for a command, or why it may not or cannot."""
        try:
            words = tuple(shlex.split(spec.exec))
        except ValueError as error:
            return Missing(f"a command must be quoted as for a shell: {error}")
        if not words or not self._is_listed(words[0]):
            return Missing(f'functions.exec must list the absolute path of its program, "{"".join(words[:1])}"')
        if not (Path(words[0]).is_file() and os.access(words[0], os.X_OK)):
            return Missing(f"{words[0]} must be a program that may be started", ABSENT)
        identity = f"{self._digest(words[0])} {self._bounds.memory_bytes} {self._bounds.output_bytes}"
        return Found(_Command(words, self._bounds, self._spoiled), (0, 0, 0), identity=identity)

    def look_again(self) -> None:
        """Forget what the programs were: they are asked again, once."""
        self._digests.clear()

    def _is_listed(self, program: str) -> bool:
        path = PurePosixPath(program)
        plain = path.is_absolute() and str(path) == program and ".." not in path.parts
        return plain and any(path.match(pattern) for pattern in self._patterns)

    def _digest(self, program: str) -> str:
        if program not in self._digests:
            try:
                with Path(program).open("rb") as content:
                    self._digests[program] = f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"
            except OSError as error:
                raise InterruptedFunctionError(f"{program} cannot be read: {error.strerror}") from error
        return self._digests[program]


@dataclass(frozen=True)
class _Command:
    """One command as a function."""

    words: tuple[str, ...]
    bounds: Bounds
    spoiled: SpoiledCalls

    def __call__(self, items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
        """Run the command. Raises InterruptedFunctionError."""
        stdin = request_text(items, config).encode()
        key = f"{shlex.join(self.words)} {hashlib.sha256(stdin).hexdigest()}"
        return self.spoiled.call(key, lambda: output_of(self.words[0], items, self._run(stdin), self.bounds))

    def _run(self, stdin: bytes) -> Ended:
        limits = (str(self.bounds.memory_bytes), str(self.bounds.output_bytes))
        with _empty_folder() as folder:
            environment = {**_ENVIRONMENT, "HOME": folder, "TMPDIR": folder}
            start = Start((sys.executable, "-I", "-S", _BECOME, *limits, *self.words), Path(folder), environment)
            ended = bounded(self.words[0], start, stdin, self.bounds)
        return Ended(ended.code, ended.output, clean_words(ended.words, folder), ended.too_large)


def _empty_folder() -> TemporaryDirectory[str]:
    try:
        return TemporaryDirectory(prefix="reconciler-function-", ignore_cleanup_errors=True)
    except OSError as error:
        raise InterruptedFunctionError(f"no temporary folder can be made: {error.strerror}") from error


def bounded(what: str, start: Start, stdin: bytes, bounds: Bounds) -> Ended:
    """Run a process whose time-out, and whatever keeps it from starting, is the world's. Raises Interrupted…Error."""
    try:
        return run_process(start, stdin, bounds)
    except TookTooLongError as error:
        raise InterruptedFunctionError(f"{what} took longer than {bounds.seconds:g} seconds and was ended") from error
    except OSError as error:
        raise InterruptedFunctionError(f"{what} cannot be started: {error.strerror}") from error


def output_of(what: str, items: Sequence[Item], ended: Ended, bounds: Bounds) -> Output:
    """Return what the end of a function's process comes to; its exit code is as a shell tells it.

    Raises InterruptedFunctionError where somebody killed it.
    """
    if ended.too_large:
        return refused_answer(items, ended.words, f"its output must not be larger than {bounds.output_bytes} bytes")
    code = ended.code if ended.code >= 0 else 128 - ended.code
    if -ended.code in KILLS:
        raise InterruptedFunctionError(f"{what} was killed by {signal.Signals(-ended.code).name}")
    return read_answer(items, Answer(code, ended.output, ended.words), bounds.output_bytes)
