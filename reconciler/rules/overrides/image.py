"""The image overrider: one component of an image at a time (kubeadmiral 5.2)."""

from __future__ import annotations

from functools import partial
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.pointer import format_pointer
from reconciler.krm.yaml import Path
from reconciler.rules.edits import value_at, with_value
from reconciler.rules.notes import Note
from reconciler.rules.overrides.codes import (
    COMPONENT_PRESENT,
    CONTAINER_NOT_FOUND,
    DIGEST_PINNED,
    IMAGE_PATH_INVALID,
    IMAGE_RESULT_INVALID,
    IMAGE_UNPARSABLE,
)
from reconciler.rules.overrides.effect import Effect
from reconciler.rules.overrides.model import ImageItem, ImageOperation
from reconciler.rules.overrides.paths import Lost, follow
from reconciler.rules.overrides.pod_spec import Template
from reconciler.rules.overrides.reference import Reference, parse_reference


def apply_image(data: Any, item: ImageItem, template: Template) -> Effect:
    """Return the resource with every image that the item selects changed, or with none of them and the error."""
    places = _places(data, item, template)
    if isinstance(places, Note):
        return Effect(data, (places,))
    effect = Effect(data)
    for path in places:
        effect = effect.then(partial(_apply_at, path=path, item=item))
    if not places and item.names:
        message = f"no container is called {' or '.join(item.names)}"
        return Effect(data, (Note(CONTAINER_NOT_FOUND, message),))
    return Effect(data, effect.notes) if effect.failed else effect


def _places(data: Any, item: ImageItem, template: Template) -> tuple[Path, ...] | Note:
    if item.path is not None:
        path = _image_path(data, item.path)
        return path if isinstance(path, Note) else (path,)
    containers = template.containers(data)
    if isinstance(containers, Note):
        return containers
    selected = (one for one in containers if not item.names or (one.name and one.name in item.names))
    return tuple((*one.path, "image") for one in selected)


def _image_path(data: Any, path: tuple[str, ...]) -> Path | Note:
    found = follow(data, path)
    if isinstance(found, Lost):
        return Note(IMAGE_PATH_INVALID, f"imagePath must lead to a string: {found.why}", found.path)
    if not isinstance(value_at(data, found), str):
        return Note(IMAGE_PATH_INVALID, f"imagePath must lead to a string, and {format_pointer(found)} is none", found)
    return found


def _apply_at(data: Any, path: Path, item: ImageItem) -> Effect:
    image = value_at(data, path)
    before = parse_reference(image) if isinstance(image, str) else None
    if before is None:
        found = "" if image is ABSENT or image is None else image
        return Effect(data, (Note(IMAGE_UNPARSABLE, "the image must be an image reference", path, found),))
    after = before
    for operation in item.operations:
        if operation.operator == "addIfAbsent" and after.component(operation.component):
            message = f"addIfAbsent needs an image without {operation.component}"
            return Effect(data, (Note(COMPONENT_PRESENT, message, path, str(after)),))
        after = _changed(after, operation)
    if parse_reference(str(after)) is None:
        return Effect(data, (Note(IMAGE_RESULT_INVALID, "the new image must be an image reference", path, str(after)),))
    changed = with_value(data, path, str(after)) if str(after) != image else data
    return Effect(changed, _pinned(before, after, path))


def _changed(reference: Reference, operation: ImageOperation) -> Reference:
    value = "" if operation.operator == "delete" else operation.value
    return reference.with_component(operation.component, value)


def _pinned(before: Reference, after: Reference, path: Path) -> tuple[Note, ...]:
    moved = (before.repository, before.tag) != (after.repository, after.tag)
    if not moved or not after.digest or after.digest != before.digest:
        return ()
    return (Note(DIGEST_PINNED, "the digest stays, and says what is pulled whatever the name and tag", path),)
