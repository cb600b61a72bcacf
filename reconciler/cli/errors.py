"""Conversion of exceptions to CannotRunError, and computation of the exit status from findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from reconciler import settings
from reconciler.bootstrap import publishers, schema_folder
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS, CannotRunError
from reconciler.git.errors import GitError
from reconciler.krm.findings import Finding, Severity


@contextmanager
def report_errors() -> Iterator[None]:
    """Convert expected exceptions of the block, such as a GitError, to CannotRunError.

    Raises:
        CannotRunError: The settings, a repository or a file cannot be used.
    """
    try:
        yield
    except (settings.SettingsError, publishers.NoStatusRepositoryError, schema_folder.SchemasError) as error:
        raise CannotRunError(str(error)) from error
    except GitError as error:
        raise CannotRunError(error.full_message) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        # Report an OSError without a traceback, because a full disk or a read-only folder is not a bug in the
        # reconciler.
        raise CannotRunError(f"{error.filename or 'a file'}: {error.strerror or error}") from error


def exit_status_of(findings: Iterable[Finding]) -> int:
    """Return 1 if one of the findings is an error. Otherwise return 0."""
    return ERROR_FINDING if any(finding.severity is Severity.ERROR for finding in findings) else SUCCESS
