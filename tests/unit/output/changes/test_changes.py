from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.catalog.files import File
from reconciler.output.changes.package_changes import compare_packages
from reconciler.redaction import MASK
from tests.support.sops import ciphertext, seal_text
from tests.unit.output.builders import (
    COMMIT,
    OLD_COMMIT,
    build_tree,
    format_deployment,
    format_endpoints,
    format_kptfile,
    format_secret,
)

Files = Mapping[str, str | bytes | File]
LOCAL = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  name: {name}
"""


def format_config_map(name: str, namespace: str = "") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n" + (
        f"  namespace: {namespace}\n" if namespace else ""
    )


def format_labeled(kind: str, *labels: str, rest: str = "") -> str:
    lines = "".join(f"    {label}\n" for label in labels)
    return f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: web\n  labels:\n{lines}{rest}"


def format_labeled_objects(version: str) -> Files:
    """Return the objects of a chart with the labels of a version. Only the version 1.0.0 has no Role."""
    labels = f"helm.sh/chart: web-{version}", f"app.kubernetes.io/version: {version}"
    kinds = {"Deployment": f"spec:\n  replicas: {version}\n", "ConfigMap": "", "Secret": "", "Service": ""}
    files = {f"{kind}.yaml": format_labeled(kind, *labels, rest=rest) for kind, rest in kinds.items()}
    role = format_labeled("Role", *labels).replace("name: web", "name: extra")
    return files if version == "1.0.0" else {**files, "role.yaml": role}


CHANGED_DEPLOYMENT = (
    "Deployment web: replicas 1.0.0 → 1.1.0; metadata.labels[helm.sh/chart] web-1.0.0 → web-1.1.0; "
    "metadata.labels[app.kubernetes.io/version] 1.0.0 → 1.1.0"
)


def format_pod_labels(kind: str, version: str) -> str:
    rest = f"spec:\n  template:\n    metadata:\n      labels:\n        helm.sh/chart: {version}\n"
    return format_labeled(kind, "tier: a", rest=rest)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"a.yaml": format_deployment()}, {"a.yaml": format_deployment()}, (), id="equal-trees"),
        pytest.param(
            {"a.yaml": format_deployment(3)},
            {"a.yaml": format_deployment(5)},
            ("Deployment web: replicas 3 → 5",),
            id="a-field",
        ),
        pytest.param(
            {"a.yaml": format_endpoints("a")},
            {"a.yaml": format_endpoints("b")},
            ("ConfigMap endpoints: data.api a → b",),
            id="data",
        ),
        pytest.param(
            {"a.yaml": format_deployment(3, "web:1")},
            {"a.yaml": format_deployment(5, "web:2")},
            ("Deployment web: replicas 3 → 5; template.spec.containers[web].image web:1 → web:2",),
            id="two-fields-on-one-line",
        ),
        pytest.param(
            {"a.yaml": format_deployment()}, {"b.yaml": format_deployment()}, (), id="a-moved-object-has-not-changed"
        ),
        pytest.param(
            {"a.yaml": format_deployment(3)},
            {"b.yaml": format_endpoints() + "---\n" + format_deployment(5)},
            ("Deployment web: replicas 3 → 5", "ConfigMap endpoints: added"),
            id="moved-and-changed-is-changed",
        ),
        pytest.param(
            {"a.yaml": format_config_map("x", "one")},
            {"a.yaml": format_config_map("x", "two")},
            ("ConfigMap one/x: removed", "ConfigMap two/x: added"),
            id="another-namespace-is-another-object",
        ),
        pytest.param({"a.yaml": format_deployment()}, {}, ("Deployment web: removed",), id="removed"),
        pytest.param(
            {"z.yaml": format_config_map("old")},
            {"a.yaml": format_config_map("new"), "b.yaml": format_deployment()},
            ("ConfigMap old: removed", "Deployment web: added", "ConfigMap new: added"),
            id="removals-first-workloads-before-the-rest",
        ),
        pytest.param(
            {"c.yaml": LOCAL.format(name="a"), "d.yaml": format_endpoints("a")},
            {"c.yaml": LOCAL.format(name="b"), "d.yaml": format_endpoints("b")},
            ("ConfigMap endpoints: data.api a → b", "ConfigMap kptfile.kpt.dev: data.name a → b"),
            id="what-is-never-applied-last",
        ),
        pytest.param(
            {},
            {**{f"{n}.yaml": format_config_map(n) for n in "abc"}, "d.yaml": format_deployment()},
            ("4 objects added: 1 Deployment, 3 ConfigMap",),
            id="many-of-a-kind-are-counted",
        ),
        pytest.param(
            {"a.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: x}\na: {b: 1, c: 1, d: 1, e: 1, f: 1}\n"},
            {"a.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: x}\na: {b: 2, c: 2, d: 2, e: 2, f: 2}\n"},
            ("X x: a.b 1 → 2; a.c 1 → 2; a.d 1 → 2; and 2 more fields",),
            id="many-fields-are-counted",
        ),
        pytest.param(
            {"a.yaml": format_endpoints("a"), "b.yaml": format_endpoints("b")},
            {"a.yaml": format_endpoints("a") + "# x\n", "b.yaml": format_endpoints("c")},
            ("ConfigMap endpoints: data.api b → c",),
            id="duplicate-identity-on-both-sides",
        ),
        pytest.param(
            {"a.json": '{"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"n": 1}}'},
            {"a.json": '{"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"n": 2}}'},
            ("X x: n 1 → 2",),
            id="json-is-read-too",
        ),
        pytest.param(
            format_labeled_objects("1.0.0"),
            format_labeled_objects("1.1.0"),
            (
                CHANGED_DEPLOYMENT,
                "3 objects: only the labels helm.sh/chart and app.kubernetes.io/version change",
                "Role extra: added",
            ),
            id="objects-with-only-version-labels-are-counted",
        ),
        pytest.param(
            {f"{kind}.yaml": format_labeled(kind, "helm.sh/chart: web-1.0.0") for kind in "AB"},
            {f"{kind}.yaml": format_labeled(kind, "helm.sh/chart: web-1.1.0") for kind in "AB"},
            ("2 objects: only the label helm.sh/chart changes",),
            id="one-version-label",
        ),
        pytest.param(
            {"a.yaml": format_labeled("A", "helm.sh/chart: web-1.0.0")},
            {"a.yaml": format_labeled("A", "helm.sh/chart: web-1.1.0")},
            ("A web: metadata.labels[helm.sh/chart] web-1.0.0 → web-1.1.0",),
            id="one-object-with-only-version-labels-is-listed",
        ),
        pytest.param(
            {"a.yaml": format_labeled("A", "tier: a"), "b.yaml": format_labeled("B", "tier: a")},
            {"a.yaml": format_labeled("A", "tier: b"), "b.yaml": format_labeled("B", "tier: b")},
            ("A web: metadata.labels.tier a → b", "B web: metadata.labels.tier a → b"),
            id="other-labels-are-listed",
        ),
        pytest.param(
            {"a.yaml": format_pod_labels("A", "1.0.0"), "b.yaml": format_pod_labels("B", "1.0.0")},
            {"a.yaml": format_pod_labels("A", "1.1.0"), "b.yaml": format_pod_labels("B", "1.1.0")},
            (
                "A web: template.metadata.labels[helm.sh/chart] 1.0.0 → 1.1.0",
                "B web: template.metadata.labels[helm.sh/chart] 1.0.0 → 1.1.0",
            ),
            id="labels-of-pods-are-listed",
        ),
    ],
)
def test_objects_and_other_files_are_distinguished(before: Files, after: Files, expected: tuple[str, ...]) -> None:
    changes = compare_packages(build_tree(before), build_tree(after))

    assert changes.format_summary_lines() == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            {"a.yaml": format_deployment(3)},
            {"a.yaml": format_deployment(5)},
            (),
            id="changes-of-objects-are-listed-once",
        ),
        pytest.param({}, {"README.md": "x"}, ("README.md: added",), id="added"),
        pytest.param({"README.md": "x"}, {"README.md": "y"}, ("README.md: changed",), id="changed"),
        pytest.param({"README.md": "x"}, {}, ("README.md: removed",), id="removed"),
        pytest.param({"a.md": "x"}, {"b/a.md": "x"}, ("b/a.md: moved from a.md",), id="moved"),
        pytest.param(
            {"a.yaml": format_deployment()},
            {"b.yaml": format_deployment()},
            ("b.yaml: moved from a.yaml",),
            id="a-resource-file-moved",
        ),
        pytest.param(
            {"a.yaml": format_deployment()},
            {"a.yaml": "# why\n" + format_deployment()},
            ("a.yaml: reformatted",),
            id="only-a-comment",
        ),
        pytest.param(
            {"run.sh": "x"}, {"run.sh": File(b"x", executable=True)}, ("run.sh: made executable",), id="only-the-mode"
        ),
        pytest.param(
            {"values.yaml": "a: 1"}, {"values.yaml": "a: 2"}, ("values.yaml: changed",), id="yaml-that-is-no-object"
        ),
        pytest.param({"a.yaml": "a: ["}, {"a.yaml": "b: ["}, ("a.yaml: changed",), id="yaml-that-does-not-parse"),
        pytest.param(
            {"a.yaml": format_deployment(3)},
            {"a.yaml": format_deployment(5) + "---\nnote: x\n"},
            ("a.yaml: changed",),
            id="an-object-and-something-else-in-one-file",
        ),
        pytest.param(
            {"Kptfile": format_kptfile("v3", OLD_COMMIT)},
            {"Kptfile": format_kptfile("v4", COMMIT)},
            (f"Kptfile: upstream gateway@v3 ({OLD_COMMIT[:7]}) → gateway@v4 ({COMMIT[:7]})",),
            id="the-upstream-of-a-kptfile",
        ),
        pytest.param(
            {"Kptfile": format_kptfile("v3", COMMIT).replace("directory: gateway", "directory: /gateway")},
            {"Kptfile": format_kptfile("v4", COMMIT).replace("directory: gateway", "directory: /gateway")},
            (f"Kptfile: upstream /gateway@v3 ({COMMIT[:7]}) → /gateway@v4 ({COMMIT[:7]})",),
            id="a-directory-with-a-slash",
        ),
        pytest.param(
            {"Kptfile": "pipeline: {mutators: []}"},
            {"Kptfile": "pipeline: {mutators: [{name: ns, image: set-namespace}]}"},
            ('Kptfile: pipeline.mutators[ns] added ({"name": "ns", "image": "set-namespace"})',),
            id="the-pipeline-of-a-kptfile",
        ),
        pytest.param(
            {"info": "", "Kptfile": "info: {description: x, readinessGates: []}"},
            {"info": "", "Kptfile": "info: {description: y, readinessGates: [{conditionType: A}]}"},
            ('Kptfile: info.readinessGates[A] added ({"conditionType": "A"}); info.description x → y',),
            id="gates-before-the-rest",
        ),
        pytest.param(
            {},
            {"Kptfile": format_kptfile()},
            (f"Kptfile: added, from gateway@v4 ({COMMIT[:7]})",),
            id="a-new-one",
        ),
        pytest.param(
            {"Kptfile": format_kptfile()},
            {},
            (f"Kptfile: removed, from gateway@v4 ({COMMIT[:7]})",),
            id="one-that-went",
        ),
        pytest.param({}, {"Kptfile": "a: 1"}, ("Kptfile: added",), id="a-new-one-from-nowhere"),
        pytest.param({"Kptfile": "a: 1"}, {"Kptfile": "a: 1 # x"}, ("Kptfile: reformatted",), id="a-kptfiles-comment"),
        pytest.param({"sub/Kptfile": "a: 1"}, {"sub/Kptfile": "a: 2"}, ("sub/Kptfile: a 1 → 2",), id="of-a-subpackage"),
    ],
)
def test_kptfiles_and_files_without_objects_are_listed(before: Files, after: Files, expected: tuple[str, ...]) -> None:
    changes = compare_packages(build_tree(before), build_tree(after))

    assert changes.format_file_lines() == expected


def test_secret_values_are_masked() -> None:
    before = {"a.yaml": format_secret("hunter2") + "data:\n  k: b2xk\n"}
    after = {"a.yaml": format_secret("correct-horse") + "data:\n  k: bmV3\n  l: bDI=\n"}
    changes = compare_packages(build_tree(before), build_tree(after))

    assert changes.format_summary_lines() == (
        "Secret login: stringData.password changed (*****); data.k changed (*****); data.l added (*****)",
    )
    assert "hunter2" not in repr(changes)
    assert "horse" not in repr(changes)


def test_new_annotations_of_a_secret_are_masked_completely() -> None:
    copy = "  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: hunter2\n"
    changes = compare_packages(
        build_tree({"a.yaml": format_secret()}),
        build_tree({"a.yaml": format_secret().replace("stringData", copy + "stringData")}),
    )

    assert changes.format_summary_lines() == ("Secret login: metadata.annotations added (*****)",)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            seal_text(f"kind: Secret\napiVersion: v1\nmetadata: {{name: db}}\ndata:\n  k: {ciphertext('a')}\n"),
            seal_text(
                f"kind: Secret\napiVersion: v1\nmetadata: {{name: db}}\ndata:\n  k: {ciphertext('b')}\n  l: bDI=\n",
                version=2,
            ),
            "Secret db: data.k changed (ENC[…]); data.l added (*****)",
            id="values-of-a-sops-document",
        ),
        pytest.param(
            seal_text("kind: ConfigMap\napiVersion: v1\nmetadata: {name: db}\n"),
            seal_text("kind: ConfigMap\napiVersion: v1\nmetadata: {name: db}\n", version=2),
            "ConfigMap db: sops.lastmodified 2026-11-01T10:00:00Z → 2026-11-02T10:00:00Z; sops.mac changed (ENC[…])",
            id="only-metadata-of-sops",
        ),
        pytest.param(
            "kind: SealedSecret\napiVersion: bitnami.com/v1\nmetadata: {name: db}\nspec: {encryptedData: {k: Ag1}}\n",
            "kind: SealedSecret\napiVersion: bitnami.com/v1\nmetadata: {name: db}\nspec: {encryptedData: {k: Ag2}}\n",
            "SealedSecret db: encryptedData.k changed (*****)",
            id="sealed-secret",
        ),
        pytest.param(
            "kind: SealedSecret\napiVersion: bitnami.com/v1\nmetadata: {name: db}\n",
            "kind: SealedSecret\napiVersion: bitnami.com/v1\nmetadata: {name: db}\nspec: {encryptedData: {k: Ag2}}\n",
            "SealedSecret db: spec added (*****)",
            id="whole-spec-of-a-sealed-secret",
        ),
    ],
)
def test_ciphertexts_are_hidden(before: str, after: str, expected: str) -> None:
    [change] = compare_packages(build_tree({"a.yaml": before}), build_tree({"a.yaml": after})).objects
    assert change.format_line() == expected


def test_secret_values_in_another_object_are_masked() -> None:
    kit = "apiVersion: x.io/v1\nkind: Kit\nmetadata:\n  name: k\nitems:\n- kind: Secret\n  stringData: {{p: {}}}\n"
    changes = compare_packages(
        build_tree({"a.yaml": kit.format("hunter2")}), build_tree({"a.yaml": kit.format("correct-horse")})
    )

    assert changes.format_summary_lines() == ("Kit k: items[0].stringData.p changed (*****)",)


def test_secret_in_a_text_field_of_another_object_is_masked() -> None:
    template = (
        "apiVersion: x.io/v1\nkind: Kit\nmetadata:\n  name: k\nmanifest: |\n  kind: Secret\n  stringData: {{p: {}}}\n"
    )
    changes = compare_packages(
        build_tree({"a.yaml": template.format("old")}), build_tree({"a.yaml": template.format("new")})
    )

    assert changes.format_summary_lines() == ("Kit k: manifest changed (*****)",)


def test_limited_summary_counts_the_omitted_lines() -> None:
    before = build_tree({f"{n}.yaml": format_endpoints("a").replace("endpoints", n) for n in "abcdef"})
    after = build_tree({f"{n}.yaml": format_endpoints("b").replace("endpoints", n) for n in "abcdef"})

    assert compare_packages(before, after).format_summary_lines(3) == (
        "ConfigMap a: data.api a → b",
        "ConfigMap b: data.api a → b",
        "and 4 more",
    )


def test_digests_are_equal_only_for_equal_changes() -> None:
    def compute_change_digest(old: str, new: str) -> str:
        return (
            compare_packages(build_tree({"a.yaml": format_secret(old)}), build_tree({"a.yaml": format_secret(new)}))
            .objects[0]
            .digest
        )

    assert compute_change_digest("a", "b") == compute_change_digest("a", "b")
    assert compute_change_digest("a", "b") != compute_change_digest("a", "c")


def test_changes_are_false_only_for_equal_packages() -> None:
    assert not compare_packages(build_tree({"a": "x"}), build_tree({"a": "x"}))
    assert compare_packages(build_tree({"a": "x"}), build_tree({"a": "y"}))


OPTION = """\
apiVersion: greenhouse.sap/v1alpha1
kind: Plugin
metadata: {name: logs}
spec:
  optionValues:
  - {name: size, value: 1}
"""
REFERENCE = "  - {name: token, valueFrom: {secret: {name: a, key: b}}}\n"
PLAIN = "  - {name: token, value: hunter2}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(REFERENCE, PLAIN, id="reference-to-value"),
        pytest.param(PLAIN, REFERENCE, id="value-to-reference"),
        pytest.param(REFERENCE, PLAIN * 2, id="option-twice"),
    ],
)
def test_value_of_an_option_with_a_reference_to_a_secret_is_masked(before: str, after: str) -> None:
    old, new = (build_tree({"plugin.yaml": OPTION + text}) for text in (before, after))

    (change,) = compare_packages(old, new).objects

    assert "hunter2" not in repr(change)
    assert MASK in repr(change)


def test_values_of_other_options_are_shown() -> None:
    old, new = (build_tree({"plugin.yaml": OPTION.replace("1}", f"{size}}}") + REFERENCE}) for size in (1, 2))

    (change,) = compare_packages(old, new).objects

    assert change.format_line() == "Plugin logs: optionValues[size].value 1 → 2"
