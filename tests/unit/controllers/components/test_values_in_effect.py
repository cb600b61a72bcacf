"""Tests of effective values: the layers of a value, the location of findings, and the target of overrides."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.components.component_builders import (
    addon,
    allowed,
    annotator,
    binding,
    component,
    component_type,
    create,
    definition,
    find_finding,
    full_config,
    list_codes,
    list_findings,
    manifest,
    patch,
    platform,
    read_values,
    reconcile,
    schema,
)

STALL = definition(
    values=schema(
        {
            "image": "string | default=plain",
            "tags": "[]string | default=[]",
            "nest": {"a": "integer | default=1", "b": "string"},
            "maybe": "string | nullable=true default=x",
        },
        {
            "size": "integer | default=1 minimum=0 maximum=9",
            "nest": {"c": "integer | default=2"},
            "list": "[]string",
            "free": "object",
            "map": "map[string]string",
            "perhaps": "string | nullable=true default=y",
        },
    )
)
DEFAULTS = {"image": "plain", "tags": [], "nest": {"a": 1, "c": 2}, "maybe": "x", "size": 1, "perhaps": "y"}
LAMP_VALUES = schema(
    {"watt": "integer | default=3", "cord": "string"}, {"glow": "string | default=dim", "at": "object"}
)
LAMP = addon("desk-lamp", {
    "schema": LAMP_VALUES, "creates": [create(manifest(name="${metadata.name}-${instanceId}", data="${spec}"))],
}, side="both")  # fmt: skip


def read_effective_values(of: Any = None, overrides: Any = None) -> dict[str, Any]:
    """Return the effective values of a component with the values `of` in an environment with `overrides`."""
    on = binding(overrides=overrides) if overrides is not None else binding()
    result = reconcile(full_config(STALL, component_type(), of=component(of), on=on))

    assert list_codes(result) == []
    output: dict[str, Any] = read_values(result)
    return output


@pytest.mark.parametrize(
    ("of", "overrides", "changed"),
    [
        pytest.param({}, None, {}, id="defaults"),
        pytest.param(
            {"image": "own", "size": 3}, None, {"image": "own", "size": 3}, id="the-component-sets-both-kinds"
        ),
        pytest.param({"size": 3}, {"size": 4}, {"size": 4}, id="the-environment-is-last"),
        pytest.param({"size": 3}, {}, {"size": 3}, id="an-environment-without-overrides"),
        pytest.param({"size": None}, None, {}, id="row-11-null-is-absent"),
        pytest.param({"size": 3}, {"size": None}, {}, id="null-shows-the-default-again"),
        pytest.param({"nest": {"b": "x"}}, None, {"nest": {"a": 1, "b": "x", "c": 2}}, id="a-part-of-a-map"),
        pytest.param({"nest": None}, None, {}, id="null-instead-of-a-map"),
        pytest.param(
            {"nest": {"b": "x", "c": 5}}, {"nest": {"c": 6}}, {"nest": {"a": 1, "b": "x", "c": 6}}, id="maps-are-merged"
        ),
        pytest.param(
            {"nest": {"b": "x", "c": 5}},
            {"nest": {"c": None}},
            {"nest": {"a": 1, "b": "x", "c": 2}},
            id="null-deep-inside",
        ),
        pytest.param({"list": ["a", "b"]}, {"list": ["c"]}, {"list": ["c"]}, id="lists-are-replaced"),
        pytest.param({"list": ["a"]}, {"list": []}, {"list": []}, id="also-by-an-empty-one"),
        pytest.param(
            {"free": {"a": {"b": 1}}}, {"free": {"a": {"c": 2}}}, {"free": {"a": {"b": 1, "c": 2}}}, id="free"
        ),
        pytest.param({"free": {"a": 1}}, {"free": {"a": None, "b": 2}}, {"free": {"b": 2}}, id="null-in-free-form"),
        pytest.param({"map": {"k": "a", "l": "b"}}, {"map": {"k": None}}, {"map": {"l": "b"}}, id="null-in-a-map"),
        pytest.param({"maybe": None}, None, {"maybe": None}, id="null-that-may-be-is-a-value"),
        pytest.param({"perhaps": "z"}, {"perhaps": None}, {"perhaps": None}, id="of-an-environment-too"),
    ],
)
def test_values_of_a_component(of: Any, overrides: Any, changed: Any) -> None:
    assert read_effective_values(of, overrides) == {**DEFAULTS, **changed}


@pytest.mark.parametrize(
    ("overrides", "code", "message", "line"),
    [
        pytest.param(
            {"image": "x"},
            "NotOverridable",
            "image is declared in parameters, so environments cannot override it",
            11,
            id="a-parameter",
        ),
        pytest.param({"image": None}, "NotOverridable", "image is declared in parameters", 11, id="null-for-one"),
        pytest.param({"nest": {"a": 3}}, "NotOverridable", "nest.a is declared in parameters", 12, id="deep-inside"),
        pytest.param({"nest": {"a": None}}, "NotOverridable", "nest.a is declared in param", 12, id="null-deep-inside"),
        pytest.param(
            {"nest": None},
            "NotOverridable",
            "nest must not be null, because it contains fields that are declared in parameters",
            11,
            id="null-for-what-holds-one",
        ),
        pytest.param(
            {"bogus": 1}, "UnknownField", "bogus is an unknown field; allowed fields: free, list, map", 11, id="unknown"
        ),
        pytest.param({"bogus": None}, "UnknownField", "bogus is an unknown field", 11, id="null-for-what-is-unknown"),
        pytest.param(
            {"nest": {"z": 1}}, "UnknownField", "nest.z is an unknown field; allowed fields: c", 12, id="unknown-inside"
        ),
        pytest.param({"size": 50}, "SchemaValidation", "size must be at most 9, but is 50", 11, id="too-much"),
        pytest.param({"size": "4"}, "SchemaValidation", 'size must be an integer, but is "4"', 11, id="type"),
        pytest.param({"nest": 3}, "SchemaValidation", "nest must be a mapping, but is 3", 11, id="no-map"),
        pytest.param({"list": [1]}, "SchemaValidation", "list[0] must be a string, but is 1", 12, id="item"),
        pytest.param({"map": {"k": 1}}, "SchemaValidation", "map.k must be a string, but is 1", 12, id="entry"),
    ],
)
def test_invalid_override_is_reported(overrides: Any, code: str, message: str, line: int) -> None:
    result = reconcile(full_config(STALL, component_type(), on=binding(overrides=overrides)))

    (item,) = list_findings(result)
    assert (item.code, item.location.object, item.location.line) == (code, "EnvBinding/square/bread-fair", line)
    assert item.message.startswith(f"spec.overrides.{message}")
    assert result.variants == ()


def test_all_errors_are_located_at_their_objects() -> None:
    on, of = binding(overrides={"size": 50, "image": "x", "bogus": 1}), component({"tags": [1], "nest": {"a": "y"}})
    result = reconcile(full_config(STALL, component_type(), on=on, of=of))

    assert sorted(
        (item.location.object.partition("/")[0], item.code, item.message[:22]) for item in list_findings(result)
    ) == [
        ("EnvBinding", "NotOverridable", "spec.overrides.image i"),
        ("EnvBinding", "SchemaValidation", "spec.overrides.size mu"),
        ("EnvBinding", "UnknownField", "spec.overrides.bogus i"),
        ("MarketStall", "SchemaValidation", "spec.nest.a must be an"),
        ("MarketStall", "SchemaValidation", "spec.tags[0] must be a"),
    ]


@pytest.mark.parametrize(
    ("of", "overrides", "expected"),
    [
        pytest.param({"a": "1", "b": "2"}, {"c": "3"}, 3, id="part-of-what-is-enough"),
        pytest.param({"a": "1", "b": "2", "c": "3"}, {"c": None, "d": "4"}, 3, id="one-instead-of-another"),
        pytest.param({"a": "1", "b": "2", "c": "3"}, {"d": "4"}, "must have at most 3", id="too-many-in-all"),
        pytest.param({"a": "1", "b": "2"}, {"b": None}, "must have at least 2", id="too-few-in-all"),
    ],
)
def test_number_of_entries_is_validated_after_the_merge(of: Any, overrides: Any, expected: Any) -> None:
    stall = definition(values=schema({}, {"map": "map[string]string | minProperties=2 maxProperties=3"}))
    on = binding(overrides={"map": overrides})
    result = reconcile(full_config(stall, component_type(), of=component({"map": of}), on=on))

    if isinstance(expected, int):
        assert len(read_values(result)["map"]) == expected
    else:
        assert expected in find_finding(result, "SchemaValidation").message


def test_error_of_merged_layers_is_located_at_the_last_layer() -> None:
    """Each layer is valid alone. Together they have too many entries."""
    stall = definition(values=schema({}, {"map": "map[string]string | maxProperties=2"}))
    of, on = component({"map": {"a": "1", "b": "2"}}), binding(overrides={"map": {"c": "3"}})
    result = reconcile(full_config(stall, component_type(), of=of, on=on))

    (item,) = list_findings(result)
    assert (item.code, item.location.object) == ("SchemaValidation", "EnvBinding/square/bread-fair")
    assert item.message.startswith("spec.overrides.map must have at most 2")


def test_missing_required_value_is_located_at_the_component() -> None:
    stall = definition(values=schema({"nest": {"deep": "string | required=true"}, "top": "string | required=true"}))
    result = reconcile(full_config(stall, component_type(), of=component({"nest": {}})))

    assert [(item.message, item.location.object) for item in list_findings(result)] == [
        ("spec.nest.deep is missing; set it to a string", "MarketStall/square/bread"),
        ("spec.top is missing; set it to a string", "MarketStall/square/bread"),
    ]


def reconcile_lamp(config: Any = None, overrides: Any = None, instance: str = "left") -> Any:
    kind = component_type(platform("desk-lamp", instance, config))
    on = binding(platformAddonOverrides=overrides) if overrides is not None else binding()
    return reconcile(full_config(STALL, LAMP, kind, on=on))


@pytest.mark.parametrize(
    ("config", "overrides", "expected"),
    [
        pytest.param({}, None, {"watt": 3, "glow": "dim"}, id="defaults"),
        pytest.param({"watt": 5, "glow": "red"}, None, {"watt": 5, "glow": "red"}, id="the-type-sets-both-kinds"),
        pytest.param({"glow": "red"}, {"deskLamp": {"glow": "blue"}}, {"watt": 3, "glow": "blue"}, id="the-key"),
        pytest.param({}, {"desk-lamp": {"glow": "blue"}}, {"watt": 3, "glow": "blue"}, id="the-name"),
        pytest.param({}, {"deskLamp": {"left": {"glow": "blue"}}}, {"watt": 3, "glow": "blue"}, id="the-instance"),
        pytest.param({"glow": "red"}, {"deskLamp": {"glow": None}}, {"watt": 3, "glow": "dim"}, id="null"),
        pytest.param({"glow": "red"}, {"deskLamp": None}, {"watt": 3, "glow": "red"}, id="nothing"),
        pytest.param({"glow": "red"}, {"deskLamp": {"left": None}}, {"watt": 3, "glow": "red"}, id="nothing-inside"),
        pytest.param(
            {"at": {"x": 1}},
            {"deskLamp": {"at": {"y": 2}}},
            {"watt": 3, "glow": "dim", "at": {"x": 1, "y": 2}},
            id="map",
        ),
    ],
)
def test_values_of_a_platform_addon(config: Any, overrides: Any, expected: Any) -> None:
    result = reconcile_lamp(config, overrides)

    assert list_codes(result) == []
    assert read_values(result, "configmap-bread-left.yaml") == expected


@pytest.mark.parametrize(
    ("overrides", "code", "message"),
    [
        pytest.param(
            {"deskLamp": {"watt": 9}}, "NotOverridable", "deskLamp.watt is declared in parameters", id="parameter"
        ),
        pytest.param(
            {"deskLamp": {"left": {"watt": 9}}}, "NotOverridable", "deskLamp.left.watt is declared in", id="by-instance"
        ),
        pytest.param(
            {"deskLamp": {"right": {}}}, "UnknownField", "deskLamp.right is an unknown field", id="another-instance"
        ),
        pytest.param(
            {"deskLamp": {"left": {}, "glow": "x"}},
            "UnknownField",
            "deskLamp.left is an unknown field",
            id="instance-and-field",
        ),
        pytest.param(
            {"deskLamp": {"left": 3}}, "SchemaValidation", "deskLamp.left must be a mapping of f", id="no-map"
        ),
        pytest.param({"deskLamp": {"glow": 3}}, "SchemaValidation", "deskLamp.glow must be a string", id="type"),
        pytest.param(
            {"lamp": {}},
            "OverrideTargetUnknown",
            "lamp is not the key of an addon that the component uses",
            id="unknown",
        ),
        pytest.param(
            {"deskLamp": {}, "desk-lamp": {}},
            "OverrideKeyAmbiguous",
            'deskLamp and spec.platformAddonOverrides.desk-lamp both override the addon "desk-lamp"; use only one of the keys',
            id="twice",
        ),
    ],
)
def test_invalid_override_of_a_platform_addon_is_reported(overrides: Any, code: str, message: str) -> None:
    result = reconcile_lamp({}, overrides)

    assert list_codes(result) == [code]
    assert find_finding(result, code).message.startswith(f"spec.platformAddonOverrides.{message}")
    assert find_finding(result, code).location.object == "EnvBinding/square/bread-fair"
    assert result.variants == ()


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        pytest.param({"deskLamp": {"left": {"glow": "red"}}}, ("red", "dim"), id="one"),
        pytest.param({"deskLamp": {"left": {"glow": "red"}, "right": {"glow": "blue"}}}, ("red", "blue"), id="both"),
        pytest.param({"desk-lamp": {"right": {"glow": "blue"}}}, ("dim", "blue"), id="by-name"),
        pytest.param({"deskLamp": {}}, ("dim", "dim"), id="none"),
        pytest.param({"deskLamp": {"glow": "red"}}, "OverrideTargetUnknown", id="a-field"),
        pytest.param({"deskLamp": {"left": {}, "up": {}}}, "OverrideTargetUnknown", id="absent-instance"),
        pytest.param({"deskLamp": {"left": {"watt": 1}}}, "NotOverridable", id="a-parameter"),
    ],
)
def test_overrides_of_two_instances(overrides: Any, expected: Any) -> None:
    kind = component_type(platform("desk-lamp", "left"), platform("desk-lamp", "right"))
    result = reconcile(full_config(STALL, LAMP, kind, on=binding(platformAddonOverrides=overrides)))

    if isinstance(expected, str):
        assert list_codes(result) == [expected]
    else:
        generator_type = (read_values(result, f"configmap-bread-{name}.yaml")["glow"] for name in ("left", "right"))
        assert tuple(generator_type) == expected


def test_field_has_priority_over_an_instance_with_the_same_name() -> None:
    """The mapping contains the value of the field."""
    result = reconcile_lamp({}, {"deskLamp": {"at": {"glow": "red"}}}, instance="at")

    assert read_values(result, "configmap-bread-at.yaml") == {"watt": 3, "glow": "dim", "at": {"glow": "red"}}


def test_instance_with_the_name_of_a_parameter_is_overridden() -> None:
    result = reconcile_lamp({}, {"deskLamp": {"cord": {"glow": "red"}}}, instance="cord")

    assert read_values(result, "configmap-bread-cord.yaml") == {"watt": 3, "glow": "red"}


@pytest.mark.parametrize(
    ("key", "codes"), [("aB", ["OverrideKeyAmbiguous"]), ("a-b", []), ("a.b", []), ("ab", ["OverrideTargetUnknown"])]
)
def test_ambiguous_key_of_two_platform_addons(key: str, codes: list[str]) -> None:
    kind = component_type(platform("a-b", "x"), platform("a.b", "x"))
    result = reconcile(
        full_config(STALL, annotator("a-b"), annotator("a.b"), kind, on=binding(platformAddonOverrides={key: {}}))
    )

    assert list_codes(result) == codes


def reconcile_developer_lamp(of: Any, overrides: Any, defaults: Any = None) -> Any:
    kind = component_type(allow=[allowed("desk-lamp", defaults)])
    return reconcile(
        full_config(STALL, LAMP, kind, of=component({"deskLamp": of}), on=binding(addonOverrides=overrides))
    )


@pytest.mark.parametrize(
    ("defaults", "of", "overrides", "expected"),
    [
        pytest.param({}, {}, {}, {"watt": 3, "glow": "dim"}, id="defaults"),
        pytest.param({"glow": "red"}, {}, {}, {"watt": 3, "glow": "red"}, id="those-of-the-type"),
        pytest.param(
            {"glow": "red", "cord": "long"},
            {"glow": "blue"},
            {},
            {"watt": 3, "cord": "long", "glow": "blue"},
            id="the-component",
        ),
        pytest.param(
            {"glow": "red"},
            {"glow": "blue"},
            {"deskLamp": {"glow": "green"}},
            {"watt": 3, "glow": "green"},
            id="the-environment",
        ),
        pytest.param(
            {"glow": "red"},
            {"glow": "blue"},
            {"deskLamp": {"glow": None}},
            {"watt": 3, "glow": "red"},
            id="null-shows-that-of-the-type",
        ),
        pytest.param(
            {"at": {"x": 1, "y": 2}},
            {"at": {"y": 3}},
            {},
            {"watt": 3, "glow": "dim", "at": {"y": 3}},
            id="free-form-is-one-leaf",
        ),
    ],
)
def test_values_of_a_developer_addon(defaults: Any, of: Any, overrides: Any, expected: Any) -> None:
    result = reconcile_developer_lamp(of, overrides, defaults)

    assert list_codes(result) == []
    assert read_values(result, "configmap-bread-default.yaml") == expected


@pytest.mark.parametrize(
    ("of", "overrides", "code", "where", "message"),
    [
        pytest.param(
            {"watt": "x"}, {}, "SchemaValidation", "MarketStall", "spec.deskLamp.watt must be an integer", id="type"
        ),
        pytest.param(
            {"wat": 1}, {}, "UnknownField", "MarketStall", "spec.deskLamp.wat is an unknown field", id="unknown"
        ),
        pytest.param(
            {},
            {"deskLamp": {"watt": 1}},
            "NotOverridable",
            "EnvBinding",
            "spec.addonOverrides.deskLamp.watt is",
            id="parameter",
        ),
        pytest.param(
            {},
            {"deskLamp": {"wat": 1}},
            "UnknownField",
            "EnvBinding",
            "spec.addonOverrides.deskLamp.wat",
            id="unknown-override",
        ),
        pytest.param(
            {},
            {"deskLamp": {"glow": 1}},
            "SchemaValidation",
            "EnvBinding",
            "spec.addonOverrides.deskLamp.glow",
            id="type-of-an-override",
        ),
        pytest.param(
            {},
            {"desk-lamp": {}},
            "OverrideTargetUnknown",
            "EnvBinding",
            "spec.addonOverrides.desk-lamp is not the key",
            id="the-name-is-no-key",
        ),
        pytest.param(
            {},
            {"lamp": {}},
            "OverrideTargetUnknown",
            "EnvBinding",
            "spec.addonOverrides.lamp is not the key of an addon",
            id="addon-that-is-not-allowed",
        ),
    ],
)
def test_invalid_value_of_a_developer_addon_is_reported(
    of: Any, overrides: Any, code: str, where: str, message: str
) -> None:
    result = reconcile_developer_lamp(of, overrides)

    assert list_codes(result) == [code]
    assert find_finding(result, code).message.startswith(message)
    assert find_finding(result, code).location.object.partition("/")[0] == where
    assert result.variants == ()


@pytest.mark.parametrize("of", [{}, {"deskLamp": None}], ids=["absent", "null"])
def test_override_of_an_unused_addon_is_a_warning(of: Any) -> None:
    kind = component_type(allow=[allowed("desk-lamp")])
    on = binding(addonOverrides={"deskLamp": {"glow": "red", "wat": 1}})
    result = reconcile(full_config(STALL, LAMP, kind, of=component(of), on=on))

    assert list_codes(result) == ["OverrideUnused"]
    assert find_finding(result, "OverrideUnused").message == (
        'spec.addonOverrides.deskLamp has no effect, because the component "bread" does not use the addon "desk-lamp"'
    )
    assert len(result.variants) == 1


@pytest.mark.parametrize(("enabled", "codes"), [(True, []), (False, ["OverrideUnused"])])
def test_override_of_an_inactive_addon_is_a_warning(enabled: bool, codes: list[str]) -> None:
    """The value `enabled: false` makes an addon inactive."""
    lamp = addon("lamp", {
        "schema": schema({"enabled": "boolean | default=true"}, {"glow": "string"}),
        "creates": [create(manifest(name="lamp", data="${spec}"))],
    }, side="developer")  # fmt: skip
    kind = component_type(allow=[allowed("lamp")])
    of, on = component({"lamp": {"enabled": enabled}}), binding(addonOverrides={"lamp": {"glow": "red"}})
    result = reconcile(full_config(STALL, lamp, kind, of=of, on=on))

    assert list_codes(result) == codes
    if codes:
        assert find_finding(result, "OverrideUnused").message == (
            "MarketStall square/bread in fair: spec.addonOverrides.lamp has no effect,"
            " because the condition of the addon lamp/default is false"
        )


def test_render_does_not_change_default_values() -> None:
    """A patch that appends to a default list does not change the list for the next render."""
    grow = addon("grow", {
        "schema": schema({"list": "[]string | default=[]"}),
        "creates": [create(manifest(name="${metadata.name}-grown", data={"list": "${spec.list}"}))],
        "patches": [patch("add", "/data/list/-", "x")],
    })  # fmt: skip
    texts = [
        definition(),
        grow,
        component_type(platform("grow", "i")),
        component(name="cake"),
        binding(component="cake"),
    ]
    result = reconcile(full_config(*texts))

    assert read_values(result, "configmap-bread-grown.yaml") == {"list": ["x"]}
    (cake,) = (variant for variant in result.variants if variant.target.package.endswith("cake"))
    assert b"list:\n    - x\n" in dict(cake.source.files.items())["configmap-cake-grown.yaml"].data  # type: ignore[union-attr]
