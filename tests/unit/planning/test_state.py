"""State: written and read back without loss, and only by engines that know its form."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.krm.digest import digest
from reconciler.krm.identity import ObjectKey
from reconciler.planning.state import (
    KEPT_OFFERS,
    DestinationState,
    DraftBranch,
    EngineTooOldError,
    Offer,
    PackageRecord,
    Removal,
    Revision,
    Seen,
    StateUnreadableError,
    read_state,
    write_state,
    written_anew,
)
from reconciler.rules.overrides.rollout import RuleId
from tests.unit.planning.values import commit, offer, owner, record, state, tree

COUNT = RuleId(ObjectKey("core.kubeadmiral.io", "ClusterOverridePolicy", "", "site"), "count")
NAMES = st.text('abc/é"\\', min_size=1, max_size=6)
IDS = st.text("0123456789abcdef", min_size=1, max_size=8)
OFFERS = st.builds(Offer, IDS, IDS, IDS, IDS, IDS, IDS, st.none() | IDS)
RECORDS = st.builds(
    PackageRecord,
    owner=st.builds(owner, NAMES, st.just("") | NAMES),
    owned=st.booleans(),
    labels=st.dictionaries(NAMES, NAMES, max_size=2),
    annotations=st.dictionaries(NAMES, NAMES, max_size=2),
    workspace=st.integers(0, 9),
    revision=st.integers(0, 9),
    ours=st.none() | OFFERS,
    put=st.none() | OFFERS,
    draft=NAMES,
    offers=st.lists(OFFERS, max_size=2).map(tuple),
    revisions=st.lists(
        st.builds(Revision, st.integers(1, 9), IDS, OFFERS, st.integers(0, 9), st.sampled_from(["", "t1"])), max_size=2
    ).map(tuple),
    declined=st.lists(IDS, max_size=2).map(tuple),
    trace=st.dictionaries(NAMES, NAMES, max_size=2),
    seen=st.builds(Seen, st.none() | IDS, st.none() | IDS, st.booleans(), st.booleans()),
    wanted=st.none() | IDS,
    review=IDS,
    outcome=st.dictionaries(NAMES, NAMES, max_size=2),
    deletion=st.sampled_from(["delete", "orphan"]),
    removal=st.none() | st.builds(Removal, NAMES, IDS, st.booleans()),
)
STATES = st.builds(
    DestinationState,
    url=NAMES,
    branch=NAMES,
    directory=NAMES,
    seen=st.none() | IDS,
    drafts=st.dictionaries(NAMES, st.builds(DraftBranch, IDS, IDS, st.booleans(), st.booleans()), max_size=2),
    packages=st.dictionaries(st.from_regex(r"[a-z]{1,4}(/[a-z]{1,4})?", fullmatch=True), RECORDS, max_size=3),
)


@given(STATES)
def test_what_was_written_is_read_back(one: DestinationState) -> None:
    assert read_state(write_state(one)) == one


@given(STATES, STATES, st.data())
def test_what_is_written_anew_makes_the_files_of_one_state_of_those_of_another(
    one: DestinationState, other: DestinationState, data: st.DataObject
) -> None:
    shared = data.draw(st.sets(st.sampled_from(sorted(one.packages)))) if one.packages else set()
    known = replace(other, packages={**other.packages, **{name: one.packages[name] for name in shared}})

    changes = written_anew(one, known)

    made = {path: content for path, content in {**write_state(known), **changes}.items() if content is not None}
    assert made == write_state(one)
    assert changes.keys().isdisjoint(f"packages/{name}.json" for name in shared)


@given(STATES)
def test_equal_states_are_equal_bytes_whatever_their_order(one: DestinationState) -> None:
    turned = DestinationState(
        one.url, one.branch, one.directory, one.seen,
        dict(reversed(one.drafts.items())), dict(reversed(one.packages.items())),
    )  # fmt: skip

    assert sorted(write_state(turned).items()) == sorted(write_state(one).items())


def test_each_package_has_a_file_of_its_own() -> None:
    files = write_state(state(packages={"gw": record(), "team/probe": record()}))

    assert sorted(files) == ["destination.json", "packages/gw.json", "packages/team/probe.json"]


def test_a_newer_form_is_refused() -> None:
    files = write_state(state())
    newer: dict[str, Any] = {**json.loads(files["destination.json"]), "format": 2}

    with pytest.raises(EngineTooOldError, match="format 2, this engine knows up to 1"):
        read_state({**files, "destination.json": json.dumps(newer).encode()})


def test_every_tree_that_is_needed_again_is_kept() -> None:
    kept = record(ours=offer("o", base="b"), put=offer("p", merged="m"), offers=(offer("q"),))

    assert state(packages={"gw": kept}).trees() == {"o", "b", "p", "m", "q", "up1"}


def test_only_the_last_offers_are_remembered_each_once() -> None:
    one = record()
    for number in [*range(KEPT_OFFERS + 5), KEPT_OFFERS]:
        one = one.offered(offer(f"t{number}"), "drafts/berlin")

    assert len(one.offers) == KEPT_OFFERS
    assert (one.offers[-1].rendered, one.put) == (tree(f"t{KEPT_OFFERS}"), one.offers[-1])
    assert one.workspace == 1


def test_a_new_draft_gets_the_next_workspace_number() -> None:
    assert record(workspace=3).offered(offer("a"), "d").workspace == 4
    assert record(workspace=3, put=offer("b")).offered(offer("a"), "d").workspace == 3


def test_of_a_package_that_was_given_up_its_numbers_alone_are_left() -> None:
    one = record(workspace=4, revision=3, ours=offer("v3"), offers=(offer("v4"),), declined=(tree("v2"),))

    assert one.tombstone() == PackageRecord(owner(), owned=False, workspace=4, revision=3)
    assert one.tombstone().trees() == frozenset()


def test_a_revision_that_an_earlier_engine_wrote_is_known_without_workspace_and_tag() -> None:
    revision = Revision(1, commit("b1"), offer("v1"))
    files = write_state(state(packages={"gw": record(revisions=(revision,))}))
    data = json.loads(files["packages/gw.json"])
    for name in ("workspace", "tag"):
        del data["revisions"][0][name]
    del data["revisions"][0]["offer"]["upstream"]

    read = read_state({**files, "packages/gw.json": json.dumps(data).encode()})

    assert read.packages["gw"].revisions == (revision,)


def test_the_texts_of_rules_are_kept_once_and_by_digest() -> None:
    rule = RuleId(ObjectKey("core.kubeadmiral.io", "OverridePolicy", "shop", "sizing"), "0")
    resources = {"apps/Deployment": ["web.yaml Deployment/shop/web"]}
    used = {"OverridePolicy/shop/sizing": {"resources": resources, "rules": [0]}}
    one = record(rules={rule: '{"overriders": {}}'}, policies=used)
    known = state(packages={"a": one, "b": one})
    files = write_state(known)

    assert read_state(files) == known
    assert [path for path in files if path.startswith("texts/")] == [f"texts/{digest(one.rules[rule])[7:]}.json"]


def test_a_rule_whose_text_is_lost_makes_the_state_unreadable() -> None:
    rule = RuleId(ObjectKey("core.kubeadmiral.io", "OverridePolicy", "shop", "sizing"), "0")
    files = write_state(state(packages={"a": record(rules={rule: "{}"})}))
    left = {path: content for path, content in files.items() if not path.startswith("texts/")}

    with pytest.raises(StateUnreadableError):
        read_state(left)


def test_the_texts_of_what_was_offered_are_read_back() -> None:
    was = replace(offer("was"), rules={COUNT: "{was}"})
    put = replace(offer("put"), rules={COUNT: "{put}"})
    one = record(ours=was, put=put, offers=(put,), revisions=(Revision(1, commit("c1"), was),), rules={COUNT: "{now}"})

    read = read_state(write_state(state(packages={"a": one})))

    assert read.packages["a"] == one


WAS, NOW = {COUNT: "{was}"}, {COUNT: "{now}"}
OURS = replace(offer("was"), rules=WAS)


@pytest.mark.parametrize(
    ("fields", "published", "expected"),
    [
        pytest.param({}, None, {}, id="nothing-was-ever-there"),
        pytest.param({"wanted": tree("now")}, None, {}, id="what-is-only-drafted-is-not-there"),
        pytest.param({"wanted": tree("was"), "ours": OURS}, "was", NOW, id="what-is-there-is-what-was-wanted-last"),
        pytest.param({"wanted": tree("now"), "ours": OURS}, "was", WAS, id="a-draft-of-more-has-not-arrived"),
        pytest.param({"wanted": tree("was"), "ours": OURS}, "edited", NOW, id="edits-of-people-change-nothing-in-that"),
        pytest.param({"wanted": tree("both"), "ours": OURS}, "both", NOW, id="nor-do-edits-that-are-wanted-since"),
        pytest.param({"wanted": tree("now")}, "now", NOW, id="adopted-as-it-was-wanted"),
        pytest.param(
            {"wanted": tree("now"), "revisions": (Revision(1, commit("c1"), OURS),)}, None, WAS, id="people-deleted-it"
        ),
    ],
)
def test_the_texts_that_have_arrived(fields: dict[str, Any], published: str | None, expected: object) -> None:
    one = record(rules=NOW, **fields)

    assert one.arrived(tree(published) if published else None) == expected


def test_records_share_what_they_have_in_common() -> None:
    said = {"kind": "drafted", "conditions": [{"type": "Ready", "status": "True"}], "findings": []}
    one = record(outcome=said, trace={"engine": "1.0 safe"}, put=offer("a"), offers=(offer("b"), offer("a")))
    files = write_state(state(packages={"gw": one, "web": one}))

    first, second = read_state(files).packages.values()

    assert first == second == one
    assert first.outcome is second.outcome
    assert first.put is first.offers[1]
    assert next(iter(first.trace)) is next(iter(second.trace))


@pytest.mark.parametrize("where", ["put", "seen"])
def test_a_field_that_nobody_knows_is_not_lost(where: str) -> None:
    files = write_state(state(packages={"gw": record(put=offer("a"), offers=())}))
    data = json.loads(files["packages/gw.json"])
    data[where]["more"] = "of a newer engine"

    with pytest.raises(StateUnreadableError):
        read_state({**files, "packages/gw.json": json.dumps(data).encode()})
