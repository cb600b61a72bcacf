"""Making a package again as it was: from what its status file recorded, and by the config of then (design 10.6, 10.28).

The record is a claim, for a status file is open to everybody's edits; whether its package comes out again shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.krm.findings import errors
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import YamlError, parse
from reconciler.planning.last_mile import Had
from reconciler.planning.outcome import Rendered
from reconciler.planning.render import Renderer
from reconciler.planning.source import Ingredients, Standing
from reconciler.planning.templates import Contents
from reconciler.rules.overrides.rollout import RuleId
from reconciler.rules.variant import Earlier, Generated, Upstream, Variant
from reconciler.snapshot.catalog import ConfigObject
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId
from reconciler.snapshot.trace import Trace

# of plain folders
TREE = "tree:"
_ID = re.compile(r"[0-9a-f]{40}\Z")
_TREES = ("base", "merged", "rendered")
_UPSTREAM = ("repo", "directory", "ref", "commit", "tree")

Texts = Mapping[RuleId, str]
"""The texts of rules with a rollout by which a package was made; a rule that is not named had not arrived."""


@dataclass(frozen=True)
class Recorded:
    """What a status file says of how its package came to be (design 10.28).

    `owner` is as status files write it; `upstream` where the source came from, {} for what a room made. `config` is a
    commit, or `tree:<id>` for a plain folder; `digest` that of everything the render asked, with its answers.
    `conditions` are their statuses by type.
    """

    owner: Mapping[str, str]
    base: TreeId
    merged: TreeId
    rendered: TreeId
    config: str
    digest: str = ""
    upstream: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_edited(self) -> bool:
        """Whether people's edits were in the source."""
        return self.merged != self.base


def read_recorded(content: bytes) -> Recorded | str:
    """Return what a status file records, or which of its fields must be otherwise."""
    try:
        documents = parse(content).documents
    except YamlError as error:
        return f"line {error.line}: {error.message}"
    data = documents[0].data if documents else None
    status = _mapping(_mapping(data).get("status"))
    trees, inputs, to = (_mapping(status.get(name)) for name in ("trees", "inputs", "upstream"))
    to = _mapping(to.get("to"))
    fault = next(_faults(status, trees, inputs, to), "")
    if fault:
        return fault
    base, merged, rendered = (TreeId(trees[name]) for name in _TREES)
    known = {name: to[name] for name in _UPSTREAM if name in to}
    owner, conditions = _mapping(status.get("owner")), _conditions(status)
    return Recorded(owner, base, merged, rendered, inputs["config"], _text(inputs, "digest"), known, conditions)


def _faults(
    status: Mapping[str, Any], trees: Mapping[str, Any], inputs: Mapping[str, Any], to: Mapping[str, Any]
) -> Iterator[str]:
    for name in _TREES:
        if not _is_id(trees.get(name)):
            yield f".status.trees.{name} must be the id of a tree, not {trees.get(name)!r}"
    config = inputs.get("config")
    if not isinstance(config, str) or not _is_id(config.removeprefix(TREE)):
        yield f".status.inputs.config must be the id of a commit, or {TREE} and that of a tree, not {config!r}"
    owner = _mapping(status.get("owner"))
    if not owner or any(not isinstance(one, str) for one in owner.values()):
        yield f".status.owner must name the object that wants the package, not {status.get('owner')!r}"
    if to and not (_is_id(to.get("commit")) and _is_id(to.get("tree")) and all(_text(to, one) for one in _UPSTREAM)):
        yield f".status.upstream.to must have {', '.join(_UPSTREAM)}, of which commit and tree are ids"


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.match(value) is not None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _conditions(status: Mapping[str, Any]) -> Mapping[str, str]:
    listed = status.get("conditions")
    found = (_mapping(one) for one in (listed if isinstance(listed, list) else ()))
    return {_text(one, "type"): _text(one, "status") for one in found}


@dataclass(frozen=True)
class Materials:
    """The contents that a record names: the source as it came, as it entered the pipeline, and what came of it."""

    base: FileTree
    merged: FileTree
    rendered: FileTree


@dataclass(frozen=True)
class Surroundings:
    """What a render went by that no record names, each in the order of likelihood; the first that fits is taken.

    `earlier` are outputs that it may have followed (design 10.7), `texts` those of rules in rollouts, where None is
    each by its text of then (10.23), each with what must be told of it. `partners` are the other packages that
    templates may have been merged with (10.17).
    """

    earlier: Iterable[tuple[Earlier | None, str]] = ((None, ""),)
    texts: Sequence[tuple[Texts | None, str]] = ((None, ""),)
    partners: Callable[[], Sequence[Contents]] = lambda: ({},)


@dataclass(frozen=True)
class Remade:
    """A package made again: its render, and what must be told of the surroundings that it was made in.

    `objects` are those of the config of then.
    """

    variant: Variant
    rendered: Rendered
    objects: Mapping[ObjectKey, ConfigObject]
    notes: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether it came to something at all."""
        return not errors(self.rendered.findings)

    @property
    def trace(self) -> Trace:
        """All that it was made of, as state keeps it."""
        return {**self.rendered.trace, **self.variant.facts}


def as_recorded(variant: Variant, recorded: Recorded) -> Variant:
    """Return the variant with the upstream that was recorded, wherever its reference leads today."""
    source = variant.source
    if not isinstance(source, Upstream) or not recorded.upstream:
        return variant
    then = replace(source, **recorded.upstream)
    return replace(variant, source=then, facts={**variant.facts, "upstream": then.fact}, findings=())


def remake(
    variant: Variant, recorded: Recorded, materials: Materials, around: Surroundings, renderer: Renderer,
    read: Callable[[TreeId], FileTree], is_recorded: Callable[[Trace], bool],
) -> Remade:  # fmt: skip
    """Return the package made again, by the first of its surroundings that lead to the recorded tree.

    Where none does, by the first whose trace `is_recorded`, so that they are those of then; else by the
    likeliest. `read` returns the files of a partner. Raises InterruptedFunctionError.
    """
    tried: list[Remade] = []
    for one in _attempts(variant, materials.base, materials, around, renderer, read):
        if one.is_usable and one.rendered.files.id == recorded.rendered:
            return one
        tried.append(one)
    return next((one for one in tried if is_recorded(one.trace)), tried[0])


def make_otherwise(
    variant: Variant, came: FileTree, materials: Materials, around: Surroundings, renderer: Renderer,
    read: Callable[[TreeId], FileTree],
) -> Remade:  # fmt: skip
    """Return the package as it would have been with another source, or by another config.

    Its surroundings are the likeliest; people's edits that were in its source are merged with what `came`. Raises
    InterruptedFunctionError.
    """
    return next(_attempts(variant, came, materials, around, renderer, read))


def _attempts(
    variant: Variant, came: FileTree, materials: Materials, around: Surroundings, renderer: Renderer,
    read: Callable[[TreeId], FileTree],
) -> Iterator[Remade]:  # fmt: skip
    for earlier, followed in around.earlier:
        for texts, ruled in around.texts:
            by, had = _by_texts(renderer, variant.cluster, texts), Had(rules=texts or {})
            made = replace(ingredients_again(variant, materials, earlier, had), came=came)
            plain = by(variant, made)
            for rendered in _templated(variant, plain, made, by, around.partners, read):
                yield Remade(variant, rendered, renderer.catalog.objects, tuple(filter(None, (followed, ruled))))


def ingredients_again(variant: Variant, materials: Materials, earlier: Earlier | None, had: Had) -> Ingredients:
    """Return ingredients of which exactly the recorded source comes (git.md 3).

    It stands there as if nobody had changed it since, at the upstream that it came from: nothing is left to merge.
    """
    merged = materials.merged
    standing = Standing(materials.rendered, materials.rendered, merged, merged, materials.base)
    return Ingredients(materials.base, standing, None, earlier, isinstance(variant.source, Generated), had)


def _by_texts(renderer: Renderer, cluster: str, texts: Texts | None) -> Renderer:
    mile = renderer.last_mile
    if texts is None or not mile.rollouts:
        return renderer
    behind = [name for name, rule in mile.rollouts.items() if texts.get(name) != rule.text]
    closed = dict.fromkeys(behind, frozenset((cluster,)))
    return replace(renderer, last_mile=replace(mile, closed=closed))


def _templated(
    variant: Variant, plain: Rendered, made: Ingredients, by: Renderer, partners: Callable[[], Sequence[Contents]],
    read: Callable[[TreeId], FileTree],
) -> Iterator[Rendered]:  # fmt: skip
    templating = by.templating
    if errors(plain.findings) or not plain.has_roles:
        yield plain
        return
    for others in partners():
        contents = {**others, variant.place.package: plain.files.id}
        found = {name: plain.files if tree == plain.files.id else read(tree) for name, tree in contents.items()}
        pairs = templating.pairs(contents, found.__getitem__)
        yield templating.template(variant, plain, made, pairs, pairs)
