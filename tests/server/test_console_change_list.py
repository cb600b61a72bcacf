"""Tests of the list of changes: rows that expand to their variants, and quick filters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

import pytest

from reconciler.git.errors import GitError
from reconciler.krm.selectors import LabelSelector
from reconciler.output.fleet.model import PackageRow
from reconciler.output.fleet.value_table import MIN_VARIANTS
from reconciler.review.permissions import ADMIN_PERMISSIONS, Permissions, RoleRule
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, sign_in, strip_tags
from tests.support.console_server import add_targets
from tests.support.fleet_index import create_row, create_target
from tests.unit.output.fleet.builders import build_draft, format_size, index_targets
from tests.unit.output.report.builders import CONFLICT

VISIT = 1_700_000_000


@pytest.fixture
def console(fleet: ConsoleClient) -> Iterator[ConsoleClient]:
    """All packages are drafted, and no package is published. A test can change the context and the index."""
    context, index = fleet.context, fleet.context.index
    yield fleet
    fleet.context = context
    context.index_thread.index = index


def find_variants(text: str) -> str:
    """Return the text of the variants in the row of the change, without tags."""
    (found,) = re.findall(r'<details id="variants-.*?</details>', text, re.DOTALL)
    return strip_tags(found)


def test_a_row_has_its_variants_with_their_differences(console: ConsoleClient) -> None:
    equal = [build_draft(name, format_size(1), format_size(2)) for name in ("edge-1", "edge-2")]
    other = build_draft("edge-3", format_size(1), format_size(3))
    conflicting = build_draft("edge-4", format_size(1), format_size(2), conflicts=[CONFLICT])
    add_targets(console, index_targets(*equal, other, conflicting), ())
    text = console.get("/changes?q=gw").text

    variants = find_variants(text)
    assert variants.startswith("3 variants 2 targets : the variant in this list edge-1, edge-2")
    assert "1 target : ConfigMap settings: data.size 1 → 3 edge-3" in variants
    assert "1 target : 1 conflict" in variants
    links = re.findall(r'href="(/changes/[0-9a-f]+\?variant=[0-9a-f]+)"', text)
    assert [console.get(link).status_code for link in links] == [200] * 3


def test_a_row_with_many_variants_has_the_values_of_their_fields(console: ConsoleClient) -> None:
    names = [f"edge-{number:02}" for number in range(MIN_VARIANTS)]
    drafts = [build_draft(name, format_size(i), format_size(i + 1)) for i, name in enumerate(names)]
    add_targets(console, index_targets(*drafts), ())

    variants = find_variants(console.get("/changes?q=gw").text)
    assert "11 targets in 11 variants that change the same fields" in variants
    assert "ConfigMap settings: data.size 0 → 1 on 1, 1 → 2 on 1, 2 → 3 on 1, and 8 more" in variants
    assert "the variant in this list" not in variants


def test_a_row_shows_ten_variants_and_the_number_of_the_others(console: ConsoleClient) -> None:
    drafts = [
        build_draft(f"edge-{i:02}", format_size(i), format_size(i + 1), conflicts=[CONFLICT])
        for i in range(MIN_VARIANTS)
    ]
    add_targets(console, index_targets(*drafts), ())

    variants = find_variants(console.get("/changes?q=gw").text)
    assert variants.count("1 target :") == 10
    assert "1 variant more" in variants


def create_change(name: str, **more: object) -> PackageRow:
    return create_row(name, "web", change=f"change-{name}", **more)


def add_changes(console: ConsoleClient) -> None:
    """Add a change of each quick filter, named after its target."""
    own, conflict = create_change("own-config"), create_change("conflict")
    assert own.draft
    assert conflict.draft
    own = replace(own, draft=replace(own.draft, content=replace(own.draft.content, config="0" * 40)))
    content = replace(conflict.draft.content, conflicts=(CONFLICT,))
    conflict = replace(conflict, draft=replace(conflict.draft, content=content))
    rows = {
        "own-config": own, "conflict": conflict, "north": create_change("north"),
        "high": create_change("high", risk="access"), "new": create_change("new", since=VISIT),
        "old": create_change("old", since=VISIT - 1),
    }  # fmt: skip
    labels = {"north": {"region": "north"}}
    add_targets(console, [create_target(name, labels.get(name, {}), row) for name, row in rows.items()], ())
    authors = {"0" * 40: "Ada@Example.com"}
    pages = replace(console.context.config, read_author=lambda config: authors.get(config, "luis@example.com"))
    console.context = replace(console.context, config=pages)


def list_changes(console: ConsoleClient, query: str) -> set[str]:
    text = console.get(f"/changes?q=web&{query}").text
    return set(re.findall(r'class="title" href="/changes/change-([a-z-]+)"', text))


NORTH = Permissions(
    (RoleRule("viewer"), RoleRule("reviewer", targets=LabelSelector((("region", "north"),)))),
)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("only=mine", {"own-config"}, id="own-config-commits"),
        pytest.param("only=reviewable", {"north"}, id="reviewable-targets"),
        pytest.param("only=conflicts", {"conflict"}, id="conflicts"),
        pytest.param("risk=high", {"high"}, id="high-risk"),
        pytest.param(f"since={VISIT}", {"new"}, id="new-drafts"),
        pytest.param(f"since={VISIT - 1}", {"new", "old"}, id="drafts-of-the-same-second"),
        pytest.param(f"only=conflicts&since={VISIT}", set(), id="both"),
        pytest.param("on=north", {"north"}, id="one-target"),
        pytest.param("on=north&on=high", {"north", "high"}, id="several-targets"),
        pytest.param("on=north,high,nowhere", {"north", "high"}, id="names-with-commas"),
        pytest.param("since=2023-11-14", {"new", "old"}, id="drafts-since-a-day"),
        pytest.param("since=2023-11-15", set(), id="drafts-since-a-later-day"),
        pytest.param("since=soon", set(), id="invalid-time"),
        pytest.param("only=none", {"own-config", "conflict", "north", "high", "new", "old"}, id="unknown"),
    ],
)
def test_quick_filters_select_changes(query: str, found: set[str], console: ConsoleClient) -> None:
    add_changes(console)
    sign_in(console, Session(ADA, NORTH))

    assert list_changes(console, query) == found


def test_a_commit_that_cannot_be_read_is_of_nobody(console: ConsoleClient) -> None:
    def fail(_config: str) -> str:
        raise GitError("the commit is missing")

    add_changes(console)
    console.context = replace(console.context, config=replace(console.context.config, read_author=fail))

    assert list_changes(console, "only=mine") == set()
    assert "No change matches 2 filters" in console.get("/changes?q=web&only=mine").text


def test_without_a_mail_address_no_commit_is_of_the_person(console: ConsoleClient) -> None:
    add_changes(console)
    sign_in(console, Session(replace(ADA, email=""), ADMIN_PERMISSIONS))
    pages = replace(console.context.config, read_author=lambda _config: "")
    console.context = replace(console.context, config=pages)

    assert list_changes(console, "only=mine") == set()


def test_links_keep_the_selected_targets(console: ConsoleClient) -> None:
    add_changes(console)
    text = console.get("/changes?on=north&on=high").text
    (link,) = re.findall(r'href="([^"]*)"[^>]*>high risk</a>', text)

    assert "Changes on high, north." in text
    assert list_changes(console, unescape(link).removeprefix("?")) == {"high"}


def test_selected_targets_lead_to_their_changes(console: ConsoleClient) -> None:
    add_changes(console)
    text = console.get("/targets?q=north").text
    (link,) = re.findall(r'href="(/changes\?on=[^"]*)">1 change</a>', text)

    assert '<input type="checkbox" name="on" value="north">' in text
    assert '<form method="get" action="/changes">' in text
    assert "1 to 1 of 1 change" in console.get(unescape(link)).text
