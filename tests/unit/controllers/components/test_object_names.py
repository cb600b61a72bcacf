"""Tests of names: of definitions, addons, types, environments, components and builds, and of reserved kinds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.controllers.results import ControllerResult
from reconciler.krm.findings import Finding
from tests.unit.controllers.components.component_builders import (
    GLUE,
    UNREADABLE,
    annotate,
    annotator,
    binding,
    build,
    catalog_of,
    component,
    component_type,
    definition,
    environment,
    find_finding,
    find_stalled,
    full_config,
    list_codes,
    list_findings,
    name_files,
    platform,
    read_ready,
    read_values,
    reconcile,
    schema,
    untyped_component,
    write_object,
)

LAMP = annotator("lamp")
LIT = component_type(platform("lamp", "x"))


def list_status_kinds(result: ControllerResult) -> list[str]:
    return sorted({config_status.key.kind for config_status in result.statuses})


def list_duplicate_findings(result: ControllerResult) -> list[Finding]:
    return [item for item in list_findings(result) if item.code == "DuplicateObject"]


def definition_in(namespace: str) -> str:
    return definition(namespace=namespace)


def addon_in(namespace: str) -> str:
    return write_object("Addon", "lamp", {"patches": [annotate("lamp")]}, namespace=namespace)


def type_in(namespace: str) -> str:
    return component_type(platform("lamp", "x"), namespace=namespace)


def environment_in(namespace: str) -> str:
    return environment(namespace=namespace)


CATALOGUE = {
    "ComponentDefinition": (definition_in, "DefinitionNotFound"),
    "Addon": (addon_in, "AddonNotFound"),
    "ComponentType": (type_in, "DuplicateObject"),
}


def config_without_kind(kind: str, *texts: str) -> list[str]:
    whole = {"ComponentDefinition": definition(), "Addon": LAMP, "ComponentType": LIT}
    return full_config(*(text for of, text in whole.items() if of != kind), *texts)


@pytest.mark.parametrize("kind", CATALOGUE)
@pytest.mark.parametrize("namespace", ["", "square", "elsewhere"])
def test_definitions_are_found_in_any_namespace(kind: str, namespace: str) -> None:
    result = reconcile(config_without_kind(kind, CATALOGUE[kind][0](namespace)))

    assert list_codes(result) == []
    assert len(result.variants) == 1


@pytest.mark.parametrize("kind", CATALOGUE)
@pytest.mark.parametrize("namespaces", [("a", "b"), ("", "square")])
def test_same_name_in_two_namespaces_is_unusable(kind: str, namespaces: tuple[str, str]) -> None:
    make, reason = CATALOGUE[kind]
    result = reconcile(config_without_kind(kind, *map(make, namespaces)))

    assert [duplicate.location.file for duplicate in list_duplicate_findings(result)] == ["04.yaml", "05.yaml"]
    both = {duplicate.message for duplicate in list_duplicate_findings(result)}
    assert len(both) == 1
    assert "must be declared once across all namespaces" in both.pop()
    assert read_ready(result, "MarketStall", "bread") == ("False", "ComponentTypeNotReady")
    assert {
        config_status.conditions[0].reason
        for config_status in result.statuses
        if config_status.key.kind == "ComponentType"
    } == {reason}
    assert find_stalled(result).conditions[0].reason == "ComponentTypeNotReady"


@pytest.mark.parametrize("kind", CATALOGUE)
def test_object_in_two_files_is_unusable(kind: str) -> None:
    make, reason = CATALOGUE[kind]
    files = name_files(config_without_kind(kind, make("a"), make("a")))
    result = reconcile(files)

    assert [item.code for item in catalog_of(files).findings] == ["DuplicateObject", "DuplicateObject"]
    assert list_duplicate_findings(result) == []
    assert read_ready(result, "ComponentType", "market-stall") == ("False", reason)
    assert read_ready(result, "MarketStall", "bread") == ("False", "ComponentTypeNotReady")
    assert find_stalled(result).conditions[0].reason == "ComponentTypeNotReady"


def test_duplicates_in_one_namespace_conflict_with_another_namespace() -> None:
    result = reconcile(config_without_kind("Addon", addon_in("a"), addon_in("a"), addon_in("b")))

    assert len(list_duplicate_findings(result)) == 3
    assert read_ready(result, "ComponentType", "market-stall") == ("False", "AddonNotFound")


def test_unusable_name_has_a_reason() -> None:
    result = reconcile(config_without_kind("Addon", write_object("Addon", "lamp", {"wat": 1})))

    assert list_codes(result) == ["AddonNotFound", "ComponentTypeNotReady", "UnknownField"]
    assert find_finding(result, "AddonNotFound").message == "Addon lamp is invalid; correct its errors first"
    assert read_ready(result, "Addon", "lamp")[0] == "False"


@pytest.mark.parametrize(
    "name", ["component", "addon", "env-binding", "component-type", "component-definition", "render-result"]
)
def test_kinds_of_this_group_are_reserved(name: str) -> None:
    result = reconcile([definition(), component_type(name=name)])

    assert list_codes(result) == ["GeneratedKindReserved"]
    assert read_ready(result, "ComponentType", name) == ("False", "GeneratedKindReserved")


def test_kinds_that_controllers_read_are_reserved() -> None:
    result = reconcile([definition(), component_type(name="plugin-preset")], reserved_kinds=frozenset({"PluginPreset"}))

    assert list_codes(result) == ["GeneratedKindReserved"]
    assert 'generates the kind "PluginPreset' in find_finding(result, "GeneratedKindReserved").message


@pytest.mark.parametrize(
    ("name", "kind"),
    [("market-stall", "MarketStall"), ("stall", "Stall"), ("a.b-c", "ABC"), ("oauth2-proxy", "Oauth2Proxy")],
)
def test_kind_of_a_type(name: str, kind: str) -> None:
    result = reconcile(full_config(definition(), component_type(name=name), of=component(kind=kind)))

    assert list_codes(result) == []


@pytest.mark.parametrize("name", ["3-stall", "s" * 64])
def test_type_name_without_a_valid_kind_is_an_error(name: str) -> None:
    result = reconcile([definition(), component_type(name=name)])

    assert list_codes(result) == ["ComponentTypeInvalid"]
    assert (
        "metadata.name must form a kind of at most 63 letters and digits"
        in find_finding(result, "ComponentTypeInvalid").message
    )


def test_two_types_with_the_same_kind_are_refused() -> None:
    types = [component_type(name="market-stall"), component_type(name="market.stall")]
    result = reconcile(full_config(definition(), *types))

    assert list_codes(result) == ["ComponentTypeNotReady", "GeneratedKindCollision"]
    assert read_ready(result, "ComponentType", "market-stall") == ("False", "GeneratedKindCollision")
    assert read_ready(result, "ComponentType", "market.stall") == ("False", "GeneratedKindCollision")
    assert result.variants == ()


@pytest.mark.parametrize(
    ("kind", "hint"),
    [("Other", ""), ("MarketStal", '; did you mean "MarketStall"?'), ("marketStall", "; did you mean")],
)
def test_component_of_an_unknown_kind_is_reported(kind: str, hint: str) -> None:
    """The result does not depend on a binding."""
    result = reconcile([definition(), component_type(), component(kind=kind)])

    assert list_codes(result) == ["ComponentTypeNotFound"]
    message = find_finding(result, "ComponentTypeNotFound").message
    assert message.startswith(
        f'no ComponentType generates the kind "{kind}" of {kind} square/bread; generated kinds: "MarketStall"'
    )
    assert hint in message
    assert read_ready(result, kind, "bread") == ("False", "ComponentTypeNotFound")


def test_binding_of_an_unknown_kind_is_stalled() -> None:
    result = reconcile(full_config(definition(), of=component()))

    assert list_codes(result) == ["ComponentTypeNotFound"]
    assert find_stalled(result).conditions[0].reason == "ComponentTypeNotFound"


def test_type_that_is_not_ready_stops_only_its_components() -> None:
    texts = [
        definition(), component_type(), component_type(name="broken", definition="none"), component(),
        component(name="cake", kind="Broken"), binding(component="cake"),
    ]  # fmt: skip
    result = reconcile(full_config(*texts[:3], *texts[4:]))

    assert list_codes(result) == ["ComponentTypeNotReady", "DefinitionNotFound"]
    assert [variant.target.package for variant in result.variants] == ["components/fair/square/bread"]
    message = find_stalled(result, "cake-fair").conditions[0].message
    assert message == (
        "Broken square/cake uses ComponentType broken, which is not ready, because"
        ' no ComponentDefinition has the name "none"; existing names: "stall"'
    )


def test_components_of_two_kinds_cannot_share_a_name() -> None:
    types = [component_type(), component_type(name="other-stall")]
    result = reconcile(full_config(definition(), *types, component(kind="OtherStall")))

    assert list_codes(result) == ["ComponentNameConflict", "EnvBindingOwnerUnresolved"]
    assert result.variants == ()
    assert find_stalled(result).conditions[0].reason == "EnvBindingOwnerUnresolved"
    assert "MarketStall square/bread and OtherStall square/bread have the same name" in (
        find_stalled(result).conditions[0].message
    )


def test_components_in_two_namespaces_can_share_a_name() -> None:
    items = [component(namespace="alley"), binding(namespace="alley")]
    result = reconcile(full_config(definition(), component_type(), *items))

    assert list_codes(result) == []
    assert [variant.target.package for variant in result.variants] == [
        "components/fair/alley/bread", "components/fair/square/bread",
    ]  # fmt: skip


def test_duplicate_component_is_unusable() -> None:
    result = reconcile(full_config(definition(), component_type(), component()))

    assert list_codes(result) == ["EnvBindingOwnerUnresolved"]
    assert "MarketStall square/bread is declared more than once" in find_stalled(result).conditions[0].message


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        pytest.param(component(data={}), "MarketStall", "UnknownField", id="a-field-beside-its-spec"),
        pytest.param(untyped_component(wat=1), "Component", "UnknownField", id="without-a-type"),
    ],
)
def test_invalid_component_has_a_status(text: str, kind: str, reason: str) -> None:
    result = reconcile([definition(), component_type(), text])

    assert list_codes(result) == [reason]
    assert read_ready(result, kind, "bread") == ("False", reason)


@pytest.mark.parametrize("namespace", ["", "square", "elsewhere"])
def test_environments_are_found_in_any_namespace(namespace: str) -> None:
    texts = [text for text in full_config(definition(), component_type()) if "kind: Environment" not in text]
    result = reconcile([*texts, environment(namespace=namespace)])

    assert list_codes(result) == []
    assert len(result.variants) == 1


@pytest.mark.parametrize("namespace", ["square", "elsewhere"])
def test_environment_in_two_namespaces_is_unusable(namespace: str) -> None:
    """This applies even if one of them is in the namespace of the binding."""
    result = reconcile(full_config(definition(), component_type(), environment(namespace=namespace)))

    assert list_codes(result) == ["DuplicateObject", "EnvironmentNotFound"]
    assert "Environment fair is declared more than once" in find_finding(result, "EnvironmentNotFound").message
    assert [stalled_variant.owner.key.name for stalled_variant in result.stalled] == ["bread-fair"]


def test_duplicate_environment_is_unusable() -> None:
    result = reconcile(full_config(definition(), component_type(), environment()))

    assert list_codes(result) == ["EnvironmentNotFound"]
    assert find_stalled(result).conditions[0].reason == "EnvironmentNotFound"


BUILD_OF: dict[str, Callable[[], str]] = {
    "cannot-be-read": lambda: write_object("Build", "bread", {"workload": 3}, namespace="square", api=GLUE),
    "stands-twice": lambda: f"{build()}---\n{build()}",
    "for-the-environment": lambda: write_object("Build", "bread.fair", {"workload": 3}, namespace="square", api=GLUE),
}


@pytest.mark.parametrize("which", BUILD_OF)
def test_unusable_build_keeps_the_package(which: str) -> None:
    more = [build()] if which == "for-the-environment" else []
    result = reconcile(full_config(definition(), component_type(), BUILD_OF[which](), *more))

    assert result.variants == ()
    (condition,) = find_stalled(result).conditions
    assert (condition.status, condition.reason) == ("False", "InDoubt")
    name = "bread.fair" if which == "for-the-environment" else "bread"
    assert condition.message == f"the package is kept, because Build square/{name} cannot be used"


def test_unreadable_file_keeps_the_package() -> None:
    files = name_files(full_config(definition(), component_type()))
    result = reconcile({**files, "broken.yaml": UNREADABLE})

    assert len(result.variants) == 1
    assert list_codes(result) == []


def test_invalid_build_of_another_environment_is_ignored() -> None:
    shown = definition(values=schema({"a": "string | default=x"}))
    other = write_object("Build", "bread.daily", {"workload": 3}, namespace="square", api=GLUE)
    result = reconcile(full_config(shown, component_type(), other))

    assert list_codes(result) == ["BuildInvalid"]
    assert read_values(result) == {"a": "x"}
