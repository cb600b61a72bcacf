"""Reading the fields of an answer: what is not as the forge documents it is an error that names the field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from reconciler.forge.errors import ForgeAnswerError
from reconciler.snapshot.objects import CommitId

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


class Fields:
    """An object of an answer; `call` is what was asked. A path is names in a row: `("head", "sha")`.

    Every reader but `find` raises ForgeAnswerError for a value of another kind, and without a default also for null
    and for nothing.
    """

    def __init__(self, value: object, call: str) -> None:
        self._value = value
        self._call = call
        if not isinstance(value, Mapping):
            raise ForgeAnswerError(f"{call}: the answer must be an object, not {_kind(value)}")

    def find(self, *path: str) -> object:
        """Return what is at a path; None for null, and where there is nothing."""
        value: object = self._value
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def text(self, *path: str, default: str | None = None) -> str:
        """Return the text at a path."""
        value = self._present(path, default)
        if not isinstance(value, str):
            raise self._error(path, "text", value)
        return value

    def number(self, *path: str) -> int:
        """Return the whole number at a path."""
        value = self.find(*path)
        # True is an int, too
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._error(path, "a number", value)
        return value

    def truth(self, *path: str, default: bool | None = None) -> bool:
        """Return the truth value at a path."""
        value = self._present(path, default)
        if not isinstance(value, bool):
            raise self._error(path, "true or false", value)
        return value

    def names(self, *path: str, part: str = "") -> tuple[str, ...]:
        """Return the sorted texts of a list at a path, or of the field `part` of its objects; () for no list."""
        listed = self.find(*path)
        if listed is None:
            return ()
        if not isinstance(listed, list):
            raise self._error(path, "a list", listed)
        found = [one.get(part) if part and isinstance(one, Mapping) else one for one in listed]
        if not all(isinstance(one, str) for one in found):
            raise self._error(path, "a list of texts", listed)
        return tuple(sorted(map(str, found)))

    def commit(self, *path: str) -> CommitId:
        """Return the commit id at a path."""
        text = self.text(*path)
        if not _COMMIT.fullmatch(text):
            raise self._error(path, "a commit", text)
        return CommitId(text)

    def moment(self, *path: str) -> int:
        """Return the moment at a path, written as RFC 3339, in seconds since 1970."""
        text = self.text(*path)
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            raise self._error(path, "a moment", text) from None
        # without its zone it would be read as a moment of this machine's
        if when.tzinfo is None:
            raise self._error(path, "a moment with its time zone", text)
        return int(when.timestamp())

    def _present(self, path: tuple[str, ...], default: str | bool | None) -> object:
        value = self.find(*path)
        return default if value is None else value

    def _error(self, path: tuple[str, ...], wanted: str, value: object) -> ForgeAnswerError:
        said = repr(value[:40]) if isinstance(value, str) else _kind(value)
        return ForgeAnswerError(f"{self._call}: {'.'.join(path)} must be {wanted}, not {said}")


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
