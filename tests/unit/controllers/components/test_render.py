"""Tests of rendering a component: its resources, and the rendered objects that are refused."""

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


def incomplete_manifest(**changed: Any) -> Template:
    """Return a template with changed fields. The value None removes a field."""
    whole = {**manifest(), "metadata": {"name": "x", "namespace": "square"}, **changed}
    return {key: value for key, value in whole.items() if value is not None}


@pytest.mark.parametrize(
    ("template", "why"),
    [
        pytest.param(
            incomplete_manifest(apiVersion=None),
            "apiVersion must be a string that is not empty, but is null",
            id="no-api",
        ),
        pytest.param(
            incomplete_manifest(apiVersion="${1}"),
            "apiVersion must be a string that is not empty, but is 1",
            id="api-int",
        ),
        pytest.param(
            incomplete_manifest(apiVersion="${''}"),
            'apiVersion must be a string that is not empty, but is ""',
            id="api",
        ),
        pytest.param(
            incomplete_manifest(apiVersion="../../etc/v1"),
            'must be a valid Kubernetes API version such as apps/v1, but is "../../etc/v1"',
            id="api-path",
        ),
        pytest.param(
            incomplete_manifest(apiVersion="a/b/v1"),
            'must be a valid Kubernetes API version such as apps/v1, but is "a/b/v1"',
            id="api-of-three",
        ),
        pytest.param(
            incomplete_manifest(kind="../Secret"),
            'kind must consist of letters and digits, but is "../Secret"',
            id="kind",
        ),
        pytest.param(
            incomplete_manifest(metadata=None), "metadata.name must be a string of 1 to 253", id="no-metadata"
        ),
        pytest.param(
            incomplete_manifest(metadata=[]), "metadata.name must be a string of 1 to 253", id="metadata-list"
        ),
        pytest.param(incomplete_manifest(metadata={}), "characters, but is null", id="no-name"),
        pytest.param(
            incomplete_manifest(metadata={"name": "${omit()}"}), "characters, but is null", id="name-is-left-out"
        ),
        pytest.param(incomplete_manifest(metadata={"name": "${7}"}), "characters, but i", id="name-int"),
        pytest.param(incomplete_manifest(metadata={"name": ""}), "characters, but is", id="name-empty"),
        pytest.param(
            incomplete_manifest(metadata={"name": "n" * 254}), "metadata.name must be a string of 1 to 253", id="long"
        ),
        *(
            pytest.param(
                incomplete_manifest(metadata={"name": name}), "metadata.name must be a valid Kubernetes name", id=name
            )
            for name in ("../../etc", "a/b", "..", ".", "a b", "a%2Fb", "a\nb")
        ),
    ],
)
def test_invalid_object_is_refused(template: Template, why: str) -> None:
    result = reconcile(config_of_templates(template))

    assert list_codes(result) == ["RenderedObjectInvalid"]
    output = find_finding(result, "RenderedObjectInvalid")
    title = "MarketStall square/bread in fair: spec.resources[0].template renders an invalid Kubernetes resource: "
    assert output.message.startswith(title)
    assert why in output.message
    assert (output.location.file, output.location.object) == ("02.yaml", "ComponentDefinition/_cluster/stall")
    assert result.variants == ()


@pytest.mark.parametrize("name", ["system:seller", "A", "ä"])
def test_unusual_object_names_are_accepted(name: str) -> None:
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
def test_invalid_object_after_a_patch_names_the_addon(change: Any) -> None:
    result = reconcile(config_of_templates(manifest(), addons=[addon("a0", {"patches": [change]})]))

    assert list_codes(result) == ["RenderedObjectInvalid"]
    assert find_finding(result, "RenderedObjectInvalid").message.endswith('; addons that patched the resource: "a0/i"')


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
def test_object_must_be_in_the_namespace_of_the_component(namespace: Any, codes: list[str]) -> None:
    result = reconcile(config_of_templates(incomplete_manifest(metadata={"name": "x", "namespace": namespace})))

    assert list_codes(result) == codes
    assert bool(result.variants) == (not codes)


def test_addon_cannot_change_the_namespace() -> None:
    result = reconcile(
        config_of_templates(
            manifest(), addons=[addon("a0", {"patches": [patch("add", "/metadata/namespace", "other")]})]
        )
    )

    message = find_finding(result, "NamespaceNotAllowed").message
    assert message.endswith(
        'with the namespace "other", but must use the namespace of the component, "square"; addons that patched the resource: "a0/i"'
    )


def addon_that_creates(name: str, **more: Any) -> str:
    return addon("a0", {"creates": [create(manifest(name=name), **more)]})


@pytest.mark.parametrize(
    ("templates", "addons", "who"),
    [
        pytest.param([manifest(), manifest()], [], 'the resource "r0" of the definition and the resource "r1" of the definition', id="two-resources"),
        pytest.param([manifest()], [addon_that_creates("bread", id="c")], 'the resource "r0" of the definition and the resource "c" of the addon "a0/i"', id="an-addons"),
        pytest.param([manifest()], [addon_that_creates("bread")], 'the resource "r0" of the definition and the resource "a0-i-0" of the addon "a0/i"', id="without-an-id"),
        pytest.param(
            [manifest()], [addon_that_creates("y", id="c", forEach="${[1, 2]}")], 'the object is created by two iterations of the resource "c" of the addon "a0/i"',
            id="two-rounds",
        ),
        pytest.param(
            [manifest(), incomplete_manifest(metadata={"name": "bread"})], [], 'the resource "r0" of the definition and the resource "r1" of the definition',
            id="one-without-a-namespace",
        ),
        pytest.param(
            [manifest(), incomplete_manifest(metadata={"name": "b", "namespace": "square"})],
            [addon("a0", {"patches": [patch("replace", "/metadata/name", "same")]})],
            'the resource "r0" of the definition and the resource "r1" of the definition', id="renamed-by-an-addon",
        ),
        pytest.param(
            [{**manifest(), "apiVersion": "a.io/v1"}, {**manifest(), "apiVersion": "a.io/v2"}], [],
            'the resource "r0" of the definition and the resource "r1" of the definition', id="two-versions",
        ),
        pytest.param(
            [{**manifest(), "kind": "Till"}, {**manifest(), "kind": "TILL"}], [],
            'the resource "r0" of the definition and the resource "r1" of the definition', id="kinds-that-would-be-one-file",
        ),
    ],
)  # fmt: skip
def test_duplicate_object_is_refused(templates: list[Template], addons: list[str], who: str) -> None:
    result = reconcile(config_of_templates(*templates, addons=addons))

    assert list_codes(result) == ["ObjectDuplicate"]
    assert who in find_finding(result, "ObjectDuplicate").message
    assert result.variants == ()


def test_objects_of_two_groups_can_share_kind_and_name() -> None:
    result = reconcile(
        config_of_templates(
            {**manifest("Till"), "apiVersion": "a.io/v1"}, {**manifest("Till"), "apiVersion": "b.io/v1"}
        )
    )

    assert list(read_objects(result)) == ["till.a.io-bread.yaml", "till.b.io-bread.yaml"]


def test_render_error_names_component_environment_and_addon() -> None:
    lamp = addon("lamp", {"schema": schema({"n": "integer"}), "creates": [create(manifest(data="${1 / spec.n}"))]})
    result = reconcile(full_config(definition(), lamp, component_type(platform("lamp", "i", {"n": 0}))))

    (item,) = [entry for entry in list_findings(result) if entry.severity == "error"]
    assert item.message.startswith("MarketStall square/bread in fair, addon lamp/i: spec.creates[0].resource.data ")
    assert (item.location.file, item.location.object) == ("03.yaml", "Addon/_cluster/lamp")


def test_resources_have_the_order_of_the_definition() -> None:
    """Addons read the resources in the order of the definition. Files are sorted by name."""
    output = create(manifest(name="seen", data="${ {'all': resources.map(r, r.metadata.name)} }"))
    lamp = addon("a0", {"creates": [output]})
    result = reconcile(
        config_of_templates(manifest(name="z"), manifest("Secret", name="a"), manifest(name="b"), addons=[lamp])
    )

    assert read_objects(result)["configmap-seen.yaml"]["data"] == {"all": ["z", "a", "b"]}
    assert list(read_objects(result)) == [
        "configmap-b.yaml", "configmap-seen.yaml", "configmap-z.yaml", "secret-a.yaml",
    ]  # fmt: skip


def test_excluded_resources_are_not_rendered() -> None:
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


def test_undeclared_x_fields_are_ignored() -> None:
    """A field that starts with x- is always allowed. It is a value only if the schema declares it."""
    own = definition(values=schema({"x-declared": "string"}))
    result = reconcile(full_config(own, component_type(), of=component({"x-why": {"a": 1}, "x-declared": "b"})))

    assert list_codes(result) == ["ShorthandNameHyphen"]
    assert read_values(result) == {"x-declared": "b"}


def test_unknown_field_of_a_component_is_reported() -> None:
    result = reconcile(full_config(SIZED, component_type(), of=component({"bogus": 1})))

    assert find_finding(result, "UnknownField").message == "spec.bogus is an unknown field; allowed fields: most, size"


def test_component_values_are_not_evaluated() -> None:
    """Row 54: values are no templates."""
    result = reconcile(
        full_config(definition(values=schema({"a": "string"})), component_type(), of=component({"a": "${evil}"}))
    )

    assert read_values(result) == {"a": "${evil}"}


def test_variables_of_templates() -> None:
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
