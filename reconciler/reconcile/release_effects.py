"""The effects of changed HelmReleases on the resources of their charts. Git does not contain these resources.

The charts of both versions are rendered with the values in the HelmReleases, and the results are compared. Both renders
use the current Kubernetes version of the cluster, so that the result contains only the effects of the draft.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.catalog.files import CommitId, FileTree
from reconciler.controllers.results import PackageTarget, UpstreamPackage
from reconciler.krm.findings import select_errors
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.changes.package_changes import (
    PackageChanges,
    compare_packages,
    read_source_locks,
    read_upstream_lock,
)
from reconciler.output.release_effects import ReleaseEffect
from reconciler.packages.charts.helm_release import build_preview_request, find_release_specs
from reconciler.packages.charts.request import ChartRequest, RenderedSource
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package_context import PACKAGE_CONTEXT_FILE
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.model.outcomes import Draft
from reconciler.reconcile.remotes.ports import SourceRenderer

_Preview = tuple[UpstreamPackage, ChartRequest]
_NO_RECORD = "the published package does not contain the version and digest of the chart, or uses another chart"
_NO_CHART = "the current config requests no package with this release and the chart of the draft"


@dataclass(frozen=True)
class ChangedPackage:
    """A package before and after a change.

    Attributes:
        upstream: The upstream after the change. None if it is unknown, or if the package has no upstream.
    """

    target: PackageTarget
    upstream: UpstreamPackage | None
    before: FileTree
    after: FileTree


@dataclass(frozen=True)
class _Version:
    """One version of the resources of a release: files that need no render, or a request for a preview of a chart."""

    files: FileTree = field(default_factory=FileTree)
    preview: _Preview | None = None

    def read(self, rendered: Iterator[RenderedSource]) -> RenderedSource:
        """Return the resources, or the errors. `rendered` contains the results of all previews in their order."""
        return next(rendered) if self.preview else RenderedSource(self.files)


@dataclass(frozen=True)
class _ChangedRelease:
    """A release with a changed chart, values or options. `before` is None if the old version is unknown."""

    target: PackageTarget
    name: str
    before: _Version | None
    after: _Version
    has_secret_values: bool

    @property
    def versions(self) -> tuple[_Version, ...]:
        """The old and the new version. () if the old version is unknown."""
        return (self.before, self.after) if self.before else ()

    def build_effect(self, versions: Sequence[RenderedSource]) -> ReleaseEffect:
        """Return the difference between the resources of the two versions, or the reason why it is unknown."""
        errors = [error for version in versions for error in select_errors(version.findings)]
        reason = "" if versions else _NO_RECORD
        if errors or reason:
            return ReleaseEffect(
                release=self.name, changes=PackageChanges(), unknown_reason=reason or errors[0].message
            )
        before, after = (version.files for version in versions)
        changes = PackageChanges(compare_packages(before, after).objects)
        return ReleaseEffect(release=self.name, changes=changes, excludes_secret_values=self.has_secret_values)


def find_release_effects(plan: FleetPlan, sources: SourceRenderer) -> Mapping[PackageTarget, tuple[ReleaseEffect, ...]]:
    """Return the effects of changed HelmReleases for each package that has a draft in the plan.

    Equal renders run once. If a chart cannot be rendered, the effect contains the reason.
    """
    drafts = (outcome for _, outcome in plan.list_outcomes() if isinstance(outcome, Draft))
    packages = (
        ChangedPackage(draft.variant.target, draft.variant.upstream, draft.previous_files, draft.rendered.files)
        for draft in drafts
    )
    return _compute_effects(packages, sources)


def find_draft_effects(package: ChangedPackage, sources: SourceRenderer) -> tuple[ReleaseEffect, ...]:
    """Return the effects of all HelmReleases that an open draft changes.

    The effect of a HelmRelease is unknown if its chart is not an upstream of the package, for example because a person
    wrote the HelmRelease.
    """
    effects = _compute_effects((package,), sources).get(package.target, ())
    old, new = find_release_specs(package.before), find_release_specs(package.after)
    known = {effect.release for effect in effects}
    changed = {name for name in {*old, *new} if old.get(name) != new.get(name)} - known
    # The effect of a renamed release contains only the new name. Therefore, do not report the old name as another
    # release.
    unknown = sorted(name for name in changed if name in new or not effects)
    return (
        *effects,
        *(ReleaseEffect(release=name, changes=PackageChanges(), unknown_reason=_NO_CHART) for name in unknown),
    )


def _compute_effects(
    packages: Iterable[ChangedPackage], sources: SourceRenderer
) -> Mapping[PackageTarget, tuple[ReleaseEffect, ...]]:
    releases = [release for package in packages for release in _list_changed_releases(package)]
    previews = [version.preview for release in releases for version in release.versions if version.preview]
    rendered = iter(sources.preview_charts(previews) if previews else ())
    effects: dict[PackageTarget, tuple[ReleaseEffect, ...]] = {}
    for release in releases:
        effect = release.build_effect([version.read(rendered) for version in release.versions])
        effects[release.target] = (*effects.get(release.target, ()), effect)
    return effects


def _list_changed_releases(changed: ChangedPackage) -> Iterator[_ChangedRelease]:
    packages = changed.upstream.named_packages if changed.upstream else ()
    packages = tuple(source for source in packages if source.upstream.release is not None)
    if not packages:
        return
    old_files = changed.before
    old_specs, new_specs = find_release_specs(old_files), find_release_specs(changed.after)
    locks = read_source_locks(old_files) or {"": read_upstream_lock(old_files)}
    for source in packages:
        package, request = source.upstream, source.upstream.chart
        assert request, "a release has the request of its chart"
        name = request.release
        old_package = _find_old_package(package, locks.get(source.name, {}))
        old_name = name if name in old_specs or source.name or len(old_specs) != 1 else next(iter(old_specs))
        old_spec, new_spec = old_specs.get(old_name), new_specs.get(name)
        if old_spec == new_spec and old_package == package:
            continue
        after = _Version(preview=(package, build_preview_request(request, new_spec))) if new_spec else _Version()
        before: _Version | None = None
        if old_spec and old_package:
            before = _Version(preview=(old_package, build_preview_request(request, old_spec)))
        elif not old_spec:
            # There is no old HelmRelease, for one of two reasons: the HelmRelease is new, or the package contained the
            # rendered resources of the chart before.
            has_resources = not old_specs and not source.name
            before = _Version(old_files.without_files(KPTFILE, PACKAGE_CONTEXT_FILE) if has_resources else FileTree())
        yield _ChangedRelease(changed.target, name, before, after, bool(package.release))


def _find_old_package(package: UpstreamPackage, lock: Mapping[str, str]) -> UpstreamPackage | None:
    """Return `package` at the version in `lock`. `lock` is the recorded upstream of the previous package.

    Return None if `lock` contains a different repository or directory, or no version.
    """
    if (lock.get("repo"), lock.get("directory")) != (package.repo, package.directory):
        return None
    ref, commit = lock.get("ref"), lock.get("commit")
    return replace(package, ref=ref, commit=CommitId(commit)) if ref and commit else None
