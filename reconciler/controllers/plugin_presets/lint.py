"""Warnings about valid config that is probably wrong: presets, PluginOverrides, option expressions, owner labels and
Catalogs.

Owner labels are checked only if the config contains Teams. A Catalog with overrides causes a warning, because the
controller ignores these overrides.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.api import greenhouse
from reconciler.api.base import read_model
from reconciler.api.greenhouse import CATALOG, GROUP, OWNED_BY_LABEL, PLUGIN, PRESET, SUPPORT_GROUP_LABEL, TEAM
from reconciler.api.greenhouse_options import OptionExpression
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.cel import ExpressionLimits
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.config_objects import OverrideLayer, read_plugin, read_preset
from reconciler.controllers.plugin_presets.inputs import PluginPresetCache
from reconciler.controllers.plugin_presets.option_expressions import check_option_expression, format_expression_errors
from reconciler.controllers.plugin_presets.option_layers import LayerOptions
from reconciler.controllers.plugin_presets.snapshot import PresetSnapshot, read_preset_snapshot, select_clusters
from reconciler.controllers.plugin_presets.status import OWNER_LABEL
from reconciler.controllers.validation import explain_no_match, list_requirements
from reconciler.krm.findings import Finding, FindingCode
from reconciler.krm.objects import Condition, ObjectKey

_DEPRECATED_DOCS_FIELD = "docMarkDownUrl"


def lint_presets(catalog: Catalog, inventory: ClusterInventory, limits: ExpressionLimits | None) -> Iterator[Finding]:
    """Yield warnings about selectors that match no cluster, expressions that always fail, and deprecated fields.

    Call this function only if all files of the catalog are readable. If `limits` is None, expressions are not checked,
    because the settings disable expressions.
    """
    snapshot = read_preset_snapshot(catalog, inventory, PluginPresetCache())
    yield from _find_idle_presets(snapshot)
    yield from _find_idle_overrides(snapshot)
    if limits:
        yield from _find_unusable_expressions(snapshot, limits)
    for definition in snapshot.definitions.values():
        if definition.spec.doc_mark_down_url is not None:
            message = f"spec.{_DEPRECATED_DOCS_FIELD} is deprecated; use spec.docsURL"
            location = definition.manifest.location_of(("spec", _DEPRECATED_DOCS_FIELD))
            yield ControllerCodes.DEPRECATED.finding(message, location)


def _find_idle_presets(snapshot: PresetSnapshot) -> Iterator[Finding]:
    for manifest in snapshot.catalog.objects_of_kind(GROUP, PRESET):
        preset, _ = read_preset(manifest)
        if preset is None or select_clusters(preset, snapshot.clusters):
            continue
        namespace = manifest.key.namespace
        label_sets = [cluster.labels for cluster in snapshot.clusters.get_clusters(namespace).values()]
        reason = explain_no_match(list_requirements(preset.selector), label_sets, f'Cluster in namespace "{namespace}"')
        message = f"spec.clusterSelector matches no cluster and no Plugin is created, because {reason}"
        yield ControllerCodes.SELECTOR_MATCHES_NOTHING.finding(
            message, manifest.location_of(("spec", "clusterSelector"))
        )


def _find_idle_overrides(snapshot: PresetSnapshot) -> Iterator[Finding]:
    """Yield a warning for each label selector of a PluginOverride that matches no cluster."""
    for override in _iterate_valid_overrides(snapshot):
        yield from _find_idle_selectors(override, snapshot)


def _iterate_valid_overrides(snapshot: PresetSnapshot) -> Iterator[OverrideLayer]:
    for overrides in snapshot.overrides.values():
        yield from (override for override in overrides if override.is_valid)


def _find_idle_selectors(override: OverrideLayer, snapshot: PresetSnapshot) -> Iterator[Finding]:
    namespace = override.key.namespace
    label_sets = [cluster.labels for cluster in snapshot.clusters.get_clusters(namespace).values()]
    for selection in override.targets.cluster_selector:
        selector = selection.selector
        if selector is not None and not any(selector.matches(labels) for labels in label_sets):
            reason = explain_no_match(list_requirements(selector), label_sets, f'Cluster in namespace "{namespace}"')
            message = f"spec.clusterSelector has a labelSelector that matches no cluster, because {reason}"
            yield ControllerCodes.SELECTOR_MATCHES_NOTHING.finding(
                message, override.manifest.location_of(("spec", "clusterSelector"))
            )


def _find_unusable_expressions(snapshot: PresetSnapshot, limits: ExpressionLimits) -> Iterator[Finding]:
    secret_names = {
        name for usable in snapshot.definitions.values() for name, option in usable.options.items()
        if option.type == "secret"
    }  # fmt: skip
    for layer in _iterate_layers(snapshot):
        for assignment in layer.assignments:
            source = assignment.source
            errors = check_option_expression(source.text, limits) if isinstance(source, OptionExpression) else ()
            if errors:
                # Hide the error of a secret option, because the error can quote an expression that contains the secret.
                is_hidden = assignment.name in secret_names
                subject = f"the expression in {assignment.field} fails for every Plugin"
                message = format_expression_errors(subject, errors, is_hidden=is_hidden)
                yield PluginCodes.EXPRESSION_UNUSABLE.finding(message, assignment.location)


def _iterate_layers(snapshot: PresetSnapshot) -> Iterator[LayerOptions]:
    """Yield every list of options that can contain expressions."""
    for manifest in snapshot.catalog.objects_of_kind(GROUP, PRESET):
        preset, _ = read_preset(manifest)
        if preset:
            yield from (preset.options, *preset.cluster_options.values())
    for manifest in snapshot.catalog.objects_of_kind(GROUP, PLUGIN):
        plugin, _ = read_plugin(manifest)
        if plugin:
            yield plugin.options
    yield from snapshot.namespace_layers.values()
    yield from (override.layer for override in _iterate_valid_overrides(snapshot))


def check_owner_label(manifest: ConfigObject, catalog: Catalog) -> tuple[Condition | None, tuple[Finding, ...]]:
    """Return the condition about an object's owner label, and a warning if the label does not name a support group.

    Return None and no warning if the config contains no Teams.
    """
    if not catalog.objects_of_kind(GROUP, TEAM):
        return None, ()
    error = _find_owner_label_error(manifest, catalog)
    if error is None:
        return Condition(OWNER_LABEL, "True", "OwnerLabelSet", ""), ()
    code, reason = error
    message = f"metadata.labels.{OWNED_BY_LABEL} {reason}"
    finding = code.finding(message, manifest.location_of(("metadata", "labels", OWNED_BY_LABEL)))
    return Condition(OWNER_LABEL, "False", code.name, message), (finding,)


def _find_owner_label_error(manifest: ConfigObject, catalog: Catalog) -> tuple[FindingCode, str] | None:
    name = manifest.labels.get(OWNED_BY_LABEL, "")
    if not name:
        return PluginCodes.OWNER_LABEL_MISSING, "must be set to the name of the Team that owns this object"
    team = catalog.get(ObjectKey(GROUP, TEAM, manifest.key.namespace, name))
    if team is None:
        return (
            PluginCodes.OWNER_LABEL_NOT_EXISTING_TEAM,
            f'must be the name of a Team in namespace "{manifest.key.namespace}", but no Team has the name "{name}"',
        )
    if team.labels.get(SUPPORT_GROUP_LABEL) != "true":
        return (
            PluginCodes.OWNER_LABEL_SET_TO_NON_SUPPORT_GROUP_TEAM,
            f'must be the name of a support group, but the Team "{name}" has no label {SUPPORT_GROUP_LABEL}: "true"',
        )
    return None


def check_catalogs(catalog: Catalog) -> Iterator[Finding]:
    """Yield a warning for each source of a Catalog if the source sets `overrides`. This field has no effect."""
    for manifest in catalog.objects_of_kind(GROUP, CATALOG):
        model = read_model(greenhouse.Catalog, manifest.data, greenhouse.Catalog.templates).model
        for index, source in enumerate(model.spec.sources if model else ()):
            if source.overrides:
                message = f"spec.sources[{index}].overrides has no effect; use a PluginOverride with mode Default"
                yield PluginCodes.CATALOG_IGNORED.finding(
                    message, manifest.location_of(("spec", "sources", index, "overrides"))
                )
