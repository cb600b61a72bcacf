"""Rendering a component: its resources, and what must not come out of it (openchoreo 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.controllers.components.component_builders import (
    FALSE,
    SIZED,
    TRUE,
    addon,
    binding,
    component,
    component_type,
    config_of_templates,
    create,
    definition,
    find_finding,
    full_config,
    list_codes,
    list_findings,
    manifest,
    patch,
    platform,
    read_objects,
    read_values,
    reconcile,
    resource,
    schema,
)

Template = Mapping[str, Any]


def nameless(**changed: Any) -> Template:
    """Return a template of an object of which something is missing (None), or other than it should be."""
    whole = {**manifest(), "metadata": {"name": "x", "namespace": "square"}, **changed}
    return {key: value for key, value in whole.items() if value is not None}


@pytest.mark.parametrize(
    ("template", "why"),
    [
        pytest.param(nameless(apiVersion=None), "apiVersion must be a string that is not empty, not null", id="no-api"),
        pytest.param(nameless(apiVersion="${1}"), "apiVersion must be a string that is not empty, not 1", id="api-int"),
        pytest.param(nameless(apiVersion="${''}"), 'apiVersion must be a string that is not empty, not ""', id="api"),
        pytest.param(
            nameless(apiVersion="../../etc/v1"),
            'must be a valid Kubernetes API version such as apps/v1, not "../../etc/v1"',
            id="api-path",
        ),
        pytest.param(
            nameless(apiVersion="a/b/v1"),
            'must be a valid Kubernetes API version such as apps/v1, not "a/b/v1"',
            id="api-of-three",
        ),
        pytest.param(nameless(kind="../Secret"), 'kind must consist of letters and digits, not "../Secret"', id="kind"),
        pytest.param(nameless(metadata=None), "metadata.name must be a string of 1 to 253", id="no-metadata"),
        pytest.param(nameless(metadata=[]), "metadata.name must be a string of 1 to 253", id="metadata-list"),
        pytest.param(nameless(metadata={}), "characters, not null", id="no-name"),
        pytest.param(nameless(metadata={"name": "${omit()}"}), "characters, not null", id="name-is-left-out"),
        pytest.param(nameless(metadata={"name": "${7}"}), "characters, not 7", id="name-int"),
        pytest.param(nameless(metadata={"name": ""}), 'characters, not ""', id="name-empty"),
        pytest.param(nameless(metadata={"name": "n" * 254}), "metadata.name must be a string of 1 to 253", id="long"),
        *(
            pytest.param(nameless(metadata={"name": name}), "metadata.name must be a valid Kubernetes name", id=name)
            for name in ("../../etc", "a/b", "..", ".", "a b", "a%2Fb", "a\nb")
        ),
    ],
)
def test_what_is_no_object(template: Template, why: str) -> None:
    result = reconcile(config_of_templates(template))

    assert list_codes(result) == ["RenderedObjectInvalid"]
    output = find_finding(result, "RenderedObjectInvalid")
    title = "MarketStall/square/bread in fair: spec.resources[0].template must render a Kubernetes resource: "
    assert output.message.startswith(title)
    assert why in output.message
    assert (output.location.file, output.location.object) == ("02.yaml", "ComponentDefinition/_cluster/stall")
    assert result.variants == ()


@pytest.mark.parametrize("name", ["system:seller", "A", "ä"])
def test_names_that_only_some_kinds_can_have(name: str) -> None:
    assert [
        item["metadata"]["name"] for item in read_objects(reconcile(config_of_templates(manifest(name=name)))).values()
    ] == [name]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(patch("remove", "/apiVersion"), id="no-api"),
        pytest.param(patch("remove", "/metadata/name"), id="no-name"),
        pytest.param(patch("replace", "/metadata", "text"), id="metadata-is-text"),
        pytest.param(patch("replace", "/metadata/name", "../x"), id="a-path"),
        pytest.param(patch("replace", "/kind", ""), id="no-kind"),
    ],
)
def test_what_is_no_object_after_an_addon(change: Any) -> None:
    result = reconcile(config_of_templates(manifest(), addons=[addon("a0", {"patches": [change]})]))

    assert list_codes(result) == ["RenderedObjectInvalid"]
    assert find_finding(result, "RenderedObjectInvalid").message.endswith("; it was patched by a0/i")


@pytest.mark.parametrize(
    ("namespace", "codes"),
    [
        pytest.param("square", [], id="its-own"),
        pytest.param(None, [], id="none"),
        pytest.param("${omit()}", [], id="left-out"),
        pytest.param("elsewhere", ["NamespaceNotAllowed"], id="row-55-another"),
        pytest.param("${1}", ["NamespaceNotAllowed"], id="number"),
        pytest.param("", ["NamespaceNotAllowed"], id="empty"),
    ],
)
def test_the_namespace_is_that_of_the_component(namespace: Any, codes: list[str]) -> None:
    result = reconcile(config_of_templates(nameless(metadata={"name": "x", "namespace": namespace})))

    assert list_codes(result) == codes
    assert bool(result.variants) == (not codes)


def test_an_addon_cannot_move_an_object_elsewhere() -> None:
    result = reconcile(
        config_of_templates(
            manifest(), addons=[addon("a0", {"patches": [patch("add", "/metadata/namespace", "other")]})]
        )
    )

    message = find_finding(result, "NamespaceNotAllowed").message
    assert message.endswith('must be that of the component, square, not "other"; it was patched by a0/i')


def named_by(name: str, **more: Any) -> str:
    return addon("a0", {"creates": [create(manifest(name=name), **more)]})


@pytest.mark.parametrize(
    ("templates", "addons", "who"),
    [
        pytest.param([manifest(), manifest()], [], "r0 of the definition and r1 of the definition", id="two-resources"),
        pytest.param([manifest()], [named_by("bread", id="c")], "r0 of the definition and c of a0/i", id="an-addons"),
        pytest.param([manifest()], [named_by("bread")], "r0 of the definition and a0-i-0 of a0/i", id="without-an-id"),
        pytest.param(
            [manifest()], [named_by("y", id="c", forEach="${[1, 2]}")], "it is created by two iterations of c of a0/i",
            id="two-rounds",
        ),
        pytest.param(
            [manifest(), nameless(metadata={"name": "bread"})], [], "r0 of the definition and r1 of the definition",
            id="one-without-a-namespace",
        ),
        pytest.param(
            [manifest(), nameless(metadata={"name": "b", "namespace": "square"})],
            [addon("a0", {"patches": [patch("replace", "/metadata/name", "same")]})],
            "r0 of the definition and r1 of the definition", id="renamed-by-an-addon",
        ),
        pytest.param(
            [{**manifest(), "apiVersion": "a.io/v1"}, {**manifest(), "apiVersion": "a.io/v2"}], [],
            "r0 of the definition and r1 of the definition", id="two-versions",
        ),
        pytest.param(
            [{**manifest(), "kind": "Till"}, {**manifest(), "kind": "TILL"}], [],
            "r0 of the definition and r1 of the definition", id="kinds-that-would-be-one-file",
        ),
    ],
)  # fmt: skip
def test_no_object_is_there_twice(templates: list[Template], addons: list[str], who: str) -> None:
    result = reconcile(config_of_templates(*templates, addons=addons))

    assert list_codes(result) == ["ObjectDuplicate"]
    assert who in find_finding(result, "ObjectDuplicate").message
    assert result.variants == ()


def test_objects_of_several_groups_share_kind_and_name() -> None:
    result = reconcile(
        config_of_templates(
            {**manifest("Till"), "apiVersion": "a.io/v1"}, {**manifest("Till"), "apiVersion": "b.io/v1"}
        )
    )

    assert list(read_objects(result)) == ["till.a.io-bread.yaml", "till.b.io-bread.yaml"]


def test_an_error_of_a_render_names_the_component_the_environment_and_the_addon() -> None:
    lamp = addon("lamp", {"schema": schema({"n": "integer"}), "creates": [create(manifest(data="${1 / spec.n}"))]})
    result = reconcile(full_config(definition(), lamp, component_type(platform("lamp", "i", {"n": 0}))))

    (item,) = [entry for entry in list_findings(result) if entry.severity == "error"]
    assert item.message.startswith("MarketStall/square/bread in fair: lamp/i: spec.creates[0].resource.data ")
    assert (item.location.file, item.location.object) == ("03.yaml", "Addon/_cluster/lamp")


def test_resources_are_rendered_in_their_order_and_written_by_name() -> None:
    """openchoreo 12.3, 12.7: what an addon sees is in the order of the definition."""
    output = create(manifest(name="seen", data="${ {'all': resources.map(r, r.metadata.name)} }"))
    lamp = addon("a0", {"creates": [output]})
    result = reconcile(
        config_of_templates(manifest(name="z"), manifest("Secret", name="a"), manifest(name="b"), addons=[lamp])
    )

    assert read_objects(result)["configmap-seen.yaml"]["data"] == {"all": ["z", "a", "b"]}
    assert list(read_objects(result)) == [
        "configmap-b.yaml", "configmap-seen.yaml", "configmap-z.yaml", "secret-a.yaml",
    ]  # fmt: skip


def test_what_is_not_included_is_not_made() -> None:
    result = reconcile(
        full_config(
            definition(
                resource(manifest(name="a"), "a", includeWhen=FALSE),
                resource(manifest(name="b"), "b", includeWhen=TRUE),
                resource(manifest(name="c-${item}"), "c", forEach="${[]}"),
                resource(manifest(name="d-${who.key}", data="${who}"), "d", forEach="${ {'z': 1, 'y': 2} }", var="who"),
                resource(manifest(name="e-${1 / 0}"), "e", includeWhen=FALSE, forEach="${[1]}"),
            ),
            component_type(),
        )
    )

    assert list(read_objects(result)) == ["configmap-b.yaml", "configmap-d-y.yaml", "configmap-d-z.yaml"]
    assert read_objects(result)["configmap-d-y.yaml"]["data"] == {"key": "y", "value": 2}


def test_fields_of_peoples_own_are_no_values() -> None:
    """openchoreo 1: what begins with x- is refused nowhere, unless it is declared, and then it is a value."""
    own = definition(values=schema({"x-declared": "string"}))
    result = reconcile(full_config(own, component_type(), of=component({"x-why": {"a": 1}, "x-declared": "b"})))

    assert list_codes(result) == ["ShorthandNameHyphen"]
    assert read_values(result) == {"x-declared": "b"}


def test_an_unknown_field_of_a_component() -> None:
    result = reconcile(full_config(SIZED, component_type(), of=component({"bogus": 1})))

    assert find_finding(result, "UnknownField").message == "spec.bogus is unknown; allowed are most, size"


def test_a_text_that_a_component_gives_is_no_template() -> None:
    """Row 54."""
    result = reconcile(
        full_config(definition(values=schema({"a": "string"})), component_type(), of=component({"a": "${evil}"}))
    )

    assert read_values(result) == {"a": "${evil}"}


def test_templates_see_what_the_spec_lists() -> None:
    shown = manifest(data={name: f"${{{name}}}" for name in ("metadata", "spec", "parameters", "envOverrides", "env")})
    result = reconcile(full_config(
        definition(resource(shown), values=schema({"a": "integer | default=1"}, {"b": "integer | default=2"})),
        component_type(), on=binding(endpoints=[{"name": "web", "host": "fair.example.org"}]),
    ))  # fmt: skip

    assert read_values(result) == {
        "metadata": {"name": "bread", "namespace": "square", "labels": {}, "annotations": {}},
        "spec": {"a": 1, "b": 2},
        "parameters": {"a": 1},
        "envOverrides": {"b": 2},
        "env": {"name": "fair", "endpoints": [{"name": "web", "host": "fair.example.org"}]},
    }
