"""Tests of set-project-id: which fields of a package receive the project."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.packages.functions.function import FunctionContext, FunctionOutput
from reconciler.packages.functions.google_cloud import set_project_id
from tests.unit.packages.builders import build_config, parse_items

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n"
SETTERS = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s\n"


def call(kptfile: str, *, setters: str = SETTERS, project: str = "mine") -> FunctionOutput:
    """Return the output of the function for a package."""
    package = (
        [*parse_items(kptfile, "Kptfile"), *parse_items(setters, "s.yaml")]
        if kptfile
        else parse_items(setters, "s.yaml")
    )
    return set_project_id(package, build_config("ConfigMap", {"project-id": project}), FunctionContext())


@pytest.mark.parametrize(("version", "image"), [((0, 1, 0), "v0.1"), ((0, 2, 0), "v0.2")], ids=["older", "newer"])
def test_setter_is_written_to_the_kptfiles_of_subpackages(version: tuple[int, int, int], image: str) -> None:
    texts = {
        "": KPTFILE,
        "sub": f"{KPTFILE}pipeline:\n  mutators:\n  - image: apply-setters\n    configPath: s.yaml\n",
        "sub/other": f"{KPTFILE}pipeline:\n  mutators:\n  - image: apply-setters\n    configMap: {{a: b}}\n",
    }
    package = [replace(parse_items(text, "Kptfile")[0], package=path) for path, text in texts.items()]
    package.append(replace(parse_items(SETTERS, "s.yaml")[0], package="sub"))

    output = set_project_id(
        package, build_config("ConfigMap", {"project-id": "mine"}), FunctionContext("safe", version)
    )

    root, _, other, setters = output.items
    assert root.data["pipeline"]["mutators"] == [
        {"image": f"gcr.io/kpt-fn/apply-setters:{image}", "configMap": {"project-id": "mine"}}
    ]
    assert other.data["pipeline"]["mutators"][0]["configMap"] == {"a": "b", "project-id": "mine"}
    assert setters.data["data"] == {"project-id": "mine"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            KPTFILE,
            f"{KPTFILE}pipeline:\n  mutators:\n  - image: gcr.io/kpt-fn/apply-setters:v0.1\n"
            "    configMap:\n      project-id: mine\n",
            id="function-is-added",
        ),
        pytest.param(
            f"{KPTFILE}pipeline:\n  mutators:\n  - image: apply-setters:v0.2\n    configMap:\n      a: b # why\n",
            f"{KPTFILE}pipeline:\n  mutators:\n  - image: apply-setters:v0.2\n    configMap:\n      a: b # why\n"
            "      project-id: mine\n",
            id="setter-is-added",
        ),
        pytest.param(
            f"{KPTFILE}pipeline:\n  mutators:\n  - image: apply-setters\n    configMap:\n      project-id: x\n",
            f"{KPTFILE}pipeline:\n  mutators:\n  - image: apply-setters\n    configMap:\n      project-id: x\n",
            id="what-is-set-stays",
        ),
    ],
)
def test_kptfile(before: str, after: str) -> None:
    output = call(before)

    assert output.items[0].document.text == after


def test_setters_file_is_updated() -> None:
    output = call(f"{KPTFILE}pipeline:\n  mutators:\n  - image: apply-setters\n    configPath: ./s.yaml\n")

    assert output.items[1].document.text == f"{SETTERS}data:\n  project-id: mine\n"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param("apiVersion: storage.cnrm.cloud.google.com/v1beta1", "mine", id="connector-object"),
        pytest.param("apiVersion: core.cnrm.cloud.google.com/v1beta1", None, id="connector-setting"),
        pytest.param("apiVersion: v1", None, id="anything-else"),
    ],
)
def test_annotations(head: str, expected: str | None) -> None:
    output = call(KPTFILE, setters=f"{head}\nkind: A\nmetadata:\n  name: a\n")

    assert output.items[1].annotations.get("cnrm.cloud.google.com/project-id") == expected


def test_existing_annotation_stays() -> None:
    text = "apiVersion: s.cnrm.cloud.google.com/v1\nkind: A\nmetadata:\n  name: a\n"
    text += "  annotations:\n    cnrm.cloud.google.com/project-id: x\n"

    assert call(KPTFILE, setters=text).items[1].document.text == text


@pytest.mark.parametrize(
    ("kptfile", "project", "reason"),
    [
        pytest.param("", "mine", "unable to find Kptfile", id="no-kptfile"),
        pytest.param(KPTFILE, "", "`data.project-id`", id="no-project"),
        pytest.param(
            f"{KPTFILE}pipeline:\n  mutators:\n  - image: apply-setters\n", "mine", "unable to find", id="no-config"
        ),
        pytest.param(
            f"{KPTFILE}pipeline:\n  mutators:\n  - {{image: apply-setters, configPath: x.yaml}}\n",
            "mine",
            "file x.yaml doesn't exist",
            id="no-file",
        ),
    ],
)
def test_errors(kptfile: str, project: str, reason: str) -> None:
    output = call(kptfile, project=project)

    assert output.has_failed
    assert reason in output.results[0].message
