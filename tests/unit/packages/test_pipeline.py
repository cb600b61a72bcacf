"""Tests of pipelines: order, selection, configuration, validation, failures, and written files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml

from reconciler.api.kpt import FunctionSpec
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    Item,
    KrmFunction,
)
from reconciler.packages.functions.limits import DEFAULT_LIMITS
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS, FunctionMatch
from reconciler.packages.pipeline import RenderFailure, RenderResult, render_pipelines
from tests.unit.packages.builders import KPTFILE, build_tree, read_texts

SERVICE = "# header\napiVersion: v1\nkind: Service\nmetadata:\n  name:   {name}   # who\n\nspec: {{}}\n"
Calls = list[tuple[str, list[str], Any]]


def format_kptfile(*mutators: Mapping[str, Any], validators: Sequence[Mapping[str, Any]] = (), **metadata: Any) -> str:
    pipeline = {"mutators": list(mutators), "validators": list(validators)}
    data = {
        "apiVersion": "kpt.dev/v1",
        "kind": "Kptfile",
        "metadata": {"name": "app", **metadata},
        "pipeline": pipeline,
    }
    return yaml.safe_dump(data, sort_keys=False)


def build_script(source: str) -> dict[str, Any]:
    return {"image": "starlark:v0.5", "configMap": {"source": source}}


class RecordingFunctions:
    """Function registry that records the input of each call."""

    def __init__(self, **functions: KrmFunction) -> None:
        self.functions = functions
        self.calls: Calls = []
        self.limits = DEFAULT_LIMITS

    def find(self, spec: FunctionSpec) -> FunctionMatch | None:
        def call(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
            data = (config or {}).get("data")
            self.calls.append((f"{context.package or '.'}:{spec.image}", [item.file for item in items], data))
            function = self.functions.get(spec.image)
            return function(items, config, context) if function else FunctionOutput(tuple(items))

        return FunctionMatch(call, (1, 0, 0))


NESTED = {
    "r.yaml": SERVICE.format(name="r"),
    "db/Kptfile": format_kptfile({"image": "d"}),
    "db/d.yaml": SERVICE.format(name="d"),
    "web/Kptfile": format_kptfile({"image": "w"}),
    "web/cache/Kptfile": format_kptfile({"image": "c"}),
    "web/cache/c.yaml": SERVICE.format(name="c"),
}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, ["db:d", "web/cache:c", "web:w", ".:r1", ".:r2", ".:v"], id="children-first"),
        pytest.param(
            {"annotations": {"kpt.dev/bfs-rendering": "true"}},
            [".:r1", ".:r2", ".:v", "db:d", "web:w", "web/cache:c"],
            id="breadth-first",
        ),
    ],
)
def test_order_and_scope(annotations: dict[str, Any], expected: list[str]) -> None:
    functions = RecordingFunctions()
    root = format_kptfile({"image": "r1"}, {"image": "r2"}, validators=[{"image": "v"}], **annotations)

    render_pipelines(build_tree({"Kptfile": root, **NESTED}), functions)

    assert [name for name, _, _ in functions.calls] == expected
    mapping = {name: files for name, files, _ in functions.calls}
    assert mapping["web:w"] == ["web/Kptfile", "web/cache/Kptfile", "web/cache/c.yaml"]
    assert mapping[".:r1"][:2] == ["Kptfile", "r.yaml"]
    assert len(mapping[".:r1"]) == 7


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        pytest.param({}, ["Kptfile", "a.yaml", "b.yaml"], id="all"),
        pytest.param({"selectors": [{"kind": "Service"}]}, ["a.yaml", "b.yaml"], id="kind"),
        pytest.param({"selectors": [{"name": "a"}, {"kind": "Service", "name": "a"}]}, ["a.yaml"], id="each-once"),
        pytest.param({"selectors": [{"name": "a", "kind": "Kptfile"}]}, [], id="fields-are-anded"),
        pytest.param({"exclude": [{"kind": "Kptfile"}]}, ["a.yaml", "b.yaml"], id="exclude"),
        pytest.param({"exclude": [{}]}, ["Kptfile", "a.yaml", "b.yaml"], id="an-empty-exclude-is-none"),
        pytest.param({"selectors": [{"kind": "Service"}], "exclude": [{"name": "a"}]}, ["b.yaml"], id="both"),
        pytest.param({"selectors": [{"apiVersion": "v1"}]}, ["a.yaml", "b.yaml"], id="apiVersion"),
        pytest.param({"selectors": [{"labels": {"app": "x"}}]}, [], id="labels"),
    ],
)
def test_selection(selection: dict[str, Any], expected: list[str]) -> None:
    functions = RecordingFunctions()
    files = {"Kptfile": format_kptfile({"image": "f", **selection}), "a.yaml": SERVICE.format(name="a")}

    render_pipelines(build_tree({**files, "b.yaml": SERVICE.format(name="b")}), functions)

    assert functions.calls[0][1] == expected


def test_configuration_is_the_current_version_of_its_file() -> None:
    def change(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
        return FunctionOutput(
            tuple(i.with_values([(("data", "v"), "new")]) if i.path == "c.yaml" else i for i in items)
        )

    functions = RecordingFunctions(f=change)
    root = format_kptfile(
        {"image": "f", "configPath": "c.yaml"}, {"image": "g", "configPath": "./c.yaml"}, {"image": "h"}
    )
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {v: old}\n"

    render_pipelines(build_tree({"Kptfile": root, "c.yaml": config}), functions)

    assert [item for _, _, item in functions.calls] == [{"v": "old"}, {"v": "new"}, None]


def test_validators_do_not_change_files() -> None:
    def drop(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
        return FunctionOutput(())

    files = build_tree({"Kptfile": format_kptfile(validators=[{"image": "v"}]), "a.yaml": SERVICE.format(name="a")})

    assert render_pipelines(files, RecordingFunctions(v=drop)) == RenderResult(
        files, render_pipelines(files, RecordingFunctions(v=drop)).steps
    )


def test_only_changed_documents_are_written() -> None:
    two = SERVICE.format(name="a") + "---\n" + SERVICE.format(name="b")
    change = 'for r in ctx.resource_list["items"]:\n  if r["metadata"]["name"] == "b":\n    r["spec"] = {"x": 1}\n'
    files = build_tree(
        {
            "Kptfile": format_kptfile(build_script(change)),
            "two.yaml": two,
            "t.txt": "x\r\n",
            "c.yaml": SERVICE.format(name="c"),
        }
    )

    result = render_pipelines(files)

    before, after = read_texts(files), read_texts(result.files)
    assert {path for path in after if after[path] != before[path]} == {"two.yaml"}
    assert after["two.yaml"].startswith(SERVICE.format(name="a") + "---\n# header\n")
    assert "  name:   b   # who\n" in after["two.yaml"]
    assert render_pipelines(result.files).files == result.files


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            'r = ctx.resource_list\nr["items"] = [i for i in r["items"] if i["kind"] == "Kptfile"]',
            {"Kptfile"},
            id="a-file-without-resources-goes",
        ),
        pytest.param(
            'pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}\n'
            'ctx.resource_list["items"].append(pod)',
            {"Kptfile", "two.yaml", "n/pod_p.yaml"},
            id="a-new-resource-gets-a-place",
        ),
        pytest.param(
            'for i in ctx.resource_list["items"]:\n  if i["metadata"]["name"] == "b":\n'
            '    i["metadata"]["annotations"]["internal.config.kubernetes.io/path"] = "x/b.yaml"\n',
            {"Kptfile", "two.yaml", "x/b.yaml"},
            id="a-resource-moves",
        ),
    ],
)
def test_files_are_created_and_deleted(source: str, expected: set[str]) -> None:
    two = SERVICE.format(name="a") + "---\n" + SERVICE.format(name="b")

    result = render_pipelines(build_tree({"Kptfile": format_kptfile(build_script(source)), "two.yaml": two}))

    assert result.failure is None
    assert set(result.files) == expected
    if "x/b.yaml" in expected:
        assert read_texts(result.files)["two.yaml"] == SERVICE.format(name="a")
        assert read_texts(result.files)["x/b.yaml"] == SERVICE.format(name="b")


def test_json_stays_json() -> None:
    text = '{\n    "apiVersion": "v1",\n    "kind": "A",\n    "metadata": {\n        "name": "ü"\n    }\n}'
    same = '{"apiVersion":"v1","kind":"A",\n"metadata":{"name":"x","labels":{"a":"b"}}}'
    root = format_kptfile({"image": "set-labels:v0.2", "configMap": {"a": "b"}})

    after = read_texts(render_pipelines(build_tree({"Kptfile": root, "a.json": text, "same.json": same})).files)

    assert after["a.json"] == text.replace('"ü"', '"ü",\n        "labels": {\n            "a": "b"\n        }')
    assert after["same.json"] == same


@pytest.mark.parametrize(
    ("text", "count", "last"),
    [
        pytest.param('[{"message": "x" * 5000}]', 1, "x" * 4000 + "…", id="long"),
        pytest.param('[{"message": "m", "tags": {"a": "x" * 5000}}]', 1, "m", id="long-beside-its-message"),
        pytest.param('[{"message": "x" * 1900}] * 1000', 104, "and 897 more results", id="many"),
    ],
)
def test_results_of_a_function_are_limited(text: str, count: int, last: str) -> None:
    source = f'ctx.resource_list["results"] = {text}'

    result = render_pipelines(
        build_tree({"Kptfile": format_kptfile(build_script(source)), "a.yaml": SERVICE.format(name="a")})
    )

    assert result.failure is None
    assert (len(result.steps[0].results), result.steps[0].results[-1].message) == (count, last)


def test_failure_message_is_limited() -> None:
    source = 'ctx.resource_list["results"] = [{"message": "x" * 9000, "severity": "error"}]'

    result = render_pipelines(
        build_tree({"Kptfile": format_kptfile(build_script(source)), "a.yaml": SERVICE.format(name="a")})
    )

    assert result.failure is not None
    assert len(result.failure.message) < 5_000


def build_generator(path: str) -> dict[str, Any]:
    metadata = {"name": "n", "annotations": {"internal.config.kubernetes.io/path": path}}
    return build_script(
        f'ctx.resource_list["items"].append({json.dumps({"apiVersion": "v1", "kind": "A", "metadata": metadata})})'
    )


@pytest.mark.parametrize(
    ("mutator", "kind", "message"),
    [
        pytest.param(build_script('fail("no")'), "failed", "fail: no", id="function-fails"),
        pytest.param({"image": "set-namespace"}, "failed", "FunctionConfig is missing", id="error-result-with-exit-0"),
        pytest.param({"image": "docker.io/x/y:v1"}, "unavailable", "the function is not available", id="unknown-image"),
        pytest.param({"exec": "sed"}, "unavailable", "the function is not available", id="exec"),
        pytest.param({"image": "a", "configPath": "no.yaml"}, "invalid", "which does not exist", id="no-config-file"),
        pytest.param(
            {"image": "a", "configPath": "sub/c.yaml"},
            "invalid",
            "belongs to a subpackage",
            id="config-of-a-subpackage",
        ),
        pytest.param(
            {"image": "a", "configPath": "two.yaml"}, "invalid", "more than one config, got 2", id="two-configs"
        ),
        pytest.param({"image": "a", "exec": "b"}, "invalid", "exactly one of image and exec", id="invalid-kptfile"),
        pytest.param(build_generator("../x.yaml"), "failed", "outside of package", id="path-escapes"),
        pytest.param(build_generator("a/.git/x.yaml"), "failed", "ordinary file name", id="path-into-git"),
        pytest.param(build_generator("readme.md"), "failed", "must not replace", id="path-of-another-file"),
        pytest.param(build_generator("sub"), "failed", "must not replace", id="path-of-a-folder"),
        pytest.param(build_generator("two.yaml/x.yaml"), "failed", "must not replace", id="path-below-a-file"),
        pytest.param(
            build_script('ctx.resource_list["items"] = []'),
            "failed",
            "must not delete the Kptfile",
            id="without-the-kptfile",
        ),
        pytest.param(
            build_generator("Kptfile"), "failed", "must not contain any other resource", id="path-of-the-kptfile"
        ),
        pytest.param(
            build_generator("new/Kptfile"), "failed", "must not contain any other resource", id="path-of-a-new-kptfile"
        ),
        pytest.param(
            build_script('ctx.resource_list["items"].append({"kind": "A"})'),
            "failed",
            "resource must have `apiVersion`",
            id="no-krm",
        ),
    ],
)
def test_failure_leaves_the_files_unchanged(mutator: dict[str, Any], kind: str, message: str) -> None:
    two = SERVICE.format(name="a") + "---\n" + SERVICE.format(name="b")
    mapping = {"two.yaml": two, "readme.md": "x", "sub/Kptfile": KPTFILE, "sub/c.yaml": SERVICE.format(name="c")}
    label = {"image": "set-labels:v0.2", "configMap": {"a": "b"}}
    files = build_tree({"Kptfile": format_kptfile(label, mutator), **mapping})

    result = render_pipelines(files)

    assert result.failure is not None
    assert (result.failure.kind, message in result.failure.message) == (kind, True), result.failure
    assert result.files == files


@pytest.mark.parametrize(
    ("files", "file", "line"),
    [
        pytest.param({"Kptfile": KPTFILE, "bad.yaml": "a: [\n"}, "bad.yaml", 2, id="yaml"),
        pytest.param({"Kptfile": "a: [\n"}, "Kptfile", 2, id="kptfile"),
        pytest.param({"a.yaml": "a: 1\n"}, "Kptfile", 0, id="no-kptfile"),
        pytest.param({"Kptfile": "- a list\n"}, "Kptfile", 1, id="kptfile-is-a-list"),
        pytest.param({"Kptfile": KPTFILE, "sub/Kptfile": "kind: Other\n"}, "sub/Kptfile", 1, id="subpackage"),
    ],
)
def test_invalid_input_is_a_failure(files: dict[str, str], file: str, line: int) -> None:
    result = render_pipelines(build_tree(files))

    assert result.failure == RenderFailure("invalid", "", "", result.findings[0].message)
    assert [(finding.location.file, abs(finding.location.line - line) <= 1) for finding in result.findings] == [
        (file, True)
    ]


def test_empty_pipeline_requires_krm_resources() -> None:
    result = render_pipelines(build_tree({"Kptfile": KPTFILE, "a.yaml": "a: 1\n"}))

    message = "input resource list must contain only KRM resources: a.yaml: resource must have `apiVersion`"
    assert result.failure == RenderFailure("invalid", "", "", message)


def test_kustomizations_and_ignored_files_stay() -> None:
    files = build_tree(
        {"Kptfile": KPTFILE, "kustomization.yaml": "resources: []\n", ".krmignore": "v.yaml\n", "v.yaml": "a: 1\n"}
    )

    assert render_pipelines(files) == RenderResult(files)


def test_steps_as_data() -> None:
    def speak(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
        return FunctionOutput(tuple(items), (FunctionResult("hello"),), log="printed")

    result = render_pipelines(
        build_tree(
            {
                "Kptfile": format_kptfile({"image": "f", "name": "n"}),
            }
        ),
        RecordingFunctions(f=speak),
    )

    assert [step.as_data() for step in result.steps] == [
        {
            "package": ".",
            "stage": "mutator",
            "name": "n",
            "image": "f",
            "exitCode": 0,
            "results": [{"message": "hello", "severity": "info"}],
            "stderr": "printed",
        }
    ]


def test_guessed_version_is_a_warning() -> None:
    files = build_tree({"Kptfile": format_kptfile({"image": "set-labels:v7", "configMap": {"a": "b"}})})

    assert render_pipelines(files, BUILTIN_FUNCTIONS).steps[0].results[0].severity == "warning"


@pytest.mark.parametrize(
    ("profile", "changed"), [pytest.param("safe", False, id="safe"), pytest.param("compat", True, id="compat")]
)
def test_only_compat_saves_files_on_failure(profile: Any, changed: bool) -> None:
    label = {"image": "set-labels:v0.2", "configMap": {"a": "b"}}
    root = format_kptfile(label, build_script('fail("no")'), annotations={"kpt.dev/save-on-render-failure": "true"})
    files = build_tree({"Kptfile": root, "a.yaml": SERVICE.format(name="a")})

    assert (render_pipelines(files, profile=profile).files != files) is changed
