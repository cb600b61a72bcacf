"""Tests of the merge of plugin.yaml with local changes: fields of the controller are restored, other content stays."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.results import GeneratedSource, Variant
from reconciler.krm.yaml import parse_yaml
from reconciler.packages.update.options import MergeOptions
from reconciler.planning.model.sources import BranchPackage, RenderInputs, merge_source
from tests.unit.controllers.plugin_presets.controller_world import (
    EAST,
    build_catalog,
    build_definition,
    build_option,
    build_preset,
    build_value,
    find_variant,
    run_controller,
)

TEXTS = [EAST, build_definition([build_option("size", "int", 1)]), build_preset([build_value("flag", 1)])]
VARIANT = find_variant(run_controller(TEXTS), "east/logs-east")


def read_source(variant: Variant) -> FileTree:
    assert isinstance(variant.source, GeneratedSource)
    return variant.source.files


OURS = read_source(VARIANT)["plugin.yaml"].data.decode()
VIEW = CatalogView(DependencyReader(build_catalog({})))
MINE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n"


def merge_local_change(text: str) -> FileTree:
    """Return the package after a pass over a branch with a local change of the published file."""
    last_files, branch_files = read_source(VARIANT), FileTree({"plugin.yaml": File(text.encode())})
    render_inputs = RenderInputs(
        last_files, BranchPackage(branch_files, last_files, last_files, last_files, last_files), is_generated=True
    )
    return VARIANT.mutation(merge_source(render_inputs, None, MergeOptions()).files, VIEW).files


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(OURS, OURS, id="nothing-changed"),
        pytest.param(OURS.replace("displayName: logs east", "displayName: mine"), OURS, id="a-field"),
        pytest.param(OURS.replace("clusterName: east", "clusterName: west"), OURS, id="the-cluster"),
        pytest.param(OURS + "  more: 5\n", OURS, id="a-local-field-in-the-generated-spec"),
        pytest.param(OURS.replace("name: flag\n    value: 1", "name: flag\n    value: true"), OURS, id="a-type"),
        pytest.param(
            OURS.replace("name: flag\n    value: 1", "name: flag\n    value: 1.0"), OURS, id="a-kind-of-number"
        ),
        pytest.param("a: ]\n", OURS, id="no-yaml-any-more"),
        pytest.param("", OURS, id="nothing-any-more"),
    ],
)
def test_own_fields_are_restored(text: str, expected: str) -> None:
    assert merge_local_change(text)["plugin.yaml"].data.decode() == expected


def test_comment_stays() -> None:
    assert "# mine\n" in merge_local_change(OURS.replace("spec:\n", "spec:  # mine\n"))["plugin.yaml"].data.decode()


@pytest.mark.parametrize("text", [f"{MINE}---\n{OURS}", f"{OURS}---\n{MINE}"], ids=["before", "behind"])
def test_other_object_in_the_file_stays(text: str) -> None:
    values: list[Any] = [
        document.data for document in parse_yaml(merge_local_change(text)["plugin.yaml"].data).documents
    ]

    assert parse_yaml(MINE.encode()).documents[0].data in values
    assert parse_yaml(OURS.encode()).documents[0].data in values
    assert len(values) == 2


def test_added_labels_stay() -> None:
    text = OURS.replace("  labels:\n", "  labels:\n    on-call: night\n")

    assert merge_local_change(text)["plugin.yaml"].data.decode() == text


def test_document_without_kind_stays_and_the_plugin_is_restored() -> None:
    text = OURS.replace("kind: Plugin\n", "")

    values = [document.data for document in parse_yaml(merge_local_change(text)["plugin.yaml"].data).documents]
    assert parse_yaml(OURS.encode()).documents[0].data in values
