"""Making one Plugin of a wish: its layers, its options, its release, its file (greenhouse 4 to 11)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

from reconciler.caching import cached
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding, errors
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Path
from reconciler.rules.guards import Unit
from reconciler.rules.presets.codes import PLUGIN_OVERRIDE_INVALID, PLUGIN_OVERRIDES_INVALID
from reconciler.rules.presets.injected import InjectionContext, injected_entries
from reconciler.rules.presets.layers import PLUGIN_OPTIONS, PRESET_CLUSTER_OPTIONS, PRESET_OPTIONS, Contributor
from reconciler.rules.presets.memory import Memory
from reconciler.rules.presets.model import CLUSTER, GROUP, ORGANIZATION, OVERRIDE, PLUGIN, Entries, Preset
from reconciler.rules.presets.mutate import PLUGIN_FILE, Own, RestorePlugin
from reconciler.rules.presets.orphans import is_retained
from reconciler.rules.presets.outcome import Failed, Made, Wish, failed_for
from reconciler.rules.presets.outputs import Outputs, outputs_of
from reconciler.rules.presets.plugin import (
    Marks,
    Release,
    preset_marks,
    preset_plugin,
    release_of,
    standalone_plugin,
    with_options,
)
from reconciler.rules.presets.propagation import Propagated, propagated_from
from reconciler.rules.presets.provenance import PluginProvenance
from reconciler.rules.presets.resolve import Evaluation, Resolver, Subject
from reconciler.rules.presets.resolved import Resolution
from reconciler.rules.presets.surroundings import Surroundings
from reconciler.rules.presets.world import Override, Reach, Usable, World
from reconciler.rules.remembered import Same
from reconciler.rules.variant import AdoptionPolicy, DeletionPolicy, Generated, Variant, sources_of
from reconciler.snapshot.catalog import ConfigObject
from reconciler.snapshot.files import File, FileTree

ADOPT = "reconciler.dev/adopt"


_CODES = {ORGANIZATION: PLUGIN_OVERRIDES_INVALID, OVERRIDE: PLUGIN_OVERRIDE_INVALID}


class Maker:
    """Makes the Plugins of one pass; the lists that many of them share are put together once."""

    def __init__(self, world: World, reach: Reach, around: Surroundings, memory: Memory) -> None:
        self._world = world
        self._reach = reach
        self._around = around
        self._memory = memory
        self._present = {str(one.key) for kind in _CODES for one in world.catalog.of_kind(GROUP, kind)}
        self._resolver = Resolver(Evaluation(around.limits, around.expressions))
        self._passed: dict[ObjectKey, Propagated] = {}

    def make(self, wish: Wish, usable: Usable) -> Made | Failed:
        """Return the Plugin of a wish as it is to be, or everything that is wrong with it."""
        overrides = self._reach.overrides(wish.key.namespace, wish.spec.definition, wish.cluster)
        contributors = [
            usable.defaults,
            *self._contributors(wish),
            *(one.contributor for one in overrides if one.read.sound),
        ]
        if failed := self._in_doubt(wish, overrides) or _faulty(wish, contributors):
            return failed
        # all that a Plugin is made of, besides the settings: whoever makes it of more must name it here
        key = (
            wish.written, wish.place, Same(wish.cluster), self._cluster(wish), usable, *contributors,
            wish.published, wish.is_there, wish.owned,
        )  # fmt: skip
        return self._memory.plugins.of(key, lambda: self._make(wish, usable, contributors))

    def _make(self, wish: Wish, usable: Usable, contributors: list[Contributor]) -> Made | Failed:
        marks = self._marks(wish)
        resolution = self._resolve(wish, usable, contributors, marks)
        release, odd = release_of(wish.spec, usable.definition, wish.key.namespace, wish.published.data, wish.written)
        outputs = outputs_of(wish, usable.definition, release, resolution.options, self._around.outputs)
        findings = tuple(dict.fromkeys((*resolution.findings, *odd, *outputs.findings)))
        if faults := errors(findings):
            return failed_for(wish, faults, findings)
        return Made(wish, self._variant(wish, release, resolution, marks, outputs, findings), release)

    def _contributors(self, wish: Wish) -> Iterator[Contributor]:
        preset, cluster = wish.preset, wish.cluster_name
        yield from self._world.lists_for(wish.key.namespace, cluster)
        yield self._list(wish, PRESET_OPTIONS if preset else PLUGIN_OPTIONS, "", wish.spec.options)
        if preset and cluster in preset.cluster_options:
            yield self._list(wish, PRESET_CLUSTER_OPTIONS, cluster, preset.cluster_options[cluster])

    def _list(self, wish: Wish, layer: str, cluster: str, options: Entries) -> Contributor:
        return self._memory.lists.of((wish.written, cluster), lambda: Contributor(layer, wish.written, options))

    def _marks(self, wish: Wish) -> Marks:
        preset = wish.preset
        if preset is None:
            return Marks({}, {})
        if preset.key not in self._passed:
            self._passed[preset.key] = propagated_from(preset.one.labels, preset.one.annotations)
        return preset_marks(preset, self._passed[preset.key], wish.place.repository, wish.published.data)

    def _in_doubt(self, wish: Wish, overrides: list[Override]) -> Failed | None:
        """Return why a Plugin stays as it is: somebody may have meant to say something else of it.

        An override that cannot be used is ignored (greenhouse 10), but what it won before is not taken back for that.
        """
        if why := self._world.doubt(wish.key.namespace, wish.cluster_name):
            return Failed(wish, (PLUGIN_OVERRIDES_INVALID.name,), f"it stays as it is: {why}")
        for one in overrides:
            if wish.owned and not one.read.sound and str(one.read.one.key) in self._inputs.get(wish.unit, ()):
                message = f"{one.read.one.key} has a say in it, and cannot be used"
                return Failed(wish, (PLUGIN_OVERRIDE_INVALID.name,), message)
        return self._unread(wish) if wish.owned else None

    @cached_property
    def _inputs(self) -> Mapping[Unit, Collection[str]]:
        return self._around.before.inputs()

    def _unread(self, wish: Wish) -> Failed | None:
        """Return why a Plugin stays as it is: what it was made of may be in an unreadable file (design 10.5)."""
        if self._world.catalog.is_whole:
            return None
        for name in sorted(self._inputs.get(wish.unit, ())):
            kind = name.partition("/")[0]
            if kind in _CODES and name not in self._present:
                message = f"it stays as it is: {name} may be in a file that cannot be read"
                return Failed(wish, (_CODES[kind].name,), message)
        return None

    def _resolve(self, wish: Wish, usable: Usable, contributors: list[Contributor], marks: Marks) -> Resolution:
        one, cluster = wish.written, wish.cluster
        context = InjectionContext(
            wish.key.namespace, cluster.name if cluster else "", cluster.labels if cluster else {},
            marks.labels if wish.preset else one.labels, one.labels if wish.preset else {}, self._around.base_domain,
        )  # fmt: skip
        subject = Subject(str(wish.key), one, _path(wish), usable.definition, self._cluster(wish))
        return self._resolver.resolve(subject, contributors, injected_entries(context))

    def _cluster(self, wish: Wish) -> ConfigObject | None:
        """Return the Cluster of a Plugin, where it has one."""
        key = ObjectKey(GROUP, CLUSTER, wish.key.namespace, wish.cluster.name) if wish.cluster else None
        return self._world.catalog.get(key) if key else None

    def _variant(
        self, wish: Wish, release: Release, resolution: Resolution, marks: Marks, outputs: Outputs,
        findings: tuple[Finding, ...],
    ) -> Variant:  # fmt: skip
        if isinstance(wish.by, Preset):
            data = preset_plugin(wish.by, wish.key, wish.place.repository, release, marks)
        else:
            data = standalone_plugin(wish.by, release)
        spec, text = with_options(data, resolution.options)
        made_of = _made_of(wish, data, resolution, outputs)
        own = Own(PLUGIN_FILE, PLUGIN, spec, marks.without_labels, marks.without_annotations)
        return Variant(
            wish.owner, wish.place, Generated(_files(text, outputs)),
            RestorePlugin(wish.key.name, (own, *outputs.objects), outputs.values),
            {**{str(one.key): said for one, said in made_of.items()}, "engine": self._around.engine},
            adoption=_adoption(wish), deletion=self._deletion(wish), findings=findings,
            provenance=PluginProvenance(PLUGIN_FILE, str(wish.key), resolution, made_of),
            sources=sources_of(filter(None, (wish.written, self._cluster(wish)))),
        )  # fmt: skip

    def _deletion(self, wish: Wish) -> DeletionPolicy:
        """Return what becomes of its package when it is not wanted any more.

        An annotation of the cluster must be obeyed when that is gone, and so is noted while it is there.
        """
        return "orphan" if is_retained(wish.preset, self._cluster(wish)) else "delete"


def _faulty(wish: Wish, contributors: list[Contributor]) -> Failed | None:
    faults = [fault for one in contributors for fault in one.options.faults]
    if not faults:
        return None
    # each is told once, where it stands, and not for every Plugin
    failed = failed_for(wish, tuple(faults))
    return Failed(wish, failed.codes, failed.message)


def _path(wish: Wish) -> Path:
    return ("spec", "plugin", "optionValues") if wish.preset else ("spec", "optionValues")


def _adoption(wish: Wish) -> AdoptionPolicy:
    """Return whether what stands there unowned is taken over: it carries the preset's label, or its author says so."""
    says_so = wish.preset is not None or wish.written.annotations.get(ADOPT) == "true"
    return "adoptExisting" if says_so and wish.is_there and not wish.owned else "adoptNone"


def _files(plugin: str, outputs: Outputs) -> FileTree:
    return FileTree({path: File(data) for path, data in {PLUGIN_FILE: plugin.encode(), **outputs.files}.items()})


def _made_of(
    wish: Wish, data: Mapping[str, Any], resolution: Resolution, outputs: Outputs
) -> Mapping[ConfigObject, str]:
    """Return what the Plugin depends on by the object that says it: what did not win is none of its business."""
    said: dict[ConfigObject, list[str]] = {}
    for option in resolution.options:
        said.setdefault(option.winner.one, []).append(option.digest)
    said.setdefault(wish.written, []).append(digest(data))
    for one, chart in outputs.made_of.items():
        said.setdefault(one, []).append(chart)
    return {one: _digest_of_all(" ".join(values)) for one, values in said.items()}


# a definition, and an override, come to the same in most Plugins of a fleet
@cached(8_192)
def _digest_of_all(digests: str) -> str:
    return digest(digests)
