"""Property tests of the component controller: order of files and lists, addons without effect, and the cache."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.controllers.components.inputs import ComponentCache
from reconciler.controllers.results import ControllerResult
from tests.support.examples import examples
from tests.unit.controllers.components.component_builders import (
    FALSE,
    UNREADABLE,
    PublishedPackages,
    addon,
    allowed,
    annotate,
    binding,
    build,
    bytes_of,
    catalog_of,
    cluster,
    component,
    component_type,
    create,
    definition,
    environment,
    list_findings,
    manifest,
    name_files,
    patch,
    platform,
    reconcile,
    reconcile_catalog,
    resource,
    schema,
    untyped_component,
)

LAMP = {
    "schema": schema({"watt": "integer | default=3"}, {"glow": "string | default=dim"}),
    "creates": [create(manifest(name="${metadata.name}-${addon.name}-${instanceId}", data="${spec}"))],
    "patches": [patch("add", "/data/lamps/-", "${addon.name}-${instanceId}", {"resourceId": "main"})],
}
STALL = {"size": "integer | default=1 maximum=9"}
VALUES = schema(STALL, {"most": "integer | default=5"})
SHOWN = resource(manifest(data={"all": "${spec}", "build": "${build}", "env": "${env}"}))
NAMES = ("a", "b", "c", "d")

# The possible content of each file: the valid content first, then invalid content and other variants.
FILES: Mapping[str, tuple[str, ...]] = {
    "clusters": (
        f"{cluster('east', {'kind': 'edge'})}---\n{cluster('west')}",
        f"{cluster('east')}---\n{cluster('west', {'kind': 'edge'})}",
        cluster("east"),
    ),
    "fair": (
        environment(clusters=["east", "west"]),
        environment(clusters=[], clusterSelector={"matchLabels": {"kind": "edge"}}),
        environment(context={"zone": "north"}),
        environment(wat=1),
        "",
    ),
    "daily": (environment("daily"), f"{environment('daily')}---\n{environment('daily')}", UNREADABLE, ""),
    "stall": (
        definition(SHOWN, values=VALUES),
        definition(SHOWN, values=schema({**STALL, "wide": "boolean | required=true"}, {"most": "integer | default=6"})),
        definition(SHOWN, values=VALUES, labels={"version": "2"}),
        definition(resource({"kind": "${x}"})),
        "",
    ),
    "a": (addon("a", LAMP), addon("a", {**LAMP, "condition": FALSE}), addon("a", {"patches": [annotate("a")]}), ""),
    "b": (
        addon("b", {**LAMP, "dependencies": {"loadOrder": {"after": ["c"]}}}),
        addon("b", {**LAMP, "dependencies": {"requires": [{"addon": "c"}]}}),
        addon("b", LAMP, side="developer"),
        addon("b", {**LAMP, "outputs": 1}),
    ),
    "c": (
        addon("c", LAMP, side="both"),
        addon("c", {**LAMP, "validation": {"rules": [{"expression": "spec.watt < 4"}]}}),
    ),
    "d": (
        addon("d", LAMP, side="developer"),
        addon("d", {**LAMP, "dependencies": {"conflictsWith": [{"addon": "a"}]}}, side="developer"),
    ),
    "type": (
        component_type(platform("a", "x"), platform("b", "y"), platform("c", "z"), allow=[allowed("d")]),
        component_type(platform("a", "x", {"watt": 5}), platform("a", "w"), allow=[allowed("d", {"glow": "red"})]),
        component_type(platform("c", "x"), allow=[allowed("c"), allowed("d")]),
        component_type(platform("b", "x", condition="${spec.size > 1}")),
        component_type(platform("gone")),
        component_type(namespace="one") + "---\n" + component_type(namespace="two"),
        "",
    ),
    "bread": (
        component(),
        component({"size": 3, "d": {}}),
        component({"d": {"watt": 9}, "c": {}}),
        component({"size": 99}),
        untyped_component(platform("d"), platform("c", "i", {"watt": 1})),
        component(wat=1),
        "",
    ),
    "cake": (component(name="cake"), component(name="cake", kind="Other"), untyped_component(name="cake", wat=1), ""),
    "bread-fair": (
        binding(),
        binding(overrides={"most": 7}, platformAddonOverrides={"a": {"x": {"glow": "blue"}}}),
        binding(addonOverrides={"d": {"glow": "blue"}}),
        binding(component="", name="bread-fair"),
        binding(environment="none"),
        "",
    ),
    "cake-daily": (binding("daily", "cake"), binding("fair", "cake"), binding("daily", "bread"), ""),
    "build": (build(), build("bread.fair"), f"{build()}---\n{build()}", build(spec={"workload": 3}), ""),
}


def draw_files() -> st.SearchStrategy[dict[str, str]]:
    """Draw config files. Most files are valid."""
    kinds = {f"{name}.yaml": st.sampled_from((texts[0], *texts)) for name, texts in FILES.items()}
    return st.fixed_dictionaries(kinds)


def summarize(result: ControllerResult) -> Any:
    """Return the complete result of a pass in a comparable form."""
    return (
        bytes_of(result),
        [
            (variant.owner, variant.target, variant.dependencies, variant.findings, variant.adoption)
            for variant in result.variants
        ],
        [
            (stalled_variant.owner, stalled_variant.conditions, stalled_variant.findings)
            for stalled_variant in result.stalled
        ],
        list(result.statuses),
        list(result.findings),
        result.kept_owners,
        dict(result.guards),
    )


def summarize_without_locations(result: ControllerResult) -> Any:
    """Return the result of a pass without locations in files."""
    variants = [(variant.owner, variant.target) for variant in result.variants]
    output = sorted((finding.code, finding.severity, finding.location.object) for finding in list_findings(result))
    return bytes_of(result), variants, [stalled_variant.owner for stalled_variant in result.stalled], output


EXAMPLES = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@EXAMPLES
@given(draw_files(), st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_matter(files: dict[str, str], shuffle: random.Random) -> None:
    texts = list(files.values())
    mixed = list(texts)
    shuffle.shuffle(mixed)

    before, after = reconcile(name_files(texts)), reconcile(name_files(mixed))

    assert summarize_without_locations(before) == summarize_without_locations(after)


@EXAMPLES
@given(st.data())
def test_order_of_unordered_lists_does_not_matter(data: st.DataObject) -> None:
    """Addons run in the order of their names, in any order of the list. Clusters have no order."""
    name_lists = st.lists(st.sampled_from(NAMES), unique=True, max_size=2)
    orders = {name: {"after": data.draw(name_lists), "before": data.draw(name_lists)} for name in NAMES}
    sides = {name: data.draw(st.sampled_from(("both", "developer", "platform-engineer"))) for name in NAMES}
    of_type = [platform(name, "x") for name in NAMES if sides[name] != "developer"]
    of_people = [name for name in NAMES if sides[name] != "platform-engineer"]

    def build_texts(mix: Any) -> list[str]:
        def build_addon(name: str) -> str:
            order = {key: mix(names) for key, names in orders[name].items()}
            return addon(name, {**LAMP, "dependencies": {"loadOrder": order}}, side=sides[name])

        return [
            *map(build_addon, NAMES), cluster("east"), cluster("west"), environment(clusters=mix(["east", "west"])),
            definition(SHOWN, values=VALUES), component({name: {} for name in of_people}), binding(),
            component_type(*mix(of_type), allow=mix([allowed(name) for name in of_people])),
            untyped_component(*mix([platform(name, "y") for name in of_people]), name="cake"), binding(component="cake"),
        ]  # fmt: skip

    before, after = (
        reconcile(build_texts(list)),
        reconcile(build_texts(lambda items: data.draw(st.permutations(items)))),
    )

    assert summarize_without_locations(before) == summarize_without_locations(after)


NOTHING = (
    addon("idle"),
    addon("idle", {"patches": [patch("add", "/data/x", 1, condition=FALSE)]}),
    addon("idle", {"patches": [patch("add", "/data/x", 1, forEach="${[]}")]}),
    addon(
        "idle", {"creates": [create(manifest(), includeWhen=FALSE)], "patches": [patch("add", "/data/x", "${omit()}")]}
    ),
    addon("idle", {"patches": [patch("add", "/data/x", 1, {"resourceType": "Nobody"})]}),
    addon("idle", {"patches": [patch("remove", "/data/none")]}),
    addon("idle", {"condition": FALSE, "creates": [manifest(name="x")]}),
)


@EXAMPLES
@given(draw_files(), st.sampled_from(NOTHING))
def test_addon_without_effect_changes_no_file(files: dict[str, str], idle: str) -> None:
    """The addon is only in the list of addons."""
    files = {**files, "idle.yaml": idle, "bread.yaml": component({"size": 2})}
    listed = [platform("a", "x"), platform("c", "z")]
    kinds = component_type(*listed), component_type(*listed, platform("idle", "x"))

    without, beside = (reconcile({**files, "type.yaml": kind}) for kind in kinds)

    assert bytes_of(without) == bytes_of(beside)


@EXAMPLES
@given(draw_files(), st.data())
def test_pass_with_cache_equals_pass_without_cache(files: dict[str, str], data: st.DataObject) -> None:
    """This applies to any changes between passes and to any published packages."""
    memory, branches = ComponentCache(), PublishedPackages()
    catalog = None
    for _ in range(data.draw(st.integers(2, 4))):
        catalog = catalog_of(files, catalog)
        fresh = reconcile_catalog(catalog, branches)

        assert summarize(reconcile_catalog(catalog, branches, memory)) == summarize(fresh)

        branches = data.draw(st.sampled_from((branches, PublishedPackages.from_result(fresh))))
        for name in data.draw(st.lists(st.sampled_from(sorted(FILES)), max_size=2)):
            files = {**files, f"{name}.yaml": data.draw(st.sampled_from(FILES[name]))}


@EXAMPLES
@given(draw_files())
def test_published_packages_do_not_change_the_desired_state(files: dict[str, str]) -> None:
    first = reconcile(files)

    second = reconcile(files, PublishedPackages.from_result(first))

    assert summarize_without_locations(first) == summarize_without_locations(second)


@EXAMPLES
@given(draw_files(), st.data())
def test_invalid_component_does_not_change_other_components(files: dict[str, str], data: st.DataObject) -> None:
    """The cake does not depend on objects of the bread."""
    files = {**files, "cake.yaml": component(name="cake"), "cake-daily.yaml": binding("daily", "cake")}
    of_bread = ("bread", "bread-fair", "build")
    changed = {f"{name}.yaml": data.draw(st.sampled_from(FILES[name])) for name in of_bread}

    before, after = reconcile(files), reconcile({**files, **changed})

    def select_cake_files(result: ControllerResult) -> dict[str, bytes]:
        return {path: text for path, text in bytes_of(result).items() if "/cake/" in path}

    assert select_cake_files(before) == select_cake_files(after)


def test_first_version_of_each_file_is_valid() -> None:
    sound = reconcile({f"{name}.yaml": texts[0] for name, texts in FILES.items()})

    assert len(sound.variants) == 3
    assert not [finding for finding in list_findings(sound) if finding.severity == "error"]
