"""Plugin requests and their outcomes: a Plugin is built, failed, skipped or suspended."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.plugin_presets.model import API_VERSION, PluginSpec, Preset, StandalonePlugin
from reconciler.controllers.plugin_presets.plugin import PluginRelease, PublishedPlugin
from reconciler.controllers.results import PackageOwner, PackageTarget, StalledVariant, Variant
from reconciler.krm.findings import Finding
from reconciler.krm.objects import Condition, ObjectKey


@dataclass(frozen=True, eq=False)
class PluginRequest:
    """A Plugin that a preset or the config requests.

    Attributes:
        cluster: The Plugin's cluster; None for a Plugin without `clusterName`, which goes to the central cluster.
        requester: The preset, or the Plugin in the config.
        published: The Plugin on the branch.
        is_occupied: Whether the branch has any package at the target.
        is_owned: Whether the package at the target has this Plugin as its owner.
    """

    key: ObjectKey
    target: PackageTarget
    cluster: Cluster | None
    requester: Preset | StandalonePlugin
    published: PublishedPlugin = field(default_factory=PublishedPlugin)
    is_occupied: bool = False
    is_owned: bool = False

    @property
    def spec(self) -> PluginSpec:
        """The fields that presets and Plugins share."""
        return self.requester.spec

    @property
    def manifest(self) -> ConfigObject:
        """The object that requests the Plugin."""
        return self.requester.manifest

    @property
    def preset(self) -> Preset | None:
        """The preset that requests the Plugin; None if the config does."""
        return self.requester if isinstance(self.requester, Preset) else None

    @property
    def cluster_name(self) -> str:
        """The cluster's name; "" without a cluster."""
        return self.cluster.name if self.cluster else ""

    @property
    def owner(self) -> PackageOwner:
        """The owner of the package: the Plugin, with its preset as the parent."""
        return PackageOwner(self.key, API_VERSION, self.preset.key if self.preset else None)

    @property
    def location(self) -> PackageLocation:
        """The location of the package."""
        return (self.target.repository, self.target.package)


@dataclass(frozen=True, eq=False)
class BuiltPlugin:
    """A Plugin that can be written."""

    request: PluginRequest
    variant: Variant
    release: PluginRelease


@dataclass(frozen=True, eq=False)
class FailedPlugin:
    """A Plugin with errors. Its published package stays. `codes` are the reasons, `findings` are the new findings."""

    request: PluginRequest
    codes: tuple[str, ...]
    message: str
    findings: tuple[Finding, ...] = ()

    @property
    def stalled(self) -> StalledVariant:
        """The owner with its condition."""
        ready = Condition("Ready", "False", self.codes[0], self.message)
        return StalledVariant(self.request.owner, (ready,), self.findings, self.request.target)


@dataclass(frozen=True, eq=False)
class SuspendedPlugin:
    """A Plugin with the suspend annotation: it is neither changed nor deleted."""

    request: PluginRequest
    finding: Finding

    @property
    def stalled(self) -> StalledVariant:
        """The owner with its condition."""
        suspended = Condition("Suspended", "True", "Suspended", self.finding.message)
        return StalledVariant(self.request.owner, (suspended,), (self.finding,), self.request.target)


@dataclass(frozen=True, eq=False)
class SkippedPlugin:
    """A Plugin that another object owns. It is not changed."""

    request: PluginRequest
    finding: Finding


PluginOutcome = BuiltPlugin | FailedPlugin | SuspendedPlugin | SkippedPlugin


def create_failure(
    request: PluginRequest, findings: tuple[Finding, ...], all_findings: tuple[Finding, ...] = ()
) -> FailedPlugin:
    """Return the failure with these errors; `all_findings` replaces them as its findings."""
    codes = tuple(dict.fromkeys(finding.code for finding in findings))
    return FailedPlugin(request, codes, "; ".join(finding.message for finding in findings), all_findings or findings)
