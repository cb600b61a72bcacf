"""Invariants of placements for any resources and policies, and for published packages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.placement.resources import build_resource_file, has_placement
from reconciler.controllers.results import ControllerResult
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from tests.support.examples import examples
from tests.unit.controllers.placement.controller_world import (
    CLUSTER_POLICY_LABEL,
    CLUSTERS,
    FLEET,
    POLICY_LABEL,
    UNREADABLE,
    FakeBranches,
    build_catalog,
    build_config_map,
    build_policy,
    read_files,
    run_controller,
)

DATA = Path(__file__).resolve().parents[2] / "../shared/data/packages"
FOLDERS = sorted({path.parent for path in DATA.rglob("Kptfile")})
ROUNDS = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = st.sampled_from(["a", "b", "system:c"])
NAMESPACES = st.sampled_from(["ferry", "harbour", ""])
KINDS = st.sampled_from(["v1 Service", "serving.knative.dev/v1 Service", "v1 Namespace", "my.dev/v1 Widget"])
CLUSTER_LISTS = st.sampled_from(["east", "'west, north'", "'*'", "moon", "''", "'east,'"])
POLICIES = st.sampled_from(["p", "q", "gone", "''"])
HEADS = st.sampled_from(["", "# head\n", "\n# head\n\n", "--- # beside\n"])
TAILS = st.sampled_from(["", "# tail\n", "\n\n", "more: |+\n  text\n\n\n", "more: &x {a: 1}\nagain: *x\n"])
SPECS = st.sampled_from(["{}", "{clusterSelector: {tier: edge}}", "{placement: [{cluster: west}]}", "{placement: 5}"])


@st.composite
def resources(draw: st.DrawFn) -> str:
    """Return a resource with any marks. There are few names, so that some identities and file names are equal."""
    labels = {label: draw(POLICIES) for label in (POLICY_LABEL, CLUSTER_POLICY_LABEL) if draw(st.booleans())}
    clusters = draw(st.none() | CLUSTER_LISTS)
    text = build_config_map(draw(NAMES), draw(NAMESPACES), labels=labels, clusters=clusters, kind=draw(KINDS))
    return draw(HEADS) + text + draw(TAILS)


@st.composite
def policies(draw: st.DrawFn) -> str:
    name, spec = draw(st.sampled_from("pq")), draw(SPECS)
    if draw(st.booleans()):
        return build_policy(spec, name, "", kind="ClusterPropagationPolicy")
    return build_policy(spec, name, draw(st.sampled_from(["ferry", "harbour"])))


DOCUMENTS = st.lists(resources() | policies(), max_size=6)


def in_files(documents: list[str], per_file: int) -> dict[str, str]:
    """Return documents in files of these lengths."""
    groups = [documents[start : start + per_file] for start in range(0, len(documents), per_file)]
    return {f"{number}.yaml": "---\n".join(group) for number, group in enumerate(groups)}


def outcome(result: ControllerResult) -> object:
    packages = [(variant.target, variant.adoption, read_files(variant).id) for variant in result.variants]
    counter = Counter((finding.code, finding.location.object, finding.location.pointer) for finding in result.findings)
    return packages, counter, result.statuses, result.kept_owners, result.guards


def placed_objects(result: ControllerResult) -> set[tuple[str, ObjectKey]]:
    """Return the location of each resource, as in the files."""
    return {
        (variant.target.repository, key)
        for variant in result.variants
        for key in read_catalog(read_files(variant)).objects
    }


@ROUNDS
@given(documents=DOCUMENTS, later=DOCUMENTS, data=st.data(), per_file=st.integers(1, 3))
def test_the_order_of_documents_and_files_does_not_matter(
    documents: list[str], later: list[str], data: st.DataObject, per_file: int
) -> None:
    branches = FakeBranches.of(run_controller(in_files(documents, 1)))
    shuffled = data.draw(st.permutations(later))

    assert outcome(run_controller(in_files(shuffled, per_file), branches)) == outcome(
        run_controller(in_files(later, 1), branches)
    )


@ROUNDS
@given(documents=DOCUMENTS, per_file=st.integers(1, 3))
def test_every_file_is_one_document_of_the_config(documents: list[str], per_file: int) -> None:
    files = in_files(documents, per_file)
    sources = build_catalog(files).objects

    for variant in run_controller(files).variants:
        for file in read_files(variant).values():
            (document,) = parse_yaml(file.data).documents
            source = next(
                config_object for config_object in sources.values() if is_equal_data(config_object.data, document.data)
            )
            assert file.data.decode().removesuffix("\n") in files[source.file]
            assert not file.data.decode().startswith("---")


ACCIDENTS = ["unreadable", "twice", "invalid"]


def spoiled(documents: list[str], how: str, number: int) -> dict[str, str]:
    """Return the documents after an accident that requests no deletion of a resource."""
    before, text, after = documents[:number], documents[number], documents[number + 1 :]
    match how:
        case "unreadable":
            return {**in_files(before + after, 1), "broken.yaml": UNREADABLE}
        case "twice":
            return {**in_files(documents, 1), "again.yaml": text}
        case _:
            text = re.sub("(?m)^spec: .*", "spec: {oops: 1}", re.sub(f"({CLUSTERS}: )[^}}]*", r"\1''", text))
            return in_files([*before, text, *after], 1)


@ROUNDS
@given(documents=DOCUMENTS.filter(bool), how=st.sampled_from(ACCIDENTS), data=st.data())
def test_nothing_vanishes_by_accident(documents: list[str], how: str, data: st.DataObject) -> None:
    """Documents that are unreadable, duplicate or invalid delete no resource from a cluster."""
    number = data.draw(st.integers(0, len(documents) - 1))
    before = run_controller(in_files(documents, 1))

    after = run_controller(spoiled(documents, how, number), FakeBranches.of(before))

    assert placed_objects(before) <= placed_objects(after)


@ROUNDS
@given(documents=DOCUMENTS, how=st.sampled_from(["unreadable", "twice"]), file=st.sampled_from(sorted(FLEET)))
def test_nothing_is_deleted_when_cluster_definitions_vanish(documents: list[str], how: str, file: str) -> None:
    """A package of an unknown cluster cannot be rendered. All packages of its owner stay unchanged."""
    files = in_files(documents, 1)
    before = run_controller(files)
    second_result = f"{FLEET[file]}---\n{FLEET[file]}" if how == "twice" else UNREADABLE

    after = run_controller(files, FakeBranches.of(before), {**FLEET, file: second_result})

    assert {variant.owner.key for variant in before.variants if variant.target.repository in file} <= after.kept_owners
    assert {(name, key) for name, key in placed_objects(before) if name not in file} <= placed_objects(after)


@ROUNDS
@given(documents=DOCUMENTS)
def test_what_is_published_stands_as_it_is(documents: list[str]) -> None:
    files = in_files(documents, 1)
    once = run_controller(files)

    controller_result = run_controller(files, FakeBranches.of(once))

    assert [(variant.target, read_files(variant)) for variant in controller_result.variants] == [
        (variant.target, read_files(variant)) for variant in once.variants
    ]


def real_catalog(folder: Path) -> tuple[Catalog, Mapping[str, bytes]]:
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return read_catalog(FileTree({path: File(data) for path, data in files.items()})), files


@pytest.mark.skipif(not FOLDERS, reason="the packages of other projects are not available")
@pytest.mark.parametrize("folder", [pytest.param(path, id=path.relative_to(DATA).as_posix()) for path in FOLDERS])
def test_documents_of_others_keep_their_bytes(folder: Path) -> None:
    catalog, files = real_catalog(folder)

    for config_object in catalog.objects.values():
        assert not has_placement(config_object)
        file = build_resource_file(config_object)
        (document,) = parse_yaml(file.data).documents
        assert is_equal_data(document.data, config_object.data)
        assert build_resource_file(next(iter(read_catalog(FileTree({"a.yaml": file})).objects.values()))) == file
        if not config_object.file.endswith(".json"):
            assert file.data.rstrip(b"\n") in files[config_object.file]
