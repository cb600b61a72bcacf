"""The examples of docs/reference/plugin-presets.md give the documented results, and its table lists the layers in order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from reconciler.controllers.plugin_presets.option_layers import LAYERS
from reconciler.krm.yaml import parse_yaml
from reconciler.reconcile.codes import ALL_CODES
from reconciler.settings import RuleSettings
from tests.cases.case_world import Case, CaseWorld

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "plugin-presets.md"


def blocks(language: str) -> list[str]:
    """Return the blocks of a language on the page."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def table_of_layers() -> str:
    rows = (f"| {number} | `{layer.id}` | {layer.source} |\n" for number, layer in enumerate(LAYERS))
    return f"| | layer | options |\n|---|---|---|\n{''.join(rows)}"


class PageCase(Case):
    """The example of the page."""

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The config of the page."""
        return {"repos": {}, "config": {"logs.yaml": blocks("yaml")[0]}}


def test_the_example_makes_what_the_page_says(tmp_path: Path) -> None:
    rendered = CaseWorld(PageCase(PAGE), tmp_path).render()
    summary: Any = parse_yaml(rendered["status/summary.yaml"]).documents[0].data
    south: Any = parse_yaml(rendered["ulm/plugins/logs-ulm/plugin.yaml"]).documents[0].data

    assert rendered["kiel/plugins/logs-kiel/plugin.yaml"].decode() == blocks("yaml")[1]
    assert south["spec"]["optionValues"][0] == {"name": "buffer.size", "value": 64}
    assert (summary["totals"]["findings"], summary["totals"]["drafted"]) == (0, 2)


def test_the_page_has_the_one_order_of_layers() -> None:
    assert table_of_layers() in PAGE.read_text()


def test_codes_and_settings_of_the_page_are_there() -> None:
    codes = {finding_code.name for finding_code in ALL_CODES}
    match = set(re.findall(r"\(`([A-Z][A-Za-z]+)`\)", PAGE.read_text()))
    settings = set(re.findall(r"`rules\.([a-z_]+)", PAGE.read_text()))

    assert match
    assert match <= codes
    assert settings == {"central_cluster", "base_domain", "expressions", "plugin_outputs"}
    assert settings <= RuleSettings.model_fields.keys()
