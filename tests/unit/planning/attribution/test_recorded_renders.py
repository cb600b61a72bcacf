"""Tests of recorded renders: the data of a status file, and the render inputs that are built from it."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.results import UpstreamPackage
from reconciler.krm.yaml import emit
from reconciler.planning.attribution.re_render import (
    RecordedRender,
    RecordedTrees,
    parse_recorded_render,
    pin_recorded_upstream,
    rebuild_render_inputs,
)
from reconciler.planning.model.cluster_overrides import PreviousOverrides
from reconciler.planning.model.sources import merge_source
from tests.unit.planning.builders import build_variant
from tests.unit.planning.model.test_source import OPTIONS, OUTPUT, V1, build_package

ID = "0123456789" * 4
UPSTREAM = {"repo": "r.git", "directory": "gw", "ref": "gw/v1", "commit": ID, "tree": ID}


def format_status_file(**fields: Any) -> bytes:
    trees = dict.fromkeys(("base", "merged", "rendered"), ID)
    owner = {"apiVersion": "v1", "kind": "PackageVariant", "namespace": "default", "name": "gw"}
    known = {"owner": owner, "upstream": {"to": UPSTREAM}, "trees": trees, "inputs": {"config": ID, "digest": "d"}}
    return emit({"kind": "PackageStatus", "status": {**known, **fields}}).encode()


def test_fields_of_a_recorded_render() -> None:
    recorded_render = parse_recorded_render(format_status_file())

    assert isinstance(recorded_render, RecordedRender)
    assert (recorded_render.base, recorded_render.config, recorded_render.digest, recorded_render.upstream, recorded_render.owner["name"], recorded_render.is_edited) == (
        ID, ID, "d", UPSTREAM, "gw", False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "field"),
    [
        pytest.param(b"status: {a: [}", "line 1", id="no-yaml"),
        pytest.param(b"", ".status.trees.base", id="empty"),
        pytest.param(b"[]", ".status.trees.base", id="a-list"),
        pytest.param(
            format_status_file(trees={"base": ID, "merged": ID}), ".status.trees.rendered", id="a-tree-is-missing"
        ),
        pytest.param(
            format_status_file(trees={"base": "--all", "merged": ID, "rendered": ID}), " is '--all'", id="an-option"
        ),
        pytest.param(format_status_file(inputs={"config": "main"}), ".status.inputs.config", id="a-config-by-branch"),
        pytest.param(format_status_file(inputs={}), ".status.inputs.config", id="no-config"),
        pytest.param(format_status_file(owner={}), ".status.owner", id="no-owner"),
        pytest.param(format_status_file(owner={"kind": 1}), ".status.owner", id="an-owner-of-numbers"),
        pytest.param(
            format_status_file(upstream={"to": {**UPSTREAM, "ref": 1}}), ".status.upstream.to", id="a-ref-that-is-none"
        ),
        pytest.param(format_status_file(upstream={"to": {"commit": ID}}), ".status.upstream.to", id="half-an-upstream"),
    ],
)
def test_missing_field_of_a_status_file_is_reported(content: bytes, field: str) -> None:
    recorded_render = parse_recorded_render(content)

    assert isinstance(recorded_render, str)
    assert field in recorded_render


def test_recorded_config_can_be_a_plain_folder() -> None:
    recorded_render = parse_recorded_render(format_status_file(inputs={"config": f"tree:{ID}"}))

    assert isinstance(recorded_render, RecordedRender)
    assert recorded_render.config == f"tree:{ID}"


def test_variant_has_the_recorded_upstream() -> None:
    recorded = parse_recorded_render(format_status_file())
    assert isinstance(recorded, RecordedRender)
    actual_variant = pin_recorded_upstream(build_variant(), recorded)

    assert isinstance(actual_variant.source, UpstreamPackage)
    assert (actual_variant.source.commit, actual_variant.source.ref, actual_variant.source.package) == (
        ID,
        "gw/v1",
        "gw",
    )
    assert actual_variant.dependencies["upstream"] == actual_variant.source.fingerprint


@pytest.mark.parametrize(
    ("merged", "rendered"),
    [
        pytest.param(V1, OUTPUT, id="unedited"),
        pytest.param(build_package(5), OUTPUT, id="edited"),
        pytest.param(build_package(5), build_package(5), id="adopted-without-a-lock"),
    ],
)
def test_rebuilt_inputs_have_the_recorded_source(merged: Any, rendered: Any) -> None:
    render_inputs = rebuild_render_inputs(
        build_variant(), RecordedTrees(V1, merged, rendered), None, PreviousOverrides()
    )
    source = merge_source(render_inputs, None, OPTIONS)

    assert (source.files, source.base, source.conflicts, source.findings) == (merged, V1, (), ())
    assert source.follows_upstream is (rendered is OUTPUT)
