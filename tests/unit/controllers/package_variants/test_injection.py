"""Tests of config injection: injection points receive the data or spec of context objects, with conditions and
readiness gates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconciler.api.porch.package_variant import Injector
from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.package_variants.injection import find_injection_points, inject_config
from reconciler.controllers.results import MutationResult, PreviousRender
from reconciler.krm.yaml import emit, parse_yaml

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n"
SITE = "net.example/v1"
NO_MATCH = "no resource matched any injection selector for this injection point"


def build_tree(**files: str) -> FileTree:
    """Return a file tree from names, with `_` for `/`. A Kptfile is added unless given."""
    named = {name.replace("_", "/") + ("" if "." in name else ".yaml"): text for name, text in files.items()}
    return FileTree({path: File(text.encode()) for path, text in {"Kptfile": KPTFILE, **named}.items()})


def replace_kptfile(files: FileTree, text: str) -> FileTree:
    return files.with_files({"Kptfile": text.encode()})


def build_resource(
    kind: str, name: str, expected: str | None, content: Any, api_version: str = SITE, **annotations: str
) -> str:
    marks = {"kpt.dev/config-injection": expected, **annotations} if expected else annotations
    metadata = {"name": name, **({"annotations": marks} if marks else {})}
    field = "data" if kind == "ConfigMap" else "spec"
    return emit({"apiVersion": api_version, "kind": kind, "metadata": metadata, field: content})


def build_config_map(name: str, expected: str | None, **data: str) -> str:
    return build_resource("ConfigMap", name, expected, data, "v1")


def build_view(*objects: str) -> CatalogView:
    return CatalogView(
        DependencyReader(read_catalog(FileTree({f"o{i}.yaml": File(text.encode()) for i, text in enumerate(objects)})))
    )


SITE_BER = build_resource("Site", "ber", None, {"cidr": "198.51.100.0/25"})
SITE_NYC = build_resource("Site", "nyc", None, {"cidr": "203.0.113.0/24"})
POINT = build_resource("Site", "here", "required", {"cidr": "none", "placeholder": True})
OPTIONAL = build_resource("Site", "here", "optional", {"cidr": "none"})
BER = [Injector(name="ber")]


def read_data(files: FileTree, path: str, index: int = 0) -> Any:
    return parse_yaml(files[path].data).documents[index].data


def inject(
    files: FileTree, injectors: Sequence[Injector], *objects: str, earlier: FileTree | None = None
) -> MutationResult:
    """Inject, and check that it succeeds and that a second injection changes nothing."""
    last = PreviousRender(earlier, earlier) if earlier is not None else None
    result = inject_config(files, injectors, "default", build_view(*objects), last)
    assert [finding.code for finding in result.findings if finding.code != "InjectionMissing"] == []
    assert inject_config(result.files, injectors, "default", build_view(*objects), last).files == result.files
    return result


def read_conditions(result: MutationResult) -> list[dict[str, str]]:
    value: list[dict[str, str]] = (read_data(result.files, "Kptfile").get("status") or {}).get("conditions") or []
    return value


def read_gates(result: MutationResult) -> list[str]:
    info = read_data(result.files, "Kptfile").get("info") or {}
    return [gate["conditionType"] for gate in info.get("readinessGates") or []]


def test_whole_spec_is_replaced() -> None:
    result = inject(build_tree(site=POINT), BER, SITE_BER)
    data = read_data(result.files, "site.yaml")

    assert data["spec"] == {"cidr": "198.51.100.0/25"}
    assert data["metadata"]["name"] == "here"
    assert data["metadata"]["annotations"] == {
        "kpt.dev/config-injection": "required",
        "kpt.dev/injected-resource-name": "ber",
        "kpt.dev/injected-resource": "ber",
    }
    assert read_conditions(result) == [
        {
            "type": "config.injection.Site.here",
            "status": "True",
            "reason": "ConfigInjected",
            "message": 'injected resource "ber" from cluster',
        }
    ]
    assert read_gates(result) == ["config.injection.Site.here"]
    assert [
        (config_injection.point, config_injection.file, config_injection.kind, config_injection.name)
        for config_injection in result.injections
    ] == [("config.injection.Site.here", "site.yaml", "Site", "ber")]


def test_whole_data_of_a_config_map_is_replaced() -> None:
    point = build_config_map("tuning", "optional", mtu="1500", queue="fair")
    result = inject(build_tree(tuning=point), [Injector(name="jumbo")], build_config_map("jumbo", None, mtu="9000"))

    assert read_data(result.files, "tuning.yaml")["data"] == {"mtu": "9000"}
    assert read_gates(result) == []


def test_config_map_kind_of_another_group_has_a_spec() -> None:
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
    result = inject(build_tree(a=point), [Injector(name="b")], source)

    assert read_data(result.files, "a.yaml")["data"] == {"stays": "here"}
    assert read_data(result.files, "a.yaml")["spec"] == {"x": 1}


def test_points_are_found_in_one_file_in_several_files_and_in_json() -> None:
    both = POINT + "---\n" + build_config_map("tuning", "optional", mtu="1500")
    in_json = json.dumps(
        read_data(build_tree(site=build_resource("Site", "there", "optional", {})), "site.yaml"), indent=2
    )
    files = build_tree(a_both=both).with_files({"b/there.json": in_json.encode()})
    result = inject(files, [Injector(name="ber")], SITE_BER, build_config_map("ber", None, mtu="9000"))

    assert read_data(result.files, "a/both.yaml")["spec"] == {"cidr": "198.51.100.0/25"}
    assert read_data(result.files, "a/both.yaml", 1)["data"] == {"mtu": "9000"}
    assert json.loads(result.files["b/there.json"].data)["spec"] == {"cidr": "198.51.100.0/25"}
    assert [condition["type"] for condition in read_conditions(result)] == [
        "config.injection.ConfigMap.tuning",
        "config.injection.Site.here",
        "config.injection.Site.there",
    ]


@pytest.mark.parametrize(
    ("injectors", "objects", "name"),
    [
        pytest.param(
            [Injector(name="nyc"), Injector(name="ber")], [SITE_BER, SITE_NYC], "nyc", id="the-first-that-finds-wins"
        ),
        pytest.param(
            [Injector(name="none"), Injector(name="ber")],
            [SITE_BER],
            "ber",
            id="an-injector-without-a-match-is-skipped",
        ),
        pytest.param(
            [Injector(name="nyc", kind="Town"), Injector(name="ber", kind="Site")],
            [SITE_BER, SITE_NYC],
            "ber",
            id="kind",
        ),
        pytest.param(
            [Injector(name="nyc", version="v2"), Injector(name="ber")], [SITE_BER, SITE_NYC], "ber", id="version"
        ),
        pytest.param(
            [Injector(name="nyc", group=""), Injector(name="ber", group="net.example")],
            [SITE_BER, SITE_NYC],
            "ber",
            id="group",
        ),
    ],
)
def test_first_matching_injector_is_used(injectors: list[Injector], objects: list[str], name: str) -> None:
    (config_injection,) = inject(build_tree(site=POINT), injectors, *objects).injections

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
        pytest.param([Injector(name="ber", group="")], [SITE_BER], NO_MATCH, id="core-group-only"),
        pytest.param(
            [Injector(name="ber"), Injector(name="nyc")],
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
def test_point_without_source_keeps_its_content_and_reports_the_reason(
    injectors: list[Injector], objects: list[str], message: str
) -> None:
    files = build_tree(site=POINT)
    result = inject(files, injectors, *objects)

    assert result.files["site.yaml"] == files["site.yaml"]
    assert result.injections == ()
    assert read_conditions(result) == [
        {"type": "config.injection.Site.here", "status": "False", "reason": "NoResourceSelected", "message": message}
    ]
    assert read_gates(result) == ["config.injection.Site.here"]


@pytest.mark.parametrize(
    ("expected", "earlier", "codes"),
    [
        pytest.param("required", False, [("InjectionMissing", "warning")], id="required-and-never-injected"),
        pytest.param("required", True, [("InjectionMissing", "warning")], id="required-and-its-object-is-gone"),
        pytest.param("optional", False, [], id="optional"),
    ],
)
def test_required_point_without_source_is_a_warning_that_names_the_gate(
    expected: str, earlier: bool, codes: list[tuple[str, str]]
) -> None:
    files = build_tree(site=build_resource("Site", "here", expected, {"cidr": "none"}))
    before = inject_config(files, BER, "default", build_view(SITE_BER)).files if earlier else None
    result = inject_config(
        files, BER, "default", build_view(SITE_NYC), PreviousRender(before, files) if before else None
    )

    assert [(item.code, item.severity) for item in result.findings] == codes
    for finding in result.findings:
        assert "Site here" in finding.message
        assert 'until the readiness gate "config.injection.Site.here" is met' in finding.message
        assert finding.location.file == "site.yaml"


def test_optional_point_without_source_has_no_gate() -> None:
    assert read_gates(inject(build_tree(site=OPTIONAL), BER)) == []


@pytest.mark.parametrize(
    ("files", "error"),
    [
        pytest.param(
            build_tree(site=build_resource("Site", "here", "mandatory", {})),
            "errors in injection points: "
            'site.yaml: Site/here has invalid "kpt.dev/config-injection" annotation value of "mandatory"',
            id="invalid-annotation",
        ),
        pytest.param(
            build_tree(a=POINT, b=POINT, c=OPTIONAL),
            "errors in injection points: "
            'duplicate injection conditionType "config.injection.Site.here" (a.yaml and b.yaml), '
            'duplicate injection conditionType "config.injection.Site.here" (b.yaml and c.yaml)',
            id="one-type-three-times",
        ),
        pytest.param(
            build_tree(a=POINT, b=POINT.replace(SITE, "other.example/v9"), c=build_resource("Site", "x", "", {}, **{
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
    result = inject_config(files, BER, "default", build_view(SITE_BER))

    assert [finding.message for finding in result.findings] == [error]
    assert result.files == files


def test_invalid_yaml_file_blocks_the_package() -> None:
    files = build_tree(site=POINT, z="a: [1\n")
    (finding,) = inject_config(files, BER, "default", build_view(SITE_BER)).findings

    assert finding.message.startswith("z.yaml: ")


def test_invalid_kptfile_blocks_the_package() -> None:
    result = inject_config(
        replace_kptfile(build_tree(a=POINT), "kind: Kptfile\n"), BER, "default", build_view(SITE_BER)
    )

    assert [finding.location.file for finding in result.findings] == ["Kptfile"]


def test_file_without_resource_is_skipped() -> None:
    files = build_tree(values="a: 1\n", list="- 1\n", text="just text\n")

    assert find_injection_points(files).points == ()
    assert inject(files, BER, SITE_BER).files == files


def test_context_object_that_is_created_later_is_injected() -> None:
    before = inject(build_tree(site=POINT), BER)
    after = inject(before.files, BER, SITE_BER)

    assert read_data(after.files, "site.yaml")["spec"] == {"cidr": "198.51.100.0/25"}
    assert read_conditions(after)[0]["status"] == "True"


STALE = {
    "type": "config.injection.Site.here",
    "status": "False",
    "reason": "StaleInjection",
    "message": f"{NO_MATCH}; still carries ber",
}


def test_point_whose_source_is_deleted_keeps_its_content_and_is_stale() -> None:
    before = inject(build_tree(site=POINT), BER, SITE_BER)
    after = inject(before.files, BER, SITE_NYC)

    assert read_data(after.files, "site.yaml") == read_data(before.files, "site.yaml")
    assert read_conditions(after) == [STALE]


def test_new_copy_takes_stale_content_from_the_previous_render() -> None:
    fresh = build_tree(site=POINT)
    before = inject(fresh, BER, SITE_BER)
    after = inject(fresh, BER, SITE_NYC, earlier=before.files)

    assert after.files["site.yaml"] == before.files["site.yaml"]
    assert read_conditions(after) == [STALE]
    assert after.injections == ()


@pytest.mark.parametrize("annotation", ["kpt.dev/injected-resource-name", "kpt.dev/injected-resource"])
def test_each_annotation_marks_a_point_as_injected(annotation: str) -> None:
    point = build_resource("Site", "here", "optional", {}, **{annotation: "old"})
    result = inject(build_tree(site=point), BER, SITE_NYC)

    assert read_conditions(result)[0]["message"] == f"{NO_MATCH}; still carries old"


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
    result = inject(replace_kptfile(build_tree(site=POINT), FOREIGN), BER, SITE_BER)

    assert [condition["type"] for condition in read_conditions(result)] == [
        "alpha",
        "config.injection.Site.here",
        "zeta",
    ]
    assert read_conditions(result)[2] == {"type": "zeta", "status": "True", "reason": "Because"}
    assert read_gates(result) == ["alpha", "config.injection.Site.here", "zeta"]
    assert b"# asked for by the auditors" in result.files["Kptfile"].data


def test_point_that_upstream_removes_leaves_neither_gate_nor_condition() -> None:
    result = inject(replace_kptfile(build_tree(), FOREIGN), BER, SITE_BER)

    assert [condition["type"] for condition in read_conditions(result)] == ["alpha", "zeta"]
    assert read_gates(result) == ["alpha", "zeta"]


def test_kptfile_without_changes_keeps_its_bytes() -> None:
    unsorted = FOREIGN.replace("  - conditionType: config.injection.Site.gone\n", "").replace(
        '  - type: config.injection.Site.gone\n    status: "False"\n    reason: NoResourceSelected\n', ""
    )
    files = replace_kptfile(build_tree(), unsorted)

    assert inject(files, BER, SITE_BER).files == files


def test_point_that_becomes_optional_keeps_its_gate_with_a_warning() -> None:
    before = inject(build_tree(site=POINT), BER, SITE_BER)
    files = before.files.with_files({"site.yaml": OPTIONAL.encode()})
    result = inject_config(files, BER, "default", build_view(SITE_BER))

    assert read_gates(result) == ["config.injection.Site.here"]
    assert [(finding.code, finding.severity) for finding in result.findings] == [("InjectionGateKept", "warning")]


def make_point_optional(files: FileTree) -> FileTree:
    return build_tree(site=OPTIONAL.replace("cidr: none", "cidr: other")).with_files({"mark.txt": files.id.encode()})


def test_gate_of_the_previous_render_stays_when_its_point_becomes_optional() -> None:
    last = inject(build_tree(site=POINT), BER, SITE_BER).files
    earlier = PreviousRender(last, build_tree(site=POINT), last)

    result = inject_config(make_point_optional(last), BER, "default", build_view(SITE_BER), earlier)

    assert read_gates(result) == ["config.injection.Site.here"]
    assert [(finding.code, finding.severity) for finding in result.findings] == [("InjectionGateKept", "warning")]


def test_gate_that_a_person_removes_from_the_branch_stays_removed() -> None:
    last = inject(build_tree(site=POINT), BER, SITE_BER).files
    without_gate = last.with_files({"Kptfile": build_tree()["Kptfile"].data})

    result = inject_config(
        make_point_optional(last),
        BER,
        "default",
        build_view(SITE_BER),
        PreviousRender(last, build_tree(site=POINT), without_gate),
    )

    assert (read_gates(result), result.findings) == ([], ())


def test_gate_is_removed_with_its_point() -> None:
    last = inject(build_tree(site=POINT), BER, SITE_BER).files

    result = inject_config(
        build_tree(), BER, "default", build_view(SITE_BER), PreviousRender(last, build_tree(site=POINT), last)
    )

    assert (read_gates(result), result.findings) == ([], ())


def test_each_lookup_is_in_the_trace() -> None:
    catalog_view = build_view(SITE_NYC)
    inject_config(
        build_tree(site=POINT),
        [Injector(name="ber"), Injector(name="nyc"), Injector(name="lab")],
        "default",
        catalog_view,
    )

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
    result = inject(build_tree(site=text), BER, SITE_BER)

    content = result.files["site.yaml"].data.decode()
    assert content.startswith("# the site of this cluster\n")
    assert "name: here # known by this name to the functions\n" in content
    assert "  cidr: 198.51.100.0/25\n" in content


def test_executable_files_stay_executable() -> None:
    files = build_tree().with_files({"site.yaml": File(POINT.encode(), executable=True)})

    assert inject(files, BER, SITE_BER).files["site.yaml"].executable


def list_keys(value: Mapping[str, Any]) -> list[str]:
    return list(value)


def test_field_is_added_to_a_point_without_it() -> None:
    data = read_data(build_tree(site=POINT), "site.yaml")
    bare = emit({key: value for key, value in data.items() if key != "spec"})
    result = inject(build_tree(site=bare), BER, SITE_BER)

    assert list_keys(read_data(result.files, "site.yaml")) == ["apiVersion", "kind", "metadata", "spec"]


def test_ignored_file_has_no_injection_points() -> None:
    files = build_tree(a=POINT, templates_b="x: {{ .Values.x }}\n", templates_c=POINT)
    ignoring = files.with_files({".krmignore": b"templates/\n"})

    assert find_injection_points(files).error
    assert [injection_point.file for injection_point in find_injection_points(ignoring).points] == ["a.yaml"]
