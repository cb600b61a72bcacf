"""The test tables of kpt about Kptfiles and their pipelines: each row runs here, or is listed with a reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.api.kpt import FunctionSpec
from reconciler.packages.functions.function import FunctionConfig, FunctionContext, FunctionOutput, Item
from reconciler.packages.functions.limits import DEFAULT_LIMITS
from reconciler.packages.functions.registry import FunctionMatch
from reconciler.packages.functions.resource_list import read_returned_items, read_returned_results
from reconciler.packages.kptfile import Kptfile, read_kptfile, validate_kptfile
from reconciler.packages.package import join_path
from reconciler.packages.pipeline import RenderResult, render_pipelines
from reconciler.packages.update.kptfile_merge import merge_kptfile
from reconciler.packages.update.options import create_compat_options
from tests.support.go_text import raw_string
from tests.unit.packages.builders import build_tree, read_texts

DATA = Path(__file__).resolve().parents[2] / "../shared/data/kpt/packages.json"
TABLES: dict[str, list[dict[str, Any]]] = json.loads(DATA.read_text()) if DATA.exists() else {}

RUN_HERE = {
    "TestUpdateKptfile",
    "TestMerge",
    "TestKptfileValidate",
    "TestMergeWithInput",
    "TestIsMatch",
    "TestEnforcePathInvariants",
    "TestMigrateLegacyResults",
    "TestPathRelToRoot",
}
# tests/unit/packages/test_merge_comments.py, tests/conformance/test_kpt_packages.py
RUN_ELSEWHERE = {
    "TestAddMetadataComment",
    "TestCommand_Run_localPackageChanges",
    "TestCommand_Run_local_subpackages",
    "TestCommand_Run_subpackages",
    "TestCommand_Run_toBranchRefWithSubpkgs",
    "TestCopyMerge",
    "TestPkgDiff",
    "TestRootPackageIsUnfetched",
    "TestRun_remote_subpackages",
    "TestUpdate_FastForward",
    "TestUpdate_Replace",
    "TestUpdate_ResourceMerge",
}
NOT_RUN = {
    "TestUsageProcess": "kpt records its usage in Config Connector resources; this project does not",
}

pytestmark = pytest.mark.skipif(not TABLES, reason="the test data of other projects is not beside this project")


def rows(table: str) -> list[Any]:
    return [pytest.param(row, id=f"{at}-{row['case']}") for at, row in enumerate(TABLES.get(table, []))]


def test_every_table_is_accounted_for() -> None:
    assert set(TABLES) <= RUN_HERE | RUN_ELSEWHERE | set(NOT_RUN)


def kptfile(text: str) -> Kptfile:
    read = read_kptfile(text.strip().encode())
    assert isinstance(read, Kptfile)
    return read


@pytest.mark.parametrize("row", rows("TestUpdateKptfile"))
def test_update_kptfile(row: dict[str, Any]) -> None:
    origin, updated, local = (kptfile(row[side]) for side in ("origin", "updated", "local"))
    merged, _ = merge_kptfile(origin, updated, local, create_compat_options(), take_upstream=row["updateUpstream"])

    assert yaml.safe_load(merged.to_bytes()) == yaml.safe_load(raw_string(row["expected"]))


@pytest.mark.parametrize("row", rows("TestMerge"))
def test_merge(row: dict[str, Any]) -> None:
    origin, updated, local = (kptfile(row[side]) for side in ("origin", "update", "local"))
    merged, _ = merge_kptfile(origin, updated, local, create_compat_options())

    assert yaml.safe_load(merged.to_bytes()) == yaml.safe_load(raw_string(row["expected"]))


def as_written(value: Any) -> Any:
    """Return a struct, given by the names of its Go fields, in the format of its file."""
    if isinstance(value, list):
        return [as_written(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    texts = ("ConfigMap", "Labels", "Annotations")
    return {key[0].lower() + key[1:]: entry if key in texts else as_written(entry) for key, entry in value.items()}


@pytest.mark.parametrize("row", rows("TestKptfileValidate"))
def test_validate(row: dict[str, Any]) -> None:
    head = {"apiVersion": "kpt.dev/v1", "kind": "Kptfile", "metadata": {"name": "validated"}}
    # kpt reports an empty struct as an empty list.
    sections = {key: value or {} for key, value in as_written(row["kptfile"]).items()}
    findings = validate_kptfile(kptfile(yaml.safe_dump(head | sections)), profile="compat")

    assert (not findings) == row["valid"]


class Fake:
    """A function for all pipelines. It stores its input and returns `output` in the wire format."""

    def __init__(self, output: str | None) -> None:
        self.output = output
        self.given: list[Any] = []
        self.limits = DEFAULT_LIMITS

    def find(self, spec: FunctionSpec) -> FunctionMatch | None:
        return FunctionMatch(self, (0, 0, 0))

    def __call__(
        self, items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
    ) -> FunctionOutput:
        self.given = [item.data for item in items]
        if self.output is None:
            return FunctionOutput(tuple(items))
        returned = read_returned_items(items, {"items": list(yaml.safe_load_all(raw_string(self.output)))})
        assert not isinstance(returned, str)
        return FunctionOutput(returned)


def run(fake: Fake, files: dict[str, str], function: dict[str, Any] | None = None) -> RenderResult:
    head = {"apiVersion": "kpt.dev/v1", "kind": "Kptfile", "metadata": {"name": "app"}}
    pipeline = {"mutators": [{"image": "fake", "exclude": [{"kind": "Kptfile"}], **(function or {})}]}
    return render_pipelines(
        build_tree({"Kptfile": yaml.safe_dump(head | {"pipeline": pipeline}), **files}), fake, "compat"
    )


def documents(text: str) -> list[Any]:
    """Return the resources of a text without the annotations of the wire format."""
    result = list(yaml.safe_load_all(raw_string(text)))
    for document in result:
        annotations = document["metadata"].pop("annotations", {})
        remaining = {key: value for key, value in annotations.items() if not key.startswith("internal.")}
        document["metadata"] |= {"annotations": remaining} if remaining else {}
    return result


@pytest.mark.parametrize("row", rows("TestMergeWithInput"))
def test_merge_with_input(row: dict[str, Any]) -> None:
    selected = documents(row["selectedInput"])
    before, expected = documents(row["input"]), documents(row["expected"])
    fake = Fake(row["output"])
    result = run(fake, {"r.yaml": yaml.safe_dump_all(before)}, {"selectors": [{"name": name(it)} for it in selected]})

    assert fake.given == selected
    after = [it for path, text in read_texts(result.files).items() if path != "Kptfile" for it in documents(text)]
    assert sorted(after, key=name) == sorted(expected, key=name)
    # A generated resource gets its own file.
    read = [name(it) for it in before]
    assert documents(read_texts(result.files)["r.yaml"]) == [it for it in expected if name(it) in read]


def name(document: dict[str, Any]) -> str:
    return str(document["metadata"]["name"])


@pytest.mark.parametrize("row", rows("TestIsMatch"))
def test_is_match(row: dict[str, Any]) -> None:
    fake = Fake(None)
    selector = {"apiVersion" if key == "APIVersion" else key.lower(): value for key, value in row["selector"].items()}
    run(fake, {"r.yaml": row["input"]}, {"selectors": [selector]})

    assert bool(fake.given) == row["expected"]


@pytest.mark.parametrize("row", rows("TestEnforcePathInvariants"))
def test_enforce_path_invariants(row: dict[str, Any]) -> None:
    result = run(Fake(row["input"]), {"r.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: a}\n"})

    assert (result.failure.message if result.failure else None) == row.get("expectedErr")


def as_result(data: dict[str, Any]) -> dict[str, Any]:
    field, reference = data.get("Field", {}), data.get("ResourceRef", {})
    names = {**reference.get("TypeMeta", {}), **reference.get("NameMeta", {})}
    return {
        "message": data["Message"],
        "severity": data["Severity"].removeprefix("<framework.").removesuffix(">").lower(),
        "resource": tuple(names.get(name, "") for name in ("APIVersion", "Kind", "Namespace", "Name")),
        "field": field.get("Path", ""),
        "current": yaml.safe_load(field.get("CurrentValue", "null")),
        "proposed": yaml.safe_load(field.get("ProposedValue", "null")),
    }


@pytest.mark.parametrize("row", rows("TestMigrateLegacyResults"))
def test_migrate_legacy_results(row: dict[str, Any]) -> None:
    results = read_returned_results({"results": yaml.safe_load(raw_string(row["input"]))})

    shown = [
        {
            "message": result.message,
            "severity": result.severity,
            "resource": result.resource or ("", "", "", ""),
            "field": result.field,
            "current": result.current,
            "proposed": result.proposed,
        }
        for result in results
    ]
    assert shown == [as_result(data) for data in row["expected"]]


@pytest.mark.parametrize("row", rows("TestPathRelToRoot"))
def test_path_relative_to_root(row: dict[str, Any]) -> None:
    root, package = row["rootPath"].rstrip("/") + "/", row["subPkgPath"]
    if row.get("errString"):
        # Packages are found below their root, so that no other type of path can occur.
        assert not package.startswith(root)
    else:
        assert join_path(package.removeprefix(root), row["resourcePath"]) == row["expected"]
