"""The HelmRelease of a Plugin, field by field, and what Flux would refuse (greenhouse 7.5 and 11)."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from reconciler.controllers.plugin_presets.helm_values import (
    build_values,
    format_option_name,
    is_free,
    parse_option_name,
)
from tests.unit.controllers.plugin_presets.outputs_world import (
    INJECTED,
    SCHEMA,
    VALIDATOR,
    file_data,
    files_of,
    flux_values,
    made,
    own_values,
    release,
    targets,
    token,
)
from tests.unit.controllers.plugin_presets.presets_world import (
    EAST,
    Branches,
    Data,
    definition,
    finding,
    findings,
    given,
    plugin,
    plugins,
    preset,
    room,
    secret,
    told,
    variant_of,
)

CENTRAL = {"central_cluster": "east"}
IGNORED = {"group": "apps", "version": "v1", "kind": "Deployment", "name": "web", "paths": ["/spec/replicas"]}


def of(texts: list[str], **more: Any) -> dict[str, Any]:
    """Return the spec of the only HelmRelease that a config makes."""
    spec: dict[str, Any] = release(room([EAST, *texts], output_names=frozenset({"helmrelease"}), **more))["spec"]
    return spec


def test_the_whole_of_it() -> None:
    data = release(made([given("size", 3), secret("key")], plugin={"releaseNamespace": "obs", "releaseName": "rel"}))

    assert json.dumps(data) == json.dumps(
        {
            "apiVersion": "helm.toolkit.fluxcd.io/v2",
            "kind": "HelmRelease",
            "metadata": {"name": "logs-east", "namespace": "acme"},
            "spec": {
                "interval": "5m",
                "timeout": "5m",
                "maxHistory": 10,
                "releaseName": "rel",
                "targetNamespace": "obs",
                "storageNamespace": "obs",
                "chartRef": {"kind": "HelmChart", "name": "shipper-1.0.0", "namespace": "acme"},
                "install": {"createNamespace": True, "remediation": {"retries": 3}},
                "upgrade": {"crds": "CreateReplace", "remediation": {"retries": 3}},
                "driftDetection": {"mode": "enabled"},
                "suspend": False,
                "kubeConfig": {"secretRef": {"name": "east", "key": "greenhousekubeconfig"}},
                "valuesFrom": [{"kind": "Secret", "name": "keys", "valuesKey": "k", "targetPath": "key"}],
                "values": {"global": INJECTED, "size": 3},
            },
        }
    )


def waiting(*entries: dict[str, str]) -> dict[str, Any]:
    return {"spec": {"waitFor": [{"pluginRef": entry} for entry in entries]}}


CLUSTER_WIDE = [definition(cluster_scoped=True), preset(kind="ClusterPluginDefinition")]


@pytest.mark.parametrize(
    ("texts", "field", "expected"),
    [
        pytest.param([definition(), preset()], "releaseName", "shipper-chart", id="named-as-the-chart"),
        pytest.param([definition(), preset()], "targetNamespace", "acme", id="into-the-organization"),
        pytest.param([definition(), preset()], "valuesFrom", None, id="no-secrets"),
        pytest.param([definition(), preset()], "dependsOn", None, id="waits-for-nothing"),
        pytest.param(
            CLUSTER_WIDE, "chartRef", {"kind": "HelmChart", "name": "shipper-1.0.0", "namespace": "greenhouse"},
            id="chart-of-a-cluster-scoped-definition",
        ),
        pytest.param(
            [definition(), preset(**waiting({"name": "dns"}, {"pluginPreset": "base"}))],
            "dependsOn", [{"name": "dns"}, {"name": "base-east"}], id="waits-for-a-plugin-and-for-a-preset",
        ),
        pytest.param(
            [definition(), preset(**waiting({"name": "base-east"}, {"pluginPreset": "base"}))],
            "dependsOn", [{"name": "base-east"}], id="waits-for-one-in-two-ways",
        ),
        pytest.param(
            [definition(), preset(plugin={"ignoreDifferences": [IGNORED, {"paths": ["/a", "/b"]}]})],
            "driftDetection",
            {
                "mode": "enabled",
                "ignore": [
                    {
                        "target": {"group": "apps", "version": "v1", "kind": "Deployment", "name": "web"},
                        "paths": ["/spec/replicas"],
                    },
                    {"paths": ["/a", "/b"]},
                ],
            },
            id="drift-that-is-ignored",
        ),
        pytest.param(
            [definition(), plugin(ignoreDifferences=[{"group": "", "kind": "Job", "more": 1, "paths": ["/a"]}])],
            "driftDetection", {"mode": "enabled", "ignore": [{"target": {"kind": "Job"}, "paths": ["/a"]}]},
            id="of-a-plugin-of-its-own-what-is-known",
        ),
        pytest.param(
            [definition(), plugin()], "kubeConfig",
            {"secretRef": {"name": "east", "key": "greenhousekubeconfig"}}, id="a-plugin-of-its-own-on-a-cluster",
        ),
        pytest.param([definition(), plugin(cluster="")], "kubeConfig", None, id="without-a-cluster"),
        pytest.param(
            [definition(), plugin(cluster="", waitFor=[{"pluginRef": {"pluginPreset": "base"}}])],
            "dependsOn", [{"name": "base-east"}], id="waits-on-the-central-cluster",
        ),
        pytest.param([definition(), plugin(releaseNamespace="obs")], "storageNamespace", "obs", id="its-own-namespace"),
    ],
)  # fmt: skip
def test_a_field(texts: list[str], field: str, expected: Any) -> None:
    assert of(texts, **CENTRAL).get(field) == expected


def test_a_release_that_is_published_keeps_its_name() -> None:
    there = plugins(made([], plugin={"releaseName": "old"}))["east/logs-east"]
    branches = Branches().with_plugin(("east", "plugins/logs-east"), there)

    result = room([EAST, definition(), preset()], branches, output_names=frozenset({"helmrelease"}))

    assert release(result)["spec"]["releaseName"] == "old"


# which files there are


UI = definition([], helmChart=None, uiApplication={"name": "ui", "version": "1"})


@pytest.mark.parametrize(
    ("of_definition", "outputs", "expected"),
    [
        pytest.param(definition(), (), ["plugin.yaml"], id="none-is-wanted"),
        pytest.param(definition(), ["values"], ["plugin.yaml", "values.yaml"], id="values"),
        pytest.param(definition(), ["helmrelease"], ["helmrelease.yaml", "plugin.yaml"], id="release"),
        pytest.param(
            definition(), ["values", "helmrelease"], ["helmrelease.yaml", "plugin.yaml", "values.yaml"], id="both"
        ),
        pytest.param(UI, ["values", "helmrelease"], ["plugin.yaml", "values.yaml"], id="no-release-without-a-chart"),
    ],
)
def test_the_files_of_a_plugin(of_definition: str, outputs: list[str], expected: list[str]) -> None:
    result = room([EAST, of_definition, preset()], output_names=frozenset(outputs))

    assert list(files_of(variant_of(result, "east/logs-east"))) == expected


def test_the_plugin_is_the_same_to_the_byte_whatever_is_beside_it() -> None:
    options = [secret("a"), given("b", {"c": [1]}), given("d[1]", "x")]
    (alone,), (beside,) = made(options, ()).variants, made(options).variants

    assert files_of(alone)["plugin.yaml"] == files_of(beside)["plugin.yaml"]
    assert alone.mutation.objects[0] == beside.mutation.objects[0]  # type: ignore[attr-defined]


def test_a_new_chart_is_news_to_the_release_alone() -> None:
    chart = {"name": "shipper-chart", "repository": "oci://charts.example.test/obs", "version": "1.1.0"}
    before, after = ([EAST, definition(helmChart=item), preset()] for item in ({**chart, "version": "1.0.0"}, chart))
    key = "PluginDefinition/acme/shipper"

    facts = [
        room(texts, output_names=frozenset(outputs)).variants[0].dependencies
        for texts in (before, after) for outputs in ((), ("values",), ("helmrelease",))
    ]  # fmt: skip

    assert [key in fact for fact in facts] == [False, False, True] * 2
    assert facts[2][key] != facts[5][key]


# values and secrets


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param([given("a.b", 1), given("a.c[1]", "x")], {"a": {"b": 1, "c": [None, "x"]}}, id="nested"),
        pytest.param([given(r"ann.x\.y/z", 1)], {"ann": {"x.y/z": 1}}, id="escaped"),
        pytest.param([secret("a.key"), given("a.b", 1)], {"a": {"b": 1}}, id="without-secrets"),
        pytest.param([secret("a.key")], {}, id="nor-their-parents"),
        pytest.param([given("n", 10**25), given("t", "1")], {"n": 10**25, "t": "1"}, id="types"),
    ],
)  # fmt: skip
def test_values(options: list[Data], expected: dict[str, Any]) -> None:
    result = made(options)

    assert own_values(release(result)["spec"]) == expected
    assert file_data(result, "values.yaml") == release(result)["spec"]["values"]


@pytest.mark.parametrize(
    ("secrets", "options", "left", "warned"),
    [
        pytest.param(["a.b"], [given("a.c", 1)], ["a.b"], [], id="beside-in-a-map"),
        pytest.param(["b", "a", "c.d"], [], ["a", "b", "c.d"], [], id="in-the-order-of-options"),
        pytest.param(["a[0]", "a[2]"], [], ["a[0]", "a[2]"], [], id="a-list-of-secrets"),
        pytest.param(["a[0].x", "a[1].x"], [given("b[0].x", 1)], ["a[0].x", "a[1].x"], [], id="another-list"),
        pytest.param(["a.b"], [given(r"a.\b", 1)], [], ["a.b"], id="one-place-in-two-spellings"),
        pytest.param(["a"], [given("a.b", 1)], [], ["a"], id="above-a-value"),
        pytest.param(["a"], [given("a.b", 1), given("a.c", 1)], [], ["a"], id="above-two-values-is-told-once"),
        pytest.param(["a.b"], [given("a", 1)], [], ["a.b"], id="below-a-scalar"),
        pytest.param(["a.b"], [given("a", [1])], [], ["a.b"], id="below-a-list"),
        pytest.param(["a.b"], [given("a", {"b": 1})], [], ["a.b"], id="in-a-map-that-has-it"),
        pytest.param(["a.b.c"], [given("a", {"b": {}})], ["a.b.c"], ["a.b.c"], id="in-a-map-that-does-not"),
        pytest.param(["a.b"], [given("a", {})], ["a.b"], ["a.b"], id="in-an-empty-map"),
        pytest.param(["a[0].x"], [given("a[1].x", 1)], [], ["a[0].x"], id="another-place-of-a-list"),
        pytest.param(["a[0].x"], [given("a[0].y", 1)], [], ["a[0].x"], id="in-one-map-of-a-list"),
        pytest.param(["b.a[0][1].x"], [given("b.a[0][0]", 1)], [], ["b.a[0][1].x"], id="in-a-list-in-a-list"),
        pytest.param(["b.a[1]", "c"], [given("b.a", [0])], ["c"], ["b.a[1]"], id="below-a-whole-list"),
        pytest.param(["a[0]"], [given("a.b", 1)], [], ["a[0]"], id="a-list-where-a-map-is"),
        pytest.param(["a.b"], [given("a[0]", 1)], [], ["a.b"], id="a-map-where-a-list-is"),
        pytest.param(["a[0].b"], [given("a[0][1]", 1)], [], ["a[0].b"], id="a-map-where-a-list-is-in-a-list"),
        pytest.param([r"a.\b", "a.b"], [], ["a.b"], ["a.\\b"], id="of-two-secrets-at-one-place-the-later"),
        pytest.param(["a", "a.b"], [given("a.b.c", 1)], [], ["a", "a.b"], id="secrets-above-each-other-and-a-value"),
    ],
)  # fmt: skip
def test_a_secret_and_a_value_never_meet(
    secrets: list[str], options: list[Data], left: list[str], warned: list[str]
) -> None:
    result = made([*(secret(name) for name in secrets), *options])

    places = {name: index for index, name in enumerate(secrets)}
    shadowed = [item for item in findings(result) if item.code == "SecretPathShadowed"]
    assert targets(release(result)["spec"]) == left
    assert sorted(item.location.pointer for item in shadowed) == sorted(
        f"/spec/plugin/optionValues/{places[name]}" for name in warned
    )


def test_a_warning_names_what_is_in_the_way() -> None:
    message = finding(made([given("a.c", 1), secret("a"), given("a.b", 1)]), "SecretPathShadowed").message

    assert "sets a from a secret, and PluginPreset/acme/logs (spec.plugin.optionValues[2]" in message
    assert "sets a.b, a.c: a literal value replaces a secret at the same path" in message


# what Flux refuses


def keyed(name: str = "key", secret_name: str = "keys", key: str = "k") -> list[Data]:
    return [secret(name, secret_name, key)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(keyed("a" * 251), "as targetPath, which must have at most 250 characters, not 251", id="long"),
        pytest.param(keyed("a b"), 'has "a b" as targetPath, which must have only ASCII letters', id="blank"),
        pytest.param(keyed(r"a\=b"), "as targetPath, which must have only ASCII letters", id="escaped-sign"),
        pytest.param(keyed("ä"), "as targetPath, which must have only ASCII letters", id="letter-beyond-ascii"),
        pytest.param(keyed("a\n"), "as targetPath, which must have only ASCII letters", id="line-end"),
        pytest.param(keyed(r"a\[x\]"), "as targetPath, which must have only ASCII letters", id="escaped-bracket"),
        pytest.param(keyed("a[000001]"), "and up to 5 digits in brackets", id="too-many-digits"),
        pytest.param(keyed(key="a b"), 'has "a b" as valuesKey, which must have only ASCII letters', id="key"),
        pytest.param(keyed(key="k" * 254), "as valuesKey, which must have at most 253 characters", id="long-key"),
        pytest.param(keyed(secret_name="n" * 254), "as name, which must have at most 253 characters", id="long-name"),
        pytest.param([secret("a"), secret("a.b")], '"a.b" requires a map at a, where a sets a string', id="in-a-secret"),
        pytest.param([secret("a[0]"), secret("a.b")], "a map at a, where a[0] sets a list", id="list-and-map"),
        pytest.param([secret("a[60000]"), secret("b[60000]")], "to more than 100000 items", id="lists-without-end"),
        pytest.param([given("a", [{"b": float("inf")}])], "only finite numbers in the HelmRelease, not .inf or .nan", id="no-json"),
    ],
)  # fmt: skip
def test_what_flux_refuses_is_not_written(options: list[Data], text: str) -> None:
    result = made(options)

    message = finding(result, "HelmReleaseInvalid").message
    assert text in message
    assert message.startswith("PluginPreset/acme/logs (spec.plugin.optionValues[")
    assert result.variants == ()
    assert len(made(options, ["values"]).variants) == 1


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(keyed("a" * 250), id="longest-path"),
        pytest.param(keyed(r"a\.b/c-d_e[00012].F"), id="all-signs"),
        pytest.param(keyed(r"a\[0]"), id="bracket-with-a-number-escaped"),
        pytest.param(keyed(key="-._aZ0"), id="all-signs-of-a-key"),
        pytest.param(keyed(secret_name="n" * 253, key="k" * 253), id="longest-names"),
        pytest.param([*keyed("a b.c"), given("a b", 1)], id="a-secret-that-is-left-out-anyway"),
    ],
)
def test_what_flux_takes(options: list[Data]) -> None:
    assert release(made(options))


LONG = "n" * 64


@pytest.mark.parametrize(
    ("texts", "text", "pointer"),
    [
        pytest.param(
            [definition(), preset(plugin={"releaseNamespace": LONG})],
            f'spec.targetNamespace of the HelmRelease must have at most 63 characters, not the 64 of "{LONG}"',
            "/spec/plugin/releaseNamespace", id="namespace",
        ),
        pytest.param(
            [definition(), plugin(releaseNamespace=LONG)], "spec.targetNamespace", "/spec/releaseNamespace",
            id="namespace-of-a-plugin-of-its-own",
        ),
        pytest.param(
            [definition(helmChart={"name": "c", "repository": "r", "version": "v" * 246}), preset()],
            "spec.chartRef.name of the HelmRelease must have at most 253 characters, not the 254",
            "/spec/plugin/pluginDefinitionRef", id="chart",
        ),
    ],
)  # fmt: skip
def test_names_that_are_too_long_for_flux(texts: list[str], text: str, pointer: str) -> None:
    result = room([EAST, *texts], output_names=frozenset({"helmrelease"}))

    actual_finding = finding(result, "HelmReleaseInvalid")
    assert text in actual_finding.message
    assert actual_finding.location.pointer == pointer
    assert result.variants == ()
    assert len(room([EAST, *texts], output_names=frozenset({"values"})).variants) == 1


@pytest.mark.parametrize("outputs", [["values"], ["helmrelease"]])
def test_values_that_have_no_place_are_looked_for_whenever_values_are_written(outputs: list[str]) -> None:
    options = [given("a[60000]", 1), given("b[60000]", 2)]

    result = made(options, outputs)

    assert [item.code for item in findings(result) if item.severity.value == "error"] == ["ConflictingOptionPaths"]
    assert len(made(options, ()).variants) == 1


def test_what_is_wrong_is_told_once() -> None:
    result = made([given("a", 1), given("a.b", 2), secret("c d")])

    codes = [item.code for item in findings(result) if item.severity.value == "error"]
    assert codes == ["ConflictingOptionPaths", "HelmReleaseInvalid"]


# whatever people write


KEYS = st.sampled_from(["a", "b", "c", "a.b", "x/y", "d\\", "[0]", "é", "e f", "g=h"])
PATHS = st.lists(KEYS | st.integers(0, 2), min_size=1, max_size=4).filter(lambda path: isinstance(path[0], str))
VALUES = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "true", "vault"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=2),
    max_leaves=4,
)
NAMES = PATHS.map(format_option_name)
ENTRIES = st.builds(given, NAMES, VALUES) | st.builds(
    secret, NAMES, st.just("keys"), st.sampled_from(["k", "a.b", "-", " "])
)
OPTIONS = st.lists(ENTRIES, max_size=7, unique_by=lambda entry: entry["name"])
GLOBAL = [(f"global.greenhouse.{name}", value) for name, value in INJECTED["greenhouse"].items()]
REFERENCES = jsonschema.Draft202012Validator(SCHEMA["properties"]["spec"]["properties"]["valuesFrom"])


def is_refused(options: list[Data]) -> bool:
    """Tell whether Flux refuses the secrets that count: by its CRD, or because they do not go together."""
    values = build_values(
        [*GLOBAL, *((option["name"], option["value"]) for option in options if "value" in option)]
    ).values
    secrets = [
        option for option in options if "valueFrom" in option and is_free(values, parse_option_name(option["name"]))
    ]
    references = [
        {"kind": "Secret", "name": item["valueFrom"]["secret"]["name"], "valuesKey": item["valueFrom"]["secret"]["key"],
         "targetPath": item["name"]} for item in secrets
    ]  # fmt: skip
    return not REFERENCES.is_valid(references) or bool(build_values((item["name"], "") for item in secrets).conflicts)


@settings(max_examples=100, deadline=None)
@for_all(OPTIONS)
def test_flux_takes_it_and_makes_of_it_what_helm_makes_of_all_options(options: list[Data]) -> None:
    result = made(options)

    codes = set(told(result))
    if not result.variants:
        assert "ConflictingOptionPaths" in codes or is_refused(options)
        return
    spec = release(result)["spec"]
    assert flux_values(spec, secrets_last=True) == flux_values(spec, secrets_last=False)
    if "SecretPathShadowed" in codes:
        return
    together = build_values(
        [*GLOBAL, *((option["name"], option.get("value", token(option["name"]))) for option in options)]
    )
    assert not together.conflicts
    assert flux_values(spec, secrets_last=True) == together.values
    assert set(targets(spec)) == {option["name"] for option in options if "valueFrom" in option}


@settings(max_examples=100, deadline=None)
@for_all(OPTIONS)
def test_each_secret_that_goes_is_warned_of_once(options: list[Data]) -> None:
    result = made(options)

    if not result.variants:
        return
    remaining = set(targets(release(result)["spec"]))
    lost = [index for index, item in enumerate(options) if "valueFrom" in item and item["name"] not in remaining]
    warned = [item.location.pointer for item in findings(result) if item.code == "SecretPathShadowed"]
    assert len(warned) == len(set(warned))
    assert {f"/spec/plugin/optionValues/{index}" for index in lost} <= set(warned)


def test_the_schema_refuses_what_it_should() -> None:
    data = release(made([secret("a")]))
    data["spec"]["valuesFrom"][0]["targetPath"] = "a b"

    assert [list(validation_error.path) for validation_error in VALIDATOR.iter_errors(data)] == [
        ["spec", "valuesFrom", 0, "targetPath"]
    ]
