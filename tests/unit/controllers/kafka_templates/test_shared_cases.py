"""Tests of template merges with the shared acceptance cases: the packages of each cluster are merged together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import FileTree
from reconciler.controllers.kafka_templates.package_templates import TemplatedPackage, apply_templates
from reconciler.controllers.kafka_templates.pairing import find_pairs
from reconciler.krm.findings import select_errors
from reconciler.krm.json_pointer import PointerError, parse_pointer, resolve_pointer
from reconciler.krm.yaml import parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from tests.unit.controllers.kafka_templates.template_builders import tree

CASES = Path(__file__).resolve().parents[4] / "../shared/cases/templates"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not on this machine")
PLACED = "reconciler.dev/clusters"


def load_cases() -> list[Any]:
    return [
        pytest.param(parse_yaml(path.read_text()).documents[0].data, id=path.stem)
        for path in sorted(CASES.glob("*.yaml"))
    ]


def build_packages(case: Any) -> dict[str, dict[str, FileTree]]:
    """Return the packages of each cluster before the merge of templates."""
    config = read_catalog(tree(case["config"]))
    names = [
        config_object.key.name
        for config_object in config.objects_of_kind("config.porch.kpt.dev", "Repository")
        if _is_deployment(config_object.data)
    ]
    return {
        name: {**_build_placed_packages(config, name), **_build_variant_packages(config, name, case["repos"])}
        for name in names
    }


def _is_deployment(repository: Mapping[str, Any]) -> bool:
    return bool(repository["spec"].get("deployment"))


def _build_placed_packages(config: Catalog, cluster: str) -> dict[str, FileTree]:
    mapping: dict[str, dict[str, str]] = {}
    for config_object in config.objects.values():
        part = config_object.annotations.get(PLACED, "").split(",")
        if cluster in part or "*" in part:
            file = f"{config_object.key.kind.lower()}-{config_object.key.name}.yaml"
            mapping.setdefault(f"resources/{config_object.key.namespace}", {})[file] = (
                config_object.document.as_only_document().text
            )
    return {name: tree(texts) for name, texts in mapping.items()}


def _build_variant_packages(config: Catalog, cluster: str, repos: Any) -> dict[str, FileTree]:
    mapping = {}
    for config_object in config.objects_of_kind("config.porch.kpt.dev", "PackageVariant"):
        upstream, downstream = config_object.data["spec"]["upstream"], config_object.data["spec"]["downstream"]
        if downstream["repo"] == cluster:
            (source,) = repos[upstream["repo"]]
            mapping[downstream["package"]] = tree(source["files"]).subtree(upstream["package"])
    return mapping


def merge_case(case: Any) -> dict[str, dict[str, TemplatedPackage]]:
    return {
        cluster: {name: apply_templates(files, find_pairs(packages)) for name, files in packages.items()}
        for cluster, packages in build_packages(case).items()
    }


@pytest.mark.parametrize("case", load_cases())
def test_shared_case(case: Any) -> None:
    result = merge_case(case)

    checked = 0
    for file, checks in case["expect"]["files"].items():
        cluster, _, path = file.partition("/")
        if path.startswith(".reconciler/"):
            package = result[cluster][path.removeprefix(".reconciler/").removesuffix(".yaml")]
            assert {check["contains"] for check in checks} <= {finding.code for finding in package.findings}
            continue
        text = next(text for name, text in list_file_texts(result[cluster]) if name == path)
        for check in checks:
            assert_check(text, check)
            checked += 1
    assert checked
    assert [
        finding
        for packages in result.values()
        for package in packages.values()
        for finding in select_errors(package.findings)
    ] == []


@pytest.mark.parametrize("case", load_cases())
def test_second_merge_of_the_same_input_is_equal(case: Any) -> None:
    once, second_result = merge_case(case), merge_case(case)

    assert {c: {n: p.files for n, p in item.items()} for c, item in once.items()} == {
        c: {n: p.files for n, p in item.items()} for c, item in second_result.items()
    }


def list_file_texts(packages: Mapping[str, TemplatedPackage]) -> Iterator[tuple[str, str]]:
    for name, package in packages.items():
        for path, file in package.files.items():
            yield f"{name}/{path}", file.data.decode()


def assert_check(text: str, check: Mapping[str, Any]) -> None:
    if "contains" in check:
        assert check["contains"] in text
        return
    data, path = parse_yaml(text).documents[0].data, parse_pointer(check["path"])
    if check.get("absent"):
        with pytest.raises(PointerError):
            resolve_pointer(data, path)
    else:
        assert is_equal_data(resolve_pointer(data, path), check["equals"])
