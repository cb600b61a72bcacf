"""Explanations are exact: each leads to the current value, and predictions without a layer are correct.

The test fleets are those of all golden cases of all controllers. A prediction in memory is compared with a fleet
whose config or upstream files no longer contain the layer.
"""

from __future__ import annotations

import copy
import io
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML, YAMLError

from reconciler.bootstrap.services import build_services
from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.results import UpstreamPackage
from reconciler.inspect.explain import PackageExplainer
from reconciler.output.explain.builder import explain
from reconciler.packages.package import Package
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.attribution.removable_layers import (
    ConfigField,
    FunctionCall,
    LocalEdit,
    RemovableLayer,
    SourceField,
)
from reconciler.planning.model.outcomes import PackageRender
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import TargetReference, UnknownTargetError
from reconciler.reconcile.services import PassServices
from reconciler.reconcile.snapshot import PassSnapshot, prepare_pass, take_snapshot
from reconciler.redaction import MASK
from tests.cases.case_world import Case, CaseWorld, find_cases, read_expected
from tests.support.git_repositories import commit_files, git, read_refs
from tests.support.world import World, catalog, config_map, package, repository, variant

# number of layers to remove from each case; by default one, and only in every third case
LAYERS = int(os.environ.get("RECONCILER_LAYERS", "1"))
CASES = find_cases() if "RECONCILER_LAYERS" in os.environ else find_cases()[::3]


@contextmanager
def beginning(world: CaseWorld) -> Iterator[tuple[PassSnapshot, Remotes, PassServices]]:
    """Yield the inputs of explanations."""
    config = str(world.folder / "config")
    parts = build_services(world.settings, config, should_treat_missing_as_empty=True, is_offline=True)
    with parts.remotes as remotes:
        yield take_snapshot(parts.source, remotes, parts.pass_services), remotes, parts.pass_services


@contextmanager
def explainers(world: CaseWorld) -> Iterator[list[PackageExplainer]]:
    """Yield the explainer of each desired package."""
    with beginning(world) as result:
        controller_result = prepare_pass(*result).controller_result
        places = sorted(
            {TargetReference(item.target.repository, item.target.package) for item in controller_result.variants},
            key=str,
        )
        yield [PackageExplainer(place, *result) for place in places]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("case", find_cases(), ids=lambda case: case.name)
def test_the_steps_of_each_value_lead_to_it(case: Case, tmp_path: Path) -> None:
    expected = read_expected(case)
    with explainers(CaseWorld(case, tmp_path)) as packages:
        for explainer in packages:
            known, folder = explainer.render(), f"{explainer.reference}/"
            if known.rendered:
                _check(known, known.rendered)
            files = {path.removeprefix(folder): data for path, data in expected.items() if path.startswith(folder)}
            if known.rendered and files:
                # the explanation renders the same files as a pass
                assert {path: file.data for path, file in known.rendered.files.items()} == files


def _check(known: ReRenderedPackage, rendered: PackageRender) -> None:
    mapping = {
        (value.file, value.resource, value.pointer): value
        for resource in _resources(known)
        for value in explain(known, resource).values
    }
    for resource in Package(rendered.files).resources:
        for pointer, value in _leaves(resource.data, ""):
            around = [pointer[:end] for end in range(len(pointer), 0, -1) if pointer[end:][:1] in ("", "/")]
            places = ((resource.file, resource.key.reference, entry) for entry in around)
            explained_value = next((mapping[place] for place in places if place in mapping), None)

            assert explained_value, f"no explanation of {resource.key} {pointer}"
            if explained_value.pointer == pointer:
                last = explained_value.steps[-1].after
                assert last in (value, MASK) or isinstance(last, str), (pointer, explained_value)
    # items that patches removed from a list are explained after its last item, one after the other
    for item in (value for value in mapping.values() if not value.pointer.endswith("/-")):
        for before, after in zip(item.steps, item.steps[1:], strict=False):
            assert before.after == after.before or MASK in (before.after, after.before), item


def _resources(known: ReRenderedPackage) -> list[str]:
    assert known.rendered
    return sorted({package_resource.key.reference for package_resource in Package(known.rendered.files).resources})


def _leaves(data: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    if not inside:
        yield pointer, data
    for key, value in inside:
        yield from _leaves(value, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_predictions_without_a_layer_are_correct(case: Case, tmp_path: Path) -> None:
    chance = random.Random(case.name)
    with explainers(CaseWorld(case, tmp_path / "as-it-is")) as packages:
        values = [(item, layer) for item in packages for layer in _layers(item)]
        for number, (explainer, layer) in enumerate(chance.sample(values, min(len(values), LAYERS))):
            world = CaseWorld(case, tmp_path / str(number))
            if _take_away(world, explainer, layer):
                assert _render_result(partial(explainer.render, layer)) == _in(world, explainer.reference), (
                    explainer.reference,
                    layer,
                )


def _layers(explainer: PackageExplainer) -> list[RemovableLayer]:
    """Return every layer of a package, each once."""
    known = explainer.render()
    values = [
        value for resource in (_resources(known) if known.rendered else ()) for value in explain(known, resource).values
    ]
    steps = (step for value in values for step in value.steps)
    layers = (
        layer
        for step in steps
        for layer in (
            step.removable_layer,
            *(expression_input.removable_layer for expression_input in step.expression_inputs),
        )
    )
    return [*{repr(layer): layer for layer in layers if layer}.values()]


def _take_away(world: CaseWorld, explainer: PackageExplainer, layer: RemovableLayer) -> bool:
    """Remove a layer from the files of a fleet. Return whether that was possible."""
    known = explainer.render()
    assert known.variant
    upstream = known.variant.upstream
    match layer:
        case ConfigField(key=key, path=path):
            return _change_config(world, known.objects[key], path)
        case SourceField(file=file, index=index, path=path) if upstream:
            return _change_upstream(world, upstream, file, index, path)
        case FunctionCall(package=package, mutator_index=number) if upstream and known.rendered:
            kptfile = f"{package}/Kptfile" if package else "Kptfile"
            value, came = (
                _documents(files[kptfile].data)[0].get("pipeline", {}).get("mutators", [])
                for files in (known.rendered.files, known.rendered.source.base)
            )
            # only the functions of the upstream remain in its list, after those of the variant
            path = ("pipeline", "mutators", came.index(value[number])) if value[number] in came else ()
            return bool(path) and _change_upstream(world, upstream, kptfile, 0, path)
    return False


def _change_config(world: CaseWorld, config_object: ConfigObject, path: Sequence[str | int]) -> bool:
    file = world.folder / "config" / config_object.file
    documents = _documents(file.read_bytes())
    number = next(number for number, item in enumerate(documents) if item == config_object.data)
    documents[number] = _without(documents[number], path)
    text = _text(documents)
    file.write_text(text or "")
    return text is not None


def _change_upstream(
    world: CaseWorld, upstream: UpstreamPackage, file: str, index: int, path: Sequence[str | int]
) -> bool:
    """Point the references to an upstream at a new commit without a field."""
    repository = Path(upstream.url.replace("/as-it-is/", f"/{world.folder.name}/"))
    place = f"{upstream.directory}/{file}".strip("/")
    documents = _documents((git(repository, "show", f"{upstream.commit}:{place}") + "\n").encode())
    documents[index] = _without(documents[index], path)
    refs = [ref for ref, commit in read_refs(repository).items() if commit == upstream.commit]
    text = _text(documents)
    for ref in refs if text is not None else ():
        commit_files(repository, ref, {place: text.encode() if text else None}, "without it")
    return bool(refs) and text is not None


def _documents(data: bytes) -> list[Any]:
    return list(_yaml().load_all(data))


def _without(data: Any, path: Sequence[str | int]) -> Any:
    if not path:
        return None
    data = copy.deepcopy(data)
    inside: Any = data
    for step in path[:-1]:
        inside = inside[step]
    del inside[path[-1]]
    return data


def _text(documents: Sequence[Any]) -> str | None:
    """Return documents as text, or None if the YAML library changes their content.

    It writes the comment of an empty list between its key and the brackets.
    """
    left, text = [document for document in documents if document is not None], io.StringIO()
    _yaml().dump_all(left, text)
    try:
        return text.getvalue() if _documents(text.getvalue().encode()) == left else None
    except YAMLError:
        return None


def _yaml() -> YAML:
    result = YAML()
    # "on" is a string only with quotes
    result.preserve_quotes = True
    return result


def _in(world: CaseWorld, place: TargetReference) -> Any:
    with beginning(world) as result:
        return _render_result(PackageExplainer(place, *result).render)


def _render_result(explained: Callable[[], ReRenderedPackage]) -> Any:
    """Return the resources of a package, or the reason why it is withheld."""
    try:
        known = explained()
    except UnknownTargetError:
        return "not wanted"
    if known.rendered is None:
        return known.blocked_reason.partition(":")[0] or [finding.code for finding in known.findings]
    resources = Package(known.rendered.files).resources
    return {
        (package_resource.file, package_resource.index): package_resource.data
        for package_resource in resources
        if package_resource.kind != "Kptfile"
    }


WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1 # kpt-set: ${count}
  template:
    spec:
      containers:
        - name: main
          image: web:1
          args: [a, b, c]
        - name: side
          image: side:1
"""
SETTERS = """\
pipeline:
  mutators:
    - image: gcr.io/kpt-fn/apply-setters:v0.2.0
      configMap: {count: "3"}
"""
MAPS = [config_map(name, a="b", c="d") for name in ("one", "two")]
EDITS = [
    ("web.yaml", "image: side:1", "image: side:2"),
    ("web.yaml", "  replicas: 3 # kpt-set: ${count}\n", ""),
    ("web.yaml", "[a, b, c]", "[b, c]"),
    ("web.yaml", "  template:\n", "  paused: {since: yesterday}\n  template:\n"),
    ("maps.yaml", "---\n" + config_map("two", a="b", c="d").replace("metadata:", "metadata: # kpt-merge: /two"), ""),
    ("maps.yaml", "name: one\ndata:\n  a: b\n", "name: one\ndata:\n  a: ours\n"),
    ("alone.yaml", config_map("alone", a="b").replace("metadata:", "metadata: # kpt-merge: /alone"), ""),
]
"""What a person does to a file, each by itself: the text there, and what comes to its place."""


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("branch", ["clusters/berlin", "drafts/berlin"])
def test_predictions_without_an_edit_are_correct(branch: str, tmp_path: Path) -> None:
    world = World.create(tmp_path)
    files = {"Kptfile": package("web")["Kptfile"] + SETTERS, "web.yaml": WEB, "maps.yaml": "---\n".join(MAPS)}
    world.release("web", "v1", {**files, "alone.yaml": config_map("alone", a="b")})
    world.write({"catalog.yaml": catalog(), "b.yaml": repository("berlin"), "web.yaml": variant("w", "berlin", "web")})
    world.sync()
    if branch.startswith("clusters"):
        world.merge("berlin", "squash")
        world.sync_until_unchanged()
    untouched = world.head(branch)

    texts = {file: world.text(branch, f"web/{file}") for file in sorted({file for file, _, _ in EDITS})}

    def edited(*edits: tuple[str, str, str]) -> None:
        world.set_ref(f"refs/heads/{branch}", untouched)
        left = dict(texts)
        for file, old, new in edits:
            assert old in left[file]
            left[file] = left[file].replace(old, new)
        world.commit(branch, {f"web/{file}": text or None for file, text in left.items()})

    edited(*EDITS)
    with explaining(world) as explainer:
        layers = [layer for layer in _layers(explainer) if isinstance(layer, LocalEdit)]
        layers += [layer for layer in _gone(explainer) if isinstance(layer, LocalEdit)]
        values = [
            _render_result(partial(explainer.render, layer))
            for layer in {repr(layer): layer for layer in layers}.values()
        ]
    for number in range(len(EDITS)):
        edited(*EDITS[:number], *EDITS[number + 1 :])
        with explaining(world) as explainer:
            assert _render_result(explainer.render) in values, EDITS[number]


def _gone(explainer: PackageExplainer) -> Iterator[RemovableLayer | None]:
    """Yield the layers of deleted values."""
    return (step.removable_layer for value in explain(explainer.render()).values for step in value.steps)


@contextmanager
def explaining(world: World) -> Iterator[PackageExplainer]:
    """Yield the explainer of the package of a small test fleet."""
    parts = build_services(world.read_settings(), world.source)
    with parts.remotes as remotes:
        yield PackageExplainer(
            TargetReference("berlin", "web"),
            take_snapshot(parts.source, remotes, parts.pass_services),
            remotes,
            parts.pass_services,
        )
