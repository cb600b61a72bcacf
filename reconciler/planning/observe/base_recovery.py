"""Recovery of the merge base of a package after the state was lost.

This module is for packages whose source is a download or a render, because Git does not contain the merge base of such
a package. The merge base is rendered again from the inputs in the status file of the package. The resulting Git tree
must be the tree in the status file. Otherwise, a merge would treat the differences between both trees as local changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from reconciler.catalog.files import FileTree, TreeId
from reconciler.controllers.results import ACCEPT_BASE, UpstreamPackage, Variant, read_upstream_status
from reconciler.krm.internal_errors import InternalFailure, ScopeFailedError, isolation_boundary
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.artifacts import ArtifactVersion
from reconciler.planning.model.sources import PackageContentStore, SourceContent, SourceFailedError
from reconciler.planning.render.held_resources import restore_held_resources

# The fields of a chart request, by their name in `inputs.source` of a status file.
_REQUEST_FIELDS = {"releaseName": "release_name", "namespace": "namespace", "kubeVersion": "kube_version"}

RecordedVariantFinder = Callable[[str, Variant], Variant | str]
"""Returns the variant that an earlier config requests for the package and the owner of a current variant.

The first argument is the ID of the config. If the variant is unknown, the result is the reason as a part of a sentence.
"""


def find_no_variant(config: str, variant: Variant) -> str:
    """Return the message that an earlier config cannot be read, so that its variant is unknown.

    This function is the default `RecordedVariantFinder`. It never reads a config.
    """
    return f"config {config} cannot be read"


@dataclass(frozen=True)
class RecoveryInputs:
    """The data that the recovery of a merge base reads, in addition to the snapshot of a target.

    Attributes:
        hold_kinds: The kinds of resources that stay in a package until a person confirms their deletion.
    """

    contents: PackageContentStore
    hold_kinds: Collection[str]
    find_recorded_variant: RecordedVariantFinder


@dataclass(frozen=True)
class RecoveredBase:
    """The recovered source of a package version on a branch.

    Attributes:
        base: The source without local changes.
        merged: The source with all local changes.
        upstream: The summary of the upstream for commit trailers.
        release: The releases of all charts.
    """

    base: TreeId
    merged: TreeId
    upstream: str
    release: str


@dataclass(frozen=True)
class UnavailableBase:
    """The reason why the base of a package cannot be recovered, with the next steps.

    `failure` is the unexpected exception that is the reason. None for other reasons.
    """

    message: str
    failure: InternalFailure | None = None


@dataclass(frozen=True)
class _RecordedInputs:
    """The fields of a status file that describe the base and its render.

    Attributes:
        config: The ID of the config.
        upstream: The upstream in the format of `UpstreamPackage.pin`.
        options: Maps the name of each source to its render options. A single source has the name "".
        dependencies: Maps the name of each source with a chart to the charts that this chart requires, with their
            versions.
        engine: The program that rendered the base, such as "helm/3.22 sha256:…". "" if it is not recorded.
    """

    base: TreeId
    merged: TreeId
    rendered: TreeId
    config: str
    upstream: Mapping[str, Any]
    options: Mapping[str, Mapping[str, Any]]
    dependencies: Mapping[str, Mapping[str, ArtifactVersion]]
    engine: str

    @classmethod
    def from_status(cls, status: Mapping[str, Any]) -> _RecordedInputs:
        """Read a status file. Raises KeyError, TypeError or AttributeError if it is not valid."""
        trees, inputs, upstream = status["trees"], status["inputs"], status["upstream"]["to"]
        source = inputs["source"]
        options = {"": source, **{entry["name"]: entry for entry in source.get("sources", ())}}
        packages = {"": upstream, **{entry["name"]: entry for entry in upstream.get("sources", ())}}
        return cls(
            TreeId(trees["base"]), TreeId(trees["merged"]), TreeId(trees["rendered"]), inputs["config"],
            read_upstream_status(upstream), options,
            {name: _read_dependencies(package) for name, package in packages.items()},
            "/".join(source.get("engine", {}).values()),
        )  # fmt: skip

    def restore_upstream(self, source: UpstreamPackage) -> UpstreamPackage | None:
        """Return a copy of `source` with the recorded versions and options, and with unchanged chart values.

        Return None if the recorded upstream had different sources.
        """
        pinned = source.pin(self.upstream)
        if pinned is None or not pinned.sources:
            return self._restore_options(pinned, "") if pinned else None
        sources = tuple(
            replace(entry, upstream=self._restore_options(entry.upstream, entry.name)) for entry in pinned.sources
        )
        return replace(pinned, sources=sources)

    def _restore_options(self, upstream: UpstreamPackage, name: str) -> UpstreamPackage:
        if upstream.chart is None:
            return upstream
        options, versions = self.options.get(name, {}), self.dependencies.get(name, {})
        fields: dict[str, Any] = {field: options[key] for key, field in _REQUEST_FIELDS.items() if key in options}
        dependencies = tuple(
            replace(dependency, version=versions.get(dependency.name, dependency.version))
            for dependency in upstream.chart_dependencies
        )
        request = replace(upstream.chart, **fields, api_versions=tuple(options.get("apiVersions", ())))
        return replace(upstream, chart=request, chart_dependencies=dependencies)

    def has_same_values(self, upstream: UpstreamPackage) -> bool:
        """Return whether all charts have the recorded values."""
        charts = [source for source in upstream.named_packages if source.upstream.chart]
        return all(
            self.options.get(chart.name, {}).get("valuesDigest") == chart.upstream.values.digest for chart in charts
        )


def _read_dependencies(upstream: Mapping[str, Any]) -> dict[str, ArtifactVersion]:
    return {
        entry["name"]: ArtifactVersion(entry["version"], entry["digest"]) for entry in upstream.get("dependencies", ())
    }


@dataclass(frozen=True)
class _BaseRender:
    """A render of the base.

    Attributes:
        content: The rendered source. None if it cannot be rendered.
        files: The rendered files with the resources that are held in the package. None if there is no content.
        error: The reason why the source cannot be rendered, or "".
    """

    upstream: UpstreamPackage
    content: SourceContent | None = None
    files: FileTree | None = None
    error: str = ""


def recover_base(
    variant: Variant, source: UpstreamPackage, status: Mapping[str, Any], tree: TreeId, inputs: RecoveryInputs
) -> RecoveredBase | UnavailableBase:
    """Return the merge base that a status file refers to.

    The source is rendered with the current values. If the result is not the recorded base, the source is rendered again
    with the values of the recorded config.

    Args:
        source: The upstream of the variant.
        tree: The package on the branch of the status file. It can contain local changes.

    Raises:
        KeyError, TypeError, AttributeError: The status file is not valid.
    """
    recorded = _RecordedInputs.from_status(status)
    try:
        with isolation_boundary(f"base of package {variant.target}"):
            recovery = _BaseRecovery(variant, recorded, tree, inputs)
            recovered = recovery.recover(source)
    except ScopeFailedError as error:
        return UnavailableBase(error.failure.message, error.failure)
    if recovered is None:
        raise KeyError("the status file names other sources")
    return recovered


@dataclass(frozen=True)
class _BaseRecovery:
    """The recovery of the base of one version of a package."""

    variant: Variant
    recorded: _RecordedInputs
    tree: TreeId
    inputs: RecoveryInputs

    def recover(self, source: UpstreamPackage) -> RecoveredBase | UnavailableBase | None:
        """Return the merge base, or the reason why it is not available.

        Return None if the recorded upstream had different sources.
        """
        current = self._render(source)
        if current and self._is_recorded(current):
            return self._accept(current)
        found = self.inputs.find_recorded_variant(self.recorded.config, self.variant)
        earlier = None
        if isinstance(found, Variant) and found is not self.variant and found.upstream:
            earlier = self._render(found.upstream)
        if earlier and self._is_recorded(earlier):
            return self._accept(earlier)
        last = earlier or current
        return self._use_accepted_base(last, found if isinstance(found, str) else "") if last else None

    def _render(self, source: UpstreamPackage) -> _BaseRender | None:
        """Render the recorded version of a source. Return None if the recorded upstream had different sources."""
        upstream = self.recorded.restore_upstream(source)
        if upstream is None:
            return None
        contents = self.inputs.contents
        try:
            content = contents.read_source(upstream)
        except SourceFailedError as error:
            return _BaseRender(upstream, error=str(error))
        files = content.files
        if files.id != self.recorded.base:
            files = restore_held_resources(files, contents.read_tree(self.tree), self.inputs.hold_kinds)
        return _BaseRender(upstream, content, files)

    def _is_recorded(self, render: _BaseRender) -> bool:
        return render.files is not None and render.files.id == self.recorded.base

    def _accept(self, render: _BaseRender) -> RecoveredBase:
        assert render.files is not None, "the files are those of the recorded base"
        base = self.inputs.contents.store_tree(render.files)
        has_local_changes = self.recorded.merged != base or self.recorded.rendered != self.tree
        # Use the rendered package as the source with local changes, because the real source with local changes is
        # unknown. This is possible, because the render steps do not change a package that is already rendered.
        return self._build_base(render.upstream, base, self.tree if has_local_changes else base)

    def _build_base(self, upstream: UpstreamPackage, base: TreeId, merged: TreeId) -> RecoveredBase:
        return RecoveredBase(base, merged, upstream.summary, upstream.chart_release)

    def _use_accepted_base(self, render: _BaseRender, missing_config: str) -> RecoveredBase | UnavailableBase:
        """Return a merge base that replaces the lost recorded base, if the owner allows a replacement.

        The owner allows it with the strategy `force-delete-replace`, or with an annotation that accepts this merge
        base. Otherwise, return the reason and the next steps.

        Args:
            missing_config: The reason why the values of the recorded config are unknown, or "".
        """
        variant, tree, contents = self.variant, self.tree, self.inputs.contents
        candidate = render.content.files if render.content else contents.read_tree(tree)
        if variant.strategy == "force-delete-replace":
            # Use the package itself as its base, because the strategy `force-delete-replace` replaces all files in any
            # case.
            return self._build_base(render.upstream, tree, tree)
        if candidate.id in variant.accepted_bases:
            return self._build_base(render.upstream, contents.store_tree(candidate), tree)
        owner = variant.owner.parent or variant.owner.key
        effect = (
            "update all files and discard local changes"
            if candidate.id == tree
            else "use the files of this render as the merge base"
        )
        return UnavailableBase(
            f"the recorded state of package {variant.target} is lost, and its merge base cannot be rendered again from"
            f" {render.upstream.summary}. Reason: {self._explain(render, missing_config)}. Next step: solve this"
            " problem, so that the next pass can restore the merge base. To discard local changes instead, set"
            " `updateStrategy: force-delete-replace`. To"
            f" {effect}, annotate {owner} with {ACCEPT_BASE}: {candidate.id}"
        )

    def _explain(self, render: _BaseRender, missing_config: str) -> str:
        """Return the reason why a render is not the recorded base."""
        recorded = self.recorded
        values = (
            f"the values have changed since config {recorded.config}, and {missing_config}" if missing_config else ""
        )
        is_changed = bool(values) and not recorded.has_same_values(render.upstream)
        if render.content is None:
            return f"{render.error}; {values}" if is_changed else render.error
        reasons = [
            f"the render program is {program} instead of {recorded.engine}"
            for program in render.content.programs.values()
            if recorded.engine and program != recorded.engine
        ]
        reasons += [values] if is_changed else []
        reason = " and ".join(reasons) or "options of the render have changed"
        return (
            f"the new render has the tree {render.content.files.id}, but the lost merge base has the tree"
            f" {recorded.base}, because {reason}"
        )
