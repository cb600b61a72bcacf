"""The shared acceptance cases, as far as overrides alone decide them: each resource on each of its clusters."""

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
from tests.unit.controllers.override_policies.override_world import at, codes, override_package, same_data, tree

CASES = Path(__file__).resolve().parents[4] / "../shared/cases/overrides"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not on this machine")
PLACED = "reconciler.dev/clusters"


def read_case(path: Path) -> Any:
    return parse_yaml(path.read_text()).documents[0].data


def cases_of_placed_resources() -> list[Path]:
    return [path for path in sorted(CASES.glob("*.yaml")) if not read_case(path)["repos"]]


def clusters_of(config: Catalog) -> dict[str, Cluster]:
    repositories = config.objects_of_kind("config.porch.kpt.dev", "Repository")
    return {
        config_object.key.name: Cluster(config_object.key.name, config_object.labels) for config_object in repositories
    }


def expectations() -> Iterator[Any]:
    for path in cases_of_placed_resources():
        case = read_case(path)
        for file, checks in case["expect"]["files"].items():
            yield pytest.param(case["config"], file, checks, id=f"{path.stem[:2]}-{file.partition('/')[0]}")


@pytest.mark.parametrize(("texts", "file", "checks"), list(expectations()))
def test_a_placed_resource(texts: dict[str, str], file: str, checks: list[dict[str, Any]]) -> None:
    config = read_catalog(tree(texts))
    cluster, name = file.partition("/")[0], file.rpartition("/")[2]
    placed = {
        f"{config_object.key.kind.lower()}-{config_object.key.name}.yaml": config_object.document.text
        for config_object in config.objects.values()
        if PLACED in config_object.annotations
    }

    package = override_package(tree({name: placed[name]}), read_override_policies(config), clusters_of(config)[cluster])

    assert [finding for finding in package.findings if finding.severity == "error"] == []
    data = parse_yaml(package.files[name].data).documents[0].data
    for check in checks:
        holds(data, check)


def holds(data: Any, check: dict[str, Any]) -> None:
    if check.get("absent"):
        with pytest.raises(PointerError):
            at(data, check["path"])
    elif "length" in check:
        assert len(at(data, check["path"])) == check["length"]
    else:
        assert same_data(at(data, check["path"]), check["equals"])


def package_of(case: Any, name: str) -> dict[str, str]:
    (source,) = case["repos"]["catalog"]
    return {
        path.removeprefix(f"{name}/"): text for path, text in source["files"].items() if path.startswith(f"{name}/")
    }


def test_a_missing_policy_withholds_its_package_alone() -> None:
    (path,) = CASES.glob("09-*.yaml")
    case = read_case(path)
    policies = read_override_policies(read_catalog(tree(case["config"])))

    mapping = {
        name: codes(override_package(tree(package_of(case, name)), policies, Cluster("quay-1")).findings)
        for name in ("invoices", "receipts")
    }

    assert mapping == {"invoices": ["PolicyNotFound"], "receipts": []}


@pytest.mark.parametrize("cluster", ["kiln-1", "kiln-2"])
def test_untouched_bytes(cluster: str) -> None:
    (path,) = CASES.glob("10-*.yaml")
    case = read_case(path)
    policies = read_override_policies(read_catalog(tree(case["config"])))

    package = override_package(tree(package_of(case, "oven")), policies, Cluster(cluster))

    text = without_comments(package.files["stack.yaml"].data.decode())
    for check in case["expect"]["files"][f"{cluster}/oven/stack.yaml"]:
        if "equalsText" in check:
            assert text == without_comments(check["equalsText"])
        elif "contains" in check:
            assert without_comments(check["contains"]) in text
        elif "notContains" in check:
            assert check["notContains"] not in text
        else:
            assert at(parse_yaml(text).documents[0].data, check["path"]) == check["equals"]


def without_comments(text: str) -> str:
    """Return a text without the merge comments that a clone writes, which are no business of overrides."""
    return text.replace(" # kpt-merge: bakery/oven", "")
