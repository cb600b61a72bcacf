"""JSON Schemas of Kubernetes kinds in a folder with the file structure of kubeconform. Nothing is downloaded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.krm.internal_errors import ExpectedError
from reconciler.krm.names import validate_name_segment
from reconciler.krm.objects import split_api_version
from reconciler.krm.schema.kubernetes_apis import KubernetesRelease, parse_kubernetes_release
from reconciler.krm.schema.validation import InstalledSchemas, Violation, create_draft4_validator, find_violations
from reconciler.planning.attribution.validation import SchemaSource

if TYPE_CHECKING:
    import jsonschema_rs

_MAX_BYTES = 32 * 2**20


class SchemasError(ExpectedError):
    """The folder of schemas, or a file in this folder, cannot be used. The message contains the reason."""


def build_schemas(folder: str | None) -> SchemaSource:
    """Return the schemas in `folder` together with the installed schemas.

    If `folder` is None, return only the installed schemas.
    """
    return FolderSchemas(Path(folder)) if folder else InstalledSchemas()


class FolderSchemas:
    """The schemas in a folder. Kinds that have no schema in the folder use the installed schemas.

    The folder `v<release>-standalone-strict` or `v<release>-standalone` contains the built-in kinds of a release as
    `<kind>-<group>-<version>.json`. Custom kinds are in `<group>/<kind>_<version>.json`, for all releases.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SchemasError(f"{folder} is not a folder; --schemas must name a folder")
        self._folder = folder
        self._installed = InstalledSchemas()
        self._releases = _list_releases(folder)
        self._validators: dict[Path, jsonschema_rs.Validator | None] = {}

    def find_violations(
        self, release: KubernetesRelease | None, data: Mapping[str, Any]
    ) -> tuple[Violation, ...] | None:
        """Return the schema violations of a resource. Return None if its kind has no schema."""
        for path in self._list_paths(release, data):
            validator = self._get_validator(path)
            if validator:
                return find_violations(validator, data)
        return self._installed.find_violations(release, data)

    def is_complete(self, release: KubernetesRelease | None) -> bool:
        """Return whether all built-in kinds of a release have an installed schema.

        Schemas in the folder are ignored.
        """
        return self._installed.is_complete(release)

    def describe_release(self, release: KubernetesRelease | None) -> str:
        """Return the name of the Kubernetes release whose installed schemas are used."""
        return self._installed.describe_release(release)

    def explain_missing_schema(self, release: KubernetesRelease | None) -> str:
        """Return a message with the reason why a built-in kind has no schema, and with the next step for the user."""
        return (
            f"{self._folder} contains no schema of these kinds, and {self._installed.explain_missing_schema(release)}"
        )

    def _list_paths(self, release: KubernetesRelease | None, data: Mapping[str, Any]) -> Iterator[Path]:
        group, version = split_api_version(str(data.get("apiVersion", "")))
        kind = str(data.get("kind", "")).lower()
        # Check the names, because they come from the resource and could refer to a path outside of the folder.
        if any(validate_name_segment(name) for name in (kind, version, group or "core")):
            return
        first = group.partition(".")[0]
        name = f"{kind}-{first}-{version}.json" if group else f"{kind}-{version}.json"
        for folder in self._releases.get(release or max(self._releases, default=(0, 0)), ()):
            yield folder / name
        if group:
            yield self._folder / group / f"{kind}_{version}.json"

    def _get_validator(self, path: Path) -> jsonschema_rs.Validator | None:
        if path not in self._validators:
            self._validators[path] = _read(path) if path.is_file() else None
        return self._validators[path]


def _list_releases(folder: Path) -> Mapping[KubernetesRelease, list[Path]]:
    """Return the schema folders of each release.

    Strict schemas precede others, and new patch versions precede old ones.
    """
    folders: dict[KubernetesRelease, list[Path]] = {}
    for subfolder in sorted(folder.glob("v*-standalone*"), key=_build_sort_key):
        if release := parse_kubernetes_release(subfolder.name.partition("-")[0]):
            folders.setdefault(release, []).append(subfolder)
    return folders


def _build_sort_key(folder: Path) -> tuple[bool, list[int], str]:
    version, _, suffix = folder.name.partition("-")
    numbers = [-int(part) for part in version.removeprefix("v").split(".") if part.isdecimal()]
    return not suffix.endswith("strict"), numbers, folder.name


def _read(path: Path) -> jsonschema_rs.Validator:
    if path.stat().st_size > _MAX_BYTES:
        raise SchemasError(f"{path}: a schema must not be larger than {_MAX_BYTES} bytes")
    try:
        schema = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise SchemasError(f"{path}: a schema must be JSON: {error}") from error
    if not isinstance(schema, dict):
        raise SchemasError(f"{path}: a schema must be a JSON object")
    try:
        # Remove "$schema", because its value in these files does not name a draft of JSON Schema.
        return create_draft4_validator({name: value for name, value in schema.items() if name != "$schema"})
    except ValueError as error:
        raise SchemasError(f"{path}: {error}") from error
