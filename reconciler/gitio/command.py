"""Running git: one way to start it, with nobody's configuration, no hooks, no questions, and an end in sight.

GitPython starts the processes; what they may see, and how long they may take, is decided here.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from git.cmd import Git
from git.exc import GitCommandNotFound

from reconciler.gitio.credentials import GivenCredential, find_credential, give_credential
from reconciler.gitio.errors import (
    GitError,
    GitProgramMissingError,
    InterruptedGitError,
    MirrorCorruptError,
    TimedOutError,
    name_failure,
)
from reconciler.gitio.options import GitOptions
from reconciler.gitio.url import GitUrl
from reconciler.redaction import redact

TRACKING = "refs/remotes/origin/"
FAR_SIDE = "far-side.config"
# where this machine keeps its certificates, and git its own programs
_OF_THE_MACHINE = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_EXEC_PATH")
# only these talk to a remote, and only they get its credentials
_REMOTE_COMMANDS = frozenset({"fetch", "push", "ls-remote"})
_GRACE_SECONDS = 3.0
_LONGEST_WORDS = 2_000
# what git adds to every failure of a remote, whatever it was
_SAID_ANYWAY = (
    "fatal: Could not read from remote repository.",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
)


@dataclass(frozen=True)
class Result:
    """How a call of git ended: exit code, output, and its words without credentials."""

    code: int
    output: bytes
    words: str

    @property
    def lines(self) -> list[str]:
        """The output as lines of text."""
        return self.output.decode(errors="surrogateescape").splitlines()


class GitCommand:
    """Calls git on one mirror of one remote, named `origin`."""

    def __init__(self, folder: Path, url: GitUrl, options: GitOptions) -> None:
        self._git = Git(str(folder))
        self._folder = folder
        self._url = url
        self._options = options
        self._timeout = options.timeout_seconds
        self._environment = _environment(folder, url, options)
        self._settings = _settings(url, options)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._interrupted: set[subprocess.Popen[bytes]] = set()

    def run(
        self, *arguments: str, stdin: bytes | BinaryIO = b"", hold: int | None = None, accept: tuple[int, ...] = (0,)
    ) -> Result:
        """Run git to its end; other exit codes than `accept` raise GitError. `hold`: a lock's descriptor to pass on."""
        source = subprocess.PIPE if isinstance(stdin, bytes) else stdin
        with self.start(*arguments, source=source, hold=hold) as process:
            output, words = self._finish(process, arguments[0], stdin if isinstance(stdin, bytes) else None)
            result = Result(process.returncode, output, self.clean(words))
            if process in self._interrupted:
                raise InterruptedGitError(f"git {arguments[0]} of {self._url.text} was ended on request")
        if result.code not in accept:
            raise self.failure(arguments[0], result.words)
        return result

    @contextmanager
    def start(
        self, *arguments: str, source: int | BinaryIO = subprocess.PIPE, hold: int | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start git and yield the process; whatever happens it is gone, with its children, at the end."""
        with self._credentials(arguments) as given:
            environment = self._environment | _configuration([*self._settings, *given.settings])
            descriptors = (*given.descriptors, *(() if hold is None else (hold,)))
            with self._started(arguments, environment, source, descriptors) as process:
                yield process

    @contextmanager
    def _credentials(self, arguments: Sequence[str]) -> Iterator[GivenCredential]:
        file, url = self._options.credentials_file, self._url
        # options of git itself may come before the name of the command
        is_for_remote = url.scheme in ("https", "http") and not _REMOTE_COMMANDS.isdisjoint(arguments)
        credential = find_credential(file, url) if file and is_for_remote else None
        if credential is None:
            yield GivenCredential()
            return
        with give_credential(credential, url) as given:
            yield given

    @contextmanager
    def _started(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        source: int | BinaryIO,
        descriptors: tuple[int, ...],
    ) -> Iterator[subprocess.Popen[bytes]]:
        command = [*_without_inherited(environment), "git", f"--git-dir={self._folder}", *arguments]
        try:
            # in a session of its own, so that a timeout ends ssh and remote helpers too
            wrapper = self._git.execute(
                command, istream=source, as_process=True, env=environment,
                start_new_session=True, pass_fds=descriptors,
            )  # fmt: skip
        except GitCommandNotFound as error:
            raise GitProgramMissingError("the program git must be installed and on the PATH") from error
        process = wrapper.proc
        assert process is not None
        self._running.add(process)
        try:
            yield process
        finally:
            self._running.discard(process)
            self._interrupted.discard(process)
            _end(process)

    def interrupt(self) -> None:
        """Ask every process that runs now to end; who waits for one finds that it failed. For other threads."""
        for process in tuple(self._running):
            if process.poll() is None:
                self._interrupted.add(process)
                _signal_all(process, signal.SIGTERM)

    def _finish(self, process: subprocess.Popen[bytes], name: str, stdin: bytes | None) -> tuple[bytes, bytes]:
        try:
            return process.communicate(stdin, timeout=self._timeout)
        except subprocess.TimeoutExpired as error:
            raise TimedOutError(
                f"git {name} of {self._url.text} took longer than {self._timeout:g} seconds and was ended"
            ) from error

    def failure(self, name: str, words: str) -> GitError:
        """Return the error that git's words, already clean, speak of."""
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        said = "; ".join([line for line in lines if line not in _SAID_ANYWAY] or lines)
        if f"not a git repository: '{self._folder}'" in words:
            return MirrorCorruptError(f"the mirror {self._folder} of {self._url.text} is damaged: {said}")
        return name_failure(words)(f"git {name} of {self._url.text} failed: {said or 'no reason given'}")

    def clean(self, words: bytes) -> str:
        """Return what git said without credentials and of bearable length."""
        text = redact(words.decode(errors="replace"))
        return text if len(text) <= _LONGEST_WORDS else "…" + text[-_LONGEST_WORDS:]


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None and not pipe.closed:
            _close(pipe)
    # politely first: on SIGTERM git removes its lock files, here and in a local remote
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            _signal_all(process, number)
            _wait(process)


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        return  # the process is gone already, with whatever we had not told it


def _signal_all(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return  # ended between the look and the signal


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return  # the caller goes on to the stronger signal


def _without_inherited(environment: Mapping[str, str]) -> list[str]:
    # variables such as GIT_INDEX_FILE or GIT_QUARANTINE_PATH come along when we are started from a hook;
    # GitPython can only add to the environment, so env(1) takes them out
    wanted = {*environment, *_OF_THE_MACHINE}
    inherited = [name for name in os.environ if name.startswith("GIT_") and name not in wanted]
    return ["env", *(f"--unset={name}" for name in inherited)] if inherited else []


def _environment(folder: Path, url: GitUrl, options: GitOptions) -> dict[str, str]:
    return {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(folder / FAR_SIDE) if url.local else os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_ALLOW_PROTOCOL": url.scheme,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_SSH_COMMAND": _ssh(options),
        "HOME": str(folder),  # libcurl would read a .netrc there
        "LC_ALL": "C",
    }


def _configuration(settings: list[tuple[str, str]]) -> dict[str, str]:
    # by environment: not on disk, and not passed on to the far side of a local remote; no value is a secret
    numbered = {f"GIT_CONFIG_KEY_{n}": key for n, (key, _) in enumerate(settings)}
    numbered |= {f"GIT_CONFIG_VALUE_{n}": value for n, (_, value) in enumerate(settings)}
    return numbered | {"GIT_CONFIG_COUNT": str(len(settings))}


def _settings(url: GitUrl, options: GitOptions) -> list[tuple[str, str]]:
    return [
        ("remote.origin.url", url.connect),
        ("core.hooksPath", os.devnull),
        ("core.fsmonitor", "false"),
        ("core.logAllRefUpdates", "false"),
        ("gc.auto", "0"),
        ("gc.cruftPacks", "true"),
        ("maintenance.auto", "false"),
        ("protocol.version", "2"),
        # hosts check what we send; what we fetch is checked where it is read, since a commit with
        # a misspelt date upstream must not stop its readers (finding 9)
        ("transfer.fsckObjects", "false"),
        # with an allow-list a redirect would be a way around it
        ("http.followRedirects", "false" if options.allowed_urls else "initial"),
        ("http.lowSpeedLimit", "1"),
        ("http.lowSpeedTime", str(max(1, int(options.timeout_seconds)))),
        ("credential.helper", ""),
    ]


def _ssh(options: GitOptions) -> str:
    words = ["ssh", "-F", os.devnull, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
    words += ["-o", f"ConnectTimeout={max(1, int(options.timeout_seconds))}"]
    if options.known_hosts_file:
        words += [
            "-o",
            f"UserKnownHostsFile={_ssh_path(options.known_hosts_file)}",
            "-o",
            "GlobalKnownHostsFile=/dev/null",
        ]
    if options.ssh_key_file:
        words += ["-i", str(Path(options.ssh_key_file).absolute()), "-o", "IdentitiesOnly=yes"]
    return shlex.join(words)


def _ssh_path(file: str) -> str:
    path = str(Path(file).absolute())
    return f'"{path}"' if " " in path else path
