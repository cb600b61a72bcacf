"""Secrets on their way to a branch, where everybody who can read it can read them, for good (design 10.29)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from posixpath import basename
from typing import Any

from reconciler.caching import cached
from reconciler.krm.findings import Finding, Where, hardened
from reconciler.krm.identity import ObjectKey
from reconciler.krm.pointer import format_pointer
from reconciler.krm.secrets import is_secret
from reconciler.krm.yaml import Path
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import Package, PackageResource, resources_of
from reconciler.packages.parsing import Unparsable
from reconciler.packages.resource import Described
from reconciler.rules.codes import SECRET_IN_BRANCH
from reconciler.snapshot.files import FileTree

_VALUES = ("data", "stringData")
# the files of the packages in flight, of which nearly all hold no Secret
_REMEMBERED_FILES = 4096


@dataclass(frozen=True)
class _Item(Described):
    """An item of a List."""

    data: Any


def secret_findings(files: FileTree, *, block: bool) -> tuple[Finding, ...]:
    """Return a warning for every core Secret that holds values, an error with `block`; values are never told.

    Items of Lists count, too. Kptfiles, local config and files that nobody reads are passed over: a sealed or external
    secret is another kind, and a Secret whose values are empty is a place for some.
    """
    found = (finding for file in Package(files).contents() for finding in _found_in(*file))
    return tuple(map(hardened, found)) if block else tuple(found)


@cached(_REMEMBERED_FILES)
def _found_in(package: str, path: str, content: bytes) -> tuple[Finding, ...]:
    resources = resources_of(package, path, content)
    if isinstance(resources, Unparsable) or basename(path) == KPTFILE:
        return ()
    return tuple(finding for one in resources for finding in _found(one, (), one))


def _found(resource: PackageResource, path: Path, item: Described) -> Iterator[Finding]:
    if item.is_local_config:
        return
    data = item.data
    items = data.get("items") if isinstance(data, Mapping) and item.kind.endswith("List") else None
    for index, one in enumerate(items if isinstance(items, list) else ()):
        yield from _found(resource, (*path, "items", index), _Item(one))
    fields = [field for field in _VALUES if is_secret(data) and _holds_values(data.get(field))]
    if fields:
        at = (*path, fields[0])
        message = f"{' and '.join(fields)} must have no values on a branch, which keeps them for all who can read it"
        yield SECRET_IN_BRANCH.finding(message, _where(resource, item.key, at))


def _holds_values(field: object) -> bool:
    values = field.values() if isinstance(field, Mapping) else [field]
    return any(value is not None and str(value).strip() for value in values)


def _where(resource: PackageResource, key: ObjectKey, path: Path) -> Where:
    # JSON is read as data alone, without its lines
    line = 0 if resource.file.endswith(".json") else resource.document.line_of(path)
    return Where(resource.file, line, str(key), format_pointer(path))
