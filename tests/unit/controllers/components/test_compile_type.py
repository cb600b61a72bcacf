"""Tests of the compilation of component types: all steps, the errors of each step, and the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from reconciler.controllers.results import ControllerResult
from reconciler.krm.yaml import parse_yaml
from tests.unit.controllers.components.component_builders import (
    addon,
    allowed,
    annotate,
    annotator,
    component,
    component_type,
    create,
    definition,
    find_finding,
    find_status,
    list_codes,
    list_findings,
    manifest,
    platform,
    read_ready,
    reconcile,
    resource,
    schema,
)

STALL = definition()
Spec = Mapping[str, Any]


def addon_with_parameters(name: str, side: str = "", **fields: Any) -> str:
    """Return an addon with this schema of parameters."""
    return addon(name, {"schema": schema(fields), "patches": [annotate(name)]}, side=side)


def addon_with_order(name: str, side: str = "", **order: Iterable[str]) -> str:
    return annotator(name, side, dependencies={"loadOrder": {key: list(names) for key, names in order.items()}})


def addon_with_conflict(name: str, other: str, side: str = "") -> str:
    return annotator(name, side, dependencies={"conflictsWith": [{"addon": other, "reason": "no room"}]})


def addon_with_targets(name: str, *targets: Any, side: str = "") -> str:
    return annotator(name, side, targets=list(targets))


JOB = addon(
    "maker", {"creates": [create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}, id="j")]}
)
A, B, BOTH = platform("a", "x"), platform("b", "x"), [allowed("a"), allowed("b")]


def type_with_addons(*listed: Any, allow: Iterable[Any] = (), **more: Any) -> str:
    return component_type(*listed, allow=allow, **more)


@pytest.mark.parametrize(
    ("texts", "code", "message", "line"),
    [
        # Step 1: references to definitions and addons.
        pytest.param(
            [type_with_addons(definition="none")],
            "DefinitionNotFound",
            'no ComponentDefinition has the name "none"; existing names: "stall',
            7,
            id="1-no-definition",
        ),
        pytest.param(
            [type_with_addons(A)],
            "AddonNotFound",
            'no Addon has the name "a"; existing names: none',
            9,
            id="1-no-platform-addon",
        ),
        pytest.param(
            [type_with_addons(allow=[allowed("a")])],
            "AddonNotFound",
            'no Addon has the name "',
            10,
            id="1-no-allowed-addon",
        ),
        pytest.param(
            [type_with_addons(componentDefinitionRef={"name": "stall", "version": "2"})],
            "DefinitionVersionMismatch",
            'is "2", but ComponentDefinition stall has no version; remove the field',
            8,
            id="1-no-version",
        ),
        # Step 2: roles that can use an addon.
        pytest.param(
            [annotator("a", "developer"), type_with_addons(A)],
            "AddonNotAllowed",
            "of Addon a does not allow platform engineers",
            9,
            id="2-row-49-for-developers-alone",
        ),
        pytest.param(
            [annotator("a"), type_with_addons(allow=[allowed("a")])],
            "AddonNotAllowed",
            "of Addon a does not allow developers",
            10,
            id="2-for-engineers-alone",
        ),
        # Step 3: instance IDs and keys.
        pytest.param(
            [annotator("a"), type_with_addons(platform("a"), A)],
            "InstanceIdMissing",
            'the addon "a" has 2 instances, and each of them',
            9,
            id="3-no-id",
        ),
        pytest.param(
            [annotator("a"), type_with_addons(platform("a", "default"), platform("a"))],
            "InstanceIdMissing",
            'the addon "a" has 2 instances',
            11,
            id="3-no-id-beside-one-that-it-would-have",
        ),
        pytest.param(
            [annotator("a"), type_with_addons(A, A)],
            "InstanceIdDuplicate",
            '/x" is declared twice',
            12,
            id="3-one-id-twice",
        ),
        pytest.param(
            [annotator("3a", "developer"), type_with_addons(allow=[allowed("3a")])],
            "AddonKeyInvalid",
            'the name of the addon "3a" results in the key "3a", which is not a valid field name',
            10,
            id="3-no-key",
        ),
        # Step 4: values of addons.
        pytest.param(
            [annotator("a"), type_with_addons(platform("a", "x", {"n": 1}))],
            "UnknownField",
            "config.n is an unknown",
            12,
            id="4-config",
        ),
        pytest.param(
            [addon_with_parameters("a", n="integer"), type_with_addons(platform("a", "x", {"n": "y"}))],
            "SchemaValidation",
            'spec.platformAddons[0].config.n must be an integer, but is "y"',
            12,
            id="4-type",
        ),
        pytest.param(
            [addon_with_parameters("a", n="integer | required=true"), type_with_addons(A)],
            "SchemaValidation",
            "spec.platformAddons[0].config.n is missing; set it to an integer",
            9,
            id="4-required",
        ),
        pytest.param(
            [addon_with_parameters("a", n="string"), type_with_addons(platform("a", "x", {"n": "${spec.a}"}))],
            "ConfigExpressionNotAllowed",
            "spec.platformAddons[0].config.n must not contain an expression, because only templates can contain expressions",
            12,
            id="4-expression",
        ),
        pytest.param(
            [
                addon_with_parameters("a", n="object"),
                type_with_addons(platform("a", "x", {"n": {"m": ["x", "a ${b}"]}})),
            ],
            "ConfigExpressionNotAllowed",
            "config.n.m[1] must not contain an expression",
            15,
            id="4-expression-deep-inside",
        ),
        pytest.param(
            [addon_with_parameters("a", "developer", n="integer"), type_with_addons(allow=[allowed("a", {"n": "y"})])],
            "SchemaValidation",
            "spec.developerAddons.allowed[0].defaults.n must be an integer",
            12,
            id="4-defaults",
        ),
        pytest.param(
            [addon_with_parameters("a", "developer"), type_with_addons(allow=[allowed("a", {"n": 1})])],
            "UnknownField",
            "defaults.n is an unknown",
            12,
            id="4-unknown-defaults",
        ),
        pytest.param(
            [
                addon_with_parameters("a", "developer", n="string"),
                type_with_addons(allow=[allowed("a", {"n": "${x}"})]),
            ],
            "ConfigExpressionNotAllowed",
            "defaults.n must not contain an expression",
            12,
            id="4-expression-in-defaults",
        ),
        pytest.param(
            [annotator("a"), type_with_addons(platform("a", "x", condition="${instanceId == 'x'}"))],
            "CelUndeclared",
            "spec.platformAddons[0].condition has the expression",
            11,
            id="4-condition-sees-the-component",
        ),
        pytest.param(
            [type_with_addons(validation={"rules": [{"expression": "spec.n > 1"}]})],
            "CelUndefinedField",
            "spec.validation.rules[0].expression has the expression",
            10,
            id="4-rule",
        ),
        # Step 5: compatible targets.
        pytest.param(
            [addon_with_targets("a", {"resourceType": "Job"}), type_with_addons(A)],
            "AddonIncompatible",
            "Addon a is not compatible, because its spec.targets match no resource in ComponentDefinition stall",
            9,
            id="5-fits-nothing",
        ),
        pytest.param(
            [addon_with_targets("a", {"resourceType": "Job"}, {"resourceId": "side"}), type_with_addons(A)],
            "AddonIncompatible",
            "its spec.targets match no resource",
            9,
            id="5-none-of-several",
        ),
        pytest.param(
            [
                addon_with_targets("a", {"resourceType": "Job"}, side="developer"),
                type_with_addons(allow=[allowed("a")]),
            ],
            "AddonIncompatible",
            "Addon a is not compatible",
            10,
            id="5-allowed",
        ),
        pytest.param(
            [
                addon_with_targets("a", {"resourceType": "Job"}),
                addon("b", {"creates": [create({"apiVersion": "batch/v1", "kind": "Job"})]}, side="developer"),
                type_with_addons(A, allow=[allowed("b")]),
            ],
            "AddonIncompatible",
            "its spec.targets match no resource",
            9,
            id="5-resources-of-developer-addons-can-be-absent",
        ),
        # Step 6: requirements and conflicts.
        pytest.param(
            [annotator("a", requires=["b"]), type_with_addons(A)],
            "AddonRequirementMissing",
            'the addon "a" requires the addon "b", but "b" is not in use',
            9,
            id="6-required",
        ),
        pytest.param(
            [annotator("a", requires=["b"]), annotator("b", "developer"), type_with_addons(A, allow=[allowed("b")])],
            "AddonRequirementMissing",
            'the addon "a" requires the addon "b"',
            9,
            id="6-by-a-platform-addon-of-developers",
        ),
        pytest.param(
            [annotator("a", "developer", requires=["b"]), annotator("b"), type_with_addons(allow=[allowed("a")])],
            "AddonRequirementMissing",
            'the addon "a" requires the addon "b"',
            10,
            id="6-not-in-this-type",
        ),
        pytest.param(
            [addon_with_conflict("a", "b"), annotator("b"), type_with_addons(A, B)],
            "AddonConflict",
            '" excludes the addon "b" (reason: "no room"), but both addons are in use',
            9,
            id="6-row-48-the-first-excludes",
        ),
        pytest.param(
            [annotator("a"), addon_with_conflict("b", "a"), type_with_addons(A, B)],
            "AddonConflict",
            '" excludes the addon "a" (reason: "no room"), but both addons are in use',
            11,
            id="6-row-48-the-second-excludes",
        ),
        pytest.param(
            [addon_with_conflict("a", "b"), annotator("b", "developer"), type_with_addons(A, allow=[allowed("b")])],
            "AddonConflict",
            '" excludes the addon "',
            9,
            id="6-a-platform-addon-excludes-an-allowed-one",
        ),
        pytest.param(
            [annotator("a"), addon_with_conflict("b", "a", "developer"), type_with_addons(A, allow=[allowed("b")])],
            "AddonConflict",
            '" excludes the addon "',
            13,
            id="6-an-allowed-one-excludes-a-platform-addon",
        ),
        # Step 7: order.
        pytest.param(
            [addon_with_order("a", before=["b"]), addon_with_order("b", before=["a"]), type_with_addons(A, B)],
            "AddonOrderCycle",
            'a → b → a; causes of the cycle: "a" has loadOrder.before "b", "b" has loadOrder.before "a"',
            8,
            id="7-row-47-a-cycle",
        ),
        pytest.param(
            [annotator("a", requires=["a"]), type_with_addons(A)],
            "AddonOrderCycle",
            'a → a; causes of the cycle: "a" requires "a"',
            8,
            id="7-row-45-itself",
        ),
        pytest.param(
            [
                addon_with_order("a", "developer", after=["b"]),
                addon_with_order("b", "developer", after=["a"]),
                type_with_addons(allow=BOTH),
            ],
            "AddonOrderCycle",
            "spec.developerAddons.allowed must not contain a cycle in the order of addons",
            9,
            id="7-allowed",
        ),
        pytest.param(
            [
                addon_with_order("a", after=["b"]),
                annotator("b", "developer"),
                type_with_addons(A, allow=[allowed("b")]),
            ],
            "LoadOrderUnsatisfiable",
            'spec uses the platform addon "a", whose loadOrder.after contains the developer addon "b", but platform addons',
            5,
            id="7-a-platform-addon-after-an-allowed-one",
        ),
        pytest.param(
            [
                annotator("a"),
                addon_with_order("b", "developer", before=["a"]),
                type_with_addons(A, allow=[allowed("b")]),
            ],
            "LoadOrderUnsatisfiable",
            'spec uses the developer addon "b", whose loadOrder.before contains the platform addon "a", but platform addons',
            5,
            id="7-an-allowed-one-before-a-platform-addon",
        ),
        # Step 8: keys in the developer schema.
        pytest.param(
            [
                annotator("a-b", "developer"),
                annotator("a.b", "developer"),
                type_with_addons(allow=[allowed("a-b"), allowed("a.b")]),
            ],
            "AddonKeyCollision",
            'results in the key "aB", which is also the key of another addon',
            11,
            id="8-two-keys",
        ),
    ],
)
def test_type_with_errors_is_not_ready(texts: list[str], code: str, message: str, line: int) -> None:
    result = reconcile([STALL, *texts])

    assert list_codes(result) == [code]
    output = next(item for item in list_findings(result) if item.code == code)
    assert message in output.message
    assert (output.location.object, output.location.line) == ("ComponentType/_cluster/market-stall", line)
    assert read_ready(result, "ComponentType", "market-stall") == ("False", code)
    assert find_status(result, "ComponentType", "market-stall").files is None


def test_row_50_addon_key_equal_to_a_definition_field() -> None:
    stall = definition(values=schema({}, {"aB": "string"}))
    result = reconcile([stall, annotator("a-b", "developer"), type_with_addons(allow=[allowed("a-b")])])

    assert list_codes(result) == ["AddonKeyCollision"]
    assert (
        'results in the key "aB", which is also a field of the component definition'
        in find_finding(result, "AddonKeyCollision").message
    )


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([annotator("a", "both"), type_with_addons(A, allow=[allowed("a")])], id="2-one-addon-for-both"),
        pytest.param([annotator("a"), type_with_addons(A, platform("a", "y"))], id="3-two-instances"),
        pytest.param([annotator("3a"), type_with_addons(platform("3a", "x"))], id="3-platform-addons-need-no-key"),
        pytest.param(
            [addon_with_parameters("a", n="integer"), type_with_addons(platform("a", "x", {"n": None}))],
            id="4-null-is-absent",
        ),
        pytest.param(
            [
                addon_with_parameters("a", "developer", n="string | required=true", m="string"),
                type_with_addons(allow=[allowed("a", {"m": "x"})]),
            ],
            id="4-developers-can-set-required-fields",
        ),
        pytest.param([annotator("a", targets=[]), type_with_addons(A)], id="5-no-targets-no-check"),
        pytest.param(
            [addon_with_targets("a", {"resourceType": "Job"}, {"resourceType": "ConfigMap"}), type_with_addons(A)],
            id="5-any-of",
        ),
        pytest.param(
            [
                addon_with_targets("a", {"resourceType": ["StatefulSet", "Deployment", "ConfigMap"]}),
                type_with_addons(A),
            ],
            id="5-row-44-several-kinds",
        ),
        pytest.param(
            [addon_with_targets("a", {"resourceId": "${addon.name}"}), type_with_addons(A)],
            id="5-a-templated-target-can-match",
        ),
        pytest.param(
            [JOB, addon_with_targets("a", {"resourceType": "Job"}), type_with_addons(A, platform("maker", "x"))],
            id="5-a-created-resource",
        ),
        pytest.param([addon_with_targets("a", {"resourceType": "*"}), type_with_addons(A)], id="5-any-kind"),
        pytest.param([annotator("a", requires=["b"]), annotator("b"), type_with_addons(A, B)], id="6-required"),
        pytest.param(
            [annotator("a", "developer", requires=["b"]), annotator("b"), type_with_addons(B, allow=[allowed("a")])],
            id="6-required-of-a-platform-addon",
        ),
        pytest.param(
            [annotator("a", "developer", requires=["b"]), annotator("b", "developer"), type_with_addons(allow=BOTH)],
            id="6-required-of-an-allowed-one",
        ),
        pytest.param(
            [addon_with_conflict("a", "a"), type_with_addons(A, platform("a", "y"))],
            id="6-conflict-with-itself-has-no-effect",
        ),
        pytest.param([addon_with_conflict("a", "gone"), type_with_addons(A)], id="6-conflict-with-an-absent-addon"),
        pytest.param(
            [addon_with_order("a", after=["gone"], before=["far"]), type_with_addons(A)],
            id="7-row-46-order-of-absent-addons",
        ),
        pytest.param(
            [addon_with_order("a", after=["b"]), annotator("b", "both"), type_with_addons(A, B, allow=[allowed("b")])],
            id="7-after-one-that-is-on-both-sides",
        ),
        pytest.param(
            [
                definition(labels={"version": "2"}, name="other"),
                component_type(componentDefinitionRef={"name": "other", "version": "2"}),
            ],
            id="1-the-requested-version",
        ),
    ],
)
def test_valid_type_is_ready(texts: list[str]) -> None:
    result = reconcile([STALL, *texts])

    assert list_codes(result, without=("InstanceIdImplicit", "AddonEmpty")) == []
    assert read_ready(result, "ComponentType", "market-stall") == ("True", "Compiled")


def test_conflict_of_allowed_addons_is_a_warning() -> None:
    result = reconcile(
        [STALL, addon_with_conflict("a", "b", "developer"), annotator("b", "developer"), type_with_addons(allow=BOTH)]
    )

    assert [(item.code, item.severity) for item in list_findings(result)] == [("AddonConflict", "warning")]
    assert read_ready(result, "ComponentType", "market-stall") == ("True", "Compiled")


def test_missing_instance_id_is_an_info() -> None:
    result = reconcile([STALL, annotator("a"), annotator("b"), type_with_addons(platform("a"), B)])

    (item,) = list_findings(result)
    assert (item.code, item.severity) == ("InstanceIdImplicit", "info")
    assert item.message == (
        'the addon "a" has no instanceId, so the ID of the instance is "default"; set instanceId, so that resource names stay the same when a second'
        " instance is added"
    )


STEPS: list[tuple[str, list[str], Spec]] = [
    ("AddonNotFound", [], {"platform": [platform("gone", "x")]}),
    ("AddonNotAllowed", [annotator("side", "developer")], {"platform": [platform("side", "x")]}),
    ("InstanceIdDuplicate", [annotator("twice")], {"platform": [platform("twice", "x"), platform("twice", "x")]}),
    ("UnknownField", [annotator("config")], {"platform": [platform("config", "x", {"n": 1})]}),
    ("AddonIncompatible", [addon_with_targets("fit", {"resourceType": "Job"})], {"platform": [platform("fit", "x")]}),
    ("AddonRequirementMissing", [annotator("needs", requires=["none"])], {"platform": [platform("needs", "x")]}),
    ("AddonOrderCycle", [addon_with_order("circle", after=["circle"])], {"platform": [platform("circle", "x")]}),
    ("AddonKeyCollision", [annotator("key", "developer")], {"allow": [allowed("key")]}),
]


@pytest.mark.parametrize("first", range(len(STEPS)), ids=[code for code, _, _ in STEPS])
def test_errors_of_later_steps_are_not_reported(first: int) -> None:
    """All errors of the first step with errors are reported, and no errors of later steps."""
    later = STEPS[first:]
    listed = [use for _, _, uses_ in later for use in uses_.get("platform", ())]
    allow = [use for _, _, uses_ in later for use in uses_.get("allow", ())]
    texts = [text for _, texts, _ in later for text in texts]
    stall = definition(values=schema({"key": "string"}))

    result = reconcile([stall, *texts, type_with_addons(*listed, allow=allow)])

    assert list_codes(result) == [STEPS[first][0]]


def test_all_errors_of_one_step_are_reported() -> None:
    texts = [annotator("a", requires=["c"]), addon_with_conflict("b", "a")]
    result = reconcile([STALL, *texts, type_with_addons(A, B)])

    assert list_codes(result) == ["AddonConflict", "AddonRequirementMissing"]


def compile_type() -> ControllerResult:
    """Return the result for a type with three platform addon instances and two allowed addons."""
    disk = addon(
        "disk",
        {
            "schema": schema({"path": "string | required=true"}, {"size": "string | default=1Gi"}),
            "patches": [annotate("d")],
        },
        labels={"version": "1.2"},
    )
    awning = addon(
        "awning",
        {"description": "Keeps rain away", "schema": schema({"cloth": "string"}, {"open": "boolean | default=true"}),
         "patches": [annotate("a")]}, side="developer",
    )  # fmt: skip
    last = addon_with_order("a-last", after=["disk"])
    listed = [platform("a-last", "x"), platform("disk", "b", {"path": "/b", "size": "2Gi"}),
              platform("disk", "a", {"path": "/a"})]  # fmt: skip
    kind = type_with_addons(
        *listed, allow=[allowed("awning", {"cloth": "red"}), allowed("stool", description="To sit on")]
    )
    stool = annotator("stool", "developer", description="A stool")
    stall = definition(values=schema({"tables": "integer | required=true"}), labels={"version": "7"})
    return reconcile([stall, disk, awning, stool, last, kind, component({"tables": 1})])


def test_status_of_a_type() -> None:
    config_status = find_status(compile_type(), "ComponentType", "market-stall")

    assert config_status.fields["generatedCRD"] == {"apiVersion": "platform/v1alpha1", "kind": "MarketStall"}
    applied: Any = config_status.fields["appliedPlatformAddons"]
    assert [(item["name"], item["instanceId"], item["version"]) for item in applied] == [
        ("disk", "a", "1.2"), ("disk", "b", "1.2"), ("a-last", "x", ""),
    ]  # fmt: skip
    allowed_ones: Any = config_status.fields["developerAddons"]
    assert [(allowed_one["name"], allowed_one["key"], allowed_one["version"]) for allowed_one in allowed_ones] == [
        ("awning", "awning", ""), ("stool", "stool", ""),
    ]  # fmt: skip
    assert all(item["digest"].startswith("sha256:") for item in (*applied, *allowed_ones))
    assert [(condition.type, condition.status, condition.reason) for condition in config_status.conditions] == [
        ("Ready", "True", "Compiled"),
        ("InstancesValid", "True", "Valid"),
    ]


def test_files_of_a_type() -> None:
    files = find_status(compile_type(), "ComponentType", "market-stall").files
    assert files is not None
    crd, plan, spec = (parse_yaml(files[name]).documents[0].data for name in ("crd.yaml", "plan.yaml", "schema.json"))

    assert crd["metadata"]["name"] == "marketstalls.platform"
    of_spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert list(of_spec["properties"]) == ["awning", "stool", "tables"]
    assert of_spec["required"] == ["tables"]
    awning = of_spec["properties"]["awning"]
    assert awning["description"] == "Keeps rain away"
    assert awning["properties"]["cloth"] == {"type": "string", "default": "red"}
    assert "default" not in awning
    assert of_spec["properties"]["stool"]["description"] == "To sit on"
    assert spec["properties"]["tables"] == {"type": "integer"}
    assert plan["definition"]["version"] == "7"
    assert [platform_addon["config"] for platform_addon in plan["platformAddons"]] == [
        {"path": "/a", "size": "1Gi"}, {"path": "/b", "size": "2Gi"}, {},
    ]  # fmt: skip


def test_new_required_field_makes_components_invalid_but_not_the_type() -> None:
    """Row 53: the type stays ready."""
    stall = definition(values=schema({"tables": "integer | required=true"}))
    result = reconcile([stall, component_type(), component(), component({"tables": 2}, "cake")])

    assert list_codes(result) == ["SchemaValidation"]
    ready_, instances = find_status(result, "ComponentType", "market-stall").conditions
    assert (ready_.status, instances.status, instances.reason) == ("True", "False", "SchemaValidation")
    assert instances.message.startswith("1 of 2 components is not valid: MarketStall square/bread: ")


def test_type_without_addons_and_with_many_resources_is_ready() -> None:
    resources = [resource(manifest(name=f"n{number}"), f"r{number}") for number in range(30)]

    assert (
        read_ready(reconcile([definition(*resources), component_type()]), "ComponentType", "market-stall")[0] == "True"
    )
