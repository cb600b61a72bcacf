"""Tests of the conversion of the output of helm to files, and of the findings about the output."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.lazy_dataclasses import replace
from reconciler.packages.charts.documents import split_output
from reconciler.packages.charts.package_files import OutputRules, build_rendered_source, read_output
from reconciler.packages.charts.request import RenderedSource
from tests.support.charts import REQUEST, RULES, format_config_map
from tests.support.sops import ciphertext, seal_text

LONG_NAME = "n" * 250


def convert(output: str, rules: OutputRules = RULES, **options: Any) -> RenderedSource:
    request = replace(REQUEST, **options)
    return build_rendered_source(read_output(split_output(output, "web"), "chart web 1.2.3", request, rules))


def render(*documents: str, template: str = "web/templates/a.yaml") -> str:
    return "".join(f"---\n# Source: {template}\n{document}" for document in documents)


def read_texts(source: RenderedSource) -> dict[str, str]:
    assert not [finding for finding in source.findings if finding.severity == "error"], source.findings
    return {path: file.data.decode() for path, file in source.files.items()}


def format_resource(kind: str, name: str, api_version: str = "v1", metadata: str = "") -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {name}\n{metadata}"


def test_documents_keep_their_text() -> None:
    text = "# head\nkind: 'ConfigMap' # c\napiVersion: v1\nmetadata: {namespace: x, name: \"a\"}   \n\n\n"

    source = convert(render(text) + "---\n# Source: web/templates/empty.yaml\n# nothing\n---\n\n---\n")

    expected = "# head\nkind: 'ConfigMap' # c\napiVersion: v1\nmetadata: {namespace: x, name: \"a\"}\n"
    assert read_texts(source) == {"configmap-a.yaml": expected}
    assert source.templates == {"configmap-a.yaml": "templates/a.yaml"}
    assert source.findings == ()


def test_documents_of_a_crd_file_share_its_template() -> None:
    group = "apiextensions.k8s.io/v1"
    crds = "\n---\n".join(format_resource("CustomResourceDefinition", name, group) for name in ("a.x", "b.x"))

    source = convert(render(crds, template="web/charts/sub/crds/all.yaml"))

    assert source.templates == {
        "crds/customresourcedefinition-a.x.yaml": "charts/sub/crds/all.yaml",
        "crds/customresourcedefinition-b.x.yaml": "charts/sub/crds/all.yaml",
    }


@pytest.mark.parametrize(
    ("policy", "document", "line"),
    [
        pytest.param("missing", format_resource("Service", "a"), "  namespace: shop\n", id="namespaced"),
        pytest.param("none", format_resource("Service", "a"), "", id="policy-none"),
        pytest.param("missing", format_resource("ClusterRole", "a", "rbac.authorization.k8s.io/v1"), "", id="cluster"),
        pytest.param("missing", format_resource("Widget", "a", "example.com/v1"), "", id="custom-kind"),
    ],
)
def test_namespace(policy: str, document: str, line: str) -> None:
    (text,) = read_texts(convert(render(document + "  labels: {a: b}\n"), set_namespace=policy)).values()

    assert text == document + line + "  labels: {a: b}\n"


def test_own_namespace_is_kept() -> None:
    document = format_resource("Service", "a", metadata="  namespace: own\n")

    assert read_texts(convert(render(document))) == {"service-a.yaml": document}


@pytest.mark.parametrize(
    ("documents", "paths"),
    [
        pytest.param([], {"namespace-shop.yaml"}, id="added"),
        pytest.param([format_resource("Namespace", "shop")], {"namespace-shop.yaml"}, id="already-rendered"),
    ],
)
def test_create_namespace(documents: list[str], paths: set[str]) -> None:
    assert set(read_texts(convert(render(*documents), create_namespace=True))) == paths


def test_list_is_split() -> None:
    items = "".join(f"- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}\n" for name in "ab")

    source = convert(render(f"apiVersion: v1\nkind: List\nitems:\n{items}"))

    assert set(read_texts(source)) == {"configmap-a.yaml", "configmap-b.yaml"}
    assert [finding.code for finding in source.findings] == ["RenderedTextNormalized"] * 2


def test_rewritten_text_is_reported() -> None:
    source = convert(render(format_config_map("a", "yes")))

    assert "key: true" in read_texts(source)["configmap-a.yaml"]
    assert [finding.message for finding in source.findings] == [
        (
            "the formatting of ConfigMap/shop/a in templates/a.yaml of chart web 1.2.3 changes in the package, because"
            " the output of Helm contains values that YAML 1.1 and YAML 1.2 read differently"
        )
    ]


def test_hooks_are_reported() -> None:
    documents = [
        format_resource("Job", name, "batch/v1", f"  annotations: {{helm.sh/hook: {hook}}}\n")
        for name, hook in {"keep": "pre-install", "drop": "pre-delete", "test": "test"}.items()
    ]

    source = convert(render(*documents))

    assert set(source.files) == {"job-keep.yaml"}
    assert [(finding.code, finding.message) for finding in source.findings] == [
        (
            "HelmHooksPresent",
            (
                "chart web 1.2.3 has Helm hooks: Job/keep (pre-install). Argo CD runs them as hooks. Other agents, such as"
                " Flux, apply them as ordinary resources. To omit the hooks from the package, set `hooks: drop`"
            ),
        ),
        (
            "HookLeftOut",
            "Job/drop in templates/a.yaml of chart web 1.2.3 is not part of the package, because it is a Helm hook (pre-delete)",
        ),
        (
            "HookLeftOut",
            "Job/test in templates/a.yaml of chart web 1.2.3 is not part of the package, because it is a Helm hook (test)",
        ),
    ]


@pytest.mark.parametrize(
    ("output", "code", "text"),
    [
        pytest.param(render("- a\n"), "RenderedOutputInvalid", "templates/a.yaml, document 1: a resource", id="list"),
        pytest.param(
            render("a: 1\n"), "RenderedOutputInvalid", "a resource must have apiVersion and kind", id="no-kind"
        ),
        pytest.param(
            render("apiVersion: v1\nkind: [A]\n"), "RenderedOutputInvalid", "must be strings", id="kind-is-a-list"
        ),
        pytest.param(
            render(format_config_map("a"), "apiVersion: v1\nkind: Service\n"),
            "RenderedOutputInvalid",
            "templates/a.yaml, document 2: metadata.name of Service",
            id="no-name",
        ),
        pytest.param(
            render("apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: a-}\n"),
            "GenerateNameNotSupported",
            "has metadata.generateName",
            id="generate-name",
        ),
        pytest.param(render("a: b: c\n"), "RenderedOutputInvalid", "line 1, column 5", id="syntax"),
        pytest.param(
            render(format_config_map("a"), format_config_map("a")),
            "DuplicateResource",
            "ConfigMap/shop/a twice: in templates/a.yaml, document 1, and in templates/a.yaml, document 2",
            id="same-resource-twice",
        ),
        pytest.param(render(format_config_map(LONG_NAME)), "RenderedOutputInvalid", "too long", id="long-name"),
        pytest.param(
            render(*(format_config_map(f"a{index}") for index in range(101))),
            "SourceTooLarge",
            "renders more than 100 resources. Next step: set values that render fewer resources, or raise the setting `sources.helm.resources`",
            id="too-many-resources",
        ),
        pytest.param(
            render(format_config_map("a", "x" * (4 << 20))),
            "SourceTooLarge",
            "larger than 4194304",
            id="large-document",
        ),
    ],
)
def test_invalid_output(output: str, code: str, text: str) -> None:
    source = convert(output)

    assert [finding.code for finding in source.findings] == [code]
    assert text in source.findings[0].message
    assert not source.files


def test_duplicate_key_in_strict_mode() -> None:
    output = render(format_config_map("a") + "kind: Secret\n")

    assert [finding.code for finding in convert(output, replace(RULES, is_strict=True)).findings] == [
        "RenderedOutputInvalid"
    ]


def test_order_of_documents_and_template_names_do_not_matter() -> None:
    documents = [format_config_map(name) for name in "abc"]

    first, second = convert(render(*documents)), convert(render(*reversed(documents), template="web/templates/z.yaml"))
    assert first.files == second.files


SOPS = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  namespace: shop\ndata:\n  p: {ciphertext('p')}\n"
UNPLACED = SOPS.replace("  namespace: shop\n", "")
DATA_ONLY, MAC_ONLY = "encrypted_regex: ^data$", "mac_only_encrypted: true"


@pytest.mark.parametrize(
    ("document", "options", "expected"),
    [
        (seal_text(SOPS, DATA_ONLY), {}, ""),
        (seal_text(UNPLACED, DATA_ONLY, MAC_ONLY), {}, "\n  namespace: team\n"),
        (seal_text(UNPLACED, DATA_ONLY), {}, None),
        (seal_text(UNPLACED, DATA_ONLY), {"set_namespace": "none"}, ""),
        (seal_text(SOPS + "other: &x yes\nmore: *x\n", DATA_ONLY), {}, None),
    ],
    ids=["with-namespace", "mac-only", "whole-mac", "unchanged", "rewritten"],
)
def test_sops_documents(document: str, options: dict[str, str], expected: str | None) -> None:
    source = convert(render(document), namespace="team", **options)

    if expected is None:
        assert [finding.code for finding in source.findings if finding.severity == "error"] == ["SopsMacBroken"]
        assert not source.files
        return
    assert source.files["secret-a.yaml"].data.decode() == document.replace(
        "  name: a\n", f"  name: a{expected or chr(10)}"
    )
