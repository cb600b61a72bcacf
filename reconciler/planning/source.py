"""Sources: what enters the pipeline, the upstream package as it came with people's edits in it (git.md 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.krm.conflicts import ABSENT, Conflict
from reconciler.krm.findings import Finding, errors
from reconciler.packages.clone import lock_of, upstream_of
from reconciler.packages.kptfile import KPTFILE, Strategy
from reconciler.packages.update import MergeOptions, Updated, merge, strategy_of, update
from reconciler.planning.conflicts import place_of, still_stands, without_repeats
from reconciler.planning.last_mile import Had
from reconciler.rules.variant import Earlier
from reconciler.snapshot.files import FileTree, SpecialEntry
from reconciler.snapshot.objects import TreeId


@dataclass(frozen=True)
class Standing:
    """A package as it stands on a branch, and the offer of ours that it came from; what differs is people's.

    `merged` is what entered the pipeline for that offer, `plain` the same without edits made on the draft, `base` the
    source as it came. `conflicts` are those that the offer told of. A package that people made is its own offer, from
    the upstream that its lock names.
    """

    files: FileTree
    rendered: FileTree
    merged: FileTree
    plain: FileTree
    base: FileTree
    conflicts: tuple[Conflict, ...] = ()

    @property
    def follows(self) -> bool:
        """Whether it stands at an upstream at all (porch 5, needs_upstream_update)."""
        return not stands_alone(self.rendered)

    @property
    def is_edited(self) -> bool:
        """Whether people changed it."""
        return self.files.id != self.rendered.id

    def without_special(self) -> Standing:
        """Return it without symbolic links and submodules, which no merge reads."""
        trees = {name: getattr(self, name).with_special({}) for name in _TREES}
        return replace(self, **trees)


_TREES = ("files", "rendered", "merged", "plain", "base")


@dataclass(frozen=True)
class Ingredients:
    """All that a package is made from besides the catalog.

    `came` is the wanted upstream, `ours` stands on the cluster branch, `put` on the draft; `earlier` is our last
    output, made with the policies that it `had`. `is_generated`: a room made it, and owns all that it emits.
    `deleted` is our last published version where people deleted the whole package from the cluster branch.
    """

    came: FileTree
    ours: Standing | None = None
    put: Standing | None = None
    earlier: Earlier | None = None
    is_generated: bool = False
    had: Had = field(default_factory=Had)
    deleted: TreeId | None = None

    @property
    def needs_merge(self) -> bool:
        """Whether people's edits are anywhere in it."""
        sides = [side for side in (self.ours, self.put) if side]
        return any(side.is_edited or side.merged.id != side.base.id for side in sides)


@dataclass(frozen=True)
class Source:
    """What enters the pipeline. Error findings mean that there is none.

    `plain` is it without edits made on the draft. `follows` is False for a package that was adopted without a lock:
    it is mutated, never updated. `updated` are conflicts of edits on the cluster branch with upstream, and follow from
    the branches; `drafted` are those of edits on the draft, which are remembered as long as their outcome stands.
    """

    files: FileTree
    plain: FileTree
    base: FileTree
    follows: bool = True
    updated: tuple[Conflict, ...] = ()
    drafted: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Those of the update, then those with edits made on the draft."""
        return without_repeats((*self.updated, *self.drafted))

    @property
    def is_edited(self) -> bool:
        """Whether people's edits are in it."""
        return self.files.id != self.base.id


def local_special(made: Ingredients) -> Mapping[str, SpecialEntry]:
    """Return the symbolic links and submodules of a package, all of which are local changes: no renderer creates any.

    Those of the cluster branch count, with the local changes on the draft since our last commit there.
    """
    published = made.ours.files.special if made.ours else {}
    if made.put is None:
        return published
    drafted, written = made.put.files.special, made.put.rendered.special
    changed = {path for path in {*drafted, *written} if drafted.get(path) != written.get(path)}
    kept = {path: one for path, one in published.items() if path not in changed}
    return {**kept, **{path: drafted[path] for path in changed if path in drafted}}


def without_special(made: Ingredients) -> Ingredients:
    """Return the ingredients without symbolic links and submodules."""
    return replace(
        made,
        ours=made.ours.without_special() if made.ours else None,
        put=made.put.without_special() if made.put else None,
    )


# the rule of a conflict about an edit that no merge noticed
NOT_KEPT = "not-kept"
# the update strategies that replace local changes, each also the rule of the conflicts that record them
REPLACING: tuple[Strategy, ...] = ("copy-merge", "force-delete-replace")
NO_SOURCE = Source(FileTree(), FileTree(), FileTree())


def mix(made: Ingredients, strategy: Strategy | None, options: MergeOptions) -> Source:
    """Return the source of a package: upstream, with the edits of the cluster branch and then those of the draft.

    A package that nobody edited takes the upstream to the byte. `strategy` None means the Kptfile's own.
    """
    source = _with_published_edits(made, strategy, options)
    if errors(source.findings):
        return source
    if made.put:
        source = _with_drafted_edits(source, made.put, options)
    return _given_back(source, options) if made.is_generated else source


def _with_published_edits(made: Ingredients, strategy: Strategy | None, options: MergeOptions) -> Source:
    if made.ours is None:
        return Source(made.came, made.came, made.came)
    taken = _taken_out(made.ours, options)
    local = taken.files
    if errors(taken.findings):
        return Source(local, local, made.came, findings=taken.findings)
    follows = made.is_generated or made.ours.follows
    if not follows or made.ours.base.id == made.came.id:
        return Source(local, local, made.came, follows, updated=taken.conflicts, findings=taken.findings)
    if local.id == made.ours.base.id:
        return Source(made.came, made.came, made.came, updated=taken.conflicts, findings=taken.findings)
    if made.is_generated:
        updated = merge(made.ours.base, made.came, local, options)
    else:
        chosen = strategy or strategy_of(upstream_of(local))
        updated = update(made.ours.base, made.came, local, chosen, options)
        if chosen in REPLACING:
            updated = updated.noting(_replaced(made.ours.base, local, updated, chosen))
    return Source(
        updated.files, updated.files, made.came,
        updated=(*taken.conflicts, *updated.conflicts), findings=(*taken.findings, *updated.findings),
    )  # fmt: skip


def _replaced(base: FileTree, local: FileTree, updated: Updated, strategy: Strategy) -> list[Conflict]:
    """Return a conflict for each file whose local change an update strategy replaced."""
    known = {one.file for one in updated.conflicts}
    paths = sorted(path for path in {*base, *local} if base.get(path) != local.get(path))
    found = []
    for path in paths:
        # these strategies merge the Kptfile, with records of its own
        if path == KPTFILE or path in known or updated.files.get(path) == local.get(path):
            continue
        was, here, now = (one.id if (one := tree.get(path)) else ABSENT for tree in (base, local, updated.files))
        found.append(Conflict("file", "", was, here, now, "upstream", strategy, file=path))
    return found


def _with_drafted_edits(source: Source, put: Standing, options: MergeOptions) -> Source:
    taken = _taken_out(put, options)
    # both sides have local changes: those of the cluster branch, and those of the draft
    both_local = replace(options, rules=replace(options.rules, keeps_lines=True))
    merged = _merged(put.plain, source.plain, taken.files, both_local)
    told = (*taken.conflicts, *merged.conflicts)
    again = set(map(place_of, told))
    # what a whole render did not keep is looked for again after this one (`unkept`)
    known = (one for one in put.conflicts if one.rule != NOT_KEPT)
    remembered = (one for one in known if place_of(one) not in again and still_stands(one, merged.files))
    return replace(
        source,
        files=merged.files,
        updated=tuple(one for one in source.updated if still_stands(one, merged.files)),
        drafted=(*told, *remembered),
        findings=(*source.findings, *taken.findings, *merged.findings),
    )


def _given_back(source: Source, options: MergeOptions) -> Source:
    """Return the source of a generated package with every file and field that its room emits (design 10.8).

    What the room never emitted is people's. Their edits of the rest are undone, visibly.
    """
    plain, files = _overlaid(source.plain, source.base, options), _overlaid(source.files, source.base, options)
    known = set(map(place_of, (*source.updated, *plain.conflicts)))
    drafted = (one for one in files.conflicts if place_of(one) not in known)
    return replace(
        source, plain=plain.files, files=files.files, updated=(*source.updated, *plain.conflicts),
        drafted=(*source.drafted, *drafted), findings=(*source.findings, *files.findings),
    )  # fmt: skip


def _overlaid(local: FileTree, came: FileTree, options: MergeOptions) -> Updated:
    if local.id == came.id:
        return Updated(came)
    # without an origin, both sides have added what they have: of one field, the room's counts
    wins = replace(options, rules=replace(options.rules, winner="upstream"))
    merged = merge(FileTree(), came, local, wins)
    # a file that can only be taken whole is the room's, if the room makes it
    whole = {one.file: came[one.file] for one in merged.conflicts if one.kind == "file" and one.file in came}
    conflicts = (replace(one, base=one.upstream, chosen="upstream", rule="generated") for one in merged.conflicts)
    return replace(merged, files=merged.files.with_files(whole), conflicts=tuple(conflicts))


def _taken_out(standing: Standing, options: MergeOptions) -> Updated:
    """Take our effects out of what stands on a branch and leave people's edits in (git.md 3, L).

    What people set where we had set something is theirs: whatever sets that field again will overrule it, visibly.
    """
    if not standing.is_edited:
        return Updated(standing.merged)
    rules = replace(options.rules, winner="local", weaves_items=True)
    # a function may have given a resource another kind, name or namespace between the two sides
    theirs = replace(options, rules=rules, match_positions=True)
    taken = merge(standing.rendered, standing.merged, standing.files, theirs)
    # people win wherever there is something to merge; where they lose, as with a file that they broke, it must be told
    return replace(taken, conflicts=tuple(one for one in taken.conflicts if one.chosen == "upstream"))


def _merged(base: FileTree, theirs: FileTree, ours: FileTree, options: MergeOptions) -> Updated:
    if ours.id in (base.id, theirs.id):
        return Updated(theirs)
    return Updated(ours) if base.id == theirs.id else merge(base, theirs, ours, options)


def overruled(source: Source, made: FileTree, rule: str, options: MergeOptions) -> Iterator[Conflict]:
    """Yield a conflict for every edit of people's that a rule set to something else (design 10.8).

    `made` is what the rule made of the source.
    """
    if source.is_edited:
        for one in merge(source.base, made, source.files, options).conflicts:
            # what a package follows is the variant's to say, and the lock that an adopted one came with is no edit
            if one.file != KPTFILE or not one.pointer.startswith("/upstream"):
                yield replace(one, chosen="rule", rule=rule)


def stands_alone(files: FileTree) -> bool:
    """Return whether a package follows no upstream: it has a Kptfile, and no upstreamLock in it."""
    return KPTFILE in files and lock_of(files) is None
