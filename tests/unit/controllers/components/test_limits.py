"""Tests of limits: each input ends in a short time with findings that name the exceeded limit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.results import ControllerResult
from tests.support.examples import examples
from tests.unit.controllers.components.component_builders import (
    API,
    GLUE,
    addon,
    allowed,
    annotate,
    annotator,
    binding,
    bytes_of,
    catalog_of,
    cluster,
    component,
    component_type,
    create,
    definition,
    environment,
    find_finding,
    full_config,
    list_codes,
    list_findings,
    manifest,
    patch,
    platform,
    read_objects,
    reconcile,
    resource,
    schema,
    untyped_component,
    write_object,
)

# This is many times the duration of the slowest test, and less than the duration with quadratic work.
SECONDS = 30
NUMBERS = schema({"l": "[]integer"})


@pytest.fixture(autouse=True)
def _limit_processor_time() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < SECONDS


def component_of_numbers(count: int) -> str:
    """Return a component with a list of this many numbers."""
    return component({"l": list(range(count))})


def definition_of_expression(expression: str) -> str:
    return definition(resource(manifest(data={"x": f"${{{expression}}}"})), values=NUMBERS)


def reconcile_patches(*patches: Any, numbers: int = 0, base: Any = None, loop: int = 1) -> ControllerResult:
    """Reconcile a component with a resource for each number, which an addon patches."""
    stall = definition(resource(base or manifest(name="n-${string(item)}"), forEach="${spec.l}"), values=NUMBERS)
    fix = addon("fix", {"schema": NUMBERS, "patches": list(patches)})
    kind = component_type(platform("fix", "i", {"l": list(range(loop))}))
    return reconcile(full_config(stall, fix, kind, of=component_of_numbers(numbers or 1)))


GROW = ".replace('x', 'xxxxxxxxxxxxxxxx')"
NESTED = "spec.l.map(a, spec.l.map(b, spec.l.map(c, spec.l.map(d, 1))))"


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        pytest.param(NESTED, "CelBudget", id="loops-in-loops"),
        pytest.param("'x'" + GROW * 60, "CelBudget", id="text-that-grows"),
        pytest.param("[" * 2000 + "]" * 2000, "CelTooDeep", id="a-deep-list"),
        pytest.param("x" * 5000, "CelTooLong", id="a-long-name"),
        pytest.param("'" + "x" * 5000 + "'", "CelTooLong", id="a-long-text"),
        pytest.param("[1].map(a, [a].map(b, [b].map(c, [c].map(d, [d].map(e, e)))))", "CelNesting", id="nested-macros"),
        pytest.param("9223372036854775807 + 1", "CelArithmetic", id="a-number-that-does-not-end"),
    ],
)  # fmt: skip
def test_expression_limits(expression: str, code: str) -> None:
    result = reconcile(
        full_config(definition_of_expression(expression), component_type(), of=component_of_numbers(200))
    )

    assert code in list_codes(result)
    assert all(len(item.message) < 5000 for item in list_findings(result))
    assert result.variants == ()


@pytest.mark.parametrize("more", [{}, {"includeWhen": "${true}"}], ids=["plain", "asked-first"])
def test_loop_of_a_million_iterations_exceeds_the_budget(more: Mapping[str, Any]) -> None:
    loop = "${spec.l.map(a, spec.l.map(b, a * 1000 + b)).flatten()}"
    stall = definition(resource(manifest(name="n-${string(item)}"), forEach=loop, **more), values=NUMBERS)
    result = reconcile(full_config(stall, component_type(), of=component_of_numbers(1000)))

    assert list_codes(result) == ["CelBudget"]
    assert "spec.resources[0].forEach" in find_finding(result, "CelBudget").message


def test_many_objects_are_rendered() -> None:
    """3000 objects are allowed, and the work grows linearly."""
    assert len(bytes_of(reconcile_patches(annotate("x"), numbers=3000))) == 3000


@pytest.mark.slow
def test_many_target_searches_exceed_the_limit() -> None:
    unmatched_patch = patch("add", "/x", 1, {"resourceType": "Nobody"}, forEach="${spec.l}")
    result = reconcile_patches(unmatched_patch, numbers=2000, loop=2000)

    assert list_codes(result) == ["PatchTooLarge"]
    assert (
        "fix/i: spec.patches[0].target exceeds a limit: all patches of a render together can write at most 4,000,000 characters"
        in find_finding(result, "PatchTooLarge").message
    )


def test_many_container_searches_exceed_the_limit() -> None:
    containers = [{"name": f"c{number}"} for number in range(2000)]
    base = manifest("Deployment", spec={"template": {"spec": {"containers": containers}}})
    unmatched_patch = patch("add", "/x", 1, {"containerName": "none"}, forEach="${spec.l}")

    assert list_codes(reconcile_patches(unmatched_patch, base=base, loop=2000)) == ["PatchTooLarge"]


def test_many_reads_of_the_target_exceed_the_limit() -> None:
    base = manifest(data={"big": ["x"] * 2000})

    assert list_codes(
        reconcile_patches(patch("add", "/data/n", "${target.kind}", forEach="${spec.l}"), base=base, loop=5000)
    ) == ["PatchTooLarge"]


def test_many_reads_of_all_resources_exceed_the_limit() -> None:
    output = addon("a", {"creates": [create(manifest(name="n-${instanceId}", data="${string(size(resources))}"))]})
    listed = [platform("a", f"i{number}") for number in range(1500)]
    result = reconcile(full_config(definition(), output, component_type(*listed)))

    assert list_codes(result) == ["PatchTooLarge"]


@pytest.mark.slow
def test_exponential_growth_exceeds_the_limit() -> None:
    second_result = [patch("merge", "/data", "${target.data}") for _ in range(40)]

    assert list_codes(reconcile_patches(*second_result, base=manifest(data={"l": [1]}))) == ["PatchTooLarge"]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("/data/l[*][*]/b", "PathTooMany", id="too-many-locations"),
        pytest.param("/data" + "/x" * 300, "PathSyntax", id="a-long-one"),
        pytest.param("/data/l/99999999999999999999", "PathIndexOutOfRange", id="an-index-beyond-all"),
        pytest.param("../../etc/passwd", "PathSyntax", id="a-path-of-files"),
    ],
)
def test_path_limits(path: str, code: str) -> None:
    base = manifest(data={"l": [[{"a": 1}] * 200] * 200})

    assert code in list_codes(reconcile_patches(patch("add", path, 1), base=base))


@pytest.mark.parametrize(
    "path", ["/data/../../x", "/data/__class__/__init__", "/data/..", "/data/%2e%2e/x", "/data/\u0000"]
)
def test_special_path_segments_are_plain_keys(path: str) -> None:
    """They are keys of maps without another meaning."""
    result = reconcile_patches(patch("add", path, 1))

    assert list_codes(result) == []
    (item,) = read_objects(result).values()
    assert set(item) == {"apiVersion", "kind", "metadata", "data"}


@pytest.mark.parametrize("name", ["../../etc", "a/b", "n" * 100_000, "-" * 300, "..", "a\u0000b", "con:1|*?"])
def test_hostile_names_write_only_inside_the_package(name: str) -> None:
    """Objects with these names are refused, or they are files of their package."""
    texts = [
        definition(name=name), addon(name), component_type(name=name), environment(name), component(name=name),
        component(name="x", namespace=name), untyped_component(name=name), binding(name=name), binding(component=name, name="y"),
        binding(environment=name, name="z"), definition(resource(manifest(name=name)), name="named"),
        component_type(definition="named", name="names"), component(kind="Names", name="c"), binding(component="c"),
    ]  # fmt: skip
    result = reconcile(full_config(definition(), component_type(), *texts))

    for path in bytes_of(result):
        where, *folders, file = path.split("/")
        assert (where, *folders) in {("east", "components", "fair", "square", item) for item in ("bread", "c")}
        assert file not in ("", ".", "..")
        assert len(file) < 1000


def test_too_deep_template_is_unreadable() -> None:
    deep = "{a: " * 10_000 + "1" + "}" * 10_000
    text = f"apiVersion: platform/v1alpha1\nkind: Addon\nmetadata: {{name: a}}\nspec: {{creates: [{deep}]}}\n"

    catalog = catalog_of({"a.yaml": text})

    assert not catalog.is_complete
    assert [unreadable_file.finding.code for unreadable_file in catalog.unreadable] == ["YamlTooDeep"]


@pytest.mark.parametrize("count", [90, 2000])
def test_depth_of_values(count: int) -> None:
    """The first depth can be read. An expression that nests values creates the second one."""
    deep: Any = 1
    for _ in range(min(count, 90)):
        deep = {"a": deep}
    stall = definition(resource(manifest(data="${spec}")), values=schema({"o": "object"}))
    wrap = patch("add", "/data/o", "${ {'a': target.data.o} }", forEach="${spec.l}")
    fix = addon("fix", {"schema": NUMBERS, "patches": [wrap]})
    kind = component_type(platform("fix", "i", {"l": list(range(count - 90))}))
    result = reconcile(full_config(stall, fix, kind, of=component({"o": deep})))

    assert list_codes(result) == ([] if count == 90 else ["PatchTooLarge"])


@pytest.mark.slow
def test_thousands_of_addons() -> None:
    names = [f"a{number}" for number in range(1500)]
    kind = component_type(*(platform(name, "x") for name in names))

    assert list_codes(reconcile(full_config(definition(), *map(annotator, names), kind))) == []


@pytest.mark.slow
def test_thousands_of_allowed_addons() -> None:
    names = [f"a{number}" for number in range(1000)]
    kind = component_type(allow=[allowed(name) for name in names])
    addons = [annotator(name, "developer") for name in names]

    assert (
        list_codes(reconcile(full_config(definition(), *addons, kind, of=component({name: {} for name in names}))))
        == []
    )


@pytest.mark.slow
def test_thousands_of_addons_in_a_cycle() -> None:
    names = [f"a{number}" for number in range(1500)]
    ring = [annotator(name, requires=[names[number - 1]]) for number, name in enumerate(names)]
    kind = component_type(*(platform(name, "x") for name in names))

    assert list_codes(reconcile([definition(), *ring, kind])) == ["AddonOrderCycle"]


def test_thousands_of_missing_requirements() -> None:
    needy = annotator("a", requires=[f"x{number}" for number in range(500)])
    kind = component_type(*(platform("a", f"i{number}") for number in range(500)))

    assert len(list_findings(reconcile([definition(), needy, kind]))) == 500


WRONG: Mapping[str, Any] = {f"k{number}": "${x}" for number in range(5_000)}
KEYS: Mapping[str, Any] = {f"k{number}": {} for number in range(2_000)}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([addon("a", WRONG)], id="fields"),
        pytest.param([addon("a", {"creates": [manifest(data=WRONG)]})], id="expressions"),
        pytest.param([addon("a", {"schema": schema(WRONG)})], id="shorthand"),
        pytest.param([definition(), component_type(), component(WRONG)], id="values"),
        pytest.param([definition(), component_type(), binding(overrides=WRONG)], id="overrides"),
        pytest.param([definition(), component_type(), binding(addonOverrides=KEYS)], id="keys"),
        pytest.param(
            [definition(), addon("a", {"schema": schema({"o": "object"}), "patches": [annotate("x")]}),
             component_type(platform("a", "x", {"o": WRONG}))],
            id="config",
        ),
        pytest.param([addon("a", {"patches": [patch("move", "/a", 1)] * 3000})], id="patches"),
    ],
)  # fmt: skip
def test_number_of_findings_is_limited(texts: list[str]) -> None:
    of_binding = any("EnvBinding" in text for text in texts)
    result = reconcile([*texts, *(full_config()[:2] if of_binding else ()), *([component()] if of_binding else ())])

    assert 1 <= len(list_findings(result)) <= 2500
    assert all(len(item.message) < 2000 for item in list_findings(result))


def test_messages_about_many_duplicates_are_short() -> None:
    types = [component_type(namespace=f"n{number}") for number in range(600)]
    strays = [component(name=f"c{number}", kind="MarketStal") for number in range(600)]
    result = reconcile([definition(), *types, *strays])

    assert list_codes(result) == ["ComponentTypeNotFound", "DuplicateObject"]
    assert all(len(item.message) < 6000 for item in list_findings(result))


ODD = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(
    ("", "a", "${", "${}", "${spec}", "${spec.a}", "${omit()}", "../x", "platform/v1alpha1", "Deployment", "default",
     "string | default=x", "[]string", "/a/-", "add", "both", "main", "market-stall", "lamp", "bread", "fair", "x-y")
)  # fmt: skip
WORDS = st.sampled_from((
    "schema", "types", "parameters", "envOverrides", "resources", "id", "includeWhen", "forEach", "var", "template",
    "resource", "creates", "patches", "patch", "operations", "op", "path", "value", "target", "resourceType",
    "resourceId", "condition", "dependencies", "requires", "conflictsWith", "loadOrder", "after", "before", "addon",
    "validation", "rules", "expression", "message", "name", "instanceId", "config", "defaults", "allowed",
    "platformAddons", "developerAddons", "componentDefinitionRef", "version", "owner", "componentName", "environment",
    "overrides", "platformAddonOverrides", "addonOverrides", "endpoints", "apiVersion", "kind", "metadata", "spec",
    "clusters", "clusterSelector", "context", "workload", "addons", "componentDefinition", "x-own", "$default",
    "lamp", "a",
))  # fmt: skip
ANYTHING = st.recursive(
    ODD, lambda inner: st.dictionaries(WORDS, inner, max_size=5) | st.lists(inner, max_size=3), max_leaves=12
)


@st.composite
def draw_changed_spec(draw: Any) -> dict[str, Any]:
    """Draw a valid spec with one or two replaced fields."""
    spec: dict[str, Any] = draw(st.sampled_from((
        {"schema": {"parameters": {"a": "string | default=x"}}, "resources": [resource(manifest(data="${spec}"))]},
        {"schema": {"parameters": {"a": "string"}, "envOverrides": {"b": "integer"}},
         "creates": [create(manifest(name="l"), id="l")], "patches": [annotate("x")], "dependencies": {"requires": []}},
        {"componentDefinitionRef": {"name": "stall"}, "platformAddons": [platform("lamp", "x", {"a": "b"})],
         "developerAddons": {"allowed": [allowed("till")]}},
        {"owner": {"componentName": "bread"}, "environment": "fair", "overrides": {}, "addonOverrides": {"till": {}}},
        {"a": "b", "till": {}}, {"clusters": ["east"]}, {"image": "a"},
        {"componentDefinition": "stall", "parameters": {"a": "b"}, "addons": [platform("till")]},
    )))  # fmt: skip
    return {**spec, **draw(st.dictionaries(st.sampled_from(sorted(spec)) | WORDS, ANYTHING, max_size=2))}


KINDS = ("definition", "addon", "type", "binding", "instance", "environment", "build", "listing")
MAKERS: Mapping[str, tuple[str, str, str]] = {
    "definition": ("ComponentDefinition", "stall", ""),
    "addon": ("Addon", "lamp", ""),
    "type": ("ComponentType", "market-stall", ""),
    "binding": ("EnvBinding", "bread-fair", "square"),
    "instance": ("MarketStall", "bread", "square"),
    "environment": ("Environment", "fair", ""),
    "build": ("Build", "bread", "square"),
    "listing": ("Component", "cake", "square"),
}


@settings(max_examples=examples(100), deadline=None)
@given(st.dictionaries(st.sampled_from(KINDS), draw_changed_spec() | ANYTHING, min_size=1, max_size=3))
def test_any_spec_ends_in_findings(specs: Mapping[str, Any]) -> None:
    """The controller does not raise an exception, and each error is reported."""
    sound = {
        "definition": definition(values=schema({"a": "string | default=x"})), "addon": annotator("lamp"),
        "type": component_type(platform("lamp", "x"), allow=[allowed("till")]), "binding": binding(),
        "instance": component({"till": {}}), "environment": environment(),
    }  # fmt: skip
    for kind, spec in specs.items():
        of_kind, name, namespace = MAKERS[kind]
        api = GLUE if kind in ("environment", "build") else API
        sound[kind] = write_object(of_kind, name, spec, namespace=namespace, api=api)
    result = reconcile([*sound.values(), cluster(), annotator("till", "developer")])

    wrong = [item for item in list_findings(result) if item.severity == "error"]
    assert wrong or len(result.variants) == 1
    assert all(item.message and item.location.file for item in wrong)
