"""Exit statuses, and the one exception that says that a command could not run (design 10.25)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from reconciler.gitio.errors import GitError
from reconciler.krm.findings import Finding, Severity
from reconciler.settings import SettingsError
from reconciler.wiring import NoStatusPlaceError

FINE = 0
ERROR_FINDING = 1
DIFFERENCES = 2
CANNOT_RUN = 3
OUR_BUG = 70


class CannotRunError(Exception):
    """The command could not do its work: usage, settings, an unreadable config. The text is for people."""


@contextmanager
def told_plainly() -> Iterator[None]:
    """Turn what stops a whole command into its one sentence."""
    try:
        yield
    except (SettingsError, NoStatusPlaceError) as error:
        raise CannotRunError(str(error)) from error
    except GitError as error:
        raise CannotRunError(f"{error.message} (next step: {error.next_step})") from error


def status_of(findings: Iterable[Finding]) -> int:
    """Return 1 when there is an error finding, else 0."""
    return ERROR_FINDING if any(finding.severity is Severity.ERROR for finding in findings) else FINE
