"""Tests of updated Kustomization files: generators are merged by name, as in the schema of kyaml."""

from __future__ import annotations

import pytest
import yaml

from reconciler.packages.update.options import MergeOptions, create_compat_options
from tests.unit.packages.builders import read_texts
from tests.unit.packages.update.builders import SAFE, build_package, run_update

NAMED = "metadata:\n  name: k\n"
ENTRY = {
    "base": "- name: base\n  literals:\n  - a=1\n",
    "base-2": "- name: base\n  literals:\n  - a=2\n",
    "local": "- name: local\n  files:\n  - mine.txt\n",
    "upstream": "- name: upstream\n  literals:\n  - u=1\n",
}


def format_kustomization(field: str, *entries: str, head: str = "", resources: tuple[str, ...] = ("web.yaml",)) -> str:
    lines = f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n{head}"
    lines += "resources:\n" + "".join(f"- {resource}\n" for resource in resources)
    generators = "".join(ENTRY[entry] for entry in entries)
    return lines + (f"{field}:\n{generators}" if entries else "")


def merge(options: MergeOptions, *sides: str) -> object:
    result = run_update((build_package({"kustomization.yaml": side}) for side in sides), options)
    return yaml.safe_load(read_texts(result.files)["kustomization.yaml"])


@pytest.mark.parametrize("options", [pytest.param(SAFE, id="safe"), pytest.param(create_compat_options(), id="compat")])
@pytest.mark.parametrize("field", ["configMapGenerator", "secretGenerator"])
@pytest.mark.parametrize("head", [pytest.param("", id="without-a-name"), pytest.param(NAMED, id="with-a-name")])
@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param(["base"], ["base-2"], ["base", "local"], ["base-2", "local"], id="an-entry-added-here"),
        pytest.param(["base"], ["base", "upstream"], ["base", "local"], ["base", "local", "upstream"], id="both-add"),
        pytest.param(["base", "local"], ["base-2", "local"], ["base"], ["base-2"], id="removed-here"),
        pytest.param([], ["upstream"], ["local"], ["local", "upstream"], id="new-on-both-sides"),
    ],
)
def test_generators_are_merged_by_name(
    options: MergeOptions,
    field: str,
    head: str,
    origin: list[str],
    updated: list[str],
    local: list[str],
    expected: list[str],
) -> None:
    sides = [format_kustomization(field, *entries, head=head) for entries in (origin, updated, local)]

    result = merge(options, *sides)

    document = yaml.safe_load(format_kustomization(field, *expected, head=head))
    assert isinstance(result, dict)
    order = {entry["name"]: entry for entry in result.pop(field)}
    assert order == {entry["name"]: entry for entry in document.pop(field)}
    assert result == document


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(SAFE, [{"name": "local", "files": ["mine.txt"]}], id="safe-keeps-the-local-entry"),
        pytest.param(create_compat_options(), None, id="kpt-removes-a-list-that-upstream-removed"),
    ],
)
def test_list_that_upstream_removed(options: MergeOptions, expected: object) -> None:
    sides = [format_kustomization("configMapGenerator", *entries) for entries in (["base"], [], ["base", "local"])]

    result = merge(options, *sides)

    assert isinstance(result, dict)
    assert result.get("configMapGenerator") == expected


@pytest.mark.parametrize("options", [pytest.param(SAFE, id="safe"), pytest.param(create_compat_options(), id="compat")])
def test_other_lists_take_the_changed_side(options: MergeOptions) -> None:
    sides = [
        format_kustomization("configMapGenerator", "base", resources=("web.yaml", "new.yaml")),
        format_kustomization("configMapGenerator", "base-2", resources=("web.yaml", "new.yaml")),
        format_kustomization("configMapGenerator", "base", resources=("web.yaml", "new.yaml", "mine.yaml")),
    ]

    result = merge(options, *sides)

    assert isinstance(result, dict)
    assert result["resources"] == ["web.yaml", "new.yaml", "mine.yaml"]
    assert result["configMapGenerator"] == [{"name": "base", "literals": ["a=2"]}]
