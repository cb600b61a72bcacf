"""Tests of Kptfiles: invalid files, and edits that change nothing else."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from reconciler.krm.objects import Condition
from reconciler.packages.kptfile import Kptfile, create_kptfile, read_kptfile

HEAD = "apiVersion: kpt.dev/v1\nkind: Kptfile\n"
COMMENTED = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: base # the name
  annotations:
    owner: "team a"   # who to ask
upstream:
  type: git
  git:
    repo: https://example.com/old.git
    directory: old
    ref: v1
  updateStrategy: fast-forward
info:
  description: keep me # please
pipeline:
  # first of all
  mutators:
    - image: example.com/set-labels:v0.2.0 # pinned
      configMap:
        tier: "web"
custom:
  unknown: [1, 2]
"""


def parse_kptfile(text: str) -> Kptfile:
    kptfile = read_kptfile(text.encode())
    assert isinstance(kptfile, Kptfile)
    return kptfile


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        pytest.param("a: [", "KptfileSyntax", "the Kptfile cannot be parsed: ", id="not-yaml"),
        pytest.param("", "KptfileSyntax", "exactly one YAML document", id="empty"),
        pytest.param(f"{HEAD}---\n{HEAD}", "KptfileSyntax", "exactly one YAML document", id="two-documents"),
        pytest.param("- 1\n", "KptfileSyntax", "a mapping", id="a-list"),
        pytest.param(
            "apiVersion: kpt.dev/v1alpha2\nkind: Kptfile\n", "KptfileDeprecated", '"kpt.dev/v1alpha2"', id="v1alpha2"
        ),
        pytest.param(
            "apiVersion: kpt.dev/v1alpha1\nkind: Kptfile\n", "KptfileDeprecated", '"kpt.dev/v1alpha1"', id="v1alpha1"
        ),
        pytest.param("apiVersion: v1\nkind: ConfigMap\n", "KptfileUnknown", '"v1" and "ConfigMap"', id="another-kind"),
        pytest.param(
            f"{HEAD}pipeline:\n  mutators:\n  - image: a\n    configMap: {{a: [1]}}\n",
            "KptfileInvalid",
            "pipeline.mutators[0].configMap.a",
            id="list-in-config-map",
        ),
        pytest.param(f"{HEAD}pipeline: []\n", "KptfileInvalid", "pipeline", id="pipeline-is-a-list"),
        pytest.param(
            f"{HEAD}upstream: {{updateStrategy: magic}}\n", "KptfileInvalid", "upstream.updateStrategy", id="strategy"
        ),
        pytest.param(
            f"{HEAD}status: {{conditions: [{{type: A, status: yes please}}]}}\n",
            "KptfileInvalid",
            "status.conditions[0].status",
            id="condition-status",
        ),
    ],
)
def test_invalid_kptfile_has_a_finding(text: str, code: str, part: str) -> None:
    findings = read_kptfile(text.encode(), "pkg/Kptfile")

    assert isinstance(findings, tuple)
    assert [finding.code for finding in findings] == [code]
    assert part in findings[0].message
    assert findings[0].location.file == "pkg/Kptfile"


def test_finding_contains_its_line() -> None:
    findings = read_kptfile(f"{HEAD}pipeline:\n  mutators:\n  - image: a\n    configMap:\n      a: [1]\n".encode())

    assert isinstance(findings, tuple)
    assert (findings[0].location.line, findings[0].location.pointer) == (7, "pipeline.mutators[0].configMap.a")


def test_typed_views() -> None:
    kptfile = parse_kptfile(COMMENTED)

    assert kptfile.name == "base"
    assert kptfile.upstream is not None
    assert kptfile.upstream.git is not None
    assert (kptfile.upstream.git.ref, kptfile.upstream.update_strategy) == ("v1", "fast-forward")
    assert kptfile.upstream_lock is None
    assert [spec.display_name for spec in kptfile.pipeline.mutators] == ["example.com/set-labels:v0.2.0"]


@pytest.mark.parametrize(
    ("edit", "changed"),
    [
        pytest.param(lambda k: k.with_name("base"), {}, id="same-name-changes-nothing"),
        pytest.param(lambda k: k.with_name("new"), {"  name: base # the name": "  name: new # the name"}, id="name"),
        pytest.param(
            lambda k: k.with_upstream("https://example.com/old.git", "old", "v2", "abc"),
            {
                "    ref: v1": "    ref: v2",
                "  updateStrategy: fast-forward": "  updateStrategy: fast-forward\nupstreamLock:\n  type: git\n  git:\n"
                "    repo: https://example.com/old.git\n    directory: old\n    ref: v2\n    commit: abc",
            },
            id="upstream-keeps-the-strategy",
        ),
        pytest.param(lambda k: k.with_conditions_and_gates([], []), {}, id="no-conditions-no-change"),
    ],
)
def test_edit_changes_only_the_edited_fields(edit: Callable[[Kptfile], Kptfile], changed: dict[str, str]) -> None:
    expected = "\n".join(changed.get(line, line) for line in COMMENTED.split("\n"))

    edited = edit(parse_kptfile(COMMENTED))

    assert edited.to_bytes().decode() == expected
    assert edit(edited).to_bytes() == edited.to_bytes()


def test_with_pipeline_keeps_comments_of_other_functions() -> None:
    kptfile = parse_kptfile(COMMENTED)
    mine = {"image": "example.com/f:v1", "name": "PackageVariant.a.b.0"}

    edited = kptfile.with_pipeline([mine, *kptfile.data["pipeline"]["mutators"]], [])

    text = edited.to_bytes().decode()
    assert '    - image: example.com/set-labels:v0.2.0 # pinned\n      configMap:\n        tier: "web"\n' in text
    assert "  # first of all\n" in text
    assert [spec.name for spec in edited.pipeline.mutators] == ["PackageVariant.a.b.0", ""]


def test_empty_pipeline_is_omitted() -> None:
    assert "pipeline" not in parse_kptfile(COMMENTED).with_pipeline([], []).data


def test_conditions_and_gates() -> None:
    text = f"""{HEAD}metadata:
  name: a
info:
  readinessGates:
  - conditionType: old # human
    note: mine
status:
  conditions:
  - type: kept
    status: "False"
"""
    conditions = [Condition("kept", "True", "Now"), Condition("new", "False", "Because", "of that")]

    edited = parse_kptfile(dedent(text)).with_conditions_and_gates(conditions, ["old", "new"])

    assert edited.conditions == tuple(conditions)
    assert edited.readiness_gates == ("old", "new")
    assert "  - conditionType: old # human\n    note: mine\n" in edited.to_bytes().decode()
    assert edited.with_conditions_and_gates([], []).data == {
        "apiVersion": "kpt.dev/v1",
        "kind": "Kptfile",
        "metadata": {"name": "a"},
    }


def test_other_fields_stay_when_conditions_and_gates_are_removed() -> None:
    info, status = {"description": "kept"}, {"custom": "kept"}
    text = f"""{HEAD}metadata:
  name: a
info: {{description: kept, readinessGates: [{{conditionType: old}}]}}
status: {{custom: kept, conditions: [{{type: old, status: "True"}}]}}
"""

    edited = parse_kptfile(dedent(text)).with_conditions_and_gates([], [])

    assert (edited.data["info"], edited.data["status"]) == (info, status)


def test_new_sections_have_the_order_of_kpt() -> None:
    followed = create_kptfile("app").with_pipeline([{"image": "a"}], []).with_upstream("r", "/d", "main", "c0ffee")

    assert list(followed.data) == ["apiVersion", "kind", "metadata", "upstream", "upstreamLock", "pipeline"]
    assert followed.data["upstreamLock"]["git"] == {"repo": "r", "directory": "d", "ref": "main", "commit": "c0ffee"}


def test_with_data_changes_only_different_fields() -> None:
    kptfile = parse_kptfile(COMMENTED)
    changed = kptfile.with_data({**kptfile.data, "custom": {"unknown": [True, 2]}})

    assert kptfile.with_data(dict(kptfile.data)) is kptfile
    assert changed.to_bytes().decode() == COMMENTED.replace("[1, 2]", "[true, 2]")
