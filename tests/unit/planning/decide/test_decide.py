"""Deciding: one row for each situation of a package, by what is remembered and what stands on the branches."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import CommitId, File, FileTree, TreeId
from reconciler.catalog.trace import ABSENT_FINGERPRINT, DependencyReader
from reconciler.controllers.results import UpstreamPackage, Variant
from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.decide.package_decision import (
    DecisionInput,
    decide_package,
    list_edited_branches,
    parse_finding,
    serialize_finding,
)
from reconciler.planning.model.outcomes import Blocked, Draft, PackageOutcome, PackageRender, Unchanged
from reconciler.planning.model.sources import PackageSource, PackageTooLargeError, RenderInputs
from reconciler.planning.model.state import ObservedPackage, PackageRecord, RenderedVersion
from tests.unit.planning.values import offer, owner, record, tree, upstream, variant, with_upstream

ANSWERS = DependencyReader(read_catalog(FileTree(), {}))
GW = variant()
OUTPUT = FileTree({"a.yaml": File(b"a: 1\n")})
REVIEW = PackageRender(OUTPUT).review_digest
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
    made: list[RenderInputs] = field(default_factory=list)

    def read_upstream(self, upstream: UpstreamPackage) -> FileTree:
        self.sources.append(upstream.tree)
        return content(upstream.tree)

    def read_tree(self, tree: TreeId) -> FileTree:
        self.sources.append(tree)
        return content(tree)

    def is_ancestor(self, upstream: UpstreamPackage, commit: CommitId) -> bool:
        return commit in self.history

    def find_locked_tree(self, files: FileTree) -> TreeId | None:
        return tree(self.locks) if self.locks else None

    def read_function_fingerprint(self, name: str) -> str:
        return self.functions.get(name, ABSENT_FINGERPRINT)

    def store_tree(self, files: FileTree) -> TreeId:
        return files.id

    def render(self, variant: Variant, render_inputs: RenderInputs) -> PackageRender:
        if self.interrupted:
            raise InterruptedFunctionError(self.interrupted)
        self.made.append(render_inputs)
        source = PackageSource(render_inputs.source_files, render_inputs.source_files, render_inputs.source_files)
        return PackageRender(self.output, findings=self.findings, source=source)


def made(name: str = "", **fields: object) -> RenderedVersion:
    """The offer of today's output, or of another."""
    return replace(offer(name or OUTPUT.id, base=UP1), review=REVIEW, **fields)


def known(**fields: object) -> PackageRecord:
    """A record whose trace is up to date."""
    before = {"kind": "drafted", "conditions": [], "findings": [], "upstream": UP_NOW}
    whole = {"trace": GW.dependencies, "desired_tree": OUTPUT.id, "review_digest": REVIEW, "outcome": before, **fields}
    return record(**whole)


def stale(**fields: object) -> PackageRecord:
    """A record from before something it depends on changed: what was wanted then is another tree."""
    return known(**{"trace": {}, "desired_tree": tree("old"), **fields})


def asked(
    known: PackageRecord | None, observed_package: ObservedPackage, value: Variant = GW, **fields: object
) -> tuple[PackageOutcome, Kitchen]:
    kitchen = Kitchen()
    question = DecisionInput(value, known, observed_package, **fields)  # type: ignore[arg-type]
    return decide_package(question, ANSWERS, kitchen, kitchen.render), kitchen


def told(outcome: PackageOutcome) -> str:
    match outcome:
        case Draft(task=task):
            return f"draft {task}"
        case Unchanged(reason=reason, should_withdraw=should_withdraw):
            return reason + (", withdrawn" if should_withdraw else "")
        case Blocked(findings=findings, conditions=conditions):
            return (
                findings[0].code
                if findings
                else {condition.type: condition.reason for condition in conditions}["Ready"]
            )


OLD = made("old")
NOW = made()
ELSE = tree("people's")


@pytest.mark.parametrize(
    ("remembered", "observed_package", "expected"),
    [
        pytest.param(None, ObservedPackage(), "draft clone", id="never-seen"),
        pytest.param(None, ObservedPackage(ELSE), "DownstreamExists", id="foreign-on-the-branch"),
        pytest.param(None, ObservedPackage(None, ELSE), "DownstreamExists", id="foreign-on-the-draft"),
        pytest.param(known(draft_version=NOW), ObservedPackage(None, OUTPUT.id), "drafted", id="drafted"),
        pytest.param(known(published_version=NOW), ObservedPackage(OUTPUT.id), "published", id="published"),
        pytest.param(
            known(published_version=OLD), ObservedPackage(OUTPUT.id), "published with edits", id="published-with-edits"
        ),
        pytest.param(known(published_version=NOW), ObservedPackage(ELSE), "draft edit", id="edited-and-overruled"),
        pytest.param(
            known(published_version=NOW, draft_version=OLD),
            ObservedPackage(OUTPUT.id, tree("old")),
            "published, withdrawn",
            id="overtaken",
        ),
        pytest.param(
            known(published_version=NOW, draft_version=OLD),
            ObservedPackage(OUTPUT.id, ELSE),
            "published",
            id="overtaken-but-edited",
        ),
        pytest.param(
            known(published_version=NOW, draft_version=OLD),
            ObservedPackage(OUTPUT.id, tree("old"), is_frozen=True),
            "published",
            id="overtaken-but-frozen",
        ),
        pytest.param(
            known(published_version=NOW, draft_version=OLD),
            ObservedPackage(OUTPUT.id, tree("old"), is_stuck=True),
            "published",
            id="overtaken-but-stuck",
        ),
        pytest.param(
            known(published_version=OLD, declined_trees=(OUTPUT.id,)),
            ObservedPackage(tree("old")),
            "declined",
            id="declined",
        ),
        pytest.param(known(), ObservedPackage(OUTPUT.id), "adopted", id="adopted"),
        pytest.param(known(is_owned=False), ObservedPackage(OUTPUT.id), "DownstreamExists", id="not-its-own-yet"),
        pytest.param(known(), ObservedPackage(), "draft clone", id="gone-from-the-branch"),
        pytest.param(stale(published_version=OLD), ObservedPackage(tree("old")), "draft edit", id="input-changed"),
        pytest.param(
            stale(draft_version=OLD), ObservedPackage(None, tree("old")), "draft mutate", id="input-changed-while-open"
        ),
        pytest.param(stale(published_version=OLD), ObservedPackage(ELSE), "draft edit", id="edited-on-the-branch"),
        pytest.param(
            stale(published_version=OLD, draft_version=OLD),
            ObservedPackage(tree("old"), ELSE),
            "draft mutate",
            id="edited-on-the-draft",
        ),
        pytest.param(stale(), ObservedPackage(None, ELSE), "draft mutate", id="a-draft-of-unknown-origin"),
        pytest.param(
            known(draft_version=OLD), ObservedPackage(None, OUTPUT.id), "drafted", id="drafted-by-people-as-it-would-be"
        ),
        pytest.param(
            stale(draft_version=OLD),
            ObservedPackage(None, tree("old"), is_frozen=True),
            "DownstreamProposed",
            id="proposed",
        ),
        pytest.param(
            stale(published_version=OLD), ObservedPackage(tree("old"), is_stuck=True), "DraftEdited", id="stuck"
        ),
        pytest.param(
            stale(published_version=NOW), ObservedPackage(OUTPUT.id), "published", id="input-changed-output-did-not"
        ),
        pytest.param(
            stale(published_version=replace(OLD, merged=tree("m"))),
            ObservedPackage(tree("old")),
            "draft edit",
            id="edits-on-this-upstream",
        ),
        pytest.param(
            stale(published_version=replace(OLD, base=content("up0").id, merged=tree("m"))),
            ObservedPackage(tree("old")),
            "draft upgrade",
            id="edits-on-another-upstream",
        ),
    ],
)
def test_every_situation(remembered: PackageRecord | None, observed_package: ObservedPackage, expected: str) -> None:
    outcome, _ = asked(remembered, observed_package)

    assert told(outcome) == expected


@pytest.mark.parametrize(
    "remembered",
    [
        pytest.param(known(draft_version=NOW), id="drafted"),
        pytest.param(known(published_version=NOW, declined_trees=(OUTPUT.id,)), id="published"),
    ],
)
def test_nothing_is_rendered_while_all_answers_are_the_same(remembered: PackageRecord) -> None:
    assert remembered
    observed_package = ObservedPackage(OUTPUT.id, OUTPUT.id)

    _, kitchen = asked(replace(remembered, observed=observed_package), observed_package)

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
    outcome, _ = asked(stale(published_version=OLD), ObservedPackage(tree("old")), with_upstream(GW, content, ref))

    assert told(outcome) == task


def test_a_head_that_moved_without_the_package_keeps_the_lock() -> None:
    later = replace(GW, source=replace(upstream(), commit="later"))

    outcome, _ = asked(stale(published_version=OLD), ObservedPackage(tree("old")), later)

    assert outcome.variant.source.commit == "at-up1"


def test_another_repository_of_equal_content_is_locked_at_its_own_commit() -> None:
    moved = replace(GW, source=replace(upstream(), repo="https://git.example/new.git", commit="new"))

    outcome, _ = asked(stale(published_version=OLD), ObservedPackage(tree("old")), moved)

    assert (outcome.variant.source.commit, told(outcome)) == ("new", "draft upgrade")


@pytest.mark.parametrize(
    ("deleted", "expected"),
    [
        pytest.param(True, "published", id="owner-gone"),
        pytest.param(False, "OwnershipConflict", id="owner-alive"),
    ],
)
def test_a_package_passes_on_only_when_its_owner_is_gone(deleted: bool, expected: str) -> None:
    outcome, _ = asked(
        known(owner=owner("former"), published_version=NOW), ObservedPackage(OUTPUT.id), is_owner_gone=deleted
    )

    assert told(outcome) == expected
    assert outcome.record
    assert outcome.record.owner == (owner() if deleted else owner("former"))


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
    willing = DecisionInput(replace(GW, adoption="adoptExisting"), None, ObservedPackage(ELSE))

    outcome = decide_package(willing, ANSWERS, kitchen, kitchen.render)

    assert told(outcome) == expected
    assert ELSE in kitchen.sources
    bases = [render_inputs.published.base for render_inputs in kitchen.made if render_inputs.published]
    assert bases == ([content(locked)] if locked else [])
    assert [render_inputs.previous_render for render_inputs in kitchen.made] == [None for _ in bases]


def test_adoption_takes_what_lies_on_the_draft_alone() -> None:
    kitchen = Kitchen(locks="up1")
    willing = DecisionInput(replace(GW, adoption="adoptExisting"), None, ObservedPackage(None, ELSE))

    outcome = decide_package(willing, ANSWERS, kitchen, kitchen.render)

    assert told(outcome) == "draft adopt"
    assert ELSE in kitchen.sources


def test_nested_packages_are_refused() -> None:
    outcome, _ = asked(None, ObservedPackage(), nested_packages=("gw/inner",))

    assert told(outcome) == "DownstreamConflict"


def test_an_error_while_rendering_blocks_and_is_asked_again_only_when_something_changes() -> None:
    kitchen = Kitchen(findings=(Finding("InjectionFailed", "no object for endpoints"),))

    blocked = decide_package(DecisionInput(GW, None, ObservedPackage()), ANSWERS, kitchen, kitchen.render)

    assert isinstance(blocked, Blocked)
    assert {condition.type: (condition.status, condition.reason) for condition in blocked.conditions} == {
        "Ready": ("False", "Error"), "Stalled": ("False", "Valid"),
    }  # fmt: skip
    remembered = {
        "kind": "blocked",
        "conditions": [condition.as_data() for condition in blocked.conditions],
        "findings": [serialize_finding(finding) for finding in blocked.findings],
    }
    package_record = known(outcome=remembered, trace=blocked.trace, observed=ObservedPackage(), desired_tree=None)
    silent, quiet = asked(package_record, ObservedPackage())
    assert (told(silent), quiet.made) == ("InjectionFailed", [])
    changed, busy = asked(package_record, ObservedPackage(None, ELSE))
    assert (told(changed), len(busy.made)) == ("draft update", 1)


@pytest.mark.parametrize(
    ("package_record", "observed_package", "places"),
    [
        pytest.param(record(), ObservedPackage(ELSE), (), id="adopted-is-not-edited"),
        pytest.param(record(published_version=OLD), ObservedPackage(tree("old")), (), id="untouched"),
        pytest.param(record(published_version=OLD), ObservedPackage(None), (), id="deleted-is-not-edited"),
        pytest.param(record(published_version=OLD), ObservedPackage(ELSE), ("the target branch",), id="branch"),
        pytest.param(
            record(draft_version=OLD),
            ObservedPackage(ELSE, tree("old")),
            ("the target branch",),
            id="beside-a-first-draft",
        ),
        pytest.param(record(draft_version=OLD), ObservedPackage(None, ELSE), ("its draft",), id="draft"),
        pytest.param(
            record(published_version=OLD, draft_version=OLD),
            ObservedPackage(ELSE, ELSE),
            ("the target branch", "its draft"),
            id="both",
        ),
    ],
)
def test_where_people_edited(
    package_record: PackageRecord, observed_package: ObservedPackage, places: tuple[str, ...]
) -> None:
    assert list_edited_branches(package_record, observed_package) == places


@pytest.mark.parametrize("severity", list(Severity), ids=lambda value: str(value.value))
def test_findings_come_back_from_state_as_they_were(severity: Severity) -> None:
    where = SourceLocation("Kptfile", 2, "Site/x", "spec", "berlin/gw", "PackageVariant/default/gw")
    finding = Finding("Code", "a message", where, severity)
    data: Mapping[str, str | int] = serialize_finding(finding)

    assert parse_finding(data) == finding


def test_a_draft_shows_what_it_replaces() -> None:
    outcome, kitchen = asked(stale(published_version=OLD, draft_version=OLD), ObservedPackage(tree("old"), tree("old")))

    assert isinstance(outcome, Draft)
    assert outcome.previous_files == content("old")
    assert kitchen.sources[-1] == "old"


def test_an_offer_names_the_tree_of_the_files_that_were_read() -> None:
    outcome, _ = asked(None, ObservedPackage())

    assert isinstance(outcome, Draft)
    assert (outcome.base_tree, outcome.merged_tree) == (UP1, UP1)


def test_a_package_that_is_too_large_to_read_spoils_itself_only() -> None:
    class Full(Kitchen):
        def read_upstream(self, upstream: UpstreamPackage) -> FileTree:
            raise PackageTooLargeError("tree 1 must have at most 5 entries")

    kitchen = Full()
    outcome = decide_package(DecisionInput(GW, None, ObservedPackage()), ANSWERS, kitchen, kitchen.render)

    assert isinstance(outcome, Blocked)
    assert [finding.code for finding in outcome.findings] == ["PackageTooLarge"]
    assert {condition.type: condition.reason for condition in outcome.conditions} == {
        "Stalled": "Valid",
        "Ready": "Error",
    }


def test_an_interrupted_function_is_to_be_tried_again() -> None:
    kitchen = Kitchen(interrupted="/bin/x took longer than 5 seconds and was ended")
    outcome = decide_package(DecisionInput(GW, None, ObservedPackage()), ANSWERS, kitchen, kitchen.render)

    assert isinstance(outcome, Blocked)
    assert outcome.should_retry
    assert [(finding.code, finding.message) for finding in outcome.findings] == [
        (
            "FunctionInterrupted",
            f"package {GW.target} was not changed: /bin/x took longer than 5 seconds and was ended (next step: retry)",
        )
    ]
    assert {condition.type: condition.reason for condition in outcome.conditions} == {
        "Stalled": "Valid",
        "Ready": "Error",
    }


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
    remembered = known(draft_version=NOW, trace={**GW.dependencies, PROGRAM: "1"})

    decide_package(DecisionInput(GW, remembered, ObservedPackage(None, OUTPUT.id)), ANSWERS, kitchen, kitchen.render)

    assert len(kitchen.made) == renders
