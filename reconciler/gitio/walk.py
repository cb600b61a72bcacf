"""Folders that are walked and removed without recursion: before Python 3.12, `os.walk` and `shutil.rmtree` recurse.

A ref with a thousand slashes in its name, or a folder that is as deep, would end them with RecursionError.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path


def walk(
    top: Path, on_error: Callable[[OSError], object] = lambda _: None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder from the top down with the names of its folders and of its other entries.

    As with `os.walk`, the caller may shorten or sort the list of folders, and links to folders are not followed.
    """
    pending = [os.fspath(top)]
    while pending:
        place = pending.pop()
        folders: list[str] = []
        names: list[str] = []
        links = set()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    (folders if entry.is_dir() else names).append(entry.name)
                    if entry.is_symlink():
                        links.add(entry.name)
        except OSError as error:
            on_error(error)
            continue
        yield place, folders, names
        pending += (f"{place}/{folder}" for folder in reversed(folders) if folder not in links)


def remove_folder(top: Path) -> None:
    """Remove a folder with everything in it, if it exists; links are removed and not followed. Raises OSError."""
    places = []
    for text, folders, names in walk(top):
        place = Path(text)
        places.append(place)
        links = [folder for folder in folders if (place / folder).is_symlink()]
        for name in (*names, *links):
            (place / name).unlink()
    for place in reversed(places):
        place.rmdir()
