"""Tests of plaintext secrets in rendered output: which Secrets are errors, and that no message contains a value."""

from __future__ import annotations

import pytest

from reconciler.krm.findings import Finding
from reconciler.krm.json_pointer import parse_pointer, resolve_pointer
from reconciler.krm.yaml import parse_yaml
from reconciler.lazy_dataclasses import replace
from reconciler.packages.charts.documents import OutputText
from reconciler.packages.charts.package_files import read_output
from reconciler.packages.charts.secrets import collect_secret_values, mask_values
from tests.support.charts import REQUEST, RULES
from tests.support.sops import ciphertext, seal_text

VALUE = "aHVudGVyMmh1bnRlcjI="
MAC_ONLY = ("encrypted_regex: ^data$", "mac_only_encrypted: true")


def build_secret(fields: str, name: str = "db", kind: str = "Secret", api_version: str = "v1") -> OutputText:
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}}}\n{fields}\n"
    return OutputText("templates/secret.yaml", 1, text)


def read_findings(text: OutputText) -> list[Finding]:
    request = replace(REQUEST, allowed_secrets=("Secret/allowed",))
    return [f for f in read_output([text], "chart web 1.2.3", request, RULES).findings if f.severity == "error"]


SECRETS = pytest.mark.parametrize(
    ("fields", "pointers"),
    [
        pytest.param(f"data: {{password: {VALUE}}}", "/data/password", id="data"),
        pytest.param("stringData: {a: b, c~/d: 1}", "/stringData/a, /stringData/c~0~1d", id="string-data"),
        pytest.param(f"data: {{a: {VALUE}}}\nstringData: {{b: x}}", "/data/a, /stringData/b", id="both"),
        pytest.param("data: text", "/data", id="no-mapping"),
        pytest.param(f"type: kubernetes.io/tls\ndata: {{tls.key: {VALUE}}}", "/data/tls.key", id="certificate"),
        pytest.param(f"data:\n  a: {ciphertext('a')}", "/data/a", id="ciphertext-without-sops"),
        pytest.param(seal_text(f"data:\n  a: {ciphertext('a')}\n  b: x", *MAC_ONLY), "/data/b", id="plaintext-in-sops"),
        pytest.param(f"immutable: true\ndata: {{a: '', b: {VALUE}}}", "/data/b", id="one-empty-value"),
    ],
)


@SECRETS
def test_secret_with_values(fields: str, pointers: str) -> None:
    (finding,) = read_findings(build_secret(fields))

    assert finding.code == "PlaintextSecret"
    assert finding.message == (
        f"chart web 1.2.3: Secret/shop/db in templates/secret.yaml contains a plaintext secret at {pointers}. Next step:"
        " set a value such as existingSecret, use an ExternalSecret, or allow it with the annotation"
        " `reconciler.dev/allow-plaintext-secrets: Secret/db`"
    )
    assert (finding.location.object, finding.location.pointer) == ("Secret/shop/db", pointers.split(", ")[0])


@SECRETS
def test_preview_masks_values(fields: str, pointers: str) -> None:
    """A preview is only compared. It has no error, no value, and no comment, which can quote a value."""
    secret = replace(build_secret(fields), text=f"# hunter2\n{build_secret(fields).text}")
    package = read_output([secret], "chart web 1.2.3", REQUEST.as_preview(), RULES)

    (file,) = package.files
    data = parse_yaml(file.data).documents[0].data
    assert [finding for finding in package.findings if finding.severity == "error"] == []
    assert {resolve_pointer(data, parse_pointer(pointer)) for pointer in pointers.split(", ")} == {"*****"}
    assert b"hunter2" not in file.data


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(build_secret("data: {}"), id="no-values"),
        pytest.param(build_secret("data: {a: '', b: null}\nstringData: {c: ' '}"), id="empty-values"),
        pytest.param(build_secret("type: kubernetes.io/service-account-token"), id="service-account-token"),
        pytest.param(build_secret("type: bootstrap.kubernetes.io/token"), id="bootstrap-token"),
        pytest.param(build_secret(f"data: {{a: {VALUE}}}", name="allowed"), id="allowed"),
        pytest.param(build_secret(f"data: {{a: {VALUE}}}", kind="ConfigMap"), id="another-kind"),
        pytest.param(build_secret("data: {a: x}", api_version="example.com/v1"), id="another-group"),
        pytest.param(build_secret("spec: {encryptedData: {a: x}}", kind="SealedSecret"), id="sealed"),
        pytest.param(build_secret(seal_text(f"data:\n  a: {ciphertext('a')}", *MAC_ONLY)), id="sops"),
    ],
)
def test_no_plaintext_secret(text: OutputText) -> None:
    assert read_findings(text) == []


def test_secret_in_a_list() -> None:
    text = OutputText("t.yaml", 1, f"apiVersion: v1\nkind: List\nitems: [{{apiVersion: v1, kind: Secret, metadata: "
                      f"{{name: a}}, data: {{b: {VALUE}}}}}]")  # fmt: skip

    assert [finding.code for finding in read_findings(text)] == ["PlaintextSecret"]
    assert collect_secret_values([text]) == {VALUE, "hunter2hunter2"}


def test_values_are_masked() -> None:
    secret = build_secret(f"data: {{a: {VALUE}, b: !!binary YQ==}}\nstringData: {{c: long value, d: abc}}")

    values = collect_secret_values([secret, build_secret("data: {x: other}", kind="ConfigMap")])

    assert values == {VALUE, "hunter2hunter2", "long value"}
    assert mask_values(f"x {VALUE} hunter2hunter2hunter2 long values abc other", values) == (
        "x ***** *****hunter2 *****s abc other"
    )
