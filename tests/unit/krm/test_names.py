"""Tests of name validation: each refused name has a reason."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.krm.names import (
    validate_annotation_key,
    validate_dns_label,
    validate_dns_subdomain,
    validate_label_key,
    validate_label_value,
    validate_name_segment,
    validate_package_path,
    validate_ref_name,
    validate_tree_path,
    validate_workspace_name,
)
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("question", "name"),
    [
        pytest.param(validate_dns_label, "a", id="one-letter-label"),
        pytest.param(validate_dns_label, "0-9", id="label-of-digits"),
        pytest.param(validate_dns_label, "a" * 63, id="longest-label"),
        pytest.param(validate_dns_subdomain, "a.b-c.d", id="subdomain"),
        pytest.param(validate_dns_subdomain, ".".join(["a" * 50] * 4), id="long-subdomain"),
        pytest.param(validate_label_key, "tier", id="bare-label-key"),
        pytest.param(validate_label_key, "acme.example/Tier_1.x", id="prefixed-label-key"),
        pytest.param(validate_label_value, "", id="empty-label-value"),
        pytest.param(validate_label_value, "v1.2_3-x", id="label-value"),
        pytest.param(validate_annotation_key, "Approval.nephio.org/policy", id="annotation-prefix-in-capitals"),
        pytest.param(validate_package_path, "blueprints/net/uplink-2", id="nested-package-path"),
        pytest.param(validate_workspace_name, "v3.0.0-rc.1", id="workspace-of-a-tag"),
        pytest.param(validate_workspace_name, "packagevariant-12", id="our-workspace"),
        pytest.param(validate_ref_name, "drafts/eu-1/gateway", id="ref-with-folders"),
        pytest.param(validate_ref_name, "a" * 245, id="longest-ref-segment"),
    ],
)
def test_valid_names(question, name) -> None:
    assert question(name) is None


@pytest.mark.parametrize(
    ("question", "name", "why"),
    [
        pytest.param(validate_dns_label, "", "must contain only lower-case", id="empty-label"),
        pytest.param(validate_dns_label, "a" * 64, "at most 63", id="label-too-long"),
        pytest.param(validate_dns_label, "A", "lower-case", id="label-in-capitals"),
        pytest.param(validate_dns_label, "-a", "start and end", id="label-starts-with-a-dash"),
        pytest.param(validate_dns_label, "a\n", "lower-case", id="label-with-newline"),
        pytest.param(
            validate_dns_subdomain,
            "a..b",
            "each part between dots must start and end with",
            id="subdomain-with-an-empty-part",
        ),
        pytest.param(validate_dns_subdomain, "a" * 254, "at most 253", id="subdomain-too-long"),
        pytest.param(validate_label_key, "A_B/x", "prefix", id="label-key-prefix"),
        pytest.param(validate_label_key, "/x", "prefix", id="label-key-empty-prefix"),
        pytest.param(validate_label_key, "x/", "name part", id="label-key-without-name"),
        pytest.param(validate_label_key, "a/b/c", "prefix", id="label-key-with-two-slashes"),
        pytest.param(validate_label_key, "k" * 64, "at most 63", id="label-key-too-long"),
        pytest.param(validate_label_value, "-x", "start and end", id="label-value-starts-with-a-dash"),
        pytest.param(validate_label_value, "v" * 64, "at most 63", id="label-value-too-long"),
        pytest.param(validate_annotation_key, "a b", "name part", id="annotation-key-with-blank"),
        pytest.param(validate_package_path, "", "lower-case", id="empty-path"),
        pytest.param(validate_package_path, "/a", '""', id="leading-slash"),
        pytest.param(validate_package_path, "a/", '""', id="trailing-slash"),
        pytest.param(validate_package_path, "a//b", '""', id="double-slash"),
        pytest.param(validate_package_path, "a/../b", '".."', id="climbing-out"),
        pytest.param(validate_package_path, "a/.git", '".git"', id="gits-own-folder"),
        pytest.param(validate_workspace_name, "", "start with", id="empty-workspace"),
        pytest.param(validate_workspace_name, "a/b", "letters", id="workspace-with-a-slash"),
        pytest.param(validate_workspace_name, "a..b", "Git does not allow", id="workspace-with-two-dots"),
        pytest.param(validate_workspace_name, "x.lock", ".lock", id="workspace-like-a-lock-file"),
        pytest.param(validate_ref_name, "-x", "Git does not allow", id="ref-like-an-option"),
        pytest.param(validate_ref_name, "@", "Git does not allow", id="ref-at"),
        pytest.param(validate_ref_name, "a/x.lock/b", ".lock", id="ref-lock-in-the-middle"),
        pytest.param(validate_ref_name, "a/.b", "start or end", id="ref-segment-with-a-dot-first"),
        pytest.param(validate_ref_name, "a b", "Git does not allow", id="ref-with-blank"),
        pytest.param(validate_ref_name, "a" * 246, "at most 245", id="ref-segment-too-long"),
        pytest.param(validate_name_segment, "A/b", "lower-case", id="segment-with-a-slash"),
        pytest.param(validate_name_segment, "x.lock", ".lock", id="segment-like-a-lock-file"),
        pytest.param(validate_name_segment, "a" * 246, "at most 245", id="segment-too-long-for-a-ref"),
    ],
)
def test_invalid_names(question, name: str, why: str) -> None:
    assert why in (question(name) or "")


@settings(max_examples=examples(60), deadline=None)
@given(st.text(alphabet="ab./-@{}~^: \\*[?\x01", min_size=1, max_size=8))
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_valid_ref_names_are_valid_in_git(name: str) -> None:
    """The validation is at least as strict as `git check-ref-format`."""
    if validate_ref_name(name) is None:
        process = subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], check=False)

        assert process.returncode == 0


@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param("a/b.yaml", "", id="plain"),
        pytest.param("a/.gitignore", "", id="begins-like-dot-git"),
        pytest.param("a/../b", "without empty segments", id="upwards"),
        pytest.param("/a", "without empty segments", id="absolute"),
        pytest.param("a/.Git/config", 'segment ".git', id="dot-git"),
    ],
)
def test_validate_tree_path(path: str, why: str) -> None:
    fault = validate_tree_path(path)

    assert (fault is None) == (why == "")
    assert why in (fault or "")
