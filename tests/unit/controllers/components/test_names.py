"""Tests of derived names: addon keys, kinds and CRD names."""

from __future__ import annotations

import pytest

from reconciler.controllers.components.names import (
    derive_addon_key,
    derive_crd_name,
    derive_kind,
    pluralize_kind,
    to_camel_case,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("config-files", "configFiles", id="hyphen"),
        pytest.param("tls-certificate", "tlsCertificate", id="first-part-stays"),
        pytest.param("oauth2-proxy", "oauth2Proxy", id="digit"),
        pytest.param("log.shipper_two", "logShipperTwo", id="dots-and-underscores"),
        pytest.param("with-eXtra", "withEXtra", id="only-the-first-letter"),
        pytest.param("a--b", "aB", id="nothing-between"),
        pytest.param("plain", "plain", id="one-part"),
    ],
)
def test_camel_case(name: str, expected: str) -> None:
    assert to_camel_case(name) == expected


@pytest.mark.parametrize(
    ("name", "key"),
    [
        pytest.param("log-shipper", "logShipper", id="key"),
        pytest.param("3scale", None, id="begins-with-a-digit"),
        pytest.param("", None, id="empty"),
        pytest.param("größe", None, id="other-letters"),
    ],
)
def test_key_of_an_addon(name: str, key: str | None) -> None:
    assert derive_addon_key(name) == key


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("production-web-app", "ProductionWebApp", id="parts"),
        pytest.param("worker", "Worker", id="one-part"),
        pytest.param("3d-render", None, id="begins-with-a-digit"),
        pytest.param("a" * 64, None, id="longer-than-a-label"),
    ],
)
def test_kind_of_a_type(name: str, kind: str | None) -> None:
    assert derive_kind(name) == kind


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("EdgeGate", "edgegates", id="s"),
        pytest.param("Bus", "buses", id="ends-in-s"),
        pytest.param("Box", "boxes", id="ends-in-x"),
        pytest.param("Quiz", "quizes", id="ends-in-z"),
        pytest.param("Branch", "branches", id="ends-in-ch"),
        pytest.param("Mesh", "meshes", id="ends-in-sh"),
        pytest.param("Proxy", "proxies", id="consonant-and-y"),
        pytest.param("Gateway", "gateways", id="vowel-and-y"),
        pytest.param("Y", "ys", id="y-alone"),
    ],
)
def test_plural_of_a_kind(kind: str, expected: str) -> None:
    assert pluralize_kind(kind) == expected


def test_crd_name_contains_plural_and_group() -> None:
    assert derive_crd_name("Proxy", "apps.example.org") == "proxies.apps.example.org"
