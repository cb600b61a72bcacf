"""The examples of docs/reference/kafka-templates.md give the documented results, and all names on the page exist."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from reconciler.catalog.catalog import read_catalog
from reconciler.controllers.kafka_templates.read_merge_rules import load_built_in_rule, read_merge_rules
from reconciler.krm.findings import select_errors
from reconciler.krm.yaml import parse_yaml
from reconciler.output.status.package_sections import format_children
from reconciler.reconcile.codes import ALL_CODES
from reconciler.settings import RuleSettings
from tests.cases.case_world import Case, CaseWorld
from tests.unit.controllers.kafka_templates.template_builders import tree

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "kafka-templates.md"
EXAMPLE, POOL, REPEAT, RULE = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


class PageCase(Case):
    """The example of the page."""

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The config of the page."""
        return {"repos": {}, "config": {"orders.yaml": EXAMPLE}}


def test_the_example_makes_what_the_page_says(tmp_path: Path) -> None:
    rendered = CaseWorld(PageCase(PAGE), tmp_path).render()
    status: Any = parse_yaml(rendered["kiel/.reconciler/resources/streaming.yaml"]).documents[0].data["status"]

    assert rendered["kiel/resources/streaming/kafkanodepool-brokers.yaml"].decode() == POOL
    assert status["templates"][0]["toRepeat"] == REPEAT
    assert f"\n{format_children(status['templates'], 1)[0]}\n" in PAGE.read_text()


def test_the_page_names_what_pools_share() -> None:
    *names, last = (f"`{name}`" for name in load_built_in_rule().properties)

    text = " ".join(PAGE.read_text().split())
    assert f"share eight properties: {', '.join(names)} and {last}." in text


def test_the_rule_of_the_page_is_one() -> None:
    template_merge_rules = read_merge_rules(read_catalog(tree({"rule.yaml": RULE})))

    assert select_errors(template_merge_rules.findings) == ()
    assert [template_merge_rule.name for template_merge_rule in template_merge_rules.rules] == [
        "grid-shard",
        load_built_in_rule().name,
    ]


def test_codes_and_settings_of_the_page_are_there() -> None:
    codes = {finding_code.name for finding_code in ALL_CODES}
    # Codes are in parentheses, or in the first column of a table.
    mentions = re.findall(r"(?:\(|^\| )(`[A-Z][^)|]*)[)|]", PAGE.read_text(), re.MULTILINE)
    values = {code for codes in mentions for code in re.findall(r"`(\w+)`", codes)}
    settings = set(re.findall(r"`rules\.([a-z_]+)", PAGE.read_text()))

    assert len(values) > 10
    assert values <= codes
    assert settings <= set(RuleSettings.model_fields)
