"""A Plugin whose file people have changed: what is ours is given back, what is theirs stays."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.results import GeneratedSource, Variant
from reconciler.krm.yaml import parse_yaml
from reconciler.packages.update import MergeOptions
from reconciler.planning.model.sources import BranchPackage, RenderInputs, merge_source
from tests.unit.controllers.plugin_presets.presets_world import (
    EAST,
    catalog_of,
    definition,
    given,
    option,
    preset,
    room,
    variant_of,
)

TEXTS = [EAST, definition([option("size", "int", 1)]), preset([given("flag", 1)])]
VARIANT = variant_of(room(TEXTS), "east/logs-east")


def source_of(variant: Variant) -> FileTree:
    assert isinstance(variant.source, GeneratedSource)
    return variant.source.files


OURS = source_of(VARIANT)["plugin.yaml"].data.decode()
VIEW = CatalogView(DependencyReader(catalog_of({})))
MINE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n"


def published(text: str) -> FileTree:
    """Return the package after a pass over a branch on which people have changed the file that we had offered."""
    ours, theirs = source_of(VARIANT), FileTree({"plugin.yaml": File(text.encode())})
    render_inputs = RenderInputs(ours, BranchPackage(theirs, ours, ours, ours, ours), is_generated=True)
    return VARIANT.mutation(merge_source(render_inputs, None, MergeOptions()).files, VIEW).files


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(OURS, OURS, id="nothing-changed"),
        pytest.param(OURS.replace("displayName: logs east", "displayName: mine"), OURS, id="a-field"),
        pytest.param(OURS.replace("clusterName: east", "clusterName: west"), OURS, id="the-cluster"),
        pytest.param(OURS + "  more: 5\n", OURS, id="a-field-of-theirs-in-our-spec"),
        pytest.param(OURS.replace("name: flag\n    value: 1", "name: flag\n    value: true"), OURS, id="a-type"),
        pytest.param(
            OURS.replace("name: flag\n    value: 1", "name: flag\n    value: 1.0"), OURS, id="a-kind-of-number"
        ),
        pytest.param("a: ]\n", OURS, id="no-yaml-any-more"),
        pytest.param("", OURS, id="nothing-any-more"),
    ],
)
def test_what_is_ours_is_given_back(text: str, expected: str) -> None:
    assert published(text)["plugin.yaml"].data.decode() == expected


def test_a_comment_stays() -> None:
    assert "# mine\n" in published(OURS.replace("spec:\n", "spec:  # mine\n"))["plugin.yaml"].data.decode()


@pytest.mark.parametrize("text", [f"{MINE}---\n{OURS}", f"{OURS}---\n{MINE}"], ids=["before", "behind"])
def test_another_object_in_the_file_is_left_alone(text: str) -> None:
    values: list[Any] = [document.data for document in parse_yaml(published(text)["plugin.yaml"].data).documents]

    assert parse_yaml(MINE.encode()).documents[0].data in values
    assert parse_yaml(OURS.encode()).documents[0].data in values
    assert len(values) == 2


def test_labels_of_people_stay() -> None:
    text = OURS.replace("  labels:\n", "  labels:\n    on-call: night\n")

    assert published(text)["plugin.yaml"].data.decode() == text


def test_a_document_that_is_no_plugin_any_more_is_theirs_and_ours_comes_back() -> None:
    text = OURS.replace("kind: Plugin\n", "")

    values = [document.data for document in parse_yaml(published(text)["plugin.yaml"].data).documents]
    assert parse_yaml(OURS.encode()).documents[0].data in values
