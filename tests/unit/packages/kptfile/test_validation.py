"""Tests of the validation of Kptfiles with valid YAML."""

from __future__ import annotations

import pytest

from reconciler.packages.kptfile import Kptfile, read_kptfile, validate_kptfile

HEAD = "apiVersion: kpt.dev/v1\nkind: Kptfile\n"


def parse_kptfile(text: str) -> Kptfile:
    kptfile = read_kptfile(text.encode())
    assert isinstance(kptfile, Kptfile)
    return kptfile


def format_kptfile_with_function(text: str) -> str:
    return f"{HEAD}pipeline:\n  mutators:\n  - {text}\n"


@pytest.mark.parametrize(
    ("text", "pointers"),
    [
        pytest.param(f"{HEAD}pipeline: {{}}\n", [], id="empty-pipeline"),
        pytest.param(f"{HEAD}pipeline:\n  mutators:\n", [], id="null-list"),
        pytest.param(format_kptfile_with_function("image: set-labels:v1"), [], id="short-image"),
        pytest.param(
            format_kptfile_with_function("image: reg.example.com:5000/a/b_c/d:v1.2@sha256:" + "a" * 64),
            [],
            id="full-image",
        ),
        pytest.param(format_kptfile_with_function("exec: sed -e s/a/b/"), [], id="exec"),
        pytest.param(
            format_kptfile_with_function("{image: a, configMap: {replicas: 3, flag: true}}"),
            [],
            id="scalars-in-config-map",
        ),
        pytest.param(
            format_kptfile_with_function("image: patch@_@strategic-merge"), ["image"], id="no-image-reference"
        ),
        pytest.param(format_kptfile_with_function("image: Upper/Case"), ["image"], id="upper-case-image"),
        pytest.param(format_kptfile_with_function("{image: a, exec: b}"), [""], id="image-and-exec"),
        pytest.param(format_kptfile_with_function("name: a"), [""], id="neither-image-nor-exec"),
        pytest.param(
            format_kptfile_with_function("{image: a, configPath: b, configMap: {c: d}}"), [""], id="two-configurations"
        ),
        pytest.param(
            format_kptfile_with_function("{image: a, configPath: ''}"), ["configPath"], id="empty-config-path"
        ),
        pytest.param(
            format_kptfile_with_function("{image: a, configPath: /etc/passwd}"),
            ["configPath"],
            id="absolute-config-path",
        ),
        pytest.param(
            format_kptfile_with_function("{image: a, configPath: a/b/../../../c.yaml}"),
            ["configPath"],
            id="config-path-escapes",
        ),
        pytest.param(
            format_kptfile_with_function("{image: a, configPath: a/.../c.yaml}"), ["configPath"], id="three-dots"
        ),
        pytest.param(
            format_kptfile_with_function("{image: a, configPath: a/../c.yaml}"), [], id="dots-that-stay-inside"
        ),
        pytest.param(format_kptfile_with_function("{image: a, condition: 'true'}"), ["condition"], id="condition"),
    ],
)
def test_validate_kptfile(text: str, pointers: list[str]) -> None:
    findings = validate_kptfile(parse_kptfile(text))

    expected = [f"pipeline.mutators[0].{pointer}".rstrip(".") for pointer in pointers]
    assert [finding.location.pointer for finding in findings] == expected


def test_unknown_fields_are_accepted_in_safe_and_refused_in_compat() -> None:
    kptfile = parse_kptfile(f"{HEAD}extra: 1\npipeline:\n  mutators:\n  - {{image: a, targets: []}}\n")

    assert validate_kptfile(kptfile) == ()
    pointers = [finding.location.pointer for finding in validate_kptfile(kptfile, profile="compat")]
    assert pointers == ["extra", "pipeline.mutators[0].targets"]
