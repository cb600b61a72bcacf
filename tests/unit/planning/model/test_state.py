"""State: written and read back without loss, and only by engines that know its form."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.override_policies.rollout import RuleId
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey
from reconciler.planning.model.state import (
    MAX_UNPUBLISHED_VERSIONS,
    DraftBranch,
    EngineTooOldError,
    ObservedPackage,
    PackageRecord,
    ProposedRemoval,
    PublishedRevision,
    RenderedVersion,
    StateUnreadableError,
    TargetState,
    parse_state,
    serialize_state,
    serialize_state_changes,
)
from tests.unit.planning.values import commit, offer, owner, record, state, tree

COUNT = RuleId(ObjectKey("core.kubeadmiral.io", "ClusterOverridePolicy", "", "site"), "count")
NAMES = st.text('abc/é"\\', min_size=1, max_size=6)
IDS = st.text("0123456789abcdef", min_size=1, max_size=8)
OFFERS = st.builds(RenderedVersion, IDS, IDS, IDS, IDS, IDS, IDS, st.none() | IDS)
RECORDS = st.builds(
    PackageRecord,
    owner=st.builds(owner, NAMES, st.just("") | NAMES),
    is_owned=st.booleans(),
    labels=st.dictionaries(NAMES, NAMES, max_size=2),
    annotations=st.dictionaries(NAMES, NAMES, max_size=2),
    last_workspace=st.integers(0, 9),
    last_revision=st.integers(0, 9),
    published_version=st.none() | OFFERS,
    draft_version=st.none() | OFFERS,
    draft_branch=NAMES,
    unpublished_versions=st.lists(OFFERS, max_size=2).map(tuple),
    revisions=st.lists(
        st.builds(PublishedRevision, st.integers(1, 9), IDS, OFFERS, st.integers(0, 9), st.sampled_from(["", "t1"])),
        max_size=2,
    ).map(tuple),
    declined_trees=st.lists(IDS, max_size=2).map(tuple),
    trace=st.dictionaries(NAMES, NAMES, max_size=2),
    observed=st.builds(ObservedPackage, st.none() | IDS, st.none() | IDS, st.booleans(), st.booleans()),
    desired_tree=st.none() | IDS,
    review_digest=IDS,
    outcome=st.dictionaries(NAMES, NAMES, max_size=2),
    deletion_policy=st.sampled_from(["delete", "orphan"]),
    removal=st.none() | st.builds(ProposedRemoval, NAMES, IDS, st.booleans()),
)
STATES = st.builds(
    TargetState,
    url=NAMES,
    branch=NAMES,
    directory=NAMES,
    observed_commit=st.none() | IDS,
    drafts=st.dictionaries(NAMES, st.builds(DraftBranch, IDS, IDS, st.booleans(), st.booleans()), max_size=2),
    packages=st.dictionaries(st.from_regex(r"[a-z]{1,4}(/[a-z]{1,4})?", fullmatch=True), RECORDS, max_size=3),
)


@given(STATES)
def test_what_was_written_is_read_back(one: TargetState) -> None:
    assert parse_state(serialize_state(one)) == one


@given(STATES, STATES, st.data())
def test_what_is_written_anew_makes_the_files_of_one_state_of_those_of_another(
    one: TargetState, other: TargetState, data: st.DataObject
) -> None:
    shared = data.draw(st.sets(st.sampled_from(sorted(one.packages)))) if one.packages else set()
    known = replace(other, packages={**other.packages, **{name: one.packages[name] for name in shared}})

    changes = serialize_state_changes(one, known)

    mapping = {path: content for path, content in {**serialize_state(known), **changes}.items() if content is not None}
    assert mapping == serialize_state(one)
    assert changes.keys().isdisjoint(f"packages/{name}.json" for name in shared)


@given(STATES)
def test_equal_states_are_equal_bytes_whatever_their_order(one: TargetState) -> None:
    turned = TargetState(
        one.url, one.branch, one.directory, one.observed_commit,
        dict(reversed(one.drafts.items())), dict(reversed(one.packages.items())),
    )  # fmt: skip

    assert sorted(serialize_state(turned).items()) == sorted(serialize_state(one).items())


def test_each_package_has_a_file_of_its_own() -> None:
    files = serialize_state(state(packages={"gw": record(), "team/probe": record()}))

    assert sorted(files) == ["destination.json", "packages/gw.json", "packages/team/probe.json"]


def test_a_newer_form_is_refused() -> None:
    files = serialize_state(state())
    newer: dict[str, Any] = {**json.loads(files["destination.json"]), "format": 2}

    with pytest.raises(EngineTooOldError, match="format 2, this version supports up to 1"):
        parse_state({**files, "destination.json": json.dumps(newer).encode()})


def test_every_tree_that_is_needed_again_is_kept() -> None:
    package_record = record(
        published_version=offer("o", base="b"), draft_version=offer("p", merged="m"), unpublished_versions=(offer("q"),)
    )

    assert state(packages={"gw": package_record}).collect_trees() == {"o", "b", "p", "m", "q", "up1"}


def test_only_the_last_offers_are_remembered_each_once() -> None:
    package_record = record()
    for number in [*range(MAX_UNPUBLISHED_VERSIONS + 5), MAX_UNPUBLISHED_VERSIONS]:
        package_record = package_record.with_draft_version(offer(f"t{number}"), "drafts/berlin")

    assert len(package_record.unpublished_versions) == MAX_UNPUBLISHED_VERSIONS
    assert (package_record.unpublished_versions[-1].rendered, package_record.draft_version) == (
        tree(f"t{MAX_UNPUBLISHED_VERSIONS}"),
        package_record.unpublished_versions[-1],
    )
    assert package_record.last_workspace == 1


def test_a_new_draft_gets_the_next_workspace_number() -> None:
    assert record(last_workspace=3).with_draft_version(offer("a"), "d").last_workspace == 4
    assert record(last_workspace=3, draft_version=offer("b")).with_draft_version(offer("a"), "d").last_workspace == 3


def test_of_a_package_that_was_given_up_its_numbers_alone_are_left() -> None:
    package_record = record(
        last_workspace=4,
        last_revision=3,
        published_version=offer("v3"),
        unpublished_versions=(offer("v4"),),
        declined_trees=(tree("v2"),),
    )

    assert package_record.to_tombstone() == PackageRecord(owner(), is_owned=False, last_workspace=4, last_revision=3)
    assert package_record.to_tombstone().collect_trees() == frozenset()


def test_a_revision_that_an_earlier_engine_wrote_is_known_without_workspace_and_tag() -> None:
    revision = PublishedRevision(1, commit("b1"), offer("v1"))
    files = serialize_state(state(packages={"gw": record(revisions=(revision,))}))
    data = json.loads(files["packages/gw.json"])
    for name in ("workspace", "tag"):
        del data["revisions"][0][name]
    del data["revisions"][0]["offer"]["upstream"]

    read = parse_state({**files, "packages/gw.json": json.dumps(data).encode()})

    assert read.packages["gw"].revisions == (revision,)


def test_the_texts_of_rules_are_kept_once_and_by_digest() -> None:
    rule = RuleId(ObjectKey("core.kubeadmiral.io", "OverridePolicy", "shop", "sizing"), "0")
    resources = {"apps/Deployment": ["web.yaml Deployment/shop/web"]}
    used = {"OverridePolicy/shop/sizing": {"resources": resources, "rules": [0]}}
    package_record = record(rule_texts={rule: '{"overriders": {}}'}, policy_usage=used)
    known = state(packages={"a": package_record, "b": package_record})
    files = serialize_state(known)

    assert parse_state(files) == known
    assert [path for path in files if path.startswith("texts/")] == [
        f"texts/{compute_digest(package_record.rule_texts[rule])[7:]}.json"
    ]


def test_a_rule_whose_text_is_lost_makes_the_state_unreadable() -> None:
    rule = RuleId(ObjectKey("core.kubeadmiral.io", "OverridePolicy", "shop", "sizing"), "0")
    files = serialize_state(state(packages={"a": record(rule_texts={rule: "{}"})}))
    left = {path: content for path, content in files.items() if not path.startswith("texts/")}

    with pytest.raises(StateUnreadableError):
        parse_state(left)


def test_the_texts_of_what_was_offered_are_read_back() -> None:
    was = replace(offer("was"), rules={COUNT: "{was}"})
    put = replace(offer("put"), rules={COUNT: "{put}"})
    package_record = record(
        published_version=was,
        draft_version=put,
        unpublished_versions=(put,),
        revisions=(PublishedRevision(1, commit("c1"), was),),
        rule_texts={COUNT: "{now}"},
    )

    read = parse_state(serialize_state(state(packages={"a": package_record})))

    assert read.packages["a"] == package_record


WAS, NOW = {COUNT: "{was}"}, {COUNT: "{now}"}
OURS = replace(offer("was"), rules=WAS)


@pytest.mark.parametrize(
    ("fields", "published", "expected"),
    [
        pytest.param({}, None, {}, id="nothing-was-ever-there"),
        pytest.param({"desired_tree": tree("now")}, None, {}, id="what-is-only-drafted-is-not-there"),
        pytest.param(
            {"desired_tree": tree("was"), "published_version": OURS},
            "was",
            NOW,
            id="what-is-there-is-what-was-wanted-last",
        ),
        pytest.param(
            {"desired_tree": tree("now"), "published_version": OURS}, "was", WAS, id="a-draft-of-more-has-not-arrived"
        ),
        pytest.param(
            {"desired_tree": tree("was"), "published_version": OURS},
            "edited",
            NOW,
            id="edits-of-people-change-nothing-in-that",
        ),
        pytest.param(
            {"desired_tree": tree("both"), "published_version": OURS},
            "both",
            NOW,
            id="nor-do-edits-that-are-wanted-since",
        ),
        pytest.param({"desired_tree": tree("now")}, "now", NOW, id="adopted-as-it-was-wanted"),
        pytest.param(
            {"desired_tree": tree("now"), "revisions": (PublishedRevision(1, commit("c1"), OURS),)},
            None,
            WAS,
            id="people-deleted-it",
        ),
    ],
)
def test_the_texts_that_have_arrived(fields: dict[str, Any], published: str | None, expected: object) -> None:
    package_record = record(rule_texts=NOW, **fields)

    assert package_record.find_published_rule_texts(tree(published) if published else None) == expected


def test_records_share_what_they_have_in_common() -> None:
    mapping = {"kind": "drafted", "conditions": [{"type": "Ready", "status": "True"}], "findings": []}
    package_record = record(
        outcome=mapping,
        trace={"engine": "1.0 safe"},
        draft_version=offer("a"),
        unpublished_versions=(offer("b"), offer("a")),
    )
    files = serialize_state(state(packages={"gw": package_record, "web": package_record}))

    first, second = parse_state(files).packages.values()

    assert first == second == package_record
    assert first.outcome is second.outcome
    assert first.draft_version is first.unpublished_versions[1]
    assert next(iter(first.trace)) is next(iter(second.trace))


@pytest.mark.parametrize("where", ["put", "seen"])
def test_a_field_that_nobody_knows_is_not_lost(where: str) -> None:
    files = serialize_state(state(packages={"gw": record(draft_version=offer("a"), unpublished_versions=())}))
    data = json.loads(files["packages/gw.json"])
    data[where]["more"] = "of a newer engine"

    with pytest.raises(StateUnreadableError):
        parse_state({**files, "packages/gw.json": json.dumps(data).encode()})
