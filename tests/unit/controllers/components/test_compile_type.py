"""Compiling a type: every step, what stops it, and what it leaves behind (openchoreo 11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from reconciler.controllers.results import ControllerResult
from reconciler.krm.yaml import parse_yaml
from tests.unit.controllers.components.component_builders import (
    addon,
    allowed,
    component,
    component_type,
    create,
    definition,
    finding,
    findings,
    made,
    note,
    patching,
    platform,
    ready,
    resource,
    room,
    schema,
    status,
    told,
)

STALL = definition()
Spec = Mapping[str, Any]


def declaring(name: str, side: str = "", **fields: Any) -> str:
    """Return an addon with this schema of parameters."""
    return addon(name, {"schema": schema(fields), "patches": [note(name)]}, side=side)


def ordered(name: str, side: str = "", **order: Iterable[str]) -> str:
    return patching(name, side, dependencies={"loadOrder": {key: list(names) for key, names in order.items()}})


def excluding(name: str, other: str, side: str = "") -> str:
    return patching(name, side, dependencies={"conflictsWith": [{"addon": other, "reason": "no room"}]})


def fitting(name: str, *targets: Any, side: str = "") -> str:
    return patching(name, side, targets=list(targets))


JOB = addon(
    "maker", {"creates": [create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}, id="j")]}
)
A, B, BOTH = platform("a", "x"), platform("b", "x"), [allowed("a"), allowed("b")]


def uses(*listed: Any, allow: Iterable[Any] = (), **more: Any) -> str:
    return component_type(*listed, allow=allow, **more)


@pytest.mark.parametrize(
    ("texts", "code", "message", "line"),
    [
        # 1
        pytest.param(
            [uses(definition="none")],
            "DefinitionNotFound",
            "no ComponentDefinition has the name none; existing: stall",
            7,
            id="1-no-definition",
        ),
        pytest.param(
            [uses(A)], "AddonNotFound", "no Addon has the name a; existing: none", 9, id="1-no-platform-addon"
        ),
        pytest.param(
            [uses(allow=[allowed("a")])], "AddonNotFound", "no Addon has the name a", 10, id="1-no-allowed-addon"
        ),
        pytest.param(
            [uses(componentDefinitionRef={"name": "stall", "version": "2"})],
            "DefinitionVersionMismatch",
            'must be the version of the definition, "", not "2"',
            8,
            id="1-no-version",
        ),
        # 2
        pytest.param(
            [patching("a", "developer"), uses(A)],
            "AddonNotAllowed",
            "of Addon/_cluster/a does not allow platform engineers",
            9,
            id="2-row-49-for-developers-alone",
        ),
        pytest.param(
            [patching("a"), uses(allow=[allowed("a")])],
            "AddonNotAllowed",
            "of Addon/_cluster/a does not allow developers",
            10,
            id="2-for-engineers-alone",
        ),
        # 3
        pytest.param(
            [patching("a"), uses(platform("a"), A)],
            "InstanceIdMissing",
            "a has 2 instances, so each of them",
            9,
            id="3-no-id",
        ),
        pytest.param(
            [patching("a"), uses(platform("a", "default"), platform("a"))],
            "InstanceIdMissing",
            "a has 2 instances",
            11,
            id="3-no-id-beside-one-that-it-would-have",
        ),
        pytest.param(
            [patching("a"), uses(A, A)], "InstanceIdDuplicate", "a/x is declared twice", 12, id="3-one-id-twice"
        ),
        pytest.param(
            [patching("3a", "developer"), uses(allow=[allowed("3a")])],
            "AddonKeyInvalid",
            "of the addon 3a is not a valid field name",
            10,
            id="3-no-key",
        ),
        # 4
        pytest.param(
            [patching("a"), uses(platform("a", "x", {"n": 1}))],
            "UnknownField",
            "config.n is unknown",
            12,
            id="4-config",
        ),
        pytest.param(
            [declaring("a", n="integer"), uses(platform("a", "x", {"n": "y"}))],
            "SchemaValidation",
            'spec.platformAddons[0].config.n must be an integer, not "y"',
            12,
            id="4-type",
        ),
        pytest.param(
            [declaring("a", n="integer | required=true"), uses(A)],
            "SchemaValidation",
            "spec.platformAddons[0].config.n must be set",
            9,
            id="4-required",
        ),
        pytest.param(
            [declaring("a", n="string"), uses(platform("a", "x", {"n": "${spec.a}"}))],
            "ConfigExpressionNotAllowed",
            "spec.platformAddons[0].config.n must be a plain value; only templates can contain expressions",
            12,
            id="4-expression",
        ),
        pytest.param(
            [declaring("a", n="object"), uses(platform("a", "x", {"n": {"m": ["x", "a ${b}"]}}))],
            "ConfigExpressionNotAllowed",
            "config.n.m[1] must be a plain value",
            15,
            id="4-expression-deep-inside",
        ),
        pytest.param(
            [declaring("a", "developer", n="integer"), uses(allow=[allowed("a", {"n": "y"})])],
            "SchemaValidation",
            "spec.developerAddons.allowed[0].defaults.n must be an integer",
            12,
            id="4-defaults",
        ),
        pytest.param(
            [declaring("a", "developer"), uses(allow=[allowed("a", {"n": 1})])],
            "UnknownField",
            "defaults.n is unknown",
            12,
            id="4-unknown-defaults",
        ),
        pytest.param(
            [declaring("a", "developer", n="string"), uses(allow=[allowed("a", {"n": "${x}"})])],
            "ConfigExpressionNotAllowed",
            "defaults.n must be a plain value",
            12,
            id="4-expression-in-defaults",
        ),
        pytest.param(
            [patching("a"), uses(platform("a", "x", condition="${instanceId == 'x'}"))],
            "CelUndeclared",
            "spec.platformAddons[0].condition has the expression",
            11,
            id="4-condition-sees-the-component",
        ),
        pytest.param(
            [uses(validation={"rules": [{"expression": "spec.n > 1"}]})],
            "CelUndefinedField",
            "spec.validation.rules[0].expression has the expression",
            10,
            id="4-rule",
        ),
        # 5
        pytest.param(
            [fitting("a", {"resourceType": "Job"}), uses(A)],
            "AddonIncompatible",
            "Addon/_cluster/a is not compatible: its spec.targets match no resource in ComponentDefinition/_cluster/stall",
            9,
            id="5-fits-nothing",
        ),
        pytest.param(
            [fitting("a", {"resourceType": "Job"}, {"resourceId": "side"}), uses(A)],
            "AddonIncompatible",
            "its spec.targets match no resource",
            9,
            id="5-none-of-several",
        ),
        pytest.param(
            [fitting("a", {"resourceType": "Job"}, side="developer"), uses(allow=[allowed("a")])],
            "AddonIncompatible",
            "Addon/_cluster/a is not compatible",
            10,
            id="5-allowed",
        ),
        pytest.param(
            [
                fitting("a", {"resourceType": "Job"}),
                addon("b", {"creates": [create({"apiVersion": "batch/v1", "kind": "Job"})]}, side="developer"),
                uses(A, allow=[allowed("b")]),
            ],
            "AddonIncompatible",
            "its spec.targets match no resource",
            9,
            id="5-what-developers-addons-create-may-be-absent",
        ),
        # 6
        pytest.param(
            [patching("a", requires=["b"]), uses(A)],
            "AddonRequirementMissing",
            "a requires b, which is not in use",
            9,
            id="6-required",
        ),
        pytest.param(
            [patching("a", requires=["b"]), patching("b", "developer"), uses(A, allow=[allowed("b")])],
            "AddonRequirementMissing",
            "a requires b",
            9,
            id="6-by-a-platform-addon-of-developers",
        ),
        pytest.param(
            [patching("a", "developer", requires=["b"]), patching("b"), uses(allow=[allowed("a")])],
            "AddonRequirementMissing",
            "a requires b",
            10,
            id="6-not-in-this-type",
        ),
        pytest.param(
            [excluding("a", "b"), patching("b"), uses(A, B)],
            "AddonConflict",
            "a excludes b, but both are in use (no",
            9,
            id="6-row-48-the-first-excludes",
        ),
        pytest.param(
            [patching("a"), excluding("b", "a"), uses(A, B)],
            "AddonConflict",
            "b excludes a, but both are in use",
            11,
            id="6-row-48-the-second-excludes",
        ),
        pytest.param(
            [excluding("a", "b"), patching("b", "developer"), uses(A, allow=[allowed("b")])],
            "AddonConflict",
            "a excludes b",
            9,
            id="6-a-platform-addon-excludes-an-allowed-one",
        ),
        pytest.param(
            [patching("a"), excluding("b", "a", "developer"), uses(A, allow=[allowed("b")])],
            "AddonConflict",
            "b excludes a",
            13,
            id="6-an-allowed-one-excludes-a-platform-addon",
        ),
        # 7
        pytest.param(
            [ordered("a", before=["b"]), ordered("b", before=["a"]), uses(A, B)],
            "AddonOrderCycle",
            "a → b → a (a loadOrder.before b, b loadOrder.before a)",
            8,
            id="7-row-47-a-circle",
        ),
        pytest.param(
            [patching("a", requires=["a"]), uses(A)], "AddonOrderCycle", "a → a (a requires a)", 8, id="7-row-45-itself"
        ),
        pytest.param(
            [ordered("a", "developer", after=["b"]), ordered("b", "developer", after=["a"]), uses(allow=BOTH)],
            "AddonOrderCycle",
            "spec.developerAddons.allowed must not declare a cycle in the order of addons",
            9,
            id="7-allowed",
        ),
        pytest.param(
            [ordered("a", after=["b"]), patching("b", "developer"), uses(A, allow=[allowed("b")])],
            "LoadOrderUnsatisfiable",
            "a loadOrder.after b",
            5,
            id="7-a-platform-addon-after-an-allowed-one",
        ),
        pytest.param(
            [patching("a"), ordered("b", "developer", before=["a"]), uses(A, allow=[allowed("b")])],
            "LoadOrderUnsatisfiable",
            "b loadOrder.before a",
            5,
            id="7-an-allowed-one-before-a-platform-addon",
        ),
        # 8
        pytest.param(
            [patching("a-b", "developer"), patching("a.b", "developer"), uses(allow=[allowed("a-b"), allowed("a.b")])],
            "AddonKeyCollision",
            "has the key aB, which is also the key of another addon",
            11,
            id="8-two-keys",
        ),
    ],
)
def test_types_that_cannot_be_compiled(texts: list[str], code: str, message: str, line: int) -> None:
    result = room([STALL, *texts])

    assert told(result) == [code]
    output = next(item for item in findings(result) if item.code == code)
    assert message in output.message
    assert (output.location.object, output.location.line) == ("ComponentType/_cluster/market-stall", line)
    assert ready(result, "ComponentType", "market-stall") == ("False", code)
    assert status(result, "ComponentType", "market-stall").files is None


def test_row_50_a_key_that_is_a_field_of_the_definition() -> None:
    stall = definition(values=schema({}, {"aB": "string"}))
    result = room([stall, patching("a-b", "developer"), uses(allow=[allowed("a-b")])])

    assert told(result) == ["AddonKeyCollision"]
    assert "has the key aB, which is also a field of the definition" in finding(result, "AddonKeyCollision").message


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([patching("a", "both"), uses(A, allow=[allowed("a")])], id="2-one-addon-for-both"),
        pytest.param([patching("a"), uses(A, platform("a", "y"))], id="3-two-instances"),
        pytest.param([patching("3a"), uses(platform("3a", "x"))], id="3-platform-addons-need-no-key"),
        pytest.param([declaring("a", n="integer"), uses(platform("a", "x", {"n": None}))], id="4-null-is-absent"),
        pytest.param(
            [
                declaring("a", "developer", n="string | required=true", m="string"),
                uses(allow=[allowed("a", {"m": "x"})]),
            ],
            id="4-what-is-required-developers-may-give",
        ),
        pytest.param([patching("a", targets=[]), uses(A)], id="5-no-targets-no-check"),
        pytest.param([fitting("a", {"resourceType": "Job"}, {"resourceType": "ConfigMap"}), uses(A)], id="5-any-of"),
        pytest.param(
            [fitting("a", {"resourceType": ["StatefulSet", "Deployment", "ConfigMap"]}), uses(A)],
            id="5-row-44-several-kinds",
        ),
        pytest.param([fitting("a", {"resourceId": "${addon.name}"}), uses(A)], id="5-what-is-templated-may-fit"),
        pytest.param(
            [JOB, fitting("a", {"resourceType": "Job"}), uses(A, platform("maker", "x"))], id="5-what-is-created"
        ),
        pytest.param([fitting("a", {"resourceType": "*"}), uses(A)], id="5-any-kind"),
        pytest.param([patching("a", requires=["b"]), patching("b"), uses(A, B)], id="6-required"),
        pytest.param(
            [patching("a", "developer", requires=["b"]), patching("b"), uses(B, allow=[allowed("a")])],
            id="6-required-of-a-platform-addon",
        ),
        pytest.param(
            [patching("a", "developer", requires=["b"]), patching("b", "developer"), uses(allow=BOTH)],
            id="6-required-of-an-allowed-one",
        ),
        pytest.param([excluding("a", "a"), uses(A, platform("a", "y"))], id="6-who-excludes-itself-excludes-nobody"),
        pytest.param([excluding("a", "gone"), uses(A)], id="6-who-is-not-there"),
        pytest.param([ordered("a", after=["gone"], before=["far"]), uses(A)], id="7-row-46-who-is-not-there"),
        pytest.param(
            [ordered("a", after=["b"]), patching("b", "both"), uses(A, B, allow=[allowed("b")])],
            id="7-after-one-that-is-on-both-sides",
        ),
        pytest.param(
            [
                definition(labels={"version": "2"}, name="other"),
                component_type(componentDefinitionRef={"name": "other", "version": "2"}),
            ],
            id="1-the-version-that-is-wanted",
        ),
    ],
)
def test_types_that_can_be_compiled(texts: list[str]) -> None:
    result = room([STALL, *texts])

    assert told(result, without=("InstanceIdImplicit", "AddonEmpty")) == []
    assert ready(result, "ComponentType", "market-stall") == ("True", "Compiled")


def test_allowed_addons_that_exclude_each_other_are_a_warning() -> None:
    result = room([STALL, excluding("a", "b", "developer"), patching("b", "developer"), uses(allow=BOTH)])

    assert [(item.code, item.severity) for item in findings(result)] == [("AddonConflict", "warning")]
    assert ready(result, "ComponentType", "market-stall") == ("True", "Compiled")


def test_a_missing_id_is_noted() -> None:
    result = room([STALL, patching("a"), patching("b"), uses(platform("a"), B)])

    (item,) = findings(result)
    assert (item.code, item.severity) == ("InstanceIdImplicit", "info")
    assert item.message == (
        'a has no instanceId, so its id is "default"; set instanceId so that names do not change when a second'
        " instance is added"
    )


STEPS: list[tuple[str, list[str], Spec]] = [
    ("AddonNotFound", [], {"platform": [platform("gone", "x")]}),
    ("AddonNotAllowed", [patching("side", "developer")], {"platform": [platform("side", "x")]}),
    ("InstanceIdDuplicate", [patching("twice")], {"platform": [platform("twice", "x"), platform("twice", "x")]}),
    ("UnknownField", [patching("config")], {"platform": [platform("config", "x", {"n": 1})]}),
    ("AddonIncompatible", [fitting("fit", {"resourceType": "Job"})], {"platform": [platform("fit", "x")]}),
    ("AddonRequirementMissing", [patching("needs", requires=["none"])], {"platform": [platform("needs", "x")]}),
    ("AddonOrderCycle", [ordered("circle", after=["circle"])], {"platform": [platform("circle", "x")]}),
    ("AddonKeyCollision", [patching("key", "developer")], {"allow": [allowed("key")]}),
]


@pytest.mark.parametrize("first", range(len(STEPS)), ids=[code for code, _, _ in STEPS])
def test_a_step_with_errors_is_the_last_one(first: int) -> None:
    """Whatever is wrong in later steps is not told with it; all of one step is."""
    later = STEPS[first:]
    listed = [use for _, _, uses_ in later for use in uses_.get("platform", ())]
    allow = [use for _, _, uses_ in later for use in uses_.get("allow", ())]
    texts = [text for _, texts, _ in later for text in texts]
    stall = definition(values=schema({"key": "string"}))

    result = room([stall, *texts, uses(*listed, allow=allow)])

    assert told(result) == [STEPS[first][0]]


def test_everything_of_one_step_is_told_at_once() -> None:
    texts = [patching("a", requires=["c"]), excluding("b", "a")]
    result = room([STALL, *texts, uses(A, B)])

    assert told(result) == ["AddonConflict", "AddonRequirementMissing"]


def compiled() -> ControllerResult:
    """Return a type with two instances of one addon, one of another, and two that are allowed."""
    disk = addon(
        "disk",
        {
            "schema": schema({"path": "string | required=true"}, {"size": "string | default=1Gi"}),
            "patches": [note("d")],
        },
        labels={"version": "1.2"},
    )
    awning = addon(
        "awning",
        {"description": "Keeps rain away", "schema": schema({"cloth": "string"}, {"open": "boolean | default=true"}),
         "patches": [note("a")]}, side="developer",
    )  # fmt: skip
    last = ordered("a-last", after=["disk"])
    listed = [platform("a-last", "x"), platform("disk", "b", {"path": "/b", "size": "2Gi"}),
              platform("disk", "a", {"path": "/a"})]  # fmt: skip
    kind = uses(*listed, allow=[allowed("awning", {"cloth": "red"}), allowed("stool", description="To sit on")])
    stool = patching("stool", "developer", description="A stool")
    stall = definition(values=schema({"tables": "integer | required=true"}), labels={"version": "7"})
    return room([stall, disk, awning, stool, last, kind, component({"tables": 1})])


def test_the_status_of_a_type() -> None:
    config_status = status(compiled(), "ComponentType", "market-stall")

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


def test_the_files_of_a_type() -> None:
    files = status(compiled(), "ComponentType", "market-stall").files
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


def test_a_definition_that_wants_more_spoils_its_instances_and_not_its_type() -> None:
    """Row 53."""
    stall = definition(values=schema({"tables": "integer | required=true"}))
    result = room([stall, component_type(), component(), component({"tables": 2}, "cake")])

    assert told(result) == ["SchemaValidation"]
    ready_, instances = status(result, "ComponentType", "market-stall").conditions
    assert (ready_.status, instances.status, instances.reason) == ("True", "False", "SchemaValidation")
    assert instances.message.startswith("1 of 2 components are not valid: MarketStall/square/bread: ")


def test_a_type_without_addons_on_a_definition_of_many_resources() -> None:
    resources = [resource(made(name=f"n{number}"), f"r{number}") for number in range(30)]

    assert ready(room([definition(*resources), component_type()]), "ComponentType", "market-stall")[0] == "True"
