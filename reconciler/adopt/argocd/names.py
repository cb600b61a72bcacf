"""Names of the sources of a package, and of the folders for copied values files."""

from __future__ import annotations

import posixpath
import re

from reconciler.adopt.revisions import GitRevision
from reconciler.api.helm_options import CONFIG_SOURCE
from reconciler.krm.names import MAX_LABEL_CHARACTERS

_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")
_MAX_CHARACTERS = MAX_LABEL_CHARACTERS - len("-100")


class ValuesFolders:
    """Chooses the config folders for copied values files. Each revision of a repository has a separate folder."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    def get(self, url: str, revision: GitRevision) -> str:
        """Return the config folder to which the values files of a repository at a revision are copied."""
        key = (url, revision.ref)
        if key not in self._names:
            base = posixpath.basename(url.rstrip("/")).removesuffix(".git")
            used = {*self._names.values()}
            self._names[key] = choose_source_name(base, used, choose_source_name(f"{base}-{revision.name}", set()))
        return f"values/{self._names[key]}"


def choose_source_name(text: str, used: set[str], alternative: str = "") -> str:
    """Return an unused DNS label for a text, and add it to the used names.

    Args:
        alternative: The name to use if the label for the text is already used. If the alternative is also used, a
            number is added to the label.
    """
    base = _NOT_IN_NAME.sub("-", text.lower()).strip("-")[:_MAX_CHARACTERS].strip("-") or "source"
    taken = {*used, CONFIG_SOURCE}
    candidates = (base, *((alternative,) if alternative else ()), *(f"{base}-{n}" for n in range(2, len(taken) + 3)))
    name: str = next(candidate for candidate in candidates if candidate not in taken)
    used.add(name)
    return name
