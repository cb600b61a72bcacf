"""The files of placed resources: one object to a file, to the byte (design 10.2)."""

from __future__ import annotations

from reconciler.krm.yaml import emit
from reconciler.snapshot.catalog import ConfigObject
from reconciler.snapshot.files import File


def file_of(one: ConfigObject) -> File:
    """Return a resource as a file of its own: the bytes of its document, or YAML for one that stands in a JSON file."""
    text = emit(one.data) if one.file.endswith(".json") else one.document.alone().text
    return File(text.encode())
