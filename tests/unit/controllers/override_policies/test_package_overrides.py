"""Tests of overrides of a package: the selected documents change, and all other bytes stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.package_overrides import OverriddenPackage
from tests.unit.controllers.override_policies.override_world import (
    HERE,
    build_policy,
    build_rules,
    build_tree,
    list_codes,
    override_package,
    read_policies,
)

STACK = """\
# Ask the bakers before touching.
apiVersion: apps/v1
kind: Deployment
metadata: # of the bakery
  name: oven
  namespace: bakery
  labels:
    app: oven          # also the selector
    kubeadmiral.io/override-policy-name: tuning   # see policies
spec:
  replicas: 3
  # never change the selector

  selector:
      matchLabels: {app: "oven"}
  template:
    spec:
      containers:
        - name: oven
          image: 'bakery/oven:1.8'   # pinned by hand
          args: ["--heat=220", '--steam']
          env:
            - name: DOUGH
              value: >-
                slow
                rise
---
apiVersion: v1
kind: Service
metadata: {name: oven, namespace: bakery}
spec:
  ports: [ {port: 80,   name: http} ]   # the only door
  selector: {"app": 'oven'}
"""
LABEL = "    kubeadmiral.io/override-policy-name: tuning   # see policies\n"


def read_rules(text: Any) -> Any:
    return read_policies(build_policy(text, kind="OverridePolicy", namespace="bakery"))


def apply_policies(files: dict[str, str], policies: Any, cluster: Cluster = HERE) -> OverriddenPackage:
    return override_package(build_tree(files), policies, cluster)


def read_text(package: OverriddenPackage, path: str = "stack.yaml") -> str:
    return package.files[path].data.decode()


def build_patch(path: str, **operation: Any) -> dict[str, Any]:
    return {"jsonpatch": [{"path": path, **operation}]}


CONTAINER = "/spec/template/spec/containers/0"
TAG = {"image": [{"operations": [{"imageComponent": "Tag", "value": "2.0"}]}]}


@pytest.mark.parametrize(
    ("overriders", "old", "new"),
    [
        pytest.param({}, "", "", id="no-effect"),
        pytest.param(build_patch("/spec/replicas", value=9), "replicas: 3", "replicas: 9", id="scalar"),
        pytest.param(
            build_patch("/spec/selector/matchLabels/app", value="x"), '{app: "oven"}', '{app: "x"}', id="quotes"
        ),
        pytest.param(TAG, "'bakery/oven:1.8'   #", "'bakery/oven:2.0'   #", id="image-keeps-quotes-and-comment"),
        pytest.param(
            {"args": [{"containerName": "oven", "operator": "append", "value": ["--fan"]}]},
            "'--steam']",
            "'--steam', \"--fan\"]",
            id="flow-list-grows",
        ),
        pytest.param(
            {"args": [{"containerName": "oven", "operator": "delete", "value": ["--heat=220"]}]},
            """["--heat=220", '--steam']""",
            "['--steam']",
            id="flow-list-shrinks",
        ),
        pytest.param(
            {"envs": [{"containerName": "oven", "operator": "addIfAbsent", "value": [{"name": "SALT", "value": "5"}]}]},
            "                rise\n",
            '                rise\n            - name: SALT\n              value: "5"\n',
            id="entry-behind-a-block-scalar",
        ),
        pytest.param(
            {"labels": [{"operator": "addIfAbsent", "value": {"heat": "gas"}}]},
            "    app: oven          # also the selector\n",
            "    app: oven          # also the selector\n    heat: gas\n",
            id="new-keys-are-last",
        ),
        pytest.param(
            {"annotations": [{"operator": "addIfAbsent", "value": {"by": "us"}}]},
            "    app: oven          # also the selector\n",
            "    app: oven          # also the selector\n  annotations:\n    by: us\n",
            id="a-new-mapping",
        ),
    ],
)
def test_only_the_changed_lines_are_written(overriders: dict[str, Any], old: str, new: str) -> None:
    package = apply_policies({"stack.yaml": STACK}, read_rules(build_rules(overriders)))

    assert package.findings == ()
    assert read_text(package) == STACK.replace(LABEL, "").replace(old, new, 1 if old else 0)


def test_rule_for_another_cluster_removes_only_the_label() -> None:
    elsewhere = [{"targetClusters": {"clusters": ["far"]}, "overriders": build_patch("/spec/replicas", value=9)}]

    package = apply_policies({"stack.yaml": STACK}, read_rules(elsewhere))

    assert read_text(package) == STACK.replace(LABEL, "")
    assert [resource.steps for resource in package.resources] == [()]


def test_package_without_policies_is_the_same_tree() -> None:
    files = build_tree({"stack.yaml": STACK.replace(LABEL, ""), "notes.txt": "kubeadmiral", "broken.yaml": "a: ["})

    assert override_package(files, read_policies(), HERE).files is files


def build_attached_object(kind: str, name: str = "one", *, version: str = "v1", more: str = "") -> str:
    return (
        f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n  namespace: bakery\n"
        f"  labels: {{kubeadmiral.io/override-policy-name: tuning}}\n{more}"
    )


@pytest.mark.parametrize(
    ("path", "text", "values"),
    [
        pytest.param("Kptfile", build_attached_object("Kptfile", version="kpt.dev/v1"), [], id="Kptfile"),
        pytest.param(
            "local.yaml",
            build_attached_object("ConfigMap", more='  annotations: {config.kubernetes.io/local-config: "true"}\n'),
            [],
            id="local-config",
        ),
        pytest.param(
            "p.yaml", build_attached_object("OverridePolicy", version="core.kubeadmiral.io/v1alpha1"), [], id="policy"
        ),
        pytest.param(
            "p.yaml",
            build_attached_object("PropagationPolicy", version="core.kubeadmiral.io/v1alpha1"),
            [],
            id="placement",
        ),
        pytest.param("no-krm.yaml", "metadata: {labels: {kubeadmiral.io/override-policy-name: x}}\n", [], id="no-krm"),
        pytest.param("a.txt", build_attached_object("ConfigMap"), [], id="no-yaml"),
        pytest.param(
            "list.yaml",
            build_attached_object("List", more="items: []\n"),
            ["OverridePolicyLabelIgnored"],
            id="a-list-with-a-label",
        ),
        pytest.param(
            "list.yaml",
            "apiVersion: v1\nkind: List\nitems:\n- kind: A\n  metadata: "
            "{labels: {kubeadmiral.io/cluster-override-policy-name: gone}}\n",
            ["OverridePolicyLabelIgnored"],
            id="an-item-with-a-label",
        ),
    ],
)
def test_unrelated_document_is_unchanged(path: str, text: str, values: list[str]) -> None:
    package = apply_policies({path: text}, read_rules(build_rules({"labels": [{"value": {}}]})))

    assert read_text(package, path) == text
    assert (list_codes(package.findings), package.candidate_policies) == (values, ())


def test_ignored_file_is_unchanged() -> None:
    files = {
        ".krmignore": "hidden.yaml\n",
        "hidden.yaml": build_attached_object("ConfigMap"),
        "seen.yaml": build_attached_object("ConfigMap"),
    }

    package = apply_policies(files, read_rules([]))

    assert read_text(package, "hidden.yaml") == files["hidden.yaml"]
    assert "labels" not in read_text(package, "seen.yaml")


def test_failed_resource_blocks_the_package() -> None:
    files = {
        "a.yaml": build_attached_object("ConfigMap"),
        "b.yaml": build_attached_object("ConfigMap").replace("tuning", "gone"),
    }

    package = apply_policies(
        files, read_rules(build_rules({"labels": [{"operator": "addIfAbsent", "value": {"a": "b"}}]}))
    )

    assert (list_codes(package.findings), package.files) == (["PolicyNotFound"], build_tree(files))
    assert [key.reference for key in package.candidate_policies] == [
        "OverridePolicy/bakery/gone",
        "OverridePolicy/bakery/tuning",
    ]
    assert package.findings[0].location.file == "b.yaml"


def test_policy_is_evaluated_per_resource() -> None:
    files = {
        "a.yaml": build_attached_object("ConfigMap", more="data: {x: '1'}\n"),
        "b.yaml": build_attached_object("ConfigMap", "two"),
    }

    package = apply_policies(files, read_rules(build_rules(build_patch("/data/x", operator="remove"))))

    assert [(finding.code, finding.location.object) for finding in package.findings] == [
        ("PatchParentMissing", "ConfigMap/bakery/two")
    ]


JSON = """\
{
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "one", "namespace": "bakery", "labels":
        {"app": "one", "kubeadmiral.io/override-policy-name": "tuning"}},
    "data": {"a": "1",  "b": "2"}
}
"""


def test_json_file_keeps_its_format_and_lines() -> None:
    package = apply_policies({"one.json": JSON}, read_rules(build_rules(build_patch("/data/a", value="9"))))

    expected = JSON.replace(', "kubeadmiral.io/override-policy-name": "tuning"', "").replace('"a": "1"', '"a": "9"')
    assert read_text(package, "one.json") == expected


def test_json_that_is_no_yaml_is_rewritten_with_its_indentation() -> None:
    text = json.dumps(json.loads(JSON), indent="\t")

    package = apply_policies({"one.json": text}, read_rules(build_rules(build_patch("/data/b", value="9"))))

    expected = json.loads(JSON) | {"data": {"a": "1", "b": "9"}}
    del expected["metadata"]["labels"]["kubeadmiral.io/override-policy-name"]
    assert read_text(package, "one.json") == json.dumps(expected, indent="\t")


def test_status_data_contains_each_resource() -> None:
    files = {"a.yaml": build_attached_object("ConfigMap"), "b.yaml": build_attached_object("ConfigMap", "two")}

    package = apply_policies(
        files, read_rules(build_rules({"annotations": [{"operator": "set", "value": {"a": "b"}}]}))
    )

    values = [(item["file"], item["resource"], item["pointer"]) for item in package.as_data()]
    assert values == [
        ("a.yaml", "ConfigMap/bakery/one", "/metadata/annotations/a"),
        ("b.yaml", "ConfigMap/bakery/two", "/metadata/annotations/a"),
    ]


def test_line_endings_and_a_missing_final_newline_stay() -> None:
    text = STACK.replace("\n", "\r\n").removesuffix("\r\n")

    package = apply_policies({"stack.yaml": text}, read_rules(build_rules(build_patch("/spec/replicas", value=9))))

    expected = STACK.replace(LABEL, "").replace("replicas: 3", "replicas: 9").replace("\n", "\r\n")
    assert read_text(package) == expected.removesuffix("\r\n")


def test_text_between_documents_stays() -> None:
    result, two = build_attached_object("ConfigMap"), build_attached_object("ConfigMap", "two")
    text = f"# head\n---\n# only a comment\n---\n{result}...\n# between\n--- # two\n{two}---\n# foot\n"

    package = apply_policies(
        {"stack.yaml": text}, read_rules(build_rules({"annotations": [{"operator": "set", "value": {"a": "b"}}]}))
    )

    label, added = "  labels: {kubeadmiral.io/override-policy-name: tuning}\n", "  annotations:\n    a: b\n"
    assert read_text(package) == text.replace(label, added)


@pytest.mark.parametrize(
    ("text", "overriders", "reason"),
    [
        pytest.param(build_attached_object("ConfigMap"), {}, "OverridePolicyApplied", id="applied"),
        pytest.param("a: b\n", {}, "", id="none"),
        pytest.param(
            build_attached_object("ConfigMap").replace("tuning", "gone"), {}, "MatchOverridePolicyFailed", id="missing"
        ),
        pytest.param(
            build_attached_object("ConfigMap"), build_patch("/x/y", value=1), "ParseOverridePolicyFailed", id="failed"
        ),
        pytest.param(
            build_attached_object("ConfigMap"),
            build_patch("/metadata", value={"namespace": "bakery"}),
            "ApplyOverridesFailed",
            id="another-resource",
        ),
    ],
)
def test_condition_reason(text: str, overriders: dict[str, Any], reason: str) -> None:
    assert apply_policies({"one.yaml": text}, read_rules(build_rules(overriders))).condition_reason == reason
