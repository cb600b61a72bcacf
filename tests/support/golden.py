"""Folders of expected files: reads them, and rewrites them with the option `--rewrite-expected`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder by path, or an empty mapping when the folder does not exist."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def rewrite_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Replace the content of a folder by these files."""
    for path in read_folder(folder).keys() - files.keys():
        (folder / path).unlink()
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
