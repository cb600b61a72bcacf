"""Documents from servers and archives with values of unexpected types: each one is accepted or is a clear error.

The readers return "nothing found" or raise an error with a finding code. Any other exception would be reported as an
internal error, or would stop the search for a valid signature.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from reconciler.api.helm import ChartManifest
from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.packages.artifacts import ArtifactRepository
from reconciler.packages.charts.chart_defaults import list_chart_layers
from reconciler.packages.charts.dependencies import find_missing_dependencies
from reconciler.packages.charts.documents import split_output
from reconciler.packages.charts.metadata import check_chart_manifest, read_chart_manifest
from reconciler.packages.charts.package_files import OutputRules, build_rendered_source, read_output
from reconciler.packages.charts.request import ChartRequest
from reconciler.packages.charts.secrets import collect_secret_values
from reconciler.packages.charts.value_sources import ChartValues, SourceValuesFile, ValuesSource
from reconciler.packages.kustomize.checks import check_overlay
from reconciler.packages.kustomize.request import KustomizeRequest
from reconciler.packages.source_kinds import detect_source_kind
from reconciler.sources import cosign, keyless, sigstore_bundle
from reconciler.sources.chart_index import parse_index, resolve_chart_url
from reconciler.sources.errors import SourceError
from reconciler.sources.limits import SourceLimits
from reconciler.sources.manifests import find_manifest_in_index, parse_manifest, select_layer
from tests.support.artifact_servers import CHART_LAYER, FLUX_LAYER
from tests.support.malformed_documents import iterate_json, iterate_yaml

DIGEST = "sha256:" + "a" * 64
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"
REQUEST = ChartRequest("web", "shop", "1.34.0")

Document = dict[str, Any]


def read_all(read: Callable[[bytes], Iterable[object]], contents: Iterator[bytes]) -> tuple[int, int]:
    """Return the number of contents that a reader accepts, and the number of those that it refuses with a code.

    The test fails with the first unexpected exception. All texts of the results must be valid text.
    """
    accepted = refused = 0
    for content in contents:
        try:
            for text in read(content):
                str(text).encode()
            accepted += 1
        except SourceError as error:
            error.message.encode()
            refused += 1
    return accepted, refused


def read_manifest(repository: ArtifactRepository) -> Callable[[bytes], Iterable[object]]:
    def read(content: bytes) -> Iterable[object]:
        data = parse_manifest(content)
        if digest := find_manifest_in_index(data, repository):
            yield digest
            return
        layer = select_layer(data, repository, SourceLimits())
        yield layer.layer_digest
        yield layer.created_seconds

    return read


def read_index(content: bytes) -> Iterable[object]:
    index = parse_index(content)
    yield from index.notes
    for name, entries in index.charts.items():
        for entry in entries:
            yield from (name, entry.version, entry.digest, entry.app_version, entry.created_seconds)
            yield resolve_chart_url("https://charts.example.com", entry.url)


def read_key_signatures(content: bytes) -> Iterable[object]:
    return (signature.payload_digest for signature in cosign.parse_signatures(content))


def read_descriptors(content: bytes) -> Iterable[object]:
    manifests = json.loads(content)
    return sigstore_bundle.select_bundle_manifests(manifests if isinstance(manifests, list) else [manifests])


def read_bundle(content: bytes) -> Iterable[object]:
    bundle = sigstore_bundle.parse_bundle(content)
    return (bundle.is_keyless,) if bundle else ()


def read_statement(content: bytes) -> Iterable[object]:
    return read_bundle(json.dumps(make_bundle(content)).encode())


def read_log_entry(content: bytes) -> Iterable[object]:
    signature = cosign.CosignSignature(b"x", DIGEST, CERTIFICATE, content.decode())
    bundle = keyless._build_bundle(signature, b"payload")
    return (bundle.decode(),) if bundle else ()


def make_bundle(statement: bytes) -> Document:
    envelope = {
        "payload": base64.b64encode(statement).decode(),
        "payloadType": "application/vnd.in-toto+json",
        "signatures": [{"sig": "QUJD"}],
    }
    return {
        "mediaType": sigstore_bundle.BUNDLE_TYPE, "verificationMaterial": {"publicKey": {}}, "dsseEnvelope": envelope
    }  # fmt: skip


STATEMENT: Document = {
    "_type": "https://in-toto.io/Statement/v1",
    "subject": [{"digest": {"sha256": "a" * 64}}],
    "predicateType": "https://sigstore.dev/cosign/sign/v1",
}
SIGNATURE = {
    "dev.cosignproject.cosign/signature": "QUJD",
    "dev.sigstore.cosign/certificate": CERTIFICATE,
    "dev.sigstore.cosign/bundle": "{}",
}
PAYLOAD_TYPE = "application/vnd.dev.cosign.simplesigning.v1+json"
LAYER = {"mediaType": PAYLOAD_TYPE, "digest": DIGEST, "annotations": SIGNATURE}
CREATED = {"org.opencontainers.image.created": "2001-01-01T00:00:00Z"}
VERSION = {
    "version": "1.0.0", "digest": "a" * 64, "urls": ["web.tgz"], "created": "2001-01-01T00:00:00Z", "appVersion": "1",
    "removed": False,
}  # fmt: skip
OCI = ArtifactRepository("default", "oci", "oci", "oci://registry.example.com/team")
HELM = ArtifactRepository("default", "charts", "helm", "oci://registry.example.com/team")


@pytest.mark.parametrize(
    ("document", "read"),
    [
        pytest.param({"layers": [{"mediaType": FLUX_LAYER, "digest": DIGEST, "size": 5}], "annotations": CREATED}, read_manifest(OCI), id="manifest"),
        pytest.param({"layers": [{"mediaType": CHART_LAYER, "digest": DIGEST, "size": 5}], "annotations": CREATED}, read_manifest(HELM), id="manifest-of-a-chart"),
        pytest.param({"manifests": [{"digest": DIGEST, "platform": None}]}, read_manifest(OCI), id="image-index"),
        pytest.param({"entries": {"web": [VERSION]}}, read_index, id="chart-index"),
        pytest.param({"layers": [LAYER]}, read_key_signatures, id="signatures"),
        pytest.param({"critical": {"type": "cosign container image signature", "image": {"docker-manifest-digest": DIGEST}}}, lambda content: (cosign.read_signed_digest(content)[:0],), id="signed-text"),
        pytest.param([{"artifactType": sigstore_bundle.BUNDLE_TYPE, "digest": DIGEST, "annotations": {"dev.sigstore.bundle.predicateType": "https://sigstore.dev/cosign/sign/v1"}}], read_descriptors, id="referrers"),
        pytest.param({"layers": [{"mediaType": sigstore_bundle.BUNDLE_TYPE, "digest": DIGEST}]}, lambda content: (sigstore_bundle.find_bundle_blob(content),), id="manifest-of-a-bundle"),
        pytest.param(make_bundle(json.dumps(STATEMENT).encode()), read_bundle, id="bundle"),
        pytest.param(STATEMENT, read_statement, id="statement-in-a-bundle"),
        pytest.param({"SignedEntryTimestamp": "QUJD", "Payload": {"logIndex": 1, "logID": "aabb", "integratedTime": 5, "body": "x"}}, read_log_entry, id="log-entry"),
    ],
)  # fmt: skip
def test_documents_of_servers(document: Any, read: Callable[[bytes], Iterable[object]]) -> None:
    assert list(read(json.dumps(document).encode())), "the document without a change is accepted"
    accepted, refused = read_all(read, iterate_json(document))
    assert accepted > 0
    assert accepted + refused > 100


CHART: Document = {
    "apiVersion": "v2", "name": "web", "version": "1.0.0", "kubeVersion": ">=1.20", "type": "application",
    "description": "x", "dependencies": [{"name": "db", "version": "1.0.0", "repository": "https://x/c", "alias": "a"}],
    "maintainers": [{"name": "x"}], "annotations": {"a": "b"},
}  # fmt: skip
LOCK = {"dependencies": [{"name": "db", "version": "1.0.0", "repository": "https://x/c"}], "digest": DIGEST}
VALUES = {"a": {"b": [1, {"c": "x"}]}, "n": 1}


def dump(document: Document) -> File:
    return File(json.dumps(document).encode())


def iterate_chart_texts(files: dict[str, File]) -> Iterator[str]:
    """Read the metadata, the lock, the subcharts and the values of a chart, and yield all messages."""
    chart = FileTree({"Chart.yaml": dump(CHART), "Chart.lock": dump(LOCK), "values.yaml": dump(VALUES), **files})
    for layer in list_chart_layers(chart, "web"):
        yield layer.name
    entry = SourceValuesFile("", "values.yaml", "spec.helm.valuesFiles[0]", SourceLocation())
    resolved = ChartValues((entry,)).resolve({"": ValuesSource(chart, "v1")})
    json.loads(resolved.text)
    yield from (finding.message for finding in resolved.findings)
    manifest = read_chart_manifest(chart)
    if not isinstance(manifest, ChartManifest):
        yield manifest.message
        return
    yield manifest.description
    if finding := check_chart_manifest(manifest, "1.34.0"):
        yield finding.message
    missing = find_missing_dependencies(chart, manifest)
    findings = (missing,) if isinstance(missing, Finding) else (required.create_finding() for required in missing)
    yield from (finding.message for finding in findings)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param(CHART, "Chart.yaml", id="metadata"),
        pytest.param(CHART, "charts/db/Chart.yaml", id="metadata-of-a-subchart"),
        pytest.param(LOCK, "Chart.lock", id="lock"),
        pytest.param(VALUES, "values.yaml", id="values"),
    ],
)
def test_files_of_charts(document: Document, path: str) -> None:
    accepted, _ = read_all(lambda content: iterate_chart_texts({path: File(content)}), iterate_yaml(document))
    assert accepted > 50


KUSTOMIZATION: Document = {
    "resources": ["base", "a.yaml"], "components": ["part"], "transformers": ["function.yaml"],
    "generators": ["apiVersion: builtin\nkind: x\n"], "helmGlobals": {"chartHome": "charts"},
    "helmCharts": [{"name": "web", "version": "1.0.0", "repo": "https://x/c", "valuesFile": "values.yaml", "additionalValuesFiles": ["a"]}],
    "patches": [{"path": "p.yaml"}], "configMapGenerator": [{"name": "x", "files": ["a=b"]}],
}  # fmt: skip
FUNCTION = {"apiVersion": "builtin", "kind": "x", "metadata": {"annotations": {"config.kubernetes.io/function": "x"}}}


def iterate_overlay_texts(files: dict[str, File]) -> Iterator[str]:
    empty = File(b"{}\n")
    tree = FileTree(
        {
            "kustomization.yaml": dump(KUSTOMIZATION), "function.yaml": dump(FUNCTION), "values.yaml": empty, "a.yaml": empty,
            "base/kustomization.yaml": empty, "part/kustomization.yaml": empty, **files,
        }
    )  # fmt: skip
    for charts in (None, REQUEST):
        yield from (finding.message for finding in check_overlay(tree, KustomizeRequest(charts=charts)))
    yield str(detect_source_kind(tree))


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize(
    ("document", "path"),
    [pytest.param(KUSTOMIZATION, "kustomization.yaml", id="kustomization"), pytest.param(FUNCTION, "function.yaml", id="function")],
)  # fmt: skip
def test_files_of_overlays(document: Document, path: str) -> None:
    accepted, refused = read_all(lambda content: iterate_overlay_texts({path: File(content)}), iterate_yaml(document))
    assert (accepted > 100, refused) == (True, 0)


ENCRYPTED = "ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]"
SECRET: Document = {
    "apiVersion": "v1", "kind": "Secret",
    "metadata": {"name": "x", "namespace": "n", "generateName": "y", "annotations": {"helm.sh/hook": "pre-install"}},
    "data": {"a": "YWJjZA=="}, "stringData": {"b": "secret"},
}  # fmt: skip
SOPS: Document = {
    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": ENCRYPTED},
    "sops": {"mac": ENCRYPTED, "lastmodified": "2001-01-01T00:00:00Z", "encrypted_regex": "^a$", "mac_only_encrypted": True},
}  # fmt: skip


def iterate_output_texts(content: bytes) -> Iterator[str]:
    texts = split_output(f"# Source: web/templates/a.yaml\n{content.decode()}", "web")
    for request in (REQUEST, KustomizeRequest()):
        package = read_output(texts, "chart web 1.0.0", request, OutputRules(1_000, is_strict=False))
        yield from (finding.message for finding in build_rendered_source(package).findings)
    yield from collect_secret_values(texts)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize(
    "document",
    [
        pytest.param(SECRET, id="secret"),
        pytest.param({"apiVersion": "v1", "kind": "List", "items": [SECRET]}, id="list"),
        pytest.param(SOPS, id="sops"),
    ],
)
def test_rendered_resources(document: Document) -> None:
    accepted, refused = read_all(iterate_output_texts, iterate_yaml(document))
    assert (accepted > 100, refused) == (True, 0)


@pytest.mark.parametrize("annotation", ["é", "QUJ", "QUJD\n", "\ud800", 5, None, ["QUJD"], {"a": "QUJD"}])
def test_signature_that_is_no_base64_is_skipped(annotation: object) -> None:
    """The next signature is read, because each person who may push to the registry can add a signature."""
    other = {**LAYER, "annotations": {**SIGNATURE, "dev.cosignproject.cosign/signature": annotation}}
    found = list(cosign.parse_signatures(json.dumps({"layers": [other, LAYER]}).encode()))
    assert [signature.signature for signature in found] == [b"ABC"]


@pytest.mark.parametrize("predicate", [["x"], {"a": "b"}, 5, "https://slsa.dev/provenance/v1"])
def test_bundle_with_another_purpose_is_skipped(predicate: object) -> None:
    descriptor = {"artifactType": sigstore_bundle.BUNDLE_TYPE, "digest": DIGEST}
    other = {**descriptor, "annotations": {"dev.sigstore.bundle.predicateType": predicate}}
    assert list(sigstore_bundle.select_bundle_manifests([other, descriptor])) == [DIGEST]


@pytest.mark.parametrize("field", ["logIndex", "integratedTime"])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, "x", None])
def test_log_entry_with_an_invalid_number(field: str, value: object) -> None:
    payload = {"logIndex": 1, "logID": "aabb", "integratedTime": 5, "body": "x", field: value}
    entry = json.dumps({"SignedEntryTimestamp": "QUJD", "Payload": payload})
    signature = cosign.CosignSignature(b"x", DIGEST, CERTIFICATE, entry)
    assert keyless._build_bundle(signature, b"payload") is None
