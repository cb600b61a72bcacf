"""Evidence of deletion: check whether a file proves the deletion of objects that it defined in an earlier pass.

This module checks the content of one file. `planning/decide/deletion_safety.py` selects the files and derives the
effect on packages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from reconciler.catalog.known_kinds import KNOWN_KINDS, suggest_kind
from reconciler.catalog.manifests import LOCAL_CONFIG_ANNOTATION, Manifest, list_manifests
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import Document
from reconciler.lazy_dataclasses import dataclass

_LFS_POINTER = "version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class InconclusiveFile:
    """The reason why a config file does not prove the deletion of an object, and the line with the cause."""

    line: int
    reason: str


def find_inconclusive_file(documents: Sequence[Document], missing: Collection[ObjectKey]) -> InconclusiveFile | None:
    """Return the reason why a file does not prove that the missing objects were deleted.

    Return None if the file proves their deletion. The file proves it if:

    - the file has at least one manifest,
    - each manifest has `apiVersion`, `kind` and `metadata.name`,
    - no manifest looks like a missing object with a misspelled kind or group.

    Args:
        documents: The YAML documents of the file. Empty documents are omitted.
        missing: The objects that the file defined in an earlier pass and that the config does not contain now.
    """
    manifests = [(document, manifest) for document in documents for manifest in list_manifests(document.data)]
    if not manifests:
        return InconclusiveFile(documents[0].line if documents else 1, "the file contains no Kubernetes object")
    results = (_check_manifest(document, manifest, missing) for document, manifest in manifests)
    return next(filter(None, results), None)


def _check_manifest(document: Document, manifest: Manifest, missing: Collection[ObjectKey]) -> InconclusiveFile | None:
    line = document.find_line(manifest.path)
    if not isinstance(manifest.data, dict):
        return InconclusiveFile(line, _describe_content(manifest.data))
    for reason in _check_fields(manifest):
        return InconclusiveFile(line, reason)
    if manifest.is_local_config and manifest.key in missing:
        return InconclusiveFile(line, f"{manifest.key} is ignored because of its annotation {LOCAL_CONFIG_ANNOTATION}")
    return _check_spelling(document, manifest, missing)


def _check_spelling(document: Document, manifest: Manifest, missing: Collection[ObjectKey]) -> InconclusiveFile | None:
    """Return a reason if a manifest has the name of a missing object, and its kind may be a misspelling.

    Without this check, a typing error in `kind` or `apiVersion` would delete all packages of the missing object.
    """
    key = manifest.key
    if key is None or key.kind in KNOWN_KINDS.get(key.group, ()):
        return None
    suggestion = suggest_kind(key.kind, key.group if key.group in KNOWN_KINDS else "")
    for missing_key in sorted(missing, key=str):
        is_same_kind = key.kind == missing_key.kind and key.group != missing_key.group
        may_be_meant = suggestion == f"{missing_key.kind} of {missing_key.group}" or (
            is_same_kind and key.group in KNOWN_KINDS
        )
        if may_be_meant and key.name == missing_key.name:
            line = document.find_line((*manifest.path, "kind" if key.kind != missing_key.kind else "apiVersion"))
            group = key.group or "the core group"
            reason = (
                f'kind "{key.kind}" of {group} is unknown, and may be a misspelling of {missing_key.kind} of '
                f"{missing_key.group}"
            )
            return InconclusiveFile(line, reason if is_same_kind else f'{reason}; did you mean "{missing_key.kind}"?')
    return None


def _describe_content(data: Any) -> str:
    if isinstance(data, list):
        return "the file contains a list at the top level; use the kind List for a list of objects"
    text = str(data)
    if text.startswith(_LFS_POINTER):
        return "the file is a Git LFS pointer; the content of the file was not fetched"
    if text.lstrip().startswith("<"):
        return "the file is an HTML or XML page"
    return "the file contains plain text instead of a Kubernetes object"


def _check_fields(manifest: Manifest) -> Iterator[str]:
    for field, value in (("apiVersion", manifest.api_version), ("kind", manifest.kind)):
        if not value:
            similar = [name for name in manifest.data if isinstance(name, str) and name.lower() == field.lower()]
            hint = f'; the manifest has the field "{similar[0]}"' if similar and similar[0] != field else ""
            yield f'the field "{field}" must be a non-empty string{hint}'
    if not manifest.name:
        yield f'a manifest of kind {manifest.kind} has no "metadata.name"'
