"""Exit statuses, and the one exception that says that a command could not run (design 10.25).

Imported by every command line, `--help` included: nothing heavy may be imported here.
"""

from __future__ import annotations

FINE = 0
ERROR_FINDING = 1
DIFFERENCES = 2
CANNOT_RUN = 3
OUR_BUG = 70


class CannotRunError(Exception):
    """The command could not do its work: usage, settings, an unreadable config. The text is for people."""
