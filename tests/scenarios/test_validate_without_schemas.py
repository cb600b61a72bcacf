"""Tests of `validate --rendered` without the schemas of built-in kinds: it reports an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.bootstrap.schema_folder import build_schemas
from reconciler.bootstrap.services import build_services
from reconciler.cli.errors import exit_status_of
from reconciler.inspect.validate import ConformanceOptions, ValidatedConfig, validate_rendered
from reconciler.krm.schema import validation
from reconciler.krm.schema.kubernetes_apis import KubernetesRelease
from reconciler.settings import Settings
from tests.support.policies import PLACED_ON
from tests.support.world import World, repository

NEXT_STEP = 'no schemas are installed; install the extra "reconciler[k8s-schemas]", or use --schemas DIR'
MISTYPED = "replicas: five"


@pytest.fixture(autouse=True)
def _without_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "find_schemas_version", lambda: "")


def build_deployment(api_version: str = "apps/v1", name: str = "one") -> str:
    metadata = f"{{name: {name}, namespace: edge, annotations: {{{PLACED_ON}: berlin}}}}"
    return f"apiVersion: {api_version}\nkind: Deployment\nmetadata: {metadata}\nspec: {{{MISTYPED}}}\n"


def validate_files(
    folder: Path, files: dict[str, str], release: KubernetesRelease | None, schemas: str | None = None
) -> ValidatedConfig:
    world = World.create(folder)
    world.write({"berlin.yaml": repository("berlin"), **files})
    settings = Settings.model_validate({"fleet": {"url": str(world.fleet)}, "cache": str(folder / "cache")})
    built = build_services(settings, str(world.config), should_treat_missing_as_empty=True)
    with built.remotes as remotes:
        return validate_rendered(
            built.source, remotes, built.pass_services, ConformanceOptions(build_schemas(schemas), release)
        )


def list_findings(validation_result: ValidatedConfig) -> list[tuple[str, str]]:
    return [
        (finding.code, finding.message)
        for finding in validation_result.findings
        if finding.code != "KubernetesVersionUnknown"
    ]


@pytest.mark.parametrize("release", [pytest.param((1, 31), id="release-known"), pytest.param(None, id="no-release")])
def test_a_builtin_kind_without_schemas_is_an_error(tmp_path: Path, release: KubernetesRelease | None) -> None:
    validation_result = validate_files(tmp_path, {"one.yaml": build_deployment()}, release)

    scope = "1 resource of built-in kinds in berlin/resources/edge"
    assert list_findings(validation_result) == [("NotValidated", f"{scope} was not validated, because {NEXT_STEP}")]
    assert exit_status_of(validation_result.findings) == 1


def test_resources_of_all_builtin_kinds_are_one_finding(tmp_path: Path) -> None:
    service = build_deployment().replace("apps/v1", "v1").replace("Deployment", "Service")
    validation_result = validate_files(tmp_path, {"one.yaml": build_deployment(), "two.yaml": service}, (1, 31))

    assert [message.partition(" in ")[0] for _, message in list_findings(validation_result)] == [
        "2 resources of built-in kinds"
    ]


def test_a_deprecated_version_is_reported_and_not_validated(tmp_path: Path) -> None:
    validation_result = validate_files(tmp_path, {"one.yaml": build_deployment("extensions/v1beta1")}, None)

    assert {code for code, _ in list_findings(validation_result)} == {"ApiDeprecated", "NotValidated"}


def test_a_custom_kind_without_schema_stays_an_info(tmp_path: Path) -> None:
    validation_result = validate_files(tmp_path, {"one.yaml": build_deployment("example.org/v1")}, (1, 31))

    assert [code for code, _ in list_findings(validation_result)] == ["SchemaMissing"]
    assert exit_status_of(validation_result.findings) == 0


def test_a_schema_folder_without_the_kind_is_named_in_the_message(tmp_path: Path) -> None:
    folder = tmp_path / "schemas"
    folder.mkdir()
    validation_result = validate_files(tmp_path, {"one.yaml": build_deployment()}, (1, 31), str(folder))

    assert list_findings(validation_result)[0][1].endswith(
        f" was not validated, because {folder} contains no schema of these kinds, and {NEXT_STEP}"
    )
