"""Tests of review actions in the console: confirmation, job, conflicts of people, and refused forms."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.bootstrap.console_reviews import build_merge_check
from reconciler.krm.selectors import LabelSelector
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.review.stages import Stage
from reconciler.server.console.people import Session
from reconciler.server.console.routes import create_console_routes
from reconciler.settings import Settings
from reconciler.telemetry.metrics import REGISTRY
from tests.support.console import ADA, ConsoleClient, find_value, open_console, sign_in
from tests.support.git_repositories import git, read_refs
from tests.support.metric_samples import read_metric
from tests.support.prepared_worlds import begin, drafted
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """All packages are drafted, and no package is published."""
    return begin(tmp_path, drafted)


@pytest.fixture
def console(world: World) -> ConsoleClient:
    client = open_console(world)
    client.update()
    return client


def test_an_approval_publishes_the_drafts_as_the_person(world: World, console: ConsoleClient) -> None:
    key = console.find_change("install gateway v1").key
    with REGISTRY.export():
        page = console.confirm({"verb": "approve", "change": key}, reason="reviewed with Luis")
        counts = read_metric("reconciler_review_actions_total")
    console.update()

    assert "2 done · 0 skipped · 0 failed" in page.text
    assert counts['{action="approve",result="done",via="console"}'] >= 2
    assert console.requested_passes == 1
    assert world.text("clusters/lisbon", "gateway/deployment.yaml")
    author = git(world.fleet, "log", "-1", "--format=%an <%ae>%n%B", "clusters/lisbon")
    assert author.startswith("Ada Example <ada@example.com>")
    assert "reviewed with Luis" in author
    assert "Reconciler-Approved-Via: console" in author
    assert "install gateway v1" not in console.get("/changes").text


@pytest.mark.slow
def test_only_the_chosen_targets_are_approved(world: World, console: ConsoleClient) -> None:
    change = console.find_change("install gateway v1")
    member = next(member for member in change.members if member.target == "lisbon")
    target = f"{member.target} {member.head} {member.published_head}"
    page = console.confirm({"verb": "approve", "change": change.key, "target": target})

    assert "1 done" in page.text
    assert "gateway" not in world.paths(world.fleet, "clusters/berlin")
    assert "gateway/deployment.yaml" in world.paths(world.fleet, "clusters/lisbon")


@pytest.mark.slow
def test_a_draft_that_moved_after_the_confirmation_is_skipped(world: World, console: ConsoleClient) -> None:
    key = console.find_change("install gateway v1").key
    confirmation = console.post("/changes/confirm", {"verb": "approve", "change": key}).headers["location"]
    form = console.get(confirmation).text
    world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    submitted = console.post(f"{confirmation}/submit", {"key": find_value(form, "key")})
    console.context.jobs.apply_waiting()
    page = console.get(submitted.headers["location"])

    assert "1 done · 1 skipped" in page.text
    assert "DraftMoved" in page.text


def test_an_action_can_be_undone_before_it_starts(world: World, console: ConsoleClient) -> None:
    console.context.jobs.undo_seconds = 10
    refs = read_refs(world.fleet)
    key = console.find_change("install gateway v1").key
    page = console.confirm({"verb": "approve", "change": key})
    path = page.text.partition('action="/jobs/')[2].partition("/undo")[0]
    world.now += 3
    later = console.get(f"/jobs/{path}").text
    undone = console.get(console.post(f"/jobs/{path}/undo", {}).headers["location"])
    world.now += 10
    console.context.jobs.apply_waiting()

    assert "The action starts in 10 s." in page.text
    assert "The action starts in 7 s." in later
    assert "0 done · 2 skipped" in undone.text
    assert "Undone" in undone.text
    assert "/undo" not in undone.text
    assert read_refs(world.fleet) == refs


def test_an_action_that_has_started_cannot_be_undone(console: ConsoleClient) -> None:
    console.context.jobs.undo_seconds = 10
    key = console.find_change("install gateway v1").key
    page = console.confirm({"verb": "approve", "change": key})
    path = page.text.partition('action="/jobs/')[2].partition("/undo")[0]
    console.world.now += 10
    late = console.get(f"/jobs/{path}").text
    console.context.jobs.apply_waiting()
    response = console.post(f"/jobs/{path}/undo", {})

    assert "/undo" not in late
    assert response.status_code == 409
    assert "revert the published packages" in response.text


def test_a_form_that_is_sent_twice_makes_one_job(console: ConsoleClient) -> None:
    key = console.find_change("install gateway v1").key
    confirmation = console.post("/changes/confirm", {"verb": "approve", "change": key}).headers["location"]
    fields = {"key": find_value(console.get(confirmation).text, "key")}
    first, second = (console.post(f"{confirmation}/submit", fields) for _ in range(2))

    assert first.headers["location"] == second.headers["location"]


@pytest.mark.slow
def test_a_rejection_needs_a_reason(world: World, console: ConsoleClient) -> None:
    key = console.find_change("install metrics v1").key
    refused = console.confirm({"verb": "reject", "change": key}, reason="  ")
    page = console.confirm({"verb": "reject", "change": key}, reason="too many replicas")
    console.update()

    assert refused.status_code == 422
    assert "reason is required" in refused.text
    assert "1 done" in page.text
    assert "rejected by Ada Example: too many replicas" in console.get(f"/changes/{key}").text


@pytest.mark.slow
def test_a_rejected_draft_is_approved_only_if_its_target_is_chosen(console: ConsoleClient) -> None:
    change = console.find_change("install gateway v1")
    member = next(member for member in change.members if member.target == "lisbon")
    target = f"{member.target} {member.head} {member.published_head}"
    console.confirm({"verb": "reject", "change": change.key, "target": target}, reason="too early")
    console.update()
    pages = []
    for fields in ({}, {"target": "lisbon"}):
        created = console.post("/changes/confirm", {"verb": "approve", "change": change.key, **fields})
        pages.append(console.get(created.headers["location"]).text)

    assert "Approve 1 package on 1 target?" in pages[0]
    assert (
        "&#34;drafts/lisbon&#34; was rejected by Ada Example: too early; to approve the draft nevertheless" in pages[0]
    )
    assert "Rejected" not in pages[1]
    assert "Publish to 1 target" in pages[1]


@pytest.mark.parametrize("field", ["variant", "target"])
def test_a_form_without_a_choice_applies_to_nothing(field: str, console: ConsoleClient) -> None:
    key = console.find_change("install gateway v1").key
    page = console.post("/changes/confirm", {"verb": "approve", "change": key, "chosen": field})

    assert page.status_code == 409
    assert "choose at least one target or variant" in page.text


def test_the_confirmation_of_another_person_is_not_shown(console: ConsoleClient) -> None:
    key = console.find_change("install gateway v1").key
    confirmation = console.post("/changes/confirm", {"verb": "approve", "change": key}).headers["location"]
    other = Session(replace(ADA, email="luis@example.com"), Permissions((RoleRule("admin"),)))
    sign_in(console, other)

    assert console.get(confirmation).status_code == 410


@pytest.mark.slow
def test_a_reviewer_sees_and_approves_only_permitted_targets(world: World, console: ConsoleClient) -> None:
    rule = RoleRule("reviewer", users=("ada@example.com",), targets=LabelSelector((("region", "south"),)))
    sign_in(console, Session(ADA, Permissions((rule,))))
    key = console.find_change("install gateway v1").key
    texts = [console.get(path).text for path in ("/", "/changes", f"/changes/{key}", "/targets", "/search?q=gateway")]
    page = console.confirm({"verb": "approve", "change": key})

    assert [text for text in texts if "berlin" in text] == []
    assert "1 done" in page.text
    assert "berlin" not in page.text
    assert console.get("/targets/berlin").status_code == 404
    assert console.post("/system/pass", {}).status_code == 403


def test_a_viewer_can_approve_nothing(world: World, console: ConsoleClient) -> None:
    sign_in(console, Session(ADA, Permissions((RoleRule("viewer", users=("ada@example.com",)),))))
    before = read_refs(world.fleet)
    key = console.find_change("install gateway v1").key
    confirmation = console.post("/changes/confirm", {"verb": "approve", "change": key}).headers["location"]
    text = console.get(confirmation).text
    refused = console.post(f"{confirmation}/submit", {"key": "k1"})

    assert "you need the role reviewer for gateway on this target" in text
    assert "/submit" not in text
    assert refused.status_code == 422
    assert "applies to no draft" in refused.text
    assert read_refs(world.fleet) == before


# The forms with which people sign in and out have their own tests.
FORMS = [
    re.sub("{.*?}", "x", route.path)
    for route in create_console_routes(lambda: None)
    if "POST" in (route.methods or ()) and not route.path.startswith("/sign-")
]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        pytest.param({"csrf": ""}, {}, id="no-token"),
        pytest.param({"csrf": "0" * 64}, {}, id="another-token"),
        pytest.param({}, {"sec_fetch_site": "cross-site"}, id="another-site"),
        pytest.param({}, {"sec_fetch_site": "same-site"}, id="another-origin-of-the-site"),
        pytest.param({}, {"content_type": "text/plain"}, id="plain-text"),
        pytest.param({}, {"content_type": "application/json"}, id="json"),
    ],
)
def test_a_form_of_another_site_is_refused(
    path: str, fields: dict[str, str], headers: dict[str, str], drafted_console: ConsoleClient
) -> None:
    key = drafted_console.find_change("install gateway v1").key
    before = read_refs(drafted_console.world.fleet)
    response = drafted_console.post(path, {"verb": "approve", "change": key, **fields}, **headers)

    assert response.status_code == 403
    assert read_refs(drafted_console.world.fleet) == before
    assert (drafted_console.requested_passes, drafted_console.requested_reloads) == (0, 0)
    assert len(FORMS) >= 8


@pytest.mark.parametrize("path", FORMS)
def test_a_link_changes_nothing(path: str, drafted_console: ConsoleClient) -> None:
    assert drafted_console.get(path).status_code in (404, 405, 410)
    assert drafted_console.requested_passes == 0


def test_the_confirmation_of_a_dialog_stays_in_the_dialog(drafted_console: ConsoleClient) -> None:
    """All its forms replace the content of the dialog. Without scripts, it is a page with the same forms."""
    change = drafted_console.find_change("install gateway v1").key
    path = drafted_console.post("/changes/confirm", {"verb": "approve", "change": change}).headers["location"]
    page, dialog = drafted_console.get(path).text, drafted_console.get(path, hx_target="review").text
    refused = drafted_console.post("/changes/confirm", {"verb": "approve", "change": "000"}, hx_target="review").text

    assert f'hx-post="{path}/submit" hx-target="#review"' in dialog
    assert dialog.count(' class="confirm"') == page.count(' class="confirm"') == 1
    assert '"#review"' not in page
    assert ("<h1>" in page, "<h1>" in dialog, "<h1>" in refused) == (True, False, False)
    assert 'hx-post="/changes/confirm"' in drafted_console.get("/changes").text
    assert 'hx-post="/changes/confirm"' in drafted_console.get(f"/changes/{change}").text


def test_an_admin_can_start_a_pass(console: ConsoleClient) -> None:
    response = console.post("/system/pass", {})

    assert (response.status_code, response.headers["location"]) == (303, "/system")
    assert console.requested_passes == 1


def test_only_an_admin_can_reload_the_settings(console: ConsoleClient) -> None:
    response = console.post("/system/reload", {})
    reloads = console.requested_reloads
    sign_in(console, Session(ADA, Permissions((RoleRule("reviewer"),))))

    assert (response.status_code, response.headers["location"], reloads) == (303, "/system", 1)
    assert console.post("/system/reload", {}).status_code == 403
    assert "Reload the settings" not in console.get("/system").text
    assert console.requested_reloads == 1


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("merged", "verb", "button"),
    [
        pytest.param((), "approve", "Publish to 2 targets", id="push"),
        pytest.param(("berlin", "lisbon"), "approve", "Merge 1 pull request and publish 1 other draft", id="part"),
        pytest.param(("lisbon",), "approve", "Merge 1 pull request and publish 1 other draft", id="one-forge"),
        pytest.param(("berlin", "lisbon"), "propose", "Propose on 2 targets", id="other-action"),
    ],
)
def test_the_button_states_how_drafts_are_published(
    merged: tuple[str, ...], verb: str, button: str, console: ConsoleClient
) -> None:
    """The draft branch of Berlin also has another package, so that its pull request is not merged."""
    index = console.context.index
    assert index is not None
    urls = {index.by_target[name].url for name in merged}
    console.context = replace(console.context, can_merge=lambda url: url in urls)
    key = console.find_change("install gateway v1").key
    page = console.get(console.post("/changes/confirm", {"verb": verb, "change": key}).headers["location"]).text

    assert f'class="primary">{button}</button>' in page


def test_a_whole_draft_branch_is_merged(console: ConsoleClient) -> None:
    console.context = replace(console.context, can_merge=lambda _url: True)
    keys = [console.find_change(f"install {name} v1").key for name in ("gateway", "metrics")]
    page = console.get(console.post("/changes/confirm", {"verb": "approve", "change": keys}).headers["location"]).text

    assert 'class="primary">Merge 2 pull requests</button>' in page


@pytest.mark.parametrize(
    ("merge", "kind", "url", "expected"),
    [
        pytest.param("squash", "gitlab", "https://git.example.com/fleet/eu.git", True, id="forge"),
        pytest.param("squash", "gitlab", "https://other.example.com/fleet/eu.git", False, id="another-host"),
        pytest.param("squash", "agit", "https://git.example.com/fleet/eu.git", False, id="forge-without-an-api"),
        pytest.param("", "gitlab", "https://git.example.com/fleet/eu.git", False, id="no-merges"),
    ],
)
def test_the_settings_decide_whether_pull_requests_are_merged(merge: str, kind: str, url: str, expected: bool) -> None:
    host = {"kind": kind, "url": "https://git.example.com/fleet"}
    settings = Settings.model_validate({"forge": {"merge": merge, "hosts": [host]}})

    assert build_merge_check(settings)(url) is expected


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        pytest.param({"verb": "publish"}, 400, id="unknown-action"),
        pytest.param({"verb": "approve", "change": "0123456789ab"}, 409, id="change-that-is-not-open"),
    ],
)
def test_an_action_that_is_not_possible_is_refused(fields: dict[str, str], status: int, console: ConsoleClient) -> None:
    assert console.post("/changes/confirm", fields).status_code == status


def test_a_read_only_standby_refuses_actions(console: ConsoleClient) -> None:
    console.context.state.is_read_only = True
    response = console.post("/changes/confirm", {"verb": "approve"})

    assert response.status_code == 409
    assert "read-only standby" in response.text


STAGES = (
    Stage("canary", LabelSelector((("region", "south"),))),
    Stage("production", LabelSelector((("region", "north"),))),
)


@pytest.mark.slow
def test_a_person_approves_a_change_stage_by_stage(world: World, console: ConsoleClient) -> None:
    console.context = replace(console.context, stages=STAGES)
    key = console.find_change("install gateway v1").key
    before = console.get(f"/changes/{key}").text
    page = console.confirm({"verb": "approve", "change": key, "stage": "canary"})
    console.update()
    after = console.get(f"/changes/{key}").text

    assert "canary: 0 of 1 published · production: 0 of 1 published" in before
    assert '<option value="canary">canary: 1 target</option>' in before
    assert "1 done · 0 skipped" in page.text
    assert "gateway/deployment.yaml" in world.paths(world.fleet, "clusters/lisbon")
    assert "gateway" not in world.paths(world.fleet, "clusters/berlin")
    assert "canary: 1 of 1 published · production: 0 of 1 published" in after
    assert '<option value="canary">' not in after


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("fields", "is_warned"),
    [
        pytest.param({"verb": "approve", "stage": "production"}, True, id="later-stage"),
        pytest.param({"verb": "approve", "stage": "canary"}, False, id="first-stage"),
        pytest.param({"verb": "approve"}, False, id="all-targets"),
        pytest.param({"verb": "propose", "stage": "production"}, False, id="proposal"),
    ],
)
def test_a_later_stage_has_a_warning(fields: dict[str, str], is_warned: bool, console: ConsoleClient) -> None:
    console.context = replace(console.context, stages=STAGES)
    key = console.find_change("install gateway v1").key
    confirmation = console.post("/changes/confirm", {"change": key, **fields}).headers["location"]
    text = console.get(confirmation).text

    assert ("An earlier stage is not published. canary: 0 of 1 published." in text) is is_warned


def test_a_confirmation_can_be_limited_to_a_stage(console: ConsoleClient) -> None:
    console.context = replace(console.context, stages=STAGES)
    key = console.find_change("install gateway v1").key
    whole = console.post("/changes/confirm", {"verb": "approve", "change": key}).headers["location"]
    text = console.get(whole).text
    fields = {name: find_value(text, name) for name in ("verb", "change")}
    part = console.post("/changes/confirm", {**fields, "stage": "canary"}).headers["location"]
    part_text = console.get(part).text

    assert '<button type="submit" name="stage" value="canary">Only stage canary: 1 target</button>' in text
    assert "Only stage production: 1 target" in text
    assert "Publish to 1 target" in part_text
    assert "Only stage" not in part_text


def test_a_stage_limits_the_chosen_targets(console: ConsoleClient) -> None:
    console.context = replace(console.context, stages=STAGES)
    change = console.find_change("install gateway v1")
    targets = [f"{member.target} {member.head} {member.published_head}" for member in change.members]
    fields = {"verb": "approve", "change": change.key}
    created = console.post("/changes/confirm", {**fields, "target": targets, "stage": "canary"})
    refused = [
        console.post("/changes/confirm", {**fields, "target": targets[:1], "stage": stage})
        for stage in ("canary", "unknown")
    ]
    gone = console.post("/changes/confirm", {**fields, "change": "0123456789ab", "stage": "canary"})

    text = console.get(created.headers["location"]).text
    assert change.members[0].target == "berlin"
    assert "lisbon" in text
    assert "berlin" not in text
    assert [response.status_code for response in refused] == [409, 409]
    assert "no chosen target is in the stage canary" in refused[0].text
    assert "there is no change &#34;0123456789ab" in gone.text


def test_with_several_approvals_the_confirmation_does_not_promise_a_publication(console: ConsoleClient) -> None:
    console.context = replace(console.context, required_approvals=2)
    key = console.find_change("install gateway v1").key
    created = console.post("/changes/confirm", {"verb": "approve", "change": key})
    page = console.get(created.headers["location"]).text
    rejected = console.get(console.post("/changes/confirm", {"verb": "reject", "change": key}).headers["location"]).text

    assert "2 people must approve each draft" in page
    assert "Approve on 2 targets" in page
    assert "Publish to" not in page
    assert "people must approve" not in rejected
