"""Import of folders: the packages, the override policies, and the units that cannot be imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.adopt.folders import generate_from_folders, select_units
from reconciler.adopt.generated import GeneratedConfig
from reconciler.adopt.units import Cluster, Fleet, Unit
from reconciler.catalog.files import File, FileTree

CLUSTERS = tuple(
    Cluster(name, {"region": region})
    for name, region in (("berlin", "eu"), ("lyon", "eu"), ("rome", "eu"), ("ohio", "us"), ("utah", "us"))
)
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n"


def unit(cluster: str, files: Mapping[str, str], package: str = "web") -> Unit:
    tree = FileTree({path: File(text.encode()) for path, text in files.items()})
    return Unit(cluster, package, f"{cluster}/{package}", tree)


def config_map(data: str, comment: str = "") -> str:
    return f"{comment}apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, namespace: shop}}\ndata: {data}\n"


def generate(**texts: str) -> GeneratedConfig:
    units = [unit(name, {"app.yaml": texts.get(name, config_map("{zone: a}"))}) for name in (c.name for c in CLUSTERS)]
    return generate_from_folders(units, CLUSTERS)


def list_rules(generated: GeneratedConfig) -> list[tuple[Any, Any]]:
    policies = [document for package in generated.packages for document in package.documents[1:]]
    return [
        (rule["targetClusters"], rule["overriders"]["jsonpatch"])
        for policy in policies
        for rule in policy["spec"]["overrideRules"]
    ]


def test_equal_units_share_a_package_and_the_most_frequent_text() -> None:
    generated = generate(berlin=config_map("{zone: a}", "# Old.\n"), ohio=config_map("{'zone': a}", "# Old.\n"))

    assert [package.name for package in generated.packages] == ["web"]
    assert generated.catalog["web"]["app.yaml"].data.decode() == config_map("{zone: a}")
    assert generated.packages[0].documents[0]["spec"] == {
        "upstream": {"repo": "catalog", "package": "web", "revision": "v1"},
        "targets": [
            {
                "repositorySelector": {"matchLabels": {"reconciler.dev/cluster": "true"}},
                "template": {"adoptionPolicy": "adoptExisting"},
            }
        ],
    }


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (
            {"ohio": "{zone: b}", "utah": "{zone: b}"},
            [({"clusterSelector": {"region": "us"}}, [{"operator": "set", "path": "/data/zone", "value": "b"}])],
        ),
        (
            {"rome": "{zone: a, debug: 'on'}"},
            [({"clusters": ["rome"]}, [{"operator": "set", "path": "/data/debug", "value": "on"}])],
        ),
        ({"rome": "{}"}, [({"clusters": ["rome"]}, [{"operator": "remove", "path": "/data/zone"}])]),
        (
            {"rome": "{zone: '${cluster.name}'}"},
            [({"clusters": ["rome"]}, [{"operator": "set", "path": "/data/zone", "value": "$${cluster.name}"}])],
        ),
    ],
    ids=["label", "added-field", "removed-field", "text-like-a-variable"],
)
def test_a_difference_becomes_a_rule(texts: Mapping[str, str], expected: list[tuple[Any, Any]]) -> None:
    assert list_rules(generate(**{name: config_map(data) for name, data in texts.items()})) == expected


def test_a_list_item_is_replaced_and_a_list_of_another_length_is_set() -> None:
    def pod(containers: str) -> str:
        return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: web, namespace: shop}}\nspec: {{x: {containers}}}\n"

    texts = {name: pod("[{i: a}]") for name in ("berlin", "lyon", "rome")}
    generated = generate(**texts, ohio=pod("[{i: b}]"), utah=pod("[{i: b}, {i: c}]"))

    assert [(rule[0]["clusters"], rule[1]) for rule in list_rules(generated)] == [
        (["ohio"], [{"operator": "set", "path": "/spec/x", "value": [{"i": "b"}]}]),
        (["utah"], [{"operator": "set", "path": "/spec/x", "value": [{"i": "b"}, {"i": "c"}]}]),
    ]
    assert list_rules(generate(**texts, ohio=pod("[{i: b}]"), utah=pod("[{i: b}]"))) == [
        ({"clusterSelector": {"region": "us"}}, [{"operator": "set", "path": "/spec/x/0/i", "value": "b"}])
    ]


def test_a_unit_with_other_resources_gets_its_own_package() -> None:
    generated = generate(ohio=f"{config_map('{zone: b}')}---\n{SERVICE}", utah=config_map("{zone: b}"))

    assert [(package.name, package.clusters, package.owner) for package in generated.packages] == [
        ("web", ("berlin", "lyon", "rome", "utah"), "PackageVariantSet/web"),
        ("web-ohio", ("ohio",), "PackageVariant/web-ohio"),
    ]
    variant = generated.packages[1].documents[0]
    assert variant["spec"]["downstream"] == {"repo": "ohio", "package": "web"}
    assert variant["spec"]["adoptionPolicy"] == "adoptExisting"


def test_a_rule_with_a_label_excludes_clusters_with_another_package() -> None:
    other = f"{config_map('{zone: a}')}---\n{SERVICE}"
    generated = generate(ohio=config_map("{zone: b}"), utah=config_map("{zone: b}"), rome=other)

    rules = [rule for rule in list_rules(generated) if "clusterSelector" in rule[0]]
    assert [rule[0] for rule in rules] == [{"clusterSelector": {"region": "us"}, "excludeClusters": ["rome"]}]


@pytest.mark.parametrize(("count", "packages"), [(20, 1), (21, 2)])
def test_a_unit_with_many_differences_gets_its_own_package(count: int, packages: int) -> None:
    data = "{" + ", ".join(f"k{n}: x" for n in range(count)) + ", zone: a}"

    assert len(generate(ohio=config_map(data)).packages) == packages


def test_units_that_all_differ_get_one_package_each() -> None:
    texts = {
        cluster.name: config_map("{" + ", ".join(f"k{n}: {cluster.name}" for n in range(30)) + "}")
        for cluster in CLUSTERS
    }

    assert [package.clusters for package in generate(**texts).packages] == [
        ("berlin",), ("lyon",), ("ohio",), ("rome",), ("utah",),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"Chart.yaml": "name: web\n"}, "is a Helm chart"),
        ({"base/kustomization.yaml": "resources: []\n"}, "the folder berlin/web/base is a Kustomize overlay"),
        ({"Kptfile": "kind: Kptfile\n"}, "is a kpt package"),
        ({"app.yaml": "a: ["}, "the file cannot be parsed"),
        ({"a.yaml": SERVICE, "b.yaml": SERVICE}, "the resource Service/shop/web is also in a.yaml"),
        ({"README.md": "text"}, "the folder contains no Kubernetes resource"),
    ],
)
def test_a_unit_that_cannot_be_imported_is_reported(files: Mapping[str, str], reason: str) -> None:
    selected = select_units(Fleet(CLUSTERS, (unit("berlin", files),)))

    assert selected.units == ()
    assert [reason in entry.reason for entry in selected.not_imported] == [True]
    assert selected.not_imported[0].file.startswith("berlin/web")


SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {password: hunter22}\n"
SOPS = "sops: {mac: x, lastmodified: y}\n"


def test_plaintext_secrets_are_left_out_and_listed_without_their_values() -> None:
    files = {
        "app.yaml": f"{SERVICE}---\n{SECRET}",
        "db.yaml": SECRET.replace("db", "other"),
        "e.yaml": SECRET.replace("db", "e") + SOPS,
    }
    selected = select_units(Fleet(CLUSTERS, (unit("berlin", files),)))

    assert [(entry.file, entry.line, entry.field) for entry in selected.not_imported] == [
        ("berlin/web/app.yaml", 5, "data"),
        ("berlin/web/db.yaml", 1, "data"),
    ]
    assert "hunter22" not in repr(selected.not_imported)
    (remaining,) = selected.units
    assert [*remaining.files] == ["app.yaml", "e.yaml"]
    assert remaining.files["app.yaml"].data.decode() == SERVICE
    assert "contains 2 plaintext Secrets" in remaining.unverified_reason


def test_the_result_does_not_depend_on_the_order_of_units() -> None:
    units = [
        unit(cluster.name, {"app.yaml": config_map(f"{{zone: {cluster.labels['region']}}}")}) for cluster in CLUSTERS
    ]

    assert generate_from_folders(units, CLUSTERS) == generate_from_folders(units[::-1], CLUSTERS)
