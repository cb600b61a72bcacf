"""A service with caches of earlier passes produces the same refs as a new service, whatever happens in between."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.planning.decide import template_packages
from reconciler.reconcile import pass_context
from tests.properties.review_world import TEMPLATES, ReviewWorld
from tests.properties.test_review_machine import CLUSTER, CONFIG, DRAFT, EDIT, MERGE, UPSTREAM, Happening, happening

NOTE = "kind: Note\napiVersion: v1\nmetadata: {name: note}\n"
DAYS = st.lists(
    st.lists(
        st.one_of(CONFIG, EDIT, MERGE, UPSTREAM, DRAFT, happening("lose_state", CLUSTER)), min_size=0, max_size=2
    ),
    min_size=2, max_size=5,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(TEMPLATES), DAYS)
def test_a_warm_service_leaves_what_a_fresh_one_leaves(template: str, days: list[list[Happening]]) -> None:
    folder = Path(mkdtemp())
    world = ReviewWorld.new(folder / "world", template)
    try:
        world.run("first")
        for day in days:
            world.happens(*day)
            world.compare()
    finally:
        world.close()
        shutil.rmtree(folder)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    ("what", "looked_at", "decided"),
    [
        pytest.param(("write", "note.yaml", NOTE), 0, 0, id="unrelated-file"),
        pytest.param(("region", "north", "b"), 1, 1, id="an-object-of-one-cluster"),
        pytest.param(("request_package", "berlin", "logs", 2), 1, 1, id="a-variant-of-one-cluster"),
        pytest.param(("release", "gateway", 1, 5), 2, 2, id="an-upstream-of-both"),
        pytest.param(("edit", "draft", 0, "replicas"), 1, 3, id="an-edit-of-one-draft"),
    ],
)
def test_only_what_moved_is_looked_at(
    what: Happening, looked_at: int, decided: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = ReviewWorld.new(tmp_path / "world", TEMPLATES[0])
    world.run("first")
    values = []
    survey = pass_context.prepare_target
    monkeypatch.setattr(pass_context, "prepare_target", lambda *items: values.append(items[0].name) or survey(*items))
    packages = []
    decide = template_packages.decide_package
    monkeypatch.setattr(
        template_packages, "decide_package", lambda *items: packages.append(items[0].variant.target) or decide(*items)
    )

    world.happens(what)
    world.run("first")

    assert (len(values), len(packages)) == (looked_at, decided), packages
    world.close()
