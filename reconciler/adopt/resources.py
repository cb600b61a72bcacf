"""The resources of a unit (one package on one cluster): reading, identity, and removal of plaintext Secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from reconciler.adopt.units import NotImported, Unit
from reconciler.catalog.files import FileTree
from reconciler.krm.numbers import format_count
from reconciler.krm.objects import split_api_version
from reconciler.krm.yaml import Document, YamlFile
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.package import KUSTOMIZATION_FILES
from reconciler.packages.parsing import ParseFailure, parse_cached
from reconciler.packages.resource import LOCAL_CONFIG
from reconciler.packages.sops import is_sops_document
from reconciler.packages.source_kinds import CHART_FILE
from reconciler.redaction import SECRET_VALUE_FIELDS, is_secret

YAML_SUFFIXES = (".yaml", ".yml", ".json")
_MARKERS = {
    CHART_FILE: (
        "is a Helm chart",
        "Render it with helm template, and adopt the output.",
    ),
    **dict.fromkeys(
        KUSTOMIZATION_FILES, ("is a Kustomize overlay", "Build it with kubectl kustomize, and adopt the output.")
    ),
    "Kptfile": ("is a kpt package", "Write a PackageVariant with the upstream that its Kptfile names."),
}


class ResourceId(NamedTuple):
    """The identity of a resource."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


@dataclass(frozen=True)
class Resource:
    """A resource with its file."""

    id: ResourceId
    path: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class UnitContent:
    """The resources of a unit (one package on one cluster), and the other documents in its files.

    Attributes:
        others: Lists, and documents without a name. Each entry contains the file and the data of the document.
    """

    resources: Mapping[ResourceId, Resource]
    others: tuple[tuple[str, Any], ...]


def read_id(data: Any) -> ResourceId | None:
    """Return the identity of a document. Return None for a list, and for a document without a name."""
    if not isinstance(data, Mapping) or not isinstance(metadata := data.get("metadata"), Mapping):
        return None
    api_version, kind, name = data.get("apiVersion"), data.get("kind"), metadata.get("name")
    if not (isinstance(api_version, str) and isinstance(kind, str) and isinstance(name, str)):
        return None
    group = split_api_version(api_version)[0]
    if get_list_items(data) is not None:
        return None
    return ResourceId(group, kind, str(metadata.get("namespace") or ""), name)


def get_list_items(data: Any) -> list[Any] | None:
    """Return the items of a list of resources, such as a List of kubectl. Return None for any other document."""
    if not isinstance(data, Mapping) or not str(data.get("kind", "")).endswith("List"):
        return None
    items = data.get("items")
    return items if isinstance(items, list) else None


def is_local_config(data: Mapping[str, Any]) -> bool:
    """Return whether a resource is only for tools, and is never applied to a cluster."""
    metadata = data.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return isinstance(annotations, Mapping) and str(annotations.get(LOCAL_CONFIG, "")).lower() == "true"


def read_content(files: FileTree) -> UnitContent | NotImported:
    """Return the resources of a package. Return the reason if a file cannot be parsed or a resource occurs twice."""
    resources: dict[ResourceId, Resource] = {}
    others: list[tuple[str, Any]] = []
    for path, parsed in _iterate_files(files):
        if isinstance(parsed, ParseFailure):
            return NotImported(path, f"the file cannot be parsed: {parsed.message}", "Correct the file.", parsed.line)
        for document in parsed.documents:
            identity = read_id(document.data)
            if identity is None:
                if document.data is not None:
                    others.append((path, document.data_without_aliases))
                continue
            if identity in resources:
                reason = f"the resource {identity} is also in {resources[identity].path}"
                return NotImported(path, reason, "Delete one of them.", document.line)
            resources[identity] = Resource(identity, path, document.data_without_aliases)
    return UnitContent(resources, tuple(others))


def _iterate_files(files: FileTree) -> Iterator[tuple[str, YamlFile | ParseFailure]]:
    for path, file in files.items():
        if path.endswith(YAML_SUFFIXES):
            yield path, parse_cached(file.data)


def find_marker(unit: Unit) -> NotImported | None:
    """Return the reason if the folder of a unit contains a chart, an overlay or a kpt package.

    Return None if the folder contains only plain manifests.
    """
    for path in unit.files:
        name = path.rpartition("/")[2]
        if name in _MARKERS:
            what, suggestion = _MARKERS[name]
            folder = f"{unit.folder}/{path}".rpartition("/")[0]
            return NotImported(f"{unit.folder}/{path}", f"the folder {folder} {what}", suggestion)
    return None


def is_plaintext_secret(data: Any) -> bool:
    """Return whether a document is a Secret with values that are not encrypted with SOPS."""
    if not is_secret(data) or is_sops_document(data):
        return False
    values = (data.get(name) for name in SECRET_VALUE_FIELDS)
    return any(value for field in values if isinstance(field, Mapping) for value in field.values())


def remove_secrets(unit: Unit) -> tuple[Unit, tuple[NotImported, ...]]:
    """Return a unit (one package on one cluster) without its plaintext Secrets, and a `NotImported` entry for each.

    The entries contain no values of Secrets.
    """
    changed = dict(unit.files)
    found: list[NotImported] = []
    for path, parsed in _iterate_files(unit.files):
        if isinstance(parsed, ParseFailure):
            continue
        secrets = [index for index, document in enumerate(parsed.documents) if is_plaintext_secret(document.data)]
        found += (_create_secret_entry(f"{unit.folder}/{path}", parsed.documents[index]) for index in secrets)
        if len(secrets) == len(parsed.documents) and secrets:
            del changed[path]
        elif secrets:
            rest = parsed
            for index in reversed(secrets):
                rest = rest.remove(index)
            changed[path] = replace(changed[path], data=rest.to_bytes())
    if not found:
        return unit, ()
    reason = f"contains {format_count(len(found), 'plaintext Secret')}, which the import does not copy"
    return replace(unit, files=FileTree(changed), unverified_reason=reason), tuple(found)


def _create_secret_entry(path: str, document: Document) -> NotImported:
    return NotImported(
        path,
        f"{read_id(document.data) or 'a Secret'} contains plaintext values, and the import does not copy such values",
        "Encrypt it with SOPS, or replace it by an ExternalSecret or a SealedSecret.",
        document.line,
        "data",
    )
