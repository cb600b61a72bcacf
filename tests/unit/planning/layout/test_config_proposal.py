"""The proposal to the config: one row for each situation of a revision, its offer and its branch."""

from __future__ import annotations

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


def pin(written: str | int | None = "v1", named: str | int | None = "v2", **more: object) -> RevisionPin:
    whole = {
        "key": KEY, "file": "gw.yaml", "line": 1, "path": ("spec", "upstream"), "package": "catalog/gateway",
        "tag": "stable", "written_revision": written, "tagged_revision": named, "location": SourceLocation("gw.yaml", 3), **more,
    }  # fmt: skip
    return RevisionPin(**whole)  # type: ignore[arg-type]


ID = pin().id


def state(offers: Mapping[str, ProposedRevision] | None = None, head: str | None = "ours") -> ProposalState:
    return ProposalState(BRANCH, CommitId(head) if head else None, CommitId("base"), offers or {})


def offered(revision: str | int = "v2", stage: str = "offered") -> dict[str, ProposedRevision]:
    return {ID: ProposedRevision(revision, stage)}  # type: ignore[arg-type]


def ground(
    known: ProposalState | None = None, head: str | None = None, content: bytes = TEXT, **more: object
) -> ConfigBranchSnapshot:
    files = FileTree({"gw.yaml": File(content)})
    whole = {
        "branch": BRANCH, "config_commit": CommitId("config"), "proposal_head": CommitId(head) if head else None,
        "state": known or ProposalState(), "files": files, "is_complete": True,
        "read_base_blob": lambda path: files[path].id, "parse_file": parse_yaml, **more,
    }  # fmt: skip
    return ConfigBranchSnapshot(**whole)  # type: ignore[arg-type]


def told(config_proposal: ConfigProposal) -> tuple[str, dict[str, str]]:
    return config_proposal.action, {
        name: f"{offer.stage} {offer.revision}" for name, offer in config_proposal.state.revisions.items()
    }


@pytest.mark.parametrize(
    ("revision_pin", "around", "layout", "stage"),
    [
        pytest.param(pin(), ground(), "write", "offered v2", id="a-move-is-proposed"),
        pytest.param(pin("v2", is_same_package=True), ground(), "keep", None, id="what-holds-needs-nothing"),
        pytest.param(pin("2.0", is_same_package=True), ground(), "keep", None, id="nor-does-another-name-of-the-same-package"),
        pytest.param(pin(), ground(state(offered()), "ours"), "keep", "offered v2", id="a-standing-offer-stays"),
        pytest.param(
            pin(named="v3"), ground(state(offered()), "ours"), "write", "offered v3", id="the-tag-moves-on"
        ),
        pytest.param(
            pin("v2", is_same_package=True), ground(state(offered()), "ours"), "end", "taken v2", id="merged-so-the-branch-ends"
        ),
        pytest.param(
            pin("v2", is_same_package=True), ground(state(offered())), "keep", "taken v2", id="merged-and-its-branch-went"
        ),
        pytest.param(
            pin(2, 2, is_same_package=True), ground(state(offered())), "keep", "taken v2", id="merged-in-another-spelling"
        ),
        pytest.param(pin(), ground(state(offered())), "keep", "declined v2", id="a-deleted-branch-declines"),
        pytest.param(
            pin(), ground(state(offered(stage="taken"), None)), "keep", "declined v2", id="a-reverted-merge-declines"
        ),
        pytest.param(
            pin("v0"), ground(state(offered(stage="declined"), None)), "keep", "declined v2", id="it-stays-declined"
        ),
        pytest.param(
            pin(named="v3"), ground(state(offered(stage="declined"), None)), "write", "offered v3",
            id="until-the-tag-moves-on",
        ),
        pytest.param(
            pin("v1", "v1", is_same_package=True), ground(state(offered()), "ours"), "end", None, id="a-tag-that-returned"
        ),
        pytest.param(
            pin("v1", is_same_package=True), ground(state(offered()), "ours"), "end", None, id="retagged-to-the-same-package"
        ),
        pytest.param(
            pin(named=None), ground(state(offered()), "ours"), "keep", "offered v2", id="nobody-can-say-now"
        ),
        pytest.param(pin(named=None), ground(), "keep", None, id="nobody-could-ever-say"),
        pytest.param(
            pin(named=None, settling=SettlingReference(9, "soon")), ground(state(offered()), "ours"), "keep", "offered v2",
            id="a-move-that-settles-leaves-the-offer",
        ),
        pytest.param(
            pin(named=None), ground(state(offered())), "keep", "declined v2", id="declined-while-nobody-can-say"
        ),
        pytest.param(
            pin(), ground(state(offered()), "ours", read_base_blob=lambda path: BlobId("old")), "write", "offered v2",
            id="the-file-changed-below-the-proposal",
        ),
        pytest.param(
            pin(), ground(state(offered()), "ours", read_base_blob=lambda path: None), "write", "offered v2",
            id="the-config-was-rewritten-below-the-proposal",
        ),
        pytest.param(
            pin(named="v3"), ground(state(offered()), "theirs"), "keep", "offered v2", id="people-work-on-the-branch"
        ),
        pytest.param(pin(), ground(None, "theirs"), "keep", None, id="a-branch-that-nobody-remembers"),
        pytest.param(
            pin(), ground(replace(state(offered()), branch="drafts/other")), "write", "offered v2",
            id="another-name-for-the-branch-declines-nothing",
        ),
    ],
)  # fmt: skip
def test_what_becomes_of_an_offer(
    revision_pin: RevisionPin, around: ConfigBranchSnapshot, layout: str, stage: str | None
) -> None:
    assert told(plan_proposal([revision_pin], around)) == (layout, {ID: stage} if stage else {})


def test_an_object_that_is_gone_takes_its_offer_along() -> None:
    assert told(plan_proposal([], ground(state(offered()), "ours"))) == ("end", {})


def test_an_object_whose_file_cannot_be_read_is_not_gone() -> None:
    around = ground(state(offered()), "ours", is_complete=False)

    assert told(plan_proposal([], around)) == ("keep", {ID: "offered v2"})


def test_a_branch_that_went_is_forgotten() -> None:
    assert plan_proposal([pin()], ground(state(offered()))).state.proposal_head is None


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
def test_only_the_revision_changes(before: bytes, after: bytes, written: str | int | None, named: str | int) -> None:
    proposal = plan_proposal([pin(written, named, line=parse_yaml(before).documents[0].line)], ground(content=before))

    assert proposal.files_after["gw.yaml"].data.decode() == after.decode()


def test_two_objects_of_one_file_and_an_upstream_in_a_list() -> None:
    content = TEXT + b"---\nspec:\n  upstreams:\n    - {tag: x}\n    - {revision: v7, tag: stable}\n"
    lines = [document.line for document in parse_yaml(content).documents]
    other = pin("v7", "v8", line=lines[1], path=("spec", "upstreams", 1), key=KEY._replace(kind="PackageVariantSet"))
    proposal = plan_proposal([pin(), other], ground(content=content))

    assert proposal.files_after["gw.yaml"].data == content.replace(b"v1", b"v2").replace(b"v7", b"v8")
    assert other.id == "PackageVariantSet/default/gw spec.upstreams.1"


@pytest.mark.parametrize(
    ("revision_pin", "around", "codes"),
    [
        pytest.param(pin(), ground(), ["RevisionProposed"], id="proposed"),
        pytest.param(pin(), ground(state(offered())), ["RevisionDeclined"], id="declined"),
        pytest.param(pin(), ground(None, "theirs"), ["ProposalEdited"], id="edited"),
        pytest.param(
            pin("v2", is_same_package=True), ground(None, "theirs"), [], id="nothing-to-propose-on-peoples-branch"
        ),
    ],
)
def test_what_is_told(revision_pin: RevisionPin, around: ConfigBranchSnapshot, codes: list[str]) -> None:
    assert [finding.code for finding in plan_proposal([revision_pin], around).findings] == codes


@pytest.mark.parametrize(
    ("revision_pin", "message"),
    [
        pytest.param(pin(), "tag stable of catalog/gateway names v2; spec.upstream.revision is v1; ", id="moved"),
        pytest.param(
            pin("v3", is_downgrade=True),
            "tag stable of catalog/gateway names v2, which is older; spec.upstream.revision is v3; ",
            id="moved-back",
        ),
        pytest.param(
            pin(None), "tag stable of catalog/gateway names v2, and spec.upstream.revision is missing; ", id="missing"
        ),
        pytest.param(pin(1, 2), "tag stable of catalog/gateway names v2; spec.upstream.revision is v1; ", id="numbers"),
    ],
)
def test_the_words_of_a_move(revision_pin: RevisionPin, message: str) -> None:
    content = TEXT if revision_pin.written_revision else TEXT.replace(b"revision: v1, ", b"")
    (finding,) = plan_proposal([revision_pin], ground(content=content)).findings

    assert finding.message == message + f"the change is proposed on branch {BRANCH}"


def test_a_folder_is_only_told() -> None:
    proposal = plan_manual_proposal(
        [pin(), pin("v2", is_same_package=True), pin(named=None)], ground().files, parse_yaml
    )

    assert [finding.code for finding in proposal.findings] == ["ProposalNotPossible"]
    assert (proposal.branch, proposal.action, proposal.state) == ("", "write", ProposalState())
    assert proposal.files_after["gw.yaml"].data == TEXT.replace(b"v1", b"v2")


def test_the_state_is_read_as_it_was_written() -> None:
    known = state({**offered(3), "another": ProposedRevision("v1", "declined")})

    assert parse_proposal_state(serialize_proposal_state(known)) == known


@pytest.mark.parametrize(
    ("files", "error"),
    [
        pytest.param({"config.json": b'{"format": 99}'}, EngineTooOldError, id="newer"),
        pytest.param({"config.json": b"{"}, StateUnreadableError, id="torn"),
        pytest.param({}, StateUnreadableError, id="missing"),
        pytest.param({"config.json": b'{"format": 1, "offers": []}'}, StateUnreadableError, id="not-ours"),
    ],
)
def test_a_state_that_is_not_ours_is_left_alone(files: dict[str, bytes], error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_proposal_state(files)
