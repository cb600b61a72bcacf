"""Tests of flattening: the flattened definition renders the same objects, or a finding names the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.controllers.components.flatten.definition import flatten_component_type
from reconciler.krm.yaml import emit
from tests.unit.controllers.components.flatten_helpers import FLATTENED_NAME, LIMITS, FlattenSetup

POD = "/spec/template/spec"
DEFINITION: dict[str, Any] = {
    "schema": {
        "types": {"Door": {"name": "string | required=true", "number": "integer | default=80"}},
        "parameters": {"doors": "[]Door | default=[]", "grain": "string | default=rye"},
        "envOverrides": {"count": "integer | default=1"},
    },
    "resources": [
        {
            "id": "wheel",
            "template": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "${metadata.name}", "labels": {"grain": "${spec.grain}", "tier": "water"}},
                "spec": {
                    "replicas": "${spec.count}",
                    "template": {
                        "spec": {
                            "containers": [
                                {"name": "main", "image": "${build.image}", "args": ["${spec.grain}"]},
                                {"name": "side", "image": "registry.example.org/side:1"},
                            ],
                            "tolerations": "${spec.count > 1 ? [] : omit()}",
                        }
                    },
                },
            },
        },
        {
            "id": "door",
            "forEach": "${spec.doors}",
            "var": "door",
            "includeWhen": "${size(spec.doors) > 0}",
            "template": {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "${metadata.name}-${door.name}", "labels": {"${door.name}": "open"}},
                "spec": {"ports": [{"port": "${door.number}"}]},
            },
        },
    ],
}
SPEC = {"doors": [{"name": "front"}, {"name": "back", "number": 81}]}
MAP: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${metadata.name}-map"}}


def patch(path: str, value: Any = None, *, op: str = "add", target: Any = None, **more: Any) -> dict[str, Any]:
    """Return a patch of one operation. The default target is Deployments."""
    operation: dict[str, Any] = {"op": op, "path": path} | ({} if op == "remove" else {"value": value})
    return {"target": target or {"resourceType": "Deployment"}, "patch": operation, **more}


def build_addon(*patches: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an addon spec with patches. `fields` are its parameters and `env` are its environment overrides."""
    schema = {"parameters": more.pop("fields", {}), "envOverrides": more.pop("env", {}), "types": more.pop("types", {})}
    return {"schema": schema, "patches": list(patches), **more}


def build_setup(*addons: dict[str, Any], config: Mapping[str, Any] | None = None, **more: Any) -> FlattenSetup:
    """Return a component type with the addons a, b and so on. `config` is the config of the first addon."""
    named = dict(zip("abc", addons, strict=False))
    uses: list[dict[str, Any]] = [{"name": name} for name in named]
    uses[0] |= {"config": dict(config or {}), **more}
    return FlattenSetup(DEFINITION, named, uses)


NESTED = "/spec/nested"

SAME = [
    pytest.param(
        build_setup(build_addon(patch("/spec/replicas", 1, op="merge"))), {}, id="merge-of-a-number-into-a-number"
    ),
    pytest.param(
        build_setup(
            build_addon(patch(NESTED, {"x": {"p": "${spec.v}"}}), fields={"v": "string | default=a"}),
            build_addon(patch(NESTED, {"x": {"p": 9}})),
        ),
        {},
        id="another-addon-replaces-a-string-field",
    ),
    pytest.param(
        build_setup(
            build_addon(patch(NESTED, {"x": {"p": 9}})),
            build_addon(patch(NESTED, {"x": {"p": "${spec.v}"}}), fields={"v": "integer | default=1"}),
        ),
        {},
        id="another-addon-sets-an-integer-field",
    ),
    pytest.param(build_setup(build_addon(patch("/spec/paused", True))), {}, id="plain-value"),
    pytest.param(
        build_setup(build_addon(patch("/spec/x", "${metadata.name}-${env.name}"))), {}, id="what-components-have"
    ),
    pytest.param(
        build_setup(build_addon(patch("/spec/x", "${spec.size}"), env={"size": "integer | default=3"})),
        {"size": 5},
        id="open-field",
    ),
    pytest.param(
        build_setup(build_addon(patch("/spec/x", "${spec.size + 1}"), env={"size": "integer"}), config={"size": 5}),
        {},
        id="given",
    ),
    pytest.param(
        build_setup(build_addon(patch("/spec/x", "${-spec.size - 3}"), env={"size": "integer"}), config={"size": -5}),
        {},
        id="negative-number",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", "${[has(spec.a), has(spec.b), spec.?a.orValue('x'), spec.?b.orValue('x')]}"),
                fields={"a": "string", "b": "string", "c": "string | default=c"},
            ),
            config={"a": "a"},
        ),
        {},
        id="field-checked-with-has",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", "${[has(spec.o), has(spec.o.b), spec.?o.?a.orValue('x'), spec.?o.?b.orValue('x')]}"),
                env={"o": {"a": "string", "b": "string"}},
            ),
            config={"o": {"a": "a"}},
        ),
        {"o": {"b": "2"}},
        id="part-checked-with-has",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch(
                    "/spec/x",
                    "${[has(spec . o // the size\n  .a), has( spec['o'] // end\n .b), (spec.o).a == spec.o[r'a']]}",
                ),
                env={"o": {"a": "string", "b": "string | default=b"}},
            ),
            config={"o": {"a": "a"}},
        ),
        {"o": {"b": "2"}},
        id="comments-and-other-notation",
    ),
    pytest.param(
        build_setup(build_addon(patch("/spec/x/y", "${spec.omit}"), fields={"omit": "object | default={}"})),
        {},
        id="name-of-the-function-omit",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", {"all": "${spec}", "some": "${spec.deep}"}),
                env={
                    "deep": {"z": "string", "a": "string | default=1", "o": {"p": "string", "q": "string | default=2"}},
                    "b": "integer | default=1",
                },
            ),
            config={"deep": {"z": "z", "o": {"p": "p"}}},
        ),
        {"b": 2, "deep": {"o": {"q": "3"}}},
        id="objects-of-which-some-is-given-keep-their-order",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", {"p": "${parameters.a}", "e": "${envOverrides.b}", "w": "${envOverrides}"}),
                fields={"a": "string | default=a"},
                env={"b": "string | default=b"},
            ),
            config={"a": "x"},
        ),
        {"b": "y"},
        id="sections",
    ),
    pytest.param(
        build_setup(build_addon(patch("/spec/x", "${spec['a-b'] + spec[\"a-b\"]}"), env={"a-b": "string | default=d"})),
        {"a-b": "e"},
        id="dashed-names",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", "${[1, 2].map(spec, spec + 1)} ${[spec.n].map(i, i)}"),
                env={"n": "integer | default=1"},
            )
        ),
        {"n": 2},
        id="names-that-macros-bind",
    ),
    pytest.param(
        build_setup(
            build_addon(patch("/spec/x", "${.spec.n + .spec.m}"), env={"n": "integer | default=1", "m": "integer"}),
            config={"m": 7},
        ),
        {"n": 2},
        id="absolute-names",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", "${spec.free.a.b + spec.list[0].c}"),
                fields={"free": "object", "list": "[]Item"},
                types={"Item": {"c": "string | default=c"}},
            ),
            config={"free": {"a": {"b": "$"}}, "list": [{}]},
        ),
        {},
        id="below-a-given-value",
    ),
    pytest.param(
        build_setup(
            build_addon(patch("/spec/x", "a$${spec.text}"), fields={"text": "string"}),
            config={"text": "{metadata.name}"},
        ),
        {},
        id="text-that-would-open-an-expression",
    ),
    pytest.param(
        build_setup(
            build_addon(patch("/spec/x", "a$${spec.text}${metadata.name}"), fields={"text": "string"}),
            config={"text": "{metadata.name}"},
        ),
        {},
        id="text-that-would-open-one-beside-another",
    ),
    pytest.param(
        build_setup(build_addon(patch("/spec/x", "${has(spec.a)}"), env={"a": "string"})),
        {},
        id="values-are-there-without-any",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", "${spec.empty} ${spec.n}"),
                fields={"empty": 'string | default=""'},
                env={"n": "integer | default=4"},
            ),
            config={"empty": ""},
        ),
        {},
        id="text-that-would-become-a-number",
    ),
    pytest.param(build_setup(build_addon(patch("/spec/x", '${"${HOME}"} and ${"${HOME}"}'))), {}, id="literal-dollars"),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", {"${spec.key}": 1, "b": "${omit()}", "l": ["${omit()}", 1]}), fields={"key": "string"}
            ),
            config={"key": "k"},
        ),
        {},
        id="keys-and-omissions",
    ),
    pytest.param(
        build_setup(
            build_addon(patch("/spec/x", {"a": "${spec.n > 1 ? 1 : omit()}"}), env={"n": "integer | default=1"})
        ),
        {"n": 2},
        id="omissions-of-a-render",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch(f"{POD}/containers/[?(@.name=='${{spec.name}}')]/env/-", {"name": "${instanceId}"}),
                fields={"name": "string | default=side"},
            ),
            instanceId="one",
        ),
        {},
        id="filter-by-a-field-that-is-fixed",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch(f"{POD}/containers/[*]/env", [{"name": "A", "value": "${spec.a}"}]),
                env={"a": "string | default=a"},
            )
        ),
        {"a": "b"},
        id="every-item",
    ),
    pytest.param(build_setup(build_addon(patch(f"{POD}/containers/1", op="remove"))), {}, id="remove-by-index"),
    pytest.param(build_setup(build_addon(patch("/spec/replicas", op="remove"))), {}, id="remove-a-templated-value"),
    pytest.param(
        build_setup(build_addon(patch(f"{POD}/tolerations", op="remove"))), {}, id="remove-a-value-that-can-be-omitted"
    ),
    pytest.param(
        build_setup(build_addon(patch("/spec/replicas", 9, op="replace"))), {}, id="replace-a-templated-value"
    ),
    pytest.param(
        build_setup(
            build_addon(patch("/metadata", {"labels": {"more": "${metadata.name}", "tier": "fire"}}, op="merge"))
        ),
        {},
        id="merge",
    ),
    pytest.param(
        build_setup(build_addon(patch(f"{POD}/containers/[?(@.name=='none')]/env/-", 1, onMissing="skip"))),
        {},
        id="skipped",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch(
                    f"{POD}/volumes/-",
                    {"name": "${item.key}", "size": "${item.value}", "all": "${item}"},
                    forEach="${spec.volumes}",
                ),
                fields={"volumes": "map<integer>"},
            ),
            config={"volumes": {"b": 2, "a": -1}},
        ),
        {},
        id="loop-of-a-patch",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", "yes", condition="${spec.on}"),
                patch("/spec/y", "no", condition="${!spec.on}"),
                fields={"on": "boolean | default=true"},
            )
        ),
        {},
        id="condition-of-a-patch",
    ),
    pytest.param(
        build_setup(build_addon(patch("/spec/x", "${spec.enabled}"), env={"enabled": "boolean | default=true"})),
        {},
        id="enabled",
    ),
    pytest.param(
        build_setup(build_addon(patch("/spec/x", 1), env={"enabled": "boolean | default=false"})), {}, id="not-enabled"
    ),
    pytest.param(
        build_setup(build_addon(patch("/spec/x", "${target}")), condition="${1 > 2}"),
        {},
        id="condition-of-the-type-is-false",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", "${spec.grain}", target={"resourceId": "door"}), env={"grain": "string | default=g"}
            )
        ),
        {"grain": "h"},
        id="copies-of-a-loop",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch(
                    "/spec/x", 1, target={"selector": {"matchLabels": {"tier": "water"}}, "resourceType": "Deployment"}
                )
            )
        ),
        {},
        id="label",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/data/k", "${metadata.name}", target={"resourceId": "map"}),
                creates=[
                    {"id": "map", "resource": {**MAP, "data": {"size": "${string(spec.size)}"}}},
                    {
                        "includeWhen": "${spec.size > 4}",
                        "forEach": "${['a', spec.last]}",
                        "var": "one",
                        "template": {**MAP, "metadata": {"name": "${metadata.name}-${one}-${instanceId}"}},
                    },
                    {**MAP, "metadata": {"name": "bare"}},
                    {"includeWhen": "${false}", "template": MAP},
                ],
                fields={"last": "string"},
                env={"size": "integer | default=3"},
            ),
            config={"last": "z"},
        ),
        {"size": 5},
        id="creates",
    ),
    pytest.param(
        build_setup(
            build_addon(patch("/metadata/annotations", {"x": ["${metadata.name}"]})),
            build_addon(patch("/metadata/annotations", {"y": "2", "x": [2]})),
        ),
        {},
        id="merge-with-a-value-of-another-addon",
    ),
    pytest.param(
        build_setup(build_addon(patch("/metadata/labels", {"y": "${metadata.name}"}))),
        {},
        id="replace-a-value-of-the-definition",
    ),
    pytest.param(
        build_setup(
            build_addon(creates=[{"id": "b", "resource": MAP}]),
            build_addon(
                patch("/data", {"k": 1}, target={"resourceType": "ConfigMap"}),
                dependencies={"requires": [{"addon": "a"}]},
            ),
        ),
        {},
        id="a-resource-that-another-addon-creates",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", 1),
                fields={"a": "string | default=a"},
                validation={"rules": [{"expression": "spec.a == 'b'", "message": "no"}]},
            ),
            config={"a": "b"},
        ),
        {},
        id="rule-that-holds",
    ),
]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(("value", "mapping"), SAME)
def test_flattened_definition_renders_the_same_objects(value: FlattenSetup, mapping: dict[str, Any]) -> None:
    flattened = value.flatten()

    late = value.render_with_addons(SPEC, {"count": 2}, {"a": mapping})
    (key, *_) = value.read_addon_keys().values()
    early = value.render_flattened(SPEC, {"count": 2, **({key: mapping} if mapping else {})}, flattened)
    assert isinstance(late, str), late
    assert early == late


def test_flattened_definition_content() -> None:
    mount = patch(
        f"{POD}/containers/[?(@.name=='${{spec.container}}')]/volumeMounts/-",
        {"name": "${instanceId}", "at": "${spec.at}"},
    )
    claim = {"id": "claim", "resource": {**MAP, "data": {"size": "${spec.size}", "for": "${metadata.name}-${spec.at}"}}}
    addon = build_addon(
        mount,
        creates=[claim],
        env={"size": "string | default=1Gi"},
        types={"Unit": "string | minLength=1"},
        fields={"at": "string | required=true", "container": "string | default=main", "units": "[]Unit | default=[]"},
    )
    result = FlattenSetup(
        DEFINITION, {"spare-room": addon}, [{"name": "spare-room", "instanceId": "oats", "config": {"at": "/x"}}]
    )

    flattened = result.flatten()

    assert flattened["metadata"] == {
        "name": "mill-with-everything",
        "labels": {"composedFrom": "mill"},
        "annotations": {"platform/composed-from": "mill", "platform/addons": "spare-room/oats"},
    }
    schema, own = flattened["spec"]["schema"], DEFINITION["schema"]
    left = {"spareRoomOats": {"units": "[]spareRoomOats-units | default=[]"}}
    assert schema["parameters"] == {**own["parameters"], **left}
    assert schema["envOverrides"] == {**own["envOverrides"], "spareRoomOats": {"size": "string | default=1Gi"}}
    assert schema["types"] == {**own["types"], "spareRoomOats-units": "string | minLength=1"}
    wheel, _, value = flattened["spec"]["resources"]
    container, _ = wheel["template"]["spec"]["template"]["spec"]["containers"]
    assert container["volumeMounts"] == [{"name": "oats", "at": "/x"}]
    data = {"size": "${spec.spareRoomOats.size}", "for": "${metadata.name}-/x"}
    assert value == {"id": "claim", "template": {**MAP, "data": data}}


def test_flattening_is_deterministic() -> None:
    result = build_setup(build_addon(patch("/spec/x", "${spec.n}"), env={"n": "integer | default=1"}))

    assert emit(result.flatten()) == emit(result.flatten())


def test_environment_cannot_override_fixed_fields() -> None:
    result = build_setup(build_addon(patch("/spec/x", "${spec.n}"), env={"n": "integer | default=1"}), config={"n": 2})

    early = result.render_flattened(SPEC, {"a": {"n": 3}}, result.flatten())

    assert not isinstance(early, str)
    assert early[0].startswith("UnknownField: spec.overrides.a is an unknown field")


@pytest.mark.parametrize("name", ["target", "resources", "addon"])
def test_variable_that_only_a_render_has_is_refused(name: str) -> None:
    ((code, message),) = build_setup(build_addon(patch("/spec/x", f"${{size({name}) > 0}}"))).list_refusals()

    assert code == "NotBakeable"
    assert (
        f'spec.patches[0].patch.value must not use the variable "{name}", because this variable does not exist in definitions; found the expression "size({name}) > 0"'
        in message
    )


REFUSED = [
    pytest.param(
        build_addon(patch("/spec/x", 1, condition="${env.name == 'live'}")),
        'must not use the variable "env", because its value is unknown before a render; found the expression "env.name == \'live\'"',
        id="condition-of-a-patch",
    ),
    pytest.param(
        build_addon(patch("/spec/x", 1), condition="${metadata.name == 'x'}"),
        'must not use the variable "metadata", because its value is unknown before a render; found the expression "metadata.name == \'x\'"',
        id="condition",
    ),
    pytest.param(
        build_addon(patch("/spec/x", 1, target={"resourceId": "${metadata.name}"})),
        'spec.patches[0].target.resourceId must not use the variable "metadata", because its value is unknown before a render',
        id="target",
    ),
    pytest.param(
        build_addon(patch("/metadata/labels/${build.image}", 1)),
        'spec.patches[0].patch.path must not use the variable "build", because its value is unknown before a render; found the expression "build.image"',
        id="path",
    ),
    pytest.param(
        build_addon(patch("/spec/x", 1, forEach="${workload.zones}")),
        'spec.patches[0].forEach must not use the variable "workload", because its value is unknown before a render; found the expression "workload.zones"',
        id="loop",
    ),
    pytest.param(
        build_addon(patch("/spec/x", 1, condition="${spec.a == 'x'}"), fields={"a": "string"}),
        "spec.patches[0].condition has the expression \"spec.a == 'x'\", which failed",
        id="no-value",
    ),
    pytest.param(
        build_addon(patch(f"{POD}/containers/[?(@.args=='x')]/env/-", 1)), "must match an item in", id="nothing-found"
    ),
    pytest.param(
        build_addon(patch(f"{POD}/containers/[?(@.image=='x')]/env/-", 1)),
        'spec.patches[0].patch.path must have a result that is known before a render, but depends on "${build.image}"',
        id="filter-that-meets-an-expression",
    ),
    pytest.param(
        build_addon(patch("/spec/replicas/x", 1)), 'but depends on "${spec.count}"', id="path-through-an-expression"
    ),
    pytest.param(
        build_addon(patch("/metadata/labels/open", 1, target={"resourceId": "door"})),
        'but depends on "${door.name}"',
        id="key-that-may-be-another",
    ),
    pytest.param(build_addon(patch(f"{POD}/tolerations/-", 1)), "omit()", id="list-that-may-not-be-there"),
    pytest.param(build_addon(patch(f"{POD}/tolerations", [])), "omit()", id="value-that-may-not-be-there"),
    pytest.param(
        build_addon(patch("/spec/all", "${metadata.labels}"), patch("/spec/all", {"x": 1}, op="merge")),
        "spec.patches[1].patch.value must have a result that is known before a render",
        id="merge-into-an-expression",
    ),
    pytest.param(
        build_addon(patch("/metadata/labels/tier", "${metadata.labels}", op="merge")),
        'but depends on "${metadata.labels}"',
        id="merge-of-one",
    ),
    pytest.param(
        build_addon(patch("/spec/x/y", "${size(metadata.labels) > 0 ? 1 : omit()}")),
        "omit()",
        id="parents-of-a-value-that-can-be-omitted",
    ),
    pytest.param(
        build_addon(patch("/spec/x", 1, target={"selector": {"matchLabels": {"grain": "rye"}}})),
        'spec.patches[0].target must have a result that is known before a render, but depends on "${spec.grain}"',
        id="label-that-is-an-expression",
    ),
    pytest.param(
        build_addon(patch("/spec/x", 1, target={"selector": {"matchLabels": {"wide": "open"}}})),
        'but depends on "${door.name}"',
        id="label-with-a-key-that-is-one",
    ),
    pytest.param(
        build_addon(patch("/spec/x", 1), validation={"rules": [{"expression": "env.name != ''", "message": "no"}]}),
        "must only use fields that the type sets, because definitions cannot contain rules; found the expression \"env.name != ''\"",
        id="rule",
    ),
    pytest.param(
        build_addon(
            patch("/spec/x", "${spec}", condition="${spec.on}"),
            env={"on": "boolean | default=true", "n": "integer | default=1"},
        ),
        'must refer to single fields, such as spec.port, because the type sets some fields of the same object; found the expression "spec"',
        id="values-of-which-some-decide-on-placement",
    ),
    pytest.param(
        build_addon(creates=[{"id": "wheel", "resource": MAP}]),
        'spec.creates[0].id must be unique, but ComponentDefinition mill also uses "wheel"',
        id="id-that-is-taken",
    ),
    pytest.param(
        build_addon(patch("/spec/x", "${parameters}"), fields={"a": "string | default=a", "b": "string | default=b"}),
        'must refer to single fields, such as spec.port, because the type sets some fields of the same object; found the expression "parameters"',
        id="section-of-which-some-is-fixed",
    ),
]


@pytest.mark.parametrize(("addon", "expected"), REFUSED)
def test_addon_that_cannot_be_flattened_is_refused(addon: dict[str, Any], expected: str) -> None:
    config = {"a": "x"} if "b" in addon["schema"]["parameters"] else {}

    refusals = build_setup(addon, config=config).list_refusals()

    assert [code for code, _ in refusals] == ["NotBakeable"]
    assert refusals[0][1].startswith('Addon a prevents the generation of the definition "mill-with-everything": ')
    assert expected in refusals[0][1]


OTHERS = [
    pytest.param(
        FlattenSetup(
            DEFINITION,
            {"grain": build_addon(patch("/spec/x", "${spec.n}"), env={"n": "integer | default=1"})},
            [{"name": "grain"}],
        ),
        [
            (
                "AddonKeyCollision",
                'grain/default" has the key "grain", which is also a field of the component definition',
            )
        ],
        id="key-of-a-field",
    ),
    pytest.param(
        FlattenSetup(
            DEFINITION,
            dict.fromkeys(("a-b", "a"), build_addon(patch("/spec/x", "${spec.n}"), env={"n": "integer | default=1"})),
            [{"name": "a-b"}, {"name": "a", "instanceId": "b"}],
        ),
        [
            (
                "AddonKeyCollision",
                '/b" has the key "aB", which is also the key of the addon instance "a-b/default"; keys must be unique',
            ),
            (
                "AddonKeyCollision",
                'a-b/default" has the key "aB", which is also the key of the addon instance "a/b"; keys must be unique',
            ),
        ],
        id="key-of-another-addon",
    ),
    pytest.param(
        FlattenSetup(
            DEFINITION,
            {"3d": build_addon(patch("/spec/x", "${spec.n}"), env={"n": "integer | default=1"})},
            [{"name": "3d"}],
        ),
        [("AddonKeyInvalid", 'the name of the addon "3d" results in the key "3d", which is not a valid field name')],
        id="no-key",
    ),
    pytest.param(
        FlattenSetup(DEFINITION, {"a.b": build_addon(creates=[MAP])}, [{"name": "a.b"}]),
        [("NotBakeable", "spec.creates[0].id must be lower-case letters, digits")],
        id="no-id",
    ),
    pytest.param(
        build_setup(build_addon(patch("/spec/x", 1)), condition="${metadata.name != ''}"),
        [
            (
                "NotBakeable",
                "spec.platformAddons[0].condition must not use variables, because their values are unknown when the type is flattened",
            )
        ],
        id="condition-of-the-type",
    ),
    pytest.param(
        build_setup(
            build_addon(patch("/spec/x", 1), condition="${false}"),
            build_addon(patch("/spec/x", 1), dependencies={"requires": [{"addon": "a"}]}),
        ),
        [("AddonRequirementMissing", '" requires the addon "a", but "a" is not in use')],
        id="what-is-required-does-not-work",
    ),
    pytest.param(
        build_setup(
            build_addon(patch("/spec/x", "${target} ${addon.name}")),
            build_addon(creates=[{**MAP, "x": "${resources}"}]),
        ),
        [
            ("NotBakeable", 'spec.patches[0].patch.value must not use the variable "target"'),
            (
                "NotBakeable",
                'Addon a prevents the generation of the definition "mill-with-everything": spec.patches[0].patch.value must not use the variable "addon"',
            ),
            (
                "NotBakeable",
                'Addon b prevents the generation of the definition "mill-with-everything": spec.creates[0].x must not use the variable "resources"',
            ),
        ],
        id="every-addon-is-reported",
    ),
    pytest.param(
        build_setup(
            build_addon(patch("/metadata/annotations", {"x": 1})),
            build_addon(patch("/metadata/annotations", "${metadata.labels}")),
        ),
        [("NotBakeable", 'but depends on "${metadata.labels}"')],
        id="what-another-addon-set-may-be-merged-with",
    ),
    pytest.param(
        build_setup(
            build_addon(
                patch("/spec/x", 1),
                fields={"a": "string | default=a"},
                validation={"rules": [{"expression": "spec.a == 'b'", "message": "must be b"}]},
            ),
            config={"a": "c"},
        ),
        [("NotBakeable", "the rule at spec.validation.rules[0] is not met: must be b")],
        id="rule-that-does-not-hold",
    ),
    pytest.param(
        build_setup(
            build_addon(patch("/spec/x", "${[spec.long, metadata.name]}"), fields={"long": "string"}),
            config={"long": "x" * 5000},
        ),
        [("NotBakeable", 'the flattened definition "mill-with-everything" is not valid: ')],
        id="expression-that-becomes-too-long",
    ),
    pytest.param(
        FlattenSetup(
            {
                **DEFINITION,
                "resources": [{"id": "all", "template": {**MAP, "data": "${spec.transformMap(k, v, string(k))}"}}],
            },
            {
                "a": build_addon(
                    patch("/x", "${spec.n}", target={"resourceId": "all"}), env={"n": "integer | default=1"}
                )
            },
            [{"name": "a"}],
        ),
        [
            (
                "NotBakeable",
                "must refer to single fields, such as spec.port, because addons add fields to the same object",
            )
        ],
        id="definition-that-uses-all-fields",
    ),
]


@pytest.mark.parametrize(("value", "expected"), OTHERS)
def test_component_type_that_cannot_be_flattened_is_refused(
    value: FlattenSetup, expected: list[tuple[str, str]]
) -> None:
    refusals = value.list_refusals()

    assert [code for code, _ in refusals] == [code for code, _ in expected]
    for (_, message), (_, part) in zip(refusals, expected, strict=True):
        assert part in message


def test_refusal_is_located_at_the_component_type() -> None:
    plan = build_setup(build_addon(patch("/spec/x", 1)), build_addon(patch("/spec/x", "${target}"))).build_plan()

    result = flatten_component_type(plan, FLATTENED_NAME, LIMITS)

    assert isinstance(result, tuple)
    assert (result[0].location.file, result[0].location.pointer) == ("river-mill.yaml", "/spec/platformAddons/1")


def test_too_large_definition_exceeds_the_budget() -> None:
    many = {f"k{number}": "${[spec.long, metadata.name]}" for number in range(2000)}
    result = build_setup(build_addon(patch("/spec/x", many), fields={"long": "string"}), config={"long": "x" * 100_000})

    ((code, message),) = result.list_refusals()

    assert code == "NotBakeable"
    assert "exceeds the budget of the render" in message
