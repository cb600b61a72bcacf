"""Evaluation of one resource for one cluster: always from the resource as it was rendered (kubeadmiral 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.findings import Finding, errors
from reconciler.krm.identity import ObjectKey
from reconciler.krm.pointer import format_pointer
from reconciler.krm.yaml import Document, Path, YamlError
from reconciler.krm.yaml.same import same
from reconciler.packages.package import PackageResource
from reconciler.packages.parsing import edited_document
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.clusters.targets import is_target
from reconciler.rules.edits import value_at
from reconciler.rules.fields import shown
from reconciler.rules.notes import Note, finding_of
from reconciler.rules.overrides.attach import Attached, OnMissing, stripped
from reconciler.rules.overrides.codes import (
    ANNOTATIONS_TOO_LARGE,
    IDENTITY_CHANGED,
    POLICY_NO_EFFECT,
    RESULT_UNWRITABLE,
)
from reconciler.rules.overrides.command_args import apply_list
from reconciler.rules.overrides.effect import Effect
from reconciler.rules.overrides.envs import apply_envs
from reconciler.rules.overrides.image import apply_image
from reconciler.rules.overrides.in_force import InForce, Texts, rules_in_force
from reconciler.rules.overrides.jsonpatch import FINALIZERS, apply_patch_item, tidy_finalizers
from reconciler.rules.overrides.metadata import apply_map
from reconciler.rules.overrides.model import (
    EnvItem,
    FieldItem,
    ImageItem,
    Item,
    ListItem,
    MapItem,
    Overrider,
    PatchItem,
    Policy,
    Rule,
)
from reconciler.rules.overrides.pod_spec import POD_SPEC_PATHS, Template
from reconciler.rules.overrides.read_rules import rule_for
from reconciler.rules.overrides.text_fields import apply_field
from reconciler.rules.provenance import Step, steps_data, steps_inside, steps_of

ANNOTATIONS_BYTES = 262_144
_IDENTITY: tuple[Path, ...] = (("kind",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "generateName"))


@dataclass(frozen=True)
class Options:
    """What those who run the program decide: about policies that are not there, and where kinds have pod templates."""

    on_missing: OnMissing = "fail"
    pod_spec_paths: Mapping[tuple[str, str], Path] = field(default_factory=lambda: POD_SPEC_PATHS)


@dataclass(frozen=True)
class Matched:
    """An attached policy, and those of its rules in force that were for the cluster."""

    policy: Policy
    in_force: tuple[InForce, ...]
    notes: tuple[Note, ...] = ()

    @property
    def rules(self) -> tuple[int, ...]:
        """The numbers of the rules."""
        return tuple(one.number for one in self.in_force)

    @property
    def has_variables(self) -> bool:
        """Whether some of the rules say something of its own to every cluster."""
        return any(one.rule.template is not None for one in self.in_force)


@dataclass(frozen=True)
class Turn:
    """What one item of a rule, `where` in the policy `by`, left of a resource; by nobody, what it started from."""

    by: str
    where: str
    data: Any


@dataclass(frozen=True)
class Overridden:
    """What became of a resource on a cluster; with an error finding it is as it was, and must not be published.

    `asked` are all the policies that it names, `matched` those that are attached, in the order of their effect.
    `turns` is the resource after each item that changed it, first to last.
    """

    resource: PackageResource
    document: Document
    findings: tuple[Finding, ...] = ()
    steps: tuple[Step, ...] = ()
    asked: tuple[ObjectKey, ...] = ()
    matched: tuple[Matched, ...] = ()
    turns: tuple[Turn, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the resource must not be published."""
        return bool(errors(self.findings))

    def as_data(self) -> list[dict[str, Any]]:
        """Return what was changed as `overrides` of a status file (design 10.28)."""
        return steps_data(self.resource.file, str(self.resource.key), self.steps)


def override_attached(
    resource: PackageResource, attached: Attached, matched: tuple[Matched, ...], cluster: Cluster, options: Options
) -> Overridden:
    """Return a resource as a cluster is to have it, by the rules of its attached policies that match."""
    template = Template(resource.group, resource.kind, options.pod_spec_paths)
    run = _Run(resource, stripped(resource.data), [finding_of(resource, note) for note in attached.notes])
    if not attached.failed:
        run.apply(matched, template, cluster)
    run.write()
    document = resource.document if errors(run.findings) else run.document
    return Overridden(
        resource, document, tuple(run.findings), tuple(run.steps), attached.asked, matched, tuple(run.turns)
    )


def matched_rules(policy: Policy, cluster: Cluster, texts: Texts) -> Matched:
    """Return the rules of a policy that are in force on a cluster, and are for it."""
    rules, notes = rules_in_force(policy, texts)
    return Matched(policy, tuple(one for one in rules if is_target(one.rule.targets, cluster)), notes)


@dataclass(frozen=True)
class _Task:
    """One item of one rule, and where it stands."""

    policy: Policy
    rule: InForce
    overrider: Overrider
    number: int
    item: Item

    @cached_property
    def where(self) -> str:
        path = f"spec.overrideRules[{self.rule.number}].overriders.{self.overrider}[{self.number}]"
        return f"{path}{_age(self.rule)}"

    def apply(self, data: Any, template: Template) -> Effect:
        """Return what the item makes of the data."""
        match self.item, self.overrider:
            case ImageItem() as item, _:
                return apply_image(data, item, template)
            case ListItem() as item, "command" | "args" as field_name:
                return apply_list(data, item, template, field_name)
            case EnvItem() as item, _:
                return apply_envs(data, item, template)
            case MapItem() as item, "annotations" | "labels" as field_name:
                return apply_map(data, item, field_name)
            case FieldItem() as item, _:
                return apply_field(data, item)
            case PatchItem() as item, _:
                return apply_patch_item(data, item)
        raise AssertionError(f"{self.overrider} has no items of {type(self.item)}")


def _tasks_of_rule(policy: Policy, one: InForce, rule: Rule) -> Iterator[_Task]:
    for overrider, items in rule.overriders:
        for index, item in enumerate(items):
            yield _Task(policy, one, overrider, index, item)


def _age(rule: InForce) -> str:
    return " (earlier text)" if rule.is_earlier else ""


class _Run:
    """One evaluation: the data as far as it has come, and all that is to be told of it."""

    def __init__(self, resource: PackageResource, data: Any, findings: list[Finding]) -> None:
        self.resource = resource
        self.working = data
        self.data = data
        self.findings = findings
        self.steps: list[Step] = []
        self.turns = [Turn("", "", data)]
        self.document = resource.document

    def apply(self, matched: tuple[Matched, ...], template: Template, cluster: Cluster) -> None:
        """Apply every item in order, until one fails."""
        self.findings += (finding_of(self.resource, note) for one in matched for note in one.notes)
        tasks = self._tasks(matched, cluster)
        if errors(self.findings):
            return
        for task in tasks:
            effect = task.apply(self.data, template)
            self.findings += (
                finding_of(self.resource, note, f"{task.policy.label} {task.where}") for note in effect.notes
            )
            if effect.failed:
                return
            self._become(effect, task.policy.label, task.where)
        self._tidy()
        self._check(tasks)

    def _tasks(self, matched: tuple[Matched, ...], cluster: Cluster) -> list[_Task]:
        tasks: list[_Task] = []
        for policy, one in ((each.policy, one) for each in matched for one in each.in_force):
            rule = rule_for(one.rule, one.number, cluster)
            if isinstance(rule, Rule):
                tasks += _tasks_of_rule(policy, one, rule)
            else:
                self.findings += (finding_of(self.resource, note, f"{policy.label}{_age(one)}") for note in rule)
        return tasks

    def write(self) -> None:
        """Make the document that means the data."""
        try:
            self.document = edited_document(self.resource.document, self.data)
        except YamlError as error:
            self._note(Note(RESULT_UNWRITABLE, f"the result must be something that YAML can hold: {error}"))

    def _become(self, effect: Effect, by: str, where: str) -> None:
        if effect.inside:
            self.steps += steps_inside(self.data, effect.inside, by, where)
        else:
            self.steps += steps_of(self.data, effect.data, by, where)
        self.data = effect.data
        self.turns.append(Turn(by, where, effect.data))

    def _tidy(self) -> None:
        touched = [step for step in self.steps if step.path[: len(FINALIZERS)] == FINALIZERS]
        if touched:
            self._become(Effect(tidy_finalizers(self.data)), touched[-1].by, touched[-1].where)

    def _check(self, tasks: list[_Task]) -> None:
        for path in _IDENTITY:
            if not same(value_at(self.working, path), value_at(self.data, path)):
                self._note(self._other_identity(path))
        annotations = value_at(self.data, ("metadata", "annotations"))
        if (
            annotations is not value_at(self.working, ("metadata", "annotations"))
            and _size(annotations) > ANNOTATIONS_BYTES
        ):
            message = f"keys and values of all annotations must have at most {ANNOTATIONS_BYTES} bytes"
            self._note(Note(ANNOTATIONS_TOO_LARGE, message, ("metadata", "annotations")))
        if tasks and same(self.working, self.data):
            names = " and ".join(dict.fromkeys(task.policy.label for task in tasks))
            self._note(Note(POLICY_NO_EFFECT, f"{names}: rules apply here, and change nothing"))

    def _other_identity(self, path: Path) -> Note:
        culprit = next(step for step in reversed(self.steps) if _overlap(step.path, path))
        was, found = (_quoted(value_at(data, path)) for data in (self.working, self.data))
        message = f"{culprit.by} {culprit.where}: {format_pointer(path)} must stay {was}, and not become {found}"
        return Note(IDENTITY_CHANGED, message, path)

    def _note(self, note: Note) -> None:
        self.findings.append(finding_of(self.resource, note))


def _overlap(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _quoted(value: Any) -> str:
    return "absent" if value is ABSENT else shown(value)


def _size(annotations: Any) -> int:
    entries = annotations.items() if isinstance(annotations, dict) else ()
    return sum(len(text.encode()) for entry in entries for text in entry if isinstance(text, str))
