"""Tests of the comparison of two targets."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NoReturn

import pytest

from reconciler.git.errors import GitError
from reconciler.inspect.package_content import PackageContentReader
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.pages.comparison import compare_targets
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console, sign_in, strip_tags
from tests.support.console_server import create_conflicting_world
from tests.support.fleet_index import create_row, create_target

VALUES = "/targets/berlin?compare=lisbon&package=gateway"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """Gateway is published on all targets, with other replicas on Lisbon. Metrics is published only on Berlin."""
    client = open_console(create_conflicting_world(tmp_path_factory.mktemp("fleet") / "world"))
    client.update()
    return client


def read_content(text: str) -> str:
    return strip_tags(text.partition('<main id="content"')[2].partition("</main>")[0])


def list_lines(text: str, kind: str) -> list[str]:
    lines = re.findall(rf'<span class="visually-hidden">{kind} </span><code>(.*?)</code>', text)
    return [re.sub("<[^>]*>", "", line) for line in lines]


@pytest.mark.slow
def test_packages_are_side_by_side(console: ConsoleClient) -> None:
    text = read_content(console.get("/targets/berlin?compare=lisbon").text)

    assert "2 of 2 packages are different in version or state" in text
    assert "gateway draft v1" in text
    assert "different local changes" in text
    assert "missing only on berlin" in text


def test_only_different_packages_are_shown(console: ConsoleClient) -> None:
    texts = [read_content(console.get(f"/targets/berlin?compare=porto{end}").text) for end in ("", "&only=different")]

    assert ["compare values of gateway" in text for text in texts] == [True, False]
    assert ["only on berlin" in text for text in texts] == [True, True]


@pytest.mark.parametrize("view", ["split", "unified"])
def test_the_values_of_a_package_are_compared(view: str, console: ConsoleClient) -> None:
    text = console.get(f"{VALUES}&view={view}").text

    assert "~ different</span> Deployment gateway" in text
    assert list_lines(text, "removed")[0] == "  replicas: 2 # enough for a small site"
    assert list_lines(text, "added")[0] == "  replicas: 5 # enough for a small site"
    assert "lisbon" not in "".join(list_lines(text, "added"))


def test_equal_packages_have_no_differences(console: ConsoleClient) -> None:
    text = read_content(console.get("/targets/berlin?compare=porto&package=gateway").text)

    assert "The resources of both packages are equal." in text


def test_names_that_contain_the_text_are_suggested(console: ConsoleClient) -> None:
    text = console.get("/targets/berlin?compare=ORT").text

    assert "There is no target with the name ORT." in text
    assert '<a href="?compare=porto">porto</a>' in text
    assert "lisbon" not in text


@pytest.mark.parametrize("end", ["", "&package=gateway"], ids=["packages", "values"])
def test_a_hidden_target_cannot_be_compared(end: str, console: ConsoleClient) -> None:
    context = console.context
    # Only Berlin has this package.
    sign_in(console, Session(ADA, Permissions((RoleRule("viewer", packages=("metrics",)),))))
    text = console.get(f"/targets/berlin?compare=lisbon{end}").text
    console.context = context

    assert "There is no target with the name lisbon." in text
    assert "gateway" not in read_content(text)


def test_a_repository_that_cannot_be_read_has_a_reason(console: ConsoleClient) -> None:
    class Failing(PackageContentReader):
        def compare(self, *_packages: object) -> NoReturn:
            raise GitError("the disk is full")

    context = console.context
    console.context = replace(context, packages=Failing(console.world.create_indexer()))
    text = console.get(VALUES).text
    console.context = context

    assert '<p class="banner error" role="status">the disk is full' in text
    assert "are equal" not in text


def test_packages_with_the_name_of_their_target_are_pairs() -> None:
    left, right = (
        create_target(name, {}, create_row(name, "web"), create_row(name, package))
        for name, package in (("berlin", "only-left"), ("porto", "only-right"))
    )

    pairs = [
        (pair.column, pair.left and pair.left.target, pair.right and pair.right.target, pair.differences)
        for pair in compare_targets(left, right)
    ]
    assert pairs == [
        ("only-left", "berlin", None, ("only on berlin",)),
        ("only-right", None, "porto", ("only on porto",)),
        ("web", "berlin", "porto", ()),
    ]
