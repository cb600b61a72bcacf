"""Three-way merge of one YAML document. Schemas in comments of the document override its merge schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconciler.krm.merge3.data import merge_data
from reconciler.krm.merge3.rules import ABSENT, SAFE, Conflict, MergeRules
from reconciler.krm.merge3.text import write_merged_document
from reconciler.krm.schema import may_contain_schemas, read_schema_comment
from reconciler.krm.schema.merge_schemas import UNKNOWN_SCHEMA, MergeSchema
from reconciler.krm.yaml import DataPath, Document
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, replace


def apply_comment_schemas(schema: MergeSchema, documents: Iterable[Document | None]) -> MergeSchema:
    """Return a copy of the merge schema, overridden by the schemas in comments of the documents.

    If two documents contain a schema for the same field, the earlier document takes precedence.
    """
    schemas: dict[DataPath, MergeSchema] = {}
    for document in documents:
        if document is not None and may_contain_schemas(document.text):
            for path, comment in _iterate_comments(document):
                # Ignore the comments above the first field, because they describe the whole file and not a field.
                comment_schema = read_schema_comment(comment) if path and path not in schemas else None
                if comment_schema is not None:
                    schemas[path] = comment_schema
    for path, comment_schema in schemas.items():
        schema = _replace_schema(schema, path, comment_schema)
    return schema


def _iterate_comments(document: Document) -> Iterable[tuple[DataPath, str]]:
    yield from document.comments().items()
    for path, lines in document.leading_comments().items():
        yield from ((path, line) for line in lines)


def _replace_schema(schema: MergeSchema, path: DataPath, comment_schema: MergeSchema) -> MergeSchema:
    if not path:
        return comment_schema
    step, remaining_path = path[0], path[1:]
    if isinstance(step, int):
        return replace(schema, items=_replace_schema(schema.element_schema, remaining_path, comment_schema))
    return replace(
        schema, fields={**schema.fields, step: _replace_schema(schema.find_field(step), remaining_path, comment_schema)}
    )


@dataclass(frozen=True)
class DocumentMergeResult:
    """The result of a three-way merge of one document.

    `document` is None if the merge removes the document. The attributes `file` and `resource` of the conflicts are
    empty.
    """

    document: Document | None
    conflicts: tuple[Conflict, ...] = ()


def merge3(
    origin: Document | None,
    updated: Document | None,
    local: Document | None,
    schema: MergeSchema = UNKNOWN_SCHEMA,
    rules: MergeRules = SAFE,
) -> DocumentMergeResult:
    """Return the local document with the changes between `origin` and `updated`.

    If only one side changed the document, return the document of this side. If upstream removed the document and the
    local side changed it, keep the document, and report a conflict of kind "resource". If `local` is None, return
    `updated`.

    Raises:
        MergeError: The rules of kpt are used, and types of values or merge keys conflict.
    """
    if local is None or updated is None:
        return _merge_missing_side(origin, updated, local)
    if rules.can_copy_a_side:
        if local.text == updated.text or (origin is not None and origin.text == updated.text):
            return DocumentMergeResult(local)
        if origin is not None and origin.text == local.text:
            return DocumentMergeResult(updated)
    schema = apply_comment_schemas(schema, (local, origin, updated))
    ours, base, theirs = (_read_data(side, rules) for side in (local, origin, updated))
    data, conflicts = merge_data(base, theirs, ours, schema, rules)
    document = None if data is ABSENT else write_merged_document(local, origin, updated, data, schema, rules)
    return DocumentMergeResult(document, conflicts)


def _merge_missing_side(
    origin: Document | None, updated: Document | None, local: Document | None
) -> DocumentMergeResult:
    if local is None or updated is not None:
        return DocumentMergeResult(updated)
    if origin is None:
        return DocumentMergeResult(local)
    if is_equal_data(origin.data, local.data):
        return DocumentMergeResult(None)
    return DocumentMergeResult(local, (Conflict("resource", "", origin.data, local.data, ABSENT, "local", "D3"),))


def _read_data(document: Document | None, rules: MergeRules) -> Any:
    if document is None:
        return ABSENT
    return document.data if rules.resolves_aliases else document.data_without_aliases
