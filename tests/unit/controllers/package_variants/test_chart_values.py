"""Tests of the values that a PackageVariant requests for a chart: layers, dependencies and findings."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from reconciler.api.base import read_model
from reconciler.api.helm_options import HelmOptions
from reconciler.api.porch.messages import PORCH_TEMPLATES
from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.api.tenancy import TenantSpec
from reconciler.catalog.catalog import ConfigObject, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.tenants import Tenant, Tenants
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.package_variants.chart_values import (
    CollectedValues,
    OptionSource,
    collect_values,
    find_option_source,
)
from reconciler.krm.field_text import format_path
from reconciler.krm.findings import Severity, SourceLocation
from reconciler.lazy_dataclasses import replace
from reconciler.packages.charts.helm_release import SecretValues
from reconciler.packages.charts.value_sources import SourceValuesFile, ValuesSource, locate_values_finding
from reconciler.packages.source_codes import SourceCodes
from tests.support.sops import ciphertext, seal_text

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s, namespace: shop}\n"
VARIANT = """\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {name: ksm, namespace: shop}
spec:
  helm:
    namespace: monitoring
"""
OBJECTS = {
    "maps.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: defaults, namespace: shop}
data:
  values.yaml: |
    # defaults
    replicas: 2
    image:
      tag: v1
  folded: >
    replicas: 4
  replicas: "3"
  word: "yes"
  list: "[a]"
  broken: "{"
  two: "a: 1\\n---\\nb: 2\\n"
  empty: ""
  number: 5
---
apiVersion: example.com/v1
kind: Region
metadata: {name: eu-west, namespace: shop}
spec:
  helm:
    zone: eu-1
  zones: [{name: a}, {name: b}]
""",
    "values/berlin.yaml": "replicas: 5\n\nimage: {tag: v2}\n",
    "values/list.yaml": "[1]\n",
    "values/empty.yaml": "# nothing\n",
}


def collect(helm: str, files: dict[str, str] | None = None) -> CollectedValues:
    """Return the values for the options in YAML below `spec.helm`, which is indented by four spaces."""
    text = VARIANT + "".join(f"    {line}\n" for line in helm.splitlines())
    contents = {"ksm.yaml": text, **OBJECTS, **(files or {})}
    catalog = read_catalog(FileTree({path: File(content.encode()) for path, content in contents.items()}))
    (manifest,) = catalog.objects_of_kind("config.porch.kpt.dev", "PackageVariant")
    source = OptionSource(manifest, (("spec", "helm"),))
    return collect_values(read_options(manifest), source, catalog, "shop", source_names=("other",))


def read_options(manifest: ConfigObject) -> HelmOptions:
    read = read_model(HelmOptions, get_value(manifest.data, ("spec", "helm")), PORCH_TEMPLATES, ("spec", "helm"))
    assert read.model is not None, read.error_texts
    return read.model


def list_layers(collected: CollectedValues) -> list[tuple[Any, ...]]:
    return [
        (layer.kind, layer.source, layer.target, layer.values, f"{layer.file}:{layer.find_line(())}", layer.field_path)
        for layer in collected.values.config_layers
    ]


KSM, MAP = "PackageVariant/shop/ksm", "ConfigMap/shop/defaults"
TAG = {"replicas": 2, "image": {"tag": "v1"}}


@pytest.mark.parametrize(
    ("helm", "layer"),
    [
        pytest.param(
            "values: {a: {b: null}}",
            ("values", KSM, (), {"a": {"b": None}}, "ksm.yaml:7", "spec.helm.values"),
            id="values",
        ),
        pytest.param(
            "parameters:\n- {name: a, value: 1}",
            ("parameter", KSM, ("a",), 1, "ksm.yaml:8", "spec.helm.parameters[0]"),
            id="parameter",
        ),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: defaults}]",
            ("values-from", MAP, (), TAG, "maps.yaml:7", "data.values.yaml"),
            id="config-map",
        ),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: defaults, valuesKey: replicas, targetPath: 'a.b[0]'}]",
            ("values-from", MAP, ("a", "b", 0), 3, "maps.yaml:12", "data.replicas"),
            id="key-with-a-target",
        ),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: defaults, valuesKey: word, targetPath: a}]",
            ("values-from", MAP, ("a",), "yes", "maps.yaml:13", "data.word"),
            id="word-is-no-boolean",
        ),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: defaults, valuesKey: folded}]",
            ("values-from", MAP, (), {"replicas": 4}, "maps.yaml:10", "data.folded"),
            id="folded-text-has-the-line-of-its-key",
        ),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: defaults, valuesKey: empty}]",
            ("values-from", MAP, (), {}, "maps.yaml:17", "data.empty"),
            id="empty-text",
        ),
        pytest.param(
            "valuesFrom: [{apiVersion: example.com/v1, kind: Region, name: eu-west, fieldPath: spec.helm}]",
            ("values-from", "Region/shop/eu-west", (), {"zone": "eu-1"}, "maps.yaml:24", "spec.helm"),
            id="field-of-an-object",
        ),
        pytest.param(
            "valuesFrom:\n"
            "- {apiVersion: example.com/v1, kind: Region, name: eu-west, fieldPath: /spec/zones/1/name, targetPath: zone}",
            ("values-from", "Region/shop/eu-west", ("zone",), "b", "maps.yaml:26", "spec.zones[1].name"),
            id="pointer-to-a-list-item",
        ),
        pytest.param(
            "valuesFiles: [$config/values/berlin.yaml]",
            (
                "values-file",
                "$config/values/berlin.yaml",
                (),
                {"replicas": 5, "image": {"tag": "v2"}},
                "values/berlin.yaml:1",
                "",
            ),
            id="file-of-the-config",
        ),
    ],
)
def test_layer(helm: str, layer: tuple[Any, ...]) -> None:
    """A layer has its values, its origin, and the line of the values."""
    collected = collect(helm)
    assert list_layers(collected) == [layer]
    assert collected.findings == ()


def test_order_and_dependencies() -> None:
    """The layers have Helm's order, and each object and file that was read is a dependency."""
    collected = collect(
        "parameters: [{name: p, value: 1}]\n"
        "values: {v: 1}\n"
        "valuesFrom:\n"
        "- {kind: ConfigMap, name: defaults}\n"
        "- {kind: ConfigMap, name: none, optional: true}\n"
        "valuesFiles: [chart.yaml, $config/values/berlin.yaml, $other/a.yaml]\n"
    )
    assert [
        f"${entry.source}/{entry.path}" if isinstance(entry, SourceValuesFile) else entry.kind
        for entry in collected.values.entries
    ] == ["$/chart.yaml", "values-file", "$other/a.yaml", "values-from", "values", "parameter"]
    assert sorted(collected.dependencies) == ["$config/values/berlin.yaml", MAP, "ConfigMap/shop/none"]
    assert collected.dependencies["ConfigMap/shop/none"] == "absent"
    assert [found.key.reference for found in collected.objects] == [MAP]


def test_empty_values_file() -> None:
    """A values file without a document has no layer and is no error."""
    collected = collect("valuesFiles: [$config/values/empty.yaml]")
    assert (list_layers(collected), collected.findings) == ([], ())
    assert collected.dependencies["$config/values/empty.yaml"] != "absent"


REFERENCE = "spec.helm.valuesFrom[0]: "
NOT_FOUND, INVALID = "ValuesNotFound", "ValuesInvalid"


@pytest.mark.parametrize(
    ("helm", "code", "message", "place"),
    [
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: default}]",
            NOT_FOUND,
            f'{REFERENCE}the config contains no ConfigMap shop/default; did you mean "defaults"?',
            "ksm.yaml:7",
            id="object",
        ),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: defaults, valuesKey: values}]",
            NOT_FOUND,
            f'{REFERENCE}ConfigMap shop/defaults has no key "values" in data; did you mean "values.yaml"?',
            "ksm.yaml:7",
            id="key",
        ),
        pytest.param(
            "valuesFrom: [{apiVersion: example.com/v1, kind: Region, name: eu-west, fieldPath: spec.heml}]",
            NOT_FOUND,
            f"{REFERENCE}Region shop/eu-west has no field spec.heml, because /spec/heml does not exist",
            "ksm.yaml:7",
            id="field",
        ),
        pytest.param(
            "valuesFrom: [{apiVersion: example.com/v1, kind: Region, name: eu-west, fieldPath: spec..helm}]",
            INVALID,
            f"{REFERENCE}Region shop/eu-west cannot be read, because fieldPath must have a key between dots and before "
            "brackets; the key at character 6 is empty",
            "maps.yaml:20",
            id="path-of-a-field",
        ),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: defaults, valuesKey: list}]",
            INVALID,
            f"{REFERENCE}ConfigMap shop/defaults has invalid values at data.list, because a values file must contain a map (line 1 of the text)",
            "maps.yaml:14",
            id="list-instead-of-a-map",
        ),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: defaults, valuesKey: two}]",
            INVALID,
            f"{REFERENCE}ConfigMap shop/defaults has invalid values at data.two, because a values file must contain one document (line 3 of the text)",
            "maps.yaml:16",
            id="two-documents",
        ),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: defaults, valuesKey: number, targetPath: a}]",
            INVALID,
            f"{REFERENCE}ConfigMap shop/defaults must have a text at data.number; put the value in quotes",
            "maps.yaml:18",
            id="key-without-quotes",
        ),
        pytest.param(
            "valuesFrom: [{apiVersion: example.com/v1, kind: Region, name: eu-west, fieldPath: spec.zones}]",
            INVALID,
            f"{REFERENCE}Region shop/eu-west must have a map at spec.zones, because targetPath is not set",
            "maps.yaml:26",
            id="field-that-is-a-list",
        ),
        pytest.param(
            "valuesFiles: [$config/values/paris.yaml]",
            NOT_FOUND,
            'spec.helm.valuesFiles[0]: the config contains no YAML file "values/paris.yaml" that this object may use',
            "ksm.yaml:7",
            id="file",
        ),
        pytest.param(
            "valuesFiles: [$config/values/list.yaml]",
            INVALID,
            'spec.helm.valuesFiles[0]: the file "values/list.yaml" must contain exactly one document, and it must be a map',
            "values/list.yaml:0",
            id="file-with-a-list",
        ),
        pytest.param(
            "valuesFrom: [{kind: Secret, name: db}]",
            "SecretValuesRefused",
            f"{REFERENCE}values of Secret shop/db would be written to the branch in plain text; use output: helmRelease, "
            "where the cluster resolves the reference, or the chart's existingSecret value",
            "ksm.yaml:7",
            id="secret",
        ),
    ],
)
def test_finding(helm: str, code: str, message: str, place: str) -> None:
    """An error names the field, the object and the reason, and has the line of the field or of the value."""
    (finding,) = collect(helm).findings
    location = finding.location
    assert (finding.code, finding.message, finding.severity) == (code, message, Severity.ERROR)
    assert f"{location.file}:{location.line}" == place


def test_invalid_yaml_in_a_key() -> None:
    """A text that is not YAML is an error with the line of the key, with and without a target."""
    for option in ("", ", targetPath: a"):
        (finding,) = collect(f"valuesFrom: [{{kind: ConfigMap, name: defaults, valuesKey: broken{option}}}]").findings
        assert (finding.code, finding.location.line) == (INVALID, 15)


@pytest.mark.parametrize(
    "helm",
    [
        "valuesFrom: [{kind: ConfigMap, name: none, optional: true}]",
        "valuesFrom: [{kind: ConfigMap, name: defaults, valuesKey: none, optional: true}]",
        "valuesFrom: [{apiVersion: example.com/v1, kind: Region, name: eu-west, fieldPath: none, optional: true}]",
        "valuesFiles: [$config/none.yaml]\nignoreMissingValuesFiles: true",
    ],
)
def test_optional_values(helm: str) -> None:
    """Missing optional values are an info."""
    collected = collect(helm)
    assert [(finding.code, finding.severity) for finding in collected.findings] == [(NOT_FOUND, Severity.INFO)]
    assert collected.values.entries == ()


def test_secret_of_a_helm_release_is_not_read() -> None:
    """With `output: helmRelease`, a Secret is a reference. It is no layer and no dependency."""
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {values.yaml: 'a: 1'}\n"
    collected = collect("output: helmRelease\nvaluesFrom: [{kind: Secret, name: db}]", files={"db.yaml": secret})
    assert collected == CollectedValues(collected.values, secrets=(SecretValues("db"),))
    assert collected.values.entries == ()


@pytest.mark.parametrize(
    ("secrets", "message"),
    [
        pytest.param(
            ["targetPath: 'a:b'"],
            '[0].targetPath is written to a HelmRelease, so "a:b" must have only ASCII letters, digits, -, _, ., / and \\, and up to 5 digits in brackets',
            id="character-of-a-path",
        ),
        pytest.param(
            [f"targetPath: {'a' * 251}"],
            f'[0].targetPath is written to a HelmRelease, so "{"a" * 78}… must have at most 250 characters, but has 251',
            id="length-of-a-path",
        ),
        pytest.param(
            ["valuesKey: 'a b'"],
            '[0].valuesKey is written to a HelmRelease, so "a b" must have only ASCII letters, digits, "-", "_" and "."',
            id="key",
        ),
        pytest.param(
            ["targetPath: a", "targetPath: a.b"],
            "[1]: requires a map at a, where Secret db sets a string",
            id="overlap",
        ),
    ],
)
def test_secret_that_flux_rejects(secrets: list[str], message: str) -> None:
    """A reference that the schema of HelmReleases or the merge of Flux rejects is an error."""
    references = ", ".join(f"{{kind: Secret, name: db, {fields}}}" for fields in secrets)
    (finding,) = collect(f"output: helmRelease\nvaluesFrom: [{references}]").findings
    assert (finding.code, finding.message) == (INVALID, f"spec.helm.valuesFrom{message}")


def test_values_file_of_another_tenant() -> None:
    """A tenant can read its own values files and those of the platform team, but not those of another tenant."""
    paths = ("red/a.yaml", "blue/a.yaml", "values/berlin.yaml")
    options = ", ".join(f"$config/{path}" for path in paths)
    contents = {**OBJECTS, **dict.fromkeys(paths, "a: 1\n"), "red/ksm.yaml": f"{VARIANT}    valuesFiles: [{options}]\n"}
    catalog = read_catalog(FileTree({path: File(content.encode()) for path, content in contents.items()}))
    tenants = {
        name: Tenant(name, TenantSpec(directories=(f"{name}/**",)), SourceLocation()) for name in ("red", "blue")
    }
    (manifest,) = catalog.objects_of_kind("config.porch.kpt.dev", "PackageVariant")
    source = OptionSource(manifest, (("spec", "helm"),))
    collected = collect_values(read_options(manifest), source, replace(catalog, tenants=Tenants(tenants)), "shop")
    assert [layer.source for layer in collected.values.config_layers] == [
        "$config/red/a.yaml",
        "$config/values/berlin.yaml",
    ]
    assert [(finding.code, finding.location.pointer) for finding in collected.findings] == [
        (NOT_FOUND, "/spec/helm/valuesFiles/1")
    ]
    assert collected.dependencies["$config/blue/a.yaml"] == "absent"


def test_chart_files_and_merge() -> None:
    """Files of the chart are read when the chart is rendered, at their place in the order of the layers."""
    collected = collect(
        "valuesFiles: [prod.yaml, none.yaml, $config/values/berlin.yaml]\n"
        "ignoreMissingValuesFiles: true\n"
        "values: {big: 9007199254740993}"
    )
    chart = ValuesSource(FileTree({"prod.yaml": File(b"replicas: 9\nprod: true\n")}), "sha256:1")
    resolved = collected.values.resolve({"": chart})
    assert resolved.text == '{"big":9007199254740993,"image":{"tag":"v2"},"prod":true,"replicas":5}'
    assert [(layer.source, layer.revision) for layer in resolved.layers] == [
        ("prod.yaml", "sha256:1"),
        ("$config/values/berlin.yaml", ""),
        (KSM, ""),
    ]
    assert [(finding.code, finding.severity, finding.location.line) for finding in resolved.findings] == [
        (NOT_FOUND, Severity.INFO, 7),
        ("ValuesPrecision", Severity.WARNING, 9),
    ]


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (None, NOT_FOUND, 'spec.helm.valuesFiles[0]: the chart contains no file "prod.yaml"'),
        (
            b"[1]",
            INVALID,
            "spec.helm.valuesFiles[0] refers to prod.yaml, which is not valid at line 1: a values file must contain a map",
        ),
    ],
)
def test_invalid_chart_file(content: bytes | None, code: str, message: str) -> None:
    """A missing or invalid file of the chart is an error."""
    chart = ValuesSource(FileTree({"prod.yaml": File(content)} if content else {}), "")
    (finding,) = collect("valuesFiles: [prod.yaml]").values.resolve({"": chart}).findings
    assert (finding.code, finding.message) == (code, message)


def test_parameter_that_cannot_be_merged() -> None:
    """A parameter below a scalar is an error with the line of its value."""
    collected = collect("values: {a: 1}\nparameters:\n- name: a.b\n  value: 2")
    (finding,) = collected.values.resolve({}).findings
    assert finding.message == f"{KSM} spec.helm.parameters[0]: requires a map at a, where a lower layer sets a number"
    assert (finding.location.file, finding.location.line) == ("ksm.yaml", 10)


def test_fingerprint() -> None:
    """The fingerprint depends on the files of other sources, and then on all layers. Otherwise, the text is enough."""
    values = collect("values: {a: 1}").values
    assert (values.fingerprint, values.config_text) == ("", '{"a":1}')
    fingerprints = {
        collect(helm).values.fingerprint
        for helm in (
            "valuesFiles: [a.yaml]",
            "valuesFiles: [b.yaml]",
            "valuesFiles: [a.yaml]\nvalues: {a: 1}",
            "valuesFiles: [a.yaml]\nvalues: {a: 2}",
            "valuesFiles: [a.yaml]\nignoreMissingValuesFiles: true",
        )
    }
    assert len(fingerprints) == 5


@pytest.mark.parametrize(
    ("pointer", "message", "place"),
    [
        ("/policy", f"x (set by {MAP} data.values.yaml, maps.yaml:8)", "maps.yaml:8"),
        ("/image/tag", f"x (set by {KSM} spec.helm.values, ksm.yaml:10)", "ksm.yaml:10"),
        ("/unknown", "x", ":0"),
    ],
)
def test_location_of_an_invalid_value(pointer: str, message: str, place: str) -> None:
    """The pointer of Helm leads to the file and line of the layer that sets the value."""
    files = {"maps.yaml": OBJECTS["maps.yaml"].replace("    image:\n", "    policy: 7\n    image:\n")}
    collected = collect("valuesFrom: [{kind: ConfigMap, name: defaults}]\nvalues:\n  image:\n    tag: 1", files=files)
    finding = SourceCodes.VALUES_INVALID.finding("x", SourceLocation(pointer=pointer))
    located = locate_values_finding(finding, collected.values.resolve({}).layers)
    assert (located.message, f"{located.location.file}:{located.location.line}") == (message, place)


@pytest.mark.parametrize(
    ("helm", "files"),
    [
        pytest.param("valuesFiles: [$config/s.yaml]", {"s.yaml": seal_text("a: 1\n")}, id="config-file"),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: s}]",
            {"s.yaml": seal_text(f"{CONFIG_MAP}data:\n  values.yaml: {ciphertext('a')}\n")},
            id="config-map",
        ),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, name: s}]",
            {"s.yaml": f"{CONFIG_MAP}data:\n  values.yaml: {json.dumps(seal_text('a: 1'))}\n"},
            id="text-in-a-config-map",
        ),
        pytest.param("valuesFiles: [s.yaml]", {}, id="chart-file"),
    ],
)
def test_encrypted_values_are_refused(helm: str, files: dict[str, str]) -> None:
    collected = collect(helm, files)
    chart = FileTree({"s.yaml": File(seal_text("a: 1\n").encode())})
    resolved = collected.values.resolve({"": ValuesSource(chart, "sha256:1")})

    [finding] = (*collected.findings, *resolved.findings)
    assert finding.code == "ValuesInvalid"
    assert "must not be encrypted with SOPS" in finding.message
    assert resolved.text == "{}"


def test_values_can_be_sent_to_workers() -> None:
    """The values can be pickled with their lines, because executors send package variants to workers."""
    values = collect("valuesFiles: [a.yaml]\nvaluesFrom: [{kind: ConfigMap, name: defaults}]\nvalues: {a: 1}").values
    copy = pickle.loads(pickle.dumps(values))
    assert copy == values
    assert [layer.find_line(()) for layer in copy.config_layers] == [7, 9]


SET = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata: {name: ksm}
spec:
  upstreams:
    - {repo: charts, chart: other, version: 1.0.0}
    - repo: charts
      chart: ksm
      version: 1.0.0
      template:
        helm:
          values: {a: 1}
          parameterExprs: [{name: c, valueExpr: "2"}]
  targets:
    - repositories: [{name: paris}]
    - repositories: [{name: berlin}]
      template:
        helm:
          namespace: shop
          values: {b: 1}
          parameters: [{name: d, value: 1}]
          valuesFiles: [a.yaml]
"""


@pytest.mark.parametrize(
    ("option", "path", "expression"),
    [
        pytest.param(("values",), "spec.upstreams[1].template.helm.values", "", id="template-of-the-upstream"),
        pytest.param(
            ("valuesFiles", 0), "spec.targets[1].template.helm.valuesFiles[0]", "", id="template-of-the-target"
        ),
        pytest.param(("parameters", 0), "spec.targets[1].template.helm.parameters[0]", "", id="literal-parameter"),
        pytest.param(("parameters", 1), "spec.upstreams[1].template.helm.parameterExprs[0]", "2", id="expression"),
        pytest.param(("valuesFrom", 0), "spec.targets[1].template.helm.valuesFrom[0]", "", id="unknown"),
    ],
)
def test_location_of_an_option_of_a_set(option: tuple[str | int, ...], path: str, expression: str) -> None:
    """An option of a set is in the template of the upstream or of the target, and can be an expression."""
    catalog = read_catalog(FileTree({"ksm.yaml": File(SET.encode())}))
    (manifest,) = catalog.objects_of_kind("config.porch.kpt.dev", "PackageVariantSet")
    source = find_option_source(manifest, UpstreamSpec(repo="charts", chart="ksm", version="1.0.0"), (1,))
    assert format_path(source.find_path(option)) == path
    assert source.get_expression(option) == expression
