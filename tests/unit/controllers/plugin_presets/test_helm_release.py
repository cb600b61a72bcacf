"""Tests of the HelmRelease of a Plugin: each field, and the values that Flux refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from reconciler.controllers.plugin_presets.helm_values import build_values
from reconciler.krm.helm_paths import format_option_name, parse_option_name
from reconciler.krm.values_tree import is_free
from tests.support.examples import examples
from tests.unit.controllers.plugin_presets.controller_world import (
    EAST,
    Data,
    FakeBranches,
    build_definition,
    build_plugin,
    build_preset,
    build_secret_value,
    build_value,
    find_finding,
    find_variant,
    list_codes,
    list_findings,
    list_plugins,
    run_controller,
)
from tests.unit.controllers.plugin_presets.release_world import (
    INJECTED,
    SCHEMA,
    VALIDATOR,
    compute_flux_values,
    format_token,
    list_own_values,
    list_target_paths,
    read_file_data,
    read_files,
    read_helm_release,
    run_preset,
)

CENTRAL = {"central_cluster": "east"}
IGNORED = {"group": "apps", "version": "v1", "kind": "Deployment", "name": "web", "paths": ["/spec/replicas"]}


def read_only_release_spec(texts: list[str], **more: Any) -> dict[str, Any]:
    """Return the spec of the only HelmRelease of a config."""
    spec: dict[str, Any] = read_helm_release(
        run_controller([EAST, *texts], output_names=frozenset({"helmrelease"}), **more)
    )["spec"]
    return spec


def test_whole_release() -> None:
    data = read_helm_release(
        run_preset(
            [build_value("size", 3), build_secret_value("key")],
            plugin={"releaseNamespace": "obs", "releaseName": "rel"},
        )
    )

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


def build_wait_for(*entries: dict[str, str]) -> dict[str, Any]:
    return {"spec": {"waitFor": [{"pluginRef": entry} for entry in entries]}}


CLUSTER_WIDE = [build_definition(cluster_scoped=True), build_preset(kind="ClusterPluginDefinition")]


@pytest.mark.parametrize(
    ("texts", "field", "expected"),
    [
        pytest.param([build_definition(), build_preset()], "releaseName", "shipper-chart", id="named-as-the-chart"),
        pytest.param([build_definition(), build_preset()], "targetNamespace", "acme", id="into-the-organization"),
        pytest.param([build_definition(), build_preset()], "valuesFrom", None, id="no-secrets"),
        pytest.param([build_definition(), build_preset()], "dependsOn", None, id="waits-for-nothing"),
        pytest.param(
            CLUSTER_WIDE, "chartRef", {"kind": "HelmChart", "name": "shipper-1.0.0", "namespace": "greenhouse"},
            id="chart-of-a-cluster-scoped-definition",
        ),
        pytest.param(
            [build_definition(), build_preset(**build_wait_for({"name": "dns"}, {"pluginPreset": "base"}))],
            "dependsOn", [{"name": "dns"}, {"name": "base-east"}], id="waits-for-a-plugin-and-for-a-preset",
        ),
        pytest.param(
            [build_definition(), build_preset(**build_wait_for({"name": "base-east"}, {"pluginPreset": "base"}))],
            "dependsOn", [{"name": "base-east"}], id="waits-for-one-in-two-ways",
        ),
        pytest.param(
            [build_definition(), build_preset(plugin={"ignoreDifferences": [IGNORED, {"paths": ["/a", "/b"]}]})],
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
            [build_definition(), build_plugin(ignoreDifferences=[{"group": "", "kind": "Job", "more": 1, "paths": ["/a"]}])],
            "driftDetection", {"mode": "enabled", "ignore": [{"target": {"kind": "Job"}, "paths": ["/a"]}]},
            id="of-a-plugin-of-its-own-what-is-known",
        ),
        pytest.param(
            [build_definition(), build_plugin()], "kubeConfig",
            {"secretRef": {"name": "east", "key": "greenhousekubeconfig"}}, id="a-plugin-of-its-own-on-a-cluster",
        ),
        pytest.param([build_definition(), build_plugin(cluster="")], "kubeConfig", None, id="without-a-cluster"),
        pytest.param(
            [build_definition(), build_plugin(cluster="", waitFor=[{"pluginRef": {"pluginPreset": "base"}}])],
            "dependsOn", [{"name": "base-east"}], id="waits-on-the-central-cluster",
        ),
        pytest.param([build_definition(), build_plugin(releaseNamespace="obs")], "storageNamespace", "obs", id="its-own-namespace"),
    ],
)  # fmt: skip
def test_release_field(texts: list[str], field: str, expected: Any) -> None:
    assert read_only_release_spec(texts, **CENTRAL).get(field) == expected


def test_published_release_keeps_its_name() -> None:
    published = list_plugins(run_preset([], plugin={"releaseName": "old"}))["east/logs-east"]
    branches = FakeBranches().with_plugin(("east", "plugins/logs-east"), published)

    result = run_controller(
        [EAST, build_definition(), build_preset()], branches, output_names=frozenset({"helmrelease"})
    )

    assert read_helm_release(result)["spec"]["releaseName"] == "old"


# Files of a Plugin.


UI = build_definition([], helmChart=None, uiApplication={"name": "ui", "version": "1"})


@pytest.mark.parametrize(
    ("of_definition", "outputs", "expected"),
    [
        pytest.param(build_definition(), (), ["plugin.yaml"], id="no-output-is-requested"),
        pytest.param(build_definition(), ["values"], ["plugin.yaml", "values.yaml"], id="values"),
        pytest.param(build_definition(), ["helmrelease"], ["helmrelease.yaml", "plugin.yaml"], id="release"),
        pytest.param(
            build_definition(), ["values", "helmrelease"], ["helmrelease.yaml", "plugin.yaml", "values.yaml"], id="both"
        ),
        pytest.param(UI, ["values", "helmrelease"], ["plugin.yaml", "values.yaml"], id="no-release-without-a-chart"),
    ],
)
def test_files_of_a_plugin(of_definition: str, outputs: list[str], expected: list[str]) -> None:
    result = run_controller([EAST, of_definition, build_preset()], output_names=frozenset(outputs))

    assert list(read_files(find_variant(result, "east/logs-east"))) == expected


def test_plugin_file_is_the_same_with_all_outputs() -> None:
    options = [build_secret_value("a"), build_value("b", {"c": [1]}), build_value("d[1]", "x")]
    (alone,), (beside,) = run_preset(options, ()).variants, run_preset(options).variants

    assert read_files(alone)["plugin.yaml"] == read_files(beside)["plugin.yaml"]
    assert alone.mutation.objects[0] == beside.mutation.objects[0]  # type: ignore[attr-defined]


def test_new_chart_changes_only_the_dependencies_of_the_release() -> None:
    chart = {"name": "shipper-chart", "repository": "oci://charts.example.test/obs", "version": "1.1.0"}
    before, after = (
        [EAST, build_definition(helmChart=item), build_preset()] for item in ({**chart, "version": "1.0.0"}, chart)
    )
    key = "PluginDefinition/acme/shipper"

    facts = [
        run_controller(texts, output_names=frozenset(outputs)).variants[0].dependencies
        for texts in (before, after) for outputs in ((), ("values",), ("helmrelease",))
    ]  # fmt: skip

    assert [key in fact for fact in facts] == [False, False, True] * 2
    assert facts[2][key] != facts[5][key]


# Values and secrets.


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param([build_value("a.b", 1), build_value("a.c[1]", "x")], {"a": {"b": 1, "c": [None, "x"]}}, id="nested"),
        pytest.param([build_value(r"ann.x\.y/z", 1)], {"ann": {"x.y/z": 1}}, id="escaped"),
        pytest.param([build_secret_value("a.key"), build_value("a.b", 1)], {"a": {"b": 1}}, id="without-secrets"),
        pytest.param([build_secret_value("a.key")], {}, id="nor-their-parents"),
        pytest.param([build_value("n", 10**25), build_value("t", "1")], {"n": 10**25, "t": "1"}, id="types"),
    ],
)  # fmt: skip
def test_release_values(options: list[Data], expected: dict[str, Any]) -> None:
    result = run_preset(options)

    assert list_own_values(read_helm_release(result)["spec"]) == expected
    assert read_file_data(result, "values.yaml") == read_helm_release(result)["spec"]["values"]


@pytest.mark.parametrize(
    ("secrets", "options", "remaining_secrets", "warned"),
    [
        pytest.param(["a.b"], [build_value("a.c", 1)], ["a.b"], [], id="beside-in-a-map"),
        pytest.param(["b", "a", "c.d"], [], ["a", "b", "c.d"], [], id="in-the-order-of-options"),
        pytest.param(["a[0]", "a[2]"], [], ["a[0]", "a[2]"], [], id="a-list-of-secrets"),
        pytest.param(["a[0].x", "a[1].x"], [build_value("b[0].x", 1)], ["a[0].x", "a[1].x"], [], id="another-list"),
        pytest.param(["a.b"], [build_value(r"a.\b", 1)], [], ["a.b"], id="one-place-in-two-spellings"),
        pytest.param(["a"], [build_value("a.b", 1)], [], ["a"], id="above-a-value"),
        pytest.param(["a"], [build_value("a.b", 1), build_value("a.c", 1)], [], ["a"], id="above-two-values-is-reported-once"),
        pytest.param(["a.b"], [build_value("a", 1)], [], ["a.b"], id="below-a-scalar"),
        pytest.param(["a.b"], [build_value("a", [1])], [], ["a.b"], id="below-a-list"),
        pytest.param(["a.b"], [build_value("a", {"b": 1})], [], ["a.b"], id="in-a-map-that-has-it"),
        pytest.param(["a.b.c"], [build_value("a", {"b": {}})], ["a.b.c"], ["a.b.c"], id="in-a-map-that-does-not"),
        pytest.param(["a.b"], [build_value("a", {})], ["a.b"], ["a.b"], id="in-an-empty-map"),
        pytest.param(["a[0].x"], [build_value("a[1].x", 1)], [], ["a[0].x"], id="another-place-of-a-list"),
        pytest.param(["a[0].x"], [build_value("a[0].y", 1)], [], ["a[0].x"], id="in-one-map-of-a-list"),
        pytest.param(["b.a[0][1].x"], [build_value("b.a[0][0]", 1)], [], ["b.a[0][1].x"], id="in-a-list-in-a-list"),
        pytest.param(["b.a[1]", "c"], [build_value("b.a", [0])], ["c"], ["b.a[1]"], id="below-a-whole-list"),
        pytest.param(["a[0]"], [build_value("a.b", 1)], [], ["a[0]"], id="a-list-where-a-map-is"),
        pytest.param(["a.b"], [build_value("a[0]", 1)], [], ["a.b"], id="a-map-where-a-list-is"),
        pytest.param(["a[0].b"], [build_value("a[0][1]", 1)], [], ["a[0].b"], id="a-map-where-a-list-is-in-a-list"),
        pytest.param([r"a.\b", "a.b"], [], ["a.b"], ["a.\\b"], id="of-two-secrets-at-one-place-the-later"),
        pytest.param(["a", "a.b"], [build_value("a.b.c", 1)], [], ["a", "a.b"], id="secrets-above-each-other-and-a-value"),
    ],
)  # fmt: skip
def test_secret_at_the_path_of_a_value_is_removed_with_a_warning(
    secrets: list[str], options: list[Data], remaining_secrets: list[str], warned: list[str]
) -> None:
    result = run_preset([*(build_secret_value(name) for name in secrets), *options])

    places = {name: index for index, name in enumerate(secrets)}
    shadowed = [item for item in list_findings(result) if item.code == "SecretPathShadowed"]
    assert list_target_paths(read_helm_release(result)["spec"]) == remaining_secrets
    assert sorted(item.location.pointer for item in shadowed) == sorted(
        f"/spec/plugin/optionValues/{places[name]}" for name in warned
    )


def test_warning_names_the_conflicting_options() -> None:
    message = find_finding(
        run_preset([build_value("a.c", 1), build_secret_value("a"), build_value("a.b", 1)]), "SecretPathShadowed"
    ).message

    assert 'sets "a" from a secret, and PluginPreset acme/logs (spec.plugin.optionValues[2]' in message
    assert (
        'sets "a.b", "a.c" without a secret. The literal value replaces the secret, because the paths overlap'
        in message
    )


# Input that Flux refuses.


def build_keyed_secret(name: str = "key", secret_name: str = "keys", key: str = "k") -> list[Data]:
    return [build_secret_value(name, secret_name, key)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(build_keyed_secret("a" * 251), "because targetPath of a HelmRelease must have at most 250 characters, but has 251", id="long"),
        pytest.param(build_keyed_secret("a b"), 'the option name "a b", because targetPath of a HelmRelease must have only ASCII letters', id="blank"),
        pytest.param(build_keyed_secret(r"a\=b"), "targetPath of a HelmRelease must have only ASCII letters", id="escaped-sign"),
        pytest.param(build_keyed_secret("ä"), "targetPath of a HelmRelease must have only ASCII letters", id="letter-beyond-ascii"),
        pytest.param(build_keyed_secret("a\n"), "targetPath of a HelmRelease must have only ASCII letters", id="line-end"),
        pytest.param(build_keyed_secret(r"a\[x\]"), "targetPath of a HelmRelease must have only ASCII letters", id="escaped-bracket"),
        pytest.param(build_keyed_secret("a[000001]"), "and up to 5 digits in brackets", id="too-many-digits"),
        pytest.param(build_keyed_secret(key="a b"), 'the key "a b", because valuesKey of a HelmRelease must have only ASCII letters', id="key"),
        pytest.param(build_keyed_secret(key="k" * 254), "valuesKey of a HelmRelease must have at most 253 characters", id="long-key"),
        pytest.param(build_keyed_secret(secret_name="n" * 254), "name of a HelmRelease must have at most 253 characters", id="long-name"),
        pytest.param([build_secret_value("a"), build_secret_value("a.b")], 'because "a.b" requires a map at "a", but "a" sets a string there. Next', id="in-a-secret"),
        pytest.param([build_secret_value("a[0]"), build_secret_value("a.b")], 'a map at "a", but "a[0]" sets a list there', id="list-and-map"),
        pytest.param([build_secret_value("a[60000]"), build_secret_value("b[60000]")], "to more than 100000", id="lists-without-end"),
        pytest.param([build_value("a", [{"b": float("inf")}])], "only finite numbers in the HelmRelease, but contains .inf or .nan", id="no-json"),
    ],
)  # fmt: skip
def test_secret_that_flux_refuses_is_an_error(options: list[Data], text: str) -> None:
    result = run_preset(options)

    message = find_finding(result, "HelmReleaseInvalid").message
    assert text in message
    assert "PluginPreset acme/logs (spec.plugin.optionValues[" in message
    assert result.variants == ()
    assert len(run_preset(options, ["values"]).variants) == 1


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(build_keyed_secret("a" * 250), id="longest-path"),
        pytest.param(build_keyed_secret(r"a\.b/c-d_e[00012].F"), id="all-signs"),
        pytest.param(build_keyed_secret(r"a\[0]"), id="bracket-with-a-number-escaped"),
        pytest.param(build_keyed_secret(key="-._aZ0"), id="all-signs-of-a-key"),
        pytest.param(build_keyed_secret(secret_name="n" * 253, key="k" * 253), id="longest-names"),
        pytest.param([*build_keyed_secret("a b.c"), build_value("a b", 1)], id="a-secret-that-is-left-out-anyway"),
    ],
)
def test_secret_that_flux_accepts_is_written(options: list[Data]) -> None:
    assert read_helm_release(run_preset(options))


LONG = "n" * 64


@pytest.mark.parametrize(
    ("texts", "text", "pointer"),
    [
        pytest.param(
            [build_definition(), build_preset(plugin={"releaseNamespace": LONG})],
            f'spec.targetNamespace of the HelmRelease must have at most 63 characters, but "{LONG}" has 64',
            "/spec/plugin/releaseNamespace", id="namespace",
        ),
        pytest.param(
            [build_definition(), build_plugin(releaseNamespace=LONG)], "spec.targetNamespace", "/spec/releaseNamespace",
            id="namespace-of-a-plugin-of-its-own",
        ),
        pytest.param(
            [build_definition(helmChart={"name": "c", "repository": "r", "version": "v" * 246}), build_preset()],
            "spec.chartRef.name of the HelmRelease must have at most 253 characters, but",
            "/spec/plugin/pluginDefinitionRef", id="chart",
        ),
    ],
)  # fmt: skip
def test_names_that_are_too_long_for_flux(texts: list[str], text: str, pointer: str) -> None:
    result = run_controller([EAST, *texts], output_names=frozenset({"helmrelease"}))

    actual_finding = find_finding(result, "HelmReleaseInvalid")
    assert text in actual_finding.message
    assert actual_finding.location.pointer == pointer
    assert result.variants == ()
    assert len(run_controller([EAST, *texts], output_names=frozenset({"values"})).variants) == 1


@pytest.mark.parametrize("outputs", [["values"], ["helmrelease"]])
def test_list_limit_applies_to_each_output_with_values(outputs: list[str]) -> None:
    options = [build_value("a[60000]", 1), build_value("b[60000]", 2)]

    result = run_preset(options, outputs)

    assert [item.code for item in list_findings(result) if item.severity.value == "error"] == ["ConflictingOptionPaths"]
    assert len(run_preset(options, ()).variants) == 1


def test_each_error_is_reported_once() -> None:
    result = run_preset([build_value("a", 1), build_value("a.b", 2), build_secret_value("c d")])

    codes = [item.code for item in list_findings(result) if item.severity.value == "error"]
    assert codes == ["ConflictingOptionPaths", "HelmReleaseInvalid"]


# Properties of any options.


KEYS = st.sampled_from(["a", "b", "c", "a.b", "x/y", "d\\", "[0]", "é", "e f", "g=h"])
PATHS = st.lists(KEYS | st.integers(0, 2), min_size=1, max_size=4).filter(lambda path: isinstance(path[0], str))
VALUES = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "true", "vault"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=2),
    max_leaves=4,
)
NAMES = PATHS.map(format_option_name)
ENTRIES = st.builds(build_value, NAMES, VALUES) | st.builds(
    build_secret_value, NAMES, st.just("keys"), st.sampled_from(["k", "a.b", "-", " "])
)
OPTIONS = st.lists(ENTRIES, max_size=7, unique_by=lambda entry: entry["name"])
GLOBAL = [(f"global.greenhouse.{name}", value) for name, value in INJECTED["greenhouse"].items()]
REFERENCES = Draft202012Validator(SCHEMA["properties"]["spec"]["properties"]["valuesFrom"])


def is_refused(options: list[Data]) -> bool:
    """Return whether Flux refuses the remaining secrets: its CRD refuses one, or two of them conflict."""
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


@settings(max_examples=examples(100), deadline=None)
@for_all(OPTIONS)
def test_flux_accepts_the_release_and_computes_the_same_values_as_helm(options: list[Data]) -> None:
    result = run_preset(options)

    codes = set(list_codes(result))
    if not result.variants:
        assert "ConflictingOptionPaths" in codes or is_refused(options)
        return
    spec = read_helm_release(result)["spec"]
    assert compute_flux_values(spec, secrets_last=True) == compute_flux_values(spec, secrets_last=False)
    if "SecretPathShadowed" in codes:
        return
    together = build_values(
        [*GLOBAL, *((option["name"], option.get("value", format_token(option["name"]))) for option in options)]
    )
    assert not together.conflicts
    assert compute_flux_values(spec, secrets_last=True) == together.values
    assert set(list_target_paths(spec)) == {option["name"] for option in options if "valueFrom" in option}


@settings(max_examples=examples(100), deadline=None)
@for_all(OPTIONS)
def test_each_removed_secret_has_one_warning(options: list[Data]) -> None:
    result = run_preset(options)

    if not result.variants:
        return
    remaining = set(list_target_paths(read_helm_release(result)["spec"]))
    removed = [index for index, item in enumerate(options) if "valueFrom" in item and item["name"] not in remaining]
    warned = [item.location.pointer for item in list_findings(result) if item.code == "SecretPathShadowed"]
    assert len(warned) == len(set(warned))
    assert {f"/spec/plugin/optionValues/{index}" for index in removed} <= set(warned)


def test_schema_refuses_an_invalid_target_path() -> None:
    data = read_helm_release(run_preset([build_secret_value("a")]))
    data["spec"]["valuesFrom"][0]["targetPath"] = "a b"

    assert [validation_error.instance_path for validation_error in VALIDATOR.iter_errors(data)] == [
        ["spec", "valuesFrom", 0, "targetPath"]
    ]
