"""Tests of the location of a config: paths in findings are relative to the root of its repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.bootstrap.config_location import ConfigLocation, locate_config
from reconciler.settings import Settings


def build_settings(directory: str = "") -> Settings:
    return Settings.model_validate({"config": {"directory": directory}})


def create_work_tree(folder: Path) -> Path:
    (folder / "repo" / ".git").mkdir(parents=True)
    (folder / "repo" / "ops" / "config").mkdir(parents=True)
    (folder / "repo" / "ops" / "mine.yaml").write_text("")
    (folder / "alone").mkdir()
    (folder / "alone" / "reconciler.yaml").write_text("")
    return folder


@pytest.mark.parametrize(
    ("config", "directory", "file", "expected"),
    [
        pytest.param("repo", "", "", ConfigLocation("", "reconciler.yaml"), id="the-root"),
        pytest.param("repo/ops/config", "", "", ConfigLocation("ops/config", "reconciler.yaml"), id="a-folder"),
        pytest.param(
            "repo/ops", "/config/", "", ConfigLocation("ops/config", "reconciler.yaml"), id="with-a-directory"
        ),
        pytest.param(
            "repo/ops", "", "repo/ops/mine.yaml", ConfigLocation("ops", "ops/mine.yaml"), id="settings-beside"
        ),
        pytest.param("repo/ops", "", "alone/reconciler.yaml", ConfigLocation("ops", "reconciler.yaml"), id="elsewhere"),
        pytest.param("alone", "", "", ConfigLocation("", "reconciler.yaml"), id="no-repository-around-it"),
    ],
)
def test_location_of_a_config_folder(
    config: str, directory: str, file: str, expected: ConfigLocation, tmp_path: Path
) -> None:
    world = create_work_tree(tmp_path)
    config_location = locate_config(build_settings(directory), str(world / config), str(world / file) if file else None)

    assert config_location == expected


def test_repository_uses_the_directory_of_the_settings() -> None:
    place = locate_config(build_settings("prod/eu/"), "https://example.com/config.git", None)

    assert place == ConfigLocation("prod/eu", "reconciler.yaml")
