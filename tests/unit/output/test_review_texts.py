"""Tests of review texts: open drafts, results of actions, and commit messages, also for hostile files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.files import FILE_MODE, CommitId, ObjectId
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.objects import Condition
from reconciler.output.commit_messages import (
    format_publish_message,
    format_reject_message,
    format_withdraw_message,
    parse_causes,
    parse_reason,
)
from reconciler.output.review.action_results import ReviewActionResult, build_review_result, format_review_text
from reconciler.output.review.formats import format_draft_list_text, format_draft_markdown, format_draft_text
from reconciler.output.review.models import Rejection
from reconciler.output.review.open_drafts import (
    DraftDetails,
    DraftPackageDetails,
    build_draft_entry,
    build_draft_list_result,
)
from reconciler.output.review.pull_request import build_pull_request_text
from reconciler.output.status.package_sections import format_recorded_owner, format_task
from reconciler.planning.lifecycle.open_drafts import BlockingReason, DraftedFile, DraftedPackage, OpenDraft
from reconciler.planning.model.state import PackageRecord
from tests.unit.output.builders import TREE, build_owner, build_target, build_tree, format_deployment, read_json

UPSTREAM = {
    "from": {"ref": "gateway/v1", "directory": "gateway"},
    "to": {"repo": "./catalog.git", "ref": "gateway/v2", "directory": "gateway", "commit": "9f2c"},
}
STATUS: dict[str, Any] = {
    "owner": {"kind": "PackageVariant", "namespace": "default", "name": "edge-gw"},
    "task": "upgrade",
    "upstream": UPSTREAM,
    "inputs": {"config": "41ab" * 10, "digest": "sha256:1"},
    "conflicts": [
        {
            "kind": "field", "file": "d.yaml", "resource": "Deployment web", "pointer": "/spec/replicas",
            "base": 1, "local": 2, "upstream": 3, "chosen": "upstream", "rule": "conflictPolicy",
        }
    ],
}  # fmt: skip
GATE = BlockingReason("GateNotMet", "gw: tested is not reported")
GW = DraftedPackage(
    "gw", PackageRecord(build_owner()), TREE, TREE, STATUS, (Condition("Rendered", "True", "RenderSuccess"),), (GATE,),
    is_edited=True,
)  # fmt: skip
HEAD, BASE = CommitId("d1" * 20), CommitId("b0" * 20)


def build_draft(*packages: DraftedPackage, **fields: Any) -> OpenDraft:
    paths = fields.pop("paths", (DraftedFile("gw/d.yaml", ObjectId("f"), FILE_MODE, True),))
    open_draft = OpenDraft(build_target(), "drafts/eu-1", HEAD, BASE, BASE, None, False, packages or (GW,), paths)
    return replace(open_draft, **fields)


def build_details(open_draft: OpenDraft | None = None, **fields: Any) -> DraftDetails:
    return replace(DraftDetails(open_draft or build_draft(), 1_000, 0), **fields)


def format_list(*details: DraftDetails, now: int = 10_000, errors: tuple[Finding, ...] = ()) -> str:
    return format_draft_list_text(build_draft_list_result(details, "c0ffee", errors), now)


def format_text(details: DraftDetails, max_diff_lines: int = 50) -> str:
    return format_draft_text(build_draft_entry(details, max_diff_lines), 10_000)


def read_draft(details: DraftDetails, max_diff_lines: int = 50) -> dict[str, Any]:
    """Return the parsed JSON output for a draft."""
    (data,) = read_json(build_draft_list_result([details], "c0ffee", (), max_diff_lines))["items"]
    draft: dict[str, Any] = data
    return draft


CHANGED = DraftPackageDetails(
    GW,
    build_tree({"d.yaml": format_deployment(3)}),
    build_tree({"d.yaml": format_deployment(5)}),
    ("a region changed",),
)


def test_list_of_drafts_shows_states_and_refusals() -> None:
    people = build_details(build_draft(is_edited=True, proposed_head=HEAD), behind_count=2, editors=("Ada", "Grace"))

    rejected = build_details(rejection=Rejection(by="Ada", reason="too early"))

    assert format_list(people, rejected, now=1_000 + 3 * 86_400).splitlines() == [
        "eu-1: drafts/eu-1 Proposed; base 3 days old, 2 commits behind; edited by Ada, Grace",
        "  gw update v1 → v2 (PackageVariant default/edge-gw) edited",
        "    conflict: d.yaml: Deployment web: spec.replicas: upstream 3 replaces local 2",
        "    blocks publication: GateNotMet: gw: tested is not reported",
        "eu-1: drafts/eu-1 Draft; base 3 days old; rejected by Ada: too early",
        "  gw update v1 → v2 (PackageVariant default/edge-gw) edited",
        "    conflict: d.yaml: Deployment web: spec.replicas: upstream 3 replaces local 2",
        "    blocks publication: GateNotMet: gw: tested is not reported",
        "2 open drafts, 1 proposed",
    ]


@pytest.mark.parametrize(
    ("draft_details", "line"),
    [
        pytest.param(build_details(build_draft(proposed_head=BASE)), "Draft (changed after it was proposed); base", id="stale"),
        pytest.param(build_details(base_seconds=None), "Draft; nothing published yet", id="a-new-cluster"),
        pytest.param(build_details(base_seconds=9_970), "base less than a minute old", id="seconds"),
        pytest.param(build_details(base_seconds=9_940), "base 1 minute old", id="a-minute"),
        pytest.param(build_details(base_seconds=2_800), "base 2 hours old", id="hours"),
        pytest.param(build_details(build_draft(is_edited=True)), "; edited", id="edited-by-unknown-author"),
        pytest.param(build_details(build_draft(replace(GW, drafted_tree=None, status={}))), "gw removed", id="a-removal"),
        pytest.param(
            build_details(build_draft(paths=(DraftedFile("gw/d.yaml", None, "", False),))), "BranchMoved: both \"drafts/eu-1", id="a-clash"
        ),
        pytest.param(
            build_details(build_draft(paths=(DraftedFile("README.md", None, "", True),))), "files outside of packages: README.md", id="beside"
        ),
        pytest.param(
            build_details(build_draft(target=replace(build_target(), is_deployment=False))), "warning: GateNotMet", id="a-warning"
        ),
    ],
)  # fmt: skip
def test_summary_line_of_a_draft(draft_details: DraftDetails, line: str) -> None:
    assert line in format_list(draft_details)


def test_empty_list_has_a_message() -> None:
    assert format_list() == "no draft is open"


def test_unreadable_targets_are_errors_in_the_list() -> None:
    finding = Finding(
        "TargetUnreadable", "Repository eu-1: no access", SourceLocation(object="Repository/default/eu-1")
    )
    result = build_draft_list_result([], "c0ffee", [finding])

    assert format_list(errors=(finding,)).splitlines() == [
        "error: Repository eu-1: no access",
        "the drafts of 1 target are unknown",
    ]
    assert read_json(result)["summary"] == {"drafts": 0, "proposed": 0, "unreadableTargets": 1}
    assert [entry["code"] for entry in read_json(result)["findings"]] == ["TargetUnreadable"]


def test_data_of_a_draft_contains_the_fields_of_the_text() -> None:
    data = read_draft(build_details(build_draft(is_edited=True, proposed_head=BASE), editors=("Ada",), behind_count=1))

    assert data["lifecycle"] == "Draft"
    assert data["staleProposal"] == BASE
    assert data["base"] == {"commit": BASE, "date": "1970-01-01T00:16:40Z", "behind": 1}
    assert data["refusals"] == [{"reason": "GateNotMet", "message": "gw: tested is not reported"}]
    (package,) = data["packages"]
    assert (package["action"], package["owner"]) == ("update v1 → v2", STATUS["owner"])
    assert "content" not in package
    assert package["upstream"] == {"from": "gateway/v1", "to": "gateway/v2"}
    assert package["conflicts"] == STATUS["conflicts"]
    assert package["unmetGates"] == data["refusals"]


def test_draft_text_shows_conflicts_first_and_commands_to_reproduce() -> None:
    lines = format_text(build_details(packages=(CHANGED,)), 50).splitlines()

    assert lines[3:11] == [
        "  conflict: d.yaml: Deployment web: spec.replicas: upstream 3 replaces local 2",
        "  blocks publication: GateNotMet: gw: tested is not reported",
        "  condition Rendered is True: RenderSuccess",
        "  Deployment web: replicas 3 → 5",
        "  why: a region changed",
        "  reproduce: git diff b0b0b0b0b0b0 d1d1d1d1d1d1 -- gw",
        "  reproduce: reconciler render CONFIG --output OUT, with CONFIG at commit 41ab41ab41ab, writes OUT/eu-1/gw",
        "--- a/gw/d.yaml",
    ]
    assert "+++" not in format_text(build_details(packages=(CHANGED,)), 0)
    content = read_draft(build_details(packages=(CHANGED,)))["packages"][0]["content"]
    assert content["causes"] == ["a region changed"]
    assert content["diffs"][0]["path"] == "d.yaml"
    assert content["commands"][0] == "git diff b0b0b0b0b0b0 d1d1d1d1d1d1 -- gw"


def test_changes_of_policies_are_listed_between_changes_and_causes() -> None:
    step = {"by": "ClusterOverridePolicy/edge", "before": 3, "after": 5}
    record = {"resource": "Deployment/web", "pointer": "/spec/replicas", "steps": [step]}
    package = replace(GW, status={**STATUS, "overrides": [record, {"resource": 1}]})
    details = build_details(build_draft(package), packages=(replace(CHANGED, package=package),))
    lines = format_text(details, 50).splitlines()

    at = lines.index("  overridden: Deployment web: spec.replicas: 3 → 5 by ClusterOverridePolicy edge")
    assert lines[at - 1 : at + 2 : 2] == ["  Deployment web: replicas 3 → 5", "  why: a region changed"]
    assert read_draft(details)["packages"][0]["content"]["overrides"] == [record]


def test_restarts_are_listed_after_conflicts_and_before_the_rest() -> None:
    child = {
        "resource": "KafkaNodePool/shop/brokers", "parent": "Kafka/shop/orders", "mode": "materialise",
        "properties": [{"name": "pod", "source": "pool", "shadowed": ["priorityClassName"]}],
        "toRepeat": "spec: {}\n",
    }  # fmt: skip
    package = replace(GW, status={**STATUS, "templates": [child]})
    draft_details = build_details(
        build_draft(package), packages=(replace(CHANGED, package=package, templates=("brokers restarts its pods",)),)
    )
    text = "KafkaNodePool shop/brokers (parent Kafka shop/orders, template is written): pod from pool hides priorityClassName"
    lines = format_text(draft_details, 0).splitlines()

    assert lines[3].startswith("  conflict: ")
    assert lines[4] == "  templates: brokers restarts its pods"
    assert f"  child: {text}" in lines
    assert lines[-2:] == [
        "  # KafkaNodePool shop/brokers: template that repeats the inherited settings",
        "    spec: {}",
    ]
    assert "<summary>Templates that repeat the inherited settings</summary>" in format_draft_markdown(
        build_draft_entry(draft_details), 10_000
    )
    content = read_draft(draft_details, 0)["packages"][0]["content"]
    assert (content["templateEffects"], content["templates"]) == (["brokers restarts its pods"], [child])


def test_markdown_escapes_text_from_files() -> None:
    package = replace(GW, status={**STATUS, "owner": {"kind": "`<b>` # x\n- y"}})
    details = build_details(build_draft(package), packages=(replace(CHANGED, package=package),))

    text = format_draft_markdown(build_draft_entry(details, 50), 10_000)

    assert "## ``gw update v1 → v2 (`<b>` # x⏎- y) edited``" in text.splitlines()
    assert "<details><summary>Diff</summary>" in text


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"owner": 1, "task": [], "upstream": "x", "inputs": [], "conflicts": {}}, id="other-types"),
        pytest.param({"owner": {"kind": {}}, "upstream": {"to": {"ref": 1}}, "conflicts": [1, {}]}, id="inside"),
        pytest.param({"conflicts": [{"kind": "field", "chosen": [], "rule": "x"}]}, id="a-conflict-of-no-choice"),
        pytest.param({}, id="empty"),
    ],
)
def test_invalid_status_file_is_ignored(status: dict[str, Any]) -> None:
    draft_package_details = replace(CHANGED, package=replace(GW, status=status))
    broken = build_details(build_draft(draft_package_details.package), packages=(draft_package_details,))

    assert "conflict:" not in format_text(broken, 50)
    assert read_draft(broken)["packages"][0]["package"] == "gw"
    assert (format_recorded_owner(status), format_task(status)) == ("", "")
    assert format_publish_message(broken.draft, broken.draft.packages, "", "cli").startswith(
        "publish gw: local changes\n"
    )


def test_publish_message_contains_package_approver_and_source() -> None:
    open_draft = build_draft()

    text = "fine\n by me\nReconciler-Package: other\n"
    assert format_publish_message(open_draft, open_draft.packages, text, "cli", ("Ada", "ada@example.com")) == (
        "publish gw: update v1 → v2\n\n"
        "fine\nby me\n> Reconciler-Package: other\n\n"
        "Accepted conflicts:\n- gw: d.yaml: Deployment web: spec.replicas: upstream 3 replaces local 2\n\n"
        "Reconciler-Task: publish\n"
        "Reconciler-Repository: eu-1\n"
        "Reconciler-Package: gw\n"
        "Reconciler-Owner: PackageVariant default/edge-gw\n"
        "Reconciler-Upstream: ./catalog.git/gateway gateway/v2 9f2c\n"
        f"Reconciler-Config-Commit: {'41ab' * 10}\n"
        "Reconciler-Inputs: sha256:1\n"
        "Reconciler-Approved-By: Ada <ada@example.com>\n"
        "Reconciler-Approved-Via: cli\n"
        "Reconciler-Reason: fine by me Reconciler-Package: other\n"
    )


def test_publish_message_lists_several_packages() -> None:
    removed = replace(GW, package="old", drafted_tree=None, status={})
    open_draft = build_draft(GW, removed)

    subject, listed, conflicts, _ = format_publish_message(open_draft, open_draft.packages, "", "cli").split("\n\n")

    assert subject == "publish 2 packages of drafts/eu-1"
    assert listed.splitlines() == ["- gw: update v1 → v2", "- old: delete the package"]
    assert conflicts.startswith("Accepted conflicts:\n- gw: ")


@pytest.mark.parametrize("reason", ["", "too early", "one\ntwo"])
def test_reason_of_a_rejection_is_parsed_from_its_message(reason: str) -> None:
    assert parse_reason(format_reject_message(build_draft(), reason)) == reason


def test_conflicts_beyond_the_size_of_a_pull_request_are_counted() -> None:
    conflicts = [{**STATUS["conflicts"][0], "pointer": f"/data/key{number}"} for number in range(3_000)]
    draft_package_details = replace(CHANGED, package=replace(GW, status={**STATUS, "conflicts": conflicts}))
    body = build_pull_request_text(
        build_details(build_draft(draft_package_details.package), packages=(draft_package_details,)),
        (),
        lambda repo, commit: "",
        "x",
    ).format_body([])

    assert len(body) < 60_000
    assert body.count("data.key") > 300
    assert "more; the status files on the branch list every conflict" in body
    assert "accepts the conflicts with the label `x`" in body


def test_withdraw_message_contains_the_package() -> None:
    message = format_withdraw_message(build_draft(), build_draft().packages, "not here")

    assert message.startswith("reject gw: remove from drafts/eu-1\n\nnot here\n\n")


def test_causes_are_parsed_from_generated_commit_messages() -> None:
    message = "update(eu-1/gw): x\n\nChanged:\n- y\n\nWhy:\n- a region changed\n- and more\n\nReconciler-Package: gw\n"

    assert parse_causes(message) == ("a region changed", "and more")
    assert parse_causes("by hand\n") == ()


def test_each_action_result_is_one_line() -> None:
    acted = [
        ReviewActionResult("eu-1", "drafts/eu-1", ("gw",), "approve", "done", commit="9f2c" * 10, warnings=(GATE,)),
        ReviewActionResult("eu-2", "drafts/eu-2", ("gw",), "approve", "refused", reasons=(GATE,)),
        ReviewActionResult("eu-3", "", (), "approve", "unchanged", message="no draft is open"),
    ]

    result = build_review_result(acted, "approve", "c0ffee", ("Ada", "ada@example.com"))
    assert format_review_text(result).splitlines() == [
        "published  eu-1: drafts/eu-1 (gw) at 9f2c9f2c9f2c",
        "  warning GateNotMet: gw: tested is not reported",
        "refused    eu-2: drafts/eu-2 (gw)",
        "  GateNotMet: gw: tested is not reported",
        "unchanged  eu-3: no draft is open",
        "1 draft published as Ada <ada@example.com>",
    ]
    data = read_json(result)
    assert data["summary"] == {"action": "approve", "completed": 1, "by": "Ada <ada@example.com>"}
    assert [(item["action"], item["outcome"]) for item in data["items"]] == [
        ("approve", "done"),
        ("approve", "refused"),
        ("approve", "unchanged"),
    ]
    assert data["items"][1]["reasons"] == [{"reason": "GateNotMet", "message": "gw: tested is not reported"}]
    assert format_review_text(build_review_result([], "approve", "", None)) == "nothing to do: no draft is open"
