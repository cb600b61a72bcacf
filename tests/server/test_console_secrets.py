"""Values of Secrets occur in no page, no result of the API, no event, no header and no log."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from html import unescape

import pytest
from structlog.testing import capture_logs

from reconciler.server.console.events import format_event
from tests.support.console import ConsoleClient, open_console
from tests.support.world import World, catalog, package, repository, variant

CANARIES = [f"canary-{name}-7f3a9c51" for name in ("published", "proposed", "text", "options")]
ENCODED = {canary: b64encode(canary.encode()).decode() for canary in CANARIES}
PUBLISHED, PROPOSED, TEXT, OPTIONS = CANARIES
HIDDEN = [*CANARIES, *ENCODED.values(), *(canary.encode().hex() for canary in CANARIES)]
API = (
    "/api/v1/changes", "/api/v1/targets", "/api/v1/targets/lisbon", "/api/v1/targets/lisbon/packages/web",
    "/api/v1/findings", "/api/v1/activity", "/api/v1/status", "/api/v1/search?q=canary", "/search?q=canary",
    f"/search?q={PUBLISHED}x", "/changes?q=canary", "/api/v1/drafts?content=true&diffLines=200",
    "/api/v1/drafts?content=true&diffLines=200&output=text", "/api/v1/history?target=lisbon&package=web",
    "/api/v1/explain?target=lisbon&package=web", "/api/v1/explain?target=lisbon&package=web&output=text",
    "/api/v1/remotes", "/api/v1/passes",
)  # fmt: skip
MAX_PAGES, MAX_VALUES = 120, 2


def create_secret(password: str) -> str:
    return (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\n"
        f"data:\n  password: {ENCODED[password]}\nstringData:\n  text: {TEXT}\n"
    )


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """A console of a published package with a Secret, and a draft that changes the value."""
    world = World.create(tmp_path_factory.mktemp("fleet"))
    world.release("web", "v1", package("web", secret=create_secret(PUBLISHED)))
    world.write(
        {"catalog.yaml": catalog(), "lisbon.yaml": repository("lisbon"), "web.yaml": variant("web", "lisbon", "web")}
    )
    world.sync()
    world.merge("lisbon")
    world.sync_until_unchanged()
    world.release("web", "v2", package("web", 3, secret=create_secret(PROPOSED)))
    world.write({"web.yaml": variant("web", "lisbon", "web", "v2"), "other/secret.yaml": create_secret(OPTIONS)})
    client = open_console(world)
    client.update()
    return client


def crawl(console: ConsoleClient) -> Iterator[tuple[str, str]]:
    """Yield the path and the content of all pages to which links lead, and of results of the API, with their headers."""
    waiting, known, value_count = ["/", *API], set[str](), 0
    while waiting and len(known) < MAX_PAGES:
        path = waiting.pop(0)
        is_value = "pointer=" in path
        # The page of a value starts a process, so that only some values of the Secret are requested.
        if path in known or (is_value and ("Secret" not in path or value_count == MAX_VALUES)):
            continue
        known.add(path)
        value_count += is_value
        response = console.get(path)
        yield path, f"{response.text}\n{response.headers}"
        links = map(unescape, re.findall(r'(?:href|action|hx-get)="(/[^"#]*)', response.text))
        waiting += [link for link in links if not link.startswith("/static/")]


@pytest.mark.slow
def test_values_of_secrets_are_shown_nowhere(console: ConsoleClient) -> None:
    key = next(change.key for change in console.context.index.changes)  # type: ignore[union-attr]
    with capture_logs() as logs:
        pages = dict(crawl(console))
        pages["detail"] = console.get(f"/api/v1/changes/{key}").text
        pages["diff"] = console.get(f"/api/v1/changes/{key}/diff").text
        pages["confirmation"] = console.get(
            console.post("/changes/confirm", {"verb": "approve", "change": key}).headers["location"]
        ).text
    index = console.context.index
    assert index is not None
    pages["event"] = format_event("1", index, console.context.state.view, "v1")
    pages["log of the activity"] = (console.world.folder / "activity.jsonl").read_text()

    assert [
        (path, text) for path, content in pages.items() for text in HIDDEN if text in content and text not in path
    ] == []
    assert not [text for text in HIDDEN if text in str(logs)]
    # The pages show the Secret, and not only other resources.
    assert [path for path, content in pages.items() if path.startswith("/changes/") and "login" in content]
    assert [path for path, content in pages.items() if "/packages/web" in path and "login" in content]
    assert [path for path, content in pages.items() if path.startswith("/api/v1/drafts") and "*****" in content]
    assert "Secret login" in pages["diff"]
    assert "draft-created" in pages["log of the activity"]
    assert len(pages) > 30
