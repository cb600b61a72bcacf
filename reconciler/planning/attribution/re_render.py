"""Extra renders that explain a package. They have no effect on the decisions of a pass.

The functions of this module have these tasks:

- Find the version that introduced a change, with a binary search.
- Render a package without one layer, for example without one field of the config.
- Render a package again from the inputs that its status file records. Because anyone can edit a status file, its record
  is trusted only if the new render is equal to the recorded package.
- Decide about packages again even if no dependency changed, so that each package is rendered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import FileTree, TreeId
from reconciler.catalog.trace import Trace
from reconciler.controllers.nested_values import copy_with_value, copy_without_value, get_value
from reconciler.controllers.override_policies.rollout import RuleId
from reconciler.controllers.results import GeneratedSource, PreviousRender, UpstreamPackage, Variant
from reconciler.krm.findings import select_errors
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath, Document, YamlError, parse_yaml
from reconciler.krm.yaml.compare import align_items, is_equal_data
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.package import Package, parse_documents
from reconciler.packages.parsing import ParseFailure, edit_document, format_json, parse_cached
from reconciler.packages.update import MergeOptions, merge_packages
from reconciler.planning.attribution.provenance_trace import find_previous_path
from reconciler.planning.decide.package_decision import DecisionInput
from reconciler.planning.decide.target_inputs import (
    PlanningContext,
    PreparedTarget,
    TargetClaims,
    build_decision_input,
    resolve_claims,
)
from reconciler.planning.decide.target_plan import DecidedTarget, decide_requested_packages
from reconciler.planning.decide.template_packages import decide_packages
from reconciler.planning.model.cluster_overrides import PreviousOverrides
from reconciler.planning.model.outcomes import PackageOutcome, PackageRender
from reconciler.planning.model.sources import BranchPackage, PackageSource, RenderInputs
from reconciler.planning.observe.target_snapshot import TargetSnapshot
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.planning.render.templates import PackageTrees

# Each step of the binary search tries at most this number of versions, because some versions cannot be compared.
_MAX_CANDIDATES = 5


def find_change_point(old: int, new: int, is_new: Callable[[int], bool | None]) -> tuple[int, int]:
    """Return the last version before a change, and the first version after the change.

    Versions that cannot be compared can be between the two results. If there are several changes, the result describes
    one of the changes.

    Args:
        old: A version before the change. This version is not checked.
        new: A later version, after the change. This version is not checked.
        is_new: Returns whether a version contains the change, or None if the version cannot be compared.
    """
    while new - old > 1:
        candidates = _list_versions_around((old + new) // 2, old, new)
        checks = ((version, is_new(version)) for version in candidates)
        check = next((check for check in checks if check[1] is not None), None)
        if check is None:
            break
        old, new = (old, check[0]) if check[1] else (check[0], new)
    return old, new


def _list_versions_around(middle: int, old: int, new: int) -> Iterator[int]:
    offsets = (0, *(sign * offset for offset in range(1, _MAX_CANDIDATES) for sign in (-1, 1)))
    versions = (middle + offset for offset in offsets if old < middle + offset < new)
    yield from islice(versions, _MAX_CANDIDATES)


@dataclass(frozen=True)
class ConfigField:
    """A field of a config object. If the path is empty, the whole object."""

    key: ObjectKey
    path: DataPath


@dataclass(frozen=True)
class SourceField:
    """A field in a file of the package source without local changes.

    `index` is the index of the document in the file. An empty `path` selects the whole document.
    """

    file: str
    index: int
    path: DataPath


@dataclass(frozen=True, eq=False)
class LocalEdit:
    """A local change of one field of a resource.

    Attributes:
        file: The file of the resource.
        index: The index of the document in the file.
        path: The path of the field in `after`, or in `before` for a removed field.
        before: The resource before the change, or ABSENT for an added resource.
        after: The resource after the change, or ABSENT for a deleted resource.
        is_removed: Whether the change removes the field.
        origin: `branch`: the change is on the target branch. `draft`: the change is on the draft. `since`: the change
            was made after the last render.
    """

    file: str
    index: int
    path: DataPath
    before: Any = field(repr=False)
    after: Any = field(repr=False)
    is_removed: bool
    origin: Literal["branch", "draft", "since"]


@dataclass(frozen=True)
class FunctionCall:
    """A mutator function in a Kptfile.

    `package` is the path of the subpackage with this Kptfile, or "" for the root package.
    """

    package: str
    mutator_index: int


RenderSubject = SourceField | LocalEdit | FunctionCall
RemovableLayer = ConfigField | RenderSubject


def remove_from_config(files: FileTree, config_object: ConfigObject, path: DataPath) -> FileTree:
    """Remove a field of a config object from the config files. If `path` is empty, remove the whole object."""
    full_path = (*config_object.path, *path)
    data = copy_without_value(config_object.document.data, full_path) if full_path else ABSENT
    index = _find_document_index(files, config_object)
    return _replace_document(files, config_object.file, index, data)


def _find_document_index(files: FileTree, config_object: ConfigObject) -> int:
    documents = parse_documents(config_object.file, files[config_object.file].data)
    assert not isinstance(documents, ParseFailure), "the object was read from this file"
    lines = [document.line for document in documents]
    return lines.index(config_object.document.line)


def build_renderer_without_layer(renderer: PackageRenderer, layer: RenderSubject) -> PackageRenderer:
    """Return a renderer that renders packages without one layer."""
    match layer:
        case FunctionCall(package=package, mutator_index=mutator_index):
            return replace(renderer, engine=replace(renderer.engine, skipped_mutator=(package, mutator_index)))
        case _:
            return replace(renderer, adjust_source=lambda source, options: remove_from_source(source, layer, options))


def remove_from_source(source: PackageSource, layer: SourceField | LocalEdit, options: MergeOptions) -> PackageSource:
    """Remove one field, or undo one local change, in a package source. Other local changes are kept."""
    match layer:
        case SourceField(file=file, index=index, path=path):
            data = copy_without_value(_get_document_data(source.base, file, index), path) if path else ABSENT
            base = _replace_document(source.base, file, index, data)
            plain, files = (rebase_files(source.base, base, local, options) for local in (source.plain, source.files))
            return replace(source, base=base, plain=plain, files=files)
        case LocalEdit(origin="draft"):
            return replace(source, files=undo_edit(source.files, source.plain, layer))
        case LocalEdit():
            assert layer.origin == "branch", "a source does not contain changes after the render"
            plain = undo_edit(source.plain, source.base, layer)
            return replace(source, plain=plain, files=rebase_files(source.plain, plain, source.files, options))


def rebase_files(base: FileTree, new_base: FileTree, local: FileTree, options: MergeOptions) -> FileTree:
    """Apply the changes between `base` and `local` to `new_base`. In a conflict, the local change wins."""
    if local.id == base.id:
        return new_base
    return merge_packages(base, new_base, local, replace(options, rules=replace(options.rules, winner="local"))).files


def undo_edit(files: FileTree, previous_files: FileTree, layer: LocalEdit) -> FileTree:
    """Undo one local change.

    Args:
        files: The files with the change.
        previous_files: The files before the change.
        layer: The change.
    """
    if layer.after is ABSENT:
        return _restore_document(files, previous_files, layer)
    data = undo_change(layer.before, layer.after, layer.path, is_removed=layer.is_removed)
    # Use the comments from before the local change, because a removed comment, such as a setter, can configure a
    # function.
    resources = Package(previous_files).resources
    template = next((resource.document for resource in resources if is_equal_data(resource.data, layer.before)), None)
    return _replace_document(files, layer.file, layer.index, data, template)


def undo_change(before: Any, after: Any, path: DataPath, *, is_removed: bool = False) -> Any:
    """Undo the change of one value, and return the data.

    Args:
        before: The data before the change.
        after: The data after the change.
        path: The path of the value in `after`, or in `before` for a removed value.
        is_removed: Whether the change removed the value.
    """
    if is_removed:
        return _restore_value(before, after, path)
    previous = _get_previous_value(before, after, path)
    return _remove_added_value(after, before, path) if previous is ABSENT else copy_with_value(after, path, previous)


def _get_previous_value(before: Any, after: Any, path: DataPath) -> Any:
    previous_path = find_previous_path(before, after, path)
    return ABSENT if previous_path is None else get_value(before, previous_path)


def _remove_added_value(after: Any, before: Any, path: DataPath) -> Any:
    """Remove an added value, and also its parents that become empty and did not exist before."""
    data = copy_without_value(after, path)
    for end in range(len(path) - 1, 0, -1):
        parent, previous = get_value(data, path[:end]), _get_previous_value(before, after, path[:end])
        if parent or type(previous) is type(parent):
            break
        is_added = previous is ABSENT
        data = copy_without_value(data, path[:end]) if is_added else copy_with_value(data, path[:end], previous)
    return data


def _restore_value(before: Any, after: Any, path: DataPath) -> Any:
    """Restore a removed value at its previous position among the other values."""
    step: Any = path[0]
    if isinstance(after, dict):
        value = _restore_value(before[step], after[step], path[1:]) if path[1:] and step in after else before[step]
        return {**after, step: value}
    pairs = align_items(before, after)
    new_indexes = {old: new for old, new in pairs if old is not None and new is not None}
    if step in new_indexes:
        index = new_indexes[step]
        return copy_with_value(after, (index,), _restore_value(before[step], after[index], path[1:]))
    following = range(step + 1, len(before))
    position = next((new_indexes[old] for old in following if old in new_indexes), len(after))
    return [*after[:position], before[step], *after[position:]]


def _restore_document(files: FileTree, previous_files: FileTree, layer: LocalEdit) -> FileTree:
    """Restore a deleted document. If its file contains no other document, restore the whole previous file."""
    documents = parse_documents(layer.file, files[layer.file].data) if layer.file in files else ()
    if isinstance(documents, ParseFailure) or not documents or layer.file.endswith(".json"):
        return files.with_files({layer.file: previous_files[layer.file].data})
    source = parse_cached(files[layer.file].data)
    assert not isinstance(source, ParseFailure), "its documents were parsed above"
    order: list[tuple[int | None, Document]] = [*enumerate(source.documents)]
    order.insert(layer.index, (None, _get_document(previous_files, layer.file, layer.index)))
    return files.with_files({layer.file: source.with_documents(order).to_bytes()})


def _get_document(files: FileTree, file: str, index: int) -> Document:
    documents = parse_documents(file, files[file].data)
    assert not isinstance(documents, ParseFailure), "a resource was read from this file"
    return documents[index]


def _get_document_data(files: FileTree, file: str, index: int) -> Any:
    return _get_document(files, file, index).data


def _replace_document(files: FileTree, file: str, index: int, data: Any, template: Document | None = None) -> FileTree:
    """Replace the data of a document. If `data` is ABSENT, remove the document.

    The comments and the style come from `template`. If `template` is None, they come from the replaced document.
    """
    content = files[file].data
    if file.endswith(".json"):
        return files.without_files(file) if data is ABSENT else files.with_files({file: format_json(data, content)})
    source = parse_cached(content)
    assert not isinstance(source, ParseFailure), "a resource was read from this file"
    if data is not ABSENT:
        changed = source.replace(index, edit_document(template or source.documents[index], data))
    elif len(source.documents) > 1:
        changed = source.remove(index)
    else:
        return files.without_files(file)
    return files.with_files({file: changed.to_bytes()})


# For a plain folder, the status file contains this prefix and a tree ID instead of the config commit.
TREE_PREFIX = "tree:"
_ID = re.compile(r"[0-9a-f]{40}\Z")
_TREES = ("base", "merged", "rendered")
_UPSTREAM = ("repo", "directory", "ref", "commit", "tree")

RecordedRuleTexts = Mapping[RuleId, str]
"""Contents of the override rules that a render applied. A rule that did not apply to the cluster is missing."""


@dataclass(frozen=True)
class RecordedRender:
    """The inputs and the result of a render, read from the status file of the package.

    Attributes:
        owner: The owner in the form of the status file.
        base: The source tree without local changes.
        merged: The source tree with local changes.
        rendered: The tree of the rendered package.
        config: The commit of the config, or `tree:<id>` for a plain folder.
        digest: The digest of all dependencies of the render with their fingerprints.
        upstream: The upstream of the package, or {} for generated files.
        conditions: The status of each condition by condition type.
    """

    owner: Mapping[str, str]
    base: TreeId
    merged: TreeId
    rendered: TreeId
    config: str
    digest: str = ""
    upstream: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_edited(self) -> bool:
        """Whether the source contained local changes."""
        return self.merged != self.base


def parse_recorded_render(content: bytes) -> RecordedRender | str:
    """Read the recorded render from a status file. If a field is invalid, return a message about the field."""
    try:
        documents = parse_yaml(content).documents
    except YamlError as error:
        return f"line {error.line}: {error.message}"
    data = documents[0].data if documents else None
    status = _get_mapping(_get_mapping(data).get("status"))
    trees, inputs, upstream = (_get_mapping(status.get(name)) for name in ("trees", "inputs", "upstream"))
    upstream = _get_mapping(upstream.get("to"))
    message = next(_validate_record(status, trees, inputs, upstream), "")
    if message:
        return message
    base, merged, rendered = (TreeId(trees[name]) for name in _TREES)
    known = {name: upstream[name] for name in _UPSTREAM if name in upstream}
    owner, conditions = _get_mapping(status.get("owner")), _read_condition_statuses(status)
    digest = _get_text(inputs, "digest")
    return RecordedRender(owner, base, merged, rendered, inputs["config"], digest, known, conditions)


def _validate_record(
    status: Mapping[str, Any], trees: Mapping[str, Any], inputs: Mapping[str, Any], upstream: Mapping[str, Any]
) -> Iterator[str]:
    for name in _TREES:
        if not _is_id(trees.get(name)):
            yield f".status.trees.{name} must be the id of a tree, not {trees.get(name)!r}"
    config = inputs.get("config")
    if not isinstance(config, str) or not _is_id(config.removeprefix(TREE_PREFIX)):
        yield f".status.inputs.config must be the id of a commit, or {TREE_PREFIX}<id of a tree>, not {config!r}"
    owner = _get_mapping(status.get("owner"))
    if not owner or any(not isinstance(text, str) for text in owner.values()):
        yield f".status.owner must name the object that requests the package, not {status.get('owner')!r}"
    has_ids = _is_id(upstream.get("commit")) and _is_id(upstream.get("tree"))
    if upstream and not (has_ids and all(_get_text(upstream, name) for name in _UPSTREAM)):
        yield f".status.upstream.to must contain {', '.join(_UPSTREAM)}; commit and tree must be Git object IDs"


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.match(value) is not None


def _get_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _get_text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _read_condition_statuses(status: Mapping[str, Any]) -> Mapping[str, str]:
    entries = status.get("conditions")
    conditions = (_get_mapping(entry) for entry in (entries if isinstance(entries, list) else ()))
    return {_get_text(condition, "type"): _get_text(condition, "status") for condition in conditions}


@dataclass(frozen=True)
class RecordedTrees:
    """The files of a recorded render.

    Attributes:
        base: The source without local changes.
        merged: The source with local changes, which is the input of the pipeline.
        rendered: The rendered package.
    """

    base: FileTree
    merged: FileTree
    rendered: FileTree


@dataclass(frozen=True)
class RenderCandidates:
    """Possible values of the render inputs that a status file does not contain. The most likely value is first.

    Attributes:
        previous_renders: Possible previous renders of the package, each with a note for the user.
        rule_texts: Possible contents of the override rules with a rollout, each with a note for the user. None means
            the contents in the config of the render.
        list_partners: Returns the possible trees of the other packages whose Kafka templates are merged with the
            package.
    """

    previous_renders: Iterable[tuple[PreviousRender | None, str]] = ((None, ""),)
    rule_texts: Sequence[tuple[RecordedRuleTexts | None, str]] = ((None, ""),)
    list_partners: Callable[[], Sequence[PackageTrees]] = lambda: ({},)


@dataclass(frozen=True)
class ReRenderedPackage:
    """A package that was rendered again.

    Attributes:
        objects: The config objects that were used in the render.
        notes: The notes of the `RenderCandidates` that were used in the render.
    """

    variant: Variant
    rendered: PackageRender
    objects: Mapping[ObjectKey, ConfigObject]
    notes: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether the render has no errors."""
        return not select_errors(self.rendered.findings)

    @property
    def trace(self) -> Trace:
        """All dependencies of the package with their fingerprints, in the format of the recorded state."""
        return {**self.rendered.trace, **self.variant.dependencies}


def pin_recorded_upstream(variant: Variant, recorded: RecordedRender) -> Variant:
    """Return the variant with the recorded upstream, even if its tag or branch now points to another commit."""
    source = variant.source
    if not isinstance(source, UpstreamPackage) or not recorded.upstream:
        return variant
    pinned = replace(source, **recorded.upstream)
    return replace(
        variant, source=pinned, dependencies={**variant.dependencies, "upstream": pinned.fingerprint}, findings=()
    )


def re_render_package(
    variant: Variant,
    recorded: RecordedRender,
    trees: RecordedTrees,
    candidates: RenderCandidates,
    renderer: PackageRenderer,
    read_tree: Callable[[TreeId], FileTree],
    is_recorded_trace: Callable[[Trace], bool],
) -> ReRenderedPackage:
    """Render a package with one candidate after the other, until the result is equal to the recorded tree.

    Args:
        variant: The variant with the recorded upstream.
        recorded: The recorded render of the package.
        trees: The files of the recorded render.
        candidates: The inputs that the record does not contain.
        renderer: A renderer for the config of the recorded render.
        read_tree: Returns the files of another package.
        is_recorded_trace: Returns whether a trace is equal to the recorded dependencies.

    Returns:
        The package with the recorded tree. If no render has this tree, the first package with the recorded
            dependencies. If no render has these dependencies, the first package.

    Raises:
        InterruptedFunctionError: A function cannot run now.
    """
    packages: list[ReRenderedPackage] = []
    for package in _render_candidates(variant, trees.base, trees, candidates, renderer, read_tree):
        if package.is_usable and package.rendered.files.id == recorded.rendered:
            return package
        packages.append(package)
    return next((package for package in packages if is_recorded_trace(package.trace)), packages[0])


def render_alternative(
    variant: Variant,
    source_files: FileTree,
    trees: RecordedTrees,
    candidates: RenderCandidates,
    renderer: PackageRenderer,
    read_tree: Callable[[TreeId], FileTree],
) -> ReRenderedPackage:
    """Render a package with another source or config, and with the most likely candidates.

    Args:
        variant: The variant.
        source_files: The source without local changes. The recorded local changes are merged into this source.
        trees: The files of the recorded render.
        candidates: The inputs that the record does not contain.
        renderer: A renderer for the config.
        read_tree: Returns the files of another package.

    Raises:
        InterruptedFunctionError: A function cannot run now.
    """
    return next(_render_candidates(variant, source_files, trees, candidates, renderer, read_tree))


def _render_candidates(
    variant: Variant,
    source_files: FileTree,
    trees: RecordedTrees,
    candidates: RenderCandidates,
    renderer: PackageRenderer,
    read_tree: Callable[[TreeId], FileTree],
) -> Iterator[ReRenderedPackage]:
    for previous_render, render_note in candidates.previous_renders:
        for texts, text_note in candidates.rule_texts:
            candidate_renderer = _close_outdated_rules(renderer, variant.cluster, texts)
            overrides = PreviousOverrides(rule_texts=texts or {})
            inputs = rebuild_render_inputs(variant, trees, previous_render, overrides)
            inputs = replace(inputs, source_files=source_files)
            plain = candidate_renderer(variant, inputs)
            notes = tuple(filter(None, (render_note, text_note)))
            for rendered in _merge_templates(
                variant, plain, inputs, candidate_renderer, candidates.list_partners, read_tree
            ):
                yield ReRenderedPackage(variant, rendered, renderer.catalog.objects, notes)


def rebuild_render_inputs(
    variant: Variant, trees: RecordedTrees, previous_render: PreviousRender | None, overrides: PreviousOverrides
) -> RenderInputs:
    """Return render inputs for which the merge of local changes returns exactly the recorded source.

    In these inputs, the recorded render is the published package, and there are no later local changes. The merge base
    and the new source are equal, so that the merge changes nothing.
    """
    published = BranchPackage(trees.rendered, trees.rendered, trees.merged, trees.merged, trees.base)
    is_generated = isinstance(variant.source, GeneratedSource)
    return RenderInputs(trees.base, published, None, previous_render, is_generated, overrides)


def _close_outdated_rules(renderer: PackageRenderer, cluster: str, texts: RecordedRuleTexts | None) -> PackageRenderer:
    """Return a renderer that applies the recorded content of override rules whose content in the config has changed.

    The renderer treats the cluster as if the rollouts of these rules had not reached it.
    """
    overrides = renderer.cluster_overrides
    if texts is None or not overrides.rollouts:
        return renderer
    outdated = [rule_id for rule_id, rule in overrides.rollouts.items() if texts.get(rule_id) != rule.text]
    closed = dict.fromkeys(outdated, frozenset((cluster,)))
    return replace(renderer, cluster_overrides=replace(overrides, closed_clusters=closed))


def _merge_templates(
    variant: Variant,
    plain: PackageRender,
    inputs: RenderInputs,
    renderer: PackageRenderer,
    list_partners: Callable[[], Sequence[PackageTrees]],
    read_tree: Callable[[TreeId], FileTree],
) -> Iterator[PackageRender]:
    """Yield the package with merged Kafka templates, once for each possible set of other packages in its cluster."""
    template_merger = renderer.template_merger
    if select_errors(plain.findings) or not plain.has_template_roles:
        yield plain
        return
    for partners in list_partners():
        trees = {**partners, variant.target.package: plain.files.id}
        files = {name: plain.files if tree == plain.files.id else read_tree(tree) for name, tree in trees.items()}
        pairs = template_merger.find_pairs(trees, files.__getitem__)
        yield template_merger.merge_templates(variant, plain, inputs, pairs, pairs)


@dataclass(frozen=True)
class ReRenderOutcome:
    """The outcome of a package, and the rendered package. `render` is None if the package was not rendered."""

    outcome: PackageOutcome
    render: PackageRender | None


def re_decide_package(variant: Variant, prepared: PreparedTarget) -> ReRenderOutcome:
    """Decide about one package of a target. The package is rendered even if no dependency changed."""
    claims, snapshot, package = prepared.claims, prepared.snapshot, variant.target.package
    winners, _ = resolve_claims(claims, snapshot.state)
    inputs = {name: build_decision_input(winner, claims, snapshot) for name, winner in winners.items()}
    inputs[package] = _build_input_without_trace(variant, claims, snapshot)
    decisions = decide_packages(inputs.values(), claims, snapshot, prepared.context, {})
    return ReRenderOutcome(decisions.outcomes[package], decisions.renders.get(package))


def re_decide_target(
    prepared: PreparedTarget, context: PlanningContext
) -> tuple[DecidedTarget, Mapping[str, PackageRender]]:
    """Decide about the requested packages of a target. All packages are rendered even if no dependency changed.

    Returns:
        The decided target, and the rendered packages by package path.
    """
    return decide_requested_packages(prepared, context, _build_input_without_trace)


def _build_input_without_trace(variant: Variant, claims: TargetClaims, snapshot: TargetSnapshot) -> DecisionInput:
    decision_input = build_decision_input(variant, claims, snapshot)
    record = decision_input.record
    return replace(decision_input, record=replace(record, trace={})) if record else decision_input
