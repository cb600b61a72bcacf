"""The explanation of a package: which values are told, in which words, and what is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.planning.outcome import Rendered
from reconciler.planning.source import Source
from reconciler.reporting.explain import Explained, NothingToExplainError, alike_first, explain
from reconciler.reporting.explain_words import explanation_data, explanation_text
from reconciler.rules.variant import Injected
from reconciler.snapshot.catalog import read_catalog
from tests.unit.reporting.world import COMMIT, CONFIG, deployment, secret, tree, variant

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
PATCH, IMAGE = "spec.overrideRules[0].overriders.jsonpatch", "spec.overrideRules[0].overriders.image"
REPLICAS, CONTAINER = "/spec/replicas", "/spec/template/spec/containers/0"


def step(where: str, before: Any, after: Any, by: str = "ClusterOverridePolicy/site") -> dict[str, Any]:
    return {"by": by, "where": where, "op": "replaced", "before": before, "after": after}


def ruled(pointer: str, *steps: Mapping[str, Any], resource: str = "Deployment/_cluster/web") -> dict[str, Any]:
    return {"file": "web.yaml", "resource": resource, "pointer": pointer, "steps": list(steps)}


TWICE = ruled(f"{CONTAINER}/image", step(f"{IMAGE}[0]", "web:0", "m/web:0"), step(f"{IMAGE}[1]", "m/web:0", "web:1"))
EARLIER = ruled(REPLICAS, step(f"{PATCH}[0] (earlier text)", 2, 3))
CAME = {"web.yaml": deployment(2, "web:0"), "login.yaml": secret()}


def explained(*overrides: Mapping[str, Any], **rendered: Any) -> Explained:
    came, files = tree(CAME), tree({"web.yaml": deployment(3), "login.yaml": secret()})
    made = Rendered(files, source=Source(came, came, came), overrides=overrides, **rendered)
    objects = read_catalog(tree({"policies.yaml": POLICY})).objects
    wanted = variant()
    return Explained("eu-1/gw", CONFIG, objects, wanted.owner, wanted, made)


def test_each_step_has_its_place_and_the_last_one_wins() -> None:
    assert explanation_text(explain(explained(TWICE))) == (
        "eu-1/gw\n"
        "  owner: PackageVariant/default/edge-gw\n"
        f"  source: upstream catalog/gateway gateway/v4 at {COMMIT[:12]}\n"
        "\n"
        f"Deployment/_cluster/web {CONTAINER}/image in web.yaml: web:1\n"
        f"  1. policy  web:0 → m/web:0  ClusterOverridePolicy/site policies.yaml:9 {IMAGE}[0]\n"
        f"  2. policy  m/web:0 → web:1  ClusterOverridePolicy/site policies.yaml:9 {IMAGE}[1]  wins\n"
    )


def test_what_is_added_and_removed_says_so() -> None:
    added = {"by": "ClusterOverridePolicy/site", "where": f"{IMAGE}[0]", "op": "added", "after": {"a": 1}}
    removed = {"by": "ClusterOverridePolicy/site", "where": f"{IMAGE}[1]", "op": "removed", "before": {"a": 1}}

    text = explanation_text(explain(explained(ruled("/spec/strategy", added, removed))))

    assert "Deployment/_cluster/web /spec/strategy in web.yaml: removed\n" in text
    assert '1. policy  added {"a": 1}         ClusterOverridePolicy' in text
    assert '2. policy  removed, was {"a": 1}  ClusterOverridePolicy' in text


def test_an_earlier_text_of_a_rule_has_no_line_of_today() -> None:
    (value,) = explain(explained(EARLIER)).values

    assert (value.steps[0].file, value.steps[0].line) == ("", 0)
    assert f"ClusterOverridePolicy/site {PATCH}[0] (earlier text)" in explanation_text(explain(explained(EARLIER)))


@pytest.mark.parametrize(
    ("place", "values", "rest"),
    [
        pytest.param("", [f"{CONTAINER}/image", REPLICAS], [("", "source")], id="whole-resource"),
        pytest.param(REPLICAS, [REPLICAS], [], id="a-value"),
        pytest.param("/spec", [f"{CONTAINER}/image", REPLICAS], [("/spec", "source")], id="around-values"),
        pytest.param(f"{CONTAINER}/name", [], [(f"{CONTAINER}/name", "source")], id="beside-values"),
        pytest.param("/spec/template/spec/containers", [f"{CONTAINER}/image"],
                     [("/spec/template/spec/containers", "source")], id="a-list-around-one"),
    ],
)  # fmt: skip
def test_what_is_told_of_a_place(place: str, values: list[str], rest: list[tuple[str, str]]) -> None:
    found = explain(explained(TWICE, EARLIER), "Deployment/web", place)

    assert [one.pointer for one in found.values] == values
    assert [(one.pointer, one.kind) for one in found.rest] == rest


def test_a_place_within_what_a_rule_set_whole_is_told_by_that_rule() -> None:
    whole = ruled("/spec/template", step(f"{PATCH}[0]", {}, {}))

    found = explain(explained(whole), "Deployment/web", f"{CONTAINER}/image")

    assert [one.pointer for one in found.values] == ["/spec/template"]
    assert found.rest == ()


def test_what_a_rule_set_in_a_text_is_found_by_its_string() -> None:
    inside = ruled("/data/app.ini!/server/port", step("x", 1, 2), resource="ConfigMap/_cluster/c")
    files = tree({"web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {app.ini: 'a = 1'}\n"})
    known = replace(explained(), rendered=Rendered(files, overrides=(inside,)))

    for place in ("/data/app.ini", "/data/app.ini!/server", "/data/app.ini!/server/port"):
        assert [one.pointer for one in explain(known, "ConfigMap/c", place).values] == ["/data/app.ini!/server/port"]


@pytest.mark.parametrize(
    ("resource", "place", "told"),
    [
        pytest.param("Deploymet/web", "", "eu-1/gw has no resource Deploymet/web; it has Deployment/_cluster/web, "
                     "Secret/_cluster/login", id="resource"),
        pytest.param("Deployment/web", "/spec/replica", "Deployment/web has nothing at /spec/replica; it has "
                     "/spec/replicas, ", id="pointer"),
        pytest.param("Deployment/web", f"{CONTAINER}/image/x", f"nothing at {CONTAINER}/image/x; it has "
                     f"{CONTAINER}/image, ", id="below-a-value"),
        pytest.param("Deployment/web", "spec", 'must be empty or begin with /, not "spec"', id="no-pointer"),
        pytest.param("Deployment/web", "/~2", "~ must be followed by 0 or 1", id="bad-escape"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_told_with_what_is(resource: str, place: str, told: str) -> None:
    with pytest.raises(NothingToExplainError) as error:
        explain(explained(TWICE), resource, place)

    assert told in str(error.value)


def test_the_rest_is_told_by_where_it_is_from() -> None:
    text = explanation_text(explain(explained(TWICE), "Deployment/web"))

    assert text.endswith(
        "Deployment/_cluster/web in web.yaml, as far as no rule set it:\n"
        "  set while the package was rendered, as it was cloned, by its context, an injection or a function:\n"
        "    /spec/replicas: 3\n"
        f"  upstream catalog/gateway gateway/v4 at {COMMIT[:12]}:\n"
        "    all else\n"
    )


def test_the_values_of_a_secret_are_masked() -> None:
    found = explain(explained(), "Secret/login", "/stringData/password")

    assert [one.value for one in found.rest] == ["*****"]
    assert "hunter2" not in explanation_text(found) + repr(explanation_data(found))


def test_what_was_injected_and_asked_stands_above() -> None:
    injected = Injected("config", "web.yaml", "Region", "default", "north", "sha256:1", "regions.yaml")
    asked = {"object v1 ConfigMap default north": "sha256:2"}
    known = explained(injected=(injected,), trace=asked, inputs={("ConfigMap", "default", "north"): "regions.yaml"})

    text = explanation_text(explain(known))

    assert "  objects that it was made of: ConfigMap/default/north (regions.yaml)\n" in text
    assert "  injected: config of web.yaml from Region/default/north (regions.yaml)\n" in text
    assert "no rule set anything here" in text


def test_a_package_that_is_withheld_says_why() -> None:
    known = replace(explained(), rendered=None, trouble="Error: it cannot be")

    text = explanation_text(explain(known, "Deployment/web"))

    assert "  it stays as it is: Error: it cannot be\n" in text


def test_the_data_says_the_same() -> None:
    data = explanation_data(explain(explained(TWICE), "Deployment/web", f"{CONTAINER}/image"))

    (value,) = data["values"]
    assert (value["file"], value["resource"], value["pointer"]) == (
        "web.yaml",
        "Deployment/_cluster/web",
        f"{CONTAINER}/image",
    )
    assert value["steps"][1] == {
        "by": "ClusterOverridePolicy/site", "file": "policies.yaml", "where": f"{IMAGE}[1]", "op": "replaced",
        "line": 9, "before": "m/web:0", "after": "web:1",
    }  # fmt: skip
    assert "rest" not in data


def test_names_that_look_alike_come_first() -> None:
    assert alike_first("web", ["api", "wed", "web2"]) == "web2, wed, api"
    assert alike_first("web", []) == "none"
    assert alike_first("x", map(str, range(25))).endswith(" and 5 more")


MADE = {"layer": "definition", "by": "ClusterOverridePolicy/site", "file": "policies.yaml", "op": "added"}
READ = {"name": "spec.image", "layer": "default", "by": "ClusterOverridePolicy/site", "file": "policies.yaml"}
TEMPLATE = ruled("", {**MADE, "where": IMAGE, "forEach": "${spec.images}"})
BY_ADDON = {
    **MADE, "layer": "addon", "instance": "pin/main", "where": f"{IMAGE}[0]", "after": "web:0",
    "expression": "${spec.image}:${item}", "forEach": "${spec.images}",
    "values": [{**READ, "where": f"{IMAGE}[1]"}, {"name": "spec.tag", "layer": "unset"}],
}  # fmt: skip


def composed(place: str = "") -> str:
    return explanation_text(
        explain(explained(TEMPLATE, ruled(f"{CONTAINER}/image", BY_ADDON)), "Deployment/web", place)
    )


def test_what_an_expression_read_is_told_with_who_gave_it() -> None:
    assert (
        f"Deployment/_cluster/web {CONTAINER}/image in web.yaml: web:0\n"
        "  1. pin/main  added web:0 by ${spec.image}:${item}"
        f"  ClusterOverridePolicy/site policies.yaml:9 {IMAGE}[0]  wins\n"
        "       for each of ${spec.images}\n"
        f"       spec.image: default  ClusterOverridePolicy/site policies.yaml:9 {IMAGE}[1]\n"
        "       spec.tag: nobody gives it\n"
    ) in composed(f"{CONTAINER}/image")


def test_what_a_template_has_as_it_is_is_told_by_the_template() -> None:
    assert composed(f"{CONTAINER}/name").endswith(
        "Deployment/_cluster/web in web.yaml, as far as no rule set it:\n"
        f"  as its template has it, definition  ClusterOverridePolicy/site policies.yaml:9 {IMAGE}, for each of"
        " ${spec.images}:\n"
        f"    {CONTAINER}/name: web\n"
    )


def test_a_template_takes_no_place_that_is_not_there() -> None:
    with pytest.raises(NothingToExplainError, match=f"nothing at /spec/paused; it has {REPLICAS}, "):
        composed("/spec/paused")


def test_the_data_has_what_was_read_with_lines() -> None:
    known = explained(ruled(f"{CONTAINER}/image", BY_ADDON))

    (value,) = explanation_data(explain(known, "Deployment/web", f"{CONTAINER}/image"))["values"]

    (told,) = value["steps"]
    assert (told["layer"], told["instance"], told["forEach"]) == ("addon", "pin/main", "${spec.images}")
    assert told["values"] == [
        {**READ, "where": f"{IMAGE}[1]", "line": 9},
        {"name": "spec.tag", "layer": "unset"},
    ]
