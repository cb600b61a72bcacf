"""Schemas in a folder, as kubeconform lays them out; nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.krm.identity import split_api_version
from reconciler.krm.isolation import ExpectedError
from reconciler.krm.names import segment_fault
from reconciler.krm.schema.api_removals import Release, read_release
from reconciler.krm.schema.installed import InstalledSchemas
from reconciler.krm.schema.validation import Violation, draft4_validator, violations_of
from reconciler.planning.conformance import Schemas

if TYPE_CHECKING:
    import jsonschema_rs

_MOST_BYTES = 32 * 2**20


class SchemasError(ExpectedError):
    """A folder of schemas, or a file in it, cannot be used; the text says why."""


def build_schemas(folder: str | None) -> Schemas:
    """Build the schemas by which resources are judged: those of a folder, if one is named, and those installed."""
    return FolderSchemas(Path(folder)) if folder else InstalledSchemas()


class FolderSchemas:
    """Schemas of a folder first, and those that are installed where it has none.

    `v<release>-standalone-strict/<kind>-<group>-<version>.json` holds Kubernetes' own kinds, also without `-strict`;
    `<group>/<kind>_<version>.json` those of custom ones, whatever the release.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SchemasError(f"{folder}: --schemas must name a folder")
        self._folder = folder
        self._installed = InstalledSchemas()
        self._releases = _releases(folder)
        self._validators: dict[Path, jsonschema_rs.Validator | None] = {}

    def violations(self, release: Release | None, data: Mapping[str, Any]) -> tuple[Violation, ...] | None:
        """Return what is wrong with a resource; None where neither the folder nor what is installed has its schema."""
        for path in self._paths(release, data):
            validator = self._validator(path)
            if validator:
                return violations_of(validator, data)
        return self._installed.violations(release, data)

    def is_whole(self, release: Release | None) -> bool:
        """Tell whether all kinds of a release are known: of a folder nobody knows whether it has all."""
        return self._installed.is_whole(release)

    def words(self, release: Release | None) -> str:
        """Return the release that is meant, as people say it."""
        return self._installed.words(release)

    def missing_reason(self, release: Release | None) -> str:
        """Return why a built-in kind has no schema, and what to do about it."""
        return f"{self._folder} has no schema of them, and {self._installed.missing_reason(release)}"

    def _paths(self, release: Release | None, data: Mapping[str, Any]) -> Iterator[Path]:
        group, version = split_api_version(str(data.get("apiVersion", "")))
        kind = str(data.get("kind", "")).lower()
        # names of resources are anybody's text, and must not lead elsewhere
        if any(segment_fault(one) for one in (kind, version, group or "core")):
            return
        first = group.partition(".")[0]
        name = f"{kind}-{first}-{version}.json" if group else f"{kind}-{version}.json"
        for folder in self._releases.get(release or max(self._releases, default=(0, 0)), ()):
            yield folder / name
        if group:
            yield self._folder / group / f"{kind}_{version}.json"

    def _validator(self, path: Path) -> jsonschema_rs.Validator | None:
        if path not in self._validators:
            self._validators[path] = _read(path) if path.is_file() else None
        return self._validators[path]


def _releases(folder: Path) -> Mapping[Release, list[Path]]:
    """Return the folders of each release, those that know no other fields first, then the newest."""
    found: dict[Release, list[Path]] = {}
    for one in sorted(folder.glob("v*-standalone*"), key=_newest_first):
        if release := read_release(one.name.partition("-")[0]):
            found.setdefault(release, []).append(one)
    return found


def _newest_first(folder: Path) -> tuple[bool, list[int], str]:
    version, _, rest = folder.name.partition("-")
    numbers = [-int(part) for part in version.removeprefix("v").split(".") if part.isdecimal()]
    return not rest.endswith("strict"), numbers, folder.name


def _read(path: Path) -> jsonschema_rs.Validator:
    if path.stat().st_size > _MOST_BYTES:
        raise SchemasError(f"{path}: a schema must not have more than {_MOST_BYTES} bytes")
    try:
        schema = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise SchemasError(f"{path}: a schema must be JSON: {error}") from error
    if not isinstance(schema, dict):
        raise SchemasError(f"{path}: a schema must be a JSON object")
    try:
        # these name a draft that nobody defines
        return draft4_validator({name: value for name, value in schema.items() if name != "$schema"})
    except ValueError as error:
        raise SchemasError(f"{path}: {error}") from error
