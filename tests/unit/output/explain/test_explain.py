"""The explanation of a package: which values are told, in which words, and what is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.controllers.override_policies.resource_overrides import OverriddenResource, OverrideStage
from reconciler.controllers.results import ConfigInjection, GeneratedSource
from reconciler.krm.merge3.rules import ABSENT
from reconciler.output.explain.ablation import add_ablations
from reconciler.output.explain.builder import explain, format_closest_names
from reconciler.output.explain.formats import build_explanation_data, format_explanation
from reconciler.output.explain.model import ExplainedPackage, ValueNotFoundError
from reconciler.packages.package import Package
from reconciler.planning.attribution.re_render import ConfigField, LocalEdit, RemovableLayer
from reconciler.planning.model.outcomes import PackageRender, PolicyStage
from reconciler.planning.model.sources import PackageSource
from tests.unit.output.world import COMMIT, CONFIG, deployment, secret, tree, variant

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
CAME = {"web.yaml": deployment(2, "web:0"), "login.yaml": secret()}
Turns = list[tuple[str, int, str]]
"""Where in the policy, and the replicas and the image afterwards."""
TWICE: Turns = [(f"{IMAGE}[0]", 2, "m/web:0"), (f"{IMAGE}[1]", 2, "web:1")]
EARLIER: Turns = [(f"{PATCH}[0] (earlier text)", 3, "web:0")]


def explained(turns: Turns = TWICE, more: str = "", **rendered: Any) -> ExplainedPackage:
    """Return what is known of a package on which a policy has acted; `more` is appended to its Deployment."""
    came = tree({**CAME, "web.yaml": CAME["web.yaml"] + more})
    resource = next(
        package_resource for package_resource in Package(came).resources if package_resource.kind == "Deployment"
    )
    datas = [Package(tree({"a.yaml": deployment(*item)})).resources[0].data for _, *item in turns]
    override_stages = tuple(OverrideStage(SITE, where, data) for (where, *_), data in zip(turns, datas, strict=True))
    files = tree({**CAME, "web.yaml": deployment(*turns[-1][1:]) if turns else CAME["web.yaml"] + more})
    stage = PolicyStage((OverriddenResource(resource, resource.document, stages=override_stages),))
    package_render = PackageRender(files, source=PackageSource(came, came, came), stages=(stage,), **rendered)
    desired_variant = variant()
    return ExplainedPackage(
        "eu-1/gw",
        CONFIG,
        read_catalog(tree({"policies.yaml": POLICY})).objects,
        desired_variant.owner,
        desired_variant,
        package_render,
    )


def pointers(known: ExplainedPackage, place: str = "", *, plain: bool = False) -> list[str]:
    return [
        explained_value.pointer
        for explained_value in explain(known, "Deployment/web", place).values
        if plain or not explained_value.is_unchanged
    ]


def test_each_step_has_its_place_and_the_last_one_wins() -> None:
    assert format_explanation(explain(explained())) == (
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


def test_what_is_added_and_removed_says_so() -> None:
    known = explained([(f"{IMAGE}[0]", 2, "web:0")], "  strategy: {a: 1}\n")

    text = format_explanation(explain(known, "Deployment/web", "/spec/strategy"))

    assert "Deployment/_cluster/web /spec/strategy in web.yaml: removed\n" in text
    assert '1. upstream  {"a": 1}' in text
    assert '2. policy    removed, was {"a": 1}  ClusterOverridePolicy' in text


def test_an_earlier_text_of_a_rule_has_no_line_of_today() -> None:
    (value,) = explain(explained(EARLIER)).values

    assert (value.steps[-1].file, value.steps[-1].line) == ("", 0)
    assert f"{SITE} ({PATCH}[0] (earlier text))" in format_explanation(explain(explained(EARLIER)))


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
def test_what_is_told_of_a_place(place: str, plain: bool, expected: list[str]) -> None:
    assert pointers(explained(), place, plain=plain) == expected


def test_what_a_rule_set_in_a_text_is_told_by_itself() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {app.ini: 'a = 1'}\n"
    files = tree({"c.yaml": text})
    step = {"by": SITE, "where": "x", "op": "replaced", "before": 1, "after": 2}
    inside = {"file": "c.yaml", "resource": "ConfigMap/_cluster/c", "pointer": "/data/app.ini!/a", "steps": [step]}
    known = replace(
        explained(), rendered=PackageRender(files, source=PackageSource(files, files, files), overrides=(inside,))
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
        pytest.param("Deployment/web", "spec", 'must be empty or begin with "/", not "spec"', id="no-pointer"),
        pytest.param("Deployment/web", "/~2", "0 or 1 must follow \"~\"", id="bad-escape"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_told_with_what_is(resource: str, place: str, text: str) -> None:
    with pytest.raises(ValueNotFoundError) as error:
        explain(explained(), resource, place)

    assert text in str(error.value)


def test_what_is_as_its_source_has_it_is_told_in_one() -> None:
    text = format_explanation(explain(explained(), "Deployment/web"))

    assert text.endswith(
        "Deployment/_cluster/web in web.yaml, all other values:\n"
        f"  unchanged from the source: upstream catalog/gateway gateway/v4 at commit {COMMIT[:12]}\n"
    )


def test_values_that_one_step_gave_alike_are_told_in_one() -> None:
    rendered = explained().rendered
    assert rendered
    added = {**CAME, "a.yaml": deployment(2, "web:0").replace("name: web", "name: one", 1)}
    grown = replace(rendered, stages=(), files=tree(added), source=replace(rendered.source, files=tree(added)))

    text = format_explanation(explain(replace(explained(), rendered=grown)))

    assert (
        "layer draft, set by a person, on the draft branch (a.yaml):\n  Deployment/_cluster/one /apiVersion: apps/v1\n"
    ) in text


def test_the_values_of_a_secret_are_masked() -> None:
    package_explanation = explain(explained(), "Secret/login", "/stringData/password")

    assert [explained_value.steps[-1].after for explained_value in package_explanation.values] == ["*****"]
    assert "hunter2" not in format_explanation(package_explanation) + repr(build_explanation_data(package_explanation))


def test_an_item_that_went_is_told_with_what_would_be_where_it_was() -> None:
    def known(left: str) -> ExplainedPackage:
        came, files = (tree({"web.yaml": f"{deployment()}        args: {item}\n"}) for item in ("[a, b]", left))
        return replace(explained([]), rendered=PackageRender(files, source=PackageSource(files, files, came)))

    package_explanation = add_ablations(
        explain(known("[b]"), "Deployment/web", f"{CONTAINER}/args"),
        lambda layer: known("[a, b]") if isinstance(layer, LocalEdit) else known("[b]"),
    )

    mapping = {
        explained_value.steps[0].after: [
            (step.layer, step.ablation and step.ablation.value) for step in explained_value.steps
        ]
        for explained_value in package_explanation.values
    }
    assert mapping == {"a": [("upstream", ABSENT), ("edit", "a")], "b": [("upstream", "b")]}


def test_the_values_of_a_secret_in_another_object_are_masked() -> None:
    more = "  spare: {kind: Secret, data: {p: hunter2}}\n"
    package_explanation = explain(explained([], more), "Deployment/web", "/spec/spare/data")

    assert [explained_value.pointer for explained_value in package_explanation.values] == ["/spec/spare/data/p"]
    assert "hunter2" not in format_explanation(package_explanation) + repr(build_explanation_data(package_explanation))


def test_what_was_injected_and_asked_stands_above() -> None:
    injected = ConfigInjection("config", "web.yaml", "Region", "default", "north", "sha256:1", "regions.yaml")
    mapping = {"object v1 ConfigMap default north": "sha256:2"}
    inputs = {("ConfigMap", "default", "north"): "regions.yaml"}
    known = explained([], injections=(injected,), trace=mapping, input_files=inputs)

    text = format_explanation(explain(known))

    assert "  inputs: ConfigMap/default/north (regions.yaml)\n" in text
    assert "  injected: Region/default/north (regions.yaml) at the injection point config of web.yaml\n" in text
    assert "All values are unchanged from the source." in text


def test_a_package_that_is_withheld_says_why() -> None:
    known = replace(explained(), rendered=None, blocked_reason="Error: it cannot be")

    text = format_explanation(explain(known, "Deployment/web"))

    assert "  blocked: Error: it cannot be\n" in text


def test_the_data_says_the_same() -> None:
    data = build_explanation_data(explain(explained(), "Deployment/web", f"{CONTAINER}/image"))

    (value,) = data["values"]
    assert (value["file"], value["resource"], value["pointer"]) == (
        "web.yaml",
        "Deployment/_cluster/web",
        f"{CONTAINER}/image",
    )
    assert value["steps"][0] == {
        "layer": "upstream", "by": "catalog/gateway gateway/v4", "file": "gateway/web.yaml", "line": 11,
        "where": "spec.template.spec.containers[0].image", "commit": COMMIT, "op": "added", "after": "web:0",
    }  # fmt: skip
    assert value["steps"][2] == {
        "layer": "policy", "by": SITE, "file": "policies.yaml", "where": f"{IMAGE}[1]", "op": "replaced",
        "line": 9, "before": "m/web:0", "after": "web:1",
    }  # fmt: skip


def test_names_that_look_alike_come_first() -> None:
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
class Told:
    """What a room tells of a package that it makes."""

    entries: list[dict[str, Any]]

    def list_layers(self) -> list[dict[str, Any]]:
        return self.entries

    def list_applied_overrides(self) -> list[dict[str, str]]:
        return []

    def list_objects(self) -> list[dict[str, str]]:
        return []


def entry(pointer: str, *steps: Mapping[str, Any]) -> dict[str, Any]:
    return {"file": "web.yaml", "resource": "Deployment/_cluster/web", "pointer": pointer, "steps": list(steps)}


def composed() -> ExplainedPackage:
    whole = entry("", {**MADE, "where": IMAGE, "forEach": "${spec.images}"})
    known, came = explained([]), tree(CAME)
    collector = Told([whole, entry(f"{CONTAINER}/image", BY_ADDON)])
    return replace(known, variant=replace(variant(), source=GeneratedSource(came), provenance=collector))


def test_what_an_expression_read_is_told_with_who_gave_it() -> None:
    assert (
        f"Deployment/_cluster/web {CONTAINER}/image in web.yaml: web:0\n"
        "  1. pin/main  added web:0 = ${spec.image}:${item}"
        f"  {SITE} (policies.yaml:9 {IMAGE}[0])  wins\n"
        "       for each item of ${spec.images}\n"
        f"       input spec.image: layer default, {SITE} (policies.yaml:9 {IMAGE}[1])\n"
        "       input spec.tag: not set\n"
    ) in format_explanation(explain(composed(), "Deployment/web", f"{CONTAINER}/image"))


def test_what_a_template_has_as_it_is_is_told_by_the_template() -> None:
    assert format_explanation(explain(composed(), "Deployment/web")).endswith(
        "Deployment/_cluster/web in web.yaml, all other values:\n"
        f"  from the template of the layer definition: {SITE} (policies.yaml), for each item of ${{spec.images}}\n"
    )


def test_a_template_takes_no_place_that_is_not_there() -> None:
    with pytest.raises(
        ValueNotFoundError, match=f"no value at /spec/paused; existing values, closest match first: {REPLICAS}, "
    ):
        explain(composed(), "Deployment/web", "/spec/paused")


def test_the_data_has_what_was_read_with_lines() -> None:
    (value,) = build_explanation_data(explain(composed(), "Deployment/web", f"{CONTAINER}/image"))["values"]

    (step,) = value["steps"]
    assert (step["layer"], step["instance"], step["forEach"]) == ("addon", "pin/main", "${spec.images}")
    assert step["values"] == [
        {**READ, "where": f"{IMAGE}[1]", "line": 9},
        {"name": "spec.tag", "layer": "unset"},
    ]


def without_policies(layer: RemovableLayer) -> ExplainedPackage | str:
    """Do without the second image of the policy; nothing else can be tried."""
    if isinstance(layer, ConfigField):
        return explained(TWICE[:1])
    return "it cannot be"


def test_what_would_stand_there_without_each_layer() -> None:
    package_explanation = add_ablations(explain(explained(), "Deployment/web", f"{CONTAINER}/image"), without_policies)

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
