"""Located findings: each with the one place in the config's repository that a code scanner can show it at."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding, Where
from reconciler.krm.pointer import PointerError, parse_pointer
from reconciler.krm.yaml import Path
from reconciler.reporting.field_lines import path_of
from reconciler.reporting.findings import cause_data, finding_data, finding_lines, in_order
from reconciler.reporting.root_causes import causes_of
from reconciler.snapshot.catalog import ConfigObject


@dataclass(frozen=True)
class Located:
    """A finding, and where it is shown: a path from the repository's root, line and column counted from 1.

    `line` and `column` are 0 where they are unknown. `is_own`: it is the very file that the finding names.
    `fingerprint` stays as it is when lines move, or words change.
    """

    finding: Finding
    path: str
    line: int
    column: int
    fingerprint: str
    is_own: bool = True


@dataclass(frozen=True)
class Spot:
    """A place in the config: a file by its path in there, line and column."""

    file: str
    line: int = 0
    column: int = 0
    is_own: bool = True


class Places:
    """Where findings are in a config of these objects, down to the column of a field.

    `makers` name by owner, as `Kind/namespace/name`, the object that made it: of a PackageVariant its set.
    """

    def __init__(self, objects: Iterable[ConfigObject], makers: Mapping[str, str] | None = None) -> None:
        self._makers = makers or {}
        self._in_file: dict[tuple[str, str], list[ConfigObject]] = {}
        self._by_name: dict[str, ConfigObject] = {}
        for one in objects:
            self._in_file.setdefault((one.file, str(one.key)), []).append(one)
            self._by_name.setdefault(str(one.key), one)

    def of(self, where: Where) -> Spot | None:
        """Return where in the config a finding is: in its own object, or in that which asks for the package."""
        if found := self._in_file.get((where.file, where.object)):
            return _in_object(found, where)
        if where.file and not where.package:
            return Spot(where.file, where.line)
        # of what lies in a package the config has no lines but those of whoever asks for it
        name = where.owner if where.package else where.object
        asking = self._by_name.get(self._makers.get(name, name))
        return Spot(asking.file, *asking.place_of(()), is_own=False) if asking else None


def locate(findings: Iterable[Finding], places: Places, root: str, elsewhere: str) -> list[Located]:
    """Return the findings in their order, each at a path of the repository in which the config is the folder `root`.

    What is in no file of the config, such as an address of the settings, is shown at `elsewhere`.
    """
    return list(_located(findings, places, root, elsewhere))


def _located(findings: Iterable[Finding], places: Places, root: str, elsewhere: str) -> Iterator[Located]:
    seen: Counter[tuple[str, ...]] = Counter()
    for one in in_order(findings):
        spot = places.of(one.where)
        path = posixpath.join(root, spot.file) if spot else elsewhere
        name = (one.code, path, one.where.object, one.where.pointer, one.where.package, one.where.owner)
        seen[name] += 1
        # of several alike at one field the second stays the second
        fingerprint = digest([*name, seen[name]]).removeprefix("sha256:")
        line, column, is_own = (spot.line, spot.column, spot.is_own) if spot else (0, 0, False)
        yield Located(one, path, line, column, fingerprint, is_own)


def located_lines(located: Iterable[Located]) -> list[str]:
    """Return the findings as people read them, one on a line, with the lines of their fields."""
    return finding_lines(map(_exact, located))


def located_data(located: Iterable[Located]) -> list[dict[str, Any]]:
    """Return the findings as JSON data, with the lines of their fields; `column` counts from 1, as `line` does."""
    listed = list(located)
    exact = {one.finding: _exact(one) for one in listed}
    causes = causes_of(exact)
    return [_data(one) | cause_data(exact[causes[one.finding]] if one.finding in causes else None) for one in listed]


def _data(one: Located) -> dict[str, Any]:
    column = {"column": one.column} if one.column and one.is_own else {}
    return {**finding_data(_exact(one)), **column, "fingerprint": one.fingerprint}


def _exact(one: Located) -> Finding:
    where = one.finding.where
    return replace(one.finding, where=replace(where, line=one.line)) if one.is_own else one.finding


def _in_object(found: list[ConfigObject], where: Where) -> Spot:
    # of copies in one file that which begins above the line
    above = [one for one in found if one.line <= where.line] or found[:1]
    one = max(above, key=lambda each: each.line)
    line, column = one.place_of(_path(one.data, where.pointer))
    # comments above an object are the first of its lines
    is_told = where.line > one.line and not where.pointer
    return Spot(where.file, where.line, 1) if is_told else Spot(where.file, line, column)


def _path(data: Any, pointer: str) -> Path:
    """Return the path of a pointer, or of a field as messages spell it; as far as it is there."""
    if not pointer.startswith("/"):
        return path_of(data, pointer) or ()
    path: list[str | int] = []
    for segment in _segments(pointer):
        if isinstance(data, Mapping) and segment in data:
            path.append(segment)
            data = data[segment]
        elif isinstance(data, list) and segment.isdecimal() and int(segment) < len(data):
            path.append(int(segment))
            data = data[int(segment)]
        else:
            break
    return tuple(path)


def _segments(pointer: str) -> tuple[str, ...]:
    try:
        return parse_pointer(pointer)
    except PointerError:
        return ()
