"""Tests of the catalog: which files and documents are config, object identity, and unreadable files."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.catalog.catalog import Catalog, ParseCache, is_config_path, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Severity
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DEFAULT_YAML_LIMITS, YamlLimits
from tests.support.examples import examples

LOCAL = "config.kubernetes.io/local-config"


def format_config_map(name: str = "a", more: str = "") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{more}}}\n"


A, B = format_config_map("a"), format_config_map("b")


def format_porch_object(kind: str = "Repository", metadata: str = "{name: a}") -> str:
    return f"apiVersion: config.porch.kpt.dev/v1alpha1\nkind: {kind}\nmetadata: {metadata}\n"


def build_tree(files: dict[str, str]) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def read(files: dict[str, str]) -> Catalog:
    return read_catalog(build_tree(files))


def list_names(catalog: Catalog) -> list[str]:
    return [key.reference for key in catalog.objects]


@pytest.mark.parametrize(
    ("api_version", "kind", "namespace"),
    [
        pytest.param("config.porch.kpt.dev/v1alpha1", "Repository", "default", id="porch"),
        pytest.param("greenhouse.sap/v1alpha1", "Plugin", "default", id="plugin"),
        pytest.param("greenhouse.sap/v1alpha1", "PluginPreset", "default", id="plugin-preset"),
        pytest.param("greenhouse.sap/v1alpha1", "PluginDefinition", "default", id="plugin-definition"),
        pytest.param("greenhouse.sap/v1alpha1", "PluginOverride", "default", id="plugin-override"),
        pytest.param("greenhouse.sap/v1alpha1", "Cluster", "default", id="cluster"),
        pytest.param("greenhouse.sap/v1alpha1", "Team", "default", id="team"),
        pytest.param("greenhouse.sap/v1alpha1", "Organization", "_cluster", id="organization"),
        pytest.param("greenhouse.sap/v1alpha1", "ClusterPluginDefinition", "_cluster", id="cluster-plugin-definition"),
        pytest.param("core.kubeadmiral.io/v1alpha1", "OverridePolicy", "default", id="override-policy"),
        pytest.param("core.kubeadmiral.io/v1alpha1", "PropagationPolicy", "default", id="propagation-policy"),
        pytest.param("core.kubeadmiral.io/v1alpha1", "ClusterOverridePolicy", "_cluster", id="cluster-policy"),
        pytest.param("core.kubeadmiral.io/v1alpha1", "FederatedCluster", "_cluster", id="federated-cluster"),
        pytest.param("platform/v1alpha1", "EnvBinding", "default", id="binding"),
        pytest.param("platform/v1alpha1", "Component", "default", id="component"),
        pytest.param("platform/v1alpha1", "PublicApi", "default", id="generated-kind"),
        pytest.param("platform/v1alpha1", "ComponentDefinition", "_cluster", id="component-definition"),
        pytest.param("platform/v1alpha1", "ComponentType", "_cluster", id="component-type"),
        pytest.param("platform/v1alpha1", "Addon", "_cluster", id="addon"),
        pytest.param("reconciler.dev/v1alpha1", "Build", "default", id="build"),
        pytest.param("reconciler.dev/v1alpha1", "Environment", "_cluster", id="environment"),
        pytest.param("kafka.strimzi.io/v1", "Kafka", "_cluster", id="plain-custom-resource"),
        pytest.param("v1", "ConfigMap", "_cluster", id="plain-resource"),
    ],
)
@pytest.mark.parametrize("written", ["{name: a}", '{name: a, namespace: ""}', "{name: a, namespace: null}"])
def test_default_namespace_of_an_object(api_version: str, kind: str, namespace: str, written: str) -> None:
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {written}\n"

    assert list_names(read({"a.yaml": text})) == [f"{kind}/{namespace}/a"]


def test_absent_namespace_and_default_are_the_same_object() -> None:
    text = "apiVersion: greenhouse.sap/v1alpha1\nkind: Plugin\nmetadata: {name: a%s}\n"

    assert list_codes(read({"a.yaml": text % "", "b.yaml": text % ", namespace: default"})) == ["DuplicateObject"] * 2


def list_codes(catalog: Catalog) -> list[str]:
    return [finding.code for finding in catalog.findings]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("a.yaml", True, id="yaml"),
        pytest.param("x/y/a.yml", True, id="yml-in-folders"),
        pytest.param("a.json", True, id="json"),
        pytest.param("a.txt", False, id="text"),
        pytest.param("a.yaml.tpl", False, id="template"),
        pytest.param("a.YAML", False, id="capitals"),
        pytest.param("Kptfile", False, id="kptfile"),
        pytest.param(".a.yaml", False, id="hidden-file"),
        pytest.param(".github/workflows/a.yaml", False, id="hidden-folder"),
        pytest.param("x/.reconciler/a.yaml", False, id="hidden-folder-in-a-folder"),
    ],
)
def test_config_paths(path: str, expected: bool) -> None:
    assert is_config_path(path) is expected
    assert bool(read({path: format_config_map()}).objects) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(format_config_map(), ["ConfigMap/_cluster/a"], id="an-object"),
        pytest.param(
            format_config_map() + "---\n" + format_config_map("b"),
            ["ConfigMap/_cluster/a", "ConfigMap/_cluster/b"],
            id="two",
        ),
        pytest.param('{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}', ["A/_cluster/a"], id="json"),
        pytest.param(format_config_map(more=", namespace: n"), ["ConfigMap/n/a"], id="with-a-namespace"),
        pytest.param(format_porch_object(), ["Repository/default/a"], id="porch-kinds-are-in-default"),
        pytest.param(
            format_porch_object(metadata="{name: a, namespace: ''}"),
            ["Repository/default/a"],
            id="an-empty-namespace-is-none",
        ),
        pytest.param(
            format_porch_object(metadata="{name: a, namespace: n}"), ["Repository/n/a"], id="or-where-they-say"
        ),
        pytest.param(format_config_map(more=f', annotations: {{{LOCAL}: "true"}}'), [], id="local-config"),
        pytest.param(
            format_config_map(more=f', annotations: {{{LOCAL}: "false"}}'), ["ConfigMap/_cluster/a"], id="not-local"
        ),
        pytest.param("metadata: {name: a}\n", [], id="neither-kind-nor-version"),
        pytest.param("kind: A\nmetadata: {name: a}\n", [], id="no-version"),
        pytest.param("apiVersion: v1\nkind: 1\nmetadata: {name: a}\n", [], id="a-kind-that-is-no-text"),
        pytest.param("apiVersion: v1\nkind: List\n", [], id="no-name-and-another-api-group"),
        pytest.param("apiVersion: v1\nkind: A\nmetadata: [a]\n", [], id="metadata-that-is-no-mapping"),
        pytest.param("- apiVersion: v1\n  kind: A\n", [], id="a-list"),
        pytest.param("just text\n", [], id="a-text"),
        pytest.param("", [], id="empty"),
        pytest.param(
            "---\n# only a comment\n---\n" + format_config_map(), ["ConfigMap/_cluster/a"], id="empty-documents"
        ),
    ],
)
def test_config_documents(text: str, expected: list[str]) -> None:
    catalog = read({"a.yaml": text})

    assert list_names(catalog) == expected
    assert (catalog.findings, catalog.unreadable) == ((), ())


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            {"p/Kptfile": format_porch_object("Kptfile"), "p/a.yaml": A, "b.yaml": B}, ["a", "b"], id="beside-a-kptfile"
        ),
        pytest.param({".krmignore": "a.yaml\n", "a.yaml": A, "b.yaml": B}, ["b"], id="ignored"),
        pytest.param({".krmignore": "x/\n", "x/y/a.yaml": A, "b.yaml": B}, ["b"], id="an-ignored-folder"),
        pytest.param(
            {"x/.krmignore": "*.yaml\n", "x/a.yaml": A, "b.yaml": B}, ["b"], id="only-in-the-folder-of-the-ignore-file"
        ),
        pytest.param({"x/.krmignore": "*.yaml\n", "xy/a.yaml": A, "b.yaml": B}, ["a", "b"], id="not-in-a-longer-name"),
        pytest.param({".krmignore": "*.yaml\n!a.yaml\n", "a.yaml": A, "b.yaml": B}, ["a"], id="an-exception"),
        pytest.param({".krmignore": "bad.yaml\n", "bad.yaml": "a: [\n"}, [], id="what-is-ignored-may-be-broken"),
    ],
)
def test_config_files(files: dict[str, str], expected: list[str]) -> None:
    catalog = read(files)

    assert [key.name for key in catalog.objects] == expected
    assert (catalog.findings, catalog.unreadable) == ((), ())


@pytest.mark.parametrize(
    ("files", "places"),
    [
        pytest.param(
            {"a.yaml": format_config_map() + "---\n" + format_config_map()},
            [("a.yaml", 1), ("a.yaml", 5)],
            id="one-file",
        ),
        pytest.param(
            {"a.yaml": format_config_map(), "b.yaml": format_config_map()},
            [("a.yaml", 1), ("b.yaml", 1)],
            id="two-files",
        ),
        pytest.param(
            {"a.yaml": format_porch_object(), "b.yaml": format_porch_object(metadata="{name: a, namespace: default}")},
            [("a.yaml", 1), ("b.yaml", 1)],
            id="explicit-and-implicit-default-namespace",
        ),
        pytest.param(
            {"a.yaml": format_porch_object(), "b.yaml": format_porch_object().replace("v1alpha1", "v1alpha2")},
            [("a.yaml", 1), ("b.yaml", 1)],
            id="two-versions-of-one-object",
        ),
    ],
)
def test_duplicate_objects_are_ignored(files: dict[str, str], places: list[tuple[str, int]]) -> None:
    catalog = read({**files, "other.yaml": format_config_map("other")})

    assert list_names(catalog) == ["ConfigMap/_cluster/other"]
    assert [(finding.code, finding.severity) for finding in catalog.findings] == [
        ("DuplicateObject", Severity.ERROR)
    ] * 2
    assert [(finding.location.file, finding.location.line) for finding in catalog.findings] == places
    first, second = catalog.findings
    assert "{}:{}".format(*places[1]) in first.message
    assert "{}:{}".format(*places[0]) in second.message
    assert [key.name for key in catalog.duplicates] == ["a"]
    assert [
        [(config_object.file, config_object.location.line) for config_object in same]
        for same in catalog.copies.values()
    ] == [places]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        pytest.param(format_config_map(), format_config_map("b"), id="names"),
        pytest.param(format_config_map(), format_config_map(more=", namespace: n"), id="namespaces"),
        pytest.param(format_config_map(), format_config_map().replace("ConfigMap", "Secret"), id="kinds"),
        pytest.param(format_config_map(), format_config_map().replace("v1", "x.example/v1"), id="groups"),
    ],
)
def test_similar_objects_are_no_duplicates(text: str, other: str) -> None:
    catalog = read({"a.yaml": text, "b.yaml": other})

    assert (len(catalog.objects), catalog.findings) == (2, ())


@pytest.mark.parametrize(
    ("metadata", "line", "written"),
    [
        pytest.param("{labels: {}}", 3, "but the field is missing", id="no-name"),
        pytest.param("{name: ''}", 3, 'but is ""', id="an-empty-one"),
        pytest.param("\n  name: 5", 4, "but is 5", id="a-number"),
        pytest.param("[a]", 3, "but the field is missing", id="no-mapping"),
    ],
)
def test_object_without_name_is_a_finding(metadata: str, line: int, written: str) -> None:
    catalog = read({"a.yaml": format_porch_object(metadata=metadata)})
    (finding,) = catalog.findings

    assert catalog.objects == {}
    assert (finding.code, finding.message) == (
        "NameMissing", f"metadata.name must be a non-empty string, {written}"
    )  # fmt: skip
    assert (finding.location.file, finding.location.line) == ("a.yaml", line)


@pytest.mark.parametrize(
    ("document", "value"),
    [
        pytest.param("apiVersion: greenhouse.sap/v1alpha1\nkind: PluginPreset\n", True, id="a-preset"),
        pytest.param("apiVersion: core.kubeadmiral.io/v1alpha1\nkind: OverridePolicy\n", True, id="a-policy"),
        pytest.param("apiVersion: platform/v1alpha1\nkind: EnvBinding\nmetadata: {}\n", True, id="a-binding"),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {annotations: {reconciler.dev/clusters: a}}\n", True,
            id="a-resource-that-is-placed",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Secret\nmetadata: {labels: {kubeadmiral.io/propagation-policy-name: a}}\n", True,
            id="a-resource-with-a-policy",
        ),
        pytest.param("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", False, id="of-another-tool"),
        pytest.param("apiVersion: v1\nkind: List\nmetadata: {}\nitems: []\n", False, id="a-list"),
        pytest.param(
            "apiVersion: platform/v1alpha1\nkind: EnvBinding\n"
            "metadata: {annotations: {config.kubernetes.io/local-config: 'true'}}\n", False, id="passed-over",
        ),
    ],
)  # fmt: skip
def test_object_without_name_makes_the_catalog_incomplete(document: str, value: bool) -> None:
    catalog = read({"a.yaml": document})

    assert ([finding.code for finding in catalog.findings], catalog.is_complete) == (
        ["NameMissing"] if value else [],
        not value,
    )


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        pytest.param(
            "kind: PackageVariant\nmetadata: {name: a}\n", "PackageVariant of config.porch.kpt.dev", id="known"
        ),
        pytest.param("kind: PluginPrest\nspec: {}\n", "PluginPreset of greenhouse.sap", id="similar"),
        pytest.param("kind: Kafka\nmetadata: {}\napiVersions: v1\n", "Kafka of kafka.strimzi.io", id="misspelt-field"),
        pytest.param("kind: Kafka\nmetadata: {}\napiVersion: 1\n", "Kafka of kafka.strimzi.io", id="no-text"),
        pytest.param("kind: Kafka\n", "", id="without-metadata-and-spec"),
        pytest.param("kind: Deployment\nmetadata: {name: a}\n", "", id="another-kind"),
        pytest.param("metadata: {name: a}\n", "", id="no-kind"),
        pytest.param(f"kind: Kafka\nmetadata: {{annotations: {{{LOCAL}: 'true'}}}}\n", "", id="local-config"),
    ],
)
def test_document_of_a_known_kind_without_api_version(text: str, suggestion: str) -> None:
    catalog = read({"a.yaml": text})

    expected = [("UnknownKind", f"did you mean {suggestion}?")] if suggestion else []
    assert [(finding.code, finding.message.partition("; ")[2]) for finding in catalog.findings] == expected
    assert all(finding.severity is Severity.WARNING for finding in catalog.findings)
    assert not catalog.objects


def test_invalid_file_affects_only_itself() -> None:
    catalog = read({"bad.yaml": format_config_map("lost") + "---\na: [\n", "good.yaml": format_config_map()})
    (broken,) = catalog.unreadable

    assert list_names(catalog) == ["ConfigMap/_cluster/a"]
    assert (broken.file, broken.finding.code, broken.finding.location.file) == ("bad.yaml", "YamlSyntax", "bad.yaml")
    assert broken.finding.location.line >= 5
    assert broken.finding.message.startswith(f"bad.yaml:{broken.finding.location.line}: ")


def test_unreadable_file_is_listed() -> None:
    catalog = read_catalog(
        build_tree({"a.yaml": format_config_map()}),
        unreadable_paths={"b.yaml": "permission denied", "b.txt": "the same"},
    )

    assert list_names(catalog) == ["ConfigMap/_cluster/a"]
    assert [
        (unreadable_file.file, unreadable_file.finding.code, unreadable_file.finding.message)
        for unreadable_file in catalog.unreadable
    ] == [("b.yaml", "FileUnreadable", "b.yaml: permission denied")]


def test_limits_apply() -> None:
    catalog = read_catalog(
        build_tree({"a.yaml": format_config_map(), "b.yaml": "{}\n"}), limits=YamlLimits(file_bytes=10)
    )

    assert [unreadable_file.file for unreadable_file in catalog.unreadable] == ["a.yaml"]


def test_file_is_parsed_once() -> None:
    memory: ParseCache = {}
    files = build_tree({"a.yaml": format_config_map(), "bad.yaml": "a: [\n"})

    first = read_catalog(files, memory)
    catalog = read_catalog(files.with_files({"b.yaml": format_config_map("b").encode()}), memory)

    a = ObjectKey("", "ConfigMap", "", "a")
    assert catalog.objects[a].document is first.objects[a].document
    assert list_names(catalog) == ["ConfigMap/_cluster/a", "ConfigMap/_cluster/b"]
    assert first.unreadable == catalog.unreadable
    assert len(memory) == 3


@pytest.mark.parametrize(
    ("then", "is_same"),
    [
        pytest.param({"a.yaml": format_config_map() + "---\n" + format_config_map("c")}, True, id="beside-another"),
        pytest.param({"a.yaml": "---\n" + format_config_map()}, False, id="a-line-further-down"),
        pytest.param({"a.yaml": format_config_map().replace("name: a", "name:  a")}, False, id="written-otherwise"),
        pytest.param({"b.yaml": format_config_map()}, False, id="in-another-file"),
        pytest.param({"a.yaml": format_config_map(), "b.yaml": format_config_map()}, None, id="in-two-files"),
    ],
)
def test_unchanged_object_is_the_same_object(then: dict[str, str], is_same: bool | None) -> None:
    a = ObjectKey("", "ConfigMap", "", "a")
    before = read_catalog(build_tree({"a.yaml": format_config_map()}))

    now = read_catalog(build_tree(then), previous=before)

    assert (now.objects[a] is before.objects[a] if a in now.objects else None) is is_same
    assert {key: (config_object.file, config_object.document) for key, config_object in now.objects.items()} == {
        key: (config_object.file, config_object.document)
        for key, config_object in read_catalog(build_tree(then)).objects.items()
    }


def test_cached_file_has_its_current_name() -> None:
    memory: ParseCache = {}
    read_catalog(build_tree({"old.yaml": format_porch_object(), "bad-old.yaml": "a: [\n"}), memory)

    catalog = read_catalog(build_tree({"new.yaml": format_porch_object(), "bad-new.yaml": "a: [\n"}), memory)

    assert [config_object.file for config_object in catalog.objects.values()] == ["new.yaml"]
    assert [unreadable_file.file for unreadable_file in catalog.unreadable] == ["bad-new.yaml"]


MANY = {
    "a.yaml": format_porch_object(metadata="{name: b}")
    + "---\n"
    + format_porch_object(metadata="{name: a, namespace: z}"),
    "b.yaml": format_porch_object(metadata="{name: a}") + "---\n" + format_porch_object("PackageVariant"),
    "c.yaml": "apiVersion: fleet.example/v1\nkind: Site\nmetadata: {name: s}\n"
    "---\napiVersion: fleet.example/v2\nkind: Site\nmetadata: {name: t}\n"
    "---\napiVersion: fleet.example/v1\nkind: Site\nmetadata: {name: u, namespace: z}\n",
}


def test_objects_by_kind_are_sorted() -> None:
    catalog = read(MANY)

    assert [config_object.key.reference for config_object in catalog.objects_of_kind("config.porch.kpt.dev", "Repository")] == [
        "Repository/default/a", "Repository/default/b", "Repository/z/a",
    ]  # fmt: skip
    assert catalog.objects_of_kind("config.porch.kpt.dev", "Nothing") == ()


@pytest.mark.parametrize(
    ("api_version", "namespace", "expected"),
    [
        pytest.param("fleet.example/v1", "default", ["s"], id="without-a-namespace-it-is-in-default"),
        pytest.param("fleet.example/v2", "default", ["t"], id="this-version-only"),
        pytest.param("fleet.example/v1", "z", ["u"], id="this-namespace-only"),
        pytest.param("fleet.example/v3", "default", [], id="none"),
    ],
)
def test_objects_in_the_namespace_of_a_variant(api_version: str, namespace: str, expected: list[str]) -> None:
    assert [
        config_object.key.name for config_object in read(MANY).objects_of_type(api_version, "Site", namespace)
    ] == expected


def test_get_object() -> None:
    catalog = read(MANY)
    key = ObjectKey("fleet.example", "Site", "z", "u")
    config_object = catalog.get(key)

    assert config_object is not None
    assert (
        config_object.api_version,
        config_object.file,
        config_object.location.line,
        config_object.location.object,
    ) == (
        "fleet.example/v1",
        "c.yaml",
        9,
        "Site/z/u",
    )
    assert catalog.objects_by_name["fleet.example/v1", "Site", "z", "u"] is config_object
    assert ("fleet.example/v1", "Site", "z") in catalog.types
    assert catalog.get(ObjectKey("fleet.example", "Site", "", "u")) is None


def test_field_of_an_object_has_a_location() -> None:
    (config_object,) = read({"a.yaml": format_porch_object() + "spec:\n  a/b~c:\n  - x\n"}).objects.values()
    where = config_object.location_of(("spec", "a/b~c", 0, "missing"))

    assert (where.line, where.pointer) == (6, "/spec/a~1b~0c/0/missing")


def test_labels_and_annotations_contain_only_strings() -> None:
    (config_object,) = read(
        {"a.yaml": format_porch_object(metadata="{name: a, labels: {b: c, n: 1}, annotations: [x]}")}
    ).objects.values()

    assert (config_object.labels, config_object.annotations) == ({"b": "c"}, {})


@pytest.mark.parametrize(
    ("text", "equal"),
    [
        pytest.param(format_config_map(), True, id="equal"),
        pytest.param("# why\n" + format_config_map().replace(": v1", ": 'v1'"), True, id="comments-and-quotes"),
        pytest.param("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n", True, id="order"),
        pytest.param(format_config_map() + "status: {x: 1}\n", True, id="status"),
        pytest.param(format_config_map() + "data: {x: y}\n", False, id="data"),
        pytest.param(format_config_map(more=", labels: {x: y}"), False, id="labels"),
    ],
)
def test_digest_of_an_object(text: str, equal: bool) -> None:
    (before,), (after,) = (
        read({"a.yaml": format_config_map()}).objects.values(),
        read({"b.yaml": text}).objects.values(),
    )

    assert (before.digest == after.digest) is equal


DOCUMENTS = (
    format_config_map("a"),
    format_config_map("b"),
    format_porch_object(),
    format_porch_object(metadata="{}"),
    "a: [\n",
    "- x\n",
    "kind: A\n",
)


@settings(max_examples=examples(60))
@given(
    st.dictionaries(
        st.sampled_from(["a.yaml", "b.yaml", "x/a.yml", "x/.a.yml"]),
        st.lists(st.sampled_from(DOCUMENTS), max_size=3).map("---\n".join),
    )
)
def test_every_file_is_read_or_unreadable(files: dict[str, str]) -> None:
    catalog = read_catalog(build_tree(files), {}, DEFAULT_YAML_LIMITS)

    values = {unreadable_file.file for unreadable_file in catalog.unreadable}
    assert values == {path for path, text in files.items() if "a: [" in text and is_config_path(path)}
    assert all(config_object.file not in values for config_object in catalog.objects.values())
