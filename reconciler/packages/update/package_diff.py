"""Find the differences between two versions of a package. Changes that kpt or this project makes are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from posixpath import basename
from typing import Any

from reconciler.api.profile import Profile
from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml import Document, YamlError, YamlFile
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.packages.clone import MERGE_COMMENT, add_comments_to_content
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import is_krm_file
from reconciler.packages.parsing import ParseFailure, parse_cached
from reconciler.packages.resource import UPSTREAM_IDENTIFIER
from reconciler.packages.sops_files import has_sops_document, remove_merge_comments

MERGE_SOURCE = "config.kubernetes.io/merge-source"
BLUEPRINT = "cnrm.cloud.google.com/blueprint"
IGNORED_ANNOTATIONS = (MERGE_SOURCE, BLUEPRINT)
_TOOL_SECTIONS = ("upstream", "upstreamLock")
_RENDERED = "Rendered"
_METADATA = ("metadata",)


def list_changed_files(old: FileTree, new: FileTree) -> tuple[str, ...]:
    """Return the sorted paths of the files that differ between two versions of a package.

    These changes are ignored:

    - in a Kptfile: the name, `upstream`, `upstreamLock`, the render status, and formatting,
    - in a resource file: merge comments, `config.kubernetes.io/merge-source` and other annotations of kpt.
    """
    return tuple(sorted(path for path in {*old, *new} if not _is_same_file(path, old.get(path), new.get(path))))


def is_same_content(path: str, old: bytes, new: bytes) -> bool:
    """Return whether two versions of a file are equal except for changes that `list_changed_files` ignores."""
    if old == new:
        return True
    if basename(path) == KPTFILE:
        return _is_same_kptfile(old, new)
    return is_resource_file(path) and _is_same_yaml(old, new)


def is_same_resource(old: Document, new: Document, profile: Profile) -> bool:
    """Return whether two documents are equal except for formatting, merge comments, and annotations of kpt.

    In the profile `compat`, the annotation `internal.kpt.dev/upstream-identifier` is compared, as in kpt.
    """
    if old.text == new.text:
        return True
    names = IGNORED_ANNOTATIONS if profile == "compat" else (*IGNORED_ANNOTATIONS, UPSTREAM_IDENTIFIER)
    return is_equal_data(
        remove_ignored_annotations(old.data, names), remove_ignored_annotations(new.data, names)
    ) and _get_comments(old) == _get_comments(new)


def is_same_text(old: Document, new: Document) -> bool:
    """Return whether the texts of two documents are equal except for merge comments and annotations of kpt."""
    return old.text == new.text or _remove_tool_changes(old) == _remove_tool_changes(new)


def _remove_tool_changes(document: Document) -> str:
    # If an edit fails, keep the merge comment or the annotations. They are then compared like all other text.
    with suppress(YamlError):
        if (document.comment(_METADATA) or "").startswith(MERGE_COMMENT):
            document = document.with_comment(_METADATA, None)
        document = document.with_data(
            remove_ignored_annotations(document.data, (*IGNORED_ANNOTATIONS, UPSTREAM_IDENTIFIER))
        )
    return document.text.removesuffix("\n")


def _get_comments(document: Document) -> Any:
    # Compare comments, because they can be local changes. Ignore blank lines.
    line_comments = {path: text for path, text in document.comments().items() if not text.startswith(MERGE_COMMENT)}
    leading_comments = {
        path: [line.strip() for line in lines if line.strip()] for path, lines in document.leading_comments().items()
    }
    return line_comments, {path: lines for path, lines in leading_comments.items() if lines}


def remove_ignored_annotations(data: Any, ignored: tuple[str, ...] = IGNORED_ANNOTATIONS) -> Any:
    """Return the data of a resource without the annotations in `ignored`."""
    metadata = data.get("metadata") if isinstance(data, Mapping) else None
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(annotations, Mapping):
        return data
    remaining = {key: value for key, value in annotations.items() if key not in ignored}
    other_metadata = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**data, "metadata": {**other_metadata, "annotations": remaining} if remaining else other_metadata}


def is_resource_file(path: str) -> bool:
    """Return whether an update reads resources from a file with this name: a YAML file, except for the Kptfile."""
    return path.endswith((".yaml", ".yml")) and is_krm_file(path) and basename(path) != KPTFILE


def _is_same_file(path: str, old: File | None, new: File | None) -> bool:
    if old is None or new is None:
        return old is new
    return old.executable == new.executable and is_same_content(path, old.data, new.data)


def _is_same_yaml(old: bytes, new: bytes) -> bool:
    if has_sops_document("", old) and has_sops_document("", new):
        return remove_merge_comments(old) == remove_merge_comments(new)
    profile: Profile = "compat" if UPSTREAM_IDENTIFIER.encode() in old + new else "safe"
    plain_old, plain_new = add_comments_to_content(old, profile), add_comments_to_content(new, profile)
    if isinstance(plain_old, ParseFailure) or isinstance(plain_new, ParseFailure):
        return False
    return plain_old == plain_new or (
        _has_uncompared(old, new) and is_equal_data(_parse_compared(plain_old), _parse_compared(plain_new))
    )


def _has_uncompared(*contents: bytes) -> bool:
    return any(name.encode() in content for content in contents for name in (*IGNORED_ANNOTATIONS, UPSTREAM_IDENTIFIER))


def _parse_compared(content: bytes) -> list[Any]:
    parsed = parse_cached(content)
    return (
        [remove_ignored_annotations(document.data) for document in parsed.documents]
        if isinstance(parsed, YamlFile)
        else []
    )


def _is_same_kptfile(old: bytes, new: bytes) -> bool:
    files = [parse_cached(content) for content in (old, new)]
    return all(isinstance(file, YamlFile) for file in files) and is_equal_data(*map(_remove_tool_fields, files))


def _remove_tool_fields(file: YamlFile | ParseFailure) -> Any:
    """Return the data of a Kptfile without its name, upstream sections and render status."""
    data = file.documents[0].data if isinstance(file, YamlFile) and file.documents else None
    if not isinstance(data, Mapping):
        return data
    compared = {key: value for key, value in data.items() if key not in _TOOL_SECTIONS}
    compared["metadata"] = {key: value for key, value in _get_mapping(data.get("metadata")).items() if key != "name"}
    compared["status"] = remove_render_status(_get_mapping(data.get("status")))
    return {key: value for key, value in compared.items() if value}


def is_minimal_kptfile(content: bytes) -> bool:
    """Return whether a Kptfile contains only fields that a clone generates: its type, name and upstream sections."""
    compared = _remove_tool_fields(parse_cached(content))
    return isinstance(compared, Mapping) and compared.keys() <= {"apiVersion", "kind"}


def remove_render_status(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section `status` of a Kptfile without the render status and condition `Rendered`, which kpt writes."""
    remaining = {key: value for key, value in status.items() if key != "renderStatus"}
    conditions = remaining.get("conditions")
    if isinstance(conditions, list):
        remaining["conditions"] = [entry for entry in conditions if _get_mapping(entry).get("type") != _RENDERED]
    return {key: value for key, value in remaining.items() if value}


def _get_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
