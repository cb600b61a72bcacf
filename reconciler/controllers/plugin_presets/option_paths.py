"""Checks of options whose paths in the Helm values overlap, e.g. `a` and `a.b`.

The module `helm_values` builds the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.api.greenhouse_options import LiteralValue, SecretKeyReference
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.helm_values import PathConflict, build_values
from reconciler.controllers.plugin_presets.option_layers import INJECTED_LAYER, LAYER_RANK, ResolvedOption
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import Finding
from reconciler.krm.helm_paths import PathStep, parse_option_name
from reconciler.krm.values_tree import is_free
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached


@dataclass(frozen=True)
class _SharedList:
    """Names of options whose paths in the Helm values have the same parent path.

    The options in `item_names` require a list at the parent path. The options in `map_names` require a map there.
    """

    item_names: tuple[str, ...]
    map_names: tuple[str, ...]


@dataclass(frozen=True)
class _PathRelations:
    """Relations between the paths of option names.

    `pairs` contains pairs of options. The path of the first option is equal to the path of the second option, or is a
    parent of this path. For each list in the Helm values, `lists` contains the options whose paths lead into the list.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    lists: tuple[_SharedList, ...] = ()

    @property
    def has_conflicting_kinds(self) -> bool:
        """Whether one name requires a list at a path, and another name requires a map at this path."""
        return any(shared_list.map_names for shared_list in self.lists)


def check_option_paths(options: Sequence[ResolvedOption]) -> Iterator[Finding]:
    """Yield findings about conflicts between options whose paths overlap or lead into the same list."""
    options_by_name = {option.name: option for option in options}
    relations = _relate_paths(tuple(options_by_name))
    yield from _find_overlaps(options_by_name, relations)
    if any(isinstance(option.source, SecretKeyReference) for option in options):
        yield from _find_shadowed_secrets(options_by_name, relations)
    if relations.pairs or relations.has_conflicting_kinds:
        yield from create_conflict_findings(options, build_values(list_literal_values(options)).conflicts)


def list_literal_values(options: Iterable[ResolvedOption]) -> list[tuple[str, Any]]:
    """Return the name and the value of each option that has a literal value."""
    return [(option.name, option.source.value) for option in options if isinstance(option.source, LiteralValue)]


def list_effective_secrets(
    options: Iterable[ResolvedOption], values: Mapping[str, Any]
) -> list[tuple[ResolvedOption, SecretKeyReference]]:
    """Return the options whose values come from Secrets, in the order of `options`.

    - An option is omitted if it conflicts with a literal value in `values`. If both have the same path,
      the depth of the path would determine whether Flux uses the literal value or the Secret.
    - If several options from Secrets have the same path, only the last one is returned.
    """
    secrets_by_path: dict[tuple[PathStep, ...], tuple[ResolvedOption, SecretKeyReference]] = {}
    for option in options:
        steps = parse_option_name(option.name)
        if isinstance(option.source, SecretKeyReference) and is_free(values, steps):
            secrets_by_path.pop(steps, None)
            secrets_by_path[steps] = (option, option.source)
    return list(secrets_by_path.values())


def create_conflict_findings(options: Iterable[ResolvedOption], conflicts: Iterable[PathConflict]) -> Iterator[Finding]:
    """Yield an error for each option that the Helm values cannot contain."""
    options_by_name = {option.name: option for option in options}
    for conflict in conflicts:
        option, other = options_by_name[conflict.name], options_by_name.get(conflict.conflicting_name)
        message = (
            f'the options "{option.name}" and "{other.name}" conflict, because'
            f" {explain_conflict(conflict, option, other)}"
            if other
            else f'{option.winner} cannot set the option "{option.name}", because the option {conflict.message}'
        )
        yield PluginCodes.CONFLICTING_OPTION_PATHS.finding(message, option.winner.location)


def explain_conflict(conflict: PathConflict, option: ResolvedOption, other: ResolvedOption) -> str:
    """Return the reason why the Helm values cannot contain two options, and the next step."""
    return (
        f'{conflict.message}. Next step: change or remove "{option.name}" in {option.winner}, or "{other.name}" in'
        f" {other.winner}"
    )


def _find_overlaps(options: Mapping[str, ResolvedOption], relations: _PathRelations) -> Iterator[Finding]:
    for pair in relations.pairs:
        above, below = (options[name] for name in pair)
        are_literals = isinstance(above.source, LiteralValue) and isinstance(below.source, LiteralValue)
        if are_literals and LAYER_RANK[below.winner.layer] < LAYER_RANK[above.winner.layer]:
            step = f'remove "{below.name}"'
            if above.winner.layer != INJECTED_LAYER:
                step += f', or set it on the layer "{above.winner.layer}" too'
            message = (
                f'"{below.name}" in {below.winner} replaces a part of "{above.name}" in {above.winner}, although'
                f' "{above.name}" is set on a higher layer ("{above.winner.layer}" is higher than'
                f' "{below.winner.layer}"). Next step: {step}'
            )
            yield PluginCodes.OVERLAPPING_OPTION_PATHS.finding(message, below.winner.location)


def _find_shadowed_secrets(options: Mapping[str, ResolvedOption], relations: _PathRelations) -> Iterator[Finding]:
    """Yield one warning for each secret option that conflicts with other options.

    Two options conflict if one path is a parent of the other path or equal to it, or if both lead into the same list.
    """
    names_by_secret: dict[str, dict[str, None]] = {}
    for name, other_name in _iterate_secret_overlaps(options, relations):
        names_by_secret.setdefault(name, {})[other_name] = None
    for name, other_names in names_by_secret.items():
        option, (first, *rest) = options[name], (options[other_name] for other_name in other_names)
        more = "".join(f", {quote_value(other.name)}" for other in rest)
        others = f'{first.winner} sets "{first.name}"{more}'
        reason = (
            f"{others} from a secret too, but the paths of secrets must not overlap"
            if all(isinstance(other.source, SecretKeyReference) for other in (first, *rest))
            else f"{others} without a secret. The literal value replaces the secret, because the paths overlap or lead"
            " into the same list; remove one of these options"
        )
        message = f'{option.winner} sets "{name}" from a secret, and {reason}'
        yield ControllerCodes.SECRET_PATH_SHADOWED.finding(message, option.winner.location)


def _iterate_secret_overlaps(
    options: Mapping[str, ResolvedOption], relations: _PathRelations
) -> Iterator[tuple[str, str]]:
    """Yield pairs of a secret option and an overlapping option. Two overlapping secrets form only one pair."""
    secrets = {name for name, option in options.items() if isinstance(option.source, SecretKeyReference)}
    for above, below in relations.pairs:
        if above in secrets:
            yield above, below
        elif below in secrets:
            yield below, above
    for shared in relations.lists:
        literals = [name for name in shared.item_names if name not in secrets]
        # Yield only one overlapping option, because several names would make the message too long.
        other_names = (*literals, *shared.map_names)[:1]
        yield from ((name, other) for name in shared.item_names if name in secrets for other in other_names)
        yield from ((name, other) for name in shared.map_names if name in secrets for other in literals[:1])


# Cache the relations, because most Plugins of a definition have the same option names.
@cached(1_024)
def _relate_paths(names: tuple[str, ...]) -> _PathRelations:
    names_by_path: dict[tuple[PathStep, ...], list[str]] = {}
    for name in names:
        names_by_path.setdefault(parse_option_name(name), []).append(name)
    pairs: list[tuple[str, str]] = []
    # For each path that is a parent of other paths, collect the options that need a map at this path, and the options
    # that need a list at this path.
    required_kinds: dict[tuple[PathStep, ...], tuple[list[str], list[str]]] = {}
    for steps, same_path in names_by_path.items():
        pairs += [(same_path[0], other) for other in same_path[1:]]
        for depth, step in enumerate(steps):
            required_kinds.setdefault(steps[:depth], ([], []))[isinstance(step, int)].extend(same_path)
            pairs += [(above, name) for above in names_by_path.get(steps[:depth], ()) for name in same_path]
    lists = [
        _SharedList(tuple(item_names), tuple(map_names))
        for map_names, item_names in required_kinds.values()
        if item_names
    ]
    return _PathRelations(tuple(sorted(pairs)), tuple(lists))
