"""Kustomize overlays: the folder that contains an overlay and all its bases, and the options of Argo CD and Flux."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from reconciler.adopt.documents import find_wrong_type, get_list, get_mapping, get_text
from reconciler.adopt.requests import KustomizeRequest
from reconciler.adopt.resources import is_plaintext_secret
from reconciler.api.base import read_model
from reconciler.api.kustomize_options import KustomizeOptions
from reconciler.api.porch.messages import PORCH_TEMPLATES
from reconciler.catalog.files import FileTree
from reconciler.krm.yaml import Document, emit
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.package import KUSTOMIZATION_FILES
from reconciler.packages.parsing import ParseFailure, parse_cached
from reconciler.redaction import SECRET_VALUE_FIELDS

_TEXT_FIELDS = ("namespace", "namePrefix", "nameSuffix")
_TYPES: Mapping[str, type] = {
    **dict.fromkeys(_TEXT_FIELDS, str), "commonAnnotations": dict,
    **dict.fromkeys(("images", "replicas", "patches", "components"), list),
}  # fmt: skip
SUPPORTED_FIELDS = frozenset(
    {*_TEXT_FIELDS, "images", "replicas", "commonAnnotations", "patches", "components", "ignoreMissingComponents"}
)


class OverlayError(Exception):
    """An option of an overlay that has no equivalent. `field` is its name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def find_kustomization(files: FileTree, folder: str) -> str | None:
    """Return the path of the kustomization file of a folder, or None."""
    names = (posixpath.join(folder, name) for name in KUSTOMIZATION_FILES)
    return next((name for name in names if name in files), None)


def find_build_root(files: FileTree, folder: str, components: Iterable[str] = ()) -> str:
    """Return the innermost folder that contains the overlay in `folder` and all files that the overlay reads.

    The result "" is the root of the repository.

    Args:
        components: Paths of additional components, relative to `folder`.
    """
    folders = (folder, *(_join(folder, component) for component in components))
    visited: set[str] = set()
    return posixpath.commonpath([folder, *(name for start in folders for name in _list_folders(files, start, visited))])


def _join(folder: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(folder, path))


def _list_folders(files: FileTree, folder: str, visited: set[str]) -> Iterator[str]:
    """Yield the folders of all files that a kustomization, or one of its bases, reads."""
    path = find_kustomization(files, folder)
    if folder in visited or path is None:
        return
    visited.add(folder)
    yield folder
    for text in _list_texts(read_kustomization(files, path)):
        name = _join(folder, text)
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
        # In a `configMapGenerator` or `secretGenerator`, the name of a file can have the form `key=path`.
        yield value.rpartition("=")[2]


@dataclass(frozen=True)
class OverlaySource:
    """A folder with an overlay, and the options of the Argo CD or Flux object that uses the overlay.

    Attributes:
        files: The files of the repository. None if the overlay is in an artifact, because its files are then unknown.
        options: Maps field names to values. Argo CD and Flux use the same field names for these options.
    """

    files: FileTree | None
    folder: str
    options: Mapping[str, Any]

    def convert(self) -> ConvertedOverlay:
        """Return the package that contains the overlay and its bases, and the options of the overlay.

        Raises:
            OverlayError: An option has no equivalent.
        """
        fields = self._read_options()
        if self.files is None:
            return ConvertedOverlay("", KustomizeRequest("" if self.folder == "." else self.folder, fields))
        root = find_build_root(self.files, self.folder, fields.get("components", ()))
        path = posixpath.relpath(self.folder, root or ".")
        original = self._write_options(fields).subtree(root) if fields else None
        return ConvertedOverlay(root, KustomizeRequest("" if path == "." else path, fields, original))

    def _read_options(self) -> dict[str, Any]:
        options = self.options
        for name in options:
            if options[name] and name not in SUPPORTED_FIELDS:
                raise OverlayError(name, f'the import does not support the option "{name}" of Kustomize')
        if wrong := find_wrong_type(options, _TYPES):
            raise OverlayError(*wrong)
        fields: dict[str, Any] = {name: get_text(options, name) for name in _TEXT_FIELDS if get_text(options, name)}
        readers: Mapping[str, Callable[[Any], Any]] = {
            "images": _read_image, "replicas": _read_replicas, "components": self._read_component,
            "patches": self._read_patch,
        }  # fmt: skip
        for name, read in readers.items():
            if entries := [entry for entry in map(read, get_list(options, name)) if entry]:
                fields[name] = entries
        if annotations := get_mapping(options, "commonAnnotations"):
            fields["commonAnnotations"] = dict(annotations)
        for error in read_model(KustomizeOptions, fields, PORCH_TEMPLATES).errors:
            raise OverlayError(str(error.path[0]) if error.path else "", error.text)
        return fields

    def _read_component(self, component: Any) -> str:
        """Return the path of a component. Return "" for a missing component if `ignoreMissingComponents` is set."""
        path = str(component)
        if "://" in path or path.startswith("/"):
            raise OverlayError("components", f"the component {path!r} must be a relative path")
        files = self._get_files("components")
        if find_kustomization(files, _join(self.folder, path)) is None:
            if self.options.get("ignoreMissingComponents"):
                return ""
            raise OverlayError("components", f"the component {path!r} does not exist")
        return path

    def _read_patch(self, patch: Any) -> dict[str, Any]:
        """Return a patch. The text of a patch file becomes part of the options."""
        if not isinstance(patch, Mapping):
            raise OverlayError("patches", "a patch must be a mapping")
        fields = {name: value for name, value in patch.items() if name != "path" and value}
        if path := get_text(patch, "path"):
            file = self._get_files("patches").get(_join(self.folder, path))
            if file is None:
                raise OverlayError("patches", f"the patch file {path!r} does not exist")
            try:
                fields["patch"] = file.data.decode()
            except UnicodeDecodeError:
                raise OverlayError("patches", f"the patch file {path!r} is not UTF-8 text") from None
        if _changes_secret(fields):
            raise OverlayError(
                "patches", "a patch contains plaintext values of a Secret, and the import does not copy such values"
            )
        return fields

    def _get_files(self, field: str) -> FileTree:
        if self.files is None:
            raise OverlayError(field, f"{field} names files in an artifact, but the import reads only files in Git")
        return self.files

    def _write_options(self, fields: Mapping[str, Any]) -> FileTree:
        """Write the options to the kustomization file of the overlay, as Argo CD and Flux do. Return all files."""
        assert self.files is not None
        path = find_kustomization(self.files, self.folder)
        data = read_kustomization(self.files, path) if path else {}
        if not path or data is None:
            return self.files
        edited = {**data, **{name: fields[name] for name in _TEXT_FIELDS if name in fields}}
        for name in ("images", "replicas"):
            names = {entry["name"] for entry in fields.get(name, ())}
            others = [entry for entry in get_list(data, name) if get_text(entry, "name") not in names]
            if names:
                edited[name] = [*others, *fields[name]]
        for name in ("patches", "components"):
            if name in fields:
                edited[name] = [*get_list(data, name), *fields[name]]
        if "commonAnnotations" in fields:
            edited["commonAnnotations"] = {**get_mapping(data, "commonAnnotations"), **fields["commonAnnotations"]}
        return self.files.with_files({path: emit(edited).encode()})


def _changes_secret(patch: Mapping[str, Any]) -> bool:
    """Return whether a patch can contain values of a Secret.

    A patch without `target.kind` can change resources of all kinds.
    """
    parsed = parse_cached(get_text(patch, "patch").encode())
    documents = () if isinstance(parsed, ParseFailure) else parsed.documents
    if any(is_plaintext_secret(document.data) for document in documents):
        return True
    target = get_mapping(patch, "target")
    return bool(target) and _selects_secrets(get_text(target, "kind")) and any(map(_sets_secret_value, documents))


def _selects_secrets(kind: str) -> bool:
    """Return whether the regular expression in `target.kind` matches the kind Secret. Kustomize adds ^ and $ to it."""
    try:
        return not kind or re.fullmatch(kind, "Secret") is not None
    except re.error:
        return True


def _sets_secret_value(document: Document) -> bool:
    """Return whether a patch sets a field that contains the values of a Secret.

    A mapping is a strategic merge patch. A list contains the operations of a JSON patch.
    """
    data = document.data
    if isinstance(data, Mapping):
        return any(data.get(name) for name in SECRET_VALUE_FIELDS)
    operations = data if isinstance(data, list) else []
    pointers = [str(operation.get("path", "")) for operation in operations if isinstance(operation, Mapping)]
    return any(pointer.removeprefix("/").partition("/")[0] in ("", *SECRET_VALUE_FIELDS) for pointer in pointers)


def read_kustomization(files: FileTree, path: str) -> Mapping[str, Any] | None:
    """Return the content of a kustomization file. Return None if it cannot be parsed."""
    parsed = parse_cached(files[path].data)
    if isinstance(parsed, ParseFailure):
        return None
    data = parsed.documents[0].data_without_aliases if parsed.documents else {}
    return data if isinstance(data, Mapping) else None


@dataclass(frozen=True)
class ConvertedOverlay:
    """A package with an overlay.

    Attributes:
        package: The folder of the repository that contains the overlay and its bases. It is "" for the whole
            repository, and for an artifact.
    """

    package: str
    request: KustomizeRequest


def _read_image(image: Any) -> dict[str, str]:
    """Return the fields of an entry in `images`.

    Flux writes an entry as a mapping. Argo CD writes it as text, for example `name=new:tag` or `name:tag@digest`.
    """
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
        raise OverlayError("replicas", f"the number of replicas must be a number, but is {count!r}")
    return {"name": get_text(entry, "name"), "count": int(count)}
