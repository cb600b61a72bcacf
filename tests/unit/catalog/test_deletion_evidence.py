"""Tests of deletion evidence: which file contents prove that an object was deleted."""

from __future__ import annotations

import textwrap

import pytest

from reconciler.catalog.deletion_evidence import InconclusiveFile, find_inconclusive_file
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import parse_yaml

WEB = ObjectKey("config.porch.kpt.dev", "PackageVariant", "default", "web")
OTHER = textwrap.dedent("""\
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: other}
    """)
LOCAL = textwrap.dedent("""\
    apiVersion: config.porch.kpt.dev/v1alpha1
    kind: PackageVariant
    metadata:
      name: web
      annotations: {config.kubernetes.io/local-config: "true"}
    """)


def format_variant(group: str = "config.porch.kpt.dev", kind: str = "PackageVariant", name: str = "web") -> str:
    return f"apiVersion: {group}/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}, namespace: default}}\n"


def find_doubt(content: str) -> InconclusiveFile | None:
    return find_inconclusive_file(parse_yaml(content).documents, {WEB})


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(OTHER, id="another-object"),
        pytest.param(f"{OTHER}---\n{OTHER.replace('other', 'third')}", id="several-objects"),
        pytest.param(f"# a comment\n---\n{OTHER}---\n# nothing\n", id="comments-around-an-object"),
        pytest.param("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: A, metadata: {name: a}}]", id="list"),
        pytest.param("apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: a}}]", id="typed-list"),
        pytest.param(LOCAL.replace("name: web", "name: test"), id="another-object-is-local"),
        pytest.param(format_variant(kind="PackageVariantSet"), id="another-kind-with-the-same-name"),
        pytest.param(format_variant(kind="PackageVarient", name="other"), id="a-misspelled-kind-with-another-name"),
        pytest.param(format_variant(group="apps", kind="Deployment"), id="a-resource-with-the-same-name"),
    ],
)
def test_valid_file_without_the_object_proves_its_deletion(content: str) -> None:
    assert find_doubt(content) is None


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        pytest.param("", 1, "no Kubernetes object", id="empty"),
        pytest.param("# nothing here\n\n# at all\n", 1, "no Kubernetes object", id="comments"),
        pytest.param("---\n---\n", 1, "no Kubernetes object", id="separators"),
        pytest.param("null\n", 1, "plain text", id="null"),
        pytest.param("{}\n", 1, '"apiVersion"', id="empty-mapping"),
        pytest.param(
            "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", 1, "Git LFS pointer", id="lfs"
        ),
        pytest.param("<!DOCTYPE html>\n<html><body>404</body></html>\n", 1, "HTML", id="html"),
        pytest.param('{"message":"Not Found"}', 1, '"apiVersion"', id="json-error"),
        pytest.param(
            '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure"}', 1, "metadata.name", id="status"
        ),
        pytest.param(f"- {textwrap.indent(OTHER, '  ').strip()}\n", 1, "list at the top level", id="top-level-list"),
        pytest.param("[]\n", 1, "list at the top level", id="empty-top-level-list"),
        pytest.param(
            OTHER.replace("kind:", "Kind:"),
            1,
            '"kind" must be a non-empty string; the manifest has the field "Kind"',
            id="Kind",
        ),
        pytest.param(OTHER.replace("kind: ConfigMap\n", ""), 1, '"kind"', id="no-kind"),
        pytest.param(OTHER.replace("apiVersion", "apiversion"), 1, 'the field "apiversion"', id="apiversion"),
        pytest.param(OTHER.replace("apiVersion: v1\n", ""), 1, '"apiVersion"', id="no-apiVersion"),
        pytest.param(OTHER.replace("kind: ConfigMap", "kind: 5"), 1, '"kind"', id="kind-is-a-number"),
        pytest.param(OTHER.replace("name: other", "labels: {}"), 1, '"metadata.name"', id="no-name"),
        pytest.param(LOCAL, 1, "local-config", id="the-object-is-local"),
        pytest.param(f"{OTHER}---\njust text\n", 5, "plain text", id="a-second-document-that-is-no-object"),
        pytest.param("apiVersion: v1\nkind: List\nitems: []\n", 1, "no Kubernetes object", id="empty-list"),
        pytest.param("apiVersion: v1\nkind: List\n", 1, "no Kubernetes object", id="list-without-items"),
        pytest.param(format_variant(kind="PackageVarient"), 2, 'did you mean "PackageVariant"?', id="misspelled-kind"),
        pytest.param(
            format_variant(kind="packagevariant"), 2, 'did you mean "PackageVariant"?', id="kind-in-lower-case"
        ),
        pytest.param(
            format_variant(kind="PACKAGEVARIANT"), 2, 'did you mean "PackageVariant"?', id="kind-in-upper-case"
        ),
        pytest.param(
            format_variant(kind="PackageVarient").replace("default", "another"),
            2,
            'did you mean "PackageVariant"?',
            id="misspelled-kind-in-another-namespace",
        ),
        pytest.param(
            format_variant(group="config.porch.kpt.de"),
            1,
            "is unknown, and may be a misspelling",
            id="misspelled-group",
        ),
        pytest.param(format_variant(group="apps"), 1, "is unknown, and may be a misspelling", id="another-group"),
        pytest.param("apiVersion: v1\nkind: List\nitems:\n- a: b\n", 4, '"apiVersion"', id="item-that-is-no-object"),
    ],
)
def test_other_content_is_inconclusive(content: str, line: int, reason: str) -> None:
    inconclusive_file = find_doubt(content)

    assert inconclusive_file is not None
    assert (inconclusive_file.line, reason in inconclusive_file.reason) == (line, True), inconclusive_file
