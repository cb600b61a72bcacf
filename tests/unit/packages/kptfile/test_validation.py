"""Validation of Kptfiles that can be read."""

from __future__ import annotations

import pytest

from reconciler.packages.kptfile import Kptfile, read_kptfile, validate_kptfile

HEAD = "apiVersion: kpt.dev/v1\nkind: Kptfile\n"


def read(text: str) -> Kptfile:
    kptfile = read_kptfile(text.encode())
    assert isinstance(kptfile, Kptfile)
    return kptfile


def function_of(text: str) -> str:
    return f"{HEAD}pipeline:\n  mutators:\n  - {text}\n"


@pytest.mark.parametrize(
    ("text", "pointers"),
    [
        pytest.param(f"{HEAD}pipeline: {{}}\n", [], id="empty-pipeline"),
        pytest.param(f"{HEAD}pipeline:\n  mutators:\n", [], id="null-list"),
        pytest.param(function_of("image: set-labels:v1"), [], id="short-image"),
        pytest.param(function_of("image: reg.example.com:5000/a/b_c/d:v1.2@sha256:" + "a" * 64), [], id="full-image"),
        pytest.param(function_of("exec: sed -e s/a/b/"), [], id="exec"),
        pytest.param(function_of("{image: a, configMap: {replicas: 3, flag: true}}"), [], id="scalars-in-config-map"),
        pytest.param(function_of("image: patch@_@strategic-merge"), ["image"], id="no-image-reference"),
        pytest.param(function_of("image: Upper/Case"), ["image"], id="upper-case-image"),
        pytest.param(function_of("{image: a, exec: b}"), [""], id="image-and-exec"),
        pytest.param(function_of("name: a"), [""], id="neither-image-nor-exec"),
        pytest.param(function_of("{image: a, configPath: b, configMap: {c: d}}"), [""], id="two-configurations"),
        pytest.param(function_of("{image: a, configPath: ''}"), ["configPath"], id="empty-config-path"),
        pytest.param(function_of("{image: a, configPath: /etc/passwd}"), ["configPath"], id="absolute-config-path"),
        pytest.param(
            function_of("{image: a, configPath: a/b/../../../c.yaml}"), ["configPath"], id="config-path-escapes"
        ),
        pytest.param(function_of("{image: a, configPath: a/.../c.yaml}"), ["configPath"], id="three-dots"),
        pytest.param(function_of("{image: a, configPath: a/../c.yaml}"), [], id="dots-that-stay-inside"),
        pytest.param(function_of("{image: a, condition: 'true'}"), ["condition"], id="condition"),
    ],
)
def test_validate_kptfile(text: str, pointers: list[str]) -> None:
    findings = validate_kptfile(read(text))

    expected = [f"pipeline.mutators[0].{pointer}".rstrip(".") for pointer in pointers]
    assert [finding.location.pointer for finding in findings] == expected


def test_unknown_fields_are_kept_in_safe_and_refused_in_compat() -> None:
    kptfile = read(f"{HEAD}extra: 1\npipeline:\n  mutators:\n  - {{image: a, targets: []}}\n")

    assert validate_kptfile(kptfile) == ()
    pointers = [finding.location.pointer for finding in validate_kptfile(kptfile, profile="compat")]
    assert pointers == ["extra", "pipeline.mutators[0].targets"]
