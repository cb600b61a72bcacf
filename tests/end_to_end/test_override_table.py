"""The shared table of overrides through the command line: each row is a package and a policy, and one render contains all rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.yaml import emit, parse_yaml
from tests.support.command_line import CommandResult, run_in
from tests.support.git_repositories import git
from tests.unit.controllers.override_policies.override_world import is_same_json

TABLE = Path(__file__).resolve().parents[2] / "../shared/cases/overrides/table.json"
pytestmark = pytest.mark.skipif(not TABLE.is_file(), reason="the shared cases are not on this machine")
LABEL = "kubeadmiral.io/cluster-override-policy-name"
MARKS = {
    LABEL,
    "kubeadmiral.io/override-policy-name",
    "reconciler.dev/clusters",
    "internal.kpt.dev/upstream-identifier",
}


@dataclass(frozen=True)
class Row:
    """One row: the object, the rules of its policy, and the published result. None means that no object is published."""

    name: str
    object: Mapping[str, Any]
    rules: list[Mapping[str, Any]]
    result: Mapping[str, Any] | None


def rows() -> list[Row]:
    table = json.loads(TABLE.read_text()) if TABLE.is_file() else {}
    actual_rows = [*_overrides(table.get("override", ())), *_images(table.get("imageParse", ()))]
    return [*actual_rows, *_patches(table.get("jsonPatch", {"cases": ()}))]


def _overrides(written: Any) -> Iterator[Row]:
    for number, item in enumerate(written):
        expected = item["upstream"] if item["expect"] == "same" else item["expect"]
        yield Row(f"o{number}", item["object"], item["rules"], expected.get("result"))


def _images(written: Any) -> Iterator[Row]:
    for number, item in enumerate(written):
        for name, components in (("reg", ["Registry"]), ("rest", ["Tag", "Digest"])):
            operations = [{"imageComponent": component, "operator": "delete"} for component in components]
            result = None if "error" in item else _with_image(format_remaining_image(item, components))
            rules = [{"image": [{"operations": operations}]}]
            yield Row(f"i{number}-{name}", _with_image(item["image"]), rules, result)


def format_remaining_image(mapping: Mapping[str, str], deleted: list[str]) -> str:
    parts = {
        name: "" if name.title() in deleted else mapping[name] for name in ("registry", "repository", "tag", "digest")
    }
    return (
        (f"{parts['registry']}/" if parts["registry"] else "")
        + parts["repository"]
        + (f":{parts['tag']}" if parts["tag"] else "")
        + (f"@{parts['digest']}" if parts["digest"] else "")
    )


def _with_image(image: str) -> dict[str, Any]:
    containers = [{"name": "one", "image": image}]
    spec = {"template": {"spec": {"containers": containers}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "o"}, "spec": spec}


def _patches(written: Mapping[str, Any]) -> Iterator[Row]:
    case = {"apiVersion": "cases.example/v1", "kind": "Case", "metadata": {"name": "one"}}
    for number, item in enumerate(written["cases"]):
        result = item["expect"].get("result")
        patch = [{"operator": op.pop("op"), **op} for op in json.loads(json.dumps(item["ops"]))]
        for op in patch:
            op["path"] = format_pointer(("spec",)) + op["path"] if op["path"].startswith("/") else op["path"]
        whole = {**case, "spec": written["document"]}
        yield Row(f"p{number}", whole, [{"jsonpatch": patch}], {**case, "spec": result} if result else None)


def build(folder: Path, desired_rows: list[Row]) -> None:
    """Write a catalog with one package per row, and a config that requests all packages on one cluster."""
    catalog = folder / "catalog"
    for row in desired_rows:
        package = catalog / row.name
        package.mkdir(parents=True)
        labels = {**row.object["metadata"].get("labels", {}), LABEL: f"p-{row.name}"}
        labelled = {**row.object, "metadata": {**row.object["metadata"], "labels": labels}}
        (package / "Kptfile").write_text(f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {row.name}\n")
        (package / "object.yaml").write_text(emit(labelled))
    git(catalog, "init", "-q", "-b", "main")
    git(catalog, "add", ".")
    git(catalog, "commit", "-q", "-m", "all rows")
    config = folder / "config"
    config.mkdir()
    repositories = [_repository("catalog", folder / "catalog", False), _repository("here", folder / "here.git", True)]
    (config / "all.yaml").write_text("---\n".join([*map(emit, repositories), *format_config(desired_rows)]))


def _repository(name: str, where: Path, deployment: bool) -> dict[str, Any]:
    git_spec = {"repo": str(where), "branch": "clusters/here" if deployment else "main"}
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "Repository",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "git", "content": "Package", "deployment": deployment, "git": git_spec},
    }


def format_config(desired_rows: list[Row]) -> Iterator[str]:
    for row in desired_rows:
        yield emit({
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "ClusterOverridePolicy",
            "metadata": {"name": f"p-{row.name}"},
            "spec": {"overrideRules": [{"overriders": rule} for rule in row.rules]},
        })  # fmt: skip
        yield emit({
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "PackageVariant",
            "metadata": {"name": row.name, "namespace": "default"},
            "spec": {
                "upstream": {"repo": "catalog", "package": row.name, "revision": "main"},
                "downstream": {"repo": "here", "package": row.name},
            },
        })  # fmt: skip


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CommandResult]:
    folder = tmp_path_factory.mktemp("table")
    build(folder, rows())
    ended = run_in(folder, {"HOME": str(folder), "PATH": "/usr/bin:/bin"}, "render", "config", "--output", "out")
    return folder / "out" / "here", ended


@pytest.mark.slow
def test_the_failing_rows_make_the_command_fail(rendered: tuple[Path, CommandResult]) -> None:
    assert rendered[1].returncode == 1, rendered[1].stderr


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in rows()])
def test_what_is_published(rendered: tuple[Path, CommandResult], row: Row) -> None:
    written = rendered[0] / row.name / "object.yaml"

    if row.result is None:
        assert not written.parent.exists()
        return
    (document,) = parse_yaml(written.read_bytes()).documents
    assert is_same_json(_bare(document.data), _bare(row.result))


def _bare(data: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(data["metadata"])
    for field in ("labels", "annotations"):
        left = {key: value for key, value in (metadata.pop(field, None) or {}).items() if key not in MARKS}
        metadata |= {field: left} if left else {}
    return {**data, "metadata": metadata}
