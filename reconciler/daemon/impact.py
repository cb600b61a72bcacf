"""Impact over real Git: the fleet is fetched once, and planned twice, with the config of one commit and of another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from reconciler.daemon.config import ConfigHistory
from reconciler.daemon.desk import Desk, unread_of
from reconciler.daemon.reconcile import Begun, begin, gather_all, plan_fleet
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.tools import ConfigSource, Tools
from reconciler.gitio.errors import ObjectMissingError
from reconciler.krm.findings import Finding
from reconciler.planning.conflicts import place_of
from reconciler.planning.destination import Destination
from reconciler.planning.drafts import Words
from reconciler.planning.impact import ConflictPlace, Effect, Outlook, effects, unknown_effects
from reconciler.planning.ingredients import TooLargeToReadError
from reconciler.planning.open_drafts import read_package_status
from reconciler.planning.outcome import Draft, Leaving, Unchanged
from reconciler.reporting.impact import Impact
from reconciler.reporting.package_status import text
from reconciler.reporting.sections import items
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId


@dataclass(frozen=True)
class Range:
    """Two commits by name: `base..head`, or `base...head`, which begins at the last commit that both come from.

    "" is the config as settings name it: as `base` its branch, as `head` what is on disk, or the branch of a URL.
    """

    base: str
    head: str
    forks: bool = False

    def __str__(self) -> str:
        return f"{self.base}{'...' if self.forks else '..'}{self.head}"


@dataclass(frozen=True)
class Configs:
    """Where configs are read from: as it is now, at any commit, and the branch that settings name."""

    now: ConfigSource
    history: ConfigHistory
    branch: str

    def of(self, asked: Range) -> tuple[ConfigSource, ConfigSource]:
        """Return the two configs that a range asks for. Raises GitError."""
        base = self.history.find(asked.base) if asked.base else self.history.find_branch(self.branch)
        head = self.history.find(asked.head) if asked.head else None
        if asked.forks:
            tip = head or self.history.find(self.history.here)
            fork = self.history.merge_base(base, tip)
            if fork is None:
                raise ObjectMissingError(f"{asked}: the two must come from one commit, and have none in common")
            base = fork
        return self.history.at(base), self.history.at(head) if head else self.now


def impact(asked: Range, configs: Configs, remotes: Remotes, tools: Tools) -> Impact:
    """Return what the one config makes different for the fleet that the other would not. Raises GitError."""
    tools = replace(tools, writer=_Wordless)
    before, after = gather_all(configs.of(asked), remotes, tools)
    begun = begin(before, remotes, tools)
    base = plan_fleet(begun, tools)
    going = begin(after, remotes, tools)
    head = plan_fleet(going, tools, (begun, base))
    read = partial(_read, begun.desk, going.desk)
    found = tuple(read(one) for one in effects(base, head))
    labels = {name: one.labels for name, one in {**begun.desk.clusters, **going.desk.clusters}.items()}
    return Impact(base, head, found, labels, unknown_effects((base, head), _unread((begun, going), remotes)))


def _unread(configs: Iterable[Begun], remotes: Remotes) -> dict[Destination, Finding]:
    """Return an error for each destination of the configs whose repository could not be read."""
    # a Repository that is only an upstream counts where a package is missing for it
    known = {
        one.key: one
        for begun in configs
        for one in (*begun.all_destinations, *(one for one in begun.known_destinations if one.deployment))
    }
    return {one: finding for one in known.values() for finding in unread_of(one, remotes)}


class _Wordless:
    """Finds no words: what is not committed needs none, and they cost as much as a render."""

    def __init__(self, config: str) -> None:
        self._nothing = Words(b"", "")

    def words(self, draft: Draft, destination: Destination) -> Words:
        """Return nothing."""
        return self._nothing

    def removal(self, leaving: Leaving, destination: Destination, before: FileTree | None) -> str:
        """Return nothing."""
        return ""


def _read(base: Desk, head: Desk, effect: Effect) -> Effect:
    """Return an effect with the contents that tell what is different in it."""
    where = effect.destination
    if where is None:
        return effect
    try:
        had = _content(base, where, effect.before) if effect.before.kind == "wanted" else _standing(head, effect)
        has = _content(head, where, effect.after) if effect.after.kind in ("wanted", "declined") else _left(effect, had)
    except TooLargeToReadError:
        return replace(effect, had=None, has=None)
    return replace(effect, had=had, has=has, known=_known_conflicts(base, effect))


def _content(desk: Desk, where: Destination, outlook: Outlook) -> FileTree:
    if isinstance(outlook.outcome, Draft):
        return outlook.outcome.rendered.files
    return _tree(desk, where, outlook.tree)


def _standing(desk: Desk, effect: Effect) -> FileTree:
    """Return what stands of a package that the first config leaves as it is, as the second finds it."""
    assert effect.destination
    outcome = effect.after.outcome
    if isinstance(outcome, Draft):
        return outcome.before
    return _tree(desk, effect.destination, effect.after.tree if isinstance(outcome, Unchanged) else None)


def _left(effect: Effect, had: FileTree) -> FileTree:
    """Return what there is to be of a package that the second config does not want, or cannot have."""
    gone = effect.after.kind == "none" or (effect.after.kind == "leaving" and effect.after.reason in _GOING)
    return FileTree() if gone else had


_GOING = ("proposed", "withdrawn")


def _tree(desk: Desk, where: Destination, tree: TreeId | None) -> FileTree:
    return desk.contents(where, tree) if tree else FileTree()


def _known_conflicts(desk: Desk, effect: Effect) -> frozenset[ConflictPlace]:
    """Return where people's edits meet others already by the first config, if there are any by the second."""
    draft, where = effect.after.outcome, effect.destination
    if not (isinstance(draft, Draft) and draft.rendered.conflicts and where):
        return frozenset()
    match effect.before.outcome:
        case Draft(rendered=rendered):
            return frozenset(place_of(one) for one in rendered.conflicts)
        case Unchanged(record=record) if offer := record.put or record.ours:
            told = items(read_package_status(desk.file(where, offer.status)) or {}, "conflicts")
            return frozenset((text(one, "file"), text(one, "resource"), text(one, "pointer")) for one in told)
        case _:
            return frozenset()
