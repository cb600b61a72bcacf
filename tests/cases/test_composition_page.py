"""The examples of docs/reference/components.md give the documented results, and its tables are complete."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.openchoreo import PATCH_OPS, PatchTargetFields
from reconciler.controllers.components.templates.template import PATCH_VARIABLES
from reconciler.krm.yaml import parse_yaml
from reconciler.reconcile.codes import ALL_CODES
from reconciler.settings import RuleSettings
from tests.cases.case_world import Case, CaseWorld
from tests.unit.controllers.components.schema.schema_readers import read_component_schema

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "components.md"
TEXT = PAGE.read_text()
WHERE = "components/live/shop/orders"


def blocks(language: str) -> list[str]:
    """Return the blocks of a language on the page."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def first_column(title: str) -> set[str]:
    """Return the first column of the table with this header."""
    table = TEXT.partition(f"| {title} |")[2].partition("\n\n")[0]
    return {name for row in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)}


class PageCase(Case):
    """The example of the page."""

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The config of the page."""
        return {"repos": {}, "config": {"orders.yaml": blocks("yaml")[0]}}


def test_the_example_makes_what_the_page_says(tmp_path: Path) -> None:
    rendered = CaseWorld(PageCase(PAGE), tmp_path).render()
    summary: Any = parse_yaml(rendered["status/summary.yaml"]).documents[0].data
    claim: Any = parse_yaml(rendered[f"kiel/{WHERE}/persistentvolumeclaim-orders-cache.yaml"]).documents[0].data

    assert rendered[f"kiel/{WHERE}/deployment-orders.yaml"].decode() == blocks("yaml")[1]
    assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"
    assert (summary["totals"]["findings"], summary["totals"]["drafted"]) == (0, 1)
    assert {f"status/types/_cluster/public-api/{name}" for name in ("crd.yaml", "plan.yaml", "schema.json")} <= {
        *rendered
    }


@pytest.mark.parametrize(
    ("title", "names"),
    [
        pytest.param("variable", {*PATCH_VARIABLES, "item", "var"}, id="variables"),
        pytest.param("operation", {*PATCH_OPS}, id="operations"),
        pytest.param(
            "field",
            {
                "selector.matchLabels" if target_field == "selector" else target_field
                for target_field in PatchTargetFields.field_names
            },
            id="targets",
        ),
    ],
)
def test_the_tables_have_all_that_there_is(title: str, names: set[str]) -> None:
    assert first_column(title) == names


def test_all_markers_are_on_the_page() -> None:
    values = {name.partition("=")[0] for name in first_column("notation")}
    (fault,) = read_component_schema({"parameters": {"a": "string | qqqqq=1"}}, ()).field_findings
    known = fault.message.partition("allowed markers: ")[2].split(", ")

    assert len(known) > 20
    assert {*known} <= values


def test_codes_and_settings_of_the_page_are_there() -> None:
    codes = {finding_code.name for finding_code in ALL_CODES}
    match = set(re.findall(r"\(`([A-Z][A-Za-z]+)`\)", TEXT))
    settings = set(re.findall(r"`rules\.([a-z_]+)", TEXT))

    assert match
    assert match <= codes
    assert settings == {"runtime_composition"}
    assert settings <= RuleSettings.model_fields.keys()
