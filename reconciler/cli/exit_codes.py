"""The exit status codes, and the exception for a command that cannot run.

Every call of the program imports this module, even `--help`. Therefore the module must not import slow modules.
"""

from __future__ import annotations

SUCCESS = 0
ERROR_FINDING = 1
DIFFERENCES = 2
CANNOT_RUN = 3
INTERNAL_BUG = 70


class CannotRunError(Exception):
    """The command cannot run, for example because of invalid settings or an unreadable config."""
