"""Injection points take whole data or spec from context objects, and say what became of them (porch 8.3)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.package_variants.injection import find_injection_points, inject_config
from reconciler.controllers.package_variants.model import Injector
from reconciler.controllers.results import MutationResult, PreviousRender
from reconciler.krm.yaml import emit, parse_yaml

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n"
SITE = "net.example/v1"
NO_MATCH = "no resource matched any injection selector for this injection point"


def tree(**files: str) -> FileTree:
    """Files by name, `_` for `/` and a Kptfile unless given."""
    named = {name.replace("_", "/") + ("" if "." in name else ".yaml"): text for name, text in files.items()}
    return FileTree({path: File(text.encode()) for path, text in {"Kptfile": KPTFILE, **named}.items()})


def with_kptfile(files: FileTree, text: str) -> FileTree:
    return files.with_files({"Kptfile": text.encode()})


def resource(
    kind: str, name: str, expected: str | None, content: Any, api_version: str = SITE, **annotations: str
) -> str:
    marks = {"kpt.dev/config-injection": expected, **annotations} if expected else annotations
    metadata = {"name": name, **({"annotations": marks} if marks else {})}
    field = "data" if kind == "ConfigMap" else "spec"
    return emit({"apiVersion": api_version, "kind": kind, "metadata": metadata, field: content})


def config_map(name: str, expected: str | None, **data: str) -> str:
    return resource("ConfigMap", name, expected, data, "v1")


def view(*objects: str) -> CatalogView:
    return CatalogView(
        DependencyReader(read_catalog(FileTree({f"o{i}.yaml": File(text.encode()) for i, text in enumerate(objects)})))
    )


SITE_BER = resource("Site", "ber", None, {"cidr": "198.51.100.0/25"})
SITE_NYC = resource("Site", "nyc", None, {"cidr": "203.0.113.0/24"})
POINT = resource("Site", "here", "required", {"cidr": "none", "placeholder": True})
OPTIONAL = resource("Site", "here", "optional", {"cidr": "none"})
BER = [Injector("ber")]


def data_of(files: FileTree, path: str, index: int = 0) -> Any:
    return parse_yaml(files[path].data).documents[index].data


def injected(
    files: FileTree, injectors: Sequence[Injector], *objects: str, earlier: FileTree | None = None
) -> MutationResult:
    """Inject, check that it worked and that a second time changes nothing."""
    last = PreviousRender(earlier, earlier) if earlier is not None else None
    result = inject_config(files, injectors, "default", view(*objects), last)
    assert [finding.code for finding in result.findings if finding.code != "InjectionMissing"] == []
    assert inject_config(result.files, injectors, "default", view(*objects), last).files == result.files
    return result


def conditions(result: MutationResult) -> list[dict[str, str]]:
    value: list[dict[str, str]] = (data_of(result.files, "Kptfile").get("status") or {}).get("conditions") or []
    return value


def gates(result: MutationResult) -> list[str]:
    info = data_of(result.files, "Kptfile").get("info") or {}
    return [gate["conditionType"] for gate in info.get("readinessGates") or []]


def test_the_whole_spec_is_replaced() -> None:
    result = injected(tree(site=POINT), BER, SITE_BER)
    data = data_of(result.files, "site.yaml")

    assert data["spec"] == {"cidr": "198.51.100.0/25"}
    assert data["metadata"]["name"] == "here"
    assert data["metadata"]["annotations"] == {
        "kpt.dev/config-injection": "required",
        "kpt.dev/injected-resource-name": "ber",
        "kpt.dev/injected-resource": "ber",
    }
    assert conditions(result) == [
        {
            "type": "config.injection.Site.here",
            "status": "True",
            "reason": "ConfigInjected",
            "message": 'injected resource "ber" from cluster',
        }
    ]
    assert gates(result) == ["config.injection.Site.here"]
    assert [
        (config_injection.point, config_injection.file, config_injection.kind, config_injection.name)
        for config_injection in result.injections
    ] == [("config.injection.Site.here", "site.yaml", "Site", "ber")]


def test_the_whole_data_of_a_config_map_is_replaced() -> None:
    point = config_map("tuning", "optional", mtu="1500", queue="fair")
    result = injected(tree(tuning=point), [Injector("jumbo")], config_map("jumbo", None, mtu="9000"))

    assert data_of(result.files, "tuning.yaml")["data"] == {"mtu": "9000"}
    assert gates(result) == []


def test_a_config_map_of_another_group_has_a_spec() -> None:
    point = emit(
        {
            "apiVersion": "acme.example/v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "annotations": {"kpt.dev/config-injection": "optional"}},
            "data": {"stays": "here"},
            "spec": {},
        }
    )
    source = emit({"apiVersion": "acme.example/v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "spec": {"x": 1}})
    result = injected(tree(a=point), [Injector("b")], source)

    assert data_of(result.files, "a.yaml")["data"] == {"stays": "here"}
    assert data_of(result.files, "a.yaml")["spec"] == {"x": 1}


def test_points_in_one_file_in_several_files_and_in_json() -> None:
    both = POINT + "---\n" + config_map("tuning", "optional", mtu="1500")
    in_json = json.dumps(data_of(tree(site=resource("Site", "there", "optional", {})), "site.yaml"), indent=2)
    files = tree(a_both=both).with_files({"b/there.json": in_json.encode()})
    result = injected(files, [Injector("ber")], SITE_BER, config_map("ber", None, mtu="9000"))

    assert data_of(result.files, "a/both.yaml")["spec"] == {"cidr": "198.51.100.0/25"}
    assert data_of(result.files, "a/both.yaml", 1)["data"] == {"mtu": "9000"}
    assert json.loads(result.files["b/there.json"].data)["spec"] == {"cidr": "198.51.100.0/25"}
    assert [condition["type"] for condition in conditions(result)] == [
        "config.injection.ConfigMap.tuning",
        "config.injection.Site.here",
        "config.injection.Site.there",
    ]


@pytest.mark.parametrize(
    ("injectors", "objects", "name"),
    [
        pytest.param([Injector("nyc"), Injector("ber")], [SITE_BER, SITE_NYC], "nyc", id="the-first-that-finds-wins"),
        pytest.param(
            [Injector("none"), Injector("ber")], [SITE_BER], "ber", id="one-that-finds-nothing-is-passed-over"
        ),
        pytest.param(
            [Injector("nyc", kind="Town"), Injector("ber", kind="Site")], [SITE_BER, SITE_NYC], "ber", id="kind"
        ),
        pytest.param([Injector("nyc", version="v2"), Injector("ber")], [SITE_BER, SITE_NYC], "ber", id="version"),
        pytest.param(
            [Injector("nyc", group=""), Injector("ber", group="net.example")], [SITE_BER, SITE_NYC], "ber", id="group"
        ),
    ],
)
def test_which_injector_wins(injectors: list[Injector], objects: list[str], name: str) -> None:
    (config_injection,) = injected(tree(site=POINT), injectors, *objects).injections

    assert config_injection.name == name


@pytest.mark.parametrize(
    ("injectors", "objects", "message"),
    [
        pytest.param([], [SITE_BER], "no injectors defined", id="no-injectors"),
        pytest.param(BER, [], f"no in-cluster resources of type {SITE}.Site", id="no-object-of-the-type"),
        pytest.param(
            BER, [SITE_BER.replace("/v1", "/v2")], f"no in-cluster resources of type {SITE}.Site", id="another-version"
        ),
        pytest.param(BER, [SITE_NYC], NO_MATCH, id="another-name"),
        pytest.param([Injector("ber", group="")], [SITE_BER], NO_MATCH, id="core-group-only"),
        pytest.param(
            [Injector("ber"), Injector("nyc")],
            [SITE_NYC, SITE_BER.replace("spec:", "data:")],
            'field "spec" not found in resource "ber"',
            id="source-without-the-field-ends-the-search",
        ),
        pytest.param(
            BER,
            [SITE_BER.replace("name: ber", "name: ber\n  namespace: other")],
            f"no in-cluster resources of type {SITE}.Site",
            id="another-namespace",
        ),
    ],
)
def test_a_point_left_open_keeps_its_content_and_says_why(
    injectors: list[Injector], objects: list[str], message: str
) -> None:
    files = tree(site=POINT)
    result = injected(files, injectors, *objects)

    assert result.files["site.yaml"] == files["site.yaml"]
    assert result.injections == ()
    assert conditions(result) == [
        {"type": "config.injection.Site.here", "status": "False", "reason": "NoResourceSelected", "message": message}
    ]
    assert gates(result) == ["config.injection.Site.here"]


@pytest.mark.parametrize(
    ("expected", "earlier", "codes"),
    [
        pytest.param("required", False, [("InjectionMissing", "warning")], id="required-and-never-injected"),
        pytest.param("required", True, [("InjectionMissing", "warning")], id="required-and-its-object-is-gone"),
        pytest.param("optional", False, [], id="optional"),
    ],
)
def test_a_required_point_without_an_object_is_a_warning_that_names_the_gate(
    expected: str, earlier: bool, codes: list[tuple[str, str]]
) -> None:
    files = tree(site=resource("Site", "here", expected, {"cidr": "none"}))
    before = inject_config(files, BER, "default", view(SITE_BER)).files if earlier else None
    result = inject_config(files, BER, "default", view(SITE_NYC), PreviousRender(before, files) if before else None)

    assert [(item.code, item.severity) for item in result.findings] == codes
    for finding in result.findings:
        assert "Site/here" in finding.message
        assert 'the gate "config.injection.Site.here" keeps the draft from being published' in finding.message
        assert finding.location.file == "site.yaml"


def test_an_optional_point_left_open_has_no_gate() -> None:
    assert gates(injected(tree(site=OPTIONAL), BER)) == []


@pytest.mark.parametrize(
    ("files", "error"),
    [
        pytest.param(
            tree(site=resource("Site", "here", "mandatory", {})),
            "errors in injection points: "
            'site.yaml: Site/here has invalid "kpt.dev/config-injection" annotation value of "mandatory"',
            id="invalid-annotation",
        ),
        pytest.param(
            tree(a=POINT, b=POINT, c=OPTIONAL),
            "errors in injection points: "
            'duplicate injection conditionType "config.injection.Site.here" (a.yaml and b.yaml), '
            'duplicate injection conditionType "config.injection.Site.here" (b.yaml and c.yaml)',
            id="one-type-three-times",
        ),
        pytest.param(
            tree(a=POINT, b=POINT.replace(SITE, "other.example/v9"), c=resource("Site", "x", "", {}, **{
                "kpt.dev/config-injection": "yes"
            })),
            "errors in injection points: "
            'c.yaml: Site/x has invalid "kpt.dev/config-injection" annotation value of "yes", '
            'duplicate injection conditionType "config.injection.Site.here" (a.yaml and b.yaml)',
            id="all-at-once",
        ),
    ],
)  # fmt: skip
def test_errors_block_the_package(files: FileTree, error: str) -> None:
    result = inject_config(files, BER, "default", view(SITE_BER))

    assert [finding.message for finding in result.findings] == [error]
    assert result.files == files


def test_a_file_that_is_no_yaml_blocks_the_package() -> None:
    files = tree(site=POINT, z="a: [1\n")
    (finding,) = inject_config(files, BER, "default", view(SITE_BER)).findings

    assert finding.message.startswith("z.yaml: ")


def test_a_kptfile_that_is_none_blocks_the_package() -> None:
    result = inject_config(with_kptfile(tree(a=POINT), "kind: Kptfile\n"), BER, "default", view(SITE_BER))

    assert [finding.location.file for finding in result.findings] == ["Kptfile"]


def test_what_is_no_resource_is_passed_over() -> None:
    files = tree(values="a: 1\n", list="- 1\n", text="just text\n")

    assert find_injection_points(files).points == ()
    assert injected(files, BER, SITE_BER).files == files


def test_a_context_object_that_appears_later_is_injected() -> None:
    before = injected(tree(site=POINT), BER)
    after = injected(before.files, BER, SITE_BER)

    assert data_of(after.files, "site.yaml")["spec"] == {"cidr": "198.51.100.0/25"}
    assert conditions(after)[0]["status"] == "True"


STALE = {
    "type": "config.injection.Site.here",
    "status": "False",
    "reason": "StaleInjection",
    "message": f"{NO_MATCH}; still carries ber",
}


def test_a_point_that_loses_its_source_keeps_what_it_had_and_is_stale() -> None:
    before = injected(tree(site=POINT), BER, SITE_BER)
    after = injected(before.files, BER, SITE_NYC)

    assert data_of(after.files, "site.yaml") == data_of(before.files, "site.yaml")
    assert conditions(after) == [STALE]


def test_a_fresh_copy_takes_stale_content_from_the_earlier_output() -> None:
    fresh = tree(site=POINT)
    before = injected(fresh, BER, SITE_BER)
    after = injected(fresh, BER, SITE_NYC, earlier=before.files)

    assert after.files["site.yaml"] == before.files["site.yaml"]
    assert conditions(after) == [STALE]
    assert after.injections == ()


@pytest.mark.parametrize("annotation", ["kpt.dev/injected-resource-name", "kpt.dev/injected-resource"])
def test_either_annotation_tells_that_a_point_was_injected(annotation: str) -> None:
    point = resource("Site", "here", "optional", {}, **{annotation: "old"})
    result = injected(tree(site=point), BER, SITE_NYC)

    assert conditions(result)[0]["message"] == f"{NO_MATCH}; still carries old"


FOREIGN = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: p
info:
  readinessGates:
  - conditionType: zeta # asked for by the auditors
  - conditionType: config.injection.Site.gone
  - conditionType: alpha
status:
  conditions:
  - type: zeta
    status: "True"
    reason: Because
  - type: config.injection.Site.gone
    status: "False"
    reason: NoResourceSelected
  - type: alpha
    status: Unknown
"""


def test_foreign_conditions_and_gates_stay_and_all_are_sorted() -> None:
    result = injected(with_kptfile(tree(site=POINT), FOREIGN), BER, SITE_BER)

    assert [condition["type"] for condition in conditions(result)] == ["alpha", "config.injection.Site.here", "zeta"]
    assert conditions(result)[2] == {"type": "zeta", "status": "True", "reason": "Because"}
    assert gates(result) == ["alpha", "config.injection.Site.here", "zeta"]
    assert b"# asked for by the auditors" in result.files["Kptfile"].data


def test_a_point_that_upstream_removed_leaves_neither_gate_nor_condition() -> None:
    result = injected(with_kptfile(tree(), FOREIGN), BER, SITE_BER)

    assert [condition["type"] for condition in conditions(result)] == ["alpha", "zeta"]
    assert gates(result) == ["alpha", "zeta"]


def test_a_kptfile_with_nothing_to_change_keeps_its_bytes() -> None:
    unsorted = FOREIGN.replace("  - conditionType: config.injection.Site.gone\n", "").replace(
        '  - type: config.injection.Site.gone\n    status: "False"\n    reason: NoResourceSelected\n', ""
    )
    files = with_kptfile(tree(), unsorted)

    assert injected(files, BER, SITE_BER).files == files


def test_a_point_that_became_optional_keeps_its_gate_with_a_warning() -> None:
    before = injected(tree(site=POINT), BER, SITE_BER)
    files = before.files.with_files({"site.yaml": OPTIONAL.encode()})
    result = inject_config(files, BER, "default", view(SITE_BER))

    assert gates(result) == ["config.injection.Site.here"]
    assert [(finding.code, finding.severity) for finding in result.findings] == [("InjectionGateKept", "warning")]


def as_optional(files: FileTree) -> FileTree:
    return tree(site=OPTIONAL.replace("cidr: none", "cidr: other")).with_files({"mark.txt": files.id.encode()})


def test_a_gate_of_the_last_output_stays_when_its_point_becomes_optional() -> None:
    last = injected(tree(site=POINT), BER, SITE_BER).files
    earlier = PreviousRender(last, tree(site=POINT), last)

    result = inject_config(as_optional(last), BER, "default", view(SITE_BER), earlier)

    assert gates(result) == ["config.injection.Site.here"]
    assert [(finding.code, finding.severity) for finding in result.findings] == [("InjectionGateKept", "warning")]


def test_a_gate_that_a_person_removed_from_the_branch_stays_removed() -> None:
    last = injected(tree(site=POINT), BER, SITE_BER).files
    without_gate = last.with_files({"Kptfile": tree()["Kptfile"].data})

    result = inject_config(
        as_optional(last), BER, "default", view(SITE_BER), PreviousRender(last, tree(site=POINT), without_gate)
    )

    assert (gates(result), result.findings) == ([], ())


def test_a_gate_goes_with_its_point() -> None:
    last = injected(tree(site=POINT), BER, SITE_BER).files

    result = inject_config(tree(), BER, "default", view(SITE_BER), PreviousRender(last, tree(site=POINT), last))

    assert (gates(result), result.findings) == ([], ())


def test_every_question_is_in_the_trace() -> None:
    catalog_view = view(SITE_NYC)
    inject_config(tree(site=POINT), [Injector("ber"), Injector("nyc"), Injector("lab")], "default", catalog_view)

    assert set(catalog_view.trace) == {
        f"type {SITE} Site default",
        f"object {SITE} Site default ber",
        f"object {SITE} Site default nyc",
    }


def test_comments_around_an_injected_field_stay() -> None:
    text = (
        "# the site of this cluster\n"
        f"apiVersion: {SITE}\n"
        "kind: Site\n"
        "metadata:\n"
        "  name: here # known by this name to the functions\n"
        "  annotations:\n"
        "    kpt.dev/config-injection: optional\n"
        "spec:\n"
        "  cidr: none\n"
    )
    result = injected(tree(site=text), BER, SITE_BER)

    content = result.files["site.yaml"].data.decode()
    assert content.startswith("# the site of this cluster\n")
    assert "name: here # known by this name to the functions\n" in content
    assert "  cidr: 198.51.100.0/25\n" in content


def test_executable_files_stay_executable() -> None:
    files = tree().with_files({"site.yaml": File(POINT.encode(), executable=True)})

    assert injected(files, BER, SITE_BER).files["site.yaml"].executable


def mapping_keys(value: Mapping[str, Any]) -> list[str]:
    return list(value)


def test_a_point_without_the_field_gets_it() -> None:
    data = data_of(tree(site=POINT), "site.yaml")
    bare = emit({key: value for key, value in data.items() if key != "spec"})
    result = injected(tree(site=bare), BER, SITE_BER)

    assert mapping_keys(data_of(result.files, "site.yaml")) == ["apiVersion", "kind", "metadata", "spec"]


def test_what_the_package_hides_has_no_points() -> None:
    files = tree(a=POINT, templates_b="x: {{ .Values.x }}\n", templates_c=POINT)
    ignoring = files.with_files({".krmignore": b"templates/\n"})

    assert find_injection_points(files).error
    assert [injection_point.file for injection_point in find_injection_points(ignoring).points] == ["a.yaml"]
