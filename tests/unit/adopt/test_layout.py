"""Layouts: parsing, and the division of a folder into units."""

from __future__ import annotations

import re

import pytest

from reconciler.adopt.layout import parse_layout, read_fleet
from reconciler.adopt.units import AdoptionError, Cluster, Fleet, Unit
from reconciler.catalog.files import File, FileTree


def tree(*paths: str) -> FileTree:
    return FileTree({path: File(b"a: 1\n") for path in paths})


@pytest.mark.parametrize(
    ("layout", "path", "cluster", "package"),
    [
        ("{cluster}/{package}", "berlin/web/app.yaml", Cluster("berlin", {}, "berlin"), "web"),
        (
            "fleet/{env}/{region}/{cluster}/apps/{package}",
            "fleet/prod/eu/berlin/apps/web/base/app.yaml",
            Cluster("berlin", {"env": "prod", "region": "eu"}, "fleet/prod/eu/berlin/apps"),
            "web",
        ),
        ("{package}/overlays/{cluster}", "web/overlays/berlin/app.yaml", Cluster("berlin", {}, ""), "web"),
    ],
    ids=["default", "labels", "package-first"],
)
def test_a_folder_becomes_a_unit(layout: str, path: str, cluster: Cluster, package: str) -> None:
    fleet = read_fleet(tree(path), parse_layout(layout), {})

    assert fleet.clusters == (cluster,)
    assert [(unit.cluster, unit.package, f"{unit.folder}/{next(iter(unit.files))}") for unit in fleet.units] == [
        (cluster.name, package, path)
    ]
    assert fleet.not_imported == ()


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("{cluster}", "must contain {package}"),
        ("{cluster}/{package}/{cluster}", "each field of '{cluster}/{package}/{cluster}' must occur once"),
        ("{cluster}-x/{package}", "must be a literal or one field in braces, but is '{cluster}-x'"),
        ("{cluster}/{-}/{package}", "the field {-} becomes a label"),
        ("{cluster}//{package}", "but is ''"),
    ],
)
def test_an_invalid_layout_is_refused(layout: str, message: str) -> None:
    with pytest.raises(AdoptionError, match=re.escape(message)):
        parse_layout(layout)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("README.yaml", 'not in a folder that matches the layout "{region}/{cluster}/{package}"'),
        ("eu/berlin/web.yaml", "not in a folder that matches the layout"),
        ("eu/Berlin/web/app.yaml", 'the name of the cluster is invalid: "Berlin"'),
        ("eu/berlin/Web/app.yaml", 'the name of the package is invalid: "Web"'),
        ("a b/berlin/web/app.yaml", 'the label "region" is invalid: the value "a b"'),
        (
            "us/paris/web/app.yaml",
            'the cluster "paris" must have the same labels in all folders, but has region=eu and region=us',
        ),
    ],
)
def test_other_files_are_reported(path: str, reason: str) -> None:
    layout = parse_layout("{region}/{cluster}/{package}")
    fleet = read_fleet(tree("eu/paris/db/app.yaml", path, "docs/image.png", ".hidden/a/b/c.yaml"), layout, {})

    assert [(unit.cluster, unit.package) for unit in fleet.units] == [("paris", "db")]
    assert [reason in entry.reason for entry in fleet.not_imported] == [True]


def test_labels_come_from_the_layout_and_from_the_table() -> None:
    table = {"berlin": {"region": "asia", "tier": "edge"}}
    fleet = read_fleet(tree("eu/berlin/web/app.yaml"), parse_layout("{region}/{cluster}/{package}"), table)

    assert fleet.clusters[0].labels == {"region": "eu", "tier": "edge"}


@pytest.mark.parametrize(
    ("fleet", "message"),
    [
        (Fleet(tuple(Cluster(f"c{n}") for n in range(2_001)), ()), "contains 2,001 clusters"),
        (Fleet((), (Unit("c", "p", "c/p", FileTree()),) * 50_001), "contains 50,001 packages of clusters"),
    ],
    ids=["clusters", "units"],
)
def test_a_fleet_has_limits(fleet: Fleet, message: str) -> None:
    with pytest.raises(AdoptionError, match=message):
        fleet.check_limits()
