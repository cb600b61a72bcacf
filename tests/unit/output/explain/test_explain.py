"""Tests of the explanation of a package: which values it contains, their text, and masked values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.controllers.override_policies.resource_overrides import OverriddenResource, OverrideStage
from reconciler.controllers.results import ConfigInjection, GeneratedSource
from reconciler.krm.merge3.rules import ABSENT
from reconciler.output.explain import formats
from reconciler.output.explain.ablation import add_ablations
from reconciler.output.explain.builder import explain, format_closest_names
from reconciler.output.explain.model import PackageExplanation, ValueNotFoundError
from reconciler.output.explain.result import build_explanation_result
from reconciler.packages.package import Package
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.attribution.removable_layers import ConfigField, LocalEdit, RemovableLayer
from reconciler.planning.model.outcomes import PackageRender, PolicyStage
from reconciler.planning.model.sources import PackageSource
from tests.unit.output.builders import (
    COMMIT,
    CONFIG,
    build_explained_sources,
    build_tree,
    build_variant,
    format_deployment,
    format_secret,
    read_json,
)

POLICY = """\
apiVersion: core.kubeadmiral.io/v1alpha1
kind: ClusterOverridePolicy
metadata:
  name: site
spec:
  overrideRules:
    - overriders:
        jsonpatch: []
        image: [{}, {}]
"""
SITE = "ClusterOverridePolicy/site"
PATCH, IMAGE = "spec.overrideRules[0].overriders.jsonpatch", "spec.overrideRules[0].overriders.image"
REPLICAS, CONTAINER = "/spec/replicas", "/spec/template/spec/containers/0"
CAME = {"web.yaml": format_deployment(2, "web:0"), "login.yaml": format_secret()}
Turns = list[tuple[str, int, str]]
"""Where in the policy, and the replicas and the image afterwards."""
TWICE: Turns = [(f"{IMAGE}[0]", 2, "m/web:0"), (f"{IMAGE}[1]", 2, "web:1")]
EARLIER: Turns = [(f"{PATCH}[0] (earlier text)", 3, "web:0")]


def build_explained_package(turns: Turns = TWICE, more: str = "", **rendered: Any) -> ReRenderedPackage:
    """Return a package that an override policy changed. `more` is appended to its Deployment."""
    came = build_tree({**CAME, "web.yaml": CAME["web.yaml"] + more})
    resource = next(
        package_resource for package_resource in Package(came).resources if package_resource.kind == "Deployment"
    )
    datas = [Package(build_tree({"a.yaml": format_deployment(*item)})).resources[0].data for _, *item in turns]
    override_stages = tuple(OverrideStage(SITE, where, data) for (where, *_), data in zip(turns, datas, strict=True))
    files = build_tree({**CAME, "web.yaml": format_deployment(*turns[-1][1:]) if turns else CAME["web.yaml"] + more})
    stage = PolicyStage((OverriddenResource(resource, resource.document, stages=override_stages),))
    package_render = PackageRender(files, source=PackageSource(came, came, came), stages=(stage,), **rendered)
    desired_variant = build_variant()
    return ReRenderedPackage(
        "eu-1/gw",
        CONFIG,
        read_catalog(build_tree({"policies.yaml": POLICY})).objects,
        desired_variant.owner,
        desired_variant,
        package_render,
        sources=build_explained_sources(desired_variant),
    )


def format_explanation(explanation: PackageExplanation) -> str:
    return formats.format_explanation(build_explanation_result(explanation))


def build_explanation_data(explanation: PackageExplanation) -> dict[str, Any]:
    return read_json(build_explanation_result(explanation))


def list_pointers(known: ReRenderedPackage, place: str = "", *, plain: bool = False) -> list[str]:
    return [
        explained_value.pointer
        for explained_value in explain(known, "Deployment/web", place).values
        if plain or not explained_value.is_unchanged
    ]


def test_each_step_has_its_location_and_the_last_step_wins() -> None:
    assert format_explanation(explain(build_explained_package())) == (
        "eu-1/gw\n"
        f"  config: {CONFIG[:12]}\n"
        "  owner: PackageVariant/default/edge-gw\n"
        f"  source: upstream catalog/gateway gateway/v4 at commit {COMMIT[:12]}\n"
        "\n"
        f"Deployment/_cluster/web {CONTAINER}/image in web.yaml: web:1\n"
        "  1. upstream  web:0            catalog/gateway gateway/v4 (gateway/web.yaml:11"
        f" spec.template.spec.containers[0].image, commit {COMMIT[:12]})\n"
        f"  2. policy    web:0 → m/web:0  ClusterOverridePolicy/site (policies.yaml:9 {IMAGE}[0])\n"
        f"  3. policy    m/web:0 → web:1  ClusterOverridePolicy/site (policies.yaml:9 {IMAGE}[1])  wins\n"
    )


def test_added_and_removed_values_are_marked() -> None:
    known = build_explained_package([(f"{IMAGE}[0]", 2, "web:0")], "  strategy: {a: 1}\n")

    text = format_explanation(explain(known, "Deployment/web", "/spec/strategy"))

    assert "Deployment/_cluster/web /spec/strategy in web.yaml: removed\n" in text
    assert '1. upstream  {"a": 1}' in text
    assert '2. policy    removed, was {"a": 1}  ClusterOverridePolicy' in text


def test_step_of_an_earlier_rule_text_has_no_line() -> None:
    (value,) = explain(build_explained_package(EARLIER)).values

    assert (value.steps[-1].file, value.steps[-1].line) == ("", 0)
    assert f"{SITE} ({PATCH}[0] (earlier text))" in format_explanation(explain(build_explained_package(EARLIER)))


@pytest.mark.parametrize(
    ("place", "plain", "expected"),
    [
        pytest.param("", False, [f"{CONTAINER}/image"], id="whole-resource"),
        pytest.param(REPLICAS, True, [REPLICAS], id="a-value"),
        pytest.param("/spec", False, [f"{CONTAINER}/image"], id="around-values"),
        pytest.param("/spec", True, [REPLICAS, f"{CONTAINER}/name", f"{CONTAINER}/image"], id="all-around"),
        pytest.param(f"{CONTAINER}/name", True, [f"{CONTAINER}/name"], id="beside-values"),
        pytest.param("/spec/template/spec/containers", False, [f"{CONTAINER}/image"], id="a-list-around-one"),
    ],
)
def test_values_at_a_pointer(place: str, plain: bool, expected: list[str]) -> None:
    assert list_pointers(build_explained_package(), place, plain=plain) == expected


def test_value_inside_a_text_field_has_its_own_entry() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {app.ini: 'a = 1'}\n"
    files = build_tree({"c.yaml": text})
    step = {"by": SITE, "where": "x", "op": "replaced", "before": 1, "after": 2}
    inside = {"file": "c.yaml", "resource": "ConfigMap/_cluster/c", "pointer": "/data/app.ini!/a", "steps": [step]}
    known = replace(
        build_explained_package(),
        rendered=PackageRender(files, source=PackageSource(files, files, files), overrides=(inside,)),
    )

    for place, expected in (
        ("/data/app.ini", ["/data/app.ini", "/data/app.ini!/a"]),
        ("/data/app.ini!/a", ["/data/app.ini!/a"]),
    ):
        assert [explained_value.pointer for explained_value in explain(known, "ConfigMap/c", place).values] == expected


@pytest.mark.parametrize(
    ("resource", "place", "text"),
    [
        pytest.param("Deploymet/web", "", "eu-1/gw has no resource Deploymet/web; existing resources, "
                     "closest match first: Deployment/_cluster/web, "
                     "Secret/_cluster/login", id="resource"),
        pytest.param("Deployment/web", "/spec/replica", "Deployment/web has no value at /spec/replica; existing "
                     "values, closest match first: /spec/replicas, ", id="pointer"),
        pytest.param("Deployment/web", f"{CONTAINER}/image/x", f"no value at {CONTAINER}/image/x; existing values, "
                     f"closest match first: {CONTAINER}/image, ", id="below-a-value"),
        pytest.param("Deployment/web", "spec", 'must be empty or begin with "/", but is "spec"', id="no-pointer"),
        pytest.param("Deployment/web", "/~2", "0 or 1 must follow each \"~\"", id="bad-escape"),
    ],
)  # fmt: skip
def test_unknown_value_is_reported_with_existing_values(resource: str, place: str, text: str) -> None:
    with pytest.raises(ValueNotFoundError) as error:
        explain(build_explained_package(), resource, place)

    assert text in str(error.value)


def test_unchanged_values_are_summarized_with_their_source() -> None:
    text = format_explanation(explain(build_explained_package(), "Deployment/web"))

    assert text.endswith(
        "Deployment/_cluster/web in web.yaml, all other values:\n"
        f"  unchanged from the source: upstream catalog/gateway gateway/v4 at commit {COMMIT[:12]}\n"
    )


def test_values_of_the_same_step_are_grouped() -> None:
    rendered = build_explained_package().rendered
    assert rendered
    added = {**CAME, "a.yaml": format_deployment(2, "web:0").replace("name: web", "name: one", 1)}
    grown = replace(
        rendered, stages=(), files=build_tree(added), source=replace(rendered.source, files=build_tree(added))
    )

    text = format_explanation(explain(replace(build_explained_package(), rendered=grown)))

    assert (
        "layer draft, set by a person, on the draft branch (a.yaml):\n  Deployment/_cluster/one /apiVersion: apps/v1\n"
    ) in text


def test_secret_values_are_masked() -> None:
    package_explanation = explain(build_explained_package(), "Secret/login", "/stringData/password")

    assert [explained_value.steps[-1].after for explained_value in package_explanation.values] == ["*****"]
    assert "hunter2" not in format_explanation(package_explanation) + repr(build_explanation_data(package_explanation))


def test_removed_list_item_is_compared_with_the_item_that_takes_its_index() -> None:
    def explain_edited_list(left: str) -> ReRenderedPackage:
        came, files = (
            build_tree({"web.yaml": f"{format_deployment()}        args: {item}\n"}) for item in ("[a, b]", left)
        )
        return replace(
            build_explained_package([]), rendered=PackageRender(files, source=PackageSource(files, files, came))
        )

    package_explanation = add_ablations(
        explain(explain_edited_list("[b]"), "Deployment/web", f"{CONTAINER}/args"),
        lambda layer: explain_edited_list("[a, b]") if isinstance(layer, LocalEdit) else explain_edited_list("[b]"),
    )

    mapping = {
        explained_value.steps[0].after: [
            (step.layer, step.ablation and step.ablation.value) for step in explained_value.steps
        ]
        for explained_value in package_explanation.values
    }
    assert mapping == {"a": [("upstream", ABSENT), ("edit", "a")], "b": [("upstream", "b")]}


def test_secret_values_in_another_object_are_masked() -> None:
    more = "  spare: {kind: Secret, data: {p: hunter2}}\n"
    package_explanation = explain(build_explained_package([], more), "Deployment/web", "/spec/spare/data")

    assert [explained_value.pointer for explained_value in package_explanation.values] == ["/spec/spare/data/p"]
    assert "hunter2" not in format_explanation(package_explanation) + repr(build_explanation_data(package_explanation))


def test_injected_objects_and_inputs_are_listed_first() -> None:
    injected = ConfigInjection("config", "web.yaml", "Region", "default", "north", "sha256:1", "regions.yaml")
    mapping = {"object v1 ConfigMap default north": "sha256:2"}
    inputs = {("ConfigMap", "default", "north"): "regions.yaml"}
    known = build_explained_package([], injections=(injected,), trace=mapping, input_files=inputs)

    text = format_explanation(explain(known))

    assert "  inputs: ConfigMap/default/north (regions.yaml)\n" in text
    assert "  injected: Region/default/north (regions.yaml) at the injection point config of web.yaml\n" in text
    assert "All values are unchanged from the source." in text


def test_blocked_package_shows_its_reason() -> None:
    known = replace(build_explained_package(), rendered=None, blocked_reason="Error: it cannot be")

    text = format_explanation(explain(known, "Deployment/web"))

    assert "  blocked: Error: it cannot be\n" in text


def test_data_contains_the_same_steps_as_the_text() -> None:
    data = build_explanation_data(explain(build_explained_package(), "Deployment/web", f"{CONTAINER}/image"))

    (value,) = data["items"]
    assert (data["kind"], data["metadata"]["config"], data["summary"]["package"]) == ("Explanation", CONFIG, "eu-1/gw")
    assert (value["file"], value["resource"], value["pointer"]) == (
        "web.yaml",
        "Deployment/_cluster/web",
        f"{CONTAINER}/image",
    )
    assert value["steps"][0] == {
        "layer": "upstream", "setBy": "catalog/gateway gateway/v4", "file": "gateway/web.yaml", "line": 11,
        "field": "spec.template.spec.containers[0].image", "commit": COMMIT, "operation": "added", "after": "web:0",
    }  # fmt: skip
    assert value["steps"][2] == {
        "layer": "policy", "setBy": SITE, "file": "policies.yaml", "field": f"{IMAGE}[1]", "operation": "replaced",
        "line": 9, "before": "m/web:0", "after": "web:1",
    }  # fmt: skip


def test_similar_names_are_listed_first() -> None:
    assert format_closest_names("web", ["api", "wed", "web2"]) == "web2, wed, api"
    assert format_closest_names("web", []) == "none"
    assert format_closest_names("x", map(str, range(25))).endswith(" and 5 more")


MADE = {"layer": "definition", "by": SITE, "file": "policies.yaml", "op": "added"}
READ = {"name": "spec.image", "layer": "default", "by": SITE, "file": "policies.yaml"}
BY_ADDON = {
    **MADE, "layer": "addon", "instance": "pin/main", "where": f"{IMAGE}[0]", "after": "web:0",
    "expression": "${spec.image}:${item}", "forEach": "${spec.images}",
    "values": [{**READ, "where": f"{IMAGE}[1]"}, {"name": "spec.tag", "layer": "unset"}],
}  # fmt: skip


@dataclass(frozen=True)
class FixedProvenance:
    """Provenance with a fixed list of layers."""

    entries: list[dict[str, Any]]

    def list_layers(self) -> list[dict[str, Any]]:
        return self.entries

    def list_applied_overrides(self) -> list[dict[str, str]]:
        return []

    def list_objects(self) -> list[dict[str, str]]:
        return []


def build_layer_entry(pointer: str, *steps: Mapping[str, Any]) -> dict[str, Any]:
    return {"file": "web.yaml", "resource": "Deployment/_cluster/web", "pointer": pointer, "steps": list(steps)}


def build_composed_package() -> ReRenderedPackage:
    whole = build_layer_entry("", {**MADE, "where": IMAGE, "forEach": "${spec.images}"})
    known, came = build_explained_package([]), build_tree(CAME)
    collector = FixedProvenance([whole, build_layer_entry(f"{CONTAINER}/image", BY_ADDON)])
    return replace(known, variant=replace(build_variant(), source=GeneratedSource(came), provenance=collector))


def test_inputs_of_an_expression_are_listed_with_their_layers() -> None:
    assert (
        f"Deployment/_cluster/web {CONTAINER}/image in web.yaml: web:0\n"
        "  1. pin/main  added web:0 = ${spec.image}:${item}"
        f"  {SITE} (policies.yaml:9 {IMAGE}[0])  wins\n"
        "       for each item of ${spec.images}\n"
        f"       input spec.image: layer default, {SITE} (policies.yaml:9 {IMAGE}[1])\n"
        "       input spec.tag: not set\n"
    ) in format_explanation(explain(build_composed_package(), "Deployment/web", f"{CONTAINER}/image"))


def test_unchanged_template_values_are_summarized_with_the_template() -> None:
    assert format_explanation(explain(build_composed_package(), "Deployment/web")).endswith(
        "Deployment/_cluster/web in web.yaml, all other values:\n"
        f"  from the template of the layer definition: {SITE} (policies.yaml), for each item of ${{spec.images}}\n"
    )


def test_absent_template_value_is_reported_as_not_found() -> None:
    with pytest.raises(
        ValueNotFoundError, match=f"no value at /spec/paused; existing values, closest match first: {REPLICAS}, "
    ):
        explain(build_composed_package(), "Deployment/web", "/spec/paused")


def test_data_lists_the_inputs_of_an_expression_with_lines() -> None:
    data = build_explanation_data(explain(build_composed_package(), "Deployment/web", f"{CONTAINER}/image"))
    (value,) = data["items"]

    (step,) = value["steps"]
    assert (step["layer"], step["instance"], step["forEach"]) == ("addon", "pin/main", "${spec.images}")
    assert step["inputs"] == [
        {
            "name": "spec.image", "layer": "default", "setBy": SITE, "file": "policies.yaml", "field": f"{IMAGE}[1]",
            "line": 9,
        },
        {"name": "spec.tag", "layer": "unset"},
    ]  # fmt: skip


def render_without_layer(layer: RemovableLayer) -> ReRenderedPackage | str:
    """Render without the second image of the policy. All other layers are blocked."""
    if isinstance(layer, ConfigField):
        return build_explained_package(TWICE[:1])
    return "it cannot be"


def test_ablation_shows_the_value_without_each_layer() -> None:
    package_explanation = add_ablations(
        explain(build_explained_package(), "Deployment/web", f"{CONTAINER}/image"), render_without_layer
    )

    (value,) = package_explanation.values
    assert [
        (value_step.ablation and (value_step.ablation.value, value_step.ablation.blocked_reason))
        for value_step in value.steps
    ] == [
        (ABSENT, "it cannot be"),
        ("m/web:0", ""),
        ("m/web:0", ""),
    ]
    assert "       without this layer: m/web:0\n" in format_explanation(package_explanation)
    assert "       without this layer: the package is blocked: it cannot be\n" in format_explanation(
        package_explanation
    )
