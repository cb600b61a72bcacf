"""Tests of the state: it is written and read without loss, and only by versions that support its format."""

import json
from dataclasses import replace
from pathlib import Path
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
    PullRequestRecord,
    RenderedVersion,
    StateUnreadableError,
    TargetState,
    parse_state,
    serialize_state,
    serialize_state_changes,
)
from tests.unit.planning.builders import (
    build_commit_id,
    build_owner,
    build_record,
    build_state,
    build_tree_id,
    build_version,
)

COUNT = RuleId(ObjectKey("core.kubeadmiral.io", "ClusterOverridePolicy", "", "site"), "count")
NAMES = st.text('abc/é"\\', min_size=1, max_size=6)
IDS = st.text("0123456789abcdef", min_size=1, max_size=8)
OFFERS = st.builds(RenderedVersion, IDS, IDS, IDS, IDS, IDS, IDS, st.none() | IDS)
RECORDS = st.builds(
    PackageRecord,
    owner=st.builds(build_owner, NAMES, st.just("") | NAMES),
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
def test_written_state_is_read_back(one: TargetState) -> None:
    assert parse_state(serialize_state(one)) == one


@pytest.mark.slow
@given(STATES, STATES, st.data())
def test_incremental_write_produces_the_same_files_as_a_full_write(
    one: TargetState, other: TargetState, data: st.DataObject
) -> None:
    shared = data.draw(st.sets(st.sampled_from(sorted(one.packages)))) if one.packages else set()
    known = replace(other, packages={**other.packages, **{name: one.packages[name] for name in shared}})

    changes = serialize_state_changes(one, known)

    mapping = {path: content for path, content in {**serialize_state(known), **changes}.items() if content is not None}
    assert mapping == serialize_state(one)
    assert changes.keys().isdisjoint(f"packages/{name}.json" for name in shared)


@pytest.mark.slow
@given(STATES)
def test_equal_states_have_equal_bytes_in_any_order(one: TargetState) -> None:
    turned = TargetState(
        one.url, one.branch, one.directory, one.observed_commit,
        dict(reversed(one.drafts.items())), dict(reversed(one.packages.items())),
    )  # fmt: skip

    assert sorted(serialize_state(turned).items()) == sorted(serialize_state(one).items())


def test_each_package_has_its_own_file() -> None:
    files = serialize_state(build_state(packages={"gw": build_record(), "team/probe": build_record()}))

    assert sorted(files) == ["destination.json", "packages/gw.json", "packages/team/probe.json"]


def test_newer_format_is_refused() -> None:
    files = serialize_state(build_state())
    newer: dict[str, Any] = {**json.loads(files["destination.json"]), "format": 3}

    with pytest.raises(
        EngineTooOldError, match="format 3, but this version of the reconciler supports only formats up to 2"
    ):
        parse_state({**files, "destination.json": json.dumps(newer).encode()})


def test_all_referenced_trees_are_collected() -> None:
    package_record = build_record(
        published_version=build_version("o", base="b"),
        draft_version=build_version("p", merged="m"),
        unpublished_versions=(build_version("q"),),
    )

    assert build_state(packages={"gw": package_record}).collect_trees() == {"o", "b", "p", "m", "q", "up1"}


def test_only_the_last_unpublished_versions_are_kept() -> None:
    package_record = build_record()
    for number in [*range(MAX_UNPUBLISHED_VERSIONS + 5), MAX_UNPUBLISHED_VERSIONS]:
        package_record = package_record.with_draft_version(build_version(f"t{number}"), "drafts/berlin")

    assert len(package_record.unpublished_versions) == MAX_UNPUBLISHED_VERSIONS
    assert (package_record.unpublished_versions[-1].rendered, package_record.draft_version) == (
        build_tree_id(f"t{MAX_UNPUBLISHED_VERSIONS}"),
        package_record.unpublished_versions[-1],
    )
    assert package_record.last_workspace == 1


def test_new_draft_has_the_next_workspace_number() -> None:
    assert build_record(last_workspace=3).with_draft_version(build_version("a"), "d").last_workspace == 4
    assert (
        build_record(last_workspace=3, draft_version=build_version("b"))
        .with_draft_version(build_version("a"), "d")
        .last_workspace
        == 3
    )


def test_tombstone_keeps_only_the_numbers() -> None:
    package_record = build_record(
        last_workspace=4,
        last_revision=3,
        published_version=build_version("v3"),
        unpublished_versions=(build_version("v4"),),
        declined_trees=(build_tree_id("v2"),),
    )

    assert package_record.to_tombstone() == PackageRecord(
        build_owner(), is_owned=False, last_workspace=4, last_revision=3
    )
    assert package_record.to_tombstone().collect_trees() == frozenset()


def test_revision_of_an_earlier_version_has_no_workspace_and_no_tag() -> None:
    revision = PublishedRevision(1, build_commit_id("b1"), build_version("v1"))
    files = serialize_state(build_state(packages={"gw": build_record(revisions=(revision,))}))
    data = json.loads(files["packages/gw.json"])
    for name in ("workspace", "tag"):
        del data["revisions"][0][name]
    del data["revisions"][0]["version"]["upstream"]

    read = parse_state({**files, "packages/gw.json": json.dumps(data).encode()})

    assert read.packages["gw"].revisions == (revision,)


def test_rule_texts_are_stored_once_by_digest() -> None:
    rule = RuleId(ObjectKey("core.kubeadmiral.io", "OverridePolicy", "shop", "sizing"), "0")
    resources = {"apps/Deployment": ["web.yaml Deployment/shop/web"]}
    used = {"OverridePolicy/shop/sizing": {"resources": resources, "rules": [0]}}
    package_record = build_record(rule_texts={rule: '{"overriders": {}}'}, policy_usage=used)
    known = build_state(packages={"a": package_record, "b": package_record})
    files = serialize_state(known)

    assert parse_state(files) == known
    assert [path for path in files if path.startswith("texts/")] == [
        f"texts/{compute_digest(package_record.rule_texts[rule])[7:]}.json"
    ]


def test_missing_rule_text_makes_the_state_unreadable() -> None:
    rule = RuleId(ObjectKey("core.kubeadmiral.io", "OverridePolicy", "shop", "sizing"), "0")
    files = serialize_state(build_state(packages={"a": build_record(rule_texts={rule: "{}"})}))
    left = {path: content for path, content in files.items() if not path.startswith("texts/")}

    with pytest.raises(StateUnreadableError):
        parse_state(left)


def test_rule_texts_of_versions_are_read_back() -> None:
    was = replace(build_version("was"), rules={COUNT: "{was}"})
    put = replace(build_version("put"), rules={COUNT: "{put}"})
    package_record = build_record(
        published_version=was,
        draft_version=put,
        unpublished_versions=(put,),
        revisions=(PublishedRevision(1, build_commit_id("c1"), was),),
        rule_texts={COUNT: "{now}"},
    )

    read = parse_state(serialize_state(build_state(packages={"a": package_record})))

    assert read.packages["a"] == package_record


WAS, NOW = {COUNT: "{was}"}, {COUNT: "{now}"}
OURS = replace(build_version("was"), rules=WAS)


@pytest.mark.parametrize(
    ("fields", "published", "expected"),
    [
        pytest.param({}, None, {}, id="nothing-was-ever-there"),
        pytest.param({"desired_tree": build_tree_id("now")}, None, {}, id="what-is-only-drafted-is-not-there"),
        pytest.param(
            {"desired_tree": build_tree_id("was"), "published_version": OURS},
            "was",
            NOW,
            id="what-is-there-is-what-was-wanted-last",
        ),
        pytest.param(
            {"desired_tree": build_tree_id("now"), "published_version": OURS},
            "was",
            WAS,
            id="a-draft-of-more-has-not-arrived",
        ),
        pytest.param(
            {"desired_tree": build_tree_id("was"), "published_version": OURS},
            "edited",
            NOW,
            id="edits-of-people-change-nothing-in-that",
        ),
        pytest.param(
            {"desired_tree": build_tree_id("both"), "published_version": OURS},
            "both",
            NOW,
            id="nor-do-edits-that-are-wanted-since",
        ),
        pytest.param({"desired_tree": build_tree_id("now")}, "now", NOW, id="adopted-as-it-was-wanted"),
        pytest.param(
            {"desired_tree": build_tree_id("now"), "revisions": (PublishedRevision(1, build_commit_id("c1"), OURS),)},
            None,
            WAS,
            id="people-deleted-it",
        ),
    ],
)
def test_published_rule_texts(fields: dict[str, Any], published: str | None, expected: object) -> None:
    package_record = build_record(rule_texts=NOW, **fields)

    assert package_record.find_published_rule_texts(build_tree_id(published) if published else None) == expected


def test_records_share_equal_values() -> None:
    mapping = {"kind": "drafted", "conditions": [{"type": "Ready", "status": "True"}], "findings": []}
    package_record = build_record(
        outcome=mapping,
        trace={"engine": "1.0 safe"},
        draft_version=build_version("a"),
        unpublished_versions=(build_version("b"), build_version("a")),
    )
    files = serialize_state(build_state(packages={"gw": package_record, "web": package_record}))

    first, second = parse_state(files).packages.values()

    assert first == second == package_record
    assert first.outcome is second.outcome
    assert first.draft_version is first.unpublished_versions[1]
    assert next(iter(first.trace)) is next(iter(second.trace))


@pytest.mark.parametrize("where", ["draftVersion", "seen"])
def test_unknown_field_is_refused(where: str) -> None:
    files = serialize_state(
        build_state(packages={"gw": build_record(draft_version=build_version("a"), unpublished_versions=())})
    )
    data = json.loads(files["packages/gw.json"])
    data[where]["more"] = "of a newer engine"

    with pytest.raises(StateUnreadableError):
        parse_state({**files, "packages/gw.json": json.dumps(data).encode()})


STORED = Path(__file__).resolve().parents[4] / "fixtures" / "state"


def read_stored_files(name: str) -> dict[str, bytes]:
    folder = STORED / name
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*.json")}


def test_state_with_files_of_both_formats_is_read() -> None:
    earlier = read_stored_files("format-1")
    state = parse_state(earlier)
    record = state.packages["gateway"]
    mixed = {**earlier, "packages/web.json": serialize_state(state)["packages/gateway.json"]}

    assert b'"offers"' in mixed["packages/gateway.json"]
    assert b'"unpublishedVersions"' in mixed["packages/web.json"]
    assert parse_state(mixed).packages == {"gateway": record, "web": record}


@pytest.mark.parametrize("name", ["format-1", "format-2"])
def test_stored_state_is_read_and_written_in_the_current_format(name: str) -> None:
    """The files are those of this version and of an earlier version. The files of an earlier version never change."""
    state = parse_state(read_stored_files(name))
    record = state.packages["gateway"]

    assert serialize_state(state) == read_stored_files("format-2")
    assert (state.observed_commit, state.config_root) == ("e1" * 20, "e0" * 20)
    assert state.drafts == {
        "drafts/berlin": DraftBranch(
            "f1" * 20, "e1" * 20, True, True, PullRequestRecord(7, "sha256:i", "sha256:c", "sha256:s", True, "f1" * 20)
        )
    }
    assert (record.is_owned, record.last_workspace, record.last_revision) == (True, 4, 2)
    assert record.owner.parent == ObjectKey("config.porch.kpt.dev", "PackageVariantSet", "default", "gateway")
    assert record.published_version is not None
    assert (record.published_version.rendered, record.published_version.rules) == ("a1" * 20, {COUNT: "replicas: 3"})
    assert record.unpublished_versions == (record.draft_version,)
    assert record.revisions == (PublishedRevision(2, "c1" * 20, record.published_version, 3, "c2" * 20),)
    assert record.observed == ObservedPackage("a1" * 20, "b1" * 20, is_frozen=True, is_stuck=True)
    assert record.removal == ProposedRemoval("removals/berlin", "a1" * 20, is_declined=True)
    assert (record.declined_trees, record.declined_source) == (("d1" * 20,), "d2" * 20)
    assert (record.desired_tree, record.deletion_policy) == ("b1" * 20, "orphan")
    assert record.rule_texts == {COUNT: "replicas: 4"}
