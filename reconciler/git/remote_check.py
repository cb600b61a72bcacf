"""Check of one remote: whether it can be read, whether pushes are allowed, and which push features the host supports.

The check changes nothing on the remote, because its push is a dry run.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from pathlib import Path

from reconciler.git.command import GitCommand
from reconciler.git.errors import GitError
from reconciler.git.options import GitOptions
from reconciler.git.push import ATOMIC_UNSUPPORTED, OPTIONS_UNSUPPORTED
from reconciler.git.url import GitUrl
from reconciler.lazy_dataclasses import dataclass

PROBE_REF = "refs/reconciler/probe"
_PROBE_OPTION = "reconciler.probe"
_DATE_HEADER = re.compile(r"Recv header: date: ([^\r\n]+)", re.IGNORECASE)


@dataclass(frozen=True)
class RemoteCheck:
    """The result of the check of one remote. A value of None means that the check could not determine the value.

    Attributes:
        clock_difference: The clock of the host minus the local clock, in seconds. Only HTTP remotes report their clock.
    """

    read_error: GitError | None = None
    clock_difference: float | None = None
    write_error: GitError | None = None
    can_push_atomically: bool | None = None
    can_use_push_options: bool | None = None


def check_remote(
    folder: Path, url: GitUrl, options: GitOptions, write_commit: Callable[[], str] | None, clock: Callable[[], float]
) -> RemoteCheck:
    """Check a remote with the credentials of the settings.

    Args:
        folder: The folder of the mirror.
        write_commit: Writes the commit for the dry run of a push, and returns its ID. None means that pushes are not
            checked.
        clock: Returns seconds since 1970.
    """
    read_error, clock_difference = _check_read(folder, url, options, clock)
    if write_commit is None:
        return RemoteCheck(read_error, clock_difference)
    try:
        is_atomic, has_options = _check_push(GitCommand(folder, url, options), write_commit())
    except GitError as error:
        return RemoteCheck(read_error, clock_difference, error)
    return RemoteCheck(read_error, clock_difference, None, is_atomic, has_options)


def _check_read(
    folder: Path, url: GitUrl, options: GitOptions, clock: Callable[[], float]
) -> tuple[GitError | None, float | None]:
    error: GitError | None = None
    with tempfile.TemporaryDirectory() as temporary:
        trace = Path(temporary) / "trace"
        # Read the header `Date` of the host from the trace of git, which contains no credentials. A separate HTTP
        # client would need the credentials, and git's settings for certificates and proxies.
        variables = {"GIT_TRACE_CURL": str(trace), "GIT_TRACE_CURL_NO_DATA": "1", "GIT_TRACE_REDACT": "1"}
        try:
            GitCommand(folder, url, options, variables).run("ls-remote", "--quiet", "origin", "HEAD")
        except GitError as read_error:
            error = read_error
        now = clock()
        dates = _DATE_HEADER.findall(trace.read_text(errors="replace")) if trace.exists() else []
    try:
        return error, parsedate_to_datetime(dates[-1]).timestamp() - now if dates else None
    except ValueError:
        return error, None


def _check_push(command: GitCommand, commit: str) -> tuple[bool, bool]:
    """Return whether the host supports atomic pushes and push options. Raises GitError if the host refuses the push."""
    is_atomic, has_options = True, True
    while True:
        result = command.run(
            "push", "--dry-run", "--porcelain", "--no-verify", "--no-progress", "--no-signed",
            "--recurse-submodules=no", *(["--atomic"] if is_atomic else []),
            *([f"--push-option={_PROBE_OPTION}"] if has_options else []), "origin", f"{commit}:{PROBE_REF}",
            accepted_exit_codes=(0, 1, 128, 255),
        )  # fmt: skip
        if result.exit_code == 0:
            return is_atomic, has_options
        if is_atomic and ATOMIC_UNSUPPORTED in result.stderr:
            is_atomic = False
        elif has_options and OPTIONS_UNSUPPORTED in result.stderr:
            has_options = False
        else:
            raise command.build_error("push", result.stderr)
