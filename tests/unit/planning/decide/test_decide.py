"""Tests of the decision about one package, one row for each combination of record and branch content."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import CommitId, File, FileTree, TreeId
from reconciler.catalog.trace import ABSENT_FINGERPRINT, DependencyReader
from reconciler.controllers.results import UpstreamPackage, Variant
from reconciler.krm.findings import Finding, Severity, SourceLocation, parse_finding, serialize_finding
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.decide.package_decision import DecisionInput, decide_package, list_edited_branches
from reconciler.planning.model.outcomes import Blocked, Draft, PackageOutcome, PackageRender, Unchanged
from reconciler.planning.model.sources import PackageSource, PackageTooLargeError, RenderInputs, SourceContent
from reconciler.planning.model.state import ObservedPackage, PackageRecord, RenderedVersion
from tests.unit.planning.builders import (
    build_owner,
    build_record,
    build_tree_id,
    build_upstream,
    build_variant,
    build_version,
    replace_upstream,
)

ANSWERS = DependencyReader(read_catalog(FileTree(), {}))
GW = build_variant()
OUTPUT = FileTree({"a.yaml": File(b"a: 1\n")})
REVIEW = PackageRender(OUTPUT).review_digest
UP_NOW = {**build_upstream().as_data(), "seconds": 0}


def build_files(name: str) -> FileTree:
    return FileTree({"name": File(name.encode())})


UP1 = build_files("up1").id


@dataclass
class FakeRenderer:
    """Sources and renderer. Each tree has one file with its name, and every render returns the same output."""

    output: FileTree = OUTPUT
    findings: tuple[Finding, ...] = ()
    locks: str | None = "up1"
    history: tuple[str, ...] = ()
    functions: Mapping[str, str] = field(default_factory=dict)
    interrupted: str = ""
    sources: list[str] = field(default_factory=list)
    made: list[RenderInputs] = field(default_factory=list)

    def read_source(self, upstream: UpstreamPackage) -> SourceContent:
        self.sources.append(upstream.tree)
        return SourceContent(build_files(upstream.tree))

    def read_tree(self, tree: TreeId) -> FileTree:
        self.sources.append(tree)
        return build_files(tree)

    def is_ancestor(self, upstream: UpstreamPackage, commit: CommitId) -> bool:
        return commit in self.history

    def find_locked_tree(self, files: FileTree) -> TreeId | None:
        return build_tree_id(self.locks) if self.locks else None

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


def build_current_version(name: str = "", **fields: object) -> RenderedVersion:
    """Return a version with the current output, or with another output."""
    return replace(build_version(name or OUTPUT.id, base=UP1), review=REVIEW, **fields)


def build_current_record(**fields: object) -> PackageRecord:
    """Return a record whose trace is up to date."""
    before = {"kind": "drafted", "conditions": [], "findings": [], "upstream": UP_NOW}
    whole = {"trace": GW.dependencies, "desired_tree": OUTPUT.id, "review_digest": REVIEW, "outcome": before, **fields}
    return build_record(**whole)


def build_stale_record(**fields: object) -> PackageRecord:
    """Return a record with an outdated trace and another desired tree."""
    return build_current_record(**{"trace": {}, "desired_tree": build_tree_id("old"), **fields})


def decide(
    known: PackageRecord | None, observed_package: ObservedPackage, value: Variant = GW, **fields: object
) -> tuple[PackageOutcome, FakeRenderer]:
    renderer = FakeRenderer()
    question = DecisionInput(value, known, observed_package, **fields)  # type: ignore[arg-type]
    return decide_package(question, ANSWERS, renderer, renderer.render), renderer


def describe_outcome(outcome: PackageOutcome) -> str:
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


OLD = build_current_version("old")
NOW = build_current_version()
ELSE = build_tree_id("people's")


@pytest.mark.parametrize(
    ("remembered", "observed_package", "expected"),
    [
        pytest.param(None, ObservedPackage(), "draft clone", id="never-seen"),
        pytest.param(None, ObservedPackage(ELSE), "DownstreamExists", id="foreign-on-the-branch"),
        pytest.param(None, ObservedPackage(None, ELSE), "DownstreamExists", id="foreign-on-the-draft"),
        pytest.param(
            build_current_record(draft_version=NOW), ObservedPackage(None, OUTPUT.id), "drafted", id="drafted"
        ),
        pytest.param(
            build_current_record(published_version=NOW), ObservedPackage(OUTPUT.id), "published", id="published"
        ),
        pytest.param(
            build_current_record(published_version=OLD),
            ObservedPackage(OUTPUT.id),
            "published with edits",
            id="published-with-edits",
        ),
        pytest.param(
            build_current_record(published_version=NOW), ObservedPackage(ELSE), "draft edit", id="edited-and-overruled"
        ),
        pytest.param(
            build_current_record(published_version=NOW, draft_version=OLD),
            ObservedPackage(OUTPUT.id, build_tree_id("old")),
            "published, withdrawn",
            id="overtaken",
        ),
        pytest.param(
            build_current_record(published_version=NOW, draft_version=OLD),
            ObservedPackage(OUTPUT.id, ELSE),
            "published",
            id="overtaken-but-edited",
        ),
        pytest.param(
            build_current_record(published_version=NOW, draft_version=OLD),
            ObservedPackage(OUTPUT.id, build_tree_id("old"), is_frozen=True),
            "published",
            id="overtaken-but-frozen",
        ),
        pytest.param(
            build_current_record(published_version=NOW, draft_version=OLD),
            ObservedPackage(OUTPUT.id, build_tree_id("old"), is_stuck=True),
            "published",
            id="overtaken-but-stuck",
        ),
        pytest.param(
            build_current_record(published_version=OLD, declined_trees=(OUTPUT.id,)),
            ObservedPackage(build_tree_id("old")),
            "declined",
            id="declined",
        ),
        pytest.param(build_current_record(), ObservedPackage(OUTPUT.id), "adopted", id="adopted"),
        pytest.param(
            build_current_record(is_owned=False), ObservedPackage(OUTPUT.id), "DownstreamExists", id="not-its-own-yet"
        ),
        pytest.param(build_current_record(), ObservedPackage(), "draft clone", id="gone-from-the-branch"),
        pytest.param(
            build_stale_record(published_version=OLD),
            ObservedPackage(build_tree_id("old")),
            "draft edit",
            id="input-changed",
        ),
        pytest.param(
            build_stale_record(draft_version=OLD),
            ObservedPackage(None, build_tree_id("old")),
            "draft mutate",
            id="input-changed-while-open",
        ),
        pytest.param(
            build_stale_record(published_version=OLD), ObservedPackage(ELSE), "draft edit", id="edited-on-the-branch"
        ),
        pytest.param(
            build_stale_record(published_version=OLD, draft_version=OLD),
            ObservedPackage(build_tree_id("old"), ELSE),
            "draft mutate",
            id="edited-on-the-draft",
        ),
        pytest.param(build_stale_record(), ObservedPackage(None, ELSE), "draft mutate", id="a-draft-of-unknown-origin"),
        pytest.param(
            build_current_record(draft_version=OLD),
            ObservedPackage(None, OUTPUT.id),
            "drafted",
            id="drafted-by-people-as-it-would-be",
        ),
        pytest.param(
            build_stale_record(draft_version=OLD),
            ObservedPackage(None, build_tree_id("old"), is_frozen=True),
            "DownstreamProposed",
            id="proposed",
        ),
        pytest.param(
            build_stale_record(published_version=OLD),
            ObservedPackage(build_tree_id("old"), is_stuck=True),
            "DraftEdited",
            id="stuck",
        ),
        pytest.param(
            build_stale_record(published_version=NOW),
            ObservedPackage(OUTPUT.id),
            "published",
            id="input-changed-output-did-not",
        ),
        pytest.param(
            build_stale_record(published_version=replace(OLD, merged=build_tree_id("m"))),
            ObservedPackage(build_tree_id("old")),
            "draft edit",
            id="edits-on-this-upstream",
        ),
        pytest.param(
            build_stale_record(published_version=replace(OLD, base=build_files("up0").id, merged=build_tree_id("m"))),
            ObservedPackage(build_tree_id("old")),
            "draft upgrade",
            id="edits-on-another-upstream",
        ),
    ],
)
def test_decision_of_every_situation(
    remembered: PackageRecord | None, observed_package: ObservedPackage, expected: str
) -> None:
    outcome, _ = decide(remembered, observed_package)

    assert describe_outcome(outcome) == expected


@pytest.mark.parametrize(
    "remembered",
    [
        pytest.param(build_current_record(draft_version=NOW), id="drafted"),
        pytest.param(build_current_record(published_version=NOW, declined_trees=(OUTPUT.id,)), id="published"),
    ],
)
def test_nothing_is_rendered_while_dependencies_are_unchanged(remembered: PackageRecord) -> None:
    assert remembered
    observed_package = ObservedPackage(OUTPUT.id, OUTPUT.id)

    _, renderer = decide(replace(remembered, observed=observed_package), observed_package)

    assert renderer.made == []


@pytest.mark.parametrize(
    ("content", "ref", "task"),
    [
        pytest.param("up2", "gw/v2", "draft upgrade", id="a-new-version"),
        pytest.param("up2", "gw/v1", "draft upgrade", id="a-tag-that-moved"),
        pytest.param("up1", "gw/v2", "draft upgrade", id="a-version-of-equal-content"),
        pytest.param("up1", "gw/v1", "draft edit", id="the-same"),
    ],
)
def test_task_distinguishes_upgrade_and_edit(content: str, ref: str, task: str) -> None:
    outcome, _ = decide(
        build_stale_record(published_version=OLD),
        ObservedPackage(build_tree_id("old")),
        replace_upstream(GW, content, ref),
    )

    assert describe_outcome(outcome) == task


def test_new_upstream_commit_with_equal_content_keeps_the_lock() -> None:
    later = replace(GW, source=replace(build_upstream(), commit="later"))

    outcome, _ = decide(build_stale_record(published_version=OLD), ObservedPackage(build_tree_id("old")), later)

    assert outcome.variant.source.commit == "at-up1"


def test_new_upstream_repository_with_equal_content_changes_the_lock() -> None:
    moved = replace(GW, source=replace(build_upstream(), repo="https://git.example/new.git", commit="new"))

    outcome, _ = decide(build_stale_record(published_version=OLD), ObservedPackage(build_tree_id("old")), moved)

    assert (outcome.variant.source.commit, describe_outcome(outcome)) == ("new", "draft upgrade")


@pytest.mark.parametrize(
    ("deleted", "expected"),
    [
        pytest.param(True, "published", id="owner-gone"),
        pytest.param(False, "OwnershipConflict", id="owner-alive"),
    ],
)
def test_package_changes_its_owner_only_after_the_owner_is_deleted(deleted: bool, expected: str) -> None:
    outcome, _ = decide(
        build_current_record(owner=build_owner("former"), published_version=NOW),
        ObservedPackage(OUTPUT.id),
        is_owner_gone=deleted,
    )

    assert describe_outcome(outcome) == expected
    assert outcome.record
    assert outcome.record.owner == (build_owner() if deleted else build_owner("former"))


@pytest.mark.parametrize(
    ("locked", "expected"),
    [
        pytest.param("up1", "draft adopt", id="wanted-upstream"),
        pytest.param("up0", "draft adopt", id="another"),
        pytest.param(None, "MergeBaseMissing", id="an-upstream-that-is-gone"),
    ],
)
def test_adoption_uses_the_published_content_as_source(locked: str | None, expected: str) -> None:
    renderer = FakeRenderer(locks=locked)
    willing = DecisionInput(replace(GW, adoption="adoptExisting"), None, ObservedPackage(ELSE))

    outcome = decide_package(willing, ANSWERS, renderer, renderer.render)

    assert describe_outcome(outcome) == expected
    assert ELSE in renderer.sources
    bases = [render_inputs.published.base for render_inputs in renderer.made if render_inputs.published]
    assert bases == ([build_files(locked)] if locked else [])
    assert [render_inputs.previous_render for render_inputs in renderer.made] == [None for _ in bases]


def test_adoption_uses_the_draft_content_if_nothing_is_published() -> None:
    renderer = FakeRenderer(locks="up1")
    willing = DecisionInput(replace(GW, adoption="adoptExisting"), None, ObservedPackage(None, ELSE))

    outcome = decide_package(willing, ANSWERS, renderer, renderer.render)

    assert describe_outcome(outcome) == "draft adopt"
    assert ELSE in renderer.sources


def test_nested_packages_are_refused() -> None:
    outcome, _ = decide(None, ObservedPackage(), nested_packages=("gw/inner",))

    assert describe_outcome(outcome) == "DownstreamConflict"


def test_failed_render_is_repeated_only_after_a_dependency_changes() -> None:
    renderer = FakeRenderer(findings=(Finding("InjectionFailed", "no object for endpoints"),))

    blocked = decide_package(DecisionInput(GW, None, ObservedPackage()), ANSWERS, renderer, renderer.render)

    assert isinstance(blocked, Blocked)
    assert {condition.type: (condition.status, condition.reason) for condition in blocked.conditions} == {
        "Ready": ("False", "Error"), "Stalled": ("False", "Valid"),
    }  # fmt: skip
    remembered = {
        "kind": "blocked",
        "conditions": [condition.as_data() for condition in blocked.conditions],
        "findings": [serialize_finding(finding) for finding in blocked.findings],
    }
    package_record = build_current_record(
        outcome=remembered, trace=blocked.trace, observed=ObservedPackage(), desired_tree=None
    )
    silent, quiet = decide(package_record, ObservedPackage())
    assert (describe_outcome(silent), quiet.made) == ("InjectionFailed", [])
    changed, busy = decide(package_record, ObservedPackage(None, ELSE))
    assert (describe_outcome(changed), len(busy.made)) == ("draft update", 1)


@pytest.mark.parametrize(
    ("package_record", "observed_package", "places"),
    [
        pytest.param(build_record(), ObservedPackage(ELSE), (), id="adopted-is-not-edited"),
        pytest.param(build_record(published_version=OLD), ObservedPackage(build_tree_id("old")), (), id="untouched"),
        pytest.param(build_record(published_version=OLD), ObservedPackage(None), (), id="deleted-is-not-edited"),
        pytest.param(build_record(published_version=OLD), ObservedPackage(ELSE), ("the target branch",), id="branch"),
        pytest.param(
            build_record(draft_version=OLD),
            ObservedPackage(ELSE, build_tree_id("old")),
            ("the target branch",),
            id="beside-a-first-draft",
        ),
        pytest.param(build_record(draft_version=OLD), ObservedPackage(None, ELSE), ("its draft",), id="draft"),
        pytest.param(
            build_record(published_version=OLD, draft_version=OLD),
            ObservedPackage(ELSE, ELSE),
            ("the target branch", "its draft"),
            id="both",
        ),
    ],
)
def test_branches_with_local_changes(
    package_record: PackageRecord, observed_package: ObservedPackage, places: tuple[str, ...]
) -> None:
    assert list_edited_branches(package_record, observed_package) == places


@pytest.mark.parametrize("severity", list(Severity), ids=lambda value: str(value.value))
def test_findings_are_restored_from_state(severity: Severity) -> None:
    where = SourceLocation("Kptfile", 2, "Site/x", "spec", "berlin/gw", "PackageVariant/default/gw")
    finding = Finding("Code", "a message", where, severity)
    data: Mapping[str, str | int] = serialize_finding(finding)

    assert parse_finding(data) == finding


def test_draft_contains_the_files_that_it_replaces() -> None:
    outcome, renderer = decide(
        build_stale_record(published_version=OLD, draft_version=OLD),
        ObservedPackage(build_tree_id("old"), build_tree_id("old")),
    )

    assert isinstance(outcome, Draft)
    assert outcome.previous_files == build_files("old")
    assert renderer.sources[-1] == "old"


def test_draft_contains_the_tree_of_the_source_files() -> None:
    outcome, _ = decide(None, ObservedPackage())

    assert isinstance(outcome, Draft)
    assert (outcome.base_tree, outcome.merged_tree) == (UP1, UP1)


def test_too_large_package_blocks_only_itself() -> None:
    class OversizedSource(FakeRenderer):
        def read_source(self, upstream: UpstreamPackage) -> SourceContent:
            raise PackageTooLargeError("tree 1 must have at most 5 entries")

    renderer = OversizedSource()
    outcome = decide_package(DecisionInput(GW, None, ObservedPackage()), ANSWERS, renderer, renderer.render)

    assert isinstance(outcome, Blocked)
    assert [finding.code for finding in outcome.findings] == ["PackageTooLarge"]
    assert {condition.type: condition.reason for condition in outcome.conditions} == {
        "Stalled": "Valid",
        "Ready": "Error",
    }


def test_interrupted_function_is_retried() -> None:
    renderer = FakeRenderer(interrupted="/bin/x took longer than 5 seconds and was killed")
    outcome = decide_package(DecisionInput(GW, None, ObservedPackage()), ANSWERS, renderer, renderer.render)

    assert isinstance(outcome, Blocked)
    assert outcome.should_retry
    assert [(finding.code, finding.message) for finding in outcome.findings] == [
        (
            "FunctionInterrupted",
            f"package {GW.target} was not changed, because /bin/x took longer than 5 seconds and was killed. The daemon tries again in the next pass",
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
        pytest.param({PROGRAM: ""}, 0, id="unknown-identity"),
    ],
)
def test_changed_function_causes_a_render(today: dict[str, str], renders: int) -> None:
    renderer = FakeRenderer(functions=today)
    remembered = build_current_record(draft_version=NOW, trace={**GW.dependencies, PROGRAM: "1"})

    decide_package(DecisionInput(GW, remembered, ObservedPackage(None, OUTPUT.id)), ANSWERS, renderer, renderer.render)

    assert len(renderer.made) == renders
