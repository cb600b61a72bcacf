"""Evidence of deletions: which objects that state records are missing in the config without having been deleted.

State records for each package the config files that it comes from. An object that is missing counts as deleted where
its file is gone, or is valid and does not contain it. Everything else is a doubt: an error finding. While a config has
doubts, nothing is removed anywhere (`Catalog.is_whole`).
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.planning.codes import CONFIG_DIRECTORY_HIDES, FILE_INCONCLUSIVE
from reconciler.planning.state import DestinationState
from reconciler.rules.guards import is_too_much
from reconciler.rules.variant import ConfigSources, object_of
from reconciler.snapshot.catalog import Catalog, is_config_path
from reconciler.snapshot.evidence import Inconclusive, find_inconclusive
from reconciler.snapshot.files import FileTree

REGULAR = "file"
_LISTED = 5

Entries = Callable[[Collection[str]], Mapping[str, str]]
"""Returns what is at paths of the config repository: `file`, words for anything else, and nothing for absent paths."""


@dataclass(frozen=True)
class ConfigFiles:
    """The files of a config: `files` are those of the folder `directory`, by path in it.

    `entries` looks at any path of the repository, and so at links, submodules and files outside of `directory`.
    """

    files: FileTree
    directory: str
    entries: Entries

    @cached_property
    def in_other_case(self) -> tuple[str, ...]:
        """The files that are not read only because their extension is not in lower case."""
        return tuple(one for one in self.files if is_config_path(one.lower()) and not is_config_path(one))

    def inside(self, path: str) -> str | None:
        """Return a path of the repository as a path in `directory`; None for one outside of it."""
        if not self.directory:
            return path
        start = f"{self.directory}/"
        return path.removeprefix(start) if path.startswith(start) else None


def find_doubts(
    states: Iterable[DestinationState], config: ConfigFiles, catalog: Catalog, max_percent: int
) -> tuple[Finding, ...]:
    """Return an error for each recorded file that does not prove the deletion of the objects it had.

    Files outside of `config.directory` count as hidden by that setting: one error where it hides more than
    `max_percent` of the recorded objects.
    """
    recorded = _recorded(states)
    missing = {path: gone for path, keys in recorded.items() if (gone := {one for one in keys if not catalog.has(one)})}
    if not missing:
        return ()
    kinds = config.entries(sorted(missing))
    hidden = {path: keys for path, keys in missing.items() if config.inside(path) is None and path in kinds}
    found = [_doubt(path, keys, kinds.get(path, ""), config, catalog) for path, keys in sorted(missing.items())]
    total = len({key for keys in recorded.values() for key in keys})
    return (*(one for one in found if one), *_hidden(hidden, total, config.directory, max_percent))


def _recorded(states: Iterable[DestinationState]) -> dict[str, set[ObjectKey]]:
    # most packages of a fleet come from few files, whose mappings are one object
    distinct: dict[int, ConfigSources] = {id(one): one for state in states for one in state.sources}
    found: dict[str, set[ObjectKey]] = {}
    for sources in distinct.values():
        for path, ids in sources.items():
            found.setdefault(path, set()).update(map(object_of, ids))
    return found


def _doubt(
    path: str, missing: Collection[ObjectKey], kind: str, config: ConfigFiles, catalog: Catalog
) -> Finding | None:
    inside = config.inside(path)
    if inside is None:
        return None
    if (why := _inconclusive(inside, missing, kind, config, catalog)) is None:
        return None
    listed = _listed(map(str, missing))
    message = (
        f"{inside}:{why.line}: {why.reason}. The file defined {listed} before, and does not prove that they were"
        " deleted: nothing is removed. Restore the objects; or, to remove what they stand for, delete the file"
    )
    return FILE_INCONCLUSIVE.finding(message, Where(inside, why.line))


def _inconclusive(
    path: str, missing: Collection[ObjectKey], kind: str, config: ConfigFiles, catalog: Catalog
) -> Inconclusive | None:
    if path in config.files:
        if (documents := catalog.documents(path)) is not None:
            return find_inconclusive(documents, missing)
        # what cannot be parsed has an error of its own
        is_unreadable = any(one.file == path for one in catalog.unreadable)
        return None if is_unreadable else Inconclusive(1, "a .krmignore hides it, so that it is not read")
    if kind not in ("", REGULAR):
        return Inconclusive(1, f"it is {kind}, and not a regular file")
    if other := _with_unread_extension(path, config):
        reason = f"it was renamed to {other}, which is not read: extensions must be in lower case"
        return Inconclusive(1, reason)
    return None


def _with_unread_extension(path: str, config: ConfigFiles) -> str | None:
    """Return a file that has the name of a deleted one with an extension in another case, such as `.YAML`."""
    return next((one for one in config.in_other_case if _stem(one) == _stem(path)), None)


def _stem(path: str) -> str:
    return posixpath.splitext(path.lower())[0]


def _hidden(
    hidden: Mapping[str, Collection[ObjectKey]], total: int, directory: str, max_percent: int
) -> Iterator[Finding]:
    count = len({key for keys in hidden.values() for key in keys})
    if count and is_too_much(count, total, max_percent):
        yield CONFIG_DIRECTORY_HIDES.finding(
            f'config.directory "{directory}" leaves out {count} of {total} objects that packages were made of'
            f" ({_listed(sorted(hidden))}), more than guards.max_delete_percent ({max_percent} %): nothing is removed."
            " Correct config.directory; or, to remove their packages, delete the files"
        )


def _listed(names: Iterable[str]) -> str:
    known = sorted(names)
    return f"{', '.join(known[:_LISTED])}{', …' if len(known) > _LISTED else ''}"
