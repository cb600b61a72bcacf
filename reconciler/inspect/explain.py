"""Explaining one package over real Git: everything is read as for a plan, and this package alone is rendered.

Explaining a package as it stands at a commit of its branch: made again as it was, by the config of then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.controllers.results import ControllerResult, Variant
from reconciler.controllers.results import PackageTarget as Planned
from reconciler.git.errors import RepositoryMissingError
from reconciler.inspect.past import CommittedPackage, CurrentConfig, PastConfig, PastReader, ReRenderFailure, read_files
from reconciler.inspect.verify import CommitResolver
from reconciler.krm.findings import select_errors
from reconciler.krm.objects import Condition
from reconciler.output.explain.builder import format_closest_names
from reconciler.output.explain.model import ExplainedPackage
from reconciler.packages.update import MergeOptions
from reconciler.planning.attribution.re_render import (
    ConfigField,
    LocalEdit,
    RemovableLayer,
    RenderSubject,
    ReRenderedPackage,
    ReRenderOutcome,
    build_renderer_without,
    re_decide_package,
    rebase_files,
    remove_from_config,
    undo_edit,
)
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.target_inputs import PreparedTarget, resolve_claims
from reconciler.planning.model.outcomes import Blocked, FilesStage, PackageRender
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.model.targets import Target
from reconciler.reconcile.pass_context import check_target_read
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import TargetReference, UnknownTargetError
from reconciler.reconcile.services import ConfigSource, PassServices
from reconciler.reconcile.snapshot import (
    PassSnapshot,
    PreparedPass,
    prepare_pass,
    resolve_definition_conflicts,
    take_snapshot,
)


@dataclass(frozen=True)
class PackageExplainer:
    """Explains one package, by the config and the remotes as they were found."""

    reference: TargetReference
    snapshot: PassSnapshot
    remotes: Remotes
    services: PassServices

    def explain(self) -> ExplainedPackage:
        """Return what is known of the package. Raises UnknownPlaceError when nobody wants it."""
        return self._explained(self.snapshot, None)

    def explain_without(self, layer: RemovableLayer) -> ExplainedPackage:
        """Return what would be known of it, if one layer were not there. Raises UnknownPlaceError as `explained`."""
        if not isinstance(layer, ConfigField):
            return self._explained(self.snapshot, layer)
        snapshot = self.snapshot.config
        files = remove_from_config(snapshot.files, self.snapshot.catalog.objects[layer.key], layer.path)
        changed = replace(snapshot, files=files)
        catalog = resolve_definition_conflicts(
            self.services.read_catalog(changed), changed, self.remotes, self.services
        )
        return self._explained(replace(self.snapshot, config=changed, catalog=catalog), None)

    def _explained(self, found: PassSnapshot, without: RenderSubject | None) -> ExplainedPackage:
        destination = find_target(self.reference, self.services.list_targets(found.catalog))
        # how far a rule has come is told by all clusters
        in_waves = self.services.create_renderer(found.catalog).cluster_overrides.rollouts
        begun = prepare_pass(found, self.remotes, self.services, only_target=None if in_waves else destination)
        surveyed = begun.context.survey_target(destination, begun.targets)
        folder = destination.package_path(self.reference.package)
        known = ExplainedPackage(str(self.reference), found.config.id, found.catalog.objects, folder=folder)
        if isinstance(surveyed, TargetPlan):
            return replace(known, findings=surveyed.findings)
        winners, losers = resolve_claims(surveyed.claims, surveyed.snapshot.state)
        variant = winners.get(self.reference.package)
        if variant is None:
            lost = next((one for one in losers if one.variant.target.package == self.reference.package), None)
            return _lost(known, lost) if lost else _stalled(known, self.reference, surveyed, begun.controller_result)
        made = _made(known, re_decide_package(variant, _watched(surveyed, variant, begun, without)))
        return replace(made, findings=(*check_target_read(destination, self.remotes), *made.findings))


def create_explainer(
    place: TargetReference, source: ConfigSource, remotes: Remotes, tools: PassServices
) -> PackageExplainer:
    """Read the config and fetch what it names; raises GitError without a config."""
    return PackageExplainer(place, take_snapshot(source, remotes, tools), remotes, tools)


def _watched(
    surveyed: PreparedTarget, variant: Variant, begun: PreparedPass, without: RenderSubject | None
) -> PreparedTarget:
    """Return the destination with a renderer that keeps the stages of one package, or does without a layer of it."""
    renderer = begun.context.renderer
    special = replace(renderer, should_keep_stages=True)
    special = build_renderer_without(special, without) if without else special

    def render(one: Variant, made: RenderInputs) -> PackageRender:
        return (special if one.target == variant.target else renderer)(one, made)

    return replace(surveyed, context=replace(surveyed.context, render=render))


def _made(known: ExplainedPackage, made: ReRenderOutcome) -> ExplainedPackage:
    variant, blocked = made.outcome.variant, made.outcome if isinstance(made.outcome, Blocked) else None
    usable = made.render if made.render and not select_errors(made.render.findings) else None
    return replace(
        known, owner=variant.owner, variant=variant, rendered=usable,
        blocked_reason=_words(blocked.conditions) if blocked else "", findings=blocked.findings if blocked else (),
    )  # fmt: skip


def _lost(known: ExplainedPackage, blocked: Blocked) -> ExplainedPackage:
    owner, trouble = blocked.variant.owner, _words(blocked.conditions)
    return replace(known, owner=owner, blocked_reason=trouble, findings=blocked.findings)


def _stalled(
    known: ExplainedPackage, place: TargetReference, surveyed: PreparedTarget, room: ControllerResult
) -> ExplainedPackage:
    here = surveyed.target.key.namespace
    at = Planned(here, place.cluster, place.package)
    stalled = next((one for one in room.stalled if one.target == at), None)
    if stalled is None:
        faults = select_errors(room.findings)
        if not (_is_ours(place, surveyed) and faults):
            raise UnknownTargetError(_unknown(place, surveyed))
        # whoever wants it may be what could not be read, as a set whose upstream does not answer
        return replace(known, blocked_reason="nothing wants it by what could be read", findings=faults)
    return replace(known, owner=stalled.owner, blocked_reason=_words(stalled.conditions), findings=stalled.findings)


def _words(conditions: Sequence[Condition]) -> str:
    """Return why a package is not made, by the condition that says so."""
    ready = next((one for one in conditions if one.type == "Ready"), conditions[-1])
    return f"{ready.reason}: {ready.message}"


def find_target(place: TargetReference, known: Iterable[Target]) -> Target:
    """Return the destination of a place. Raises UnknownPlaceError."""
    by_name = {one.name: one for one in known}
    if place.cluster not in by_name:
        listed = format_closest_names(place.cluster, by_name)
        raise UnknownTargetError(f"{place}: there is no Repository or cluster {place.cluster}; there are {listed}")
    return by_name[place.cluster]


def _is_ours(place: TargetReference, surveyed: PreparedTarget) -> bool:
    record = surveyed.snapshot.state.packages.get(place.package)
    return bool(record and record.owned)


def _unknown(place: TargetReference, surveyed: PreparedTarget) -> str:
    wanted = {one.target.package for one in surveyed.claims.variants} | surveyed.claims.stalled_packages
    is_ours = _is_ours(place, surveyed)
    why = "has it, and nothing wants it any more" if is_ours else "is not to have such a package"
    return f"{place}: {place.cluster} {why}; wanted there are {format_closest_names(place.package, wanted)}"


@dataclass(frozen=True)
class PastExplainer:
    """Explains one package as it stands at a commit."""

    package: CommittedPackage
    past_config: PastConfig | ReRenderFailure
    reader: PastReader
    current_config: CurrentConfig

    def explain(self) -> ExplainedPackage:
        """Return what is known of the package. Raises InterruptedFunctionError."""
        return self._explained(self.past_config)

    def explain_without(self, layer: RemovableLayer) -> ExplainedPackage:
        """Return what would have been known of it, if one layer had not been there. Raises as `explained`."""
        assert not isinstance(self.past_config, ReRenderFailure), "there are layers of what was made only"
        if not isinstance(layer, ConfigField):
            is_since = isinstance(layer, LocalEdit) and layer.origin == "since"
            renderer = (
                self.past_config.renderer if is_since else build_renderer_without(self.past_config.renderer, layer)
            )
            return self._explained(replace(self.past_config, renderer=renderer), layer)
        snapshot, one = self.past_config.snapshot, self.past_config.catalog.objects[layer.key]
        changed = replace(snapshot, files=remove_from_config(snapshot.files, one, layer.path))
        return self._explained(self.reader.evaluate_config(changed, self.current_config, [self.package]), layer)

    def _explained(self, then: PastConfig | ReRenderFailure, without: RemovableLayer | None = None) -> ExplainedPackage:
        place, recorded = str(self.package.package_target), self.package.recorded
        made = self.reader.re_render(self.package, then, self.current_config) if isinstance(then, PastConfig) else then
        if isinstance(made, ReRenderFailure):
            return ExplainedPackage(
                place, recorded.config, {}, blocked_reason=f"it cannot be made again: {made.message}"
            )
        folder = self.package.target.package_path(self.package.package)
        known = ExplainedPackage(
            place,
            recorded.config,
            made.objects,
            made.variant.owner,
            made.variant,
            commit=self.package.commit,
            folder=folder,
        )
        if not made.is_usable:
            return replace(known, blocked_reason="; ".join(one.message for one in made.rendered.findings))
        is_as_it_was = made.rendered.files.id == recorded.rendered
        return replace(
            known,
            rendered=self._edited(made, without) if without or is_as_it_was else made.rendered,
            is_reproduced=is_as_it_was,
        )

    def _edited(self, made: ReRenderedPackage, without: RemovableLayer | None) -> PackageRender:
        """Return the render with what people have made of it on the branch since, but for one layer of that."""
        told, rendered = self.package, made.rendered
        files = read_files(told.remote, told.tree) if told.is_edited and told.tree else None
        if files is None:
            return rendered
        if isinstance(without, LocalEdit) and without.origin == "since":
            files = undo_edit(files, rendered.files, without)
        elif without:
            before = read_files(told.remote, told.recorded.rendered)
            files = rebase_files(before, rendered.files, files, MergeOptions()) if before else rendered.files
        return replace(rendered, files=files, stages=(*rendered.stages, FilesStage("since", files)))


def create_past_explainer(place: TargetReference, at: str, past: PastReader, names: CommitResolver) -> PastExplainer:
    """Return who explains a package at a commit of its repository, by any name of that.

    Raises UnknownPlaceError where there is no such package, GitError without the commit.
    """

    def wants(known: Iterable[Target]) -> list[Target]:
        return [find_target(place, known)]

    opened = past.open_config(wants)
    (destination,) = opened.targets
    remote = past.get_remote(destination)
    if remote is None:
        raise RepositoryMissingError(past.describe_fetch_failure(destination))
    commit = names(remote.mirror, at)
    told = past.read_package(destination, remote, place.package, commit)
    if isinstance(told, str):
        raise UnknownTargetError(f"{place}: its status file at {at} cannot be used: {told}")
    if told is None:
        listed = format_closest_names(place.package, past.list_packages(destination, remote, commit))
        raise UnknownTargetError(f"{place}: there is no such package of ours at {at}; there are {listed}")
    told = replace(told, branch=at)
    return PastExplainer(told, past.read_config(told.recorded.config, opened, [told]), past, opened)
