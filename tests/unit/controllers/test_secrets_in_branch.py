"""Tests of Secrets with values in rendered files: they are reported, and the values are not shown."""

from __future__ import annotations

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.controllers.resource_findings import find_secrets
from reconciler.krm.findings import Finding

HEAD = "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: shop}\n"
LOCAL = HEAD.replace("shop}", 'shop, annotations: {config.kubernetes.io/local-config: "true"}}')


def list_secret_findings(text: str, path: str = "all.yaml", *, block: bool = False) -> tuple[Finding, ...]:
    return find_secrets(FileTree({path: File(text.encode())}), block=block)


@pytest.mark.parametrize(
    ("text", "pointers"),
    [
        pytest.param(f"{HEAD}data: {{a: aHVudGVyMg==}}\n", ["/data"], id="data"),
        pytest.param(f"{HEAD}stringData: {{a: hunter2}}\n", ["/stringData"], id="stringData"),
        pytest.param(f"{HEAD}stringData: {{a: x}}\ndata: {{b: eA==}}\n", ["/data"], id="one-finding-for-both"),
        pytest.param(f"{HEAD}data: {{a: '', b: eA==}}\n", ["/data"], id="one-value-is-enough"),
        pytest.param(f"{HEAD}data: {{a: 5}}\n", ["/data"], id="no-string"),
        pytest.param(f"{HEAD}data: hunter2\n", ["/data"], id="no-mapping"),
        pytest.param(f"{HEAD}data: {{a: '', b: null, c: ' '}}\nstringData:\n", [], id="empty-values"),
        pytest.param(HEAD, [], id="no-values"),
        pytest.param(f"{HEAD}data: {{}}\n", [], id="empty-data"),
        pytest.param(f"{HEAD}immutable: true\ntype: Opaque\n", [], id="other-fields"),
        pytest.param(f"{LOCAL}data: {{a: eA==}}\n", [], id="local-config"),
        pytest.param(f"{HEAD}data: {{a: eA==}}\n".replace("Secret", "ConfigMap"), [], id="another-kind"),
        pytest.param(
            f"{HEAD}data: {{a: eA==}}\n".replace("v1", "bitnami.com/v1alpha1"), [], id="a-Secret-of-another-group"
        ),
        pytest.param(
            f"{HEAD}spec: {{encryptedData: {{a: AgB}}}}\n".replace("Secret", "SealedSecret"), [], id="sealed"
        ),
        pytest.param(
            f"apiVersion: v1\nkind: List\nitems:\n- {{}}\n- {HEAD}data: {{a: eA==}}\n".replace("\nk", "\n  k")
            .replace("  kind: List", "kind: List").replace("\nm", "\n  m").replace("\nd", "\n  d"),
            ["/items/1/data"],
            id="in-a-List",
        ),
        pytest.param(f"{HEAD}data: {{a: eA==}}\n---\n{HEAD}data: {{b: eA==}}\n", ["/data", "/data"], id="documents"),
        pytest.param("- 1\n", [], id="no-object"),
        pytest.param("a: [\n", [], id="no-YAML"),
    ],
)  # fmt: skip
def test_secrets_with_values_are_reported(text: str, pointers: list[str]) -> None:
    assert [finding.location.pointer for finding in list_secret_findings(text)] == pointers


@pytest.mark.parametrize(
    ("path", "count"),
    [("key.yaml", 1), ("sub/key.yml", 1), ("Kptfile", 0), ("sub/Kptfile", 0), ("key.txt", 0)],
)
def test_only_yaml_files_are_read(path: str, count: int) -> None:
    assert len(list_secret_findings(f"{HEAD}data: {{a: eA==}}\n", path)) == count


def test_finding_has_a_location_and_no_value() -> None:
    text = f"# first\n---\n{HEAD}type: Opaque\nstringData:\n  password: hunter2\n"

    (finding,) = list_secret_findings(text)

    assert (finding.code, finding.severity) == ("SecretInBranch", "warning")
    assert str(finding.location) == "all.yaml:7 Secret/shop/key /stringData"
    assert (
        finding.message
        == "stringData of a Secret must be empty, because everyone with read access to the branch can read the values. Next step: "
        "encrypt the Secret with SOPS, or use an ExternalSecret"
    )


def test_finding_in_a_json_file_has_no_line() -> None:
    text = '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "data": {"a": "eA=="}}'

    (finding,) = list_secret_findings(text, "key.json")

    assert str(finding.location) == "key.json Secret/_cluster/key /data"


def test_blocked_secret_is_an_error() -> None:
    (finding,) = list_secret_findings(f"{HEAD}data: {{a: eA==}}\n", block=True)

    assert (finding.code, finding.severity) == ("SecretInBranch", "error")
