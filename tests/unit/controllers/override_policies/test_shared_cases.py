"""Tests with the shared acceptance cases of overrides: each resource on each of its clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.read_policies import read_override_policies
from reconciler.krm.json_pointer import PointerError
from reconciler.krm.yaml import parse_yaml
from tests.unit.controllers.override_policies.override_world import (
    build_tree,
    get_at_pointer,
    is_same_json,
    list_codes,
    override_package,
)

CASES = Path(__file__).resolve().parents[4] / "../shared/cases/overrides"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not on this machine")
PLACED = "reconciler.dev/clusters"


def read_case(path: Path) -> Any:
    return parse_yaml(path.read_text()).documents[0].data


def find_placement_cases() -> list[Path]:
    return [path for path in sorted(CASES.glob("*.yaml")) if not read_case(path)["repos"]]


def list_clusters(config: Catalog) -> dict[str, Cluster]:
    repositories = config.objects_of_kind("config.porch.kpt.dev", "Repository")
    return {
        config_object.key.name: Cluster(config_object.key.name, config_object.labels) for config_object in repositories
    }


def list_expectations() -> Iterator[Any]:
    for path in find_placement_cases():
        case = read_case(path)
        for file, checks in case["expect"]["files"].items():
            yield pytest.param(case["config"], file, checks, id=f"{path.stem[:2]}-{file.partition('/')[0]}")


@pytest.mark.parametrize(("texts", "file", "checks"), list(list_expectations()))
def test_placed_resource_has_the_expected_content(
    texts: dict[str, str], file: str, checks: list[dict[str, Any]]
) -> None:
    config = read_catalog(build_tree(texts))
    cluster, name = file.partition("/")[0], file.rpartition("/")[2]
    placed = {
        f"{config_object.key.kind.lower()}-{config_object.key.name}.yaml": config_object.document.text
        for config_object in config.objects.values()
        if PLACED in config_object.annotations
    }

    package = override_package(
        build_tree({name: placed[name]}), read_override_policies(config), list_clusters(config)[cluster]
    )

    assert [finding for finding in package.findings if finding.severity == "error"] == []
    data = parse_yaml(package.files[name].data).documents[0].data
    for check in checks:
        check_expectation(data, check)


def check_expectation(data: Any, check: dict[str, Any]) -> None:
    if check.get("absent"):
        with pytest.raises(PointerError):
            get_at_pointer(data, check["path"])
    elif "length" in check:
        assert len(get_at_pointer(data, check["path"])) == check["length"]
    else:
        assert is_same_json(get_at_pointer(data, check["path"]), check["equals"])


def read_package(case: Any, name: str) -> dict[str, str]:
    (source,) = case["repos"]["catalog"]
    return {
        path.removeprefix(f"{name}/"): text for path, text in source["files"].items() if path.startswith(f"{name}/")
    }


def test_missing_policy_blocks_only_its_package() -> None:
    (path,) = CASES.glob("09-*.yaml")
    case = read_case(path)
    policies = read_override_policies(read_catalog(build_tree(case["config"])))

    mapping = {
        name: list_codes(override_package(build_tree(read_package(case, name)), policies, Cluster("quay-1")).findings)
        for name in ("invoices", "receipts")
    }

    assert mapping == {"invoices": ["PolicyNotFound"], "receipts": []}


@pytest.mark.parametrize("cluster", ["kiln-1", "kiln-2"])
def test_unchanged_bytes_stay(cluster: str) -> None:
    (path,) = CASES.glob("10-*.yaml")
    case = read_case(path)
    policies = read_override_policies(read_catalog(build_tree(case["config"])))

    package = override_package(build_tree(read_package(case, "oven")), policies, Cluster(cluster))

    text = remove_merge_comments(package.files["stack.yaml"].data.decode())
    for check in case["expect"]["files"][f"{cluster}/oven/stack.yaml"]:
        if "equalsText" in check:
            assert text == remove_merge_comments(check["equalsText"])
        elif "contains" in check:
            assert remove_merge_comments(check["contains"]) in text
        elif "notContains" in check:
            assert check["notContains"] not in text
        else:
            assert get_at_pointer(parse_yaml(text).documents[0].data, check["path"]) == check["equals"]


def remove_merge_comments(text: str) -> str:
    """Return a text without the merge comments of a cloned package. Overrides do not write them."""
    return text.replace(" # kpt-merge: bakery/oven", "")
