"""Bindings: which component runs where, with what was built for it (openchoreo 1.5, 5.4, design 10.22, 10.32)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.components.component_builders import (
    PLACE,
    Branches,
    binding,
    build,
    cluster,
    component,
    component_type,
    definition,
    environment,
    finding,
    findings,
    made,
    market,
    ready,
    resource,
    room,
    stalled,
    told,
    values,
    variant_of,
    written,
)

STALLS = (definition(), component_type())


def bound_to(*components: str, name: str, **owner: Any) -> Any:
    """Return the result of a binding of this name, whose owner says no component, beside these components."""
    spec = {"environment": "fair", **({"owner": owner} if owner else {})}
    texts = [component(name=item) for item in components]
    return room([*PLACE, *STALLS, *texts, written("EnvBinding", name, spec, namespace="square")])


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
        pytest.param([], "bread-fair", "", id="nobody-there"),
    ],
)
def test_a_binding_that_names_no_component(components: list[str], name: str, text: str) -> None:
    if name.endswith("-"):
        name += "x" if text else "fair"
        components = []
    result = bound_to(*components, name=name)

    if text:
        assert told(result) == ["EnvBindingOwnerGuessed"]
        assert f'assuming "{text}"' in finding(result, "EnvBindingOwnerGuessed").message
        assert [variant.target.package for variant in result.variants] == [f"components/fair/square/{text}"]
    else:
        assert told(result) == ["EnvBindingOwnerUnresolved"]
        assert stalled(result, name).conditions[0].reason == "EnvBindingOwnerUnresolved"
        assert result.variants == ()


def test_a_guess_counts_components_that_cannot_be_read() -> None:
    """What is not known of one may not make another one the only one."""
    broken = component(name="bread-rye", data={})
    text = written("EnvBinding", "bread-rye-fair", {"environment": "fair"}, namespace="square")
    result = room([*PLACE, *STALLS, component(), broken, text])

    assert "EnvBindingOwnerUnresolved" in told(result)
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
def test_owners(owner: Any, codes: list[str]) -> None:
    text = written("EnvBinding", "bread-fair", {"owner": owner, "environment": "fair"}, namespace="square")
    result = room([*PLACE, *STALLS, component(), component(name="cake", namespace="alley"), text])

    assert told(result) == codes
    if not codes:
        where = f"{owner.get('namespace', 'square')}/{owner['componentName']}"
        assert [variant.target.package for variant in result.variants] == [f"components/fair/{where}"]
        assert str(result.variants[0].owner.key) == "EnvBinding/square/bread-fair"


def test_a_binding_of_a_component_that_is_not_there() -> None:
    """Row 51: nothing is rendered, and what it had is nobody's wish any more."""
    result = room([*PLACE, *STALLS, binding()])

    assert told(result) == ["EnvBindingOwnerUnresolved"]
    message = finding(result, "EnvBindingOwnerUnresolved").message
    assert message == (
        'spec.owner.componentName must name a component of namespace square, not "bread"; existing: none'
    )
    assert ready(result, "EnvBinding", "bread-fair") == ("False", "EnvBindingOwnerUnresolved")
    assert result.variants == ()


def test_two_bindings_for_one_environment() -> None:
    """Row 52: both are wrong, and what was there last stays."""
    first = room(market(*STALLS))
    result = room(market(*STALLS, binding(name="again")), Branches.of(first))

    assert told(result) == ["EnvBindingDuplicate"]
    assert len([item for item in findings(result) if item.code == "EnvBindingDuplicate"]) == 2
    assert "to the environment fair, not EnvBinding/square/again and EnvBinding/square/bread-fair" in (
        finding(result, "EnvBindingDuplicate").message
    )
    assert [stalled_variant.owner.key.name for stalled_variant in result.stalled] == ["again", "bread-fair"]
    assert result.variants == ()
    assert dict(result.guards) == {}


def test_two_bindings_from_two_namespaces() -> None:
    other = written(
        "EnvBinding", "x", {"owner": {"componentName": "bread", "namespace": "square"}, "environment": "fair"},
        namespace="alley",
    )  # fmt: skip

    assert told(room(market(*STALLS, other))) == ["EnvBindingDuplicate"]


def test_one_component_in_two_environments() -> None:
    result = room(market(*STALLS, cluster("west"), environment("daily", ["east", "west"]), binding("daily")))

    assert told(result) == []
    assert [f"{variant.target.repository}/{variant.target.package}" for variant in result.variants] == [
        "east/components/daily/square/bread",
        "west/components/daily/square/bread",
        "east/components/fair/square/bread",
    ]


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        pytest.param([], "no Environment has the name fair; existing: none", id="none"),
        pytest.param([environment("daily")], "no Environment has the name fair; existing: daily", id="others"),
        pytest.param([environment(clusters=[])], "Environment/_cluster/fair has no cluster", id="without-clusters"),
        pytest.param([environment(clusters=["x"])], "Environment/_cluster/fair has no cluster", id="with-unknown-ones"),
        pytest.param([environment(context=3)], "Environment fair is invalid", id="broken"),
        pytest.param(
            [environment(clusters=[], clusterSelector={"matchLabels": {"a": "b"}})],
            "Environment/_cluster/fair has no cluster",
            id="that-selects-none",
        ),
    ],
)
def test_an_environment_that_leads_nowhere(texts: list[str], why: str) -> None:
    result = room([cluster(), *STALLS, component(), binding(), *texts])

    assert "EnvironmentNotFound" in told(result)
    message = finding(result, "EnvironmentNotFound").message
    assert message == f"spec.environment must name an environment that has clusters: {why}"
    assert stalled(result).conditions[0].reason == "EnvironmentNotFound"
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
    result = room([*fleet, *STALLS, component(), binding(), environment(**whole)])

    assert told(result) == []
    assert [variant.target.repository for variant in result.variants] == clusters


def test_an_unknown_cluster_is_a_warning() -> None:
    result = room([cluster(), *STALLS, component(), binding(), environment(clusters=["east", "moon"])])

    assert told(result) == ["UnknownCluster"]
    assert finding(result, "UnknownCluster").message == "spec.clusters[1]: no cluster has the name moon"
    assert len(result.variants) == 1


SEEN = definition(resource(made(data={name: f"${{{name}}}" for name in ("build", "workload", "env")})))


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
def test_what_was_built(builds: list[str], image: str | None) -> None:
    """design 10.22."""
    result = room(market(SEEN, component_type(), *builds))

    assert told(result) == []
    assert values(result)["build"] == ({"image": f"registry.example.org/{image}:1"} if image else {})
    made_of = variant_of(result).dependencies
    assert [name for name in made_of if name.startswith("Build/")] == ([f"Build/square/{image}"] if image else [])


def test_what_is_known_of_the_workload_and_the_environment() -> None:
    of_build = build(spec={"image": "a", "workload": {"ports": [80]}})
    here = environment(context={"zone": "north", "name": "not-this", "endpoints": ["nor", "this"]})
    on = binding(endpoints=[{"name": "web", "host": "a.example.org"}])
    result = room([cluster(), here, SEEN, component_type(), component(), on, of_build])

    assert values(result) == {
        "build": {"image": "a", "workload": {"ports": [80]}},
        "workload": {"ports": [80]},
        "env": {"zone": "north", "name": "fair", "endpoints": [{"name": "web", "host": "a.example.org"}]},
    }


def test_an_environment_keeps_endpoints_of_its_own_where_a_binding_has_none() -> None:
    here = environment(context={"endpoints": ["own"]})
    result = room([cluster(), here, SEEN, component_type(), component(), binding()])

    assert values(result)["env"] == {"name": "fair", "endpoints": ["own"]}


def test_a_binding_that_cannot_be_read_stays_as_it_is() -> None:
    first = room(market(*STALLS))
    result = room(market(*STALLS, on=binding(wat=1)), Branches.of(first))

    assert told(result) == ["UnknownField"]
    assert stalled(result).conditions[0].reason == "UnknownField"
    assert dict(result.guards) == {}


@pytest.mark.parametrize(
    ("annotation", "adopts"), [("true", "adoptExisting"), ("yes", "adoptNone"), (None, "adoptNone")]
)
def test_a_foreign_directory_is_taken_over_only_where_a_binding_says_so(annotation: str | None, adopts: str) -> None:
    annotations = {"reconciler.dev/adopt": annotation} if annotation else None
    result = room(market(*STALLS, on=binding(annotations=annotations)))

    assert variant_of(result).adoption == adopts


def test_environments_of_several_parts_are_one_segment() -> None:
    result = room([cluster(), environment("fair.north"), *STALLS, component(), binding("fair.north")])

    assert [variant.target.package for variant in result.variants] == ["components/fair.north/square/bread"]
