from __future__ import annotations

from typing import Any

import pytest

from reconciler.catalog.files import FileTree
from reconciler.output.changes.package_changes import compare_packages
from reconciler.output.commit_messages import format_draft_message
from reconciler.output.status.package_sections import format_overrides
from reconciler.planning.model.outcomes import PackageRender
from tests.unit.output.builders import CONFIG, build_draft, build_target, format_deployment, format_kptfile

EDGE = "ClusterOverridePolicy/edge"
SHOP = "OverridePolicy/shop/till"
NEW = {"Kptfile": format_kptfile("v4"), "a.yaml": format_deployment(5)}


def build_record(*steps: dict[str, Any], pointer: str = "/spec/replicas") -> dict[str, Any]:
    return {"file": "a.yaml", "resource": "Deployment/shop/till", "pointer": pointer, "steps": list(steps)}


def build_step(by: str = EDGE, **values: Any) -> dict[str, Any]:
    return {"by": by, "where": "spec.overrideRules[0].overriders.jsonpatch[0]", "op": "replaced", **values}


REPLACED = build_record(build_step(before=3, after=1))


@pytest.mark.parametrize(
    ("mapping", "line"),
    [
        pytest.param(REPLACED, "spec.replicas: 3 → 1 by ClusterOverridePolicy edge", id="replaced"),
        pytest.param(
            build_record(build_step(before=3, after=1), build_step(SHOP, before=1, after=7)),
            "spec.replicas: 3 → 7 by ClusterOverridePolicy edge, OverridePolicy shop/till",
            id="first-and-last-of-several-steps",
        ),
        pytest.param(
            build_record(build_step(before=3, after=2), build_step(before=2, after=1)),
            "spec.replicas: 3 → 1 by ClusterOverridePolicy edge",
            id="a-policy-is-named-once",
        ),
        pytest.param(
            build_record(build_step(after="x")), "spec.replicas: added, x by ClusterOverridePolicy edge", id="added"
        ),
        pytest.param(
            build_record(build_step(before="x")),
            "spec.replicas: removed, was x by ClusterOverridePolicy edge",
            id="removed",
        ),
        pytest.param(
            build_record(build_step(after="x"), build_step(SHOP, before="x")),
            "spec.replicas: added and removed by ClusterOverridePolicy edge, OverridePolicy shop/till",
            id="nothing-is-left-of-it",
        ),
        pytest.param(
            build_record(build_step(before=5, after="5")),
            'spec.replicas: 5 → "5" by ClusterOverridePolicy edge',
            id="another-type",
        ),
        pytest.param(
            build_record(build_step(before=60, after=5), pointer="/data/app.yaml!/ttl"),
            "ttl in data[app.yaml]: 60 → 5 by ClusterOverridePolicy edge",
            id="inside-of-text",
        ),
    ],
)
def test_field_that_policies_changed_is_one_line(mapping: dict[str, Any], line: str) -> None:
    assert format_overrides([mapping], 5) == (f"Deployment shop/till: {line}",)


@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param(None, id="nothing"),
        pytest.param("text", id="text"),
        pytest.param([1], id="a-number"),
        pytest.param([{**REPLACED, "steps": []}], id="no-step"),
        pytest.param([{**REPLACED, "steps": "x"}], id="steps-that-are-no-list"),
        pytest.param([{**REPLACED, "steps": [1]}], id="a-step-that-is-none"),
        pytest.param([{"steps": REPLACED["steps"]}], id="no-place"),
    ],
)
def test_invalid_record_is_omitted(recorded: object) -> None:
    assert format_overrides(recorded, 5) == ()


def test_records_beyond_the_limit_are_counted() -> None:
    assert format_overrides([REPLACED] * 5, 2)[2:] == ("and 3 more",)


@pytest.mark.parametrize(
    ("before", "value"),
    [
        pytest.param({}, True, id="a-new-package"),
        pytest.param({"a.yaml": format_deployment(3)}, False, id="its-changes-tell-of-any-other"),
    ],
)
def test_commit_message_lists_the_changes_of_policies(before: dict[str, str], value: bool) -> None:
    new_draft = build_draft(before, NEW, task="clone", rendered=PackageRender(FileTree(), overrides=(REPLACED,)))
    message = format_draft_message(
        new_draft, build_target(), CONFIG, compare_packages(new_draft.previous_files, new_draft.rendered.files)
    )

    assert (
        "Overridden:\n- Deployment shop/till: spec.replicas: 3 → 1 by ClusterOverridePolicy edge\n" in message
    ) == value
