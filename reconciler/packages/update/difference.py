"""Package diff: which files of a package were changed, apart from what tools write into it (kpt.md 5.2, 6.4)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from posixpath import basename
from typing import Any

from reconciler.krm.yaml import Document, YamlError, YamlFile
from reconciler.krm.yaml.same import same
from reconciler.packages.kptfile import KPTFILE, Profile
from reconciler.packages.merge_comments import MERGE_COMMENT, with_comments
from reconciler.packages.parsing import Unparsable, parse_cached
from reconciler.packages.resource import UPSTREAM_IDENTIFIER
from reconciler.snapshot.files import File, FileTree

MERGE_SOURCE = "config.kubernetes.io/merge-source"
BLUEPRINT = "cnrm.cloud.google.com/blueprint"
UNCOMPARED = (MERGE_SOURCE, BLUEPRINT)
_TOOL_SECTIONS = ("upstream", "upstreamLock")
_RENDERED = "Rendered"
_METADATA = ("metadata",)


def package_diff(old: FileTree, new: FileTree) -> tuple[str, ...]:
    """Return the paths of the files that differ, sorted.

    Kptfiles are compared without name, upstream, upstreamLock and render status, resources without their merge
    comments and blueprint annotations; what remains must be equal to the byte, or mean the same.
    """
    return tuple(sorted(path for path in {*old, *new} if not _is_same(path, old.get(path), new.get(path))))


def is_same_content(path: str, old: bytes, new: bytes) -> bool:
    """Tell whether two contents of a file differ in nothing but what tools write into them."""
    if old == new:
        return True
    if basename(path) == KPTFILE:
        return _is_same_kptfile(old, new)
    return is_yaml(path) and _is_same_yaml(old, new)


def is_same_resource(old: Document, new: Document, profile: Profile) -> bool:
    """Tell whether two documents differ in nothing but formatting and what tools write into them.

    In `compat` the upstream identifier counts, as for upstream's tool, which writes it to both sides by hand.
    """
    if old.text == new.text:
        return True
    names = UNCOMPARED if profile == "compat" else (*UNCOMPARED, UPSTREAM_IDENTIFIER)
    return same(compared(old.data, names), compared(new.data, names)) and _comments(old) == _comments(new)


def is_same_text(old: Document, new: Document) -> bool:
    """Return whether the texts of two documents differ in nothing but what tools write into them."""
    return old.text == new.text or _plain_text(old) == _plain_text(new)


def _plain_text(document: Document) -> str:
    # what cannot be taken out is compared as it is
    with suppress(YamlError):
        if (document.comment(_METADATA) or "").startswith(MERGE_COMMENT):
            document = document.with_comment(_METADATA, None)
        document = document.with_data(compared(document.data, (*UNCOMPARED, UPSTREAM_IDENTIFIER)))
    return document.text.removesuffix("\n")


def _comments(document: Document) -> Any:
    # what people note is an edit like any other; blank lines are none
    beside = {path: text for path, text in document.comments().items() if not text.startswith(MERGE_COMMENT)}
    above = {path: [line.strip() for line in lines if line.strip()] for path, lines in document.heads().items()}
    return beside, {path: lines for path, lines in above.items() if lines}


def compared(data: Any, uncompared: tuple[str, ...] = UNCOMPARED) -> Any:
    """Return a resource's data without the annotations that are not compared."""
    metadata = data.get("metadata") if isinstance(data, Mapping) else None
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(annotations, Mapping):
        return data
    kept = {key: value for key, value in annotations.items() if key not in uncompared}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**data, "metadata": {**rest, "annotations": kept} if kept else rest}


def is_yaml(path: str) -> bool:
    """Tell whether the merge reads resources from a file of this name (kpt.md 1.5)."""
    return path.endswith((".yaml", ".yml")) and basename(path) != KPTFILE


def _is_same(path: str, old: File | None, new: File | None) -> bool:
    if old is None or new is None:
        return old is new
    return old.executable == new.executable and is_same_content(path, old.data, new.data)


def _is_same_yaml(old: bytes, new: bytes) -> bool:
    profile: Profile = "compat" if UPSTREAM_IDENTIFIER.encode() in old + new else "safe"
    plain_old, plain_new = with_comments(old, profile), with_comments(new, profile)
    if isinstance(plain_old, Unparsable) or isinstance(plain_new, Unparsable):
        return False
    return plain_old == plain_new or (_has_uncompared(old, new) and same(_contents(plain_old), _contents(plain_new)))


def _has_uncompared(*contents: bytes) -> bool:
    return any(name.encode() in content for content in contents for name in (*UNCOMPARED, UPSTREAM_IDENTIFIER))


def _contents(content: bytes) -> list[Any]:
    parsed = parse_cached(content)
    return [compared(document.data) for document in parsed.documents] if isinstance(parsed, YamlFile) else []


def _is_same_kptfile(old: bytes, new: bytes) -> bool:
    both = [parse_cached(content) for content in (old, new)]
    return all(isinstance(file, YamlFile) for file in both) and same(*map(_own_part, both))


def _own_part(file: YamlFile | Unparsable) -> Any:
    """Return what a Kptfile says beside its name, upstream and render status."""
    data = file.documents[0].data if isinstance(file, YamlFile) and file.documents else None
    if not isinstance(data, Mapping):
        return data
    own = {key: value for key, value in data.items() if key not in _TOOL_SECTIONS}
    own["metadata"] = {key: value for key, value in _mapping(data.get("metadata")).items() if key != "name"}
    own["status"] = without_render_status(_mapping(data.get("status")))
    return {key: value for key, value in own.items() if value}


def is_minimal_kptfile(content: bytes) -> bool:
    """Tell whether a Kptfile says no more than one that a tool made: its name, and what it follows."""
    own = _own_part(parse_cached(content))
    return isinstance(own, Mapping) and own.keys() <= {"apiVersion", "kind"}


def without_render_status(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Kptfile's status without what render wrote there (kpt.md 11.9)."""
    kept = {key: value for key, value in status.items() if key != "renderStatus"}
    conditions = kept.get("conditions")
    if isinstance(conditions, list):
        kept["conditions"] = [entry for entry in conditions if _mapping(entry).get("type") != _RENDERED]
    return {key: value for key, value in kept.items() if value}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
