"""What the template of one child comes to: who decided each property, and what that hides (strimzi 6 to 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import emit
from reconciler.krm.yaml.same import same
from reconciler.rules.edits import value_at
from reconciler.rules.fields import dotted
from reconciler.rules.notes import Note
from reconciler.rules.templates.codes import (
    NULL_TEMPLATE_PROPERTY,
    REDUNDANT_OVERRIDE,
    SHADOWED_TEMPLATE_FIELDS,
    UNKNOWN_TEMPLATE_PROPERTY,
)
from reconciler.rules.templates.knowledge import knowledge_of
from reconciler.rules.templates.lost import Hidden, hidden
from reconciler.rules.templates.merge import Property, effective
from reconciler.rules.templates.model import Member, MergeRule, Mode
from reconciler.rules.templates.pairs import merged
from reconciler.rules.templates.repeat import repeated
from reconciler.rules.templates.report import Description
from reconciler.rules.templates.strimzi.operator import Operator


@dataclass(frozen=True)
class TemplateEffect:
    """The effective template of a child of `parent`: its properties, and what is known of what they come to."""

    child: Member
    parent: ObjectKey
    mode: Mode
    properties: tuple[Property, ...]
    description: Description

    @cached_property
    def template(self) -> Mapping[str, Any]:
        """The template that is in effect."""
        return effective(self.properties)

    @property
    def inherited(self) -> frozenset[str]:
        """The names of the properties that the parent decided."""
        return frozenset(one.name for one in self.properties if one.is_inherited)

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What is to be said of how the child's template is made."""
        return (*_unknown(self.child), *_of_properties(self.child.rule, self.parent, self.properties))

    @property
    def to_repeat(self) -> str:
        """The child's template as YAML, so that it has what it would inherit, and its own: "" where it inherits all.

        Nothing is added to what is inherited: whoever wants both writes both (strimzi 10).
        """
        return emit(repeated(self.properties, self.child.rule.child.path)) if self._hides else ""

    @property
    def _hides(self) -> bool:
        return any(one.inherited is not ABSENT and one.own is not ABSENT for one in self.properties)

    def as_data(self) -> dict[str, Any]:
        """Return what is shown of the child; its template only where the file does not have it."""
        rule, shown = self.child.rule, self.description
        told = {
            "file": self.child.resource.file,
            "resource": str(self.child.key),
            "parent": str(self.parent),
            "mode": self.mode,
            "properties": [_property_data(one, rule) for one in self.properties if one.source != "unset"],
            "settings": {name: dict(one) for name, one in shown.settings.items()},
            "objects": [one.as_data() for one in shown.objects],
        }
        if self.mode == "report":
            told["template"] = dict(self.template)
        if any(note.code is SHADOWED_TEMPLATE_FIELDS for note in self.notes):
            told["toRepeat"] = self.to_repeat
        return {name: one for name, one in told.items() if one or name == "template"}


def effect_of(child: Member, parent: Member, operator: Operator, mode: Mode) -> TemplateEffect:
    """Return what the template of a child comes to; the templates of both are mappings, and so are their properties."""
    properties = merged(child, parent)
    knowledge = knowledge_of(child.rule)
    description = (
        knowledge.describe(parent.resource, child.resource, effective(properties), operator)
        if knowledge
        else Description()
    )
    return TemplateEffect(child, parent.key, mode, properties, description)


def hidden_by(one: Property) -> Hidden:
    """Return the inherited settings that a property hides."""
    return Hidden() if one.inherited is ABSENT or one.own is ABSENT else hidden(one.inherited, one.own)


def _property_data(one: Property, rule: MergeRule) -> dict[str, Any]:
    word = {"parent": rule.parent.called, "child": rule.child.called, "reset": f"{rule.child.called}-reset"}[one.source]
    side, lost = rule.parent if one.is_inherited else rule.child, hidden_by(one)
    data = {"name": one.name, "source": word, "field": dotted((*side.path, one.name))}
    lists = {"shadowed": [*lost.shadowed], "overridden": [*lost.overridden]}
    return {**data, **{name: paths for name, paths in lists.items() if paths}}


def _unknown(child: Member) -> Iterator[Note]:
    rule = child.rule
    template = value_at(child.resource.data, rule.child.path)
    for name in template if isinstance(template, dict) else ():
        if name in rule.properties:
            continue
        path = (*rule.child.path, name)
        if name in rule.parent_only:
            message = f"{dotted(path)} is left out: {name} can only be set in the {rule.parent.kind} object"
        else:
            message = f"{dotted(path)} is left out: it is none of {', '.join(rule.properties)}"
        yield Note(UNKNOWN_TEMPLATE_PROPERTY, message, path)


def _of_properties(rule: MergeRule, parent: ObjectKey, properties: tuple[Property, ...]) -> Iterator[Note]:
    for one in properties:
        path = (*rule.child.path, one.name)
        if one.is_null:
            message = f"{dotted(path)} is null, which inherits as if it were not there; {{}} resets it"
            yield Note(NULL_TEMPLATE_PROPERTY, message, path)
        if one.own is ABSENT or one.inherited is ABSENT:
            continue
        if same(one.own, one.inherited):
            message = f"{dotted(path)} equals that of {parent}, and will not follow when that changes"
            yield Note(REDUNDANT_OVERRIDE, message, path)
        lost = hidden_by(one).shadowed if one.source == "child" else ()
        if lost:
            message = f"{dotted(path)} replaces that of {parent}, of which {', '.join(lost)} {_are(lost)} not in effect"
            yield Note(SHADOWED_TEMPLATE_FIELDS, message, path)


def _are(some: tuple[str, ...]) -> str:
    return "is" if len(some) == 1 else "are"
