"""Git processes with a timeout and a limited environment. They use no user configuration, hooks or prompts.

GitPython starts the processes. This module sets their environment, Git settings, credentials and timeout.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from git.cmd import Git
from git.exc import GitCommandNotFound

from reconciler.git.errors import (
    AccessDeniedError,
    GitError,
    GitProgramMissingError,
    GitTimeoutError,
    InterruptedGitError,
    MirrorCorruptError,
    classify_failure,
)
from reconciler.git.options import GitOptions
from reconciler.git.remote_credentials import CredentialUse, RemoteAccess
from reconciler.git.request_metrics import measure_request
from reconciler.git.url import GitUrl, check_url_allowed
from reconciler.lazy_dataclasses import dataclass
from reconciler.redaction import redact
from reconciler.telemetry.progress import progress

TRACKING_PREFIX = "refs/remotes/origin/"
REMOTE_CONFIG_FILE = "far-side.config"
# Keep these inherited variables, because they contain the paths of certificates and of Git's programs on this machine.
_MACHINE_VARIABLES = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_EXEC_PATH")
# Only these Git commands receive credentials of the remote, because only they contact the remote. Only a push receives
# the credentials for writing.
_REMOTE_COMMANDS: Mapping[str, CredentialUse] = {"fetch": "read", "ls-remote": "read", "push": "write"}
_GRACE_SECONDS = 3.0
_MAX_STDERR_LENGTH = 2_000
# Omit these lines from messages, because Git prints them after every failure of a remote.
_GENERIC_STDERR_LINES = (
    "fatal: Could not read from remote repository.",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
)


def read_git_version() -> str:
    """Return the version of the program git, such as `2.39.5`."""
    return ".".join(map(str, Git().version_info))


@dataclass(frozen=True)
class GitResult:
    """The result of one Git call. Its `stderr` contains no credentials."""

    exit_code: int
    output: bytes
    stderr: str

    @property
    def lines(self) -> list[str]:
        """The standard output of git as lines of text."""
        return self.output.decode(errors="surrogateescape").splitlines()


class GitCommand:
    """Runs git in the mirror of one remote. The mirror's Git settings name the remote `origin`.

    `variables` contains additional environment variables of git.
    """

    def __init__(
        self, folder: Path, url: GitUrl, options: GitOptions, variables: Mapping[str, str] | None = None
    ) -> None:
        self._git = Git(str(folder))
        self._folder = folder
        self._url = url
        self._options = options
        self._timeout = options.timeout_seconds
        self._environment = _build_environment(folder, url, options) | dict(variables or {})
        self._settings = _build_settings(options)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._interrupted: set[subprocess.Popen[bytes]] = set()

    def run(
        self,
        *arguments: str,
        stdin: bytes | BinaryIO = b"",
        lock_descriptor: int | None = None,
        accepted_exit_codes: tuple[int, ...] = (0,),
    ) -> GitResult:
        """Run git until it ends, and return its output.

        If the remote refuses the credentials, they are read again, and git runs a second time.

        Args:
            lock_descriptor: The file descriptor of a lock of the caller. The git process inherits the descriptor.
            accepted_exit_codes: Exit codes that are not errors.

        Raises:
            GitError: The exit code is not accepted, git exceeded the timeout, or `interrupt` ended git.
        """
        name = _get_command_name(arguments)
        use = _REMOTE_COMMANDS.get(name)
        result = self._run_measured(arguments, stdin, lock_descriptor)
        if use and _is_access_denied(result) and self._options.credentials.expire(self._url, use):
            result = self._run_measured(arguments, stdin, lock_descriptor)
        if result.exit_code not in accepted_exit_codes:
            raise self.build_error(name, result.stderr)
        return result

    def _run_measured(
        self, arguments: Sequence[str], stdin: bytes | BinaryIO, lock_descriptor: int | None
    ) -> GitResult:
        with measure_request(self._url, _get_command_name(arguments)) as measurement:
            measurement.result = self._run_once(arguments, stdin, lock_descriptor)
        return measurement.result

    def _run_once(self, arguments: Sequence[str], stdin: bytes | BinaryIO, lock_descriptor: int | None) -> GitResult:
        source, name = subprocess.PIPE if isinstance(stdin, bytes) else stdin, _get_command_name(arguments)
        with self.start(*arguments, stdin=source, lock_descriptor=lock_descriptor) as process:
            output, error_output = self._communicate(process, name, stdin if isinstance(stdin, bytes) else None)
            result = GitResult(process.returncode, output, self.clean_output(error_output))
            if process in self._interrupted:
                raise InterruptedGitError(f"git {name} of {self._url.text} was stopped on request")
        progress.update(f"git {name}")
        return result

    @contextmanager
    def start(
        self, *arguments: str, stdin: int | BinaryIO = subprocess.PIPE, lock_descriptor: int | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start git and yield the process. When the context ends, git and its child processes are ended."""
        with self._open_access(arguments) as access:
            environment = (
                self._environment
                | _build_config_variables([("remote.origin.url", access.url.connection_url), *self._settings,
                                           *access.settings])
                | {"GIT_ALLOW_PROTOCOL": access.url.scheme,
                   "GIT_SSH_COMMAND": _build_ssh_command(self._options, access.ssh_options)}
            )  # fmt: skip
            descriptors = (*access.descriptors, *(() if lock_descriptor is None else (lock_descriptor,)))
            with self._start_process(arguments, environment, stdin, descriptors) as process:
                yield process

    @contextmanager
    def _open_access(self, arguments: Sequence[str]) -> Iterator[RemoteAccess]:
        use = _REMOTE_COMMANDS.get(_get_command_name(arguments))
        if use is None:
            yield RemoteAccess(self._url)
            return
        with self._options.credentials.open(self._url, use) as access:
            if access.url != self._url:
                check_url_allowed(access.url, self._options.allowed_urls)
            yield access

    @contextmanager
    def _start_process(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        source: int | BinaryIO,
        descriptors: tuple[int, ...],
    ) -> Iterator[subprocess.Popen[bytes]]:
        command = [*_build_unset_command(environment), "git", f"--git-dir={self._folder}", *arguments]
        try:
            # Start git in its own session, so that a timeout also ends its child processes, such as ssh.
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
            _end_process(process)

    def interrupt(self) -> None:
        """End all running git processes of this object. The callers in other threads get InterruptedGitError."""
        for process in tuple(self._running):
            if process.poll() is None:
                self._interrupted.add(process)
                _signal_all(process, signal.SIGTERM)

    def _communicate(self, process: subprocess.Popen[bytes], name: str, stdin: bytes | None) -> tuple[bytes, bytes]:
        try:
            return process.communicate(stdin, timeout=self._timeout)
        except subprocess.TimeoutExpired as error:
            raise GitTimeoutError(
                f"git {name} of {self._url.text} took longer than {self._timeout:g} seconds and was stopped"
            ) from error

    def build_error(self, name: str, stderr: str) -> GitError:
        """Return the error that the stderr of a Git command describes.

        Args:
            name: The Git command, such as `push`.
            stderr: The output of git, from which `clean_output` removed credentials.
        """
        lines = [line.strip() for line in stderr.splitlines() if line.strip()]
        message = "; ".join([line for line in lines if line not in _GENERIC_STDERR_LINES] or lines)
        if f"not a git repository: '{self._folder}'" in stderr:
            return MirrorCorruptError(f"the mirror {self._folder} of {self._url.text} is damaged: {message}")
        return classify_failure(stderr)(f"git {name} of {self._url.text} failed: {message or 'no reason given'}")

    def clean_output(self, output: bytes) -> str:
        """Return the output of git as text without credentials. A long output is shortened to its end."""
        text = redact(output.decode(errors="replace"))
        return text if len(text) <= _MAX_STDERR_LENGTH else "…" + text[-_MAX_STDERR_LENGTH:]


def _get_command_name(arguments: Sequence[str]) -> str:
    """Return the name of the Git command. In `arguments`, the name follows the options `-c <setting>`."""
    pairs = zip(("", *arguments), arguments, strict=False)
    return next(argument for previous, argument in pairs if argument != "-c" and previous != "-c")


def _is_access_denied(result: GitResult) -> bool:
    # If the push printed output, the remote has accepted the credentials. An error message about denied access can then
    # come from a hook of the remote.
    return result.exit_code != 0 and not result.output and classify_failure(result.stderr) is AccessDeniedError


def _end_process(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None and not pipe.closed:
            _close(pipe)
    # Send SIGTERM first, because git then removes its lock files, both here and in a local remote.
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            _signal_all(process, number)
            _wait_for_exit(process)


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        return  # Ignore the error, because the process ended before it read all of its input.


def _signal_all(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return  # Ignore the error, because the process has already ended.


def _wait_for_exit(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return  # Return while the process is still running, so that the caller sends SIGKILL.


def _build_unset_command(environment: Mapping[str, str]) -> list[str]:
    # Start git through env(1) to remove inherited variables such as GIT_INDEX_FILE, because GitPython can only add
    # variables. This process has such variables if a Git hook started this process.
    kept_names = {*environment, *_MACHINE_VARIABLES}
    inherited = [name for name in os.environ if name.startswith("GIT_") and name not in kept_names]
    return ["env", *(f"--unset={name}" for name in inherited)] if inherited else []


def _build_environment(folder: Path, url: GitUrl, options: GitOptions) -> dict[str, str]:
    return {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(folder / REMOTE_CONFIG_FILE) if url.is_local else os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_OPTIONAL_LOCKS": "0",
        "HOME": str(folder),  # Do not use the user's home folder, because libcurl reads its .netrc file.
        "LC_ALL": "C",
        **({"GNUPGHOME": options.gnupg_home} if options.gnupg_home else {}),
    }


def _build_config_variables(settings: list[tuple[str, str]]) -> dict[str, str]:
    # Pass the settings in environment variables. Git does not write them to disk, and the Git process of a local remote
    # does not inherit them. The settings contain no secret.
    numbered = {f"GIT_CONFIG_KEY_{n}": key for n, (key, _) in enumerate(settings)}
    numbered |= {f"GIT_CONFIG_VALUE_{n}": value for n, (_, value) in enumerate(settings)}
    return numbered | {"GIT_CONFIG_COUNT": str(len(settings))}


def _build_settings(options: GitOptions) -> list[tuple[str, str]]:
    return [
        ("core.hooksPath", os.devnull),
        ("core.fsmonitor", "false"),
        ("core.logAllRefUpdates", "false"),
        ("gc.auto", "0"),
        ("gc.cruftPacks", "true"),
        ("maintenance.auto", "false"),
        ("protocol.version", "2"),
        # Do not let git check fetched objects, because an upstream commit with an invalid date must not block the
        # packages from this upstream. The object reader checks the objects that it reads. A host checks pushed objects.
        ("transfer.fsckObjects", "false"),
        # Do not follow redirects if there is an allow-list, because a redirect can lead to an address that is not
        # allowed.
        ("http.followRedirects", "false" if options.allowed_urls else "initial"),
        ("http.lowSpeedLimit", "1"),
        ("http.lowSpeedTime", str(max(1, int(options.timeout_seconds)))),
        ("credential.helper", ""),
    ]


def _build_ssh_command(options: GitOptions, ssh_options: Sequence[str]) -> str:
    arguments = ["ssh", "-F", os.devnull, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
    arguments += ["-o", f"ConnectTimeout={max(1, int(options.timeout_seconds))}"]
    return shlex.join([*arguments, *ssh_options])
