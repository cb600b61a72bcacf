"""Explaining a package: the steps that led to each value, first to last, whoever made them.

What a value's steps are is data here; their words are in `explain_words`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from posixpath import basename, dirname
from typing import Any

from reconciler.krm.pointer import PointerError, parse_pointer
from reconciler.packages.kptfile import KPTFILE
from reconciler.planning.outcome import Rendered
from reconciler.planning.trail import trail_of
from reconciler.reporting.explain_page import Page, UnmadePage, name_of, unmade_pages
from reconciler.reporting.explain_steps import Teller
from reconciler.reporting.explanation import Explained, Explanation, NothingToExplainError, Value
from reconciler.reporting.templates import children_data
from reconciler.rules.presets.layers import LAYERS, Layer
from reconciler.rules.presets.model import GROUP, PLUGIN
from reconciler.snapshot.files import FileTree

_NAMED = 20


def explain(explained: Explained, resource: str = "", place: str = "") -> Explanation:
    """Return what led to the values of a package, of one resource, `Kind/name` or `Kind/namespace/name`, or of a place.

    Of a whole package, what is as its source has it is left out. The place is a JSON pointer, or the name of an option
    of a Plugin. Raises NothingToExplainError.
    """
    book, layers = _Book(explained), _ordering(explained)
    if not resource or not book.pages:
        told = tuple(one for page in book.pages for one in page.values if not one.is_plain)
        return Explanation(explained, told, layers, book.children)
    pages = book.named(resource)
    values = tuple(one for page in pages for one in page.values)
    if not place:
        names = {one.resource for one in pages}
        children = tuple(one for one in book.children if one["resource"] in names)
        return Explanation(explained, values, layers, children, resource)
    found = _at(values, _wanted(values, place, explained))
    if not found:
        raise NothingToExplainError(_nothing_at(explained, values, resource, place))
    return Explanation(explained, found, layers, about=resource)


def _wanted(values: Sequence[Value], place: str, explained: Explained) -> str:
    """Return the pointer of a place, which may be the name of an option."""
    pointer = next((one.pointer for one in values if one.option == place), place)
    try:
        parse_pointer(pointer.partition("!")[0] if pointer.startswith("/") or not _ordering(explained) else "")
    except PointerError as error:
        raise NothingToExplainError(f"{explained.place}: {error}") from error
    return pointer


def _at(values: Iterable[Value], pointer: str) -> tuple[Value, ...]:
    """Return the values at a pointer and below it; where there are none, the one that it is in."""
    known = tuple(values)
    found = tuple(one for one in known if _is_at(one.pointer, pointer))
    return found or tuple(one for one in known if _is_at(pointer, one.pointer) and one.has_more)[-1:]


def _is_at(one: str, other: str) -> bool:
    """Tell whether a pointer is another or leads below it."""
    return one == other or one.startswith((f"{other}/", f"{other}!/"))


def _nothing_at(explained: Explained, values: Sequence[Value], resource: str, place: str) -> str:
    options = [one.option for one in values if one.option]
    pointers = [one.pointer for one in values]
    known = pointers if place.startswith("/") or not options else options
    return f"{explained.place}: {resource} has nothing at {place}; it has {alike_first(place, known)}"


def _ordering(explained: Explained) -> tuple[Layer, ...]:
    owner = explained.owner
    return LAYERS if owner and (owner.key.group, owner.key.kind) == (GROUP, PLUGIN) else ()


def alike_first(wanted: str, names: Iterable[str]) -> str:
    """Return the names that there are, those that look like the wanted one first; "none" without any."""
    ranked = sorted(set(names), key=lambda one: (-SequenceMatcher(None, wanted, one).ratio(), one))
    more = f" and {len(ranked) - _NAMED} more" if len(ranked) > _NAMED else ""
    return f"{', '.join(ranked[:_NAMED])}{more}" if ranked else "none"


class _Book:
    """What there is to tell of a package: a page for each of its resources, those that are gone included."""

    def __init__(self, explained: Explained) -> None:
        self._explained = explained

    @cached_property
    def pages(self) -> tuple[Page | UnmadePage, ...]:
        """The pages, in the order of the package's files."""
        one = self._explained
        if one.variant is None:
            return ()
        if one.rendered is None:
            # it was not made: what its room says of the values that it was to have is all there is
            return unmade_pages(Teller(one, one.variant, Rendered(FileTree()), {}))
        tracks = trail_of(one.rendered)
        kptfiles = {dirname(track.place[0]): track for track in tracks if basename(track.place[0]) == KPTFILE}
        teller = Teller(one, one.variant, one.rendered, kptfiles, {name_of(track): track for track in tracks})
        return tuple(Page(track, teller) for track in tracks)

    @cached_property
    def children(self) -> tuple[Mapping[str, Any], ...]:
        """The children whose templates were merged, or would be."""
        templates = self._explained.rendered.templates if self._explained.rendered else None
        return tuple(children_data(templates.effects if templates else ()))

    def named(self, asked: str) -> tuple[Page | UnmadePage, ...]:
        """Return the pages of the resources that are asked for, as `Kind/name` or `Kind/namespace/name`."""
        found = tuple(one for one in self.pages if asked in (one.resource, _without_namespace(one.resource)))
        if not found:
            listed = alike_first(asked, (one.resource for one in self.pages))
            raise NothingToExplainError(f"{self._explained.place} has no resource {asked}; it has {listed}")
        return found


def _without_namespace(resource: str) -> str:
    kind, _, name = resource.split("/", 2)
    return f"{kind}/{name}"
