"""Deciding on the packages of one destination together: templates are merged across them (design 10.17)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.krm.findings import errors
from reconciler.planning.decide import Question, decide
from reconciler.planning.ground import Ground
from reconciler.planning.outcome import Outcome, Rendered
from reconciler.planning.source import Ingredients
from reconciler.planning.state import PackageRecord
from reconciler.planning.survey import Workshop
from reconciler.planning.templates import (
    TEMPLATE,
    Contents,
    answer_by,
    is_of_template,
    takes_part,
    without_templates,
)
from reconciler.rules.templates.pairs import Pairs
from reconciler.rules.variant import Variant
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId
from reconciler.snapshot.trace import Answers

# state keeps it as what became of a package; then what is offered of it is not what counts for others
_NOT_OFFERED = ("blocked", "declined")


@dataclass(frozen=True)
class Together:
    """What becomes of the packages of a destination, by path, and the renders that it took."""

    outcomes: Mapping[str, Outcome]
    rendered: Mapping[str, Rendered]


def decide_together(questions: Iterable[Question], ground: Ground, shop: Workshop) -> Together:
    """Return what becomes of each package that is wanted on a destination.

    A first round asks each by itself. Only where parents and children of templates are among them, a second one asks
    those again, when it is known what all of them have.
    """
    run = _Together({one.variant.place.package: one for one in questions}, ground, shop)
    outcomes = run.outcomes()
    return Together(outcomes, {**run.plain, **run.templated})


@dataclass
class _Together:
    """The packages of one destination, on their way."""

    questions: Mapping[str, Question]
    ground: Ground
    shop: Workshop
    plain: dict[str, Rendered] = field(default_factory=dict)
    templated: dict[str, Rendered] = field(default_factory=dict)

    def outcomes(self) -> dict[str, Outcome]:
        first = {name: self._first(one) for name, one in self.questions.items()}
        concerned = self._concerned()
        if not concerned:
            return first
        before = self._pairs(concerned, self._published)
        now = self._settled_pairs(concerned)
        again = {name: self._second(self.questions[name], now, before) for name in concerned if name in self.questions}
        return {**first, **again}

    def _first(self, one: Question) -> Outcome:
        """Decide on a package by itself, as if its partners had not moved."""
        record = one.record and replace(one.record, trace=without_templates(one.record.trace))
        return decide(replace(one, record=record), self.shop.answers, self.shop.sources, self._render)

    def _render(self, variant: Variant, made: Ingredients) -> Rendered:
        package = variant.place.package
        if package not in self.plain:
            self.plain[package] = self.shop.render(variant, made)
        return self.plain[package]

    def _concerned(self) -> list[str]:
        """Return the packages with parents or children, wanted here or still there."""
        templating = self.shop.templating
        rendered = {name for name, one in self.plain.items() if templating.concerns(one.files)}
        wanted = (name for name, one in self.questions.items() if one.variant.cluster)
        known = {name for name, one in self.ground.state.packages.items() if takes_part(one.trace)}
        return sorted((rendered & {*wanted}) | known)

    def _settled_pairs(self, concerned: Sequence[str]) -> Pairs:
        """Return the pairs as they are to be; a child whose parent moved has to be rendered for them first."""
        while True:
            now = self._pairs(concerned, self._offered)
            moved = [name for name in concerned if name not in self.plain and self._has_moved(name, now)]
            for name in moved:
                self._render_anew(self.questions[name])
            # one that cannot be rendered stays what it is
            if not any(name in self.plain for name in moved):
                return now

    def _has_moved(self, package: str, pairs: Pairs) -> bool:
        record = self._record(package)
        if package not in self.questions or record is None:
            return False
        answers = self._answers(pairs)
        return any(answers.to(name) != was for name, was in record.trace.items() if is_of_template(name))

    def _render_anew(self, one: Question) -> None:
        record = one.record and replace(one.record, trace={})
        decide(replace(one, record=record), self.shop.answers, self.shop.sources, self._render)

    def _second(self, one: Question, now: Pairs, before: Pairs) -> Outcome:
        """Decide on a package with its templates merged."""
        render = partial(self._templated, now=now, before=before)
        return decide(one, self._answers(now), self.shop.sources, render)

    def _answers(self, pairs: Pairs) -> Answers:
        answers = self.shop.answers
        return replace(answers, more={**answers.more, TEMPLATE: answer_by(pairs)})

    def _templated(self, variant: Variant, made: Ingredients, now: Pairs, before: Pairs) -> Rendered:
        plain = self._render(variant, made)
        if errors(plain.findings) or not variant.cluster:
            return plain
        package = variant.place.package
        self.templated[package] = self.shop.templating.template(variant, plain, now, before)
        return self.templated[package]

    def _pairs(self, concerned: Sequence[str], tree_of: Callable[[str], TreeId | None]) -> Pairs:
        contents: Contents = {name: tree for name in concerned if (tree := tree_of(name))}
        rendered = {one.files.id: one.files for one in self.plain.values()}

        def read(name: str) -> FileTree:
            tree = contents[name]
            return rendered[tree] if tree in rendered else self.shop.sources.standing(tree)

        return self.shop.templating.pairs(contents, read)

    def _offered(self, package: str) -> TreeId | None:
        """Return what a package is to have: this pass's result, else what is offered, else what is published."""
        seen, record, plain = self.ground.look(package), self._record(package), self.plain.get(package)
        is_offered = not seen.frozen and not (record and record.outcome.get("kind") in _NOT_OFFERED)
        if plain is not None:
            declined = record.declined if record else ()
            usable = not errors(plain.findings) and not seen.frozen and plain.files.id not in declined
            return plain.files.id if usable else seen.published
        return self._standing(package) if is_offered else seen.published

    def _published(self, package: str) -> TreeId | None:
        return self.ground.look(package).published

    def _standing(self, package: str) -> TreeId | None:
        seen = self.ground.look(package)
        return seen.drafted or seen.published

    def _record(self, package: str) -> PackageRecord | None:
        return self.ground.state.packages.get(package)
