"""Evidence of a deletion: whether a file that defined an object before proves that the object was deleted.

This module looks at the content of one file. Where recorded files are, and what follows for packages, is in
`planning/evidence.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Document
from reconciler.snapshot.catalog import LOCAL_CONFIG, Manifest, manifests_of
from reconciler.snapshot.known_kinds import KNOWN_KINDS, kind_suggestion

_LFS = "version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class Inconclusive:
    """Why a file does not prove that an object was deleted, and the line of the file that shows it."""

    line: int
    reason: str


def find_inconclusive(documents: Sequence[Document], missing: Collection[ObjectKey]) -> Inconclusive | None:
    """Return why a file does not prove that the missing objects were deleted; None where it does.

    It does where it has at least one manifest, each manifest has `apiVersion`, `kind` and `metadata.name`, and none of
    them is a missing object, or is one with a misspelled kind or group.

    Args:
        documents: The documents of the file, without empty ones.
        missing: The objects that the file defined in an earlier pass and that the config does not have now.
    """
    manifests = [(document, one) for document in documents for one in manifests_of(document.data)]
    if not manifests:
        return Inconclusive(documents[0].line if documents else 1, "it contains no Kubernetes object")
    found = (_fault(document, one, missing) for document, one in manifests)
    return next((one for one in found if one), None)


def _fault(document: Document, one: Manifest, missing: Collection[ObjectKey]) -> Inconclusive | None:
    line = document.line_of(one.path)
    if not isinstance(one.data, dict):
        return Inconclusive(line, _describe(one.data))
    for reason in _missing_fields(one):
        return Inconclusive(line, reason)
    if one.is_local_config and one.key in missing:
        return Inconclusive(line, f"{one.key} has the annotation {LOCAL_CONFIG}, so that it is not read")
    return _misspelled(document, one, missing)


def _misspelled(document: Document, one: Manifest, missing: Collection[ObjectKey]) -> Inconclusive | None:
    """Return a doubt for an object of an unknown kind with the name of a missing object of the kind that may be meant.

    Without it, a mistake in `kind` or `apiVersion` would remove every package of the object.
    """
    found = one.key
    if found is None or found.kind in KNOWN_KINDS.get(found.group, ()):
        return None
    suggestion = kind_suggestion(found.kind, found.group if found.group in KNOWN_KINDS else "")
    for lost in sorted(missing, key=str):
        is_same_kind = found.kind == lost.kind and found.group != lost.group
        may_be_meant = suggestion == f"{lost.kind} of {lost.group}" or (is_same_kind and found.group in KNOWN_KINDS)
        if may_be_meant and found.name == lost.name:
            line = document.line_of((*one.path, "kind" if found.kind != lost.kind else "apiVersion"))
            reason = f"kind {found.kind} of {found.group or 'the core group'} is not read; {lost} is of {lost.group}"
            return Inconclusive(line, reason if is_same_kind else f"{reason}; did you mean {lost.kind}?")
    return None


def _describe(data: Any) -> str:
    if isinstance(data, list):
        return "it is a list at the top level; a list of objects needs kind List"
    text = str(data)
    if text.startswith(_LFS):
        return "it is a Git LFS pointer; the content of the file was not fetched"
    if text.lstrip().startswith("<"):
        return "it is an HTML or XML page"
    return "it is plain text, not a Kubernetes object"


def _missing_fields(one: Manifest) -> Iterator[str]:
    for field, value in (("apiVersion", one.api_version), ("kind", one.kind)):
        if not value:
            similar = [name for name in one.data if isinstance(name, str) and name.lower() == field.lower()]
            found = f'; found "{similar[0]}"' if similar and similar[0] != field else ""
            yield f'it has no field "{field}" with text{found}'
    if not one.name:
        yield f'a manifest of kind {one.kind} has no "metadata.name"'
