"""Image references, and the overrider `image`, which changes the registry, repository, tag or digest of an image."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from reconciler.api.kubeadmiral import ImageComponent
from reconciler.controllers.nested_values import copy_with_value, get_value
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.containers import PodSpecLocation
from reconciler.controllers.override_policies.json_patch import MissingPath, resolve_path
from reconciler.controllers.override_policies.model import ImageItem, ImageOperation, OverrideEffect
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.field_text import quote_list
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.names import IMAGE_TAG_PATTERN, validate_image_digest
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.redaction import MASK, is_secret

MAX_NAME_LENGTH = 255
_DNS_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_DNS_PART}(?:\.{_DNS_PART})*|\[[a-fA-F0-9:]+\])"
_PART = r"[a-z0-9]+(?:(?:\.|__|_|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*)"
    rf"(?::(?P<tag>{IMAGE_TAG_PATTERN}))?(?:@(?P<digest>[^@]+))?",
    re.ASCII,
)


def apply_image(data: Any, item: ImageItem, pod_spec: PodSpecLocation) -> OverrideEffect:
    """Return the resource after all changes of images in `item`. If there is an error, the resource is unchanged."""
    paths = _find_image_paths(data, item, pod_spec)
    if isinstance(paths, ResourceIssue):
        return OverrideEffect(data, (paths,))
    effect = OverrideEffect(data)
    for path in paths:
        effect = effect.and_then(partial(_change_image, path=path, item=item))
    if not paths and item.names:
        message = f"there is no container with the name {quote_list(item.names, ' or ')}"
        return OverrideEffect(data, (ResourceIssue(PolicyCodes.CONTAINER_NOT_FOUND, message),))
    return OverrideEffect(data, effect.issues) if effect.has_errors else effect


def _find_image_paths(data: Any, item: ImageItem, pod_spec: PodSpecLocation) -> tuple[DataPath, ...] | ResourceIssue:
    if item.path is not None:
        path = _resolve_image_path(data, item.path)
        return path if isinstance(path, ResourceIssue) else (path,)
    containers = pod_spec.find_containers(data)
    if isinstance(containers, ResourceIssue):
        return containers
    selected = (
        container for container in containers if not item.names or (container.name and container.name in item.names)
    )
    return tuple((*container.path, "image") for container in selected)


def _resolve_image_path(data: Any, path: tuple[str, ...]) -> DataPath | ResourceIssue:
    resolved = resolve_path(data, path)
    if isinstance(resolved, MissingPath):
        return ResourceIssue(
            PolicyCodes.IMAGE_PATH_INVALID, f"imagePath must point to a string, but {resolved.reason}", resolved.path
        )
    if not isinstance(get_value(data, resolved), str):
        return ResourceIssue(
            PolicyCodes.IMAGE_PATH_INVALID,
            f"imagePath must point to a string, but {format_pointer(resolved)} is not a string",
            resolved,
        )
    return resolved


def _change_image(data: Any, path: DataPath, item: ImageItem) -> OverrideEffect:
    image = get_value(data, path)
    before = parse_reference(image) if isinstance(image, str) else None
    if before is None:
        shown = "" if image is ABSENT or image is None else image
        return OverrideEffect(
            data,
            (ResourceIssue(PolicyCodes.IMAGE_UNPARSABLE, "the image must be a valid image reference", path, shown),),
        )
    after = before
    for operation in item.operations:
        if operation.operator == "addIfAbsent" and after.get_component(operation.component):
            shown = MASK if is_secret(data) else str(after)
            message = (
                f'addIfAbsent cannot add {operation.component}, because the image "{shown}" already has this component.'
                " Next step: use the operator overwrite"
            )
            return OverrideEffect(data, (ResourceIssue(PolicyCodes.COMPONENT_PRESENT, message, path),))
        after = _change_component(after, operation)
    if parse_reference(str(after)) is None:
        return OverrideEffect(
            data,
            (
                ResourceIssue(
                    PolicyCodes.IMAGE_RESULT_INVALID, "the new image must be a valid image reference", path, str(after)
                ),
            ),
        )
    changed = copy_with_value(data, path, str(after)) if str(after) != image else data
    return OverrideEffect(changed, _check_pinned_digest(before, after, path))


def _change_component(reference: ImageReference, operation: ImageOperation) -> ImageReference:
    value = "" if operation.operator == "delete" else operation.value
    return reference.with_component(operation.component, value)


def _check_pinned_digest(before: ImageReference, after: ImageReference, path: DataPath) -> tuple[ResourceIssue, ...]:
    has_changed = (before.repository, before.tag) != (after.repository, after.tag)
    if not has_changed or not after.digest or after.digest != before.digest:
        return ()
    return (
        ResourceIssue(
            PolicyCodes.DIGEST_PINNED,
            "the new repository or tag does not change the pulled image, because the image still has the same digest."
            " Next step: also change or delete the digest",
            path,
        ),
    )


@dataclass(frozen=True)
class ImageReference:
    """The parts of an image reference. A missing part is ""."""

    registry: str = ""
    repository: str = ""
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        start = f"{self.registry}/" if self.registry else ""
        tag, digest = f":{self.tag}" if self.tag else "", f"@{self.digest}" if self.digest else ""
        return f"{start}{self.repository}{tag}{digest}"

    def get_component(self, name: ImageComponent) -> str:
        """Return one part of the reference, e.g. the registry. Return "" if this part is missing."""
        value: str = getattr(self, name.lower())
        return value

    def with_component(self, name: ImageComponent, value: str) -> ImageReference:
        """Return the reference with a new value for one part, e.g. the registry. The new value is not validated."""
        return replace(self, **{name.lower(): value})


def parse_reference(text: str) -> ImageReference | None:
    """Return the parts of an image reference, without default values. Return None if the text is not valid."""
    match = _REFERENCE.fullmatch(text)
    if match is None or len(match["name"]) > MAX_NAME_LENGTH:
        return None
    if match["digest"] and validate_image_digest(match["digest"]):
        return None
    first, slash, rest = match["name"].partition("/")
    is_registry = slash and ("." in first or ":" in first or first == "localhost")
    registry, repository = (first, rest) if is_registry else ("", match["name"])
    return ImageReference(registry, repository, match["tag"] or "", match["digest"] or "")
