"""A fleet without Git: a room, decisions and the renderer as they are, branches as values in memory.

For fleets that are too large for a test to commit. Every pass is one of a service that remembers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from reconciler.packages.update import MergeOptions
from reconciler.planning.decide import Question, decide
from reconciler.planning.last_mile import LastMile
from reconciler.planning.outcome import Draft, Rendered
from reconciler.planning.render import Engine, Renderer
from reconciler.planning.source import Ingredients
from reconciler.planning.state import Offer, PackageRecord, Seen
from reconciler.rules.clusters.inventory import Inventory, read_inventory
from reconciler.rules.composition.room import Memory as ComponentMemory
from reconciler.rules.composition.room import Surroundings as ComponentSurroundings
from reconciler.rules.composition.room import components_of
from reconciler.rules.guards import Unit
from reconciler.rules.overrides.read_policy import read_policies
from reconciler.rules.presets.room import Memory as PresetMemory
from reconciler.rules.presets.room import Surroundings as PresetSurroundings
from reconciler.rules.presets.room import presets_of
from reconciler.rules.repository import read_repositories
from reconciler.rules.variant import Owner, RoomResult, Upstream, Variant
from reconciler.snapshot.catalog import Catalog, ParseMemory, read_catalog
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import CommitId, TreeId, blob_id

NO_STATUS = blob_id(b"")


@dataclass
class Decided:
    """What a pass came to: the packages that were rendered, and those whose drafts are others now."""

    rendered: set[Unit] = field(default_factory=set)
    drafted: set[Unit] = field(default_factory=set)


class Trees:
    """The contents of trees, by id; nothing here comes from an upstream."""

    def __init__(self) -> None:
        self._known: dict[TreeId, FileTree] = {}

    def keep(self, files: FileTree) -> TreeId:
        self._known[files.id] = files
        return files.id

    def standing(self, tree: TreeId) -> FileTree:
        return self._known[tree]

    def function(self, name: str) -> str:
        return ""

    def upstream(self, upstream: Upstream) -> FileTree:
        raise AssertionError("what a room makes has no upstream")

    def is_behind(self, upstream: Upstream, commit: CommitId) -> bool:
        raise AssertionError("what a room makes has no upstream")

    def lock_tree(self, files: FileTree) -> TreeId | None:
        raise AssertionError("what a room makes has no lock")


class Room(Protocol):
    """A room of rules, which remembers what it made in the pass before."""

    def __call__(self, catalog: Catalog, inventory: Inventory, before: DecidedFleet) -> RoomResult:
        """Return what it makes of a catalog."""
        ...


def preset_room() -> Room:
    """Return the room that makes Plugins."""
    memory = PresetMemory()
    return lambda catalog, inventory, before: presets_of(catalog, inventory, PresetSurroundings(before), memory)


def component_room() -> Room:
    """Return the room that makes the packages of components."""
    memory = ComponentMemory()
    return lambda catalog, inventory, before: components_of(catalog, inventory, ComponentSurroundings(before), memory)


class DecidedFleet:
    """A config whose packages are drafted by each pass that changes them; people publish nothing."""

    def __init__(self, files: Mapping[str, str], room: Room) -> None:
        self.files = dict(files)
        self._room = room
        self._trees = Trees()
        self._parsed: ParseMemory = {}
        self._catalog: Catalog | None = None
        self._records: dict[Unit, PackageRecord] = {}

    def look(self, changes: Mapping[str, str] | None = None) -> Decided:
        """Change files of the config, run a pass, and return what it came to."""
        self.files |= changes or {}
        tree = FileTree({path: File(text.encode()) for path, text in self.files.items()})
        catalog = self._catalog = read_catalog(tree, self._parsed, before=self._catalog)
        inventory = read_inventory(catalog, read_repositories(catalog)[0])
        made = self._room(catalog, inventory, self)
        mile = LastMile(read_policies(catalog), inventory.clusters)
        return self._decided(made.variants, Renderer(catalog, mile, Engine("safe", merging=MergeOptions())))

    def _decided(self, variants: Iterable[Variant], renderer: Renderer) -> Decided:
        found = Decided()

        def render(variant: Variant, made: Ingredients) -> Rendered:
            found.rendered.add(_unit(variant))
            return renderer(variant, made)

        for variant in variants:
            record = self._records.get(_unit(variant))
            seen = Seen(None, record.put.rendered) if record and record.put else Seen()
            outcome = decide(Question(variant, record, seen), renderer.answers, self._trees, render)
            if isinstance(outcome, Draft):
                found.drafted.add(_unit(variant))
                self._records[_unit(variant)] = self._drafted(outcome)
            else:
                assert outcome.record is not None
                self._records[_unit(variant)] = outcome.record
        return found

    def _drafted(self, draft: Draft) -> PackageRecord:
        rendered = self._trees.keep(draft.rendered.files)
        offer = Offer(rendered, NO_STATUS, draft.base, draft.merged, draft.plain, draft.record.review)
        return draft.record.offered(offer, "drafts")

    def owned(self) -> Mapping[Unit, Owner]:
        return {unit: record.owner for unit, record in self._records.items()}

    def inputs(self) -> Mapping[Unit, Collection[str]]:
        return {unit: record.trace.keys() for unit, record in self._records.items()}

    def published(self, cluster: str) -> Mapping[str, Mapping[str, Any]]:
        return {}


def _unit(variant: Variant) -> Unit:
    return variant.place.repository, variant.place.package
