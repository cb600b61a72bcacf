"""Tests of the data about a variant in status files and in the state."""

from __future__ import annotations

import pytest

from reconciler.controllers.results import ConfigInjection, PackageOwner
from reconciler.krm.objects import ObjectKey

KEY = ObjectKey("g.example", "Thing", "default", "a")
SET = ObjectKey("g.example", "ThingSet", "default", "s")
PLAIN = {"apiVersion": "g.example/v1", "kind": "Thing", "namespace": "default", "name": "a"}


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        pytest.param(PackageOwner(KEY, "g.example/v1"), PLAIN, id="written-by-hand"),
        pytest.param(PackageOwner(KEY, "g.example/v1", SET), {**PLAIN, "set": "s"}, id="made-by-a-set"),
    ],
)
def test_owner_as_data(owner: PackageOwner, expected: dict[str, str]) -> None:
    assert owner.as_data() == expected


def test_injection_as_data() -> None:
    injected = ConfigInjection(
        "config.injection.Site.here", "site.yaml", "Site", "default", "ber", "sha256:1", "sites.yaml"
    )

    assert injected.as_data() == {
        "point": "config.injection.Site.here",
        "file": "site.yaml",
        "object": "Site/default/ber",
        "from": "sites.yaml",
        "hash": "sha256:1",
    }
