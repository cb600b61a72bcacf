"""Resolution of the options of one Plugin: merge the layers, evaluate expressions, validate values, inject options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from reconciler.api.greenhouse_options import (
    LiteralValue,
    OptionExpression,
    PluginOption,
    SecretKeyReference,
    check_regex,
    check_type,
)
from reconciler.catalog.catalog import ConfigObject
from reconciler.cel import ExpressionLimits
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.config_objects import UsableDefinition
from reconciler.controllers.plugin_presets.injected_options import (
    METADATA_PREFIX,
    InjectedOption,
    build_expression_variables,
    is_removed_option,
)
from reconciler.controllers.plugin_presets.option_expressions import evaluate_expression, format_expression_errors
from reconciler.controllers.plugin_presets.option_layers import (
    DEFAULTS_LAYER,
    DEFINITION_AWARE_LAYERS,
    INJECTED_LAYER,
    LayerOptions,
    OptionAssignment,
    OptionResolution,
    ResolvedOption,
    collect_assignments,
    is_same_value,
)
from reconciler.controllers.plugin_presets.option_paths import check_option_paths
from reconciler.krm.field_text import quote_value, suggest_name
from reconciler.krm.findings import Finding, Severity, SourceLocation, downgrade_to_warning
from reconciler.krm.helm_paths import parse_option_name
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, replace


@dataclass(frozen=True)
class ResolutionSubject:
    """The Plugin whose options are resolved.

    Attributes:
        title: The Plugin's name in messages.
        manifest: The object that requests the Plugin.
        path: The path of the Plugin's options in `manifest`.
        cluster: The Cluster object whose labels become injected options. None if the Plugin has no Cluster object.
    """

    title: str
    manifest: ConfigObject
    path: DataPath
    definition: UsableDefinition
    cluster: ConfigObject | None = None


class OptionResolver:
    """Resolves the options of Plugins. Results that many Plugins of a definition share are computed only once.

    `limits` are the limits of one option's expression. The value is None if the settings disable expressions.
    """

    def __init__(self, limits: ExpressionLimits | None) -> None:
        self._limits = limits
        # The cached results. The key of `_options` contains the definition and the assignments of the option. The key
        # of `_common_results` contains the definition, the layers, and the names of the injected options.
        self._options: dict[tuple[object, ...], _Option] = {}
        self._common_results: dict[tuple[object, ...], _CommonResult] = {}
        self._variables: dict[tuple[InjectedOption, ...], Mapping[str, Any]] = {}

    def resolve(
        self, subject: ResolutionSubject, layers: Sequence[LayerOptions], injected: Sequence[InjectedOption]
    ) -> OptionResolution:
        """Return the options of a Plugin and all findings. Injected options replace options with the same path."""
        common = self._get_common_result(subject, layers, injected)
        results = list(common.options)
        if common.expression_names:
            resolution = _Resolution(subject, self._limits, self._get_variables(tuple(injected)))
            results += [resolution.resolve(name, common.assignments[name]) for name in common.expression_names]
        options = [result.option for result in results if result.option]
        options += [_resolve_injected(option, common.assignments.get(option.name, ()), subject) for option in injected]
        options.sort(key=lambda option: option.name)
        findings = [*common.findings, *(finding for result in results for finding in result.findings)]
        findings += (*_find_missing(subject, common.assignments), *check_option_paths(options))
        return OptionResolution(tuple(options), tuple(sorted(findings, key=_get_sort_key)), common.layers)

    def _get_variables(self, injected: tuple[InjectedOption, ...]) -> Mapping[str, Any]:
        if injected not in self._variables:
            self._variables[injected] = build_expression_variables(injected)
        return self._variables[injected]

    def _get_common_result(
        self, subject: ResolutionSubject, layers: Sequence[LayerOptions], injected: Sequence[InjectedOption]
    ) -> _CommonResult:
        key = (subject.definition.manifest, *layers, *(option.name for option in injected))
        if key not in self._common_results:
            self._common_results[key] = self._calculate_common_result(subject, layers, injected)
        return self._common_results[key]

    def _calculate_common_result(
        self, subject: ResolutionSubject, layers: Sequence[LayerOptions], injected: Sequence[InjectedOption]
    ) -> _CommonResult:
        assignments = collect_assignments(layers)
        reserved = _find_reserved_names(assignments, injected)
        resolvable = [name for name in assignments if name not in reserved]
        expression_names = tuple(
            name for name in resolvable if isinstance(assignments[name][-1].source, OptionExpression)
        )
        resolution = _Resolution(subject, self._limits, {})
        return _CommonResult(
            assignments,
            tuple(
                self._get_option(resolution, name, assignments[name])
                for name in resolvable
                if name not in expression_names
            ),
            expression_names,
            tuple(
                finding
                for name in assignments
                if name in reserved
                for finding in _create_reserved_findings(name, assignments[name])
            ),
            tuple(sorted(layers, key=lambda layer: layer.sort_key)),
        )

    def _get_option(self, resolution: _Resolution, name: str, assignments: Sequence[OptionAssignment]) -> _Option:
        key = (resolution.subject.definition.manifest, *assignments)
        if key not in self._options:
            self._options[key] = resolution.resolve(name, assignments)
        return self._options[key]


@dataclass(frozen=True, eq=False)
class _Option:
    """A resolved option and its findings. `option` is None if the option has no value, e.g. after an error."""

    option: ResolvedOption | None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, eq=False)
class _CommonResult:
    """The part of the resolution that is equal for all Plugins with the same definition and the same layers.

    `expression_names` are the names of options with an expression. These options are resolved separately for each
    Plugin.
    """

    assignments: Mapping[str, Sequence[OptionAssignment]]
    options: tuple[_Option, ...]
    expression_names: tuple[str, ...]
    findings: tuple[Finding, ...]
    layers: tuple[LayerOptions, ...]


def _get_sort_key(finding: Finding) -> tuple[SourceLocation, str, str]:
    return finding.location, finding.code, finding.message


def _find_reserved_names(
    assignments: Mapping[str, Sequence[OptionAssignment]], injected: Sequence[InjectedOption]
) -> frozenset[str]:
    injected_paths = {parse_option_name(option.name) for option in injected}
    return frozenset(
        name for name in assignments if is_removed_option(name) or parse_option_name(name) in injected_paths
    )


@dataclass(frozen=True)
class _Resolution:
    """The resolution of one Plugin's options, with the variables that expressions can use."""

    subject: ResolutionSubject
    limits: ExpressionLimits | None
    variables: Mapping[str, Any]

    def resolve(self, name: str, assignments: Sequence[OptionAssignment]) -> _Option:
        """Return the resolved option and its findings. `assignments` are all assignments, lowest layer first."""
        declared, winner = self.subject.definition.options.get(name), assignments[-1]
        is_secret = declared is not None and declared.type == "secret"
        source, findings = self._evaluate(name, winner, is_secret=is_secret)
        findings += tuple(_find_conflicts(name, assignments))
        if is_secret:
            findings += tuple(self._find_shadowed_literals(name, assignments[:-1]))
        if declared is None:
            findings += (self._create_undeclared_finding(name, winner),)
        if source is None:
            return _Option(None, findings)
        if declared and isinstance(source, LiteralValue):
            findings += tuple(self._validate(declared, source.value, winner))
        return _Option(ResolvedOption(name, source, tuple(assignments), is_secret), findings)

    def _evaluate(
        self, name: str, winner: OptionAssignment, *, is_secret: bool
    ) -> tuple[LiteralValue | SecretKeyReference | None, tuple[Finding, ...]]:
        """Return the value that `winner` assigns, and the findings. The value is None if its expression fails."""
        if not isinstance(winner.source, OptionExpression):
            return winner.source, ()
        if self.limits is None:
            option = quote_value(name)
            message = (
                f"{winner.field} sets {option} with an expression, but the setting `rules.expressions` is false; use"
                " value or valueFrom, or set `rules.expressions` to true"
            )
            return None, (PluginCodes.EXPRESSION_DISABLED.finding(message, winner.location),)
        result = evaluate_expression(winner.source.text, self.variables, self.limits)
        option = f"{quote_value(name)} of {self.subject.title}"
        if result.errors:
            # Hide the errors of a secret option, because an error message can contain the secret.
            subject = f"the expression in {winner.field} fails for the option {option}"
            message = format_expression_errors(subject, result.errors, is_hidden=is_secret)
            return None, (PluginCodes.EXPRESSION_FAILED.finding(message, winner.location),)
        retyped = () if is_secret else result.retyped
        messages = (f"the option {option} ({winner.field}) {message}" for message in retyped)
        return LiteralValue(result.value), tuple(
            PluginCodes.EXPRESSION_RETYPED.finding(message, winner.location) for message in messages
        )

    def _validate(self, declared: PluginOption, value: Any, winner: OptionAssignment) -> Iterator[Finding]:
        if declared.type == "secret" and winner.layer == DEFAULTS_LAYER:
            # Do not check the default of a secret, because a definition can only have the empty string as the default.
            return
        code = PluginCodes.SECRET_LITERAL if declared.type == "secret" else PluginCodes.OPTION_TYPE_MISMATCH
        error = check_type(declared.type, value)
        if not error:
            code, error = PluginCodes.REGEX_MISMATCH, check_regex(declared.regex, value)
        if error:
            definition = self.subject.definition.manifest.key
            option = quote_value(declared.name)
            message = (
                f'{winner.field} sets {option}, which {definition} declares as "{declared.type}": the value {error}'
            )
            yield code.finding(message, winner.location)

    def _find_shadowed_literals(self, name: str, replaced: Sequence[OptionAssignment]) -> Iterator[Finding]:
        """Yield a warning for each literal value of a secret option that a higher layer replaces.

        The literal value has no effect, but is in plain text in Git. The message does not name a Plugin, so that all
        Plugins share one warning.
        """
        declared = self.subject.definition.options[name]
        for assignment in replaced:
            if isinstance(assignment.source, LiteralValue):
                yield from map(downgrade_to_warning, self._validate(declared, assignment.source.value, assignment))

    def _create_undeclared_finding(self, name: str, winner: OptionAssignment) -> Finding:
        definition = self.subject.definition
        message = (
            f"{winner.field} sets {quote_value(name)}, which {definition.manifest.key} does not declare"
            f"{suggest_name(name, sorted(definition.options))}"
        )
        finding = PluginCodes.UNDECLARED_OPTION.finding(message, winner.location)
        # A layer that applies to all Plugins can set options that only some definitions declare. Therefore, the finding
        # is only an info for such a layer.
        return finding if winner.layer in DEFINITION_AWARE_LAYERS else replace(finding, severity=Severity.INFO)


def _resolve_injected(
    option: InjectedOption, assignments: Sequence[OptionAssignment], subject: ResolutionSubject
) -> ResolvedOption:
    is_cluster_label = option.label.startswith(METADATA_PREFIX)
    manifest = subject.cluster if is_cluster_label and subject.cluster else subject.manifest
    path = ("metadata", "labels", option.label) if option.label else ()
    source = LiteralValue(option.value)
    return ResolvedOption(
        option.name, source, (*assignments, OptionAssignment(INJECTED_LAYER, manifest, option.name, source, path))
    )


def _create_reserved_findings(name: str, assignments: Sequence[OptionAssignment]) -> Iterator[Finding]:
    for assignment in assignments:
        message = (
            f"{assignment.field} sets {quote_value(name)}, which is reserved for the reconciler; the value is ignored"
        )
        yield PluginCodes.RESERVED_OPTION.finding(message, assignment.location)


def _find_conflicts(name: str, assignments: Sequence[OptionAssignment]) -> Iterator[Finding]:
    """Yield a warning if two objects on the same layer set an option to different values.

    The option gets the value of the object with the higher `LayerOptions.sort_key`."""
    for replaced, winner in pairwise(assignments):
        if replaced.layer == winner.layer and not is_same_value(replaced.source, winner.source):
            message = (
                f"{winner} and {replaced} set {quote_value(name)} to different values on the same layer. The value from"
                f" {winner.object_key} replaces the value from {replaced.object_key}"
            )
            yield PluginCodes.CONFLICTING_OVERRIDES.finding(message, winner.location)


def _find_missing(
    subject: ResolutionSubject, assignments: Mapping[str, Sequence[OptionAssignment]]
) -> Iterator[Finding]:
    definition = subject.definition
    for option in definition.options.values():
        if option.required and option.name not in assignments:
            name = quote_value(option.name)
            message = f"{subject.title} has no value for the option {name}, which {definition.manifest.key} requires"
            yield PluginCodes.REQUIRED_OPTION_MISSING.finding(message, subject.manifest.location_of(subject.path))
