"""How a command ends: what stops it in one sentence, and what its findings are worth as an exit status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from reconciler.cli.exits import ERROR_FINDING, FINE, CannotRunError
from reconciler.gitio.errors import GitError
from reconciler.krm.findings import Finding, Severity
from reconciler.settings import SettingsError
from reconciler.wiring import NoStatusPlaceError, SchemasError


@contextmanager
def told_plainly() -> Iterator[None]:
    """Turn what stops a whole command into its one sentence."""
    try:
        yield
    except (SettingsError, NoStatusPlaceError, SchemasError) as error:
        raise CannotRunError(str(error)) from error
    except GitError as error:
        raise CannotRunError(error.told) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        # a full disk, a folder that may not be written: the world's fault, not ours
        raise CannotRunError(f"{error.filename or 'a file'}: {error.strerror or error}") from error


def status_of(findings: Iterable[Finding]) -> int:
    """Return 1 when there is an error finding, else 0."""
    return ERROR_FINDING if any(finding.severity is Severity.ERROR for finding in findings) else FINE
