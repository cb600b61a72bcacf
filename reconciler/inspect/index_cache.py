"""The file with the entries of the index of the console, so that a process does not read all drafts after its start.

The format is pickle without code: the reader creates only data classes, models and enums of folders that use no file,
process or network (see the import contract "pure-core"). The reader ignores a file of a different layout, of a
different program version or of different settings, and a damaged file.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from reconciler.catalog.files import CommitId
from reconciler.git.filesystem import replace_file
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import TargetEntry
from reconciler.telemetry.event_log import log

LAYOUT_VERSION = 2
"""The version of the stored classes and their fields. Increase it with each change of these, so that a process reads no
file with other fields. A test compares it with the fields.
"""
MAX_BYTES = 512 * 1024 * 1024
"""The maximum size of the file. An index of 10,000 drafts has about 4 MB."""
_DIGEST_BYTES = sha256().digest_size
# Load only classes from these folders, because their instances contain only data and creating them has no side effect.
_FOLDERS = frozenset({"controllers", "krm", "output", "packages", "planning"})


@dataclass(frozen=True)
class IndexedTarget:
    """The entry of a target, and the refs that it depends on. Secrets are masked.

    Attributes:
        drafts: The branches that can contain drafts of the target.
        heads: The commits of the refs on which the entry depends, by ref.
    """

    drafts: frozenset[str]
    heads: Mapping[str, CommitId]
    entry: TargetEntry


@dataclass(frozen=True)
class StoredTarget:
    """A target of an earlier index.

    Attributes:
        definition: A digest of the target. If the digest differs, the target has changed. The URL
            of the target is not stored.
    """

    definition: str
    content: IndexedTarget


class IndexCache:
    """A file with the targets of the last fleet index, for the next process.

    Args:
        scope: A digest of the program version and of all settings that affect the targets. Targets that were stored
            with a different scope are ignored.
    """

    def __init__(self, file: Path, scope: str) -> None:
        self._file = file
        self._scope = sha256(f"{LAYOUT_VERSION}\n{scope}".encode()).digest()

    def read(self) -> Mapping[ObjectKey, StoredTarget]:
        """Return the targets of the last index by key. Return {} if they are missing, damaged, or of another scope."""
        try:
            return self._load(self._read_bytes())
        except FileNotFoundError:
            return {}
        except Exception as error:  # noqa: BLE001 - pickle raises many types, for example if a class has changed
            log.warning("console_index_unreadable", file=str(self._file), message=type(error).__name__)
            return {}

    def _read_bytes(self) -> bytes:
        """Return the content of the file. If the file is larger than the maximum size of an index file, raise an error.

        Without this limit, a damaged file could fill the memory.
        """
        max_bytes = MAX_BYTES + 2 * _DIGEST_BYTES
        with self._file.open("rb") as stream:
            data = stream.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise pickle.UnpicklingError(f"the file has more than {max_bytes} bytes")
        return data

    def _load(self, data: bytes) -> Mapping[ObjectKey, StoredTarget]:
        scope, digest, content = (
            data[:_DIGEST_BYTES], data[_DIGEST_BYTES : 2 * _DIGEST_BYTES], data[2 * _DIGEST_BYTES :]
        )  # fmt: skip
        if scope != self._scope:
            return {}
        if sha256(content).digest() != digest:
            raise pickle.UnpicklingError("the file is damaged")
        targets = _Unpickler(BytesIO(content)).load()
        if not (isinstance(targets, dict) and all(isinstance(target, StoredTarget) for target in targets.values())):
            raise pickle.UnpicklingError("the file does not contain targets")
        return targets

    def write(self, targets: Mapping[ObjectKey, StoredTarget]) -> None:
        """Replace the stored targets. If this fails, the next process only needs more time for its first index."""
        stream = BytesIO()
        _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(dict(targets))
        content = stream.getvalue()
        if len(content) > MAX_BYTES:
            message = f"the index has {len(content)} bytes; the limit is {MAX_BYTES} bytes"
            log.warning("console_index_store_failed", file=str(self._file), message=message)
            return
        try:
            replace_file(self._file, self._scope + sha256(content).digest() + content)
        except OSError as error:
            log.warning("console_index_store_failed", file=str(self._file), message=error.strerror)


class _Pickler(pickle.Pickler):
    """Writes data classes as their fields, without the values of cached properties."""

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        return (kind, _read_fields(kind)(obj)) if is_dataclass(kind) else NotImplemented


class _Unpickler(pickle.Unpickler):
    """Accepts only data classes, models, enums and tuples, and only from this module and from `_FOLDERS`."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        package, _, path = module_name.partition(".")
        if module_name == __name__ or (package == "reconciler" and path.partition(".")[0] in _FOLDERS):
            found = super().find_class(module_name, global_name)
            if isinstance(found, type) and (is_dataclass(found) or issubclass(found, BaseModel | Enum | tuple)):
                return found
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is not allowed")


_field_readers: dict[type, Callable[[Any], tuple[Any, ...]]] = {}


def _read_fields(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the fields of an instance of a data class."""
    if kind not in _field_readers:
        names = [item.name for item in fields(kind)]
        # `attrgetter` returns a tuple only for several names.
        is_tuple = len(names) > 1
        _field_readers[kind] = attrgetter(*names) if is_tuple else lambda value: tuple(getattr(value, n) for n in names)
    return _field_readers[kind]
