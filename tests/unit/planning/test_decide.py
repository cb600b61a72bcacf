"""Deciding: one row for each situation of a package, by what is remembered and what stands on the branches."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from reconciler.krm.findings import Finding, Severity, Where
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.decide import (
    Question,
    decide,
    edited_places,
    finding_data,
    read_finding,
)
from reconciler.planning.ingredients import TooLargeToReadError
from reconciler.planning.outcome import Blocked, Draft, Outcome, Rendered, Unchanged
from reconciler.planning.source import Ingredients, Source
from reconciler.planning.state import Offer, PackageRecord, Seen
from reconciler.rules.variant import Upstream, Variant
from reconciler.snapshot.catalog import read_catalog
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import CommitId, TreeId
from reconciler.snapshot.trace import ABSENT, Answers
from tests.unit.planning.values import offer, owner, record, tree, upstream, variant, with_upstream

ANSWERS = Answers(read_catalog(FileTree(), {}))
GW = variant()
OUTPUT = FileTree({"a.yaml": File(b"a: 1\n")})
REVIEW = Rendered(OUTPUT).review
UP_NOW = {**upstream().as_data(), "seconds": 0}


def content(name: str) -> FileTree:
    return FileTree({"name": File(name.encode())})


UP1 = content("up1").id


@dataclass
class Kitchen:
    """Sources and renderer in one: a tree's files are one file that names it, every render gives the same output."""

    output: FileTree = OUTPUT
    findings: tuple[Finding, ...] = ()
    locks: str | None = "up1"
    history: tuple[str, ...] = ()
    functions: Mapping[str, str] = field(default_factory=dict)
    interrupted: str = ""
    sources: list[str] = field(default_factory=list)
    made: list[Ingredients] = field(default_factory=list)

    def upstream(self, upstream: Upstream) -> FileTree:
        self.sources.append(upstream.tree)
        return content(upstream.tree)

    def standing(self, tree: TreeId) -> FileTree:
        self.sources.append(tree)
        return content(tree)

    def is_behind(self, upstream: Upstream, commit: CommitId) -> bool:
        return commit in self.history

    def lock_tree(self, files: FileTree) -> TreeId | None:
        return tree(self.locks) if self.locks else None

    def function(self, name: str) -> str:
        return self.functions.get(name, ABSENT)

    def keep(self, files: FileTree) -> TreeId:
        return files.id

    def render(self, variant: Variant, made: Ingredients) -> Rendered:
        if self.interrupted:
            raise InterruptedFunctionError(self.interrupted)
        self.made.append(made)
        source = Source(made.came, made.came, made.came)
        return Rendered(self.output, findings=self.findings, source=source)


def made(name: str = "", **fields: object) -> Offer:
    """The offer of today's output, or of another."""
    return replace(offer(name or OUTPUT.id, base=UP1), review=REVIEW, **fields)


def known(**fields: object) -> PackageRecord:
    """A record whose trace is up to date."""
    before = {"kind": "drafted", "conditions": [], "findings": [], "upstream": UP_NOW}
    whole = {"trace": GW.facts, "wanted": OUTPUT.id, "review": REVIEW, "outcome": before, **fields}
    return record(**whole)


def stale(**fields: object) -> PackageRecord:
    """A record from before something it depends on changed: what was wanted then is another tree."""
    return known(**{"trace": {}, "wanted": tree("old"), **fields})


def asked(known: PackageRecord | None, seen: Seen, one: Variant = GW, **fields: object) -> tuple[Outcome, Kitchen]:
    kitchen = Kitchen()
    question = Question(one, known, seen, **fields)  # type: ignore[arg-type]
    return decide(question, ANSWERS, kitchen, kitchen.render), kitchen


def told(outcome: Outcome) -> str:
    match outcome:
        case Draft(task=task):
            return f"draft {task}"
        case Unchanged(why=why, withdraw=withdraw):
            return why + (", withdrawn" if withdraw else "")
        case Blocked(findings=findings, conditions=conditions):
            return findings[0].code if findings else {one.type: one.reason for one in conditions}["Ready"]


OLD = made("old")
NOW = made()
ELSE = tree("people's")


@pytest.mark.parametrize(
    ("remembered", "seen", "expected"),
    [
        pytest.param(None, Seen(), "draft clone", id="never-seen"),
        pytest.param(None, Seen(ELSE), "DownstreamExists", id="foreign-on-the-branch"),
        pytest.param(None, Seen(None, ELSE), "DownstreamExists", id="foreign-on-the-draft"),
        pytest.param(known(put=NOW), Seen(None, OUTPUT.id), "drafted", id="drafted"),
        pytest.param(known(ours=NOW), Seen(OUTPUT.id), "published", id="published"),
        pytest.param(known(ours=OLD), Seen(OUTPUT.id), "published with edits", id="published-with-edits"),
        pytest.param(known(ours=NOW), Seen(ELSE), "draft edit", id="edited-and-overruled"),
        pytest.param(known(ours=NOW, put=OLD), Seen(OUTPUT.id, tree("old")), "published, withdrawn", id="overtaken"),
        pytest.param(known(ours=NOW, put=OLD), Seen(OUTPUT.id, ELSE), "published", id="overtaken-but-edited"),
        pytest.param(
            known(ours=NOW, put=OLD), Seen(OUTPUT.id, tree("old"), frozen=True), "published", id="overtaken-but-frozen"
        ),
        pytest.param(
            known(ours=NOW, put=OLD), Seen(OUTPUT.id, tree("old"), stuck=True), "published", id="overtaken-but-stuck"
        ),
        pytest.param(known(ours=OLD, declined=(OUTPUT.id,)), Seen(tree("old")), "declined", id="declined"),
        pytest.param(known(), Seen(OUTPUT.id), "adopted", id="adopted"),
        pytest.param(known(owned=False), Seen(OUTPUT.id), "DownstreamExists", id="not-its-own-yet"),
        pytest.param(known(), Seen(), "draft clone", id="gone-from-the-branch"),
        pytest.param(stale(ours=OLD), Seen(tree("old")), "draft edit", id="input-changed"),
        pytest.param(stale(put=OLD), Seen(None, tree("old")), "draft mutate", id="input-changed-while-open"),
        pytest.param(stale(ours=OLD), Seen(ELSE), "draft edit", id="edited-on-the-branch"),
        pytest.param(stale(ours=OLD, put=OLD), Seen(tree("old"), ELSE), "draft mutate", id="edited-on-the-draft"),
        pytest.param(stale(), Seen(None, ELSE), "draft mutate", id="a-draft-of-unknown-origin"),
        pytest.param(known(put=OLD), Seen(None, OUTPUT.id), "drafted", id="drafted-by-people-as-it-would-be"),
        pytest.param(stale(put=OLD), Seen(None, tree("old"), frozen=True), "DownstreamProposed", id="proposed"),
        pytest.param(stale(ours=OLD), Seen(tree("old"), stuck=True), "DraftEdited", id="stuck"),
        pytest.param(stale(ours=NOW), Seen(OUTPUT.id), "published", id="input-changed-output-did-not"),
        pytest.param(
            stale(ours=replace(OLD, merged=tree("m"))), Seen(tree("old")), "draft edit", id="edits-on-this-upstream"
        ),
        pytest.param(
            stale(ours=replace(OLD, base=content("up0").id, merged=tree("m"))),
            Seen(tree("old")),
            "draft upgrade",
            id="edits-on-another-upstream",
        ),
    ],
)
def test_every_situation(remembered: PackageRecord | None, seen: Seen, expected: str) -> None:
    outcome, _ = asked(remembered, seen)

    assert told(outcome) == expected


@pytest.mark.parametrize(
    "remembered",
    [
        pytest.param(known(put=NOW), id="drafted"),
        pytest.param(known(ours=NOW, declined=(OUTPUT.id,)), id="published"),
    ],
)
def test_nothing_is_rendered_while_all_answers_are_the_same(remembered: PackageRecord) -> None:
    assert remembered
    seen = Seen(OUTPUT.id, OUTPUT.id)

    _, kitchen = asked(replace(remembered, seen=seen), seen)

    assert kitchen.made == []


@pytest.mark.parametrize(
    ("content", "ref", "task"),
    [
        pytest.param("up2", "gw/v2", "draft upgrade", id="a-new-version"),
        pytest.param("up2", "gw/v1", "draft upgrade", id="a-tag-that-moved"),
        pytest.param("up1", "gw/v2", "draft upgrade", id="a-version-of-equal-content"),
        pytest.param("up1", "gw/v1", "draft edit", id="the-same"),
    ],
)
def test_the_task_tells_an_upgrade_from_an_edit(content: str, ref: str, task: str) -> None:
    outcome, _ = asked(stale(ours=OLD), Seen(tree("old")), with_upstream(GW, content, ref))

    assert told(outcome) == task


def test_a_head_that_moved_without_the_package_keeps_the_lock() -> None:
    later = replace(GW, source=replace(upstream(), commit="later"))

    outcome, _ = asked(stale(ours=OLD), Seen(tree("old")), later)

    assert outcome.variant.source.commit == "at-up1"


def test_another_repository_of_equal_content_is_locked_at_its_own_commit() -> None:
    moved = replace(GW, source=replace(upstream(), repo="https://git.example/new.git", commit="new"))

    outcome, _ = asked(stale(ours=OLD), Seen(tree("old")), moved)

    assert (outcome.variant.source.commit, told(outcome)) == ("new", "draft upgrade")


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(True, "published", id="owner-gone"),
        pytest.param(False, "OwnershipConflict", id="owner-alive"),
    ],
)
def test_a_package_passes_on_only_when_its_owner_is_gone(gone: bool, expected: str) -> None:
    outcome, _ = asked(known(owner=owner("former"), ours=NOW), Seen(OUTPUT.id), owner_gone=gone)

    assert told(outcome) == expected
    assert outcome.record
    assert outcome.record.owner == (owner() if gone else owner("former"))


@pytest.mark.parametrize(
    ("locked", "expected"),
    [
        pytest.param("up1", "draft adopt", id="wanted-upstream"),
        pytest.param("up0", "draft adopt", id="another"),
        pytest.param(None, "MergeBaseMissing", id="an-upstream-that-is-gone"),
    ],
)
def test_adoption_takes_what_stands_as_the_source(locked: str | None, expected: str) -> None:
    kitchen = Kitchen(locks=locked)
    willing = Question(replace(GW, adoption="adoptExisting"), None, Seen(ELSE))

    outcome = decide(willing, ANSWERS, kitchen, kitchen.render)

    assert told(outcome) == expected
    assert ELSE in kitchen.sources
    bases = [made.ours.base for made in kitchen.made if made.ours]
    assert bases == ([content(locked)] if locked else [])
    assert [made.earlier for made in kitchen.made] == [None for _ in bases]


def test_adoption_takes_what_lies_on_the_draft_alone() -> None:
    kitchen = Kitchen(locks="up1")
    willing = Question(replace(GW, adoption="adoptExisting"), None, Seen(None, ELSE))

    outcome = decide(willing, ANSWERS, kitchen, kitchen.render)

    assert told(outcome) == "draft adopt"
    assert ELSE in kitchen.sources


def test_nested_packages_are_refused() -> None:
    outcome, _ = asked(None, Seen(), nested=("gw/inner",))

    assert told(outcome) == "DownstreamConflict"


def test_an_error_while_rendering_blocks_and_is_asked_again_only_when_something_changes() -> None:
    kitchen = Kitchen(findings=(Finding("InjectionFailed", "no object for endpoints"),))

    blocked = decide(Question(GW, None, Seen()), ANSWERS, kitchen, kitchen.render)

    assert isinstance(blocked, Blocked)
    assert {one.type: (one.status, one.reason) for one in blocked.conditions} == {
        "Ready": ("False", "Error"), "Stalled": ("False", "Valid"),
    }  # fmt: skip
    remembered = {
        "kind": "blocked",
        "conditions": [one.as_data() for one in blocked.conditions],
        "findings": [finding_data(one) for one in blocked.findings],
    }
    again = known(outcome=remembered, trace=blocked.trace, seen=Seen(), wanted=None)
    silent, quiet = asked(again, Seen())
    assert (told(silent), quiet.made) == ("InjectionFailed", [])
    changed, busy = asked(again, Seen(None, ELSE))
    assert (told(changed), len(busy.made)) == ("draft update", 1)


@pytest.mark.parametrize(
    ("one", "seen", "places"),
    [
        pytest.param(record(), Seen(ELSE), (), id="adopted-is-not-edited"),
        pytest.param(record(ours=OLD), Seen(tree("old")), (), id="untouched"),
        pytest.param(record(ours=OLD), Seen(None), (), id="deleted-is-not-edited"),
        pytest.param(record(ours=OLD), Seen(ELSE), ("the cluster branch",), id="branch"),
        pytest.param(record(put=OLD), Seen(ELSE, tree("old")), ("the cluster branch",), id="beside-a-first-draft"),
        pytest.param(record(put=OLD), Seen(None, ELSE), ("its draft",), id="draft"),
        pytest.param(record(ours=OLD, put=OLD), Seen(ELSE, ELSE), ("the cluster branch", "its draft"), id="both"),
    ],
)
def test_where_people_edited(one: PackageRecord, seen: Seen, places: tuple[str, ...]) -> None:
    assert edited_places(one, seen) == places


@pytest.mark.parametrize("severity", list(Severity), ids=lambda one: str(one.value))
def test_findings_come_back_from_state_as_they_were(severity: Severity) -> None:
    where = Where("Kptfile", 2, "Site/x", "spec", "berlin/gw", "PackageVariant/default/gw")
    finding = Finding("Code", "a message", where, severity)
    data: Mapping[str, str | int] = finding_data(finding)

    assert read_finding(data) == finding


def test_a_draft_shows_what_it_replaces() -> None:
    outcome, kitchen = asked(stale(ours=OLD, put=OLD), Seen(tree("old"), tree("old")))

    assert isinstance(outcome, Draft)
    assert outcome.before == content("old")
    assert kitchen.sources[-1] == "old"


def test_an_offer_names_the_tree_of_the_files_that_were_read() -> None:
    outcome, _ = asked(None, Seen())

    assert isinstance(outcome, Draft)
    assert (outcome.base, outcome.merged) == (UP1, UP1)


def test_a_package_that_is_too_large_to_read_spoils_itself_only() -> None:
    class Full(Kitchen):
        def upstream(self, upstream: Upstream) -> FileTree:
            raise TooLargeToReadError("tree 1 must have at most 5 entries")

    kitchen = Full()
    outcome = decide(Question(GW, None, Seen()), ANSWERS, kitchen, kitchen.render)

    assert isinstance(outcome, Blocked)
    assert [one.code for one in outcome.findings] == ["PackageTooLarge"]
    assert {one.type: one.reason for one in outcome.conditions} == {"Stalled": "Valid", "Ready": "Error"}


def test_an_interrupted_function_is_to_be_tried_again() -> None:
    kitchen = Kitchen(interrupted="/bin/x took longer than 5 seconds and was ended")
    outcome = decide(Question(GW, None, Seen()), ANSWERS, kitchen, kitchen.render)

    assert isinstance(outcome, Blocked)
    assert outcome.retry
    assert [(one.code, one.message) for one in outcome.findings] == [
        (
            "FunctionInterrupted",
            f"package {GW.place} was left as it is: /bin/x took longer than 5 seconds and was ended (next step: retry)",
        )
    ]
    assert {one.type: one.reason for one in outcome.conditions} == {"Stalled": "Valid", "Ready": "Error"}


PROGRAM = "function exec /bin/x"


@pytest.mark.parametrize(
    ("today", "renders"),
    [
        pytest.param({PROGRAM: "1"}, 0, id="the-same"),
        pytest.param({PROGRAM: "2"}, 1, id="another"),
        pytest.param({}, 1, id="gone"),
        pytest.param({PROGRAM: ""}, 0, id="cannot-be-told"),
    ],
)
def test_a_changed_function_is_a_reason_to_render(today: dict[str, str], renders: int) -> None:
    kitchen = Kitchen(functions=today)
    remembered = known(put=NOW, trace={**GW.facts, PROGRAM: "1"})

    decide(Question(GW, remembered, Seen(None, OUTPUT.id)), ANSWERS, kitchen, kitchen.render)

    assert len(kitchen.made) == renders
