"""Tests of limits: configurations and packages that multiply content fail before they use much memory or time."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.api.profile import Profile
from reconciler.packages.functions.function import FunctionContext, FunctionOutput
from reconciler.packages.functions.limits import FunctionBudget, FunctionLimits, estimate_value_bytes, find_depth_error
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS
from reconciler.packages.functions.setters import extract_setter_values, find_setter_names
from reconciler.packages.pipeline import RenderResult, render_pipelines
from tests.unit.packages.builders import KPTFILE, build_config, build_tree, parse_items

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
KIB, MIB = 1024, 1024 * 1024
# These limits are small enough for fast tests and large enough for an ordinary package.
LIMITS = FunctionLimits(steps=200_000, output_bytes=MIB)
OUTPUT, STEPS, PLACEHOLDERS = "limits.functions.output_bytes", "limits.functions.steps", "limits.functions.placeholders"


def call(name: str, text: str, configuration: Mapping[str, Any] | None, profile: Profile = "safe") -> FunctionOutput:
    function = BUILTIN_FUNCTIONS.releases[name][-1].function
    return function(parse_items(text), configuration, FunctionContext(profile, (9, 9, 9), "", FunctionBudget(LIMITS)))


def format_config_map(count: int, value: str = "x", comment: str = "") -> str:
    return f"{HEAD}data:\n" + "".join(f"  k{n}: {value}{comment}\n" for n in range(count))


def format_documents(count: int, **annotations: str) -> str:
    text = "".join(f"    {key.replace('_', '/')}: '{value}'\n" for key, value in annotations.items())
    head = HEAD.replace("name: a", "name: a{}") + (f"  annotations:\n{text}" if text else "")
    return "---\n".join(head.format(n) for n in range(count))


def build_data_config(**values: str) -> dict[str, Any]:
    return build_config("ConfigMap", {key.replace("_", "-"): value for key, value in values.items()})


def build_large_config(count: int, value: str = "x") -> dict[str, Any]:
    return build_config("ConfigMap", {f"k{n}": value for n in range(count)})


def build_replacements_config(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return build_config("ApplyReplacements", {"replacements": list(entries)})


def build_replacement(value: str, path: str, **options: Any) -> dict[str, Any]:
    target = {"select": {"kind": "ConfigMap"}, "fieldPaths": [path], "options": options}
    return {"sourceValue": value, "targets": [target]}


LONG = "y" * (512 * KIB)
DEPENDING = ",".join(["/ConfigMap/a0"] * 2_000)

ATTACKS = [
    pytest.param(
        "search-replace",
        format_config_map(1, LONG),
        build_data_config(by_value_regex="(y+)", put_value="${1}" * 200),
        OUTPUT,
        id="put-value-that-multiplies-its-match",
    ),
    pytest.param(
        "search-replace",
        format_config_map(1, LONG),
        build_data_config(by_value_regex="(y+)", put_comment="${1}" * 200),
        OUTPUT,
        id="put-comment-that-multiplies-its-match",
    ),
    pytest.param("search-replace", format_config_map(500), build_data_config(by_value="x", put_value=LONG), OUTPUT, id="long-put-value-often"),
    pytest.param(
        "search-replace", format_config_map(500), build_data_config(by_value="x", put_comment=LONG), OUTPUT, id="long-put-comment-often"
    ),
    pytest.param(
        "search-replace", format_config_map(500), build_data_config(by_path="**." * 5_000 + "x"), STEPS, id="path-with-thousands-of-stars"
    ),
    pytest.param(
        "search-replace", HEAD, build_data_config(by_path="a." * 5_000 + "b", put_value="x"), "100 levels", id="put-far-too-deep"
    ),
    pytest.param(
        "search-replace", format_config_map(1), build_data_config(by_value_regex="(x)?" * 5_000), PLACEHOLDERS, id="regex-with-many-groups"
    ),
    pytest.param(
        "search-replace", format_config_map(1), build_data_config(by_value_regex="((((x{30}){30}){30}){30})"), "regular", id="regex-too-large"
    ),
    pytest.param(
        "search-replace", format_config_map(1), build_data_config(by_value_regex="(" * 50_000), "regular expression", id="regex-too-deep"
    ),
    pytest.param(
        "search-replace", format_config_map(1), build_data_config(by_file_path="{abcd,efgh}" * 20_000), "10,000 characters", id="glob-too-large"
    ),
    pytest.param(
        "search-replace", format_config_map(60, "y" * 65_536), build_data_config(by_value_regex="(y*y*y*){30}$z"), STEPS,
        id="regex-that-is-slow"
    ),
    *(
        pytest.param(
            "apply-setters",
            format_config_map(1, "x", " # kpt-set: " + "${x}" * count),
            build_data_config(x="1"),
            PLACEHOLDERS,
            id=f"comment-with-{count}-placeholders",
        )
        for count in (5_000, 20_000, 60_000)
    ),
    pytest.param(
        "apply-setters",
        format_config_map(1, "x", " # kpt-set: ${a0}"),
        build_config("ConfigMap", {f"a{n}": f"${{a{n + 1}}}" * 20 for n in range(8)} | {"a8": "x"}),
        OUTPUT,
        id="setters-that-contain-setters",
    ),
    pytest.param(
        "apply-setters", format_config_map(1_000, "x", " # kpt-set: ${a}"), build_data_config(a=LONG), OUTPUT, id="long-setter-in-many-fields"
    ),
    pytest.param(
        "apply-setters", format_config_map(2_000, "x", " # kpt-set: ${k1}"), build_large_config(2_000), STEPS, id="many-setters-in-many-fields"
    ),
    pytest.param(
        "apply-setters",
        format_config_map(1, "[]", " # kpt-set: ${a}"),
        build_data_config(a=f"[{'a, ' * 200_000}b]"),
        STEPS,
        id="setter-with-a-long-list",
    ),
    pytest.param(
        "list-setters", format_config_map(1, "x", " # kpt-set: " + "${x}-" * 5_000), None, PLACEHOLDERS, id="listed-placeholders"
    ),
    pytest.param(
        "create-setters", format_config_map(1, "y" * 4 * KIB), build_data_config(**{"n" * 64 * KIB: "y"}), OUTPUT, id="setter-with-a-long-name"
    ),
    pytest.param(
        "create-setters",
        format_config_map(10),
        build_config("ConfigMap", {f"k{n}": f"{n:06}" * 20 for n in range(2_000)}),
        "too many or too long",
        id="too-many-setters-to-search-for",
    ),
    pytest.param(
        "create-setters", format_config_map(200, "[a, b]"), build_data_config(l="[a, b]"), STEPS, id="many-lists-that-are-written-anew"
    ),
    pytest.param("set-labels", format_documents(200), build_large_config(2_000), OUTPUT, id="many-labels-on-many-resources"),
    pytest.param("set-labels", format_documents(20), build_data_config(a=LONG), OUTPUT, id="long-label"),
    pytest.param("set-annotations", format_documents(200), build_large_config(2_000), STEPS, id="many-annotations-on-many-resources"),
    pytest.param("set-annotations", format_documents(20), build_data_config(a=LONG), OUTPUT, id="long-annotation"),
    pytest.param("ensure-name-substring", format_documents(20), build_data_config(append=LONG), OUTPUT, id="long-substring"),
    pytest.param("set-name-prefix", format_documents(20).replace(": a", ": a-"), build_data_config(prefix=LONG, oldPrefix="a"), OUTPUT,
        id="long-prefix"),
    pytest.param(
        "set-namespace",
        format_documents(20).replace("  name:", "  namespace: b\n  name:"),
        build_data_config(namespace=LONG),
        OUTPUT,
        id="long-namespace",
    ),
    pytest.param(
        "set-namespace",
        format_documents(1, config_kubernetes_io_depends_on="x").replace(
            "config/kubernetes/io/depends/on: 'x'",
            "config.kubernetes.io/depends-on: " + ",".join(["/namespaces/b/ConfigMap/a0"] * 2_000),
        ),
        build_data_config(namespace="n" * KIB),
        OUTPUT,
        id="namespace-in-many-dependencies",
    ),
    pytest.param(
        "set-image",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  containers:\n" + "  - image: x\n" * 500,
        build_data_config(name="x", newName=LONG),
        OUTPUT,
        id="long-image-in-many-containers",
    ),
    pytest.param("delete-annotations", format_documents(500), build_data_config(annotationKeys=",".join(map(str, range(20_000)))), STEPS,
                 id="many-names-of-annotations"),
    pytest.param(
        "upsert-resource",
        HEAD,
        {"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y" * 64 * KIB}}
        ] * 20},
        OUTPUT,
        id="upsert-of-many-large-resources",
    ),
    pytest.param(
        "enable-gcp-services",
        "apiVersion: blueprints.cloud.google.com/v1alpha1\nkind: ProjectServiceSet\nmetadata:\n  name: a\n"
        f"  annotations:\n    a: {'y' * 4 * KIB}\nspec:\n  services:\n"
        + "".join(f"  - s{n}.googleapis.com\n" for n in range(1_000)),
        None,
        OUTPUT,
        id="many-services-with-long-annotations",
    ),
    pytest.param(
        "apply-replacements",
        format_config_map(1),
        build_replacements_config(*[build_replacement("y" * 64 * KIB, "data.k0", delimiter=",", index=-1)] * 50),
        OUTPUT,
        id="replacements-that-append",
    ),
    pytest.param(
        "apply-replacements", format_documents(100), build_replacements_config(build_replacement(LONG, "metadata.name")), OUTPUT,
        id="long-value-in-many-resources",
    ),
    pytest.param(
        "apply-replacements",
        format_documents(500),
        build_replacements_config(*[build_replacement("x", "metadata.name")] * 30),
        STEPS,
        id="many-replacements-of-many-resources",
    ),
    pytest.param(
        "apply-replacements", HEAD, build_replacements_config(build_replacement("x", "a." * 5_000 + "b", create=True)), "100 parts",
        id="field-path-that-is-too-deep",
    ),
    pytest.param(
        "apply-replacements",
        format_documents(2),
        build_replacements_config({
            "sourceValue": "x",
            "targets": [{"select": {"name": "((((x{30}){30}){30}){30})"}, "fieldPaths": ["metadata.name"]}],
        }),
        "regular expression",
        id="select-by-a-pattern-that-is-too-large",
    ),
]  # fmt: skip


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(("name", "text", "configuration", "setting"), ATTACKS)
def test_hostile_input_fails_at_low_cost(
    name: str, text: str, configuration: Mapping[str, Any] | None, setting: str
) -> None:
    parse_items(text)  # The items are parsed before the measurement starts.
    tracemalloc.start()
    start = time.process_time()
    try:
        output = call(name, text, configuration)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    messages = " ".join(result.message for result in output.results if result.severity == "error")
    assert setting in messages
    assert len(messages) < 2_000
    assert peak < 80 * MIB
    assert time.process_time() - start < 20


def test_message_names_file_object_field_value_limit_setting_and_next_step() -> None:
    output = call(
        "search-replace", format_config_map(1, LONG), build_data_config(by_value_regex="(y+)", put_value="${1}" * 200)
    )

    (result,) = output.results
    assert output.has_failed
    for part in ("r.yaml", "ConfigMap a", "data.k0", "${1}${1}", "104,857,", "1,048,576 bytes", OUTPUT, "raise the"):
        assert part in result.message


def run_pipeline(*functions: str) -> RenderResult:
    listed = "".join(f"  - {function}\n" for function in functions)
    kptfile = KPTFILE + f"pipeline:\n  mutators:\n{listed}"
    return render_pipelines(
        build_tree({"Kptfile": kptfile, "r.yaml": format_config_map(1, "y" * KIB)}), BUILTIN_FUNCTIONS, "safe"
    )


def test_repeated_multiplication_fails_and_leaves_the_package_unchanged() -> None:
    text = "${1}" * 100
    function = f"image: search-replace:v0.2\n    configMap: {{by-value-regex: '(y+)', put-value: '{text}'}}"

    result = run_pipeline(*[function] * 4)

    assert result.failure is not None
    assert result.failure.kind == "failed"
    assert OUTPUT in result.failure.message
    assert b"y" * KIB + b"\n" in result.files["r.yaml"].data
    assert b"y" * (KIB + 1) not in result.files["r.yaml"].data


def test_limits_apply_to_all_calls_of_a_render_together() -> None:
    function = f"image: set-annotations:v0.1\n    configMap: {{a: '{'z' * KIB}'}}"
    other = f"image: set-annotations:v0.1\n    configMap: {{a: '{'w' * KIB}'}}"
    function_limits = FunctionLimits(output_bytes=64 * KIB)
    kptfile = KPTFILE + "pipeline:\n  mutators:\n" + "".join(f"  - {f}\n" for f in [function, other] * 30)
    files = build_tree({"Kptfile": kptfile, "r.yaml": HEAD})

    def render(limits: FunctionLimits) -> RenderResult:
        return render_pipelines(files, type(BUILTIN_FUNCTIONS)(BUILTIN_FUNCTIONS.load, limits), "safe")

    assert render(FunctionLimits()).failure is None
    assert (failure := render(function_limits).failure) is not None
    assert OUTPUT in failure.message


@given(
    st.lists(st.sampled_from(["${a}", "${b}", "x", "y", "-", "xy"]), max_size=8).map("".join),
    st.text("xy-\n", max_size=12),
)
@example("${a}", "")
@example("a${x}b${y}", "aabb\nab")
def test_setter_values_are_the_groups_of_a_greedy_match(pattern: str, text: str) -> None:
    names, parts = find_setter_names(pattern), re2.compile(r"\$\{[^}]*\}").split(pattern)
    match = re2.search("(.*)".join(map(re2.escape, parts)), text)
    groups = match.groups() if match and names else ()

    expected = dict(zip(names, groups, strict=True)) if groups and all(groups) else {}
    assert extract_setter_values(pattern, text, FunctionBudget()) == expected


@pytest.mark.parametrize(
    ("value", "number"),
    [
        pytest.param("x" * 100, 100, id="text"),
        pytest.param({"a": ["b", 1, None, True]}, 9, id="mapping"),
        pytest.param("ä" * 100, 200, id="other-than-ascii"),
        pytest.param({"a": {"b": {"c": "x\n" * 100}}}, 800, id="every-line-is-indented"),
    ],
)
def test_estimated_size_is_at_least_the_size_of_the_text(value: Any, number: int) -> None:
    assert estimate_value_bytes(value) >= number


def build_nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(("levels", "depth"), [(100, 0), (90, 10)])
def test_depth_limit(levels: int, depth: int) -> None:
    assert find_depth_error(build_nested(levels), depth) == ""
    assert "100 levels" in find_depth_error(build_nested(levels + 1), depth)


LARGE: list[tuple[str, Callable[[int], str], dict[str, Any]]] = [
    ("search-replace", format_config_map, build_data_config(by_value="x", put_value="z")),
    ("search-replace", format_config_map, build_data_config(by_value="x", put_comment="z")),
    ("apply-setters", lambda n: format_config_map(n, "x", " # kpt-set: ${a}"), build_data_config(a="z")),
]


@pytest.mark.parametrize(("name", "text", "configuration"), LARGE, ids=["put-value", "put-comment", "apply-setters"])
def test_cost_of_a_large_document_is_proportional_to_its_size(
    name: str, text: Callable[[int], str], configuration: dict[str, Any]
) -> None:
    def measure_seconds(count: int) -> float:
        given_items = parse_items(text(count))
        start = time.process_time()
        output = BUILTIN_FUNCTIONS.releases[name][-1].function(
            given_items, configuration, FunctionContext("safe", (9, 9, 9))
        )
        assert not output.has_failed
        assert [item.document.text for item in output.items]
        return time.process_time() - start

    measure_seconds(100)
    limit = 30 * max(measure_seconds(400), 0.02)
    # The large document has eight times the fields. A quadratic function would take 64 times as long. Measure it again
    # after a failure, because other processes can use the caches of the processor.
    assert any(measure_seconds(3_200) < limit for _ in range(3))
