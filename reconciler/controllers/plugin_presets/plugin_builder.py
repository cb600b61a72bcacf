"""Builder of Plugins: selects the layers of a request, and builds the options, the release and the files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

from reconciler.api.greenhouse import ADOPT_ANNOTATION, CLUSTER, GROUP, ORGANIZATION, OVERRIDE, OWNED_BY_LABEL, PLUGIN
from reconciler.api.porch.policies import AdoptionPolicy, DeletionPolicy
from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.keyed_cache import IdentityKey
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.config_objects import OverrideLayer, Preset, UsableDefinition
from reconciler.controllers.plugin_presets.deletions import is_retained
from reconciler.controllers.plugin_presets.injected_options import list_injected_options
from reconciler.controllers.plugin_presets.inputs import PluginPresetCache, PluginPresetInputs
from reconciler.controllers.plugin_presets.option_layers import (
    LayerOptions,
    OptionResolution,
)
from reconciler.controllers.plugin_presets.option_resolution import (
    OptionResolver,
    ResolutionSubject,
)
from reconciler.controllers.plugin_presets.package_files import (
    PLUGIN_FILE,
    OutputFiles,
    OwnedObject,
    PluginMutation,
    build_output_files,
)
from reconciler.controllers.plugin_presets.plugin import (
    PluginMetadata,
    PluginRelease,
    PropagatedMetadata,
    add_options,
    build_preset_metadata,
    build_preset_plugin,
    build_standalone_plugin,
    resolve_release,
    select_propagated_metadata,
)
from reconciler.controllers.plugin_presets.plugin_outcomes import (
    BuiltPlugin,
    FailedPlugin,
    PluginRequest,
    create_failure,
)
from reconciler.controllers.plugin_presets.provenance import PluginProvenance
from reconciler.controllers.plugin_presets.snapshot import OverrideMatcher, PresetSnapshot
from reconciler.controllers.results import GeneratedSource, Variant, collect_config_sources
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey
from reconciler.memory import cached

_CODES_BY_KIND = {ORGANIZATION: PluginCodes.PLUGIN_OVERRIDES_INVALID, OVERRIDE: PluginCodes.PLUGIN_OVERRIDE_INVALID}


class PluginBuilder:
    """Builds the Plugins of one pass. A Plugin with unchanged inputs is taken from the cache."""

    def __init__(
        self,
        snapshot: PresetSnapshot,
        override_matcher: OverrideMatcher,
        inputs: PluginPresetInputs,
        cache: PluginPresetCache,
    ) -> None:
        self._snapshot = snapshot
        self._override_matcher = override_matcher
        self._inputs = inputs
        self._cache = cache
        self._object_names = {
            manifest.key.reference
            for kind in _CODES_BY_KIND
            for manifest in snapshot.catalog.objects_of_kind(GROUP, kind)
        }
        self._resolver = OptionResolver(inputs.cel_limits if inputs.can_use_expressions else None)
        self._propagated: dict[ObjectKey, PropagatedMetadata] = {}

    def build(self, request: PluginRequest, usable: UsableDefinition) -> BuiltPlugin | FailedPlugin:
        """Return the built Plugin of a request. Return a failure if there are errors."""
        overrides = self._override_matcher.match_and_count(
            request.key.namespace, request.plugin.definition, request.cluster
        )
        layers = [
            usable.defaults,
            *self._iterate_own_layers(request),
            *(override.layer for override in overrides if override.is_valid),
        ]
        if failure := self._find_uncertainty(request, overrides) or _find_layer_errors(request, layers):
            return failure
        # The key must contain every input of a Plugin except the settings. A change of the settings clears the cache.
        key = (
            request.manifest, request.target, IdentityKey(request.cluster), self._find_cluster(request), usable,
            *layers, request.published, request.is_occupied, request.is_owned,
        )  # fmt: skip
        return self._cache.plugins.get_or_create(key, lambda: self._build(request, usable, layers))

    def _build(
        self, request: PluginRequest, usable: UsableDefinition, layers: list[LayerOptions]
    ) -> BuiltPlugin | FailedPlugin:
        metadata = self._build_metadata(request)
        resolution = self._resolve_options(request, usable, layers)
        published = request.published.data
        release, release_findings = resolve_release(
            request.plugin, usable, request.key.namespace, published, request.manifest
        )
        outputs = build_output_files(request, usable, release, resolution.options, self._inputs.output_names)
        findings = tuple(dict.fromkeys((*resolution.findings, *release_findings, *outputs.findings)))
        if errors := select_errors(findings):
            return create_failure(request, errors, findings)
        variant = self._build_variant(request, release, resolution, metadata, outputs, findings)
        return BuiltPlugin(request, variant, release)

    def _iterate_own_layers(self, request: PluginRequest) -> Iterator[LayerOptions]:
        preset, cluster = request.preset, request.cluster_name
        yield from self._snapshot.list_namespace_layers(request.key.namespace, cluster)
        yield request.requester.options
        if preset and cluster in preset.cluster_options:
            yield preset.cluster_options[cluster]

    def _build_metadata(self, request: PluginRequest) -> PluginMetadata:
        preset = request.preset
        if preset is None:
            return PluginMetadata({}, {})
        if preset.key not in self._propagated:
            self._propagated[preset.key] = select_propagated_metadata(
                preset.manifest.labels, preset.manifest.annotations
            )
        return build_preset_metadata(
            preset, self._propagated[preset.key], request.target.repository, request.published.data
        )

    def _find_uncertainty(self, request: PluginRequest, overrides: list[OverrideLayer]) -> FailedPlugin | None:
        """Return a failure if an invalid or unreadable object may affect the Plugin. The Plugin then stays unchanged.

        An invalid PluginOverride causes a failure only if the last render of the Plugin used this PluginOverride.
        Without the failure, the Plugin would lose the values of the PluginOverride.
        """
        if reason := self._snapshot.explain_unknown_overrides(request.key.namespace, request.cluster_name):
            return FailedPlugin(
                request, (PluginCodes.PLUGIN_OVERRIDES_INVALID.name,), f"the Plugin stays unchanged: {reason}"
            )
        if not request.is_owned:
            return None
        for override in overrides:
            if not override.is_valid and override.key.reference in self._recorded_inputs.get(request.location, ()):
                message = f"the Plugin stays unchanged: {override.key} applies to the Plugin, but is invalid"
                return FailedPlugin(request, (PluginCodes.PLUGIN_OVERRIDE_INVALID.name,), message)
        return self._find_unreadable_input(request)

    @cached_property
    def _recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        return self._inputs.previous.get_recorded_inputs()

    def _find_unreadable_input(self, request: PluginRequest) -> FailedPlugin | None:
        """Return a failure if an object that the last render of the Plugin used may be in an unreadable file now."""
        if self._snapshot.catalog.is_complete:
            return None
        for object_name in sorted(self._recorded_inputs.get(request.location, ())):
            kind = object_name.partition("/")[0]
            if kind in _CODES_BY_KIND and object_name not in self._object_names:
                message = f"the Plugin stays unchanged: {object_name} may be in an unreadable file"
                return FailedPlugin(request, (_CODES_BY_KIND[kind].name,), message)
        return None

    def _resolve_options(
        self, request: PluginRequest, usable: UsableDefinition, layers: list[LayerOptions]
    ) -> OptionResolution:
        manifest, cluster = request.manifest, request.cluster
        injected = list_injected_options(
            request.key.namespace, cluster=request.cluster_name, cluster_labels=cluster.labels if cluster else {},
            owner=manifest.labels.get(OWNED_BY_LABEL, ""), base_domain=self._inputs.base_domain,
        )  # fmt: skip
        path = (*request.requester.plugin_path, "optionValues")
        subject = ResolutionSubject(str(request.key), manifest, path, usable, self._find_cluster(request))
        return self._resolver.resolve(subject, layers, injected)

    def _find_cluster(self, request: PluginRequest) -> ConfigObject | None:
        """Return the Cluster object of a Plugin. Return None if the config does not contain this object."""
        key = ObjectKey(GROUP, CLUSTER, request.key.namespace, request.cluster.name) if request.cluster else None
        return self._snapshot.catalog.get(key) if key else None

    def _build_variant(
        self,
        request: PluginRequest,
        release: PluginRelease,
        resolution: OptionResolution,
        metadata: PluginMetadata,
        outputs: OutputFiles,
        findings: tuple[Finding, ...],
    ) -> Variant:
        if isinstance(request.requester, Preset):
            data = build_preset_plugin(request.requester, request.key, request.target.repository, release, metadata)
        else:
            data = build_standalone_plugin(request.requester, release)
        spec, text = add_options(data, resolution.options)
        dependencies = _collect_dependencies(request, data, resolution, outputs)
        digests = {manifest.key.reference: digest for manifest, digest in dependencies.items()}
        plugin_object = OwnedObject(PLUGIN_FILE, PLUGIN, spec, metadata.removed_labels, metadata.removed_annotations)
        return Variant(
            request.owner, request.target, GeneratedSource(_build_file_tree(text, outputs)),
            PluginMutation(request.key.name, (plugin_object, *outputs.objects), outputs.values),
            {**digests, "engine": self._inputs.engine},
            adoption=_get_adoption_policy(request), deletion=self._get_deletion_policy(request), findings=findings,
            provenance=PluginProvenance(PLUGIN_FILE, request.key.reference, resolution, dependencies),
            sources=collect_config_sources(filter(None, (request.manifest, self._find_cluster(request)))),
        )  # fmt: skip

    def _get_deletion_policy(self, request: PluginRequest) -> DeletionPolicy:
        """Return the deletion policy of the Plugin's package. The policy depends on the preset and the Cluster object.

        The result is recorded in the state, so that the policy still applies after the Cluster object is deleted.
        """
        return "orphan" if is_retained(request.preset, self._find_cluster(request)) else "delete"


def _find_layer_errors(request: PluginRequest, layers: list[LayerOptions]) -> FailedPlugin | None:
    errors = [error for layer in layers for error in layer.errors]
    if not errors:
        return None
    # Return the failure without findings, because the object with the options already reports these errors.
    failed = create_failure(request, tuple(errors))
    return FailedPlugin(request, failed.codes, failed.message)


def _get_adoption_policy(request: PluginRequest) -> AdoptionPolicy:
    """Return the policy that allows or forbids the Plugin to adopt an existing package without an owner.

    A Plugin that a preset generates may always adopt the package. A Plugin in the config requires an annotation.
    """
    is_allowed = request.preset is not None or request.manifest.annotations.get(ADOPT_ANNOTATION) == "true"
    return "adoptExisting" if is_allowed and request.is_occupied and not request.is_owned else "adoptNone"


def _build_file_tree(plugin: str, outputs: OutputFiles) -> FileTree:
    return FileTree({path: File(data) for path, data in {PLUGIN_FILE: plugin.encode(), **outputs.files}.items()})


def _collect_dependencies(
    request: PluginRequest, data: Mapping[str, Any], resolution: OptionResolution, outputs: OutputFiles
) -> Mapping[ConfigObject, str]:
    """Return a digest for each config object that the Plugin depends on. A digest covers only the values in use."""
    digests: dict[ConfigObject, list[str]] = {}
    for option in resolution.options:
        digests.setdefault(option.winner.manifest, []).append(option.digest)
    digests.setdefault(request.manifest, []).append(compute_digest(data))
    for manifest, chart_digest in outputs.dependencies.items():
        digests.setdefault(manifest, []).append(chart_digest)
    return {manifest: _combine_digests(" ".join(values)) for manifest, values in digests.items()}


# Cache the digests, because most Plugins use the same values of a definition or an override.
@cached(8_192)
def _combine_digests(digests: str) -> str:
    return compute_digest(digests)
