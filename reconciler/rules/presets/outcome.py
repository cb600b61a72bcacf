"""What becomes of each Plugin that is wanted: it is made, it fails, it is another's, or it rests (greenhouse 12)."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.guards import Unit
from reconciler.rules.presets.model import API_VERSION, PluginSpec, Preset, StandalonePlugin
from reconciler.rules.presets.plugin import Release
from reconciler.rules.presets.published import Published
from reconciler.rules.variant import Owner, Place, Stalled, Variant
from reconciler.snapshot.catalog import ConfigObject


@dataclass(frozen=True, eq=False)
class Wish:
    """A Plugin that a preset, or a person, wants somewhere.

    `cluster` is the one that it is for, None for a Plugin that names none and goes to the central cluster. `published`
    is the Plugin that stands on the branch there; `is_there`: something does; `owned`: it is ours already.
    """

    key: ObjectKey
    place: Place
    cluster: Cluster | None
    by: Preset | StandalonePlugin
    published: Published = field(default_factory=Published)
    is_there: bool = False
    owned: bool = False

    @property
    def spec(self) -> PluginSpec:
        """What is said of the plugin itself."""
        return self.by.spec

    @property
    def written(self) -> ConfigObject:
        """The object that wants it."""
        return self.by.one

    @property
    def preset(self) -> Preset | None:
        """The preset that wants it, if one does."""
        return self.by if isinstance(self.by, Preset) else None

    @property
    def cluster_name(self) -> str:
        """The cluster that it is for, "" for none."""
        return self.cluster.name if self.cluster else ""

    @property
    def owner(self) -> Owner:
        """The owner of its package: the Plugin, which a preset makes (design 3)."""
        return Owner(self.key, API_VERSION, self.preset.key if self.preset else None)

    @property
    def unit(self) -> Unit:
        """Where its package is."""
        return (self.place.repository, self.place.package)


@dataclass(frozen=True, eq=False)
class Made:
    """A Plugin that can be written."""

    wish: Wish
    variant: Variant
    release: Release


@dataclass(frozen=True, eq=False)
class Failed:
    """A Plugin that cannot be worked out; whatever stands there stays. Its `codes` say why, `findings` are new ones."""

    wish: Wish
    codes: tuple[str, ...]
    message: str
    findings: tuple[Finding, ...] = ()

    @property
    def stalled(self) -> Stalled:
        """The owner with its condition."""
        ready = Condition("Ready", "False", self.codes[0], self.message)
        return Stalled(self.wish.owner, (ready,), self.findings, self.wish.place)


@dataclass(frozen=True, eq=False)
class Resting:
    """A Plugin that says that it is suspended: it is neither changed nor removed."""

    wish: Wish
    finding: Finding

    @property
    def stalled(self) -> Stalled:
        """The owner with its condition."""
        suspended = Condition("Suspended", "True", "Suspended", self.finding.message)
        return Stalled(self.wish.owner, (suspended,), (self.finding,), self.wish.place)


@dataclass(frozen=True, eq=False)
class Skipped:
    """A Plugin that somebody else has: it is left alone."""

    wish: Wish
    finding: Finding


Outcome = Made | Failed | Resting | Skipped


def failed_for(wish: Wish, findings: tuple[Finding, ...], all_findings: tuple[Finding, ...] = ()) -> Failed:
    """Return the failure for these errors; `all_findings` are told with it, else the errors alone."""
    codes = tuple(dict.fromkeys(one.code for one in findings))
    return Failed(wish, codes, "; ".join(one.message for one in findings), all_findings or findings)
