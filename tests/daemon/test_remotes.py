"""A remote is fetched once a pass, as all that it is in it; one that failed rests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from reconciler.daemon.backoff import Backoff
from reconciler.daemon.remotes import Remotes
from reconciler.gitio.errors import GitError
from reconciler.gitio.mirror import Mirror


@dataclass(eq=False)
class FakeMirror:
    """Notes what it is fetched as; fails where its address says so."""

    url: str
    fetched: list[str] = field(default_factory=list)

    def fetch(self, kind: str, state_ref_prefix: str) -> None:
        self.fetched.append(kind)
        if "broken" in self.url:
            raise GitError("no route to host")


def remotes() -> tuple[Remotes, dict[str, FakeMirror]]:
    opened: dict[str, FakeMirror] = {}

    def open_mirror(url: str) -> Mirror:
        opened[url] = FakeMirror(url)
        return cast("Mirror", opened[url])

    return Remotes(open_mirror, "refs/reconciler/state/", Backoff(5, 60, lambda: 0.0)), opened


@pytest.mark.parametrize(
    ("upstreams", "destinations", "expected"),
    [
        pytest.param(["a"], [], {"a": ["upstream"]}, id="an-upstream"),
        pytest.param([], ["a"], {"a": ["destination"]}, id="a-destination"),
        pytest.param(["a", "b"], ["b", "c"], {"a": ["upstream"], "b": ["both"], "c": ["destination"]}, id="both"),
    ],
)
def test_each_is_fetched_once(upstreams: list[str], destinations: list[str], expected: dict[str, list[str]]) -> None:
    found, opened = remotes()

    found.fetch(upstreams, destinations)

    assert {url: mirror.fetched for url, mirror in opened.items()} == expected


def test_one_that_fails_is_told_and_rests() -> None:
    found, opened = remotes()

    found.fetch(["broken"], ["broken", "b"])
    found.fetch(["broken"], ["broken", "b"])

    assert opened["broken"].fetched == ["both"]
    assert opened["b"].fetched == ["destination"] * 2
    assert list(found.failures) == ["broken"]
