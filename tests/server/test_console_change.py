"""Tests of the page of one change: values of many variants, differences and targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.output.fleet.value_table import MIN_VARIANTS
from tests.support.console import ConsoleClient, open_console
from tests.support.console_server import add_targets
from tests.support.prepared_worlds import begin, drafted
from tests.unit.output.fleet.builders import build_draft, index_targets


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    """All packages are drafted, and no package is published. A test can change the index."""
    client = open_console(begin(tmp_path, drafted))
    client.update()
    return client


def format_size(size: int) -> dict[str, str]:
    text = f'apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{size: "{size}"}}\n'
    return {"settings.yaml": text}


def test_many_variants_are_one_table_of_values(console: ConsoleClient) -> None:
    names = [f"edge-{number:02}" for number in range(MIN_VARIANTS)]
    drafts = [build_draft(name, format_size(i), format_size(i + 1)) for i, name in enumerate(names)]
    add_targets(console, index_targets(*drafts, build_draft("other")), ())
    index = console.context.index
    assert index is not None
    change = index.by_target["edge-00"].drafts[0].change_key
    text = console.get(f"/changes/{change}").text

    assert "Values of 11 variants on 11 targets" in text
    assert "<code>0 → 1</code> on 1 target: <a href=" in text
    assert "11 variants with the same fields, on 11 targets" in text
    assert text.count('name="variant"') == MIN_VARIANTS + 1
    assert "Other variants" in text
