"""Finds and masks the names of a target in texts, so that texts of several targets can be compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property

from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml.resolve import resolve_plain
from reconciler.lazy_dataclasses import dataclass

# Use private-use characters of Unicode as marks, because valid names do not contain them.
_MARKS = _CLUSTER_MARK, _OWNER_MARK, _PACKAGE_MARK, _COMMON_MARK = "\ue000", "\ue001", "\ue002", "\ue003"
# Names that are versions or numbers also occur in other values, such as the version of an image.
_VERSION = re.compile(r"v?[0-9.-]+")


@dataclass(frozen=True)
class TargetNames:
    """The names in which otherwise equal items of several targets differ: cluster, package and owner of the package.

    Two texts are equal except for these names if `mask_names` returns the same text for both. `package` can be "".

    Attributes:
        common: A name that is equal on all targets, such as the name of a PluginPreset. The name of the cluster is not
            replaced in this name.
    """

    cluster: str
    owner: str = ""
    package: str = ""
    common: str = ""

    def mask_names(self, text: str) -> str:
        """Replace the names of the cluster, the owner and the package in a text by marks."""
        if any(mark in text for mark in _MARKS):
            # A text that already contains a mark cannot be masked. Add a prefix with the cluster name, so that the
            # texts of different clusters differ. The result also differs from every masked text, because
            # `_replace_name` never puts a mark directly before a letter or a digit.
            return f"{_CLUSTER_MARK}{self.cluster}{_CLUSTER_MARK}{text}"
        for name, mark in self._marks:
            text = _replace_name(text, name, mark)
        return text

    @cached_property
    def _marks(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a name and its mark. Longer names are first, because a name can contain another name."""
        names = {
            self.common: _COMMON_MARK, self.package: _PACKAGE_MARK, self.owner: _OWNER_MARK,
            self.cluster: _CLUSTER_MARK,
        }  # fmt: skip
        return tuple((name, names[name]) for name in sorted(filter(_is_distinctive, names), key=len, reverse=True))

    def replace_cluster(self, text: str, replacement: str) -> str:
        """Replace the name of the cluster in a short text, such as the path of a package.

        If the name of the owner ends with the name of the cluster, only this end of the name is replaced. For example,
        the PluginPreset `eu-logs` creates the owner `eu-logs-eu` for the cluster `eu`.
        """
        suffix = f"-{self.cluster}"
        if self.owner.endswith(suffix):
            text = _replace_name(text, self.owner, _OWNER_MARK)
        text = _replace_name(text, self.cluster, replacement)
        return text.replace(_OWNER_MARK, f"{self.owner.removesuffix(suffix)}-{replacement}")

    def mask_file_names(self, files: FileTree) -> FileTree:
        """Return the files with masked names in their contents. Paths and binary files do not change."""
        return _edit_texts(files, self.mask_names)

    def rename_cluster(self, files: FileTree, name: str) -> FileTree:
        """Return the files with `name` instead of the name of the cluster. Paths and binary files do not change.

        If the name of the cluster is a number, a version or a word such as `true`, return the files unchanged.
        """
        if not _is_distinctive(self.cluster):
            return files
        return _edit_texts(files, lambda text: _replace_name(text, self.cluster, name))


def _edit_texts(files: FileTree, edit: Callable[[str], str]) -> FileTree:
    """Return the files with edited contents. Binary files do not change."""
    return FileTree({path: File(_edit_bytes(file.data, edit), file.executable) for path, file in files.items()})


def _edit_bytes(data: bytes, edit: Callable[[str], str]) -> bytes:
    try:
        return edit(data.decode()).encode()
    except UnicodeDecodeError:
        return data


def _is_distinctive(name: str) -> bool:
    """Return whether a name can be replaced in texts. A name such as `1`, `v2` or `true` also occurs as a value."""
    return bool(name) and not _VERSION.fullmatch(name) and isinstance(resolve_plain(name), str)


def _replace_name(text: str, name: str, mark: str) -> str:
    """Replace each occurrence of the name that has no letter and no digit directly before or after it."""
    # Do not use regular expressions. A pattern for each of 10,000 owners would take longer than the rest of the report.
    return "".join(_split_at_name(text, name, mark)) if name in text else text


def _split_at_name(text: str, name: str, mark: str) -> Iterator[str]:
    """Split a text at each `name` that is not a part of a longer word. Yield the parts, with `mark` between them."""
    start, position = 0, text.find(name)
    while position >= 0:
        end = position + len(name)
        if not (text[position - 1 : position].isalnum() or text[end : end + 1].isalnum()):
            yield text[start:position]
            yield mark
            start = end
        position = text.find(name, end)
    yield text[start:]
