"""Tests of the rules that change documents: override policies, templates and injection keep SOPS documents usable."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.api.porch.package_variant import Injector
from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.override_policies.resource_overrides import OverriddenResource
from reconciler.controllers.package_variants.injection import inject_config
from reconciler.controllers.resource_findings import find_secrets
from reconciler.krm.json_pointer import format_pointer
from tests.support.sops import ciphertext, seal_text
from tests.unit.controllers.kafka_templates.template_builders import format_codes, kafka, merge, pool
from tests.unit.controllers.override_policies.override_world import (
    CLUSTER_LABEL,
    HERE,
    POLICY,
    build_policy,
    build_rules,
    list_codes,
    override_package,
    override_resource,
    read_policies,
    read_resource,
)

DATA_ONLY = "encrypted_regex: ^(data|stringData)$"
MAC_ONLY = "mac_only_encrypted: true"
BODY = f"""\
apiVersion: v1
kind: Secret
metadata:
  name: db
  labels:
    app: shop # the owner
    {CLUSTER_LABEL}: {POLICY}
data:
  password: {ciphertext("password")}
"""
SEALED = """\
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata:
  name: db
  labels: {kubeadmiral.io/cluster-override-policy-name: tuning}
  annotations: {sealedsecrets.bitnami.com/cluster-wide: "true", note: "x"}
"""


def override(text: str, **overrider: Any) -> OverriddenResource:
    """Return a resource after a policy with one overrider for all clusters."""
    policies = read_policies(build_policy(build_rules({key: [item] for key, item in overrider.items()})))
    assert policies.findings == ()
    return override_resource(read_resource(text), policies, HERE)


def set_field(path: str, value: object) -> dict[str, object]:
    return {"operator": "set", "path": path, "value": value}


POINTERS = {
    "label": "/metadata/labels/team",
    "annotation": "/metadata/annotations/team",
    "plaintext": "/type",
    "encrypted": "/data/password",
    "new-value": "/data/more",
    "metadata": "/sops/version",
    "removal": "/data/password",
}
OVERRIDERS: dict[str, dict[str, Any]] = {
    "label": {"labels": {"operator": "addIfAbsent", "value": {"team": "a"}}},
    "annotation": {"annotations": {"operator": "addIfAbsent", "value": {"team": "a"}}},
    "plaintext": {"jsonpatch": set_field("/type", "Opaque")},
    "encrypted": {"jsonpatch": set_field("/data/password", "cGxhaW4=")},
    "new-value": {"jsonpatch": set_field("/data/more", "cGxhaW4=")},
    "metadata": {"jsonpatch": set_field("/sops/version", "4")},
    "removal": {"jsonpatch": {"operator": "remove", "path": "/data/password"}},
}


@pytest.mark.parametrize("name", OVERRIDERS)
@pytest.mark.parametrize("is_mac_only", [False, True], ids=["whole-mac", "mac-only"])
def test_overriders(name: str, is_mac_only: bool) -> None:
    text = seal_text(BODY, DATA_ONLY, *([MAC_ONLY] if is_mac_only else []))
    result = override(text, **OVERRIDERS[name])
    is_applied = is_mac_only and name in ("label", "annotation", "plaintext")

    errors = [] if is_applied else [("SopsMacBroken", POINTERS[name])]
    assert [(finding.code, finding.location.pointer) for finding in result.findings] == errors

    assert (result.document.text == text) is not is_applied
    if is_applied:
        assert "app: shop # the owner" in result.document.text
        assert CLUSTER_LABEL not in result.document.text
    else:
        [finding] = result.findings
        assert finding.location.pointer.startswith(("/metadata", "/type", "/data", "/sops"))
        assert "ClusterOverridePolicy/tuning spec.overrideRules[0]" in finding.message
        assert "cGxhaW4" not in finding.message


@pytest.mark.parametrize(("rules", "is_stripped"), [((DATA_ONLY,), False), ((DATA_ONLY, MAC_ONLY), True)])
def test_control_labels_stay_if_the_mac_covers_them(rules: tuple[str, ...], is_stripped: bool) -> None:
    text = seal_text(BODY, *rules)
    files = FileTree({"s.yaml": File(text.encode())})
    elsewhere = {"targetClusters": {"clusters": ["other"]}, "overriders": OVERRIDERS["label"]}
    policies = read_policies(build_policy([{**elsewhere, "overriders": {"labels": [OVERRIDERS["label"]["labels"]]}}]))
    result = override_package(files, policies, HERE)
    assert result.findings == ()
    assert (CLUSTER_LABEL not in result.files["s.yaml"].data.decode()) is is_stripped


@pytest.mark.parametrize("text_format", ["yaml", "json"])
def test_document_in_a_string(text_format: str) -> None:
    inner: Mapping[str, Any] = {
        "a": ciphertext("a"), "b_unencrypted": "x", "sops": {"mac": ciphertext("mac"), "lastmodified": "2026"},
    }  # fmt: skip
    outer = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  labels: {{{CLUSTER_LABEL}: {POLICY}}}\ndata:\n"
    text = f"{outer}  f: {json.dumps(json.dumps(inner))}\n"
    result = override(text, fields={"fieldPath": "/data/f", text_format: [{"subPath": "/b_unencrypted", "value": "y"}]})
    assert list_codes(result.findings) == ["SopsMacBroken"]
    assert "a SOPS document, which must not change at /b_unencrypted" in result.findings[0].message


@pytest.mark.parametrize(
    ("overrider", "expected"),
    [
        ({"annotations": {"operator": "overwrite", "value": {"note": "y"}}}, []),
        (
            {"annotations": {"operator": "delete", "value": {"sealedsecrets.bitnami.com/cluster-wide": ""}}},
            ["SealedSecretScope"],
        ),
    ],
    ids=["other-annotation", "scope"],
)
def test_scope_of_sealed_secrets(overrider: dict[str, Any], expected: list[str]) -> None:
    assert list_codes(override(SEALED, **overrider).findings) == expected


def test_message_about_a_changed_scope_of_a_sealed_secret() -> None:
    item = {"operator": "delete", "value": {"sealedsecrets.bitnami.com/cluster-wide": ""}}

    (finding,) = override(SEALED, annotations=item).findings

    start = (
        'ClusterOverridePolicy/tuning changes the scope of the SealedSecret from the whole cluster to the name "db" in'
    )
    assert finding.message.startswith(start)
    assert "exclude the SealedSecret from the policy" in finding.message
    assert finding.location.pointer == "/metadata/annotations"


@pytest.mark.parametrize("is_mac_only", [False, True], ids=["whole-mac", "mac-only"])
def test_templates(is_mac_only: bool) -> None:
    parent = kafka({"pod": {"priorityClassName": "high"}})
    child = seal_text(pool(), "encrypted_regex: ^secret$", *([MAC_ONLY] if is_mac_only else []))
    package = merge({"kafka.yaml": parent, "pool.yaml": child})
    text = package.files["pool.yaml"].data.decode()

    assert format_codes(package.findings) == ([] if is_mac_only else ["E SopsMacBroken"])
    assert ("priorityClassName: high" in text) is is_mac_only
    assert (text == child) is not is_mac_only


@pytest.mark.parametrize("suffix", ["yaml", "json"])
@pytest.mark.parametrize(
    ("rules", "is_injected"),
    [
        ({"encrypted_regex": "^data$", "mac_only_encrypted": True}, False),
        ({"encrypted_regex": "^secret$", "mac_only_encrypted": True}, True),
        ({"encrypted_regex": "^secret$"}, False),
    ],
    ids=["encrypted", "plaintext", "whole-mac"],
)
def test_injection(suffix: str, rules: dict[str, Any], is_injected: bool) -> None:
    point = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "site", "annotations": {"kpt.dev/config-injection": "optional"}},
        "data": {"region": "none"},
        "sops": {"mac": ciphertext("mac"), "lastmodified": "2026", **rules},
    }
    files = {
        "Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n",
        f"s.{suffix}": json.dumps(point),
    }
    source = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: berlin\ndata:\n  region: north\n"
    catalog = read_catalog(FileTree({"o.yaml": File(source.encode())}))

    tree = FileTree({path: File(text.encode()) for path, text in files.items()})
    result = inject_config(tree, [Injector(name="berlin")], "default", CatalogView(DependencyReader(catalog)))

    assert ("north" in result.files[f"s.{suffix}"].data.decode()) is is_injected
    assert [finding.code for finding in result.findings if finding.severity == "error"] == (
        [] if is_injected else ["SopsMacBroken"]
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (ciphertext("a"), []),
        (base64.b64encode(b"plain").decode(), ["/data"]),
        (f"{ciphertext('a')}\n  other: cGxhaW4=", ["/data"]),
    ],
    ids=["encrypted", "plain", "mixed"],
)
def test_encrypted_values_are_allowed_in_a_branch(data: str, expected: list[str]) -> None:
    text = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  password: {data}\n"
    sealed, plain = (FileTree({"s.yaml": File(content.encode())}) for content in (seal_text(text), text))
    assert [finding.location.pointer for finding in find_secrets(sealed, block=False)] == expected
    assert len(find_secrets(plain, block=True)) == 1


def test_format_pointer_escapes_keys() -> None:
    text = seal_text(BODY.replace("    app:", "    a/b: c\n    app:"), DATA_ONLY)
    result = override(text, jsonpatch=set_field("/metadata/labels/a~1b", "d"))
    assert result.findings[0].location.pointer == format_pointer(("metadata", "labels", "a/b"))
