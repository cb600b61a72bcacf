"""Tests of revision pins: the revisions in the config that follow a tag, and the revision that the tag names now."""

from __future__ import annotations

import pytest

from reconciler.catalog.files import CommitId, TreeId
from reconciler.controllers.package_variants.upstream_resolution import (
    ResolvedRevision,
    UnresolvedUpstream,
    UpstreamRepository,
    find_revision,
)
from reconciler.controllers.results import RevisionPin
from reconciler.krm.findings import Severity
from tests.unit.controllers.package_variants.controller_world import (
    TAGGED,
    FakeUpstreams,
    build_variant,
    build_variant_set,
    run_controller,
)
from tests.unit.controllers.package_variants.test_upstream import FakeRefs

STABLE = "repo: catalog, package: gateway, tag: stable, tagMode: rewrite"
LATEST = "repo: catalog, package: gateway, tag: latest, tagMode: rewrite"


def find_pins(*documents: str, now: int = 0, upstreams: FakeUpstreams | None = None) -> tuple[RevisionPin, ...]:
    return run_controller(*documents, now=now, upstreams=upstreams).pins


@pytest.mark.parametrize(
    ("upstream", "written", "named", "holds", "backwards"),
    [
        pytest.param(f"{STABLE}, revision: v2", "v2", "v1", False, True, id="a-tag-that-went-back"),
        pytest.param(f"{STABLE}, revision: v1", "v1", "v1", True, False, id="a-tag-in-the-revision-field"),
        pytest.param(f"{LATEST}, revision: v1", "v1", "v2", False, False, id="a-newer-revision"),
        pytest.param(f"{LATEST}, revision: 1", 1, 2, False, False, id="numbers-stay-numbers"),
        pytest.param(f'{LATEST}, revision: "1"', "1", "2", False, False, id="and-texts-stay-texts"),
        pytest.param(f"{LATEST}, revision: v9", "v9", "v2", False, False, id="a-revision-that-is-not-there"),
        pytest.param(LATEST, None, "v2", False, False, id="none-yet"),
    ],
)
def test_pin_contains_the_written_and_the_tagged_revision(
    upstream: str, written: object, named: object, holds: bool, backwards: bool
) -> None:
    (pin,) = find_pins(build_variant("gw", upstream))

    assert (pin.written_revision, pin.tagged_revision, pin.is_same_package, pin.is_downgrade) == (
        written,
        named,
        holds,
        backwards,
    )
    assert (pin.file, pin.line, pin.path, pin.package) == ("variants.yaml", 1, ("spec", "upstream"), "catalog/gateway")
    assert pin.location.line == 6


def test_floating_reference_has_no_pin() -> None:
    assert find_pins(build_variant("gw", "repo: catalog, package: gateway, tag: stable"), build_variant("gw2")) == ()


def test_pin_of_a_set_is_for_the_set_and_not_for_its_variants() -> None:
    (pin,) = find_pins(
        build_variant_set("all", "[{repositories: [{name: berlin}]}]", upstream=f"{LATEST}, revision: v1")
    )

    assert (pin.key.reference, pin.tagged_revision) == ("PackageVariantSet/default/all", "v2")


def test_each_upstream_of_a_list_has_its_own_pin() -> None:
    both = (
        f"[{{{LATEST}, revision: v1}}, {{{STABLE}, revision: v1}}, {{repo: catalog, package: gateway, revision: v1}}]"
    )
    shared = (
        "apiVersion: reconciler.dev/v1alpha1\nkind: PackageRevisionSet\nmetadata: {name: shared, namespace: default}\n"
        f"spec:\n  upstreams: {both}\n"
    )
    revision_pins = find_pins(shared)

    assert [(pin.path, pin.tagged_revision, pin.is_same_package) for pin in revision_pins] == [
        (("spec", "upstreams", 0), "v2", False),
        (("spec", "upstreams", 1), "v1", True),
    ]


def test_invalid_object_has_no_pin() -> None:
    assert find_pins(build_variant("gw", f"{LATEST}, revision: v1, more: x")) == ()


def test_pin_waits_until_the_tag_settles_and_the_variant_does_not() -> None:
    settling = build_variant("gw", f"{LATEST}, revision: v1, tagPolicy: {{settle: 10s}}")
    waiting, after = run_controller(settling, now=TAGGED + 9), run_controller(settling, now=TAGGED + 10)
    (pin,) = waiting.pins

    assert pin.tagged_revision is None
    assert pin.settling
    assert pin.settling.until == TAGGED + 10
    assert [(finding.code, finding.severity) for finding in waiting.findings] == [("UpstreamSettling", Severity.INFO)]
    assert [item.settling for item in waiting.variants] == [None]
    assert [revision_pin.tagged_revision for revision_pin in after.pins] == ["v2"]


def test_missing_tag_is_a_warning_and_the_variant_stays() -> None:
    controller_result = run_controller(
        build_variant("gw", "repo: catalog, package: gateway, tag: beta, tagMode: rewrite, revision: v1")
    )

    assert [revision_pin.tagged_revision for revision_pin in controller_result.pins] == [None]
    assert [(finding.code, finding.severity, finding.location.line) for finding in controller_result.findings] == [
        ("UpstreamNotFound", Severity.WARNING, 6)
    ]
    assert len(controller_result.variants) == 1


def test_unreadable_repository_gives_a_pin_without_revision() -> None:
    controller_result = run_controller(
        build_variant("gw", "repo: away, package: gateway, tag: stable, tagMode: rewrite, revision: v1")
    )

    assert [revision_pin.tagged_revision for revision_pin in controller_result.pins] == [None]
    assert controller_result.findings == ()


CATALOG = UpstreamRepository("catalog", "main", "base")


def build_revision(ref: str, commit: str = "c2", tree: str = "c2:base/gw") -> ResolvedRevision:
    return ResolvedRevision("catalog", "gw", ref, -1, CommitId(commit), TreeId(tree), True, "base/gw")


@pytest.mark.parametrize(
    ("resolved_revision", "tag", "tags", "ref"),
    [
        pytest.param(build_revision("base/gw/v3"), "stable", {}, "base/gw/v3", id="a-channel-or-latest-already-names-the-revision"),
        pytest.param(
            build_revision("base/gw/stable"), "stable", {"base/gw/v1": "c1", "base/gw/v2": "c2", "base/gw/stable": "c2"},
            "base/gw/v2", id="a-tag-by-its-commit",
        ),
        pytest.param(
            build_revision("base/gw/stable"), "stable", {"base/gw/v2": "c2", "base/gw/v10": "c2", "base/gw/v9.1": "c2"},
            "base/gw/v10", id="the-highest-number-of-several",
        ),
        pytest.param(
            build_revision("base/gw/stable"), "stable", {"base/gw/v1.9": "c2", "base/gw/v1.10.1": "c2", "base/gw/beta": "c2"},
            "base/gw/v1.10.1", id="else-the-latest-version",
        ),
        pytest.param(
            build_revision("base/gw/1.x"), "1.x", {"base/gw/1.x": "c2", "base/gw/1.4": "c2"}, "base/gw/1.4",
            id="a-tag-that-looks-like-a-revision-is-not-its-own",
        ),
        pytest.param(
            build_revision("base/gw/stable", "c5"), "stable", {"base/gw/v1": "c1", "base/gw/v2": "c2"}, "base/gw/v2",
            id="a-later-commit-of-the-same-package",
        ),
        pytest.param(build_revision("gw/stable"), "stable", {"gw/v2": "c2"}, "gw/v2", id="tags-without-the-directory"),
    ],
)  # fmt: skip
def test_revision_of_a_tag_is_found(
    resolved_revision: ResolvedRevision, tag: str, tags: dict[str, str], ref: str
) -> None:
    revision = find_revision(resolved_revision, tag, CATALOG, FakeRefs(tags))

    assert isinstance(revision, ResolvedRevision)
    assert revision.ref == ref


def test_tag_without_revision_reports_how_to_create_one() -> None:
    tags = {"base/gw/v1": "c1", "base/gw/beta": "c2", "base/gw/v1/sub": "c2"}
    failure = find_revision(build_revision("base/gw/stable"), "stable", CATALOG, FakeRefs(tags))

    assert failure == UnresolvedUpstream(
        "TagUnpinned",
        'tag "stable" of catalog/gw points to commit c2, but this commit has no revision tag; create the tag "gw/v1" for '
        'the commit, or set "stable" to a revision in the channel file channels/gw.yaml',
    )
