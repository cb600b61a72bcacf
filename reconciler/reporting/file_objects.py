"""File objects: the KRM objects that a file holds, described once for equal files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reconciler.caching import cached
from reconciler.krm.digest import digest
from reconciler.krm.identity import ObjectKey
from reconciler.krm.secrets import holds_secret
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.nesting import is_krm_file
from reconciler.packages.package import documents_of
from reconciler.packages.parsing import Unparsable
from reconciler.packages.resource import Described

# clusters share most of their files; room for as many as stay parsed, whose data these hold
_REMEMBERED_FILES = 2048


@dataclass(frozen=True, eq=False)
class Standing(Described):
    """One document where it stands, as packages describe documents; it equals itself only.

    What is asked more than once is worked out once, for all clusters that have the file.
    """

    file: str
    content: Any

    @property
    def data(self) -> Any:
        """The document as plain data; read-only."""
        return self.content

    @cached_property
    def key(self) -> ObjectKey:
        """What makes this the same object as another."""
        return super().key

    @cached_property
    def is_local_config(self) -> bool:
        """Whether the object is for tools only and never applied."""
        return super().is_local_config

    @property
    def is_object(self) -> bool:
        """Whether it is a KRM object with a name."""
        return bool(self.api_version and self.kind and self.name)

    @cached_property
    def holds_secret(self) -> bool:
        """Whether it is a Secret or holds one."""
        return holds_secret(self.content)

    @cached_property
    def digest(self) -> str:
        """Equal for equal data."""
        return digest(self.content)


@dataclass(frozen=True)
class FileObjects:
    """The objects of a file in their order; `only_objects`: there is nothing else in it."""

    objects: tuple[Standing, ...] = ()
    only_objects: bool = False


_UNREAD = FileObjects()


def file_objects(path: str, content: bytes) -> FileObjects:
    """Return the objects of a file; none when it is no KRM file, is a Kptfile or cannot be parsed."""
    return _UNREAD if is_kptfile(path) or not is_krm_file(path) else _described(path, content)


def is_kptfile(path: str) -> bool:
    """Tell whether a file is a package's Kptfile by its name."""
    return path == KPTFILE or path.endswith(f"/{KPTFILE}")


@cached(_REMEMBERED_FILES)
def _described(path: str, content: bytes) -> FileObjects:
    documents = documents_of(path, content)
    if isinstance(documents, Unparsable):
        return _UNREAD
    standing = tuple(Standing(path, one.data) for one in documents)
    objects = tuple(one for one in standing if one.is_object)
    return FileObjects(objects, only_objects=len(objects) == len(standing))
