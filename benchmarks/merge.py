"""Cost of merging and rendering by package, relative to the time in which libyaml reads the same bytes.

    python benchmarks/merge.py PACKAGES             every package below a folder, unchanged and edited on both sides
    python benchmarks/merge.py PACKAGES --profile   a profile of the merges

Every package has upstream and local changes (tests/real/line_edits.py). `C parse` is the event loop of libyaml over the
merged files on all three sides. The other columns are multiples of it: medians of rounds in one process, which are
meaningful on a busy machine. `cold` starts with empty caches, `warm` with the parsed files.
"""

from __future__ import annotations

import cProfile
import pstats
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import yaml
from yaml._yaml import CParser

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from reconciler.catalog.files import File, FileTree  # noqa: E402
from reconciler.krm.merge3 import merge3  # noqa: E402
from reconciler.krm.schema import load_builtin_merge_schemas  # noqa: E402
from reconciler.krm.yaml import Document, compose, parse_yaml  # noqa: E402
from reconciler.packages import parsing  # noqa: E402
from reconciler.packages.pipeline import render_pipelines  # noqa: E402
from reconciler.packages.update.options import MergeOptions  # noqa: E402
from reconciler.packages.update.three_way import update_package  # noqa: E402
from tests.real.line_edits import Side, applied, generate_edits  # noqa: E402

OPTIONS = MergeOptions()
COLUMNS = ("parse", "merge, cold", "merge, warm", "merge untouched", "render, cold")


@dataclass(frozen=True)
class Package:
    """A package: its original upstream version, its new upstream version, and its local version."""

    name: str
    origin: FileTree
    updated: FileTree
    local: FileTree

    @property
    def merged(self) -> list[bytes]:
        """The files that both sides changed, on all three sides."""
        sides = (self.origin, self.updated, self.local)
        paths = [path for path in self.origin if len({side.get(path) for side in sides}) == len(sides)]
        return [side[path].data for path in paths if path.endswith(".yaml") for side in sides if path in side]

    @property
    def documents(self) -> Iterator[tuple[Document, Document, Document]]:
        """Every document with the same location and different content on all sides."""
        for path in self.origin:
            if path.endswith(".yaml") and path in self.updated and path in self.local:
                sides = (parse_yaml(side[path].data).documents for side in (self.origin, self.updated, self.local))
                yield from (three for three in zip(*sides, strict=False) if len({item.text for item in three}) == 3)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--rounds", default=15, show_default=True)
@click.option("--profile", is_flag=True, help="Show where the time of merging goes.")
def main(folder: Path, rounds: int, profile: bool) -> None:
    """Measure merges and renders of all packages below FOLDER."""
    packages = [_package(folder, file.parent) for file in sorted(folder.rglob("Kptfile"))]
    click.echo("| package | files | KiB merged | C parse, ms | " + " | ".join(COLUMNS) + " | read when untouched |")
    click.echo("|---|" + "---:|" * (4 + len(COLUMNS)))
    rows = [_measure(package, rounds) for package in packages]
    for package, row in zip(packages, rows, strict=True):
        click.echo(
            _line(
                package.name, len(package.origin), sum(map(len, package.merged)), row, _count_parsed_documents(package)
            )
        )
    whole = [sum(values) for values in zip(*rows, strict=True)]
    sizes = (sum(len(package.origin) for package in packages), sum(len(data) for p in packages for data in p.merged))
    click.echo(_line("all", *sizes, whole, sum(map(_count_parsed_documents, packages))))
    click.echo(_documents(packages, rounds))
    if profile:
        _profile(packages)


def _package(folder: Path, place: Path) -> Package:
    files = {
        path.relative_to(place).as_posix(): path.read_text() for path in sorted(place.rglob("*")) if path.is_file()
    }
    name = place.relative_to(folder).as_posix()
    edits = generate_edits(files, name)
    trees = (applied(files, side) for side in (Side(), edits.second, edits.people))
    return Package(name, *(FileTree({path: File(text.encode()) for path, text in tree.items()}) for tree in trees))


def _measure(package: Package, rounds: int) -> list[float]:
    """Return the seconds of libyaml, and the seconds of each column."""
    work: tuple[Callable[[], object], ...] = (
        lambda: [read_events(data) for data in package.merged],
        lambda: [parse_yaml(data) for data in package.merged],
        lambda: (clear_caches(), _merge(package)),
        lambda: _merge(package),
        lambda: update_package(package.origin, package.updated, package.origin, "resource-merge", OPTIONS),
        lambda: (clear_caches(), render_pipelines(package.updated)),
    )
    return medians(work, rounds)


def medians(work: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Return the median seconds of each function. They run in turns, so that a slow machine affects all of them."""
    times: list[list[float]] = [[] for _ in work]
    for _ in range(rounds):
        for item, spent in zip(work, times, strict=True):
            began = time.process_time()
            item()
            spent.append(time.process_time() - began)
    return [statistics.median(spent) for spent in times]


def _merge(package: Package) -> object:
    return update_package(package.origin, package.updated, package.local, "resource-merge", OPTIONS)


def read_events(data: bytes) -> None:
    """Read a file with libyaml and drop the events."""
    parser = CParser(data)
    while not isinstance(parser.get_event(), yaml.StreamEndEvent):
        pass


def clear_caches() -> None:
    """Clear the caches of files and edits."""
    for cache in vars(parsing).values():
        if hasattr(cache, "cache_clear"):
            cache.cache_clear()


def _count_parsed_documents(package: Package) -> int:
    """Return the number of parsed documents for a variant without local changes."""
    clear_caches()
    with _counting() as read:
        update_package(package.origin, package.updated, package.origin, "resource-merge", OPTIONS)
    return len(read)


@contextmanager
def _counting() -> Iterator[list[object]]:
    read: list[object] = []
    original = compose.CParser
    compose.CParser = lambda text: (read.append(text), original(text))[1]
    yield read
    compose.CParser = original


def _line(name: str, files: int, size: int, row: list[float], reads: int) -> str:
    unit, *rest = row
    ratios = " | ".join(f"{value / unit:.1f}" if unit > 1e-6 else "" for value in rest)
    return f"| {name} | {files} | {size / 1024:.1f} | {unit * 1000:.2f} | {ratios} | {reads} |"


def _documents(packages: list[Package], rounds: int) -> str:
    values = [_document(three, rounds) for package in packages for three in package.documents]
    merges = [merge for _, merge in values]
    ratio = statistics.median(merge / unit for unit, merge in values)
    return (
        f"\n{len(values)} documents with changes on both sides: {statistics.median(merges) * 1000:.2f} ms to merge one"
        f" parsed document at the median, {max(merges) * 1000:.2f} ms at most; {ratio:.1f} times its C parse"
    )


def _document(sides: tuple[Document, Document, Document], rounds: int) -> list[float]:
    """Return the seconds of libyaml for the three sides of a document, and the seconds of their merge."""
    shape = load_builtin_merge_schemas().find_schema(str(sides[2].data["apiVersion"]), str(sides[2].data["kind"]))
    texts = [document.text.encode() for document in sides]
    return medians((lambda: [read_events(text) for text in texts], lambda: merge3(*sides, shape)), rounds)


def _profile(packages: list[Package]) -> None:
    profiler = cProfile.Profile()
    with profiler:
        for package in packages:
            clear_caches()
            _merge(package)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
