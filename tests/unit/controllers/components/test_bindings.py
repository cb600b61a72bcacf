"""Tests of EnvBindings: the component, the environment, the clusters and the build of a binding."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.components.component_builders import (
    ONE_ENVIRONMENT,
    PublishedPackages,
    binding,
    build,
    cluster,
    component,
    component_type,
    definition,
    environment,
    find_finding,
    find_stalled,
    full_config,
    list_codes,
    list_findings,
    manifest,
    read_ready,
    read_values,
    reconcile,
    resource,
    variant_of,
    write_object,
)

STALLS = (definition(), component_type())


def reconcile_without_owner(*components: str, name: str, **owner: Any) -> Any:
    """Reconcile components with a binding of this name that does not name its component."""
    spec = {"environment": "fair", **({"owner": owner} if owner else {})}
    texts = [component(name=item) for item in components]
    return reconcile([*ONE_ENVIRONMENT, *STALLS, *texts, write_object("EnvBinding", name, spec, namespace="square")])


@pytest.mark.parametrize(
    ("components", "name", "text"),
    [
        pytest.param(["bread"], "bread-fair", "bread", id="its-own-name"),
        pytest.param(["bread", "cake"], "bread-fair", "bread", id="among-others"),
        pytest.param(["bread"], "bread-", "", id="no-name-at-all"),
        pytest.param(["bread"], "breadcrumbs", "", id="no-hyphen"),
        pytest.param(["bread"], "bread", "", id="the-name-alone"),
        pytest.param(["bread", "bread-rye"], "bread-rye-fair", "", id="several"),
        pytest.param(["bread", "bread-rye"], "bread-fair", "bread", id="one-of-two"),
        pytest.param(["cake"], "bread-fair", "", id="none"),
        pytest.param([], "bread-fair", "", id="no-components"),
    ],
)
def test_component_is_derived_from_the_binding_name(components: list[str], name: str, text: str) -> None:
    if name.endswith("-"):
        name += "x" if text else "fair"
        components = []
    result = reconcile_without_owner(*components, name=name)

    if text:
        assert list_codes(result) == ["EnvBindingOwnerGuessed"]
        assert f'the component "{text}" is used' in find_finding(result, "EnvBindingOwnerGuessed").message
        assert [variant.target.package for variant in result.variants] == [f"components/fair/square/{text}"]
    else:
        assert list_codes(result) == ["EnvBindingOwnerUnresolved"]
        assert find_stalled(result, name).conditions[0].reason == "EnvBindingOwnerUnresolved"
        assert result.variants == ()


def test_invalid_component_makes_a_guess_ambiguous() -> None:
    """An invalid component with a matching name prevents a guess."""
    broken = component(name="bread-rye", data={})
    text = write_object("EnvBinding", "bread-rye-fair", {"environment": "fair"}, namespace="square")
    result = reconcile([*ONE_ENVIRONMENT, *STALLS, component(), broken, text])

    assert "EnvBindingOwnerUnresolved" in list_codes(result)
    assert result.variants == ()


@pytest.mark.parametrize(
    ("owner", "codes"),
    [
        pytest.param({"componentName": "bread"}, [], id="its-own-namespace"),
        pytest.param({"componentName": "bread", "namespace": "square"}, [], id="the-same-in-words"),
        pytest.param({"componentName": "cake", "namespace": "alley"}, [], id="another"),
        pytest.param({"namespace": "alley"}, ["EnvBindingOwnerUnresolved"], id="another-without-a-name"),
        pytest.param({"componentName": "cake"}, ["EnvBindingOwnerUnresolved"], id="not-in-its-own"),
    ],
)
def test_owner_can_be_in_another_namespace(owner: Any, codes: list[str]) -> None:
    text = write_object("EnvBinding", "bread-fair", {"owner": owner, "environment": "fair"}, namespace="square")
    result = reconcile([*ONE_ENVIRONMENT, *STALLS, component(), component(name="cake", namespace="alley"), text])

    assert list_codes(result) == codes
    if not codes:
        where = f"{owner.get('namespace', 'square')}/{owner['componentName']}"
        assert [variant.target.package for variant in result.variants] == [f"components/fair/{where}"]
        assert result.variants[0].owner.key.reference == "EnvBinding/square/bread-fair"


def test_binding_of_a_missing_component_renders_nothing() -> None:
    """Row 51: nothing is rendered, and no package is requested."""
    result = reconcile([*ONE_ENVIRONMENT, *STALLS, binding()])

    assert list_codes(result) == ["EnvBindingOwnerUnresolved"]
    message = find_finding(result, "EnvBindingOwnerUnresolved").message
    assert message == (
        'spec.owner.componentName must be the name of a component in namespace "square", but is "bread"; existing names: none'
    )
    assert read_ready(result, "EnvBinding", "bread-fair") == ("False", "EnvBindingOwnerUnresolved")
    assert result.variants == ()


def test_two_bindings_for_one_environment_are_refused() -> None:
    """Row 52: both bindings are refused, and the published package stays."""
    first = reconcile(full_config(*STALLS))
    result = reconcile(full_config(*STALLS, binding(name="again")), PublishedPackages.from_result(first))

    assert list_codes(result) == ["EnvBindingDuplicate"]
    assert len([item for item in list_findings(result) if item.code == "EnvBindingDuplicate"]) == 2
    assert (
        "EnvBinding square/again and EnvBinding square/bread-fair bind the same component to the same environment"
        in (find_finding(result, "EnvBindingDuplicate").message)
    )
    assert [stalled_variant.owner.key.name for stalled_variant in result.stalled] == ["again", "bread-fair"]
    assert result.variants == ()
    assert dict(result.guards) == {}


def test_two_bindings_in_two_namespaces_are_refused() -> None:
    other = write_object(
        "EnvBinding", "x", {"owner": {"componentName": "bread", "namespace": "square"}, "environment": "fair"},
        namespace="alley",
    )  # fmt: skip

    assert list_codes(reconcile(full_config(*STALLS, other))) == ["EnvBindingDuplicate"]


def test_one_component_in_two_environments() -> None:
    result = reconcile(full_config(*STALLS, cluster("west"), environment("daily", ["east", "west"]), binding("daily")))

    assert list_codes(result) == []
    assert [f"{variant.target.repository}/{variant.target.package}" for variant in result.variants] == [
        "east/components/daily/square/bread",
        "west/components/daily/square/bread",
        "east/components/fair/square/bread",
    ]


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        pytest.param([], 'no Environment has the name "fair"; existing names: none', id="none"),
        pytest.param(
            [environment("daily")], 'no Environment has the name "fair"; existing names: "daily"', id="others"
        ),
        pytest.param([environment(clusters=[])], "Environment fair has no cluster", id="without-clusters"),
        pytest.param([environment(clusters=["x"])], "Environment fair has no cluster", id="with-unknown-ones"),
        pytest.param([environment(context=3)], "Environment fair is invalid; correct its errors first", id="broken"),
        pytest.param(
            [environment(clusters=[], clusterSelector={"matchLabels": {"a": "b"}})],
            "Environment fair has no cluster",
            id="that-selects-none",
        ),
    ],
)
def test_environment_without_clusters_is_reported(texts: list[str], why: str) -> None:
    result = reconcile([cluster(), *STALLS, component(), binding(), *texts])

    assert "EnvironmentNotFound" in list_codes(result)
    message = find_finding(result, "EnvironmentNotFound").message
    assert message == f"spec.environment must refer to an environment with clusters, but {why}"
    assert find_stalled(result).conditions[0].reason == "EnvironmentNotFound"
    assert result.variants == ()


@pytest.mark.parametrize(
    ("spec", "clusters"),
    [
        pytest.param({"clusters": ["west"]}, ["west"], id="named"),
        pytest.param({"clusters": ["west", "east", "west"]}, ["east", "west"], id="in-the-order-of-names"),
        pytest.param({"clusterSelector": {"matchLabels": {"kind": "edge"}}}, ["east", "north"], id="selected"),
        pytest.param({"clusterSelector": {}}, ["core", "east", "north", "west"], id="all"),
        pytest.param(
            {"clusterSelector": {"matchExpressions": [{"key": "kind", "operator": "In", "values": ["edge", "x"]}]}},
            ["east", "north"],
            id="by-an-expression",
        ),
        pytest.param(
            {"clusters": ["west"], "clusterSelector": {"matchLabels": {"kind": "edge"}}},
            ["east", "north", "west"],
            id="both",
        ),
    ],
)
def test_clusters_of_an_environment(spec: Any, clusters: list[str]) -> None:
    edge, plain = {"kind": "edge"}, {"kind": "core"}
    fleet = [cluster("east", edge), cluster("west"), cluster("north", edge), cluster("core", plain)]
    whole = {"clusters": [], **spec}
    result = reconcile([*fleet, *STALLS, component(), binding(), environment(**whole)])

    assert list_codes(result) == []
    assert [variant.target.repository for variant in result.variants] == clusters


def test_an_unknown_cluster_is_a_warning() -> None:
    result = reconcile([cluster(), *STALLS, component(), binding(), environment(clusters=["east", "moon"])])

    assert list_codes(result) == ["UnknownCluster"]
    assert (
        find_finding(result, "UnknownCluster").message
        == 'spec.clusters[1] is "moon", but there is no cluster with this name'
    )
    assert len(result.variants) == 1


SEEN = definition(resource(manifest(data={name: f"${{{name}}}" for name in ("build", "workload", "env")})))


@pytest.mark.parametrize(
    ("builds", "image"),
    [
        pytest.param([], None, id="none"),
        pytest.param([build()], "bread", id="of-the-component"),
        pytest.param([build("bread.fair")], "bread.fair", id="of-the-environment"),
        pytest.param([build(), build("bread.fair")], "bread.fair", id="the-environments-is-first"),
        pytest.param([build("bread.daily")], None, id="of-another-environment"),
        pytest.param([build(namespace="alley")], None, id="of-another-namespace"),
    ],
)
def test_build_of_the_environment_has_priority(builds: list[str], image: str | None) -> None:
    result = reconcile(full_config(SEEN, component_type(), *builds))

    assert list_codes(result) == []
    assert read_values(result)["build"] == ({"image": f"registry.example.org/{image}:1"} if image else {})
    made_of = variant_of(result).dependencies
    assert [name for name in made_of if name.startswith("Build/")] == ([f"Build/square/{image}"] if image else [])


def test_variables_of_workload_and_environment() -> None:
    of_build = build(spec={"image": "a", "workload": {"ports": [80]}})
    here = environment(context={"zone": "north", "name": "not-this", "endpoints": ["nor", "this"]})
    on = binding(endpoints=[{"name": "web", "host": "a.example.org"}])
    result = reconcile([cluster(), here, SEEN, component_type(), component(), on, of_build])

    assert read_values(result) == {
        "build": {"image": "a", "workload": {"ports": [80]}},
        "workload": {"ports": [80]},
        "env": {"zone": "north", "name": "fair", "endpoints": [{"name": "web", "host": "a.example.org"}]},
    }


def test_environment_endpoints_are_used_without_binding_endpoints() -> None:
    here = environment(context={"endpoints": ["own"]})
    result = reconcile([cluster(), here, SEEN, component_type(), component(), binding()])

    assert read_values(result)["env"] == {"name": "fair", "endpoints": ["own"]}


def test_invalid_binding_keeps_its_package() -> None:
    first = reconcile(full_config(*STALLS))
    result = reconcile(full_config(*STALLS, on=binding(wat=1)), PublishedPackages.from_result(first))

    assert list_codes(result) == ["UnknownField"]
    assert find_stalled(result).conditions[0].reason == "UnknownField"
    assert dict(result.guards) == {}


@pytest.mark.parametrize(
    ("annotation", "adopts"), [("true", "adoptExisting"), ("yes", "adoptNone"), (None, "adoptNone")]
)
def test_existing_directory_is_adopted_only_with_the_annotation(annotation: str | None, adopts: str) -> None:
    annotations = {"reconciler.dev/adopt": annotation} if annotation else None
    result = reconcile(full_config(*STALLS, on=binding(annotations=annotations)))

    assert variant_of(result).adoption == adopts


def test_dotted_environment_name_is_one_path_segment() -> None:
    result = reconcile([cluster(), environment("fair.north"), *STALLS, component(), binding("fair.north")])

    assert [variant.target.package for variant in result.variants] == ["components/fair.north/square/bread"]
