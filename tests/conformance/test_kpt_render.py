"""The render cases of the kpt projects, in the profile that reproduces kpt.

A case whose functions all run here must give the files, the outcome and the results of kpt. Each other case names the
image that cannot run, and this image is listed with the reason. The list of cases with a different result is exact: a
listed case that passes fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.api.kpt import FunctionSpec
from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml import YamlFile
from reconciler.packages.functions.function import FunctionContext, Item
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS
from reconciler.packages.kptfile import Kptfile, read_kptfile
from reconciler.packages.package import Package
from reconciler.packages.parsing import parse_cached
from reconciler.packages.pipeline import PipelineStep, RenderFailure, RenderResult, render_pipelines
from reconciler.packages.write_back import write_back

DATA = Path(__file__).resolve().parents[2] / "../shared/data/kpt"
FOLDERS = ("e2e", "catalog-tests", "catalog-examples", "catalog-contrib")
CASES = sorted(path.parent for folder in FOLDERS for path in (DATA / folder).glob("*/meta.json"))

# Cases that run with different results.
GAPS = {
    "source-gcloud-config-simple": "the folder is not a package; kpt skips this case too",
}
# Functions that cannot run here, by base name or command.
CONTAINERS_ONLY = {
    "annotate-apply-time-mutations": "is only for clusters whose applier supports its annotations",
    "export-terraform": "writes Terraform configuration",
    "fix": "migrates packages from before 2021",
    "render-helm-chart": "downloads charts",
    "sed": "is a command, which runs only if the settings allow it",
}

pytestmark = pytest.mark.skipif(not CASES, reason="the test data of other projects is not beside this project")


def read_tree(folder: Path) -> FileTree:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return FileTree({path.relative_to(folder).as_posix(): File(path.read_bytes()) for path in files})


def read_yaml(path: Path) -> dict[str, Any]:
    return (yaml.safe_load(path.read_text()) or {}) if path.exists() else {}


def rendered(case: Path) -> tuple[FileTree, RenderResult]:
    """Render a case, or run the function of its configuration with all of its resources."""
    files, config = read_tree(case / "input"), read_yaml(case / "config.yaml")
    if config.get("testType") == "eval":
        return files, evaluated(files, config)
    return files, render_pipelines(files, profile="compat")


def evaluated(files: FileTree, config: dict[str, Any]) -> RenderResult:
    """Run one function with a folder, which can be no package, as `kpt fn eval` does."""
    spec = FunctionSpec(image=config["image"])
    function_match, read = BUILTIN_FUNCTIONS.find(spec), Package(files).resources
    if function_match is None:
        return RenderResult(files, (), RenderFailure("unavailable", "", spec.display_name, "no such function"))
    items = [Item(r.package, r.path, r.index, r.data, number, r.document) for number, r in enumerate(read)]
    output = function_match.function(
        items, function_config(files, config), FunctionContext("compat", function_match.version)
    )
    step = PipelineStep("", "mutators", "", spec.image, "", int(output.has_failed), output.results, log=output.log)
    if output.has_failed:
        return RenderResult(files, (step,), RenderFailure("failed", "", spec.display_name, "the function failed"))
    return RenderResult(write_back(files, read, map(placed, output.items), prune=True), (step,))


def function_config(files: FileTree, config: dict[str, Any]) -> Any:
    if "fnConfig" in config:
        parsed = parse_cached(files[config["fnConfig"].removeprefix("../")].data)
        assert isinstance(parsed, YamlFile)
        return parsed.documents[0].data
    data = {key: str(value) for key, value in config.get("args", {}).items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "function-input"}, "data": data}


def placed(item: Item) -> Item:
    path = item.path or "/".join(filter(None, (item.namespace, f"{item.kind.lower()}_{item.name}.yaml")))
    return item.with_location(path, max(item.index, 0))


def missing_functions(case: Path) -> list[str]:
    package, config = Package(read_tree(case / "input")), read_yaml(case / "config.yaml")
    specs = [FunctionSpec(image=config["image"])] if config.get("image") else []
    for path in ("", *package.subpackages):
        kptfile = package.read_kptfile_of(path)
        if isinstance(kptfile, Kptfile):
            specs += [*kptfile.pipeline.mutators, *kptfile.pipeline.validators]
    return [spec.display_name for spec in specs if BUILTIN_FUNCTIONS.find(spec) is None]


def base_name(label: str) -> str:
    return label.split()[0].rpartition("/")[2].partition(":")[0]


def comparable(files: FileTree) -> dict[str, Any]:
    """Return files in the form in which the README of the data compares them."""
    return {path: comparable_file(path, file.data) for path, file in files.items()}


def comparable_file(path: str, data: bytes) -> Any:
    if path.rpartition("/")[2] == "Kptfile" and isinstance(read_kptfile(data), Kptfile):
        return {key: value for key, value in yaml.safe_load(data).items() if key != "status"}
    lines = [line for line in data.decode().splitlines() if line.strip()]
    return lines[1:] if lines[:1] == ["---"] else lines


def comparable_results(results: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (
            result["message"],
            result.get("severity", "info"),
            result.get("resourceRef") or {},
            {key: value for key, value in (result.get("field") or {}).items() if key == "path"},
        )
        for result in results
    ]


def check(case: Path) -> None:
    before, result = rendered(case)
    expected = read_tree(case / "expected") if (case / "expected").exists() else before
    meta, items = read_yaml(case / "meta.json"), read_yaml(case / "results.yaml").get("items", [])
    steps = [step.as_data() for step in result.steps]

    assert (1 if result.failure else 0) == meta["exit_code"], result.failure
    assert comparable(result.files) == comparable(expected)
    for step, item in zip(steps if items else [], items, strict=True):
        assert step["exitCode"] == item["exitCode"]
        assert comparable_results(step.get("results", [])) == comparable_results(item.get("results", []))
    check_status(steps, expected)


def check_status(steps: list[dict[str, Any]], expected: FileTree) -> None:
    """Compare with the steps that kpt recorded in the root Kptfile."""
    kptfile = Package(expected).kptfile
    status = kptfile.data.get("status") if isinstance(kptfile, Kptfile) else None
    recorded = (status or {}).get("renderStatus") or {}
    for stage in ("mutator", "validator"):
        result = recorded.get("mutationSteps" if stage == "mutator" else "validationSteps", [])
        got = [step for step in steps if step["stage"] == stage]
        for step, item in zip(got if recorded else [], result if recorded else [], strict=True):
            assert (step["exitCode"], step.get("executionError")) == (item["exitCode"], item.get("executionError"))
            # The interpreter writes the message of a syntax error.
            if "got newline" not in str(item):
                assert comparable_results(step.get("results", [])) == comparable_results(item.get("results", []))


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.parent.name}/{case.name}") for case in CASES])
def test_case(case: Path) -> None:
    missing = missing_functions(case)
    if missing:
        failure = rendered(case)[1].failure

        assert {base_name(label) for label in missing} <= CONTAINERS_ONLY.keys()
        assert failure is not None
        assert (failure.kind, failure.function) == ("unavailable", missing[0])
    elif case.name in GAPS:
        with pytest.raises(AssertionError):
            check(case)
    else:
        check(case)


@pytest.mark.parametrize("name", CONTAINERS_ONLY)
def test_what_is_listed_cannot_run(name: str) -> None:
    assert BUILTIN_FUNCTIONS.find(FunctionSpec(image=name)) is None
