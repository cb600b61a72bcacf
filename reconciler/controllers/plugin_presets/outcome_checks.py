"""Checks that compare all outcomes of a pass: shared releases, `waitFor` cycles, and secrets in plain text.

For example, an Organization sets a literal password for all its Plugins, and only one plugin definition declares the
option as a secret. The password must not be written or shown for any of the Plugins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from reconciler.api.greenhouse import ORGANIZATION
from reconciler.api.greenhouse_options import (
    OPTION_TYPES,
    VAULT_PREFIX,
    LiteralValue,
    OptionExpression,
    SecretKeyReference,
    check_type,
)
from reconciler.api.greenhouse_overrides import PluginOverrideTargets
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.option_layers import LayerOptions, OptionAssignment, ResolvedOption
from reconciler.controllers.plugin_presets.plugin_outcomes import (
    BuiltPlugin,
    FailedPlugin,
    PluginOutcome,
    PluginRequest,
    create_failure,
)
from reconciler.controllers.plugin_presets.provenance import PluginProvenance
from reconciler.controllers.plugin_presets.snapshot import OverrideMatcher, PresetSnapshot
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import Finding, SourceLocation, select_errors
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace

_PluginsByName = Mapping[tuple[str, str], BuiltPlugin]
# Hide the messages of these findings for secrets, because the messages contain the option value.
_CODES_WITH_VALUES = {
    code.name
    for code in (
        PluginCodes.EXPRESSION_FAILED,
        PluginCodes.EXPRESSION_RETYPED,
        PluginCodes.OPTION_TYPE_MISMATCH,
        PluginCodes.REGEX_MISMATCH,
    )
}


def check_plugin_conflicts(outcomes: Sequence[PluginOutcome]) -> list[PluginOutcome]:
    """Find conflicts between Plugins on the same cluster. Return the outcomes, with a failure for each such Plugin."""
    built = [outcome for outcome in outcomes if isinstance(outcome, BuiltPlugin)]
    errors = {**_find_wait_cycles(built), **_find_shared_releases(built)}
    names = {(outcome.request.target.repository, outcome.request.key.name) for outcome in outcomes}
    checked: list[PluginOutcome] = []
    for outcome in outcomes:
        if not isinstance(outcome, BuiltPlugin):
            checked.append(outcome)
        elif id(outcome) in errors:
            checked.append(create_failure(outcome.request, (errors[id(outcome)],)))
        else:
            checked.append(_add_unmet_warnings(outcome, names))
    return checked


def _find_shared_releases(plugins: Iterable[BuiltPlugin]) -> Mapping[int, Finding]:
    """Find Plugins with the same Helm release. Return errors for all these Plugins except the first.

    The first Plugin keeps the release. Published Plugins come before other Plugins. Otherwise, Plugins are sorted by
    name.

    Returns:
        A mapping from the Python `id` of each Plugin with an error to the error.
    """
    plugins_by_release: dict[tuple[str, str, str], list[BuiltPlugin]] = {}
    for plugin in plugins:
        if plugin.release.name:
            release = (plugin.request.target.repository, plugin.release.namespace, plugin.release.name)
            plugins_by_release.setdefault(release, []).append(plugin)
    errors: dict[int, Finding] = {}
    for (cluster, namespace, name), sharing in plugins_by_release.items():
        owner, *others = sorted(sharing, key=lambda plugin: (not plugin.request.is_occupied, plugin.request.key))
        for plugin in others:
            message = (
                f'{plugin.request.key} and {owner.request.key} have the same release "{name}" in namespace'
                f' "{namespace}" of cluster "{cluster}"; set a different releaseName or releaseNamespace for one'
                " of them"
            )
            errors[id(plugin)] = PluginCodes.RELEASE_NAME_CONFLICT.finding(message, plugin.request.manifest.location)
    return errors


def _find_wait_cycles(plugins: Iterable[BuiltPlugin]) -> Mapping[int, Finding]:
    plugins_by_name = {(plugin.request.target.repository, plugin.request.key.name): plugin for plugin in plugins}
    errors: dict[int, Finding] = {}
    for (cluster, name), plugin in plugins_by_name.items():
        if cycle := _find_wait_cycle(name, cluster, plugins_by_name):
            message = (
                f'{plugin.request.key} on cluster "{cluster}" must not wait for itself, but {quote_value(cycle[0])}'
                f" waits for {', which waits for '.join(map(quote_value, cycle[1:]))}"
            )
            location = plugin.request.manifest.location_of(("spec", "waitFor"))
            errors[id(plugin)] = PluginCodes.WAIT_FOR_CYCLE.finding(message, location)
    return errors


def _find_wait_cycle(start: str, cluster: str, plugins: _PluginsByName) -> list[str]:
    """Return the names in a `waitFor` cycle that contains the Plugin `start`. Return [] if there is no such cycle."""
    waits_for: dict[str, str] = {}
    pending = [start]
    while pending:
        name = pending.pop()
        for awaited in _iterate_awaited(name, cluster, plugins):
            if awaited == start:
                return [*reversed(_trace_path(name, waits_for, start)), start]
            if awaited not in waits_for:
                waits_for[awaited] = name
                pending.append(awaited)
    return []


def _trace_path(name: str, waits_for: Mapping[str, str], start: str) -> list[str]:
    path = [name]
    while path[-1] != start:
        path.append(waits_for[path[-1]])
    return path


def _iterate_awaited(name: str, cluster: str, plugins: _PluginsByName) -> Iterator[str]:
    plugin = plugins.get((cluster, name))
    return (entry.get_plugin_name(cluster) for entry in (plugin.request.requester.spec.wait_for if plugin else ()))


def _add_unmet_warnings(plugin: BuiltPlugin, names: set[tuple[str, str]]) -> BuiltPlugin:
    request, cluster = plugin.request, plugin.request.target.repository
    awaited_names = [entry.get_plugin_name(cluster) for entry in request.requester.spec.wait_for]
    unmet = [name for name in awaited_names if (cluster, name) not in names]
    if not unmet:
        return plugin
    location = request.manifest.location_of(("spec", "waitFor"))
    warnings = tuple(
        PluginCodes.WAIT_FOR_NEVER_MET.finding(
            f'{request.key} waits for Plugin "{name}", which does not exist on cluster "{cluster}"', location
        )
        for name in unmet
    )
    return replace(plugin, variant=replace(plugin.variant, findings=(*plugin.variant.findings, *warnings)))


@dataclass
class _SecretEntries:
    """Entries of shared options that set a secret option to a literal value.

    Attributes:
        entries: Maps the config location of an entry to the plugin definition that declares the option as a secret, and
            to the entry.
    """

    entries: dict[SourceLocation, tuple[ObjectKey, OptionAssignment]] = field(default_factory=dict)

    def add(self, shared: _SharedOptions, definition: ObjectKey, names: Collection[str]) -> None:
        """Add the entries with literal values for the options `names`, which `definition` declares as secrets.

        If several definitions declare the option of an entry as a secret, the finding about the entry contains only the
        definition with the lowest key.
        """
        for assignment in shared.literals if shared.applies_to(definition) else ():
            location = assignment.location
            if assignment.name in names and definition <= self.entries.get(location, (definition,))[0]:
                self.entries[location] = (definition, assignment)

    def contains_any(self, assignments: Collection[OptionAssignment]) -> bool:
        """Return whether one of the assignments is a stored entry: it sets a secret option to a literal value."""
        return any(assignment.location in self.entries for assignment in assignments)

    def create_finding(self, location: SourceLocation) -> Finding:
        """Return the error about the entry at a location."""
        definition, assignment = self.entries[location]
        # Use the same message as the check of a single Plugin, so that the findings of both checks about one entry are
        # equal.
        subject = f'{assignment.field} sets {quote_value(assignment.name)}, which {definition} declares as "secret"'
        message = f"{subject}: the value {check_type('secret', None)}"
        return PluginCodes.SECRET_LITERAL.finding(message, location)


def check_literal_secrets(
    outcomes: Sequence[PluginOutcome],
    snapshot: PresetSnapshot,
    matcher: OverrideMatcher,
    kept_owners: Collection[ObjectKey],
) -> list[PluginOutcome]:
    """Return the outcomes. Replace a built Plugin with a failure if it uses a literal secret from shared options.

    Shared options apply to Plugins of several definitions. If one of these definitions declares an option as a secret,
    the value of the option is a secret for all these Plugins, and is hidden in all output. A Plugin does not fail if
    another layer replaces the value for this Plugin.

    Args:
        kept_owners: Presets and Plugins that cannot be processed. Their clusters are unknown. Therefore, their
            definitions are checked against the shared options of all clusters.
    """
    shared_options = [shared for shared in _iterate_shared_options(snapshot) if shared.literals]
    if not shared_options:
        return list(outcomes)
    literal_names = {assignment.name for shared in shared_options for assignment in shared.literals}
    uncertain = _find_uncertain_definitions(snapshot, kept_owners)
    keys = uncertain | {
        outcome.request.plugin.definition.create_key(outcome.request.key.namespace) for outcome in outcomes
    }
    secret_names = {key: names for key in keys if (names := literal_names & _list_secret_names(snapshot, key))}
    # Return early, because in most configs no definition declares one of these options as a secret.
    if not secret_names:
        return list(outcomes)
    secrets = _SecretEntries()
    for key in uncertain & secret_names.keys():
        for shared in shared_options:
            secrets.add(shared, key, secret_names[key])
    shared_by_layer = {shared.layer: shared for shared in shared_options}
    for shared, key in _list_uses(outcomes, shared_by_layer, snapshot, matcher):
        secrets.add(shared, key, secret_names.get(key, ()))
    return [_check_outcome(outcome, secrets) for outcome in outcomes] if secrets.entries else list(outcomes)


def _list_uses(
    outcomes: Iterable[PluginOutcome],
    shared_by_layer: Mapping[LayerOptions, _SharedOptions],
    snapshot: PresetSnapshot,
    matcher: OverrideMatcher,
) -> Iterable[tuple[_SharedOptions, ObjectKey]]:
    """Return pairs: shared options, and the key of a definition whose Plugins receive these options."""
    # Use only one request for each definition and cluster, because the same shared options apply to all requests with
    # this definition and cluster.
    requests = {
        (
            outcome.request.key.namespace,
            outcome.request.plugin.definition,
            outcome.request.cluster_name,
        ): outcome.request
        for outcome in outcomes
    }
    uses: dict[tuple[LayerOptions, ObjectKey], None] = {}
    for request in requests.values():
        key = request.plugin.definition.create_key(request.key.namespace)
        layers = _iterate_layers_for(request, snapshot, matcher)
        uses |= {(layer, key): None for layer in layers if layer in shared_by_layer}
    return [(shared_by_layer[layer], key) for layer, key in uses]


@dataclass(frozen=True, eq=False)
class _SharedOptions:
    """The options that an Organization, a Cluster or a PluginOverride sets for several Plugins.

    `targets` are the targets of a PluginOverride. These targets can exclude definitions.
    """

    organization: str
    layer: LayerOptions
    targets: PluginOverrideTargets = field(default_factory=PluginOverrideTargets)

    @cached_property
    def literals(self) -> Sequence[OptionAssignment]:
        """The entries with literal values. These values may be secrets in plain text."""
        return [assignment for assignment in self.layer.assignments if _is_literal(assignment)]

    def applies_to(self, definition: ObjectKey) -> bool:
        """Return whether the options apply to the Plugins of a definition."""
        is_usable = definition.namespace in ("", self.organization)
        return is_usable and self.targets.selects_definition(definition.kind, definition.name)


def _iterate_shared_options(snapshot: PresetSnapshot) -> Iterator[_SharedOptions]:
    for key, layer in snapshot.namespace_layers.items():
        yield _SharedOptions(key.name if key.kind == ORGANIZATION else key.namespace, layer)
    for namespace, overrides in snapshot.overrides.items():
        yield from (
            _SharedOptions(namespace, override.layer, override.targets) for override in overrides if override.is_valid
        )


def _find_uncertain_definitions(snapshot: PresetSnapshot, kept_owners: Collection[ObjectKey]) -> set[ObjectKey]:
    """Return the definitions that invalid or unreadable presets and Plugins may use."""
    if not snapshot.catalog.is_complete:
        return set(snapshot.definition_keys)
    definition_keys: set[ObjectKey] = set()
    for key in kept_owners:
        manifest = snapshot.catalog.get(key)
        name = _find_definition_name(manifest.data) if manifest else ""
        definition_keys |= {
            definition_key
            for definition_key in snapshot.definition_keys
            if definition_key.namespace in ("", key.namespace) and name in ("", definition_key.name)
        }
    return definition_keys


def _find_definition_name(data: Mapping[str, Any]) -> str:
    """Return the name of the definition in an invalid preset or Plugin. Return "" if the name is unknown."""
    spec = data.get("spec")
    plugin = spec.get("plugin", spec) if isinstance(spec, Mapping) else None
    if not isinstance(plugin, Mapping):
        return ""
    ref = plugin.get("pluginDefinitionRef")
    name = ref.get("name") if isinstance(ref, Mapping) else plugin.get("pluginDefinitionName")
    return name if isinstance(name, str) else ""


def _list_secret_names(snapshot: PresetSnapshot, key: ObjectKey) -> frozenset[str]:
    """Return the names of a definition's secret options.

    For an invalid definition, the result includes options with an unknown type, because such options may be secret.
    """
    usable = snapshot.definitions.get(key)
    if usable:
        return frozenset(option.name for option in usable.options.values() if option.type == "secret")
    invalid = snapshot.catalog.get(key)
    spec = invalid.data.get("spec") if invalid else None
    options = spec.get("options") if isinstance(spec, Mapping) else None
    entries = [entry for entry in options if isinstance(entry, Mapping)] if isinstance(options, list) else []
    return frozenset(
        entry["name"]
        for entry in entries
        if isinstance(entry.get("name"), str)
        and (entry.get("type") == "secret" or entry.get("type") not in OPTION_TYPES)
    )


def _is_literal(assignment: OptionAssignment) -> bool:
    match assignment.source:
        case SecretKeyReference():
            return False
        case OptionExpression(text=text):
            return VAULT_PREFIX not in text
        case LiteralValue(value=value):
            return bool(check_type("secret", value)) and value != ""


def _iterate_layers_for(
    request: PluginRequest, snapshot: PresetSnapshot, matcher: OverrideMatcher
) -> Iterator[LayerOptions]:
    namespace = request.key.namespace
    yield from snapshot.list_namespace_layers(namespace, request.cluster_name)
    overrides = matcher.match(namespace, request.plugin.definition, request.cluster)
    yield from (override.layer for override in overrides if override.is_valid)


def _check_outcome(outcome: PluginOutcome, secrets: _SecretEntries) -> PluginOutcome:
    match outcome:
        case BuiltPlugin():
            return _check_built_plugin(outcome, secrets)
        case FailedPlugin(request=request, findings=findings) if any(
            _has_quoted_secret(finding, secrets) for finding in findings
        ):
            hidden = tuple(
                secrets.create_finding(finding.location) if _has_quoted_secret(finding, secrets) else finding
                for finding in findings
            )
            return create_failure(request, select_errors(hidden), hidden)
        case _:
            return outcome


def _has_quoted_secret(finding: Finding, secrets: _SecretEntries) -> bool:
    return finding.code in _CODES_WITH_VALUES and finding.location in secrets.entries


def _check_built_plugin(plugin: BuiltPlugin, secrets: _SecretEntries) -> PluginOutcome:
    provenance = plugin.variant.provenance
    if not isinstance(provenance, PluginProvenance):
        return plugin
    options = [_hide_values(option, secrets) for option in provenance.resolution.options]
    errors = tuple(
        secrets.create_finding(option.winner.location)
        for option in options
        if option.winner.location in secrets.entries
        and isinstance(option.source, LiteralValue)
        and check_type("secret", option.source.value)
    )
    if errors:
        others = (finding for finding in plugin.variant.findings if not _has_quoted_secret(finding, secrets))
        return create_failure(plugin.request, errors, (*errors, *others))
    resolution = replace(provenance.resolution, options=tuple(options))
    return replace(plugin, variant=replace(plugin.variant, provenance=replace(provenance, resolution=resolution)))


def _hide_values(option: ResolvedOption, secrets: _SecretEntries) -> ResolvedOption:
    return (
        replace(option, is_secret=True) if secrets.contains_any(option.assignments) and not option.is_secret else option
    )
