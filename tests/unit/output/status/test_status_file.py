from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.files import FileTree, TreeId
from reconciler.controllers.results import ConfigInjection
from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import Condition
from reconciler.krm.yaml import parse_yaml
from reconciler.output.status.package_status import build_package_status
from reconciler.planning.model.outcomes import Draft, PackageRender
from reconciler.planning.model.state import RenderedVersion
from tests.unit.output.builders import (
    COMMIT,
    CONFIG,
    OLD_COMMIT,
    TREE,
    build_draft,
    build_target,
    build_tree,
    build_variant,
    format_deployment,
    format_kptfile,
)

SITE = "object x.io/v1 Site default berlin"
LOGIN = "object v1 Secret default login"


def read_status(new_draft: Draft) -> dict[str, Any]:
    return parse_yaml(build_package_status(new_draft, build_target(), CONFIG)).documents[0].data["status"]


def build_render(**fields: Any) -> PackageRender:
    return PackageRender(FileTree(), **fields)


def test_full_status_file() -> None:
    after = {"Kptfile": format_kptfile("v4"), "a.yaml": format_deployment()}
    new_draft = build_draft(
        {"Kptfile": format_kptfile("v3", OLD_COMMIT)},
        after,
        desired_variant=build_variant(package="edge/gw", made_by="edge"),
        trace={SITE: "sha256:5", "object x.io/v1 Site default gone": "absent", "variant": "sha256:6"},
        rendered=build_render(
            conditions=(Condition("Rendered", "False", "RenderFailed", "function starlark: no"),),
            readiness_gates=("Rendered",),
            injections=(ConfigInjection("here", "site.yaml", "Site", "default", "berlin", "sha256:5", "sites.yaml"),),
            input_files={("Site", "default", "berlin"): "sites.yaml"},
            function_results=({"package": ".", "name": "ns", "exitCode": 0},),
            findings=(
                Finding(
                    "LinkSkipped", "a link", SourceLocation("a.yaml", 3, "Deployment/x/web", "/spec"), Severity.WARNING
                ),
                Finding("Broken", "never in a draft"),
            ),
        ),
    )

    inputs = compute_digest({SITE: "sha256:5", "object x.io/v1 Site default gone": "absent", "variant": "sha256:6"})
    assert build_package_status(new_draft, build_target(), CONFIG).decode() == (
        "apiVersion: reconciler.dev/v1alpha1\n"
        "kind: PackageStatus\n"
        "metadata:\n"
        "  name: edge.gw\n"
        "  annotations:\n"
        '    config.kubernetes.io/local-config: "true"\n'
        "    argocd.argoproj.io/hook: Skip\n"
        "status:\n"
        "  repository: eu-1\n"
        "  package: edge/gw\n"
        "  owner:\n"
        "    apiVersion: config.porch.kpt.dev/v1alpha1\n"
        "    kind: PackageVariant\n"
        "    namespace: default\n"
        "    name: edge-gw\n"
        "    set: edge\n"
        "  task: update\n"
        "  labels: {}\n"
        "  annotations: {}\n"
        "  upstream:\n"
        "    from:\n"
        "      repo: https://git.example/catalog.git\n"
        "      directory: gateway\n"
        "      ref: gateway/v3\n"
        f"      commit: {OLD_COMMIT}\n"
        "    to:\n"
        "      repo: https://git.example/catalog.git\n"
        "      directory: gateway\n"
        "      ref: gateway/v4\n"
        f"      commit: {COMMIT}\n"
        f"      tree: {TREE}\n"
        "  trees:\n"
        f"    base: {TREE}\n"
        f"    merged: {TREE}\n"
        f"    rendered: {build_tree(after).id}\n"
        "  inputs:\n"
        f"    config: {CONFIG}\n"
        f"    digest: {inputs}\n"
        "    objects:\n"
        "    - kind: Site\n"
        "      namespace: default\n"
        "      name: berlin\n"
        "      file: sites.yaml\n"
        "      hash: sha256:5\n"
        "  conditions:\n"
        "  - type: Rendered\n"
        '    status: "False"\n'
        "    reason: RenderFailed\n"
        '    message: "function starlark: no"\n'
        "  readinessGates:\n"
        "  - conditionType: Rendered\n"
        "    met: false\n"
        "  injected:\n"
        "  - point: here\n"
        "    file: site.yaml\n"
        "    object: Site/default/berlin\n"
        "    from: sites.yaml\n"
        "    hash: sha256:5\n"
        "  results:\n"
        '  - package: "."\n'
        "    name: ns\n"
        "    exitCode: 0\n"
        "  warnings:\n"
        "  - code: LinkSkipped\n"
        "    severity: warning\n"
        "    message: a link\n"
        "    object: Deployment/x/web\n"
        "    file: a.yaml\n"
        "    pointer: /spec\n"
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("conditions", id="conditions"),
        pytest.param("readinessGates", id="gates"),
        pytest.param("injected", id="injected"),
        pytest.param("results", id="results"),
        pytest.param("warnings", id="warnings"),
    ],
)
def test_empty_fields_are_omitted(name: str) -> None:
    assert name not in read_status(build_draft({}, {"a": "x"}))


def test_upstream_without_earlier_lock_has_no_from() -> None:
    assert list(read_status(build_draft({}, {"Kptfile": format_kptfile()}))["upstream"]) == ["to"]


def build_version(rendered: str) -> RenderedVersion:
    return RenderedVersion(*map(TreeId, (rendered, "5" * 40, "b" * 40, "c" * 40, "d" * 40)), "")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rendered", "expected"),
    [
        pytest.param(build_tree({"Kptfile": format_kptfile("v3")}).id, "b" * 40, id="as-we-offered-it"),
        pytest.param(build_tree({"Kptfile": format_kptfile("v2")}).id, None, id="changed-by-people"),
    ],
)
@pytest.mark.parametrize(
    "kind", [pytest.param("draft_version", id="drafted"), pytest.param("published_version", id="published")]
)
def test_tree_of_the_earlier_lock_is_written_if_known(kind: str, rendered: str, expected: str | None) -> None:
    new_draft = build_draft({"Kptfile": format_kptfile("v3")}, {"Kptfile": format_kptfile("v4")})
    known = replace(new_draft, record=replace(new_draft.record, **{kind: build_version(rendered)}))

    assert read_status(known)["upstream"]["from"].get("tree") == expected


def test_unreadable_earlier_kptfile_has_no_lock() -> None:
    assert list(read_status(build_draft({"Kptfile": "a: ["}, {"Kptfile": format_kptfile()}))["upstream"]) == ["to"]


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        pytest.param(Condition("here", "True", "R"), True, id="true"),
        pytest.param(Condition("here", "Unknown", "R"), False, id="unknown"),
        pytest.param(Condition("there", "True", "R"), False, id="missing"),
    ],
)
def test_gate_is_met_only_by_a_true_condition(condition: Condition, met: bool) -> None:
    new_draft = build_draft({}, {"a": "x"}, rendered=build_render(conditions=(condition,), readiness_gates=("here",)))

    assert read_status(new_draft)["readinessGates"] == [{"conditionType": "here", "met": met}]


def test_hash_of_a_secret_is_masked() -> None:
    injected = (ConfigInjection("here", "s.yaml", "Secret", "default", "login", "sha256:short", "secrets.yaml"),)
    files = {("Secret", "default", "login"): "secrets.yaml"}
    new_draft = build_draft(
        {}, {"a": "x"}, trace={LOGIN: "sha256:short"}, rendered=build_render(injections=injected, input_files=files)
    )

    assert b"sha256:short" not in build_package_status(new_draft, build_target(), CONFIG)
    assert read_status(new_draft)["inputs"]["objects"] == [
        {"kind": "Secret", "namespace": "default", "name": "login", "file": "secrets.yaml", "hash": "*****"}
    ]


def test_name_with_blanks_is_one_name() -> None:
    new_draft = build_draft({}, {"a": "x"}, trace={"object v1 ConfigMap default a b": "sha256:1"})

    assert [item["name"] for item in read_status(new_draft)["inputs"]["objects"]] == ["a b"]


def test_policy_is_an_input_with_the_hash_of_its_rules_for_the_cluster() -> None:
    files = {("OverridePolicy", "shop", "web"): "web.yaml"}
    trace = {"policy core.kubeadmiral.io/v1alpha1 OverridePolicy shop web eu-1": "sha256:1"}
    new_draft = build_draft({}, {"a": "x"}, trace=trace, rendered=build_render(input_files=files))

    assert read_status(new_draft)["inputs"]["objects"] == [
        {"kind": "OverridePolicy", "namespace": "shop", "name": "web", "file": "web.yaml", "hash": "sha256:1"}
    ]


def test_order_of_the_trace_does_not_change_the_file() -> None:
    result = build_draft({}, {"a": "x"}, trace={SITE: "1", LOGIN: "2"})
    other = build_draft({}, {"a": "x"}, trace={LOGIN: "2", SITE: "1"})

    assert build_package_status(result, build_target(), CONFIG) == build_package_status(other, build_target(), CONFIG)
