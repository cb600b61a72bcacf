"""Explanation of one package: the inputs and stages of its render, for the current config or for an earlier commit.

This module reads Git and renders the package. The package `reconciler.output.explain` formats the explanation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.controllers.results import ControllerResult, PackageTarget, Variant
from reconciler.git.errors import RepositoryMissingError
from reconciler.inspect.committed_packages import (
    CommittedPackage,
    CurrentConfig,
    PastConfig,
    PastReader,
    ReRenderFailure,
    read_files,
)
from reconciler.inspect.verify import CommitResolver
from reconciler.krm.findings import select_errors
from reconciler.krm.objects import Condition
from reconciler.lazy_dataclasses import dataclass, replace
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
    build_renderer_without_layer,
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
    """Explains how one package is rendered from the current config and the current refs of all repositories."""

    reference: TargetReference
    snapshot: PassSnapshot
    remotes: Remotes
    services: PassServices

    def explain(self) -> ExplainedPackage:
        """Render the package, and return the explanation with the files after each stage of the render.

        Raises:
            UnknownTargetError: No object requests the package.
        """
        return self._explain(self.snapshot, None)

    def explain_without(self, layer: RemovableLayer) -> ExplainedPackage:
        """Render the package as if one layer did not exist, and return the explanation.

        Raises:
            UnknownTargetError: No object requests the package after the removal of the layer.
        """
        if not isinstance(layer, ConfigField):
            return self._explain(self.snapshot, layer)
        config = self.snapshot.config
        files = remove_from_config(config.files, self.snapshot.catalog.objects[layer.key], layer.path)
        config = replace(config, files=files)
        catalog = resolve_definition_conflicts(self.services.read_catalog(config), config, self.remotes, self.services)
        return self._explain(replace(self.snapshot, config=config, catalog=catalog), None)

    def _explain(self, snapshot: PassSnapshot, removed_layer: RenderSubject | None) -> ExplainedPackage:
        target = find_target(self.reference, self.services.list_targets(snapshot.catalog))
        # Read all targets if the config has rollouts, because the progress of a rollout depends on all clusters.
        has_rollouts = self.services.create_renderer(snapshot.catalog).cluster_overrides.rollouts
        prepared = prepare_pass(snapshot, self.remotes, self.services, only_target=None if has_rollouts else target)
        surveyed = prepared.context.survey_target(target, prepared.targets)
        folder = target.get_package_path(self.reference.package)
        explained = ExplainedPackage(str(self.reference), snapshot.config.id, snapshot.catalog.objects, folder=folder)
        if isinstance(surveyed, TargetPlan):
            return replace(explained, findings=surveyed.findings)
        winners, losers = resolve_claims(surveyed.claims, surveyed.snapshot.state)
        variant = winners.get(self.reference.package)
        if variant is None:
            loser = next((loser for loser in losers if loser.variant.target.package == self.reference.package), None)
            if loser:
                return _add_blocked_variant(explained, loser)
            return _add_stalled_variant(explained, self.reference, surveyed, prepared.controller_result)
        outcome = re_decide_package(variant, _prepare_render(surveyed, variant, prepared, removed_layer))
        explained = _add_outcome(explained, outcome)
        return replace(explained, findings=(*check_target_read(target, self.remotes), *explained.findings))


def create_explainer(
    reference: TargetReference, source: ConfigSource, remotes: Remotes, services: PassServices
) -> PackageExplainer:
    """Read the config, fetch the repositories of the config, and return the explainer of a package.

    Raises:
        GitError: The config cannot be read.
    """
    return PackageExplainer(reference, take_snapshot(source, remotes, services), remotes, services)


def _prepare_render(
    surveyed: PreparedTarget, variant: Variant, prepared: PreparedPass, removed_layer: RenderSubject | None
) -> PreparedTarget:
    """Return the target with a renderer that stores the stages of one package and can omit a layer of this package."""
    renderer = prepared.context.renderer
    package_renderer = replace(renderer, should_keep_stages=True)
    if removed_layer:
        package_renderer = build_renderer_without_layer(package_renderer, removed_layer)

    def render(candidate: Variant, inputs: RenderInputs) -> PackageRender:
        return (package_renderer if candidate.target == variant.target else renderer)(candidate, inputs)

    return replace(surveyed, context=replace(surveyed.context, render=render))


def _add_outcome(explained: ExplainedPackage, re_decided: ReRenderOutcome) -> ExplainedPackage:
    outcome, render = re_decided.outcome, re_decided.render
    usable_render = render if render and not select_errors(render.findings) else None
    explained = replace(explained, owner=outcome.variant.owner, variant=outcome.variant, rendered=usable_render)
    if not isinstance(outcome, Blocked):
        return explained
    return replace(explained, blocked_reason=_format_reason(outcome.conditions), findings=outcome.findings)


def _add_blocked_variant(explained: ExplainedPackage, blocked: Blocked) -> ExplainedPackage:
    return replace(
        explained,
        owner=blocked.variant.owner,
        blocked_reason=_format_reason(blocked.conditions),
        findings=blocked.findings,
    )


def _add_stalled_variant(
    explained: ExplainedPackage,
    reference: TargetReference,
    surveyed: PreparedTarget,
    controller_result: ControllerResult,
) -> ExplainedPackage:
    package_target = PackageTarget(surveyed.target.key.namespace, reference.cluster, reference.package)
    stalled = next((stalled for stalled in controller_result.stalled if stalled.target == package_target), None)
    if stalled:
        return replace(
            explained,
            owner=stalled.owner,
            blocked_reason=_format_reason(stalled.conditions),
            findings=stalled.findings,
        )
    errors = select_errors(controller_result.findings)
    if not (_has_managed_package(reference, surveyed) and errors):
        raise UnknownTargetError(_describe_unknown_package(reference, surveyed))
    # Report all errors of the config, because an object with an error can be the object that requests the package. An
    # example is a PackageVariantSet whose upstream cannot be read.
    return replace(
        explained,
        blocked_reason="no object without errors requests the package; an object with an error can request it",
        findings=errors,
    )


def _format_reason(conditions: Sequence[Condition]) -> str:
    """Return reason and message of the condition that explains why a package is blocked, as `reason: message`."""
    condition = next((condition for condition in conditions if condition.type == "Ready"), conditions[-1])
    return f"{condition.reason}: {condition.message}"


def find_target(reference: TargetReference, targets: Iterable[Target]) -> Target:
    """Return the target that a reference names.

    Raises:
        UnknownTargetError: No target has the name in the reference.
    """
    by_name = {target.name: target for target in targets}
    if reference.cluster not in by_name:
        names = format_closest_names(reference.cluster, by_name)
        raise UnknownTargetError(
            f"{reference}: there is no Repository or cluster {reference.cluster}; existing names: {names}"
        )
    return by_name[reference.cluster]


def _has_managed_package(reference: TargetReference, surveyed: PreparedTarget) -> bool:
    """Return whether the state of the target records an owner of the package."""
    record = surveyed.snapshot.state.packages.get(reference.package)
    return bool(record and record.is_owned)


def _describe_unknown_package(reference: TargetReference, surveyed: PreparedTarget) -> str:
    requested = {variant.target.package for variant in surveyed.claims.variants} | surveyed.claims.stalled_packages
    names = format_closest_names(reference.package, requested)
    is_managed = _has_managed_package(reference, surveyed)
    problem = (
        f"no object requests this package any more, but {reference.cluster} still contains it"
        if is_managed
        else f"no object requests this package for {reference.cluster}"
    )
    return f"{reference}: {problem}; requested packages: {names}"


@dataclass(frozen=True)
class PastExplainer:
    """Explains how one package was rendered, for a commit in the repository of its target."""

    package: CommittedPackage
    past_config: PastConfig | ReRenderFailure
    reader: PastReader
    current_config: CurrentConfig

    def explain(self) -> ExplainedPackage:
        """Render the package again with its recorded config, and return the explanation.

        Raises:
            InterruptedFunctionError: A function of the package did not finish.
        """
        return self._explain(self.past_config)

    def explain_without(self, layer: RemovableLayer) -> ExplainedPackage:
        """Render the package again with its recorded config, but as if one layer did not exist.

        Raises:
            InterruptedFunctionError: A function of the package did not finish.
        """
        assert not isinstance(self.past_config, ReRenderFailure), (
            "explain_without() requires a package that can be re-rendered"
        )
        if isinstance(layer, ConfigField):
            snapshot = self.past_config.snapshot
            config_object = self.past_config.catalog.objects[layer.key]
            snapshot = replace(snapshot, files=remove_from_config(snapshot.files, config_object, layer.path))
            past_config = self.reader.evaluate_config(snapshot, self.current_config, [self.package])
            return self._explain(past_config, layer)
        if isinstance(layer, LocalEdit) and layer.origin == "since":
            # Do not change the render, because a local change that is newer than the render is not part of the render.
            return self._explain(self.past_config, layer)
        renderer = build_renderer_without_layer(self.past_config.renderer, layer)
        return self._explain(replace(self.past_config, renderer=renderer), layer)

    def _explain(
        self, past_config: PastConfig | ReRenderFailure, removed_layer: RemovableLayer | None = None
    ) -> ExplainedPackage:
        name, recorded = str(self.package.package_target), self.package.recorded
        re_rendered = (
            self.reader.re_render(self.package, past_config, self.current_config)
            if isinstance(past_config, PastConfig)
            else past_config
        )
        if isinstance(re_rendered, ReRenderFailure):
            reason = f"the re-render is not possible: {re_rendered.message}"
            return ExplainedPackage(name, recorded.config, {}, blocked_reason=reason)
        explained = ExplainedPackage(
            name,
            recorded.config,
            re_rendered.objects,
            re_rendered.variant.owner,
            re_rendered.variant,
            commit=self.package.commit,
            folder=self.package.target.get_package_path(self.package.package),
        )
        if not re_rendered.is_usable:
            reason = "; ".join(finding.message for finding in re_rendered.rendered.findings)
            return replace(explained, blocked_reason=reason)
        is_reproduced = re_rendered.rendered.files.id == recorded.rendered
        # Add local changes only to the recorded output, or to a re-render without a layer. Otherwise, differences of
        # the re-render would appear as local changes.
        has_edits = bool(removed_layer) or is_reproduced
        rendered = self._add_local_changes(re_rendered, removed_layer) if has_edits else re_rendered.rendered
        return replace(explained, rendered=rendered, is_reproduced=is_reproduced)

    def _add_local_changes(self, re_rendered: ReRenderedPackage, removed_layer: RemovableLayer | None) -> PackageRender:
        """Return the render with the local changes of the branch, except for a removed local change."""
        package, rendered = self.package, re_rendered.rendered
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


def create_past_explainer(
    reference: TargetReference, at: str, past: PastReader, resolve_commit: CommitResolver
) -> PastExplainer:
    """Return the explainer of a package at a commit of its target.

    Args:
        reference: The names of the target and of the package.
        at: The name of the commit, for example a branch or an abbreviated commit ID.
        past: The reader of committed packages.
        resolve_commit: Returns the ID of the commit with the name `at` in the repository of the target.

    Raises:
        UnknownTargetError: The commit does not contain the package, or the status file of the package is invalid.
        GitError: The config, the repository or the commit cannot be read.
    """

    def select_target(targets: Iterable[Target]) -> list[Target]:
        return [find_target(reference, targets)]

    current_config = past.open_config(select_target)
    (target,) = current_config.targets
    remote = past.get_remote(target)
    if remote is None:
        raise RepositoryMissingError(past.describe_fetch_failure(target))
    commit = resolve_commit(remote.mirror, at)
    package = past.read_package(target, remote, reference.package, commit)
    if isinstance(package, str):
        raise UnknownTargetError(f"{reference}: the status file at {at} is invalid: {package}")
    if package is None:
        names = format_closest_names(reference.package, past.list_packages(target, remote, commit))
        raise UnknownTargetError(
            f"{reference}: this package has no status file at {at}; packages with a status file: {names}"
        )
    package = replace(package, branch=at)
    past_config = past.read_config(package.recorded.config, current_config, [package])
    return PastExplainer(package, past_config, past, current_config)
