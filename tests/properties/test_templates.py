"""Templates of any form: the merge laws hold across files, and any input gives a reproducible result."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.catalog.files import File, FileTree
from reconciler.controllers.kafka_templates.effective_templates import find_template_changes
from reconciler.controllers.kafka_templates.merge import build_effective_template, find_hidden_settings, merge_templates
from reconciler.controllers.kafka_templates.model import MATERIALISED_ANNOTATION, TemplateOptions
from reconciler.controllers.kafka_templates.package_templates import TemplatedPackage, apply_templates
from reconciler.controllers.kafka_templates.pairing import find_pairs
from reconciler.controllers.kafka_templates.read_merge_rules import load_built_in_rule
from reconciler.krm.findings import select_errors
from reconciler.krm.json_pointer import parse_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import emit, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from tests.support.examples import examples

NAMES = load_built_in_rule().properties
EXAMPLES = settings(deadline=None, max_examples=examples(80))
ALL = (*NAMES, *load_built_in_rule().parent_only, "unheard")
_TEXTS = st.sampled_from(["", "a", "on", "1", "null", "~", "x: y", "{nodeId}"])
_SCALARS = st.one_of(_TEXTS, st.sampled_from([0, 1, -1, 1.0, True, False]))
_KEYS = st.sampled_from(["metadata", "labels", "env", "name", "value", "a.b/c", "strimzi.io/x", "volumes", "key"])
_ANY = st.recursive(
    st.one_of(_SCALARS, st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=6,
)
_PROPERTY = st.one_of(st.just({}), st.none(), st.dictionaries(_KEYS, _ANY, max_size=3))
TEMPLATES = st.one_of(st.none(), st.dictionaries(st.sampled_from(ALL), _PROPERTY, max_size=5))
# values that may occur in any inspected field
_WILD = st.one_of(_ANY, st.dictionaries(st.sampled_from(ALL), _ANY, max_size=3))


def written(kind: str, spec: Any, **metadata: Any) -> str:
    whole = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": kind,
        "metadata": {"namespace": "n", **metadata},
        "spec": spec,
    }
    return emit(whole)


def files_of(parent: Any, child: Any, spec: Any = None, more: Any = None) -> FileTree:
    pool = {"replicas": 1, "roles": ["controller", "broker"], **(more or {}), "template": child}
    texts = {
        "kafka.yaml": written("Kafka", {"kafka": {**(spec or {}), "template": parent}}, name="k"),
        "pool.yaml": written("KafkaNodePool", pool, name="p", labels={"strimzi.io/cluster": "k"}),
    }
    return FileTree({path: File(text.encode()) for path, text in texts.items()})


def merged(files: FileTree, options: TemplateOptions | None = None) -> TemplatedPackage:
    return apply_templates(files, find_pairs({"x": files}), options)


def pool_of(package: TemplatedPackage) -> Any:
    """Return the rendered pool, regardless of other errors."""
    (templated_resource,) = (resource for resource in package.resources if resource.resource.name == "p")
    return parse_yaml(templated_resource.document.text).documents[0].data


def non_null(template: Any) -> dict[str, Any]:
    return {name: template[name] for name in NAMES if template and template.get(name) is not None}


@EXAMPLES
@given(TEMPLATES, TEMPLATES)
def test_the_merge_from_file_to_file(parent: Any, child: Any) -> None:
    written = pool_of(merged(files_of(parent, child)))["spec"].get("template", ABSENT)

    expected = {**non_null(parent), **non_null(child)}
    assert is_equal_data(written, expected) if expected else written is ABSENT


@EXAMPLES
@given(TEMPLATES, TEMPLATES)
def test_merged_twice_is_merged_once(parent: Any, child: Any) -> None:
    once = build_effective_template(merge_templates(NAMES, parent, child))
    effective_template = build_effective_template(merge_templates(NAMES, parent, once))

    assert is_equal_data(effective_template, once)
    assert [*effective_template] == [*once]


@EXAMPLES
@given(TEMPLATES, TEMPLATES)
def test_a_written_pool_that_loses_its_mark_stays_as_it_is(parent: Any, child: Any) -> None:
    files = files_of(parent, child)
    once = pool_of(merged(files))
    metadata = {key: value for key, value in once["metadata"].items() if key != "annotations"}
    unmarked = files.with_files({"pool.yaml": emit({**once, "metadata": metadata}).encode()})

    twice = pool_of(merged(unmarked))

    assert is_equal_data(twice["spec"], once["spec"])
    assert MATERIALISED_ANNOTATION not in twice["metadata"].get("annotations", {})


@EXAMPLES
@given(TEMPLATES, TEMPLATES, st.sampled_from(NAMES), _PROPERTY)
def test_a_change_moves_the_pools_that_inherit_it(parent: Any, child: Any, name: str, value: Any) -> None:
    other = {**(parent or {}), name: value}
    before, now = files_of(parent, child), files_of(other, child)

    moved = not is_equal_data(pool_of(merged(before))["spec"], pool_of(merged(now))["spec"])

    inherits = (child or {}).get(name) is None
    differs = not is_equal_data(non_null(parent).get(name, ABSENT), non_null(other).get(name, ABSENT))
    assert moved is (inherits and differs)
    template_changes = find_template_changes(find_pairs({"x": before}), find_pairs({"x": now}))
    assert [template_change.properties for template_change in template_changes] == ([(name,)] if moved else [])


@EXAMPLES
@given(TEMPLATES, TEMPLATES, st.sampled_from(NAMES))
def test_what_kafka_drops_is_gone(parent: Any, child: Any, name: str) -> None:
    without = {key: value for key, value in (parent or {}).items() if key != name}

    written = pool_of(merged(files_of(without, child)))["spec"].get("template") or {}

    assert is_equal_data(written.get(name, ABSENT), non_null(child).get(name, ABSENT))


@EXAMPLES
@given(TEMPLATES, TEMPLATES)
@example({"pod": {"metadata": ""}}, {"pod": {"metadata": {"labels": None}}})
def test_provenance_leads_from_the_input_to_the_result(parent: Any, child: Any) -> None:
    package = merged(files_of(parent, child))

    mapping = {name: value for name, value in (child or {}).items() if name not in non_null(parent)}
    leaves: dict[str, Any] = dict(_leaves(mapping, "/spec/template"))
    for entry in package.as_data():
        for step in entry["steps"]:
            assert parse_pointer(entry["pointer"])[:1] in (("spec",), ("metadata",))
            leaves |= _leaves(step.get("after", ABSENT), entry["pointer"])
    result = pool_of(package)["spec"].get("template", {})
    lists = {pointer for pointer, value in leaves.items() if isinstance(value, list)}
    for pointer, value in _leaves(result, "/spec/template"):
        # changed lists are reported item by item
        if not lists.intersection(_above(pointer)) and value != {}:
            assert is_equal_data(leaves.get(pointer, ABSENT), value), pointer


def _leaves(value: Any, pointer: str) -> Any:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    else:
        yield pointer, value


def _above(pointer: str) -> set[str]:
    parts = pointer.split("/")
    return {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}


@EXAMPLES
@given(_PROPERTY, _PROPERTY)
def test_what_is_hidden_is_not_in_the_result(inherited: Any, own: Any) -> None:
    hidden_settings = find_hidden_settings(inherited or {}, own or {})

    assert not {*hidden_settings.shadowed} & {*hidden_settings.overridden}
    assert (hidden_settings.shadowed, hidden_settings.overridden) == ((), ()) or not is_equal_data(inherited, own)
    assert find_hidden_settings(own or {}, own or {}) == find_hidden_settings({}, own or {})


@settings(EXAMPLES, max_examples=examples(200))
@given(
    _WILD, _WILD, st.dictionaries(st.sampled_from(["listeners", "rack", "jvmOptions", "replicas"]), _WILD), st.data()
)
def test_all_errors_are_reported_without_a_failure(parent: Any, child: Any, spec: Any, data: st.DataObject) -> None:
    more = data.draw(st.dictionaries(st.sampled_from(["roles", "replicas", "storage", "jvmOptions"]), _WILD))
    files = files_of(parent, child, spec, more)

    package, second_package = merged(files), merged(files)

    assert (package.files, package.findings, package.as_data()) == (
        second_package.files,
        second_package.findings,
        second_package.as_data(),
    )
    assert [effect.as_data() for effect in package.effects] == [effect.as_data() for effect in second_package.effects]
    assert not select_errors(package.findings) or package.files == files
    assert package.files["kafka.yaml"] == files["kafka.yaml"]
    for template_effect in package.effects:
        assert not template_effect.full_template_yaml or parse_yaml(template_effect.full_template_yaml).documents


@EXAMPLES
@given(TEMPLATES, TEMPLATES)
def test_a_report_is_reproducible_and_changes_nothing(parent: Any, child: Any) -> None:
    files = files_of(parent, child)

    package, new_package = merged(files, TemplateOptions("report")), merged(files)

    assert package.files == files
    assert [dict(template_effect.template) for template_effect in package.effects] == [
        dict(template_effect.template) for template_effect in new_package.effects
    ]
    assert package.findings == new_package.findings
