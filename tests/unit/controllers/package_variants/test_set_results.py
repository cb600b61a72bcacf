"""A PackageVariantSet becomes its variants, or is kept as it was with a reason and a line (porch 11, design 10.33)."""

from __future__ import annotations

import pytest

from reconciler.cel import ExpressionLimits
from reconciler.controllers.deletion_guards import compute_deletion_hash
from reconciler.controllers.package_variants.set_targets import DownstreamKey
from reconciler.controllers.results import ConfigStatus, ControllerResult
from reconciler.krm.findings import Severity
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.package_variants.room_world import V1, World, room, variant, variant_set

BOTH = "[{repositories: [{name: berlin}, {name: lisbon}]}]"
SET = ObjectKey("config.porch.kpt.dev", "PackageVariantSet", "default", "s")
SITES = "[{objectSelector: {apiVersion: fleet.example/v1, kind: Site}}]"
SITE_DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.fleet.example}
spec: {group: fleet.example, names: {kind: Site}}
"""


def places(result: ControllerResult) -> list[str]:
    return [str(item.target) for item in result.variants]


def told(result: ControllerResult, name: str = "s") -> ConfigStatus:
    (config_status,) = [
        status for status in result.statuses if (status.key.kind, status.key.name) == ("PackageVariantSet", name)
    ]
    return config_status


def ready(result: ControllerResult, name: str = "s") -> str:
    return next(
        f"{condition.status} {condition.reason}"
        for condition in told(result, name).conditions
        if condition.type == "Ready"
    )


def test_a_set_becomes_its_variants() -> None:
    result = room(variant_set("s", BOTH))

    assert places(result) == ["berlin/gateway", "lisbon/gateway"]
    assert {item.owner.parent for item in result.variants} == {SET}
    assert [item.owner.key.name for item in result.variants] == ["s-berlin-gateway", "s-lisbon-gateway"]
    assert (result.findings, result.stalled, result.kept_owners) == ((), (), frozenset())


def test_what_is_told_of_a_set() -> None:
    status = told(room(variant_set("s", BOTH)))

    assert status.fields == {
        "targets": [
            {"repo": repo, "package": "gateway", "packageVariant": f"s-{repo}-gateway", "targetIndex": 0}
            for repo in ("berlin", "lisbon")
        ],
        "skipped": 0,
    }
    assert [str(key) for key in status.children] == [
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
def test_an_alias_is_noted_in_the_status_of_the_set(selection: str, template: str) -> None:
    result = room(variant_set("s", f"[{{{selection}, template: {{injectors: {{name: x}}{template}}}}}]"))

    (noted,) = [condition for condition in told(result).conditions if condition.type == "Deprecated"]
    assert [noted.message] == [finding.message for finding in result.findings if finding.code == "Deprecated"]


def test_a_generated_variant_is_told_whole() -> None:
    generated, *_ = room(variant_set("s", BOTH)).statuses

    assert str(generated.key) == "PackageVariant/default/s-berlin-gateway"
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
def test_what_expressions_see(expression: str, expected: str) -> None:
    template = f'template: {{labelExprs: [{{key: x, valueExpr: "{expression}"}}]}}'

    (item,) = room(variant_set("s", f"[{{repositories: [{{name: berlin}}], {template}}}]")).variants

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
def test_what_other_engines_may_not_know_is_noted(expression: str, expected: str | None) -> None:
    template = f'template: {{labelExprs: [{{key: x, valueExpr: "{expression}"}}]}}'

    findings = room(variant_set("s", f"[{{repositories: [{{name: berlin}}], {template}}}]")).findings

    notes = [(finding.severity, finding.message) for finding in findings if finding.code == "NotPortable"]
    words = "not standard CEL; other engines may reject it"
    assert notes == ([(Severity.INFO, f"{LABEL_EXPRESSION} uses {expected}, which is {words}")] if expected else [])


def test_what_other_engines_may_not_know_is_noted_where_it_stands() -> None:
    expression = "template: {labelExprs: [{key: x,\n    valueExpr: repository.name.upperAscii()}]}"

    (note,) = room(variant_set("s", f"[{{repositories: [{{name: berlin}}], {expression}}}]")).findings

    assert note.location.pointer == "/spec/targets/0/template/labelExprs/0/valueExpr"
    assert note.location.line > 1


def test_an_expression_that_an_upstream_overlays_is_noted_once() -> None:
    shared, own = (f"{{key: x, valueExpr: repository.name.{method}()}}" for method in ("upperAscii", "trim"))
    upstream = f"upstreams: [{{{V1}, template: {{annotationExprs: [{own}]}}}}]"
    targets = f"targets: [{{repositories: [{{name: berlin}}], template: {{labelExprs: [{shared}]}}}}]"
    header = "kind: PackageVariantSet\napiVersion: config.porch.kpt.dev/v1alpha2\nmetadata: {name: s}\n"

    notes = room(f"{header}spec: {{{upstream}, {targets}}}\n").findings

    assert [finding.message.split(", which")[0].rpartition(" uses ")[::2] for finding in notes] == [
        (LABEL_EXPRESSION, "upperAscii"),
        ("spec.targets[0].template with spec.upstreams[0].template.annotationExprs[0].valueExpr", "trim"),
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
def test_a_set_over_objects(text: str, expected: list[str]) -> None:
    result = room(variant_set("s", SITES), content=text)

    assert places(result) == expected
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
def test_a_definition_that_defines_something_else(spec: str) -> None:
    definition = f"{SITE_DEFINITION[: SITE_DEFINITION.index('spec:')]}spec: {spec}\n"

    assert ready(room(variant_set("s", SITES), content=definition)) == "False NoMatchingTargets"


def test_an_object_of_another_namespace_is_no_target() -> None:
    site = "kind: Site\napiVersion: fleet.example/v1\nmetadata: {name: lisbon, namespace: other}\n"

    assert places(room(variant_set("s", SITES), content=site)) == []


def test_upstreams_that_sets_share() -> None:
    shared = f"""\
apiVersion: reconciler.dev/v1alpha1
kind: PackageRevisionSet
metadata: {{name: base, namespace: default}}
spec: {{upstreams: [{{{V1}}}]}}
"""
    document = variant_set("s", BOTH, "upstreamSets: [base]\n").replace(f"  upstream: {{{V1}}}\n", "")

    assert places(room(document, content=shared)) == ["berlin/gateway", "lisbon/gateway"]


@pytest.mark.parametrize(
    ("document", "code", "line"),
    [
        pytest.param(variant_set("s", "[]"), "ValidationError", 8, id="no-target"),
        pytest.param(variant_set("s", BOTH, "errorPolicy: x\n"), "ValidationError", 9, id="an-invalid-field"),
        pytest.param(
            variant_set("s", "\n  - repositories: [{name: berlin}]\n    template: {downstream: {packageExpr: 'a b'}}"),
            "ValidationError",
            10,
            id="an-expression-that-is-none",
        ),
        pytest.param(
            variant_set(
                "s", "[{repositories: [{name: berlin}], template: {downstream: {packageExpr: \"target['x']\"}}}]"
            ),
            "RenderError",
            8,
            id="an-expression-that-fails",
        ),
        pytest.param(variant_set("s", "[{repositories: [{name: oslo}]}]"), "RenderError", 8, id="no-such-repository"),
        pytest.param(variant_set("s", SITES), "NoMatchingTargets", 8, id="a-kind-that-nobody-knows"),
        pytest.param(
            variant_set("s", BOTH, upstream=V1.replace("v1", "v7")), "UpstreamNotFound", 7, id="no-such-revision"
        ),
        pytest.param(
            variant_set("s", BOTH, upstream=V1.replace("catalog", "nowhere")),
            "UpstreamNotFound",
            7,
            id="no-such-upstream",
        ),
        pytest.param(
            variant_set("s", BOTH, upstream=V1.replace("catalog", "away")), "UpstreamUnreachable", 7, id="no-connection"
        ),
    ],
)
def test_a_set_that_fails_is_kept_as_it_was(document: str, code: str, line: int) -> None:
    result = room(document, variant("other"))

    (finding,) = result.findings
    assert (finding.code, finding.severity, finding.location.line) == (code, Severity.ERROR, line)
    assert (result.kept_owners, ready(result)) == (frozenset({SET}), f"False {code}")
    assert [item.owner.key.name for item in result.variants] == ["other"]


def test_one_failing_target_may_be_skipped() -> None:
    targets = "[{repositories: [{name: berlin}]}, {repositories: [{name: oslo}]}]"
    result = room(variant_set("s", targets, "errorPolicy: skipTarget\n"))

    assert places(result) == ["berlin/gateway"]
    assert [finding.code for finding in result.findings] == ["RenderError"]
    assert (result.kept_owners, ready(result)) == (frozenset({SET}), "False TargetsSkipped")
    assert told(result).fields["skipped"] == 1


@pytest.mark.parametrize(
    ("documents", "conflicting"),
    [
        pytest.param([variant("s-berlin-gateway")], ["s"], id="with-one-written-by-hand"),
        pytest.param(
            [variant("s-berlin-gateway").replace("metadata:\n", "metadata:\n  namespace: other\n")],
            [],
            id="not-with-one-of-another-namespace",
        ),
    ],
)
def test_names_that_are_taken(documents: list[str], conflicting: list[str]) -> None:
    result = room(variant_set("s", BOTH), *documents)

    assert [
        finding.location.object.rpartition("/")[2] for finding in result.findings if finding.code == "NameConflict"
    ] == conflicting
    assert {key.name for key in result.kept_owners} == set(conflicting)


def test_two_sets_that_come_to_one_name() -> None:
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
    first = variant_set("s", "[{repositories: [{name: a-b}]}]")
    second = variant_set("s-a", "[{repositories: [{name: b}]}]")

    result = room(second, first, content=repositories)

    assert [(item.owner.key.name, str(item.target)) for item in result.variants] == [("s-a-b-gateway", "a-b/gateway")]
    assert ready(result, "s-a") == "False NameConflict"


GONE = [DownstreamKey("lisbon", "a"), DownstreamKey("lisbon", "b")]


@pytest.mark.parametrize(
    ("document", "codes", "told_ready"),
    [
        pytest.param(
            variant_set("s", "[{repositories: [{name: berlin}]}]"), ["DeletionHeld"], "False DeletionHeld", id="held"
        ),
        pytest.param(
            variant_set(
                "s",
                "[{repositories: [{name: berlin}]}]",
                annotations=f'{{reconciler.dev/ack-deletions: "{compute_deletion_hash(GONE)}"}}',
            ),
            [],
            "True Reconciled",
            id="acknowledged",
        ),
        pytest.param(
            variant_set("s", "[{repositorySelector: {matchLabels: {region: west}}}]"),
            ["NoTargets"],
            "False NoTargets",
            id="all",
        ),
        pytest.param(
            variant_set(
                "s",
                "[{repositorySelector: {matchLabels: {region: west}}}]",
                annotations='{reconciler.dev/allow-empty: "true"}',
            ),
            ["NoMatch"],
            "True Reconciled",
            id="all-as-somebody-wishes",
        ),
    ],
)
def test_what_would_go_is_guarded(document: str, codes: list[str], told_ready: str) -> None:
    result = room(document, children={SET: [*GONE, DownstreamKey("berlin", "gateway")]})

    assert [finding.code for finding in result.findings] == codes
    assert ready(result) == told_ready


def test_no_match_is_a_warning() -> None:
    (finding,) = room(variant_set("s", "[{repositorySelector: {matchLabels: {region: west}}}]")).findings

    assert (finding.code, finding.severity) == ("NoMatch", Severity.WARNING)


@pytest.mark.parametrize(
    ("cel", "code"),
    [
        pytest.param(ExpressionLimits(), "", id="within"),
        pytest.param(ExpressionLimits(characters=5), "ValidationError", id="too-long-to-be-read"),
        pytest.param(ExpressionLimits(steps=1), "RenderError", id="too-costly-to-be-evaluated"),
    ],
)
def test_what_an_expression_may_cost(cel: ExpressionLimits, code: str) -> None:
    template = "template: {downstream: {packageExpr: \"'a' + 'b' + packageDefault\"}}"

    result = room(variant_set("s", f"[{{repositories: [{{name: berlin}}], {template}}}]"), cel=cel)

    assert [finding.code for finding in result.findings] == ([code] if code else [])
    assert places(result) == ([] if code else ["berlin/abgateway"])


def test_a_revision_is_described_once_for_all_sets() -> None:
    world = World()

    room(variant_set("s", BOTH), variant_set("t", "[{repositories: [{name: berlin, packageNames: [x]}]}]"), world=world)

    assert set(world.asked) == {"catalog"}
