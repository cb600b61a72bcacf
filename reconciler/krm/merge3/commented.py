"""Shapes that stand in the comments of the documents themselves; they overrule what is known of the kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconciler.krm.schema import may_hold_schemas, read_schema_comment
from reconciler.krm.shapes import Shape
from reconciler.krm.yaml import Document, Path


def with_commented_shapes(shape: Shape, documents: Iterable[Document | None]) -> Shape:
    """Return the shape with the schemas from comments above and beside fields, the first document's first."""
    found: dict[Path, Shape] = {}
    for document in documents:
        if document is not None and may_hold_schemas(document.text):
            for path, comment in _comments(document):
                # what stands above everything is about the file
                described = read_schema_comment(comment) if path and path not in found else None
                if described is not None:
                    found[path] = described
    for path, described in found.items():
        shape = _placed(shape, path, described)
    return shape


def _comments(document: Document) -> Iterable[tuple[Path, str]]:
    yield from document.comments().items()
    for path, lines in document.heads().items():
        yield from ((path, line) for line in lines)


def _placed(shape: Shape, path: Path, described: Shape) -> Shape:
    if not path:
        return described
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return replace(shape, items=_placed(shape.element, rest, described))
    return replace(shape, fields={**shape.fields, step: _placed(shape.child(step), rest, described)})
