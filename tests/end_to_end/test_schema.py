from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.settings import build_schema_text
from tests.support.command_line import CommandResult, run_in

SHOWCASE = Path(__file__).resolve().parents[2] / "fixtures" / "showcase" / "config"
BROKEN = """\
apiVersion: platform/v1alpha1
kind: ComponentType
metadata: {name: lost-app}
spec: {componentDefinitionRef: {name: nowhere}}
"""


def schema(folder: Path, *arguments: str) -> CommandResult:
    return run_in(folder, {"HOME": str(folder), "RECONCILER_CACHE": str(folder / "cache")}, "schema", *arguments)


def test_the_list_of_kinds(tmp_path: Path) -> None:
    text, data = schema(tmp_path), schema(tmp_path, "-o", "json")

    assert (text.returncode, data.returncode) == (0, 0)
    assert (
        "\nconfig.porch.kpt.dev/v1alpha2\n  PackageVariantSet         Creates a PackageVariant for each target.\n"
        in text.stdout
    )
    assert {"kind": "Team", "apiVersions": ["greenhouse.sap/v1alpha1"]}.items() <= next(
        item for item in json.loads(data.stdout)["items"] if item["kind"] == "Team"
    ).items()
    assert "\nreconciler.dev/v1\n  Plan                      The result of `reconciler plan`.\n" in text.stdout


@pytest.mark.parametrize(
    ("name", "expected_text"),
    [
        pytest.param("EnvBinding", '"title": "EnvBinding"', id="a-kind"),
        pytest.param("envbinding", '"title": "EnvBinding"', id="in-any-case"),
        pytest.param("all", '"allOf": [', id="all-of-them"),
        pytest.param("Plan", '"title": "PlanResult"', id="a-result"),
    ],
)
def test_one_schema(tmp_path: Path, name: str, expected_text: str) -> None:
    ended = schema(tmp_path, name)

    assert ended.returncode == 0
    assert expected_text in ended.stdout
    assert json.loads(ended.stdout)["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_the_schema_of_the_settings(tmp_path: Path) -> None:
    assert schema(tmp_path, "settings").stdout == build_schema_text()


def test_a_name_that_no_kind_has(tmp_path: Path) -> None:
    ended = schema(tmp_path, "PakageVariant")

    assert ended.returncode == 3
    assert 'must be one of "Repository", "PackageVariant",' in ended.stderr
    assert ended.stderr.endswith('but is "PakageVariant"; did you mean "PackageVariant"?\n')


def test_kinds_that_component_types_make(tmp_path: Path) -> None:
    ended = schema(tmp_path, "ShopApp", "--config", str(SHOWCASE))

    assert ended.returncode == 0
    assert json.loads(ended.stdout)["properties"]["spec"]["properties"]["port"]["minimum"] == 1024


def test_a_component_type_that_is_not_ready_gives_a_reason_and_no_schema(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "type.yaml").write_text(BROKEN)
    ended = schema(tmp_path, "--config", "config")

    assert ended.returncode == 1
    assert "LostApp" not in ended.stdout
    assert "type.yaml:4: error DefinitionNotFound" in ended.stderr


@pytest.mark.slow
def test_a_folder_of_all_is_written_and_written_again(tmp_path: Path) -> None:
    first = schema(tmp_path, "--output", "schemas")
    result = schema(tmp_path, "--output", "schemas", "--config", str(SHOWCASE))

    assert (first.returncode, result.returncode) == (0, 0)
    assert (tmp_path / "schemas" / "platform" / "shopapp_v1alpha1.json").is_file()
    assert (tmp_path / "schemas" / "reconciler.dev" / "plan_v1.json").is_file()
    assert json.loads((tmp_path / "schemas" / "all.json").read_text())["allOf"][-1]["then"]["title"] == "ShopApp"
    assert (tmp_path / "schemas" / "settings.json").read_text() == build_schema_text()


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        pytest.param(
            ("--output", "mine"),
            "must be an empty folder, or must be a folder of schemas that contains",
            id="a-folder-of-others",
        ),
        pytest.param(("Team", "--output", "new"), "use either KIND or --output", id="one-into-a-folder"),
    ],
)
def test_invalid_arguments(tmp_path: Path, arguments: tuple[str, ...], expected_text: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    ended = schema(tmp_path, *arguments)

    assert ended.returncode == 3
    assert expected_text in ended.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]
