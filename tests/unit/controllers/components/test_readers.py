"""Tests of the readers of all component kinds: valid fields and the findings about invalid objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from reconciler.cel import ExpressionLimits
from reconciler.controllers.components.definitions import read_addon, read_component_definition
from reconciler.controllers.components.model import (
    AddonInstance,
    read_binding,
    read_build,
    read_component,
    read_component_type,
    read_environment,
)
from reconciler.krm.findings import Finding
from tests.unit.controllers.components.component_builders import (
    GLUE,
    VALUES_TEMPLATE,
    annotate,
    create,
    manifest,
    patch,
    read_object,
    resource,
    write_object,
)

TRUE = "${true}"
ON_WORKLOADS = {"resourceType": "Deployment"}
LIMITS = ExpressionLimits()
Spec = Mapping[str, Any]


def read_definition_spec(spec: Spec) -> tuple[Any, tuple[Finding, ...]]:
    return read_component_definition(
        read_object(write_object("ComponentDefinition", "stall", {"resources": [resource(VALUES_TEMPLATE)], **spec})),
        LIMITS,
    )


def read_addon_spec(spec: Spec) -> tuple[Any, tuple[Finding, ...]]:
    return read_addon(read_object(write_object("Addon", "lamp", {"patches": [annotate("lamp")], **spec})), LIMITS)


def read_type_spec(spec: Spec) -> tuple[Any, tuple[Finding, ...]]:
    return read_component_type(
        read_object(
            write_object("ComponentType", "market-stall", {"componentDefinitionRef": {"name": "stall"}, **spec})
        )
    )


def read_component_spec(spec: Spec) -> tuple[Any, tuple[Finding, ...]]:
    whole = {"componentDefinition": "stall", **spec}
    return read_component(read_object(write_object("Component", "bread", whole, namespace="square")))


def read_instance_spec(spec: Spec) -> tuple[Any, tuple[Finding, ...]]:
    return read_component(read_object(write_object("MarketStall", "bread", spec, namespace="square")))


def read_binding_spec(spec: Spec) -> tuple[Any, tuple[Finding, ...]]:
    whole = {"owner": {"componentName": "bread"}, "environment": "fair", **spec}
    return read_binding(read_object(write_object("EnvBinding", "bread-fair", whole, namespace="square")))


def read_environment_spec(spec: Spec) -> tuple[Any, tuple[Finding, ...]]:
    return read_environment(read_object(write_object("Environment", "fair", spec, api=GLUE)))


def read_build_spec(spec: Spec) -> tuple[Any, tuple[Finding, ...]]:
    return read_build(read_object(write_object("Build", "bread", spec, namespace="square", api=GLUE)))


READERS: Mapping[str, Callable[[Spec], tuple[Any, tuple[Finding, ...]]]] = {
    "ComponentDefinition": read_definition_spec,
    "Addon": read_addon_spec,
    "ComponentType": read_type_spec,
    "Component": read_component_spec,
    "MarketStall": read_instance_spec,
    "EnvBinding": read_binding_spec,
    "Environment": read_environment_spec,
    "Build": read_build_spec,
}


def read_findings(kind: str, spec: Spec) -> list[tuple[str, str]]:
    return [(finding.code, finding.message) for finding in READERS[kind](spec)[1]]


def read_only_error(kind: str, spec: Spec) -> tuple[str, str]:
    """Return code and message of the only finding about an invalid spec."""
    read, findings = READERS[kind](spec)

    assert read is None
    (finding,) = findings
    assert finding.location.file == "one.yaml"
    assert finding.location.line > 0
    return finding.code, finding.message


@pytest.mark.parametrize("kind", READERS)
def test_minimal_object_is_valid(kind: str) -> None:
    read, findings = READERS[kind]({})

    assert read is not None
    assert findings == ()


@pytest.mark.parametrize("kind", [reader for reader in READERS if reader not in ("MarketStall", "Build")])
def test_unknown_field_is_refused_unless_it_starts_with_x(kind: str) -> None:
    assert read_findings(kind, {"x-own": {"any": 1}}) == []

    code, message = read_only_error(kind, {"wat": 1})
    assert code == "UnknownField"
    assert message.startswith("spec.wat is an unknown field; allowed fields: ")


@pytest.mark.parametrize("kind", ["MarketStall", "Build"])
def test_spec_with_an_own_schema_is_not_validated_by_the_reader(kind: str) -> None:
    assert read_findings(kind, {"wat": 1}) == []


BARE_READERS: Mapping[str, Callable[..., tuple[Any, tuple[Finding, ...]]]] = {
    "ComponentDefinition": partial(read_component_definition, limits=LIMITS),
    "Addon": partial(read_addon, limits=LIMITS),
    "ComponentType": read_component_type,
    "Component": read_component,
    "MarketStall": read_component,
    "EnvBinding": read_binding,
    "Environment": read_environment,
    "Build": read_build,
}


def read_object_findings(kind: str, **changed: Any) -> list[tuple[str, str]]:
    """Return the findings about a valid object with changed fields."""
    specs: Mapping[str, Spec] = {
        "ComponentDefinition": {"resources": [resource(VALUES_TEMPLATE)]},
        "Addon": {"patches": [annotate("lamp")]},
        "ComponentType": {"componentDefinitionRef": {"name": "stall"}},
        "Component": {"componentDefinition": "stall"},
        "EnvBinding": {"environment": "fair"},
    }
    glue = kind in ("Environment", "Build")
    mapping = {"name": "bread", "namespace": "square", "api": GLUE if glue else "platform/v1alpha1", **changed}
    text = write_object(kind, mapping.pop("name"), mapping.pop("spec", specs.get(kind, {})), **mapping)
    return [(finding.code, finding.message) for finding in BARE_READERS[kind](read_object(text))[1]]


INVALID = {
    "ComponentDefinition": "ComponentDefinitionInvalid",
    "Addon": "AddonInvalid",
    "ComponentType": "ComponentTypeInvalid",
    "Component": "ComponentInvalid",
    "MarketStall": "ComponentInvalid",
    "EnvBinding": "EnvBindingInvalid",
    "Environment": "EnvironmentInvalid",
    "Build": "BuildInvalid",
}


@pytest.mark.parametrize("kind", READERS)
def test_unknown_api_version_is_refused(kind: str) -> None:
    group = GLUE.partition("/")[0] if kind in ("Environment", "Build") else "platform"

    assert read_object_findings(kind, api=f"{group}/v9") == [
        (INVALID[kind], f'apiVersion must be "{group}/v1alpha1", but is "{group}/v9"')
    ]


@pytest.mark.parametrize("kind", READERS)
def test_unknown_top_level_field_is_refused(kind: str) -> None:
    message = (
        'data is an unknown field; allowed fields: apiVersion, kind, metadata, spec, status; did you mean "metadata"?'
    )

    assert read_object_findings(kind, data={}) == [("UnknownField", message)]
    assert read_object_findings(kind, status={"any": 1}) == []


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("name", ["Bad_Name", "../../etc", "a/b", "n" * 254])
def test_invalid_object_name_is_refused(kind: str, name: str) -> None:
    ((code, message),) = read_object_findings(kind, name=name)

    assert code == INVALID[kind]
    assert message.startswith(f'metadata.name is not a valid object name: "{name}" must ')


@pytest.mark.parametrize("kind", ["Component", "MarketStall"])
def test_component_name_must_be_a_valid_path_segment(kind: str) -> None:
    ((code, message),) = read_object_findings(kind, name="bread.lock")

    assert code == "ComponentInvalid"
    assert 'must not end in ".lock"' in message


@pytest.mark.parametrize("kind", ["Component", "MarketStall", "EnvBinding", "Build"])
def test_a_namespace_must_be_a_valid_name(kind: str) -> None:
    ((code, message),) = read_object_findings(kind, namespace="a.b")
    assert code == INVALID[kind]
    assert "is not a valid namespace name" in message


@pytest.mark.parametrize("kind", ["ComponentDefinition", "Addon", "ComponentType", "Environment"])
def test_cluster_scoped_object_needs_no_namespace(kind: str) -> None:
    assert read_object_findings(kind, namespace="") == []


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("spec", [[], [1], "text", 3, True])
def test_spec_must_be_a_mapping(kind: str, spec: Any) -> None:
    code, message = read_object_findings(kind, spec=spec)[0]

    assert code == INVALID[kind]
    assert message.startswith("spec must be a mapping, but is ")


@pytest.mark.parametrize("kind", READERS)
def test_spec_is_required(kind: str) -> None:
    api = GLUE if kind in ("Environment", "Build") else "platform/v1alpha1"
    text = f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: bread, namespace: square}}\nspec:\n"
    read, findings = BARE_READERS[kind](read_object(text))

    assert read is None
    assert (findings[0].code, findings[0].message) == (INVALID[kind], "spec must be a mapping")


DEFINITION = "ComponentDefinitionInvalid"


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        pytest.param(
            {"resources": None}, DEFINITION, "spec.resources must be a list with at least one resource", id="none"
        ),
        pytest.param(
            {"resources": []}, DEFINITION, "spec.resources must be a list with at least one resource", id="empty"
        ),
        pytest.param(
            {"resources": {"a": 1}}, DEFINITION, "spec.resources must be a list, but is a mapping", id="no-list"
        ),
        pytest.param({"resources": [3]}, DEFINITION, "spec.resources[0] must be a mapping, but is 3", id="no-mapping"),
        pytest.param(
            {"resources": [resource(VALUES_TEMPLATE, foreach=TRUE)]},
            "UnknownField",
            'did you mean "forEach"?',
            id="unknown",
        ),
        pytest.param(
            {"resources": [{"template": VALUES_TEMPLATE}]}, DEFINITION, "spec.resources[0].id must be ", id="no-id"
        ),
        pytest.param(
            {"resources": [resource(VALUES_TEMPLATE), resource(VALUES_TEMPLATE)]},
            DEFINITION,
            'spec.resources[1].id must be unique, but "main" is used twice',
            id="id-twice",
        ),
        pytest.param(
            {"resources": [{"id": "a"}]},
            DEFINITION,
            "spec.resources[0].template must be the template of an object",
            id="no-template",
        ),
        pytest.param(
            {"resources": [resource({**VALUES_TEMPLATE, "kind": ""})]},
            DEFINITION,
            'must be the name of a kind and must not contain expressions, but is ""',
            id="kind-empty",
        ),
        pytest.param(
            {"resources": [resource({**VALUES_TEMPLATE, "kind": 3})]},
            DEFINITION,
            "must be the name of a kind and must not contain expressions, but is 3",
            id="kind-int",
        ),
        pytest.param(
            {"resources": [resource({**VALUES_TEMPLATE, "kind": "${metadata.name}"})]},
            DEFINITION,
            'template.kind must be the name of a kind and must not contain expressions, but is "${metadata.name}"',
            id="kind-is-literal",
        ),
        pytest.param(
            {"resources": [resource(VALUES_TEMPLATE, forEach="${[1]}", var="spec")]},
            "LoopVarReserved",
            "spec.resources[0].var must not be a reserved name",
            id="var-is-taken",
        ),
        pytest.param(
            {"resources": [resource(VALUES_TEMPLATE, forEach="${[1]}", var="a-b")]},
            "CelSyntax",
            'spec.resources[0].var must be a name of letters, digits and _, and not a reserved word of CEL, but is "a-b"',
            id="var-is-no-name",
        ),
        pytest.param(
            {"resources": [resource(VALUES_TEMPLATE, forEach="${[1]}", var="in")]},
            "CelSyntax",
            ' is "in"',
            id="var-is-a-word",
        ),
        pytest.param(
            {"resources": [resource(VALUES_TEMPLATE, includeWhen="yes")]},
            "ConditionType",
            'spec.resources[0].includeWhen must be true, false, or an expression that returns one of them, but is "yes"',
            id="condition-of-text",
        ),
        pytest.param(
            {"schema": []}, "ShorthandFieldType", "spec.schema must be a mapping, but is []", id="schema-list"
        ),
        pytest.param(
            {"schema": {"parameters": "string"}},
            "ShorthandFieldType",
            'spec.schema.parameters must be a mapping of names to types, but is "string"',
            id="schema-section-that-is-text",
        ),
        pytest.param(
            {"schema": {"requiredByDefault": "yes"}},
            "ShorthandFieldType",
            'spec.schema.requiredByDefault must be true or false, but is "yes"',
            id="schema-switch-that-is-text",
        ),
        pytest.param(
            {"schema": {"params": {}}},
            "UnknownField",
            "spec.schema.params is an unknown field; allowed fields: types, parameters, envOverrides, requiredByDefault; "
            'did you mean "parameters"?',
            id="schema-misspelt",
        ),
    ],
)
def test_invalid_definition_is_refused(spec: Spec, code: str, message: str) -> None:
    result = read_only_error("ComponentDefinition", spec)

    assert result[0] == code
    assert message in result[1]


@pytest.mark.parametrize("name", ["Main", "-a", "a-", "a_b", "a.b", "ä"])
def test_invalid_resource_id_is_refused(name: str) -> None:
    (code, message), *_ = read_findings("ComponentDefinition", {"resources": [resource(VALUES_TEMPLATE, name)]})

    assert code == DEFINITION
    assert message.startswith('spec.resources[0].id must be lower-case letters, digits and "-"')


@pytest.mark.parametrize("name", ["a", "0", "a-b", "a--b", "0a"])
def test_valid_resource_id_is_accepted(name: str) -> None:
    assert read_findings("ComponentDefinition", {"resources": [resource(VALUES_TEMPLATE, name)]}) == []


def addon_spec_with_patch(**changed: Any) -> Spec:
    """Return an addon spec with a patch and changed fields of the patch. None removes a field."""
    entry = {"target": ON_WORKLOADS, "patch": annotate("x")["patch"], **changed}
    return {"patches": [{key: value for key, value in entry.items() if value is not None}]}


ADDON = "AddonInvalid"


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        pytest.param({"outputs": []}, "FeatureNotSupported", "spec.outputs is not supported", id="outputs"),
        pytest.param({"displayName": 3}, ADDON, "spec.displayName must be a string, but is 3", id="display-name"),
        pytest.param({"description": []}, ADDON, "spec.description must be a string, but is []", id="description"),
        pytest.param({"icon": {}}, ADDON, "spec.icon must be a string, but is {}", id="icon"),
        pytest.param(
            {"condition": "spec.on"}, "ConditionType", 'that returns one of them, but is "spec.on"', id="condition"
        ),
        pytest.param({"condition": "${spec.on}"}, "CelUndefinedField", "spec has no field 'on'", id="unknown-field"),
        pytest.param({"condition": "${item}"}, "CelUndeclared", "the variable 'item' is not declared", id="undeclared"),
        pytest.param(
            {"condition": "${target}"}, "CelUndeclared", "the variable 'target' is not declared", id="no-target-yet"
        ),
        pytest.param({"targets": {}}, "TargetInvalid", "spec.targets must be a list, but is {}", id="targets"),
        pytest.param({"targets": [{}]}, "TargetEmpty", "spec.targets[0] must have at least one of", id="target-empty"),
        pytest.param(
            {"targets": [{"resourceType": "A", "kind": "A"}]},
            "UnknownField",
            "spec.targets[0].kind is an unknown",
            id="target",
        ),
        pytest.param({"creates": {}}, ADDON, "spec.creates must be a list, but is {}", id="creates"),
        pytest.param({"creates": ["a"]}, ADDON, 'spec.creates[0] must be a mapping, but is "a"', id="creates-text"),
        pytest.param(
            {"creates": [{"id": "a"}]},
            ADDON,
            "spec.creates[0] must be a resource, or contain a resource in",
            id="neither",
        ),
        pytest.param(
            {"creates": [{"resource": VALUES_TEMPLATE, "template": VALUES_TEMPLATE}]},
            ADDON,
            "exactly one of the fields `resource` and `template`",
            id="both",
        ),
        pytest.param(
            {"creates": [{**VALUES_TEMPLATE, "resource": VALUES_TEMPLATE}]},
            ADDON,
            "but is a resource with the additional fields resource",
            id="mixed",
        ),
        pytest.param(
            {"creates": [{**VALUES_TEMPLATE, "id": "a", "forEach": TRUE}]},
            ADDON,
            "but is a resource with the additional fields id, forEach",
            id="mixed-with-what-wraps",
        ),
        pytest.param(
            {"creates": [{"apiVersion": "v1"}]}, ADDON, "spec.creates[0].kind must be the name of a kind", id="no-kind"
        ),
        pytest.param(
            {"creates": [create({"kind": "${metadata.name}"})]}, ADDON, "spec.creates[0].resource.kind", id="kind"
        ),
        pytest.param(
            {"creates": [create(VALUES_TEMPLATE, when=TRUE)]}, "UnknownField", "spec.creates[0].when", id="wrapper"
        ),
        pytest.param(
            {"creates": [create(VALUES_TEMPLATE, id="a"), create(manifest("Secret"), id="a")]},
            ADDON,
            'spec.creates[1].id must be unique, but "a" is used twice',
            id="id-twice",
        ),
        pytest.param({"patches": {}}, ADDON, "spec.patches must be a list, but is {}", id="patches"),
        pytest.param(
            addon_spec_with_patch(operations=[]),
            ADDON,
            "spec.patches[0] must have exactly one of the fields patch and",
            id="two-forms",
        ),
        pytest.param(
            addon_spec_with_patch(patch=None),
            ADDON,
            "spec.patches[0] must have exactly one of the fields patch and",
            id="no-form",
        ),
        pytest.param(
            addon_spec_with_patch(patch=None, operations={}),
            ADDON,
            "operations must be a list, but is {}",
            id="no-list",
        ),
        pytest.param(
            addon_spec_with_patch(patch=None, operations=[3]), ADDON, "operations[0] must be a mapping", id="no-mapping"
        ),
        pytest.param(
            addon_spec_with_patch(patch=3), ADDON, "spec.patches[0].patch must be a mapping", id="patch-number"
        ),
        pytest.param(
            addon_spec_with_patch(condition=TRUE, includeWhen=TRUE),
            ADDON,
            "includeWhen must not be set together with condition",
            id="two-conditions",
        ),
        pytest.param(
            addon_spec_with_patch(target=None), "TargetInvalid", "spec.patches[0].target must be", id="no-target"
        ),
        pytest.param(
            addon_spec_with_patch(target={}),
            "TargetEmpty",
            "otherwise the target matches every resource",
            id="target-of-nothing",
        ),
        pytest.param(
            addon_spec_with_patch(onMissing="no"), ADDON, 'must be "error" or "skip", but is "no"', id="on-missing"
        ),
        pytest.param(
            addon_spec_with_patch(patches=[]),
            "UnknownField",
            "spec.patches[0].patches is an unknown",
            id="patch-unknown",
        ),
        pytest.param(
            addon_spec_with_patch(condition="${item}", forEach="${[true]}"),
            "CelUndeclared",
            "the variable 'item' is not declared",
            id="condition-of-a-patch-comes-before-its-loop",
        ),
        pytest.param(
            addon_spec_with_patch(patch={"op": "add", "path": "/a"}), ADDON, "value must be set for", id="no-value"
        ),
        pytest.param(
            addon_spec_with_patch(patch={"op": "remove", "path": "/a", "value": 1}),
            ADDON,
            "value must not be set for",
            id="value",
        ),
        pytest.param(
            addon_spec_with_patch(patch={"op": "move", "path": "/a", "value": 1}),
            "PatchOpUnsupported",
            'merge", but is "move"',
            id="op",
        ),
        pytest.param(
            addon_spec_with_patch(patch={"op": "Add", "path": "/a", "value": 1}),
            "PatchOpUnsupported",
            ' is "Add"',
            id="op-in-caps",
        ),
        pytest.param(
            addon_spec_with_patch(patch={"op": "add", "path": "/a", "value": 1, "from": "/b"}),
            "UnknownField",
            "spec.patches[0].patch.from is an unknown",
            id="op-unknown",
        ),
        pytest.param(addon_spec_with_patch(patch={"op": "add", "path": "/", "value": 1}), "PathRoot", '"/"', id="root"),
        pytest.param({"dependencies": {"needs": []}}, "UnknownField", "spec.dependencies.needs", id="dependencies"),
        pytest.param({"dependencies": {"requires": ["a"]}}, ADDON, "requires[0] must be a mapping", id="requires"),
        pytest.param(
            {"dependencies": {"requires": [{}]}},
            ADDON,
            "requires[0].addon must be a string",
            id="requirement-without-an-addon",
        ),
        pytest.param(
            {"dependencies": {"conflictsWith": [{"addon": "a", "why": ""}]}},
            "UnknownField",
            "allowed fields: addon, rea",
            id="conflicts",
        ),
        pytest.param({"dependencies": {"loadOrder": []}}, ADDON, "loadOrder must be a mapping, but is []", id="order"),
        pytest.param(
            {"dependencies": {"loadOrder": {"after": [{"addon": "a"}]}}},
            ADDON,
            'loadOrder.after[0] must be the name of an addon, but is {"addon":"a"}',
            id="after",
        ),
        pytest.param(
            {"dependencies": {"loadOrder": {"before": [""]}}}, ADDON, "before[0] must be the name", id="before"
        ),
        pytest.param({"validation": {"rules": {}}}, ADDON, "spec.validation.rules must be a list", id="rules"),
        pytest.param(
            {"validation": {"rules": [{"name": "a"}]}},
            ADDON,
            "rules[0].expression must be a string",
            id="rule-of-nothing",
        ),
        pytest.param(
            {"validation": {"rules": [{"expression": TRUE}]}},
            "CelSyntax",
            "write expressions without ${",
            id="rule-in-braces",
        ),
        pytest.param({"validation": {"rules": [{"expression": "target"}]}}, "CelUndeclared", "'target'", id="rule"),
        pytest.param(
            {"patches": [annotate("x", "${a ${b}}")]}, "TemplateNested", "must not contain ${ inside", id="nested"
        ),
        pytest.param(
            {"patches": [annotate("x", "${a")]},
            "TemplateUnterminated",
            "must close every ${ with } outside of quotes",
            id="no-end",
        ),
        pytest.param(
            {"creates": [create(manifest(data="${target.kind}"))]},
            "CelUndeclared",
            "'target'",
            id="target-is-for-patches",
        ),
    ],
)
def test_invalid_addon_is_refused(spec: Spec, code: str, message: str) -> None:
    result = read_only_error("Addon", spec)

    assert result[0] == code
    assert message in result[1]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"displayName": "Lamp", "description": "", "icon": "lamp.svg"}, id="words"),
        pytest.param({"creates": [VALUES_TEMPLATE]}, id="an-object-as-it-is"),
        pytest.param({"creates": [{"resource": VALUES_TEMPLATE}]}, id="resource"),
        pytest.param({"creates": [{"template": VALUES_TEMPLATE, "x-why": "so"}]}, id="template"),
        pytest.param(
            {"creates": [create(VALUES_TEMPLATE, id="a", includeWhen=TRUE, forEach="${[1, 2]}", var="n")]},
            id="a-wrapped-object",
        ),
        pytest.param(addon_spec_with_patch(includeWhen=TRUE, onMissing="skip"), id="the-other-name-of-a-condition"),
        pytest.param(addon_spec_with_patch(patch=None, operations=[annotate("x")["patch"]]), id="operations"),
        pytest.param({"patches": [patch("add", "/data/a", None)]}, id="null-is-a-value"),
        pytest.param({"patches": [annotate("x", "${target.kind}")]}, id="patches-see-their-target"),
        pytest.param({"condition": False}, id="a-condition-may-be-a-boolean"),
        pytest.param(
            {
                "targets": [{"resourceType": "Job", "containerName": "${spec.x}"}],
                "schema": {"parameters": {"x": "string"}},
            },
            id="targets-may-be-templates",
        ),
        pytest.param({"dependencies": {"requires": [{"addon": "a", "reason": "why"}], "loadOrder": {}}}, id="depends"),
        pytest.param({"validation": {"rules": [{"expression": "true"}]}}, id="a-rule-without-a-name"),
    ],
)
def test_valid_addon_is_accepted(spec: Spec) -> None:
    assert read_findings("Addon", spec) == []


@pytest.mark.parametrize("spec", [{}, {"creates": [], "patches": []}])
def test_addon_without_effect_is_usable_and_reported(spec: Spec) -> None:
    read, findings = read_addon(read_object(write_object("Addon", "lamp", spec)), LIMITS)

    assert read is not None
    assert [(finding.code, finding.message) for finding in findings] == [
        ("AddonEmpty", "Addon lamp neither creates nor patches resources")
    ]


@pytest.mark.parametrize(
    ("label", "sides"),
    [
        pytest.param(None, {"platform"}, id="no-label"),
        pytest.param("platform-engineer", {"platform"}, id="platform"),
        pytest.param("developer", {"developer"}, id="developer"),
        pytest.param("both", {"platform", "developer"}, id="both"),
        pytest.param("Developer", None, id="in-caps"),
        pytest.param("", None, id="empty"),
        pytest.param(True, None, id="boolean"),
        pytest.param(["developer"], None, id="list"),
    ],
)
def test_roles_of_an_addon(label: Any, sides: set[str] | None) -> None:
    labels = {} if label is None else {"allowedFor": label}
    read, findings = read_addon(
        read_object(write_object("Addon", "lamp", {"patches": [annotate("x")]}, labels=labels)), LIMITS
    )

    assert (set(read.allowed_roles) if read else None) == sides
    assert [finding.message.partition(", but is ")[0] for finding in findings] == (
        [] if sides else ['metadata.labels.allowedFor must be one of "platform-engineer", "developer", "both"']
    )


@pytest.mark.parametrize(
    ("labels", "version"),
    [({}, ""), ({"version": "1.10"}, "1.10"), ({"version": 2}, "2"), ({"version": None}, ""), ({"version": []}, "")],
)
def test_versions(labels: Mapping[str, Any], version: str) -> None:
    read, findings = read_addon(
        read_object(write_object("Addon", "lamp", {"patches": [annotate("x")]}, labels=labels)), LIMITS
    )

    assert read is not None
    assert (read.version, findings) == (version, ())


TYPE = "ComponentTypeInvalid"


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        pytest.param(
            {"componentDefinitionRef": {}},
            TYPE,
            "spec.componentDefinitionRef.name must be a string",
            id="no-definition",
        ),
        pytest.param(
            {"componentDefinitionRef": {"name": "stall", "version": 1.0}},
            TYPE,
            "version must be a string, but is 1.0",
            id="version",
        ),
        pytest.param(
            {"componentDefinitionRef": {"name": "stall", "kind": "A"}},
            "UnknownField",
            "allowed fields: name, version",
            id="ref",
        ),
        pytest.param({"platformAddons": {}}, TYPE, "spec.platformAddons must be a list, but is {}", id="platform"),
        pytest.param(
            {"platformAddons": ["a"]}, TYPE, 'platformAddons[0] must be a mapping, but is "a"', id="name-alone"
        ),
        pytest.param({"platformAddons": [{}]}, TYPE, "platformAddons[0].name must be a string", id="no-name"),
        pytest.param(
            {"platformAddons": [{"name": "a", "enabled": True}]},
            "UnknownField",
            "platformAddons[0].enabled is an unknown",
            id="platform-unknown",
        ),
        pytest.param(
            {"platformAddons": [{"name": "a", "instanceId": 3}]}, TYPE, "must be a string, but is 3", id="id-int"
        ),
        pytest.param({"platformAddons": [{"name": "a", "instanceId": ""}]}, TYPE, 'but is ""', id="id-empty"),
        pytest.param({"platformAddons": [{"name": "a", "instanceId": "../b"}]}, TYPE, ' is "../b"', id="id-is-a-path"),
        pytest.param({"platformAddons": [{"name": "a", "config": []}]}, TYPE, "config must be a mapping", id="config"),
        pytest.param(
            {"developerAddons": []}, TYPE, "spec.developerAddons must be a mapping, but is []", id="developer"
        ),
        pytest.param(
            {"developerAddons": {"list": []}}, "UnknownField", "allowed fields: allowed", id="developer-unknown"
        ),
        pytest.param(
            {"developerAddons": {"allowed": [{"name": "a"}, {"name": "a"}]}},
            TYPE,
            'spec.developerAddons.allowed[1].name must be unique, but "a" is used twice',
            id="allowed-twice",
        ),
        pytest.param(
            {"developerAddons": {"allowed": [{"name": "a", "presets": {"b": {}}}]}},
            "FeatureNotSupported",
            "allowed[0].presets is not supported; remove the field",
            id="presets",
        ),
        pytest.param(
            {"developerAddons": {"allowed": [{"name": "a", "defaults": [1]}]}},
            TYPE,
            "defaults must be a mapping",
            id="defaults",
        ),
        pytest.param(
            {"developerAddons": {"allowed": [{"name": "a", "config": {}}]}},
            "UnknownField",
            "allowed[0].config",
            id="allowed-unknown",
        ),
        pytest.param({"validation": {"rule": []}}, "UnknownField", 'did you mean "rules"?', id="validation"),
    ],
)
def test_invalid_type_is_refused(spec: Spec, code: str, message: str) -> None:
    result = read_only_error("ComponentType", spec)

    assert result[0] == code
    assert message in result[1]


def test_name_of_the_flattened_definition_must_be_valid() -> None:
    annotations = {"reconciler.dev/bake": "a/../b"}
    spec = {"componentDefinitionRef": {"name": "stall"}}
    (finding,) = read_component_type(
        read_object(write_object("ComponentType", "market-stall", spec, annotations=annotations))
    )[1]

    assert finding.code == TYPE
    assert finding.message.startswith("metadata.annotations.reconciler.dev/bake is not a valid object name")


COMPONENT = "ComponentInvalid"


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        pytest.param({"componentDefinition": ""}, COMPONENT, "spec.componentDefinition must be a string", id="nothing"),
        pytest.param(
            {"componentDefinition": {"name": "a"}}, COMPONENT, "must be a string, but is a mapping", id="mapping"
        ),
        pytest.param({"parameters": []}, COMPONENT, "spec.parameters must be a mapping, but is []", id="parameters"),
        pytest.param({"addons": {}}, COMPONENT, "spec.addons must be a list, but is {}", id="addons"),
        pytest.param({"addons": [{"config": {}}]}, COMPONENT, "spec.addons[0].name must be a string", id="no-name"),
        pytest.param(
            {"addons": [{"name": "a", "instanceId": "A"}]}, COMPONENT, 'digit at both ends, but is "A"', id="id"
        ),
        pytest.param(
            {"addons": [{"name": "a", "config": 3}]}, COMPONENT, "config must be a mapping, but is 3", id="config"
        ),
        pytest.param(
            {"addons": [{"name": "a", "condition": TRUE}]},
            "UnknownField",
            "allowed fields: name, instanceId, config",
            id="unknown",
        ),
    ],
)
def test_invalid_component_without_type_is_refused(spec: Spec, code: str, message: str) -> None:
    result = read_only_error("Component", spec)

    assert result[0] == code
    assert message in result[1]


def test_component_without_type_is_read() -> None:
    read, _ = read_component_spec(
        {"parameters": {"a": 1}, "addons": [{"name": "lamp"}, {"name": "lamp", "instanceId": "x"}]}
    )

    assert not read.has_type
    assert (read.definition, read.values) == ("stall", {"a": 1})
    assert [(addon.instance, addon.has_instance_id) for addon in read.addons] == [
        (AddonInstance("lamp", "default", "developer"), False),
        (AddonInstance("lamp", "x", "developer"), True),
    ]


BINDING = "EnvBindingInvalid"


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        pytest.param({"owner": "bread"}, BINDING, 'spec.owner must be a mapping, but is "bread"', id="owner"),
        pytest.param(
            {"owner": {"name": "bread"}}, "UnknownField", "allowed fields: componentName, namespace", id="name"
        ),
        pytest.param(
            {"owner": {"componentName": 3}}, BINDING, "componentName must be a string, but is 3", id="owner-int"
        ),
        pytest.param({"environment": ""}, BINDING, "spec.environment must be a string that is not empty", id="nowhere"),
        pytest.param({"environment": {"name": "fair"}}, BINDING, "spec.environment must be a string", id="mapping"),
        pytest.param({"environment": "../fair"}, BINDING, '"../fair" must contain', id="environment-is-a-path"),
        pytest.param({"environment": "fair.lock"}, BINDING, 'must not end in ".lock"', id="environment-is-a-lock"),
        pytest.param({"overrides": [1]}, BINDING, "spec.overrides must be a mapping, but is a list", id="overrides"),
        pytest.param({"addonOverrides": 3}, BINDING, "spec.addonOverrides must be a mapping, but is 3", id="addons"),
        pytest.param(
            {"addonOverrides": {"lamp": "on"}},
            BINDING,
            'spec.addonOverrides.lamp must be a mapping, but is "on"',
            id="addon",
        ),
        pytest.param(
            {"platformAddonOverrides": {"lamp": [1]}},
            BINDING,
            "spec.platformAddonOverrides.lamp must be a mapping",
            id="platform-addon",
        ),
        pytest.param({"endpoints": {}}, BINDING, "spec.endpoints must be a list, but is {}", id="endpoints"),
        pytest.param(
            {"endpoints": [{"url": "a"}]}, "UnknownField", "allowed fields: name, host", id="endpoint-unknown"
        ),
        pytest.param({"endpoints": [{"name": 3}]}, BINDING, "spec.endpoints[0].name must be a string", id="endpoint"),
    ],
)
def test_invalid_binding_is_refused(spec: Spec, code: str, message: str) -> None:
    result = read_only_error("EnvBinding", spec)

    assert result[0] == code
    assert message in result[1]


def test_environment_name_with_dots_is_valid() -> None:
    read, findings = read_binding_spec(
        {"environment": "fair.east", "owner": {"componentName": "bread", "namespace": "other"}}
    )

    assert findings == ()
    assert (read.environment, read.namespace, read.component) == ("fair.east", "other", "bread")


@pytest.mark.parametrize(
    ("kind", "spec", "code", "message"),
    [
        pytest.param("Environment", {"clusters": [3]}, "EnvironmentInvalid", "clusters[0] must be a string", id="name"),
        pytest.param("Environment", {"clusters": "east"}, "EnvironmentInvalid", "must be a list", id="no-list"),
        pytest.param("Environment", {"context": []}, "EnvironmentInvalid", "spec.context must be a map", id="context"),
        pytest.param(
            "Environment",
            {"clusterSelector": {"labels": {}}},
            "SelectorInvalid",
            "spec.clusterSelector.labels is an unknown field; allowed fields: matchLabels",
            id="selector",
        ),
        pytest.param("Build", {"workload": []}, "BuildInvalid", "spec.workload must be a mapping", id="workload"),
    ],
)
def test_invalid_environment_or_build_is_refused(kind: str, spec: Spec, code: str, message: str) -> None:
    result = read_only_error(kind, spec)

    assert result[0] == code
    assert message in result[1]


def test_all_errors_of_an_object_are_reported() -> None:
    spec = {"outputs": 1, "icon": 3, "wat": 1, "creates": [{"id": "a"}], "patches": [patch("move", "/a", 1)]}

    codes = [code for code, _ in read_findings("Addon", spec)]

    assert sorted(codes) == [
        "AddonInvalid",
        "AddonInvalid",
        "FeatureNotSupported",
        "PatchOpUnsupported",
        "UnknownField",
    ]
