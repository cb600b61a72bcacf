"""Whatever people write, a pass ends, soon, and with findings that say what is too much (openchoreo 5.5, design 8)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.results import ControllerResult
from tests.unit.controllers.components.component_builders import (
    API,
    GLUE,
    addon,
    allowed,
    binding,
    bytes_of,
    catalog_of,
    cluster,
    component,
    component_type,
    create,
    definition,
    environment,
    finding,
    findings,
    listing,
    made,
    market,
    note,
    objects,
    patch,
    patching,
    platform,
    resource,
    room,
    schema,
    told,
    written,
)

# many times what the slowest of these takes, and less than they take when something is compared with all else
SECONDS = 30
NUMBERS = schema({"l": "[]integer"})


@pytest.fixture(autouse=True)
def _it_ends_soon() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < SECONDS


def of(count: int) -> str:
    """Return a component with a list of so many numbers."""
    return component({"l": list(range(count))})


def shown(expression: str) -> str:
    return definition(resource(made(data={"x": f"${{{expression}}}"})), values=NUMBERS)


def patched(*patches: Any, numbers: int = 0, base: Any = None, loop: int = 1) -> ControllerResult:
    """Return a component whose resource, made for each of so many numbers, an addon patches."""
    stall = definition(resource(base or made(name="n-${string(item)}"), forEach="${spec.l}"), values=NUMBERS)
    fix = addon("fix", {"schema": NUMBERS, "patches": list(patches)})
    kind = component_type(platform("fix", "i", {"l": list(range(loop))}))
    return room(market(stall, fix, kind, of=of(numbers or 1)))


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
def test_expressions(expression: str, code: str) -> None:
    result = room(market(shown(expression), component_type(), of=of(200)))

    assert code in told(result)
    assert all(len(item.message) < 5000 for item in findings(result))
    assert result.variants == ()


@pytest.mark.parametrize("more", [{}, {"includeWhen": "${true}"}], ids=["plain", "asked-first"])
def test_a_million_rounds(more: Mapping[str, Any]) -> None:
    loop = "${spec.l.map(a, spec.l.map(b, a * 1000 + b)).flatten()}"
    stall = definition(resource(made(name="n-${string(item)}"), forEach=loop, **more), values=NUMBERS)
    result = room(market(stall, component_type(), of=of(1000)))

    assert told(result) == ["CelBudget"]
    assert "spec.resources[0].forEach" in finding(result, "CelBudget").message


def test_very_many_objects() -> None:
    """They are not too many, and none is compared with all the others."""
    assert len(bytes_of(patched(note("x"), numbers=3000))) == 3000


def test_many_patches_look_at_many_objects() -> None:
    nobody = patch("add", "/x", 1, {"resourceType": "Nobody"}, forEach="${spec.l}")
    result = patched(nobody, numbers=2000, loop=2000)

    assert told(result) == ["PatchTooLarge"]
    assert "fix/i: spec.patches[0].target exceeds the limit for the patches" in finding(result, "PatchTooLarge").message


def test_many_patches_look_into_long_lists() -> None:
    containers = [{"name": f"c{number}"} for number in range(2000)]
    base = made("Deployment", spec={"template": {"spec": {"containers": containers}}})
    nobody = patch("add", "/x", 1, {"containerName": "none"}, forEach="${spec.l}")

    assert told(patched(nobody, base=base, loop=2000)) == ["PatchTooLarge"]


def test_many_patches_look_at_their_target() -> None:
    base = made(data={"big": ["x"] * 2000})

    assert told(patched(patch("add", "/data/n", "${target.kind}", forEach="${spec.l}"), base=base, loop=5000)) == [
        "PatchTooLarge"
    ]


def test_many_addons_look_at_everything_that_there_is() -> None:
    output = addon("a", {"creates": [create(made(name="n-${instanceId}", data="${string(size(resources))}"))]})
    listed = [platform("a", f"i{number}") for number in range(1500)]
    result = room(market(definition(), output, component_type(*listed)))

    assert told(result) == ["PatchTooLarge"]


def test_an_object_that_doubles() -> None:
    second_result = [patch("merge", "/data", "${target.data}") for _ in range(40)]

    assert told(patched(*second_result, base=made(data={"l": [1]}))) == ["PatchTooLarge"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("/data/l[*][*]/b", "PathTooMany", id="more-places-than-anybody-counts"),
        pytest.param("/data" + "/x" * 300, "PathSyntax", id="a-long-one"),
        pytest.param("/data/l/99999999999999999999", "PathIndexOutOfRange", id="an-index-beyond-all"),
        pytest.param("../../etc/passwd", "PathSyntax", id="a-path-of-files"),
    ],
)
def test_paths(path: str, code: str) -> None:
    base = made(data={"l": [[{"a": 1}] * 200] * 200})

    assert code in told(patched(patch("add", path, 1), base=base))


@pytest.mark.parametrize(
    "path", ["/data/../../x", "/data/__class__/__init__", "/data/..", "/data/%2e%2e/x", "/data/\u0000"]
)
def test_paths_that_only_look_like_climbing(path: str) -> None:
    """They are keys of maps, and nothing else."""
    result = patched(patch("add", path, 1))

    assert told(result) == []
    (item,) = objects(result).values()
    assert set(item) == {"apiVersion", "kind", "metadata", "data"}


@pytest.mark.parametrize("name", ["../../etc", "a/b", "n" * 100_000, "-" * 300, "..", "a\u0000b", "con:1|*?"])
def test_names_of_everything(name: str) -> None:
    """Objects of this name are refused, or are a file of their package; nothing is written anywhere else."""
    texts = [
        definition(name=name), addon(name), component_type(name=name), environment(name), component(name=name),
        component(name="x", namespace=name), listing(name=name), binding(name=name), binding(component=name, name="y"),
        binding(environment=name, name="z"), definition(resource(made(name=name)), name="named"),
        component_type(definition="named", name="names"), component(kind="Names", name="c"), binding(component="c"),
    ]  # fmt: skip
    result = room(market(definition(), component_type(), *texts))

    for path in bytes_of(result):
        where, *folders, file = path.split("/")
        assert (where, *folders) in {("east", "components", "fair", "square", item) for item in ("bread", "c")}
        assert file not in ("", ".", "..")
        assert len(file) < 1000


def test_a_template_that_is_deeper_than_anybody_reads() -> None:
    deep = "{a: " * 10_000 + "1" + "}" * 10_000
    text = f"apiVersion: platform/v1alpha1\nkind: Addon\nmetadata: {{name: a}}\nspec: {{creates: [{deep}]}}\n"

    catalog = catalog_of({"a.yaml": text})

    assert not catalog.is_complete
    assert [unreadable_file.finding.code for unreadable_file in catalog.unreadable] == ["YamlTooDeep"]


@pytest.mark.parametrize("count", [90, 2000])
def test_values_that_are_deep(count: int) -> None:
    """As deep as can be read, and far deeper, by an expression that wraps what it has."""
    deep: Any = 1
    for _ in range(min(count, 90)):
        deep = {"a": deep}
    stall = definition(resource(made(data="${spec}")), values=schema({"o": "object"}))
    wrap = patch("add", "/data/o", "${ {'a': target.data.o} }", forEach="${spec.l}")
    fix = addon("fix", {"schema": NUMBERS, "patches": [wrap]})
    kind = component_type(platform("fix", "i", {"l": list(range(count - 90))}))
    result = room(market(stall, fix, kind, of=component({"o": deep})))

    assert told(result) == ([] if count == 90 else ["PatchTooLarge"])


def test_thousands_of_addons() -> None:
    names = [f"a{number}" for number in range(1500)]
    kind = component_type(*(platform(name, "x") for name in names))

    assert told(room(market(definition(), *map(patching, names), kind))) == []


def test_thousands_of_allowed_addons() -> None:
    names = [f"a{number}" for number in range(1000)]
    kind = component_type(allow=[allowed(name) for name in names])
    addons = [patching(name, "developer") for name in names]

    assert told(room(market(definition(), *addons, kind, of=component({name: {} for name in names})))) == []


def test_thousands_of_addons_in_a_circle() -> None:
    names = [f"a{number}" for number in range(1500)]
    ring = [patching(name, requires=[names[number - 1]]) for number, name in enumerate(names)]
    kind = component_type(*(platform(name, "x") for name in names))

    assert told(room([definition(), *ring, kind])) == ["AddonOrderCycle"]


def test_thousands_of_instances_and_of_what_they_lack() -> None:
    needy = patching("a", requires=[f"x{number}" for number in range(500)])
    kind = component_type(*(platform("a", f"i{number}") for number in range(500)))

    assert len(findings(room([definition(), needy, kind]))) == 500


WRONG: Mapping[str, Any] = {f"k{number}": "${x}" for number in range(5_000)}
KEYS: Mapping[str, Any] = {f"k{number}": {} for number in range(2_000)}


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([addon("a", WRONG)], id="fields"),
        pytest.param([addon("a", {"creates": [made(data=WRONG)]})], id="expressions"),
        pytest.param([addon("a", {"schema": schema(WRONG)})], id="shorthand"),
        pytest.param([definition(), component_type(), component(WRONG)], id="values"),
        pytest.param([definition(), component_type(), binding(overrides=WRONG)], id="overrides"),
        pytest.param([definition(), component_type(), binding(addonOverrides=KEYS)], id="keys"),
        pytest.param(
            [definition(), addon("a", {"schema": schema({"o": "object"}), "patches": [note("x")]}),
             component_type(platform("a", "x", {"o": WRONG}))],
            id="config",
        ),
        pytest.param([addon("a", {"patches": [patch("move", "/a", 1)] * 3000})], id="patches"),
    ],
)  # fmt: skip
def test_nobody_is_told_of_everything_that_is_wrong(texts: list[str]) -> None:
    of_binding = any("EnvBinding" in text for text in texts)
    result = room([*texts, *(market()[:2] if of_binding else ()), *([component()] if of_binding else ())])

    assert 1 <= len(findings(result)) <= 2500
    assert all(len(item.message) < 2000 for item in findings(result))


def test_many_that_cannot_be_told_apart_or_are_of_no_kind() -> None:
    types = [component_type(namespace=f"n{number}") for number in range(600)]
    strays = [component(name=f"c{number}", kind="MarketStal") for number in range(600)]
    result = room([definition(), *types, *strays])

    assert told(result) == ["ComponentTypeNotFound", "DuplicateObject"]
    assert all(len(item.message) < 6000 for item in findings(result))


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
def edited(draw: Any) -> dict[str, Any]:
    """Return a spec that is sound but for one or two places that are anything."""
    spec: dict[str, Any] = draw(st.sampled_from((
        {"schema": {"parameters": {"a": "string | default=x"}}, "resources": [resource(made(data="${spec}"))]},
        {"schema": {"parameters": {"a": "string"}, "envOverrides": {"b": "integer"}},
         "creates": [create(made(name="l"), id="l")], "patches": [note("x")], "dependencies": {"requires": []}},
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


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(KINDS), edited() | ANYTHING, min_size=1, max_size=3))
def test_anything_anywhere_ends_in_findings(specs: Mapping[str, Any]) -> None:
    """No object crashes the room, and nothing wrong goes without a word."""
    sound = {
        "definition": definition(values=schema({"a": "string | default=x"})), "addon": patching("lamp"),
        "type": component_type(platform("lamp", "x"), allow=[allowed("till")]), "binding": binding(),
        "instance": component({"till": {}}), "environment": environment(),
    }  # fmt: skip
    for kind, spec in specs.items():
        of_kind, name, namespace = MAKERS[kind]
        api = GLUE if kind in ("environment", "build") else API
        sound[kind] = written(of_kind, name, spec, namespace=namespace, api=api)
    result = room([*sound.values(), cluster(), patching("till", "developer")])

    wrong = [item for item in findings(result) if item.severity == "error"]
    assert wrong or len(result.variants) == 1
    assert all(item.message and item.location.file for item in wrong)
