"""Names say why they will not do."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.krm.names import (
    annotation_key_fault,
    dns_label_fault,
    dns_subdomain_fault,
    label_key_fault,
    label_value_fault,
    package_path_fault,
    ref_name_fault,
    segment_fault,
    tree_path_fault,
    workspace_fault,
)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        pytest.param(dns_label_fault, "a", id="one-letter-label"),
        pytest.param(dns_label_fault, "0-9", id="label-of-digits"),
        pytest.param(dns_label_fault, "a" * 63, id="longest-label"),
        pytest.param(dns_subdomain_fault, "a.b-c.d", id="subdomain"),
        pytest.param(dns_subdomain_fault, ".".join(["a" * 50] * 4), id="long-subdomain"),
        pytest.param(label_key_fault, "tier", id="bare-label-key"),
        pytest.param(label_key_fault, "acme.example/Tier_1.x", id="prefixed-label-key"),
        pytest.param(label_value_fault, "", id="empty-label-value"),
        pytest.param(label_value_fault, "v1.2_3-x", id="label-value"),
        pytest.param(annotation_key_fault, "Approval.nephio.org/policy", id="annotation-prefix-in-capitals"),
        pytest.param(package_path_fault, "blueprints/net/uplink-2", id="nested-package-path"),
        pytest.param(workspace_fault, "v3.0.0-rc.1", id="workspace-of-a-tag"),
        pytest.param(workspace_fault, "packagevariant-12", id="our-workspace"),
        pytest.param(ref_name_fault, "drafts/eu-1/gateway", id="ref-with-folders"),
        pytest.param(ref_name_fault, "a" * 245, id="longest-ref-segment"),
    ],
)
def test_sound_names(question, name) -> None:
    assert question(name) is None


@pytest.mark.parametrize(
    ("question", "name", "why"),
    [
        pytest.param(dns_label_fault, "", "must be lower-case", id="empty-label"),
        pytest.param(dns_label_fault, "a" * 64, "at most 63", id="label-too-long"),
        pytest.param(dns_label_fault, "A", "lower-case", id="label-in-capitals"),
        pytest.param(dns_label_fault, "-a", "start and end", id="label-starts-with-a-dash"),
        pytest.param(dns_label_fault, "a\n", "lower-case", id="label-with-newline"),
        pytest.param(dns_subdomain_fault, "a..b", "joined by single", id="subdomain-with-an-empty-part"),
        pytest.param(dns_subdomain_fault, "a" * 254, "at most 253", id="subdomain-too-long"),
        pytest.param(label_key_fault, "A_B/x", "prefix", id="label-key-prefix"),
        pytest.param(label_key_fault, "/x", "prefix", id="label-key-empty-prefix"),
        pytest.param(label_key_fault, "x/", "name part", id="label-key-without-name"),
        pytest.param(label_key_fault, "a/b/c", "prefix", id="label-key-with-two-slashes"),
        pytest.param(label_key_fault, "k" * 64, "at most 63", id="label-key-too-long"),
        pytest.param(label_value_fault, "-x", "start and end", id="label-value-starts-with-a-dash"),
        pytest.param(label_value_fault, "v" * 64, "at most 63", id="label-value-too-long"),
        pytest.param(annotation_key_fault, "a b", "name part", id="annotation-key-with-blank"),
        pytest.param(package_path_fault, "", "lower-case", id="empty-path"),
        pytest.param(package_path_fault, "/a", '""', id="leading-slash"),
        pytest.param(package_path_fault, "a/", '""', id="trailing-slash"),
        pytest.param(package_path_fault, "a//b", '""', id="double-slash"),
        pytest.param(package_path_fault, "a/../b", '".."', id="climbing-out"),
        pytest.param(package_path_fault, "a/.git", '".git"', id="gits-own-folder"),
        pytest.param(workspace_fault, "", "start with", id="empty-workspace"),
        pytest.param(workspace_fault, "a/b", "letters", id="workspace-with-a-slash"),
        pytest.param(workspace_fault, "a..b", "Git refuses", id="workspace-with-two-dots"),
        pytest.param(workspace_fault, "x.lock", ".lock", id="workspace-like-a-lock-file"),
        pytest.param(ref_name_fault, "-x", "Git refuses", id="ref-like-an-option"),
        pytest.param(ref_name_fault, "@", "Git refuses", id="ref-at"),
        pytest.param(ref_name_fault, "a/x.lock/b", ".lock", id="ref-lock-in-the-middle"),
        pytest.param(ref_name_fault, "a/.b", "start or end", id="ref-segment-with-a-dot-first"),
        pytest.param(ref_name_fault, "a b", "Git refuses", id="ref-with-blank"),
        pytest.param(ref_name_fault, "a" * 246, "at most 245", id="ref-segment-too-long"),
        pytest.param(segment_fault, "A/b", "lower-case", id="segment-with-a-slash"),
        pytest.param(segment_fault, "x.lock", ".lock", id="segment-like-a-lock-file"),
        pytest.param(segment_fault, "a" * 246, "at most 245", id="segment-too-long-for-a-ref"),
    ],
)
def test_faults(question, name: str, why: str) -> None:
    assert why in (question(name) or "")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab./-@{}~^: \\*[?\x01", min_size=1, max_size=8))
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_takes_every_ref_name_we_take(name: str) -> None:
    """Never looser than `git check-ref-format`."""
    if ref_name_fault(name) is None:
        taken = subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], check=False)

        assert taken.returncode == 0


@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param("a/b.yaml", "", id="plain"),
        pytest.param("a/.gitignore", "", id="begins-like-dot-git"),
        pytest.param("a/../b", "dot segments", id="upwards"),
        pytest.param("/a", "dot segments", id="absolute"),
        pytest.param("a/.Git/config", "into a .git", id="dot-git"),
    ],
)
def test_tree_path_fault(path: str, why: str) -> None:
    fault = tree_path_fault(path)

    assert (fault is None) == (why == "")
    assert why in (fault or "")
