"""Tests of the effects of HelmReleases on the page of a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.inspect.release_effects import DraftReleaseEffects
from reconciler.krm.selectors import parse_label_query
from reconciler.output.fleet.model import DraftMember
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.review.restricted_index import HIDDEN_TEXT
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console, sign_in, strip_tags
from tests.support.console_server import add_targets
from tests.support.prepared_worlds import begin, drafted
from tests.unit.output.fleet.builders import build_draft, index_targets

RELEASE = """apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: shop}
spec: {values: {replicas: %d}}
"""
EFFECT: Mapping[str, Any] = {
    "release": "shop/web", "summary": ["Deployment shop/web: replicas 2 → 3"], "excludesSecretValues": True
}  # fmt: skip


class Effects:
    """Returns these effects for each draft, and records the drafts."""

    def __init__(self, effects: DraftReleaseEffects) -> None:
        self.effects = effects
        self.members: list[tuple[str, str]] = []

    def read(self, member: DraftMember, config: str) -> DraftReleaseEffects:
        self.members.append((member.target, config))
        return self.effects


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    client = open_console(begin(tmp_path, drafted))
    client.update()
    drafts = [build_draft(name, {"web.yaml": RELEASE % 2}, {"web.yaml": RELEASE % 3}) for name in ("edge-1", "edge-2")]
    add_targets(client, [replace(target, labels={"region": "edge"}) for target in index_targets(*drafts)], ())
    return client


def use_effects(console: ConsoleClient, effects: DraftReleaseEffects) -> Effects:
    reader = Effects(effects)
    console.context = replace(console.context, effects=reader)
    return reader


def find_path(console: ConsoleClient, target: str) -> str:
    index = console.context.index
    assert index is not None
    return f"/changes/{index.by_target[target].drafts[0].change_key}"


def test_the_page_of_a_change_loads_the_effects_of_its_release(console: ConsoleClient) -> None:
    reader = use_effects(console, DraftReleaseEffects("reconciler show", (EFFECT,)))
    path = find_path(console, "edge-2")

    change = console.get(f"{path}?target=edge-2").text
    page = console.get(f"{path}/effects?target=edge-2").text

    # The page of the change does not wait for the effects, and has a link without scripts.
    assert f'hx-get="{path}/effects?target=edge-2" hx-trigger="load"' in change
    assert f'<a href="{path}/effects?target=edge-2">' in change
    assert [target for target, _ in reader.members] == ["edge-2"]
    assert "Release shop/web Deployment shop/web: replicas 2 → 3 Values from Secrets" in strip_tags(page)
    assert '<section id="releases"' in page


def test_effects_without_changed_resources(console: ConsoleClient) -> None:
    path = f"{find_path(console, 'edge-2')}/effects"
    cases = [
        (
            DraftReleaseEffects("reconciler show --effects a/b", error="takes longer"),
            "The effects are unknown: takes longer Try again Request ID: run-1 Command: reconciler show --effects a/b",
        ),
        (
            DraftReleaseEffects("", ({"release": "shop/web", "unknownReason": "no helm"},)),
            "Release shop/web The effect is unknown: no helm",
        ),
        (DraftReleaseEffects("", ({"release": "shop/web"},)), "Release shop/web No resource changes."),
        (DraftReleaseEffects(""), "No release changes."),
    ]
    for effects, text in cases:
        use_effects(console, effects)
        assert text in strip_tags(console.get(path, x_request_id="run-1").text)


def test_a_change_without_a_release_has_no_effects(console: ConsoleClient) -> None:
    add_targets(console, index_targets(build_draft("other", package="other")), ())
    reader = use_effects(console, DraftReleaseEffects(""))
    path = find_path(console, "other")

    assert "HelmRelease" not in console.get(path).text
    assert "The draft changes no HelmRelease." in console.get(f"{path}/effects").text
    assert not reader.members
    assert console.get("/changes/000000000000/effects").status_code == 404


def test_names_of_hidden_targets_are_not_shown(console: ConsoleClient) -> None:
    use_effects(console, DraftReleaseEffects("", ({**EFFECT, "summary": ["Ingress shop/berlin: added"]},)))
    path = find_path(console, "edge-2")
    assert "Ingress" in console.get(f"{path}/effects").text

    sign_in(console, Session(ADA, Permissions((RoleRule("viewer", targets=parse_label_query("region=edge")),))))
    text = console.get(f"{path}/effects").text

    assert "Ingress" not in text
    assert HIDDEN_TEXT in text
