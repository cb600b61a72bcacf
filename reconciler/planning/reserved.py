"""Reserved branch names: the branches that the reconciler writes itself, which no destination may use as its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.krm.identity import ObjectKey
from reconciler.planning.destination import Destination, draft_branch, folders_above

# `proposed/` marks drafts under review; below `reconciler/` are states, kept heads and the status
_FOLDERS = {"proposed": "proposed drafts", "reconciler": "states and status"}
_PLACEHOLDERS = {"{repository}": "[^/]+", "{branch}": ".+", "{package}": "[^/]+"}


@dataclass(frozen=True)
class ReservedBranches:
    """The branches that the settings name for the reconciler itself.

    `templates` are by setting, such as `drafts.branch`; `names` are whole branch names, by setting as well.
    """

    templates: Mapping[str, str]
    names: Mapping[str, str]

    def uses(self, destinations: Iterable[Destination]) -> Mapping[ObjectKey, str]:
        """Return what the branch of a destination is reserved for, by destination; usable branches are left out."""
        known = tuple(destinations)
        drafts = self._draft_names(known)
        return {
            one.key: use
            for one in known
            if (use := self._use_of(one.branch) or _use_by_others(one, drafts.get(one.repository_id, {})))
        }

    def _use_of(self, branch: str) -> str:
        """Return what a branch is reserved for, "" if anybody may use it."""
        # hosts on file systems that ignore case keep both names in one file
        folded = branch.casefold()
        for folder, use in _FOLDERS.items():
            if folded == folder or folded.startswith(f"{folder}/"):
                return f"branches below {folder}/ hold {use}"
        for setting, name in self.names.items():
            if _are_nested(folded, name.casefold()):
                return f"{setting} is {name}"
        for setting, template in self.templates.items():
            if _is_of_template(folded, template.casefold()):
                return f"{setting} is {template}"
        return "every repository has a HEAD of its own" if branch == "HEAD" else ""

    def _draft_names(self, destinations: Iterable[Destination]) -> Mapping[str, Mapping[str, str]]:
        """Return the draft branches of destinations by URL and name; those of single packages are not known here."""
        found: dict[str, dict[str, str]] = {}
        for one in destinations:
            for setting, template in self.templates.items():
                if "{package}" not in template:
                    name = draft_branch(template, one, "")
                    found.setdefault(one.repository_id, {}).setdefault(
                        name, f"it is the branch that {setting} gives {one.title}"
                    )
        return found


def _is_of_template(branch: str, template: str) -> bool:
    """Return whether a template may make a branch of this name, or one that is nested with it.

    A template that starts with a placeholder may make almost any name, so that only its actual names are reserved.
    """
    start = template.partition("{")[0]
    if not start:
        return False
    parts = re.split(r"(\{[a-z]+\})", template)
    pattern = "".join(_PLACEHOLDERS.get(part, re.escape(part)) for part in parts)
    return bool(re.fullmatch(f"{pattern}(/.*)?", branch)) or start.startswith(f"{branch}/")


def _use_by_others(one: Destination, drafts: Mapping[str, str]) -> str:
    names = [one.branch, *folders_above(one.branch)]
    return next((drafts[name] for name in names if name in drafts), "")


def _are_nested(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
