"""Kustomize overlays: the folder that contains an overlay with all its bases, and the options of other tools."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.adopt.documents import get_list, get_mapping, get_text
from reconciler.adopt.requests import KustomizeRequest
from reconciler.catalog.files import FileTree
from reconciler.packages.package import KUSTOMIZATION_FILES
from reconciler.packages.parsing import ParseFailure, parse_cached

_TEXT_FIELDS = ("namespace", "namePrefix", "nameSuffix")
SUPPORTED_FIELDS = frozenset({*_TEXT_FIELDS, "images", "replicas", "commonAnnotations", "patches"})


class OverlayError(Exception):
    """An option of an overlay that has no equivalent. `field` is its name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def find_kustomization(files: FileTree, folder: str) -> str | None:
    """Return the path of the kustomization file of a folder, or None."""
    names = (posixpath.join(folder, name) for name in KUSTOMIZATION_FILES)
    return next((name for name in names if name in files), None)


def find_build_root(files: FileTree, folder: str) -> str:
    """Return the smallest folder that contains an overlay and all files that it reads. "" is the repository root."""
    return posixpath.commonpath([folder, *_list_folders(files, folder, set())])


def _list_folders(files: FileTree, folder: str, visited: set[str]) -> Iterator[str]:
    """Yield the folders of all files that a kustomization reads, and of its bases."""
    path = find_kustomization(files, folder)
    if folder in visited or path is None:
        return
    visited.add(folder)
    yield folder
    parsed = parse_cached(files[path].data)
    data = parsed.documents[0].data if not isinstance(parsed, ParseFailure) and parsed.documents else None
    for text in _list_texts(data):
        name = posixpath.normpath(posixpath.join(folder, text))
        if name in files:
            yield posixpath.dirname(name)
        elif find_kustomization(files, name) is not None:
            yield from _list_folders(files, name, visited)


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _list_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _list_texts(item)
    elif isinstance(value, str) and "\n" not in value and "://" not in value:
        # A generator names its files as key=path.
        yield value.rpartition("=")[2]


def read_options(options: Mapping[str, Any], path: str) -> KustomizeRequest:
    """Return the options of an overlay, in the field names that Argo CD and Flux share.

    Args:
        path: The folder of the overlay, relative to the build root.

    Raises:
        OverlayError: An option has no equivalent.
    """
    for name in options:
        if options[name] and name not in SUPPORTED_FIELDS:
            raise OverlayError(name, f"the option {name} of Kustomize has no equivalent")
    fields: dict[str, Any] = {name: get_text(options, name) for name in _TEXT_FIELDS if get_text(options, name)}
    if images := [_read_image(image) for image in get_list(options, "images")]:
        fields["images"] = images
    if replicas := [_read_replicas(entry) for entry in get_list(options, "replicas")]:
        fields["replicas"] = replicas
    if annotations := get_mapping(options, "commonAnnotations"):
        fields["commonAnnotations"] = dict(annotations)
    if patches := get_list(options, "patches"):
        if not all(get_text(patch, "patch") for patch in patches):
            raise OverlayError("patches", "a patch in a file has no equivalent")
        fields["patches"] = patches
    return KustomizeRequest("" if path == "." else path, fields)


def _read_image(image: Any) -> dict[str, str]:
    """Return the change of an image: a mapping of Flux, or `name=new:tag` or `name:tag@digest` of Argo CD."""
    if isinstance(image, Mapping):
        return {name: str(value) for name, value in image.items() if value}
    name, has_name, rest = str(image).partition("=")
    text = rest if has_name else name
    text, _, digest = text.partition("@")
    base, colon, tag = text.rpartition(":")
    if not colon or "/" in tag:
        base, tag = text, ""
    fields = {"name": name if has_name else base, "newName": base if has_name else "", "newTag": tag, "digest": digest}
    return {key: value for key, value in fields.items() if value}


def _read_replicas(entry: Any) -> dict[str, Any]:
    count = get_text(entry, "count")
    if not count.isdecimal():
        raise OverlayError("replicas", f"the number of replicas {count!r} is invalid")
    return {"name": get_text(entry, "name"), "count": int(count)}
