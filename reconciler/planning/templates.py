"""Templates: the last step of a render, when all packages of a cluster are there (strimzi 12, design 10.17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.krm.conflicts import Conflict
from reconciler.krm.digest import digest
from reconciler.krm.findings import at_places, errors, in_package
from reconciler.krm.identity import ObjectKey
from reconciler.packages.package import Package
from reconciler.planning.conflicts import place_of
from reconciler.planning.outcome import Rendered
from reconciler.planning.source import Ingredients, overruled
from reconciler.planning.stages import FilesStage
from reconciler.planning.template_edits import taken_out
from reconciler.rules.remembered import Remembered
from reconciler.rules.templates.change import changes
from reconciler.rules.templates.model import MergeRule, Options
from reconciler.rules.templates.package import materialise
from reconciler.rules.templates.pairs import Pairs, find_pairs, roles_in
from reconciler.rules.templates.read_rule import built_in_rule
from reconciler.rules.variant import Variant
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId
from reconciler.snapshot.trace import ABSENT, Trace, View, question

# the first words of questions in a trace
TEMPLATE, RULES = "template", "template-rules"
# the question about all parents and children of a cluster at once; no name is spelt so
WORLD = question(TEMPLATE, "*")
STAGE = "templates"

Contents = Mapping[str, TreeId]
"""The packages of a cluster, by path, each with the tree that it is to have or has."""


@dataclass(frozen=True, eq=False)
class Templating:
    """The merge rules of one config commit, and what those who run the program decided of templates.

    `known` are the pairs that were found before, by the trees that they were found in, `looked_at` tells of trees
    whether there are any parents or children in them.
    """

    rules: tuple[MergeRule, ...] = field(default_factory=lambda: (built_in_rule(),))
    options: Options = field(default_factory=Options)
    known: Remembered[Pairs] = field(default_factory=Remembered)
    looked_at: Remembered[bool] = field(default_factory=Remembered)

    def answers(self) -> Mapping[str, Callable[[Sequence[str]], str]]:
        """Return who answers the question that `ask` asks, by its first word."""
        return {RULES: self._rules}

    def ask(self, files: FileTree, view: View) -> None:
        """Ask which rules are for the kinds of a package, so that a new one is a reason to render it again."""
        if kinds := sorted({f"{one.group}/{one.kind}" for one in Package(files).resources if one.name}):
            view.ask(RULES, ",".join(kinds))

    def _rules(self, words: Sequence[str]) -> str:
        kinds = set(words[0].split(",")) if len(words) == 1 else set()
        sides = ((rule, side) for rule in self.rules for side in (rule.parent, rule.child))
        found = {rule.name: rule for rule, side in sides if f"{side.group}/{side.kind}" in kinds}
        return digest([repr(found[name]) for name in sorted(found)]) if found else ABSENT

    def concerns(self, files: FileTree) -> bool:
        """Tell whether a package has any parent or child."""
        return bool(roles_in(files, self.rules))

    def concerns_tree(self, tree: TreeId, read: Callable[[], FileTree]) -> bool:
        """Tell whether what stands somewhere has any parent or child; `read` returns it."""
        return self.looked_at.of((self.rules, tree), lambda: self.concerns(read()))

    def pairs(self, contents: Contents, read: Callable[[str], FileTree]) -> Pairs:
        """Return the pairs of the packages of a cluster; `read` returns one by its path."""
        key = (self.rules, *sorted(contents.items()))
        return self.known.of(key, lambda: find_pairs({name: read(name) for name in contents}, self.rules))

    def template(self, variant: Variant, plain: Rendered, made: Ingredients, now: Pairs, before: Pairs) -> Rendered:
        """Return a package with the templates of its children merged, and what that changes on the cluster.

        `now` are the pairs of all packages of the cluster as they are to be, `before` as they are published there.
        """
        done = materialise(plain.files, now, self.options)
        told = in_package(at_places(done.findings, plain.places), str(variant.place), str(variant.owner.key))
        asked = {question_of(key): now.digest_of(key) for key in done.asked}
        rendered = replace(plain, findings=(*plain.findings, *told), trace={**plain.trace, **asked})
        if faults := errors(done.findings):
            return replace(rendered, reason=faults[0].code)
        mine = {one.child.key for one in done.effects}
        moved = changes(before, now, self.options, mine)
        kept = (*plain.stages, FilesStage("template", done.files)) if plain.stages else ()
        return replace(
            rendered, files=done.files, templates=done, template_changes=moved, stages=kept,
            overruled=(*plain.overruled, *self._overruled(plain, made, done.files)),
        )  # fmt: skip

    def _overruled(self, plain: Rendered, made: Ingredients, files: FileTree) -> Iterator[Conflict]:
        """Yield the edits of people that templates undo, and that no rule before them did."""
        known = set(map(place_of, plain.overruled))
        found = () if files is plain.files else overruled(plain.source, files, STAGE, plain.merging)
        for one in (*found, *taken_out(made, files, self.rules)):
            if (place := place_of(one)) not in known:
                known.add(place)
                yield one


def question_of(key: ObjectKey) -> str:
    """Return the question that a trace has of a parent or child."""
    return question(TEMPLATE, key.group, key.kind, key.namespace or "-", key.name)


def world_of(contents: Contents) -> str:
    """Return the answer to the question about all parents and children of a cluster."""
    return digest(dict(contents))


def answer_by(pairs: Pairs, contents: Contents) -> Callable[[Sequence[str]], str]:
    """Return who answers such questions by the pairs of a cluster, and by the packages that they were found in."""

    def answer(words: Sequence[str]) -> str:
        if [*words] == ["*"]:
            return world_of(contents)
        if len(words) != 4:
            return ""
        group, kind, namespace, name = words
        return pairs.digest_of(ObjectKey(group, kind, "" if namespace == "-" else namespace, name))

    return answer


def is_of_template(name: str) -> bool:
    """Tell whether a question of a trace is about parents and children."""
    return name.startswith(f"{TEMPLATE} ")


def takes_part(trace: Trace) -> bool:
    """Tell whether a package that was rendered so had any parent or child."""
    return any(map(is_of_template, trace))


def was_looked_at(trace: Trace) -> bool:
    """Tell whether a package came so far in its render that it was looked at for parents and children."""
    return any(name.startswith(f"{RULES} ") for name in trace)


def without_templates(trace: Trace) -> Trace:
    """Return a trace without what it asked of parents and children."""
    return {name: answer for name, answer in trace.items() if not is_of_template(name)}
