"""Tests of the results of a PackageVariantSet: its variants, its status, and the reason with a line if it fails."""

from __future__ import annotations

import pytest

from reconciler.cel import ExpressionLimits
from reconciler.controllers.deletion_guards import compute_deletion_hash
from reconciler.controllers.package_variants.set_targets import DownstreamKey
from reconciler.controllers.results import ConfigStatus, ControllerResult
from reconciler.krm.findings import Severity
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.package_variants.controller_world import (
    V1,
    FakeUpstreams,
    build_variant,
    build_variant_set,
    run_controller,
)

BOTH = "[{repositories: [{name: berlin}, {name: lisbon}]}]"
SET = ObjectKey("config.porch.kpt.dev", "PackageVariantSet", "default", "s")
SITES = "[{objectSelector: {apiVersion: fleet.example/v1, kind: Site}}]"
SITE_DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.fleet.example}
spec: {group: fleet.example, names: {kind: Site}}
"""


def list_targets(result: ControllerResult) -> list[str]:
    return [str(item.target) for item in result.variants]


def find_set_status(result: ControllerResult, name: str = "s") -> ConfigStatus:
    (config_status,) = [
        status for status in result.statuses if (status.key.kind, status.key.name) == ("PackageVariantSet", name)
    ]
    return config_status


def read_ready_condition(result: ControllerResult, name: str = "s") -> str:
    return next(
        f"{condition.status} {condition.reason}"
        for condition in find_set_status(result, name).conditions
        if condition.type == "Ready"
    )


def test_set_generates_its_variants() -> None:
    result = run_controller(build_variant_set("s", BOTH))

    assert list_targets(result) == ["berlin/gateway", "lisbon/gateway"]
    assert {item.owner.parent for item in result.variants} == {SET}
    assert [item.owner.key.name for item in result.variants] == ["s-berlin-gateway", "s-lisbon-gateway"]
    assert (result.findings, result.stalled, result.kept_owners) == ((), (), frozenset())


def test_status_of_a_set_lists_its_targets() -> None:
    status = find_set_status(run_controller(build_variant_set("s", BOTH)))

    assert status.fields == {
        "targets": [
            {"repo": repo, "package": "gateway", "packageVariant": f"s-{repo}-gateway", "targetIndex": 0}
            for repo in ("berlin", "lisbon")
        ],
        "skipped": 0,
    }
    assert [key.reference for key in status.children] == [
        "PackageVariant/default/s-berlin-gateway",
        "PackageVariant/default/s-lisbon-gateway",
    ]


@pytest.mark.parametrize(
    ("selection", "template"),
    [
        pytest.param("repositories: [{name: berlin}]", "", id="sound"),
        pytest.param("repositories: [{name: berlin}]", ", deletionPolicy: x", id="invalid"),
        pytest.param("repositories: [{name: nowhere}]", "", id="failed"),
    ],
)
def test_alias_is_a_condition_of_the_set(selection: str, template: str) -> None:
    result = run_controller(
        build_variant_set("s", f"[{{{selection}, template: {{injectors: {{name: x}}{template}}}}}]")
    )

    (deprecated,) = [condition for condition in find_set_status(result).conditions if condition.type == "Deprecated"]
    assert [deprecated.message] == [finding.message for finding in result.findings if finding.code == "Deprecated"]


def test_status_contains_the_whole_generated_variant() -> None:
    generated, *_ = run_controller(build_variant_set("s", BOTH)).statuses

    assert generated.key.reference == "PackageVariant/default/s-berlin-gateway"
    assert generated.spec is not None
    assert generated.spec["downstream"] == {"repo": "berlin", "package": "gateway"}
    assert generated.metadata["ownerReferences"] == [
        {
            "apiVersion": "config.porch.kpt.dev/v1alpha2",
            "kind": "PackageVariantSet",
            "name": "s",
            "uid": SET.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("upstream.name", "catalog.gateway.v1", id="name"),
        pytest.param("upstream.labels['tier']", "edge", id="labels"),
        pytest.param("string(size(upstream.annotations))", "0", id="annotations"),
        pytest.param("repository.labels['region']", "north", id="the-repository"),
        pytest.param("repository.namespace", "default", id="the-namespace"),
    ],
)
def test_variables_of_expressions(expression: str, expected: str) -> None:
    template = f'template: {{labelExprs: [{{key: x, valueExpr: "{expression}"}}]}}'

    (item,) = run_controller(build_variant_set("s", f"[{{repositories: [{{name: berlin}}], {template}}}]")).variants

    assert item.labels == {"x": expected}


LABEL_EXPRESSION = "spec.targets[0].template.labelExprs[0].valueExpr"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("target.name.startsWith('b') ? 'b' : string(size(target.name))", None, id="standard"),
        pytest.param("target.repo.upperAscii()", "upperAscii", id="a-function"),
        pytest.param("cel.bind(x, target.repo, x)", "cel.bind", id="a-macro"),
        pytest.param("target.?repo.orValue('')", ".?, orValue", id="a-sign-and-a-function"),
        pytest.param("target.repo.split('e').join() + nowhere.x.upperAscii()", None, id="a-faulty-one-is-an-error"),
    ],
)
def test_non_standard_cel_is_an_info(expression: str, expected: str | None) -> None:
    template = f'template: {{labelExprs: [{{key: x, valueExpr: "{expression}"}}]}}'

    findings = run_controller(build_variant_set("s", f"[{{repositories: [{{name: berlin}}], {template}}}]")).findings

    notes = [(finding.severity, finding.message) for finding in findings if finding.code == "NotPortable"]
    words = f"is not standard CEL, because the expression uses {expected}; other engines may reject the expression"
    assert notes == ([(Severity.INFO, f"{LABEL_EXPRESSION} {words}")] if expected else [])


def test_non_standard_cel_is_reported_at_its_location() -> None:
    expression = "template: {labelExprs: [{key: x,\n    valueExpr: repository.name.upperAscii()}]}"

    (note,) = run_controller(build_variant_set("s", f"[{{repositories: [{{name: berlin}}], {expression}}}]")).findings

    assert note.location.pointer == "/spec/targets/0/template/labelExprs/0/valueExpr"
    assert note.location.line > 1


def test_expression_that_an_upstream_overlays_is_reported_once() -> None:
    shared, own = (f"{{key: x, valueExpr: repository.name.{method}()}}" for method in ("upperAscii", "trim"))
    upstream = f"upstreams: [{{{V1}, template: {{annotationExprs: [{own}]}}}}]"
    targets = f"targets: [{{repositories: [{{name: berlin}}], template: {{labelExprs: [{shared}]}}}}]"
    header = "kind: PackageVariantSet\napiVersion: config.porch.kpt.dev/v1alpha2\nmetadata: {name: s}\n"

    notes = run_controller(f"{header}spec: {{{upstream}, {targets}}}\n").findings

    assert [
        finding.message.split("; ")[0].split(" is not standard CEL, because the expression uses ") for finding in notes
    ] == [
        [LABEL_EXPRESSION, "upperAscii"],
        ["spec.targets[0].template (merged with spec.upstreams[0].template).annotationExprs[0].valueExpr", "trim"],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "kind: Site\napiVersion: fleet.example/v1\nmetadata: {name: lisbon}\n", ["lisbon/gateway"], id="one"
        ),
        pytest.param(SITE_DEFINITION, [], id="none-but-its-definition"),
    ],
)
def test_set_selects_objects(text: str, expected: list[str]) -> None:
    result = run_controller(build_variant_set("s", SITES), content=text)

    assert list_targets(result) == expected
    assert [finding.code for finding in result.findings] == ([] if expected else ["NoMatch"])


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param("{group: fleet.example, names: {kind: Place}}", id="another-kind"),
        pytest.param("{group: other.example, names: {kind: Site}}", id="another-group"),
        pytest.param("{group: fleet.example, names: [Site]}", id="names-that-are-none"),
        pytest.param("Site", id="no-mapping"),
    ],
)
def test_definition_of_another_kind_is_not_used(spec: str) -> None:
    definition = f"{SITE_DEFINITION[: SITE_DEFINITION.index('spec:')]}spec: {spec}\n"

    assert (
        read_ready_condition(run_controller(build_variant_set("s", SITES), content=definition))
        == "False NoMatchingTargets"
    )


def test_object_of_another_namespace_is_not_selected() -> None:
    site = "kind: Site\napiVersion: fleet.example/v1\nmetadata: {name: lisbon, namespace: other}\n"

    assert list_targets(run_controller(build_variant_set("s", SITES), content=site)) == []


def test_revision_set_is_shared_by_sets() -> None:
    shared = f"""\
apiVersion: reconciler.dev/v1alpha1
kind: PackageRevisionSet
metadata: {{name: base, namespace: default}}
spec: {{upstreams: [{{{V1}}}]}}
"""
    document = build_variant_set("s", BOTH, "upstreamSets: [base]\n").replace(f"  upstream: {{{V1}}}\n", "")

    assert list_targets(run_controller(document, content=shared)) == ["berlin/gateway", "lisbon/gateway"]


@pytest.mark.parametrize(
    ("document", "code", "line"),
    [
        pytest.param(build_variant_set("s", "[]"), "ValidationError", 8, id="no-target"),
        pytest.param(build_variant_set("s", BOTH, "errorPolicy: x\n"), "ValidationError", 9, id="an-invalid-field"),
        pytest.param(
            build_variant_set(
                "s", "\n  - repositories: [{name: berlin}]\n    template: {downstream: {packageExpr: 'a b'}}"
            ),
            "ValidationError",
            10,
            id="an-expression-that-is-none",
        ),
        pytest.param(
            build_variant_set(
                "s", "[{repositories: [{name: berlin}], template: {downstream: {packageExpr: \"target['x']\"}}}]"
            ),
            "RenderError",
            8,
            id="an-expression-that-fails",
        ),
        pytest.param(
            build_variant_set("s", "[{repositories: [{name: oslo}]}]"), "RenderError", 8, id="no-such-repository"
        ),
        pytest.param(build_variant_set("s", SITES), "NoMatchingTargets", 8, id="an-unknown-kind"),
        pytest.param(
            build_variant_set("s", BOTH, upstream=V1.replace("v1", "v7")), "UpstreamNotFound", 7, id="no-such-revision"
        ),
        pytest.param(
            build_variant_set("s", BOTH, upstream=V1.replace("catalog", "nowhere")),
            "UpstreamNotFound",
            7,
            id="no-such-upstream",
        ),
        pytest.param(
            build_variant_set("s", BOTH, upstream=V1.replace("catalog", "away")),
            "UpstreamUnreachable",
            7,
            id="no-connection",
        ),
    ],
)
def test_failed_set_keeps_its_packages(document: str, code: str, line: int) -> None:
    result = run_controller(document, build_variant("other"))

    (finding,) = result.findings
    assert (finding.code, finding.severity, finding.location.line) == (code, Severity.ERROR, line)
    assert (result.kept_owners, read_ready_condition(result)) == (frozenset({SET}), f"False {code}")
    assert [item.owner.key.name for item in result.variants] == ["other"]


def test_failing_target_is_skipped_with_the_skip_policy() -> None:
    targets = "[{repositories: [{name: berlin}]}, {repositories: [{name: oslo}]}]"
    result = run_controller(build_variant_set("s", targets, "errorPolicy: skipTarget\n"))

    assert list_targets(result) == ["berlin/gateway"]
    assert [finding.code for finding in result.findings] == ["RenderError"]
    assert (result.kept_owners, read_ready_condition(result)) == (frozenset({SET}), "False TargetsSkipped")
    assert find_set_status(result).fields["skipped"] == 1


@pytest.mark.parametrize(
    ("documents", "conflicting"),
    [
        pytest.param([build_variant("s-berlin-gateway")], ["s"], id="with-one-written-by-hand"),
        pytest.param(
            [build_variant("s-berlin-gateway").replace("metadata:\n", "metadata:\n  namespace: other\n")],
            [],
            id="not-with-one-of-another-namespace",
        ),
    ],
)
def test_name_of_another_variant_is_a_conflict(documents: list[str], conflicting: list[str]) -> None:
    result = run_controller(build_variant_set("s", BOTH), *documents)

    assert [
        finding.location.object.rpartition("/")[2] for finding in result.findings if finding.code == "NameConflict"
    ] == conflicting
    assert {key.name for key in result.kept_owners} == set(conflicting)


def test_two_sets_that_generate_the_same_name() -> None:
    repositories = """\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: a-b}
spec: {git: {repo: x}}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: b}
spec: {git: {repo: x}}
"""
    first = build_variant_set("s", "[{repositories: [{name: a-b}]}]")
    second = build_variant_set("s-a", "[{repositories: [{name: b}]}]")

    result = run_controller(second, first, content=repositories)

    assert [(item.owner.key.name, str(item.target)) for item in result.variants] == [("s-a-b-gateway", "a-b/gateway")]
    assert read_ready_condition(result, "s-a") == "False NameConflict"


GONE = [DownstreamKey("lisbon", "a"), DownstreamKey("lisbon", "b")]


@pytest.mark.parametrize(
    ("document", "codes", "ready"),
    [
        pytest.param(
            build_variant_set("s", "[{repositories: [{name: berlin}]}]"),
            ["DeletionHeld"],
            "False DeletionHeld",
            id="held",
        ),
        pytest.param(
            build_variant_set(
                "s",
                "[{repositories: [{name: berlin}]}]",
                annotations=f'{{reconciler.dev/ack-deletions: "{compute_deletion_hash(GONE)}"}}',
            ),
            [],
            "True Reconciled",
            id="acknowledged",
        ),
        pytest.param(
            build_variant_set("s", "[{repositorySelector: {matchLabels: {region: west}}}]"),
            ["NoTargets"],
            "False NoTargets",
            id="all",
        ),
        pytest.param(
            build_variant_set(
                "s",
                "[{repositorySelector: {matchLabels: {region: west}}}]",
                annotations='{reconciler.dev/allow-empty: "true"}',
            ),
            ["NoMatch"],
            "True Reconciled",
            id="all-with-allow-empty",
        ),
    ],
)
def test_deletions_of_a_set_are_guarded(document: str, codes: list[str], ready: str) -> None:
    result = run_controller(document, children={SET: [*GONE, DownstreamKey("berlin", "gateway")]})

    assert [finding.code for finding in result.findings] == codes
    assert read_ready_condition(result) == ready


def test_no_match_is_a_warning() -> None:
    (finding,) = run_controller(
        build_variant_set("s", "[{repositorySelector: {matchLabels: {region: west}}}]")
    ).findings

    assert (finding.code, finding.severity) == ("NoMatch", Severity.WARNING)


@pytest.mark.parametrize(
    ("cel", "code"),
    [
        pytest.param(ExpressionLimits(), "", id="within"),
        pytest.param(ExpressionLimits(characters=5), "ValidationError", id="too-long-to-be-read"),
        pytest.param(ExpressionLimits(steps=1), "RenderError", id="too-costly-to-be-evaluated"),
    ],
)
def test_cost_of_an_expression_is_limited(cel: ExpressionLimits, code: str) -> None:
    template = "template: {downstream: {packageExpr: \"'a' + 'b' + packageDefault\"}}"

    result = run_controller(build_variant_set("s", f"[{{repositories: [{{name: berlin}}], {template}}}]"), cel=cel)

    assert [finding.code for finding in result.findings] == ([code] if code else [])
    assert list_targets(result) == ([] if code else ["berlin/abgateway"])


def test_upstream_is_resolved_once_for_all_sets() -> None:
    upstreams = FakeUpstreams()

    run_controller(
        build_variant_set("s", BOTH),
        build_variant_set("t", "[{repositories: [{name: berlin, packageNames: [x]}]}]"),
        upstreams=upstreams,
    )

    assert set(upstreams.requested) == {"catalog"}
