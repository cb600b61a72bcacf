"""Tests of single PackageVariants: each gives one variant, or stalls with a reason and a line."""

from __future__ import annotations

import pickle

import pytest

from reconciler.controllers.results import PackageTarget, StalledVariant, Variant
from reconciler.krm.findings import Finding, Severity
from tests.unit.controllers.package_variants.controller_world import V1, FakeUpstreams, build_variant, run_controller

BERLIN = PackageTarget("default", "berlin", "gateway")


def read_only_variant(document: str, engine: str = "engine 1") -> Variant:
    result = run_controller(document, engine=engine)
    assert (result.stalled, result.findings) == ((), ())
    (item,) = result.variants
    return item


def read_stalled_variant(document: str) -> tuple[StalledVariant, Finding]:
    result = run_controller(document)
    assert (result.variants, result.kept_owners) == ((), frozenset())
    (stalled_variant,) = result.stalled
    return stalled_variant, stalled_variant.findings[0]


def list_conditions(stalled_variant: StalledVariant) -> dict[str, str]:
    return {condition.type: f"{condition.status} {condition.reason}" for condition in stalled_variant.conditions}


def test_variant_contains_the_fields_of_its_object() -> None:
    policies = "adoptionPolicy: adoptExisting\ndeletionPolicy: orphan\n"
    actual_variant = read_only_variant(
        build_variant("gw", extra=f"{policies}labels: {{a: b}}\nannotations: {{c: d}}\n")
    )

    assert actual_variant.owner.key.reference == "PackageVariant/default/gw"
    assert (actual_variant.owner.parent, actual_variant.target) == (None, BERLIN)
    assert (actual_variant.adoption, actual_variant.deletion) == ("adoptExisting", "orphan")
    assert (actual_variant.labels, actual_variant.annotations, actual_variant.findings) == ({"a": "b"}, {"c": "d"}, ())
    assert pickle.loads(pickle.dumps(actual_variant)) == actual_variant


def test_upstream_of_a_variant() -> None:
    upstream = read_only_variant(build_variant("gw")).upstream

    assert upstream.as_data() == {
        "repo": "https://git.example/catalog.git",
        "directory": "packages/gateway",
        "ref": "gateway/v1",
        "commit": "c1",
        "tree": "c1:gateway",
    }
    assert (upstream.url, upstream.repository, upstream.committer_seconds) == ("remote of catalog", "catalog", 1_000)


@pytest.mark.parametrize(
    ("downstream", "expected"),
    [
        pytest.param("repo: berlin, package: gateway", True, id="of-a-cluster"),
        pytest.param("repo: catalog, package: copy", False, id="of-a-catalog"),
    ],
)
def test_deployment_follows_the_target_repository(downstream: str, expected: bool) -> None:
    assert read_only_variant(build_variant("gw", downstream=downstream)).deployment is expected


@pytest.mark.parametrize(
    ("changed", "facts"),
    [
        pytest.param(
            read_only_variant(build_variant("gw", extra="labels: {a: b}")), {"variant"}, id="a-requested-mutation"
        ),
        pytest.param(read_only_variant(build_variant("gw2")), {"variant"}, id="its-name-that-marks-functions"),
        pytest.param(
            read_only_variant(build_variant("gw", V1.replace("v1", "v2"))),
            {"variant", "upstream"},
            id="a-revision-of-another-content",
        ),
        pytest.param(read_only_variant(build_variant("gw"), engine="engine 2"), {"engine"}, id="what-renders-it"),
        pytest.param(
            read_only_variant(build_variant("gw", downstream="repo: catalog, package: copy")),
            {"variant", "repository"},
            id="its-place",
        ),
        pytest.param(
            read_only_variant("# a comment\n" + build_variant("gw", extra="labels: {}")), set(), id="nothing-of-meaning"
        ),
    ],
)
def test_dependencies_name_the_changed_input(changed: Variant, facts: set[str]) -> None:
    before = read_only_variant(build_variant("gw")).dependencies

    assert {name for name, fact in changed.dependencies.items() if fact != before[name]} == facts


@pytest.mark.parametrize(
    ("document", "code", "message", "mapping"),
    [
        pytest.param(
            build_variant("gw", downstream="repo: oslo, package: gateway"),
            "DownstreamNotFound",
            'could not find Repository "oslo" in namespace "default"; existing Repositories: "away", "berlin", "catalog", "lisbon"',
            {"Ready": "False DownstreamNotFound", "Stalled": "True DownstreamNotFound"},
            id="no-such-downstream",
        ),
        pytest.param(
            build_variant("gw", "repo: catalogue, package: gateway, revision: v1"),
            "UpstreamNotFound",
            'could not find Repository "catalogue" in namespace "default"; existing Repositories: "away", "berlin", "catalog", "lisbon"; did you mean "catalog"?',
            {"Ready": "False Error", "Stalled": "True UpstreamNotFound"},
            id="no-such-upstream-repository",
        ),
        pytest.param(
            build_variant("gw", "repo: catalog, package: gateway, revision: v7"),
            "UpstreamNotFound",
            "could not find upstream package revision 'gateway/v7' in repo 'catalog'; existing revisions: v2, v1, stable",
            {"Ready": "False Error", "Stalled": "True UpstreamNotFound"},
            id="no-such-revision",
        ),
        pytest.param(
            build_variant("gw", "repo: catalog, package: broker, revision: -1"),
            "UpstreamNotFound",
            "no Kptfile at broker in catalog@main",
            {"Ready": "False Error", "Stalled": "True UpstreamNotFound"},
            id="no-such-package",
        ),
        pytest.param(
            build_variant("gw", "repo: away, package: gateway, revision: v1"),
            "UpstreamUnreachable",
            "Repository away cannot be read: no route to host",
            {"Ready": "False Error", "Stalled": "False Valid"},
            id="a-remote-that-may-be-back-soon",
        ),
    ],
)
def test_missing_input_stalls_the_variant(document: str, code: str, message: str, mapping: dict[str, str]) -> None:
    stalled_variant, finding = read_stalled_variant(document)

    assert (finding.code, finding.message, finding.severity) == (code, message, Severity.ERROR)
    assert (finding.location.file, finding.location.line) == ("variants.yaml", 7 if code == "DownstreamNotFound" else 6)
    assert list_conditions(stalled_variant) == mapping
    assert stalled_variant.target is not None


@pytest.mark.parametrize(
    ("document", "line", "pointer", "message"),
    [
        pytest.param(
            build_variant("gw", extra="injectors:\n- name: a\n- kind: B\n"),
            10,
            "/spec/injectors/1/name",
            "spec.injectors[1].name must not be empty",
            id="an-item-of-a-list",
        ),
        pytest.param(
            build_variant("gw", extra="deletionPolicy: keep\n"),
            8,
            "/spec/deletionPolicy",
            'spec.deletionPolicy can only be "orphan" or "delete"',
            id="a-field",
        ),
        pytest.param(
            build_variant("gw", "package: gateway, revision: v1"),
            6,
            "/spec/upstream/repo",
            "missing required field spec.upstream.repo",
            id="a-field-that-is-not-there",
        ),
        pytest.param(
            build_variant("gw", extra="labels: {kpt.dev/latest-revision: x}\n"),
            8,
            "/spec/labels",
            'spec.labels must not contain the key "kpt.dev/latest-revision"',
            id="a-key-that-looks-like-a-path",
        ),
        pytest.param(
            build_variant("gw").replace("v1alpha1", "v1alpha3"),
            1,
            "/apiVersion",
            "unsupported PackageVariant apiVersion config.porch.kpt.dev/v1alpha3; use v1alpha1",
            id="another-version",
        ),
        pytest.param(
            build_variant("gw") + "more: 1\n",
            8,
            "/more",
            'unknown field "more" (allowed: apiVersion, kind, metadata, spec, status)',
            id="a-field-that-is-no-part-of-the-spec",
        ),
    ],
)
def test_invalid_field_is_reported_at_its_line(document: str, line: int, pointer: str, message: str) -> None:
    stalled_variant, finding = read_stalled_variant(document)

    assert finding.message == message
    assert (finding.code, finding.location.line, finding.location.pointer) == ("ValidationError", line, pointer)
    assert list_conditions(stalled_variant) == {"Ready": "False Error", "Stalled": "True ValidationError"}


def test_all_invalid_fields_are_reported_together() -> None:
    stalled_variant, _ = read_stalled_variant(
        build_variant("gw", "package: gateway, revision: v1", extra="adoptionPolicy: x\nmore: 1\n")
    )

    assert [(finding.location.line, finding.code) for finding in stalled_variant.findings] == [
        (6, "ValidationError"),
        (8, "ValidationError"),
        (9, "ValidationError"),
    ]
    assert stalled_variant.conditions[1].message == "; ".join(finding.message for finding in stalled_variant.findings)


@pytest.mark.parametrize(
    ("downstream", "place"),
    [
        pytest.param("repo: berlin, package: gateway", BERLIN, id="repo-and-package"),
        pytest.param("repo: berlin", None, id="no-package"),
        pytest.param("repo: berlin, package: 1", None, id="no-text"),
        pytest.param("", None, id="empty"),
    ],
)
def test_invalid_variant_keeps_its_target(downstream: str, place: PackageTarget | None) -> None:
    stalled_variant, _ = read_stalled_variant(build_variant("gw", downstream=downstream, extra="adoptionPolicy: x\n"))

    assert stalled_variant.target == place


def test_downstream_that_is_no_mapping_gives_no_target() -> None:
    stalled_variant, _ = read_stalled_variant(build_variant("gw").replace("{repo: berlin, package: gateway}", "berlin"))

    assert stalled_variant.target is None


def test_alias_is_a_warning_at_its_line() -> None:
    result = run_controller(build_variant("gw", extra="adoptionPolicy: adopt\n"))

    (finding,) = result.findings
    assert (finding.code, finding.severity, finding.location.line) == ("Deprecated", Severity.WARNING, 8)
    assert result.variants[0].adoption == "adoptExisting"


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param("adoptionPolicy: adopt\n", id="sound"),
        pytest.param("adoptionPolicy: adopt\ndeletionPolicy: x\n", id="invalid"),
    ],
)
def test_alias_is_a_condition_of_the_variant(extra: str) -> None:
    (status,) = run_controller(build_variant("gw", extra=extra)).statuses

    (condition,) = status.conditions
    assert (condition.type, condition.status) == ("Deprecated", "True")
    assert condition.message == 'spec.adoptionPolicy "adopt" is read as "adoptExisting"'


def test_variant_without_alias_has_no_status() -> None:
    assert run_controller(build_variant("gw")).statuses == ()


def test_warning_of_the_upstream_is_a_finding_of_the_variant() -> None:
    upstreams = FakeUpstreams({"packages/channels/gateway.yaml": b"channels: {stable: v2}\n"})

    (item,) = run_controller(
        build_variant("gw", "repo: catalog, package: gateway, tag: stable"), upstreams=upstreams
    ).variants

    assert item.upstream.commit == "c2"
    assert [(finding.code, finding.severity) for finding in item.findings] == [("UpstreamWarning", Severity.WARNING)]


@pytest.mark.parametrize(
    ("skipped", "text"),
    [
        pytest.param(("a", "b/c"), "a, b/c", id="few"),
        pytest.param(tuple("abcdefg"), "a, b, c, d, e, …", id="many"),
    ],
)
def test_skipped_links_are_reported(skipped: tuple[str, ...], text: str) -> None:
    (item,) = run_controller(build_variant("gw"), upstreams=FakeUpstreams(skipped=skipped)).variants

    (finding,) = item.findings
    assert (finding.code, finding.severity) == ("LinkSkipped", Severity.WARNING)
    assert finding.message == (
        f"the upstream package gateway contains symbolic links or submodules that are not copied: {text}"
    )


def test_upstream_is_requested_once() -> None:
    upstreams = FakeUpstreams()

    run_controller(
        *(build_variant(f"gw-{n}", downstream=f"repo: berlin, package: gw-{n}") for n in range(5)), upstreams=upstreams
    )

    assert upstreams.requested == ["catalog"]
