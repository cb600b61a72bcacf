"""Reading rules: those of a policy, one of a text that was kept, and one as it is for a cluster (kubeadmiral 1, 12)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from reconciler.caching import cached
from reconciler.krm.durations import duration_seconds
from reconciler.krm.findings import Where
from reconciler.krm.names import dns_label_fault
from reconciler.krm.yaml import Path
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.clusters.read_targets import TARGET_FIELDS, read_selection, read_targets
from reconciler.rules.fields import Faults, Fields, dotted, shown
from reconciler.rules.notes import Note
from reconciler.rules.overrides.codes import POLICY_INVALID, VARIABLE_UNRESOLVED
from reconciler.rules.overrides.model import Rollout, Rule
from reconciler.rules.overrides.read_overriders import read_overriders
from reconciler.rules.overrides.variables import has_variables, resolved, sampled

_TEXT_FIELDS = ("targetClusters", "overriders")
_RULE_FIELDS = ("name", "rollout", *_TEXT_FIELDS)
# every resource of a package asks for the same few
_REMEMBERED_TEXTS = 1024


def read_rules(spec: Fields) -> tuple[Rule, ...]:
    """Return the rules of a spec; none is fine, and does nothing."""
    written = [*spec.mappings("overrideRules", _RULE_FIELDS)]
    rules = tuple(map(_read_whole, written))
    _check_names(written)
    return rules


@cached(_REMEMBERED_TEXTS)
def read_rule_text(text: str) -> Rule | None:
    """Return the rule that once had this text; None if it is none that could be written today."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    faults = _unplaced()
    rule = _read_rule(Fields(data, (), faults, _TEXT_FIELDS))
    return None if faults.findings or data is None else replace(rule, text=text)


def rule_for(rule: Rule, number: int, cluster: Cluster) -> Rule | tuple[Note, ...]:
    """Return a rule as it is for a cluster, or what its variables make of it that no policy may say."""
    if rule.template is None:
        return rule
    path: Path = ("spec", "overrideRules", number)
    data, unknown = resolved(rule.template, cluster)
    if unknown:
        return tuple(
            Note(VARIABLE_UNRESOLVED, f"{dotted((*path, 'overriders', *one.path))} {one.message}") for one in unknown
        )
    faults = _unplaced()
    overriders = read_overriders(Fields({"overriders": data}, path, faults, None))
    wrong = (f"on {cluster.name}, {one.message}" for one in faults.findings)
    return tuple(Note(VARIABLE_UNRESOLVED, message) for message in wrong) or replace(rule, overriders=overriders)


def _read_whole(written: Fields) -> Rule:
    rule, name, rollout = _read_rule(written), _read_name(written), _read_rollout(written)
    return replace(rule, name=name, rollout=rollout, text=_text(written.data))


def _read_rule(rule: Fields) -> Rule:
    written = rule.data.get("overriders")
    if not has_variables(written):
        return Rule(read_targets(rule), read_overriders(rule))
    sample, faults = sampled(written)
    for fault in faults:
        rule.faults.add((*rule.path, "overriders", *fault.path), fault.message)
    filled = Fields({"overriders": sample}, rule.path, rule.faults, None)
    return Rule(read_targets(rule), read_overriders(filled), written)


def _text(rule: Any) -> str:
    # keys stay in their order: in that order new ones are written into resources
    said = {name: rule[name] for name in _TEXT_FIELDS if rule.get(name) is not None}
    return json.dumps(said, separators=(",", ":"))


def _read_name(rule: Fields) -> str:
    name = rule.text("name", required=rule.has("name"))
    if name and (fault := dns_label_fault(name)):
        rule.fault("name", f"must be a DNS label: {fault}")
    elif name.isdigit():
        rule.fault("name", f"must have a letter, not {shown(name)}: rules without a name go by their numbers")
    return name


def _check_names(rules: Iterable[Fields]) -> None:
    first: dict[str, Fields] = {}
    for rule in rules:
        name = rule.data.get("name")
        if isinstance(name, str) and name and first.setdefault(name, rule) is not rule:
            rule.fault("name", f"must be the name of one rule only, and {shown(name)} is {dotted(first[name].path)}")


def _read_rollout(rule: Fields) -> Rollout | None:
    if not rule.has("rollout"):
        return None
    rollout = rule.mapping("rollout", ("waves", "soak"))
    if rollout.data.get("waves") in (None, []):
        rollout.fault("waves", "must be a list of one wave or more")
    waves = tuple(map(read_selection, rollout.mappings("waves", TARGET_FIELDS)))
    soak = rollout.text("soak")
    if soak and duration_seconds(soak) is None:
        rollout.fault("soak", f'must be a duration such as "10m" or "1h30m", not {shown(soak)}')
    return Rollout(waves, soak)


def _unplaced() -> Faults:
    return Faults(lambda _: Where(), POLICY_INVALID)
