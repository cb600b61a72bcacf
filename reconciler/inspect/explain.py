"""Explanation of one package: the inputs and stages of its render, for the current config or for an earlier commit.

This module reads Git and renders the package. The package `reconciler.output.explain` formats the explanation.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.controllers.results import ControllerResult, PackageOwner, PackageTarget, StalledVariant, Variant
from reconciler.inspect.committed_packages import (
    CommittedPackage,
    PastConfig,
    ReRenderError,
    list_packages,
    read_files,
    read_package,
)
from reconciler.inspect.local_commits import LocalCommits
from reconciler.inspect.package_history import PackageHistory, PastReader, select_targets
from reconciler.krm.findings import select_errors
from reconciler.krm.objects import Condition
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.explain.builder import format_closest_names
from reconciler.packages.update.options import MergeOptions
from reconciler.planning.attribution.explained_sources import find_explained_sources
from reconciler.planning.attribution.re_render import ReRenderedPackage, re_decide_package
from reconciler.planning.attribution.removable_layers import (
    ConfigField,
    EditOrigin,
    LocalEdit,
    RemovableLayer,
    RenderSubject,
    build_renderer_without_layer,
    rebase_files,
    remove_from_config,
    undo_edit,
)
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.target_inputs import PreparedTarget, resolve_claims
from reconciler.planning.model.outcomes import Blocked, FilesStage, PackageRender
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.model.state import TargetState
from reconciler.reconcile.pass_context import check_target_read
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import (
    BRANCH_PREFIX,
    TargetReference,
    UnknownTargetError,
    read_target_states,
)
from reconciler.reconcile.services import PassServices
from reconciler.reconcile.snapshot import PassSnapshot, PreparedPass, prepare_pass, resolve_definition_conflicts


@dataclass(frozen=True)
class PackageExplainer:
    """Renders one package from the current config and the current refs of all repositories."""

    reference: TargetReference
    snapshot: PassSnapshot
    remotes: Remotes
    services: PassServices

    def render(self, removed_layer: RemovableLayer | None = None) -> ReRenderedPackage:
        """Render the package, and keep the files after each stage of the render.

        Raises:
            UnknownTargetError: No object requests the package.
        """
        if not isinstance(removed_layer, ConfigField):
            return self._render(self.snapshot, removed_layer)
        config = self.snapshot.config
        config_object = self.snapshot.catalog.objects[removed_layer.key]
        config = replace(config, files=remove_from_config(config.files, config_object, removed_layer.path))
        catalog = resolve_definition_conflicts(self.services.read_catalog(config), config, self.remotes, self.services)
        return self._render(replace(self.snapshot, config=config, catalog=catalog), None)

    def open_commits(self, origin: EditOrigin) -> LocalCommits | None:
        """Return the local commits of the branch that contains a local change: the draft branch or the target branch.

        Return None if this branch does not exist.
        """
        (target,) = select_targets([self.reference], self.services.list_targets(self.snapshot.catalog))
        remote = self.remotes.get(target.url)
        branch = target.branch
        if origin == "draft":
            state = read_target_states([target], self.remotes, self.services.state_ref).get(target)
            record = state.packages.get(self.reference.package) if isinstance(state, TargetState) else None
            branch = record.draft_branch if record else ""
        head = remote.refs.get(BRANCH_PREFIX + branch) if remote else None
        return LocalCommits(target, remote, self.reference.package, head) if remote and head else None

    def _render(self, snapshot: PassSnapshot, removed_layer: RenderSubject | None) -> ReRenderedPackage:
        (target,) = select_targets([self.reference], self.services.list_targets(snapshot.catalog))
        # Read all targets if the config has rollouts, because the progress of a rollout depends on all clusters.
        has_rollouts = self.services.create_renderer(snapshot.catalog).cluster_overrides.rollouts
        prepared = prepare_pass(snapshot, self.remotes, self.services, only_target=None if has_rollouts else target)
        surveyed = prepared.context.survey_target(target, prepared.targets)
        folder = target.get_package_path(self.reference.package)
        package = ReRenderedPackage(str(self.reference), snapshot.config.id, snapshot.catalog.objects, folder=folder)
        if isinstance(surveyed, TargetPlan):
            return replace(package, findings=surveyed.findings)
        winners, losers = resolve_claims(surveyed.claims, surveyed.snapshot.state)
        variant = winners.get(self.reference.package)
        if variant is None:
            loser = next((loser for loser in losers if loser.variant.target.package == self.reference.package), None)
            if loser:
                return _block(package, loser.variant.owner, loser)
            return _block_stalled(package, self.reference, surveyed, prepared.controller_result)
        outcome, render = re_decide_package(variant, _prepare_render(surveyed, variant, prepared, removed_layer))
        usable_render = render if render and not select_errors(render.findings) else None
        sources = find_explained_sources(outcome.variant.source, surveyed.context.contents, snapshot.config.commit)
        package = replace(
            package, owner=variant.owner, variant=outcome.variant, rendered=usable_render, sources=sources
        )
        package = _block(package, outcome.variant.owner, outcome) if isinstance(outcome, Blocked) else package
        return replace(package, findings=(*check_target_read(target, self.remotes), *package.findings))


def _prepare_render(
    surveyed: PreparedTarget, variant: Variant, prepared: PreparedPass, removed_layer: RenderSubject | None
) -> PreparedTarget:
    """Return a copy of the target in which the render of the package of `variant` keeps its stages.

    If `removed_layer` is given, this render also omits the layer. The renders of other packages do not change.
    """
    renderer = prepared.context.renderer
    package_renderer = replace(renderer, should_keep_stages=True)
    if removed_layer:
        package_renderer = build_renderer_without_layer(package_renderer, removed_layer)

    def render(candidate: Variant, inputs: RenderInputs) -> PackageRender:
        return (package_renderer if candidate.target == variant.target else renderer)(candidate, inputs)

    return replace(surveyed, context=replace(surveyed.context, render=render))


def _block(package: ReRenderedPackage, owner: PackageOwner, blocked: Blocked | StalledVariant) -> ReRenderedPackage:
    return replace(package, owner=owner, blocked_reason=_format_reason(blocked.conditions), findings=blocked.findings)


def _block_stalled(
    package: ReRenderedPackage,
    reference: TargetReference,
    surveyed: PreparedTarget,
    controller_result: ControllerResult,
) -> ReRenderedPackage:
    package_target = PackageTarget(surveyed.target.key.namespace, reference.cluster, reference.package)
    stalled = next((stalled for stalled in controller_result.stalled if stalled.target == package_target), None)
    if stalled:
        return _block(package, stalled.owner, stalled)
    errors = select_errors(controller_result.findings)
    if not (_has_managed_package(reference, surveyed) and errors):
        raise UnknownTargetError(_describe_unknown_package(reference, surveyed))
    # Report all errors of the config, because an object with an error can be the object that requests the package. An
    # example is a PackageVariantSet whose upstream cannot be read.
    return replace(
        package,
        blocked_reason="no valid object requests the package, but an invalid object may request this package",
        findings=errors,
    )


def _format_reason(conditions: Sequence[Condition]) -> str:
    """Return reason and message of the condition that explains why a package is blocked, as `reason: message`."""
    condition = next((condition for condition in conditions if condition.type == "Ready"), conditions[-1])
    return f"{condition.reason}: {condition.message}"


def _has_managed_package(reference: TargetReference, surveyed: PreparedTarget) -> bool:
    """Return whether the state of the target records an owner of the package."""
    record = surveyed.snapshot.state.packages.get(reference.package)
    return bool(record and record.is_owned)


def _describe_unknown_package(reference: TargetReference, surveyed: PreparedTarget) -> str:
    requested = {variant.target.package for variant in surveyed.claims.variants} | surveyed.claims.stalled_packages
    names = format_closest_names(reference.package, requested)
    is_managed = _has_managed_package(reference, surveyed)
    problem = (
        f'no object requests this package any more, but "{reference.cluster}" still contains the package'
        if is_managed
        else f'no object requests this package for "{reference.cluster}"'
    )
    return f"{reference}: {problem}; requested packages: {names}"


@dataclass(frozen=True)
class PastExplainer:
    """Renders one package as it was rendered for a commit in the repository of its target."""

    package: CommittedPackage
    history: PackageHistory

    def render(self, removed_layer: RemovableLayer | None = None) -> ReRenderedPackage:
        """Render the package again with its recorded config, and keep the files after each stage of the render.

        Args:
            removed_layer: The layer to remove before the render.
        """
        package, recorded = self.package, self.package.recorded
        unrendered = ReRenderedPackage(str(package.package_target), recorded.config, {}, commit=package.commit)
        try:
            past_config = self._read_config(removed_layer)
            unrendered = replace(unrendered, sources=self.history.find_recorded_sources(package, past_config))
            re_rendered = self.history.re_render(package, past_config)
        except ReRenderError as error:
            return replace(unrendered, blocked_reason=f"the re-render is not possible: {error}")
        re_rendered = replace(re_rendered, config=recorded.config, commit=package.commit, findings=())
        # Add local changes only if a layer is removed, or if the re-render is equal to the recorded output. Otherwise,
        # the differences between the re-render and the recorded output would appear as local changes.
        if re_rendered.rendered is None or not (removed_layer or re_rendered.is_reproduced):
            return re_rendered
        return replace(re_rendered, rendered=self._add_local_changes(re_rendered.rendered, removed_layer))

    def open_commits(self, _origin: EditOrigin) -> LocalCommits:
        """Return the commits of people in the history of the package's commit."""
        package = self.package
        return LocalCommits(package.target, package.remote, package.package, package.commit)

    def _read_config(self, removed_layer: RemovableLayer | None) -> PastConfig:
        """Return the recorded config without `removed_layer`.

        If `removed_layer` is a local change after the render, return the whole recorded config, because such a change
        is not in the config.
        """
        past_config = self.history.read_config(self.package.recorded.config, [self.package])
        match removed_layer:
            case ConfigField(key=key, path=path):
                snapshot = past_config.snapshot
                files = remove_from_config(snapshot.files, past_config.catalog.objects[key], path)
                return self.history.evaluate_config(replace(snapshot, files=files), [self.package])
            case None | LocalEdit(origin="since"):
                # Do not change the config. If `removed_layer` is a local change after the render, the change is not an
                # input of the render, and `_add_local_changes` omits it.
                return past_config
            case _:
                renderer = build_renderer_without_layer(past_config.renderer, removed_layer)
                return replace(past_config, renderer=renderer)

    def _add_local_changes(self, rendered: PackageRender, removed_layer: RemovableLayer | None) -> PackageRender:
        """Return the render with the local changes of the branch.

        If `removed_layer` is a local change, the result does not contain this change.
        """
        package = self.package
        files = read_files(package.remote, package.tree) if package.is_edited and package.tree else None
        if files is None:
            return rendered
        if isinstance(removed_layer, LocalEdit) and removed_layer.origin == "since":
            files = undo_edit(files, rendered.files, removed_layer)
        elif removed_layer:
            recorded_files = read_files(package.remote, package.recorded.rendered)
            if recorded_files:
                files = rebase_files(recorded_files, rendered.files, files, MergeOptions())
            else:
                files = rendered.files
        return replace(rendered, files=files, stages=(*rendered.stages, FilesStage("since", files)))


def open_past_explainer(reference: TargetReference, at: str, past: PastReader) -> PastExplainer:
    """Return the explainer of a package at a commit of its target.

    Args:
        at: The name of the commit, for example a branch or an abbreviated commit ID.

    Raises:
        UnknownTargetError: The commit does not contain the package, or the status file of the package is invalid.
        GitError: The config, the repository or the commit cannot be read.
    """
    history = past.open([reference])
    (target,) = history.targets
    remote = history.get_remote(target)
    commit = history.resolve_commit(remote, at)
    package = read_package(target, remote, reference.package, commit)
    if isinstance(package, str):
        raise UnknownTargetError(f"{reference}: the status file at {at} is invalid: {package}")
    if package is None:
        names = format_closest_names(reference.package, list_packages(target, remote, commit))
        raise UnknownTargetError(
            f"{reference}: this package has no status file at {at}; packages with a status file: {names}"
        )
    return PastExplainer(package, history)
