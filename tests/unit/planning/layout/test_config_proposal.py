"""Tests of the config proposal, one row for each combination of revision, recorded revision and branch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconciler.catalog.files import BlobId, CommitId, File, FileTree
from reconciler.controllers.results import RevisionPin, SettlingReference
from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import parse_yaml
from reconciler.planning.layout.config_proposal import (
    ConfigBranchSnapshot,
    ConfigProposal,
    ProposalState,
    ProposedRevision,
    parse_proposal_state,
    plan_manual_proposal,
    plan_proposal,
    serialize_proposal_state,
)
from reconciler.planning.model.state import EngineTooOldError, StateUnreadableError

KEY = ObjectKey("config.porch.kpt.dev", "PackageVariant", "default", "gw")
TEXT = b"kind: PackageVariant\nspec:\n  upstream: {revision: v1, tag: stable} # gateway\n"
BRANCH = "drafts/config"
OURS = CommitId("ours")


def build_pin(written: str | int | None = "v1", named: str | int | None = "v2", **more: object) -> RevisionPin:
    whole = {
        "key": KEY, "file": "gw.yaml", "line": 1, "path": ("spec", "upstream"), "package": "catalog/gateway",
        "tag": "stable", "written_revision": written, "tagged_revision": named, "location": SourceLocation("gw.yaml", 3), **more,
    }  # fmt: skip
    return RevisionPin(**whole)  # type: ignore[arg-type]


ID = build_pin().id


def build_state(offers: Mapping[str, ProposedRevision] | None = None, head: str | None = "ours") -> ProposalState:
    return ProposalState(BRANCH, CommitId(head) if head else None, CommitId("base"), offers or {})


def build_recorded_revision(revision: str | int = "v2", stage: str = "offered") -> dict[str, ProposedRevision]:
    return {ID: ProposedRevision(revision, stage)}  # type: ignore[arg-type]


def build_snapshot(
    known: ProposalState | None = None, head: str | None = None, content: bytes = TEXT, **more: object
) -> ConfigBranchSnapshot:
    files = FileTree({"gw.yaml": File(content)})
    whole = {
        "branch": BRANCH, "config_commit": CommitId("config"), "proposal_head": CommitId(head) if head else None,
        "state": known or ProposalState(), "files": files, "is_complete": True,
        "read_base_blob": lambda path: files[path].id, "parse_file": parse_yaml, **more,
    }  # fmt: skip
    return ConfigBranchSnapshot(**whole)  # type: ignore[arg-type]


def describe_proposal(config_proposal: ConfigProposal) -> tuple[str, dict[str, str]]:
    return config_proposal.action, {
        name: f"{offer.stage} {offer.revision}" for name, offer in config_proposal.state.revisions.items()
    }


@pytest.mark.parametrize(
    ("revision_pin", "around", "layout", "stage"),
    [
        pytest.param(build_pin(), build_snapshot(), "write", "offered v2", id="a-move-is-proposed"),
        pytest.param(build_pin("v2", is_same_package=True), build_snapshot(), "keep", None, id="what-holds-needs-nothing"),
        pytest.param(build_pin("2.0", is_same_package=True), build_snapshot(), "keep", None, id="nor-does-another-name-of-the-same-package"),
        pytest.param(build_pin(), build_snapshot(build_state(build_recorded_revision()), "ours"), "keep", "offered v2", id="a-standing-offer-stays"),
        pytest.param(
            build_pin(named="v3"), build_snapshot(build_state(build_recorded_revision()), "ours"), "write", "offered v3", id="the-tag-moves-on"
        ),
        pytest.param(
            build_pin("v2", is_same_package=True), build_snapshot(build_state(build_recorded_revision()), "ours"), "end", "taken v2", id="merged-so-the-branch-ends"
        ),
        pytest.param(
            build_pin("v2", is_same_package=True), build_snapshot(build_state(build_recorded_revision())), "keep", "taken v2", id="merged-and-its-branch-went"
        ),
        pytest.param(
            build_pin(2, 2, is_same_package=True), build_snapshot(build_state(build_recorded_revision())), "keep", "taken v2", id="merged-in-another-spelling"
        ),
        pytest.param(build_pin(), build_snapshot(build_state(build_recorded_revision())), "keep", "declined v2", id="a-deleted-branch-declines"),
        pytest.param(
            build_pin(), build_snapshot(build_state(build_recorded_revision(stage="taken"), None)), "keep", "declined v2", id="a-reverted-merge-declines"
        ),
        pytest.param(
            build_pin("v0"), build_snapshot(build_state(build_recorded_revision(stage="declined"), None)), "keep", "declined v2", id="it-stays-declined"
        ),
        pytest.param(
            build_pin(named="v3"), build_snapshot(build_state(build_recorded_revision(stage="declined"), None)), "write", "offered v3",
            id="until-the-tag-moves-on",
        ),
        pytest.param(
            build_pin("v1", "v1", is_same_package=True), build_snapshot(build_state(build_recorded_revision()), "ours"), "end", None, id="a-tag-that-returned"
        ),
        pytest.param(
            build_pin("v1", is_same_package=True), build_snapshot(build_state(build_recorded_revision()), "ours"), "end", None, id="retagged-to-the-same-package"
        ),
        pytest.param(
            build_pin(named=None), build_snapshot(build_state(build_recorded_revision()), "ours"), "keep", "offered v2", id="revision-unknown-now"
        ),
        pytest.param(build_pin(named=None), build_snapshot(), "keep", None, id="revision-never-known"),
        pytest.param(
            build_pin(named=None, settling=SettlingReference(9, "soon")), build_snapshot(build_state(build_recorded_revision()), "ours"), "keep", "offered v2",
            id="a-move-that-settles-leaves-the-offer",
        ),
        pytest.param(
            build_pin(named=None), build_snapshot(build_state(build_recorded_revision())), "keep", "declined v2", id="declined-while-revision-unknown"
        ),
        pytest.param(
            build_pin(), build_snapshot(build_state(build_recorded_revision()), "ours", read_base_blob=lambda path: BlobId("old")), "write", "offered v2",
            id="the-file-changed-below-the-proposal",
        ),
        pytest.param(
            build_pin(), build_snapshot(build_state(build_recorded_revision()), "ours", read_base_blob=lambda path: None), "write", "offered v2",
            id="the-config-was-rewritten-below-the-proposal",
        ),
        pytest.param(
            build_pin(named="v3"), build_snapshot(build_state(build_recorded_revision()), "theirs"), "keep", "offered v2", id="people-work-on-the-branch"
        ),
        pytest.param(build_pin(), build_snapshot(None, "theirs"), "keep", None, id="unrecorded-branch"),
        pytest.param(
            build_pin(), build_snapshot(replace(build_state(build_recorded_revision()), branch="drafts/other")), "write", "offered v2",
            id="another-name-for-the-branch-declines-nothing",
        ),
    ],
)  # fmt: skip
def test_action_and_stage_of_a_proposal(
    revision_pin: RevisionPin, around: ConfigBranchSnapshot, layout: str, stage: str | None
) -> None:
    assert describe_proposal(plan_proposal([revision_pin], around)) == (layout, {ID: stage} if stage else {})


def test_revision_of_a_deleted_object_is_removed() -> None:
    assert describe_proposal(plan_proposal([], build_snapshot(build_state(build_recorded_revision()), "ours"))) == (
        "end",
        {},
    )


def test_revision_of_an_object_in_an_unreadable_file_stays() -> None:
    around = build_snapshot(build_state(build_recorded_revision()), "ours", is_complete=False)

    assert describe_proposal(plan_proposal([], around)) == ("keep", {ID: "offered v2"})


def test_deleted_branch_is_removed_from_the_state() -> None:
    assert (
        plan_proposal([build_pin()], build_snapshot(build_state(build_recorded_revision()))).state.proposal_head is None
    )


@pytest.mark.parametrize(
    ("before", "after", "written", "named"),
    [
        pytest.param(TEXT, TEXT.replace(b"v1", b"v2"), "v1", "v2", id="one-line"),
        pytest.param(
            b"# top\r\nspec:\r\n  upstream:\r\n    revision: 'v1' # why\r\n    tag: stable\r\n",
            b"# top\r\nspec:\r\n  upstream:\r\n    revision: 'v2' # why\r\n    tag: stable\r\n",
            "v1", "v2", id="quotes-comments-and-line-ends-stay",
        ),
        pytest.param(
            b"spec:\n  upstream: {revision: 1, tag: stable}\n", b"spec:\n  upstream: {revision: 2, tag: stable}\n",
            1, 2, id="numbers-stay-numbers",
        ),
        pytest.param(
            b"spec:\n  upstream:\n    revision: v1\n    tag: stable\n",
            b'spec:\n  upstream:\n    revision: "1.4"\n    tag: stable\n',
            "v1", "1.4", id="what-would-read-as-a-number-is-quoted",
        ),
        pytest.param(
            b"spec:\n  upstream:\n    repo: c # catalog\n    tag: stable # looked at\n    tagMode: rewrite\n",
            b"spec:\n  upstream:\n    repo: c # catalog\n    revision: v2\n    tag: stable # looked at\n"
            b"    tagMode: rewrite\n",
            None, "v2", id="a-first-revision-stands-before-its-tag",
        ),
        pytest.param(
            b'{"spec": {"upstream": {"revision": "v1", "tag": "stable"}}}\n',
            b'{"spec": {"upstream": {"revision": "v2", "tag": "stable"}}}\n',
            "v1", "v2", id="json",
        ),
    ],
)  # fmt: skip
def test_only_the_revision_is_changed(before: bytes, after: bytes, written: str | int | None, named: str | int) -> None:
    proposal = plan_proposal(
        [build_pin(written, named, line=parse_yaml(before).documents[0].line)], build_snapshot(content=before)
    )

    assert proposal.files_after["gw.yaml"].data.decode() == after.decode()


def test_two_objects_in_one_file_and_an_upstream_in_a_list() -> None:
    content = TEXT + b"---\nspec:\n  upstreams:\n    - {tag: x}\n    - {revision: v7, tag: stable}\n"
    lines = [document.line for document in parse_yaml(content).documents]
    other = build_pin(
        "v7", "v8", line=lines[1], path=("spec", "upstreams", 1), key=KEY._replace(kind="PackageVariantSet")
    )
    proposal = plan_proposal([build_pin(), other], build_snapshot(content=content))

    assert proposal.files_after["gw.yaml"].data == content.replace(b"v1", b"v2").replace(b"v7", b"v8")
    assert other.id == "PackageVariantSet/default/gw spec.upstreams.1"


@pytest.mark.parametrize(
    ("revision_pin", "around", "codes"),
    [
        pytest.param(build_pin(), build_snapshot(), ["RevisionProposed"], id="proposed"),
        pytest.param(
            build_pin(), build_snapshot(build_state(build_recorded_revision())), ["RevisionDeclined"], id="declined"
        ),
        pytest.param(build_pin(), build_snapshot(None, "theirs"), ["ProposalEdited"], id="edited"),
        pytest.param(
            build_pin("v2", is_same_package=True),
            build_snapshot(None, "theirs"),
            [],
            id="nothing-to-propose-on-peoples-branch",
        ),
    ],
)
def test_findings_of_a_proposal(revision_pin: RevisionPin, around: ConfigBranchSnapshot, codes: list[str]) -> None:
    assert [finding.code for finding in plan_proposal([revision_pin], around).findings] == codes


@pytest.mark.parametrize(
    ("revision_pin", "message"),
    [
        pytest.param(
            build_pin(), 'tag "stable" of catalog/gateway selects v2, but spec.upstream.revision is v1. ', id="moved"
        ),
        pytest.param(
            build_pin("v3", is_downgrade=True),
            'tag "stable" of catalog/gateway selects the older v2, but spec.upstream.revision is v3. ',
            id="moved-back",
        ),
        pytest.param(
            build_pin(None),
            'tag "stable" of catalog/gateway selects v2, but spec.upstream.revision is missing. ',
            id="missing",
        ),
        pytest.param(
            build_pin(1, 2),
            'tag "stable" of catalog/gateway selects v2, but spec.upstream.revision is v1. ',
            id="numbers",
        ),
    ],
)
def test_message_of_a_moved_tag(revision_pin: RevisionPin, message: str) -> None:
    content = TEXT if revision_pin.written_revision else TEXT.replace(b"revision: v1, ", b"")
    (finding,) = plan_proposal([revision_pin], build_snapshot(content=content)).findings

    assert finding.message == message + f'The change is proposed on branch "{BRANCH}"'


def test_plain_folder_has_only_a_finding() -> None:
    proposal = plan_manual_proposal(
        [build_pin(), build_pin("v2", is_same_package=True), build_pin(named=None)], build_snapshot().files, parse_yaml
    )

    assert [finding.code for finding in proposal.findings] == ["ProposalNotPossible"]
    assert (proposal.branch, proposal.action, proposal.state) == ("", "write", ProposalState())
    assert proposal.files_after["gw.yaml"].data == TEXT.replace(b"v1", b"v2")


def test_plain_folder_requires_the_quoted_version() -> None:
    text = b"kind: PackageVariant\nspec:\n  upstream: {version: ~1.0, chart: web}\n"
    pin = build_pin("~1.0", "1.10", tag="", range="~1.0", field_name="version", package="charts/web")
    proposal = plan_manual_proposal([pin], build_snapshot(content=text).files, parse_yaml)

    (finding,) = proposal.findings
    assert finding.message.startswith(
        'version range "~1.0" of charts/web selects 1.10, but spec.upstream.version is ~1.0. '
    )
    assert finding.message.endswith('Next step: set `version: "1.10"`')
    assert proposal.files_after["gw.yaml"].data == text.replace(b"~1.0", b'"1.10"')


def test_state_is_restored() -> None:
    known = build_state({**build_recorded_revision(3), "another": ProposedRevision("v1", "declined")})

    assert parse_proposal_state(serialize_proposal_state(known)) == known


@pytest.mark.parametrize(
    ("files", "error"),
    [
        pytest.param({"config.json": b'{"format": 99}'}, EngineTooOldError, id="newer"),
        pytest.param({"config.json": b"{"}, StateUnreadableError, id="torn"),
        pytest.param({}, StateUnreadableError, id="missing"),
        pytest.param({"config.json": b'{"format": 2, "revisions": []}'}, StateUnreadableError, id="not-ours"),
    ],
)
def test_invalid_state_is_refused(files: dict[str, bytes], error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_proposal_state(files)


def test_state_of_format_1_is_read() -> None:
    known = build_state(build_recorded_revision())
    (content,) = serialize_proposal_state(known).values()
    data = json.loads(content)
    revisions = data.pop("revisions")
    earlier = {**data, "format": 1, "offers": revisions}

    assert parse_proposal_state({"config.json": json.dumps(earlier).encode()}) == known
