"""Tests of the text for a set of clusters."""

from __future__ import annotations

import pytest

from reconciler.output.impact.overview import FleetClusters
from reconciler.output.text import format_names

FLEET = {
    "ams": {"region": "eu", "zone": "a", "name": "ams"},
    "ber": {"region": "eu", "zone": "b", "name": "ber"},
    "bos": {"region": "us", "zone": "a", "name": "bos"},
    "chi": {"region": "us", "zone": "c", "name": "chi"},
    "tok": {"region": "asia", "name": "tok"},
    "osa": {"region": "asia", "name": "osa"},
    "ulm": {"name": "ulm"},
}


@pytest.mark.parametrize(
    ("names", "text"),
    [
        pytest.param(["ams", "ber"], "both clusters with region=eu", id="one-value"),
        pytest.param(["ams", "bos"], "both clusters with zone=a", id="another-label"),
        pytest.param(
            ["ams", "ber", "tok", "osa"], "all 4 clusters with region=asia or region=eu", id="two-values-of-one-label"
        ),
        pytest.param(["ams", "chi"], "2 clusters", id="nothing-in-common"),
        pytest.param(["ams", "ber", "bos"], "3 clusters", id="not-all-of-a-value"),
        pytest.param(["tok"], "1 cluster", id="one"),
        pytest.param(["ber", "ulm"], "2 clusters", id="a-name-is-no-label-of-a-set"),
        pytest.param([*FLEET], "all 7 clusters", id="all"),
        pytest.param(["ams", "elsewhere"], "2 clusters", id="one-that-is-no-cluster"),
    ],
)
def test_clusters_are_described_by_their_common_label(names: list[str], text: str) -> None:
    assert FleetClusters(FLEET).format_clusters(names) == text


def test_long_list_of_names_is_truncated() -> None:
    assert format_names(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert format_names(["a", "b\n"], 2) == "a, b⏎"
