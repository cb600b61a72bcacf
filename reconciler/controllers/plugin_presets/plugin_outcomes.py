"""Requests for Plugins, and the outcome of each request: a built, failed, skipped or suspended Plugin."""

from __future__ import annotations

from reconciler.api.greenhouse import API_VERSION, PluginFields
from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.plugin_presets.config_objects import Preset, StandalonePlugin
from reconciler.controllers.plugin_presets.plugin import PluginRelease, PublishedPlugin
from reconciler.controllers.results import PackageOwner, PackageTarget, StalledVariant, Variant
from reconciler.krm.findings import Finding
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.lazy_dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class PluginRequest:
    """A Plugin that a preset or the config requests.

    Attributes:
        cluster: The Plugin's cluster. None for a Plugin without `clusterName`. Such a Plugin is written to the central
            cluster.
        requester: The preset that requests the Plugin, or the Plugin object in the config.
        published: The readable published Plugin at the target. It is empty if there is none.
        is_occupied: Whether there is such a Plugin, even if a different object owns it.
        is_owned: Whether this Plugin is the recorded owner of the package at the target.
    """

    key: ObjectKey
    target: PackageTarget
    cluster: Cluster | None
    requester: Preset | StandalonePlugin
    published: PublishedPlugin = field(default_factory=PublishedPlugin)
    is_occupied: bool = False
    is_owned: bool = False

    @property
    def plugin(self) -> PluginFields:
        """The fields that presets and Plugins have in common."""
        return self.requester.plugin

    @property
    def manifest(self) -> ConfigObject:
        """The object that requests the Plugin."""
        return self.requester.manifest

    @property
    def preset(self) -> Preset | None:
        """The preset that requests the Plugin. None if the Plugin is an object in the config."""
        return self.requester if isinstance(self.requester, Preset) else None

    @property
    def cluster_name(self) -> str:
        """The name of the Plugin's cluster. It is "" if the Plugin has no cluster."""
        return self.cluster.name if self.cluster else ""

    @property
    def owner(self) -> PackageOwner:
        """The owner of the package. The owner is the Plugin, and its parent is the preset."""
        return PackageOwner(self.key, API_VERSION, self.preset.key if self.preset else None)

    @property
    def location(self) -> PackageLocation:
        """The location of the Plugin's package: repository and package path."""
        return (self.target.repository, self.target.package)


@dataclass(frozen=True, eq=False)
class BuiltPlugin:
    """The outcome of a request whose Plugin was built without errors."""

    request: PluginRequest
    variant: Variant
    release: PluginRelease


@dataclass(frozen=True, eq=False)
class FailedPlugin:
    """The outcome of a request whose Plugin has errors. The published package stays unchanged.

    `codes` are the codes of all errors. `findings` omits errors that are already reported for another object, such as
    the object that sets the invalid options.
    """

    request: PluginRequest
    codes: tuple[str, ...]
    message: str
    findings: tuple[Finding, ...] = ()

    @property
    def stalled(self) -> StalledVariant:
        """The Plugin as a stalled variant with the condition `Ready`."""
        ready = Condition("Ready", "False", self.codes[0], self.message)
        return StalledVariant(self.request.owner, (ready,), self.findings, self.request.target)


@dataclass(frozen=True, eq=False)
class SuspendedPlugin:
    """The outcome of a request whose Plugin has the suspend annotation. The Plugin is neither changed nor deleted."""

    request: PluginRequest
    finding: Finding

    @property
    def stalled(self) -> StalledVariant:
        """The Plugin as a stalled variant with the condition `Suspended`."""
        suspended = Condition("Suspended", "True", "Suspended", self.finding.message)
        return StalledVariant(self.request.owner, (suspended,), (self.finding,), self.request.target)


@dataclass(frozen=True, eq=False)
class SkippedPlugin:
    """The outcome of a request whose Plugin belongs to another owner. The existing Plugin is not changed."""

    request: PluginRequest
    finding: Finding


PluginOutcome = BuiltPlugin | FailedPlugin | SuspendedPlugin | SkippedPlugin


def create_failure(
    request: PluginRequest, findings: tuple[Finding, ...], all_findings: tuple[Finding, ...] = ()
) -> FailedPlugin:
    """Return the failed outcome of a request. `findings` are the errors that caused the failure.

    `all_findings` can contain these errors together with other findings. If it is not empty, the outcome reports it
    instead of `findings`.
    """
    codes = tuple(dict.fromkeys(finding.code for finding in findings))
    return FailedPlugin(request, codes, "; ".join(finding.message for finding in findings), all_findings or findings)
