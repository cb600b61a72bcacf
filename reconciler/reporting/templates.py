"""Templates in words: what a change does to the children of a package, and what each child hides (strimzi 8, 11).

What is told of a draft as a whole is read back from its status file and its commit, which everybody may edit: what is
no record is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.planning.outcome import Draft, Rendered
from reconciler.reporting.changes import limited
from reconciler.reporting.markdown import folded_block
from reconciler.reporting.package_status import text
from reconciler.reporting.secrets import mask
from reconciler.reporting.sections import items
from reconciler.reporting.values import one_line
from reconciler.rules.templates.change import TemplateChange
from reconciler.rules.templates.effect import TemplateEffect

TEMPLATES = "Templates:"
"""The title under which the commit of a draft tells what it does by templates."""
_MODES = {"materialise": "written into it", "report": "reported only"}


def template_lines(rendered: Rendered, most: int) -> tuple[str, ...]:
    """Return what a change does to objects and pods by templates, at most `most` lines; the risk comes first."""
    ranked = sorted(rendered.template_changes, key=lambda one: (_is_harmless(one), one.child))
    return limited([one_line(_change(one)) for one in ranked], most)


def child_lines(recorded: object, most: int) -> tuple[str, ...]:
    """Return a line for each child that `templates` of a status file tells of: who has its template, what it hides."""
    return limited([one_line(_child(one)) for one in _children(recorded)], most)


def repeat_lines(recorded: object) -> Iterator[str]:
    """Yield what each child that hides inherited settings would have to say to have them, and its own (strimzi 10)."""
    for one in _children(recorded):
        if wanted := text(one, "toRepeat"):
            yield one_line(f"# for {text(one, 'resource')} to inherit and add")
            yield from (f"  {one_line(line)}" for line in wanted.splitlines())


def folded_repeats(recorded: object) -> list[str]:
    """Return the same as lines of Markdown that fold away."""
    told = "".join(f"{line}\n" for line in repeat_lines(recorded))
    return folded_block("To inherit and add", told, "yaml") if told else []


def children_data(effects: Iterable[TemplateEffect]) -> list[dict[str, Any]]:
    """Return children as status files tell of them, without what texts in their templates write of Secrets."""
    return [mask(one.as_data()) for one in effects]


def news_of_children(draft: Draft) -> list[dict[str, Any]]:
    """Return the children that a draft is about, as status files tell of them: all of a package that is new."""
    rendered = draft.rendered
    about = {one.child for one in rendered.template_changes}
    effects = rendered.templates.effects if rendered.templates else ()
    return children_data(one for one in effects if one.child.key in about or not draft.before)


def _is_harmless(one: TemplateChange) -> bool:
    return one.rolls is False and one.moved_from is None


def _change(one: TemplateChange) -> str:
    what = f"{', '.join(one.properties)} changed{_where(one)}" if one.properties else ""
    if one.moved_from:
        moved = f"{one.child} was one of {one.moved_from}: to its operator it is another, with other pods"
        return f"{moved}; {what}" if what else moved
    rolls = {True: "restarts its pods", False: "restarts no pods", None: "may restart pods, for nobody here knows"}
    return f"{one.child} {rolls[one.rolls]}: {what}"


def _where(one: TemplateChange) -> str:
    if one.lands_on:
        return f", on {', '.join(one.lands_on)}"
    return "" if one.rolls is None else ", on nothing that it has"


def _children(recorded: object) -> list[Mapping[str, Any]]:
    listed = items({"templates": list(recorded) if isinstance(recorded, list | tuple) else ()}, "templates")
    return [one for one in listed if text(one, "resource") and text(one, "parent")]


def _child(one: Mapping[str, Any]) -> str:
    mode = _MODES.get(text(one, "mode"), "")
    told = "; ".join(_properties(items(one, "properties"))) or "no template"
    return f"{text(one, 'resource')} of {text(one, 'parent')}{f', {mode}' if mode else ''}: {told}"


def _properties(listed: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the properties by who decided them; one that hides something by itself."""
    plain: dict[str, list[str]] = {}
    hiding: list[str] = []
    for one in listed:
        source, name, lost = text(one, "source"), text(one, "name"), one.get("shadowed")
        if isinstance(lost, list) and lost:
            hiding.append(f"{name} by {source} hides {', '.join(map(str, lost))}")
        else:
            plain.setdefault(source, []).append(name)
    yield from hiding
    yield from (f"{', '.join(names)} by {source}" for source, names in plain.items())
