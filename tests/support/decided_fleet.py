"""A fleet without Git: a real controller, real decisions and the real renderer on branches in memory.

For fleets that are too large to commit in a test. The passes share the caches of one service.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from reconciler.catalog.catalog import Catalog, ParseCache, read_catalog
from reconciler.catalog.files import CommitId, File, FileTree, TreeId, compute_blob_id
from reconciler.controllers.clusters.inventory import ClusterInventory, read_inventory
from reconciler.controllers.components.controller import reconcile_components
from reconciler.controllers.components.inputs import ComponentCache as ComponentMemory
from reconciler.controllers.components.inputs import ComponentControllerInputs as ComponentSurroundings
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.override_policies.read_policies import read_override_policies
from reconciler.controllers.plugin_presets.controller import PluginPresetCache as PresetMemory
from reconciler.controllers.plugin_presets.controller import PluginPresetInputs as PresetSurroundings
from reconciler.controllers.plugin_presets.controller import generate_plugins
from reconciler.controllers.repositories import read_repositories
from reconciler.controllers.results import ControllerResult, PackageOwner, UpstreamPackage, Variant
from reconciler.packages.update.options import MergeOptions
from reconciler.planning.decide.package_decision import DecisionInput, decide_package
from reconciler.planning.model.cluster_overrides import ClusterOverrides
from reconciler.planning.model.outcomes import Draft, PackageRender
from reconciler.planning.model.sources import RenderInputs, SourceContent
from reconciler.planning.model.state import ObservedPackage, PackageRecord, RenderedVersion
from reconciler.planning.render.renderer import PackageRenderer, RenderEngine

NO_STATUS = compute_blob_id(b"")


@dataclass
class PassSummary:
    """Result of a pass: the rendered packages, and the packages with changed drafts."""

    rendered: set[PackageLocation] = field(default_factory=set)
    drafted: set[PackageLocation] = field(default_factory=set)


class InMemoryTrees:
    """The content of trees by id. Nothing comes from an upstream."""

    def __init__(self) -> None:
        self._known: dict[TreeId, FileTree] = {}

    def store_tree(self, files: FileTree) -> TreeId:
        self._known[files.id] = files
        return files.id

    def read_tree(self, tree: TreeId) -> FileTree:
        return self._known[tree]

    def read_function_fingerprint(self, name: str) -> str:
        return ""

    def read_source(self, upstream: UpstreamPackage) -> SourceContent:
        raise AssertionError("a generated package has no upstream")

    def is_ancestor(self, upstream: UpstreamPackage, commit: CommitId) -> bool:
        raise AssertionError("a generated package has no upstream")

    def find_locked_tree(self, files: FileTree) -> TreeId | None:
        raise AssertionError("a generated package has no lock")


class ControllerStub(Protocol):
    """Runs a controller and keeps its cache between passes."""

    def __call__(self, catalog: Catalog, inventory: ClusterInventory, before: DecidedFleet) -> ControllerResult:
        """Return the result of the controller for a catalog."""
        ...


def preset_controller() -> ControllerStub:
    """Return the controller for plugin presets."""
    memory = PresetMemory()
    return lambda catalog, inventory, before: generate_plugins(catalog, inventory, PresetSurroundings(before), memory)


def component_controller() -> ControllerStub:
    """Return the controller for components."""
    memory = ComponentMemory()
    return lambda catalog, inventory, before: reconcile_components(
        catalog, inventory, ComponentSurroundings(before), memory
    )


class DecidedFleet:
    """A config whose packages each changing pass drafts. Nothing is published."""

    def __init__(self, files: Mapping[str, str], controller: ControllerStub) -> None:
        self.files = dict(files)
        self._controller = controller
        self._trees = InMemoryTrees()
        self._parsed: ParseCache = {}
        self._catalog: Catalog | None = None
        self._records: dict[PackageLocation, PackageRecord] = {}

    def run_pass(self, changes: Mapping[str, str] | None = None) -> PassSummary:
        """Change files of the config, run a pass, and return its summary."""
        self.files |= changes or {}
        tree = FileTree({path: File(text.encode()) for path, text in self.files.items()})
        catalog = self._catalog = read_catalog(tree, self._parsed, previous=self._catalog)
        inventory = read_inventory(catalog, read_repositories(catalog)[0])
        controller_result = self._controller(catalog, inventory, self)
        mile = ClusterOverrides(read_override_policies(catalog), inventory.clusters)
        return self._decide(
            controller_result.variants,
            PackageRenderer(catalog, mile, RenderEngine("safe", merge_options=MergeOptions())),
        )

    def _decide(self, variants: Iterable[Variant], renderer: PackageRenderer) -> PassSummary:
        decided = PassSummary()

        def render(variant: Variant, render_inputs: RenderInputs) -> PackageRender:
            decided.rendered.add(_unit(variant))
            return renderer(variant, render_inputs)

        for variant in variants:
            record = self._records.get(_unit(variant))
            observed_package = (
                ObservedPackage(None, record.draft_version.rendered)
                if record and record.draft_version
                else ObservedPackage()
            )
            outcome = decide_package(
                DecisionInput(variant, record, observed_package), renderer.dependency_reader, self._trees, render
            )
            if isinstance(outcome, Draft):
                decided.drafted.add(_unit(variant))
                self._records[_unit(variant)] = self._list_drafts(outcome)
            else:
                assert outcome.record is not None
                self._records[_unit(variant)] = outcome.record
        return decided

    def _list_drafts(self, draft: Draft) -> PackageRecord:
        rendered = self._trees.store_tree(draft.rendered.files)
        offer = RenderedVersion(
            rendered, NO_STATUS, draft.base_tree, draft.merged_tree, draft.plain_tree, draft.record.review_digest
        )
        return draft.record.with_draft_version(offer, "drafts")

    def get_owned_packages(self) -> Mapping[PackageLocation, PackageOwner]:
        return {unit: record.owner for unit, record in self._records.items()}

    def get_recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        return {unit: record.trace.keys() for unit, record in self._records.items()}

    def read_published(self, cluster: str) -> Mapping[str, Mapping[str, Any]]:
        return {}


def _unit(variant: Variant) -> PackageLocation:
    return variant.target.repository, variant.target.package
