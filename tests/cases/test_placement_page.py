"""The examples of docs/reference/placement.md give the documented placements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from reconciler.krm.yaml import parse_yaml
from tests.cases.case_world import Case, CaseWorld

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "placement.md"
REGIONS = {"bremen": "north", "kiel": "north", "ulm": "south"}


def block(language: str) -> str:
    """Return the first block of a language on the page."""
    match = re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert match
    return match[1]


def clusters() -> str:
    kind = "apiVersion: core.kubeadmiral.io/v1alpha1\nkind: FederatedCluster\n"
    return "---\n".join(
        f"{kind}metadata: {{name: {name}, labels: {{region: {region}}}}}\n" for name, region in REGIONS.items()
    )


class PageCase(Case):
    """The example of the page, on three clusters."""

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The config of the page."""
        return {"repos": {}, "config": {"clusters.yaml": clusters(), "shop.yaml": block("yaml")}}


def test_the_example_places_what_the_page_says(tmp_path: Path) -> None:
    rendered = CaseWorld(PageCase(PAGE), tmp_path).render()
    placed = [path for path in sorted(rendered) if "/resources/" in path and "/.reconciler/" not in path]
    summary: Any = parse_yaml(rendered["status/summary.yaml"]).documents[0].data

    assert placed == block("text").split()
    assert "# used all day" in rendered["kiel/resources/shop/configmap-till.yaml"].decode()
    assert (summary["totals"]["findings"], summary["totals"]["drafted"]) == (0, len(placed))
