"""Deciding on the packages of one destination together: templates are merged across them (design 10.17)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.krm.findings import errors
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.claims import Claims
from reconciler.planning.decide import Question, decide
from reconciler.planning.ground import Ground
from reconciler.planning.ingredients import TooLargeToReadError
from reconciler.planning.outcome import Blocked, Draft, Outcome, Rendered, Unchanged
from reconciler.planning.source import Ingredients
from reconciler.planning.state import PackageRecord, Seen
from reconciler.planning.survey import Workshop
from reconciler.planning.templates import (
    TEMPLATE,
    WORLD,
    Contents,
    answer_by,
    is_of_template,
    takes_part,
    was_looked_at,
    without_templates,
    world_of,
)
from reconciler.rules.templates.pairs import Pairs
from reconciler.rules.variant import Variant
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId
from reconciler.snapshot.trace import Answers

# outcomes, as state keeps them, after which a draft that is there still is nothing that we offer
_NOT_ON_DRAFTS = ("published", "published with edits", "adopted", "declined")


@dataclass(frozen=True)
class Together:
    """What becomes of the packages of a destination, by path, and the renders that it took."""

    outcomes: Mapping[str, Outcome]
    rendered: Mapping[str, Rendered]


def decide_together(
    questions: Iterable[Question], claims: Claims, ground: Ground, shop: Workshop, settled: Mapping[str, Outcome]
) -> Together:
    """Return what becomes of each package that is wanted on a destination; `settled` is known of others there.

    A first round asks each by itself. Only where parents and children of templates are among them, a second one asks
    those again, when it is known what all of them have.
    """
    run = _Together({one.variant.place.package: one for one in questions}, claims, ground, shop, dict(settled))
    outcomes = run.outcomes()
    return Together(outcomes, {**run.plain, **run.templated})


@dataclass(frozen=True)
class _World:
    """The packages of a destination with parents or children, as they count for each other."""

    contents: Contents
    pairs: Pairs


@dataclass
class _Together:
    """The packages of one destination, on their way.

    `first` is what they come to each by itself, `interrupted` are the renders that the world kept from ending.
    """

    questions: Mapping[str, Question]
    claims: Claims
    ground: Ground
    shop: Workshop
    first: dict[str, Outcome] = field(default_factory=dict)
    plain: dict[str, Rendered] = field(default_factory=dict)
    templated: dict[str, Rendered] = field(default_factory=dict)
    interrupted: dict[str, InterruptedFunctionError] = field(default_factory=dict)

    def outcomes(self) -> dict[str, Outcome]:
        self.first.update((name, self._first(one)) for name, one in self.questions.items())
        concerned = self._concerned()
        return {**self.first, **self._again(concerned)} if concerned else self.first

    def _first(self, one: Question) -> Outcome:
        """Decide on a package by itself, as if its partners had not moved."""
        record = one.record and replace(one.record, trace=without_templates(one.record.trace))
        return decide(replace(one, record=record), self.shop.answers, self.shop.sources, self._render)

    def _render(self, variant: Variant, made: Ingredients) -> Rendered:
        package = variant.place.package
        if package in self.interrupted:
            raise self.interrupted[package]
        if package not in self.plain:
            try:
                self.plain[package] = self.shop.render(variant, made)
            except InterruptedFunctionError as error:
                self.interrupted[package] = error
                raise
        return self.plain[package]

    def _concerned(self) -> list[str]:
        """Return the packages with parents or children, wanted here or still there."""
        rendered = {name for name, one in self.plain.items() if one.has_roles}
        wanted = (name for name, one in self.questions.items() if one.variant.cluster)
        known = {name for name, one in self.ground.state.packages.items() if self._has_any(name, one)}
        return sorted((rendered & {*wanted}) | known)

    def _has_any(self, package: str, record: PackageRecord) -> bool:
        """Return whether a package that stands there has parents or children."""
        if takes_part(record.trace):
            return True
        if was_looked_at(record.trace) or not record.owned or not self.ground.destination.deployment:
            return False
        # no render came so far, or none is remembered: then what stands there tells
        tree = self._counting(package)
        return tree is not None and self.shop.templating.concerns_tree(tree, lambda: self._read(package, tree))

    def _again(self, concerned: Sequence[str]) -> dict[str, Outcome]:
        """Decide on packages with their templates merged.

        Of what may not be offered, the others are to have nothing. So they are asked again without it, and what was
        withheld once stays so: else two that exclude each other would take turns.
        """
        before = self._world(concerned, self._published).pairs
        withheld: dict[str, Outcome] = {}
        while True:
            now = self._settled(concerned, withheld)
            asked = (name for name in concerned if name in self.questions and name not in withheld)
            found = {name: self._second(self.questions[name], now, before) for name in asked}
            more = {name: one for name, one in found.items() if self._is_usable(name) and _is_withheld(one)}
            if not more:
                return self._remembering(concerned, {**found, **withheld})
            withheld |= more

    def _settled(self, concerned: Sequence[str], withheld: Mapping[str, Outcome]) -> _World:
        """Return the world as it is to be; what depends on something that moved has to be rendered for it first."""
        tried: set[str] = set()
        while True:
            now = self._world(concerned, partial(self._offered, withheld=withheld))
            moved = [
                one for one in concerned if one not in self.plain and one not in tried and self._has_moved(one, now)
            ]
            if not moved:
                return now
            for name in moved:
                self._render_anew(self.questions[name])
            # one that cannot be rendered stays what it is
            tried.update(moved)

    def _has_moved(self, package: str, now: _World) -> bool:
        record = self._record(package)
        if package not in self.questions or record is None:
            return False
        answers = self._answers(now)
        return any(answers.to(name) != was for name, was in record.trace.items() if is_of_template(name))

    def _render_anew(self, one: Question) -> None:
        record = one.record and replace(one.record, trace={})
        decide(replace(one, record=record), self.shop.answers, self.shop.sources, self._render)

    def _second(self, one: Question, now: _World, before: Pairs) -> Outcome:
        """Decide on a package with its templates merged."""
        render = partial(self._templated, now=now.pairs, before=before)
        return decide(one, self._answers(now), self.shop.sources, render)

    def _answers(self, world: _World) -> Answers:
        answers = self.shop.answers
        return replace(answers, more={**answers.more, TEMPLATE: answer_by(world.pairs, world.contents)})

    def _templated(self, variant: Variant, made: Ingredients, now: Pairs, before: Pairs) -> Rendered:
        plain = self._render(variant, made)
        if errors(plain.findings) or not variant.cluster:
            return plain
        package = variant.place.package
        self.templated[package] = self.shop.templating.template(variant, plain, made, now, before)
        return self.templated[package]

    def _remembering(self, concerned: Sequence[str], outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
        """Return the outcomes; what is withheld is to be asked again as soon as anything else is offered here.

        What it would be is known to nobody but this pass, and others may have been the reason.
        """
        trees = {name: self._left(name, outcomes.get(name)) for name in concerned}
        world = {WORLD: world_of({name: tree for name, tree in trees.items() if tree})}
        return {name: _noting(one, world) if _is_withheld(one) else one for name, one in outcomes.items()}

    def _left(self, package: str, outcome: Outcome | None) -> TreeId | None:
        """Return what counts of a package for the next pass, if nothing happens until then."""
        match outcome:
            case Draft(rendered=rendered, record=record):
                return rendered.files.id if takes_part(record.trace) else None
            case Unchanged(record=record, why=why) if not takes_part(record.trace) and why != "declined":
                return None
            case None:
                return self._counting(package)
            case _:
                return _standing(self.ground.look(package), outcome)

    def _world(self, concerned: Sequence[str], tree_of: Callable[[str], TreeId | None]) -> _World:
        contents: Contents = {name: tree for name in concerned if (tree := tree_of(name))}
        rendered = {one.files.id: one.files for one in self.plain.values()}

        def read(name: str) -> FileTree:
            tree = contents[name]
            return rendered[tree] if tree in rendered else self._read(name, tree)

        return _World(contents, self.shop.templating.pairs(contents, read))

    def _read(self, package: str, tree: TreeId) -> FileTree:
        """Return the files of what stands there; of what people made too large to be read, those of our last offer."""
        record = self._record(package)
        ours = record.ours.rendered if record and record.ours else None
        for one in (tree, ours):
            try:
                if one is not None:
                    return self.shop.sources.standing(one)
            except TooLargeToReadError:
                # the package is blocked for it, and says so
                continue
        return FileTree()

    def _offered(self, package: str, withheld: Mapping[str, Outcome]) -> TreeId | None:
        """Return what a package is to have: this pass's result, else what is offered, else what is published."""
        if package in withheld:
            return _standing(self.ground.look(package), withheld[package])
        return self.plain[package].files.id if self._is_usable(package) else self._counting(package)

    def _is_usable(self, package: str) -> bool:
        return package in self.plain and not errors(self.plain[package].findings)

    def _counting(self, package: str) -> TreeId | None:
        """Return what counts of a package for others while nobody renders it: what is offered, else published."""
        seen = self.ground.look(package)
        if package in self.first:
            return _standing(seen, self.first[package])
        record = self.ground.state.packages[package]
        known = record.outcome.get("before", record.outcome).get("kind")
        is_offered = known not in _NOT_ON_DRAFTS and self._may_stay(package, record)
        return (seen.drafted if is_offered else None) or seen.published

    def _may_stay(self, package: str, record: PackageRecord) -> bool:
        """Return whether anybody may want a package; else what is drafted of it may end with this pass."""
        if self.claims.wants(package) or not self.claims.complete:
            return True
        return self.claims.keeps(record.owner) or bool(self.claims.look_alike(record.owner))

    def _published(self, package: str) -> TreeId | None:
        return self.ground.look(package).published

    def _record(self, package: str) -> PackageRecord | None:
        return self.ground.state.packages.get(package)


def _standing(seen: Seen, outcome: Outcome) -> TreeId | None:
    """Return what is offered of a package that stays as it is, else what is published of it."""
    if isinstance(outcome, Unchanged) and outcome.why in _NOT_ON_DRAFTS:
        return seen.published
    return seen.drafted or seen.published


def _is_withheld(outcome: Outcome) -> bool:
    """Return whether what a package would be is not offered to anybody."""
    return isinstance(outcome, Blocked) or (isinstance(outcome, Unchanged) and outcome.why == "declined")


def _noting(outcome: Outcome, world: Mapping[str, str]) -> Outcome:
    """Return what is withheld with this instead of what it asked of its partners."""
    match outcome:
        case Blocked():
            return replace(outcome, trace={**without_templates(outcome.trace), **world})
        case _:
            record = outcome.record
            return replace(outcome, record=replace(record, trace={**without_templates(record.trace), **world}))
