"""Tests of the place of an owner in the config, on the pages of changes and packages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.krm.findings import SourceLocation
from reconciler.krm.selectors import parse_label_query
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.config_pages import ConfigPages
from reconciler.server.console.page_links import PageLinks
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console, sign_in, strip_tags
from tests.support.prepared_worlds import begin, drafted

SET, VARIANT = "PackageVariantSet default/gateway", "PackageVariant default/metrics-berlin"
COMMIT = "ab" * 20


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    client = open_console(begin(tmp_path, drafted))
    client.update()
    return client


def test_the_index_contains_the_places_of_owners(drafted_console: ConsoleClient) -> None:
    index = drafted_console.context.index
    assert index is not None
    places = {owner: (place.file, place.line) for owner, place in index.owner_places.items()}
    assert places == {SET: ("gateway.yaml", 1), VARIANT: ("metrics.yaml", 1)}


def test_an_owner_links_to_its_place_in_the_config(console: ConsoleClient) -> None:
    """The object that creates the owner is linked, such as a PackageVariantSet. The line is that of the object."""
    index = console.context.index
    assert index is not None
    place = SourceLocation("sets/gateway.yaml", 4)
    console.context.index_thread.index = replace(index, config=COMMIT, owner_places={SET: place})
    config = ConfigPages(PageLinks(lambda _url: "github"), "https://example.com/config")
    console.context = replace(console.context, config=config)
    change = console.get(f"/changes/{console.find_change('install gateway v1').key}").text
    package = console.get("/targets/berlin/packages/gateway").text
    other = console.get("/targets/berlin/packages/metrics").text

    url = f"https://example.com/config/blob/{COMMIT}/sets/gateway.yaml#L4"
    assert [f'href="{url}"' in text for text in (change, package, other)] == [True, True, False]
    assert f"Owner {SET} sets/gateway.yaml:4" in strip_tags(change)


def test_places_with_names_of_hidden_targets_are_not_shown(console: ConsoleClient) -> None:
    index = console.context.index
    assert index is not None
    place = SourceLocation("clusters/berlin.yaml", 4)
    sign_in(console, Session(ADA, Permissions((RoleRule("viewer", targets=parse_label_query("region=south")),))))
    path = "/targets/lisbon/packages/gateway"
    visible = console.get(path).text
    console.context.index_thread.index = replace(index, number=index.number + 1, owner_places={SET: place})

    assert "gateway.yaml:1" in visible
    assert "berlin.yaml" not in console.get(path).text


def test_a_target_links_to_its_definition_in_the_config(console: ConsoleClient) -> None:
    config = ConfigPages(PageLinks(lambda _url: "github"), "https://example.com/config")
    index = console.context.index
    assert index is not None
    console.context.index_thread.index = replace(index, config=COMMIT)
    console.context = replace(console.context, config=config)
    target, targets = console.get("/targets/berlin").text, console.get("/targets?q=berlin").text

    place = index.by_target["berlin"].place
    url = f"https://example.com/config/blob/{COMMIT}/{place.file}#L{place.line}"
    assert place.file == "clusters/berlin.yaml"
    assert [f'href="{url}"' in text for text in (target, targets)] == [True, True]
    assert "Config Repository default/berlin clusters/berlin.yaml:1" in strip_tags(target)
