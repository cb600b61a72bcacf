"""Turning points: where along a line of versions something became what it is, found in few looks.

Doing without a layer: what a package is made of, or by, if one thing in it were not said (tenet 8).

Making a package again as it was: from what its status file recorded, and by the config of then (design 10.6, 10.28).

The record is a claim, for a status file is open to everybody's edits; whether its package comes out again shows it.

Making packages anew, whether or not anything has moved: who explains or checks them needs all of their render.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from reconciler.planning.decide.template_round import decide_packages
from reconciler.planning.model.cluster_overrides import PreviousOverrides
from reconciler.planning.model.outcomes import PackageOutcome, PackageRender
from reconciler.planning.model.sources import BranchPackage, PackageSource, RenderInputs
from reconciler.planning.observe.target_snapshot import TargetSnapshot
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.planning.render.templates import PackageTrees

# of versions that say nothing, how many are passed over around one look
_MOST_TRIES = 5


def find_change_point(old: int, new: int, is_new: Callable[[int], bool | None]) -> tuple[int, int]:
    """Return two versions between `old` and `new`, of which the earlier is not new yet and the later is.

    `old` is known not to be, `new` to be, and neither is asked about. What is returned are neighbours, unless those
    between them say nothing (None). Where it turned more than once, it is one of the turns.
    """
    while new - old > 1:
        looks = ((at, is_new(at)) for at in _around((old + new) // 2, old, new))
        found = next((look for look in looks if look[1] is not None), None)
        if found is None:
            break
        old, new = (old, found[0]) if found[1] else (found[0], new)
    return old, new


def _around(middle: int, old: int, new: int) -> Iterator[int]:
    """Yield the versions nearest to the middle, but for both ends."""
    steps = (0, *(side * step for step in range(1, _MOST_TRIES) for side in (-1, 1)))
    inside = (middle + step for step in steps if old < middle + step < new)
    yield from islice(inside, _MOST_TRIES)


@dataclass(frozen=True)
class ConfigField:
    """A field of an object of the config; the object itself, where the path is empty."""

    key: ObjectKey
    path: DataPath


@dataclass(frozen=True)
class SourceField:
    """A field of the source as it came, in document `index` of a file; the document, where the path is empty."""

    file: str
    index: int
    path: DataPath


@dataclass(frozen=True, eq=False)
class LocalEdit:
    """A person's edit of what is at `path` of a resource, in document `index` of a file: it made `after` of `before`.

    ABSENT is no resource. The path of what is `gone` is one in `before`. It was `made` on the cluster
    branch or on the draft, or on the branch since our render.
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
    """The mutator `number` of the Kptfile of `package`, "" for the root."""

    package: str
    mutator_index: int


RenderSubject = SourceField | LocalEdit | FunctionCall
RemovableLayer = ConfigField | RenderSubject


def remove_from_config(files: FileTree, one: ConfigObject, path: DataPath) -> FileTree:
    """Return the config without a field of an object, or without the object itself."""
    inside = (*one.path, *path)
    data = copy_without_value(one.document.data, inside) if inside else ABSENT
    number = _number_of(files, one)
    return _with(files, one.file, number, data)


def _number_of(files: FileTree, one: ConfigObject) -> int:
    documents = parse_documents(one.file, files[one.file].data)
    assert not isinstance(documents, ParseFailure), "an object was read from it"
    return next(number for number, each in enumerate(documents) if each.line == one.document.line)


def build_renderer_without(renderer: PackageRenderer, layer: RenderSubject) -> PackageRenderer:
    """Return who renders as another does, but does without one layer."""
    match layer:
        case FunctionCall(package=package, mutator_index=number):
            return replace(renderer, engine=replace(renderer.engine, skipped_mutator=(package, number)))
        case _:
            return replace(renderer, adjust_source=lambda source, options: remove_from_source(source, layer, options))


def remove_from_source(source: PackageSource, layer: SourceField | LocalEdit, options: MergeOptions) -> PackageSource:
    """Return a source without what one of its fields says, or without what a person made of a field.

    Edits of other fields stay.
    """
    match layer:
        case SourceField(file=file, index=index, path=path):
            base = _with(
                source.base, file, index, copy_without_value(_data(source.base, file, index), path) if path else ABSENT
            )
            plain, files = (rebase_files(source.base, base, one, options) for one in (source.plain, source.files))
            return replace(source, base=base, plain=plain, files=files)
        case LocalEdit(origin="draft"):
            return replace(source, files=undo_edit(source.files, source.plain, layer))
        case LocalEdit():
            assert layer.origin == "branch", "what was made since is in no source"
            plain = undo_edit(source.plain, source.base, layer)
            return replace(source, plain=plain, files=rebase_files(source.plain, plain, source.files, options))


def rebase_files(base: FileTree, wanted: FileTree, local: FileTree, options: MergeOptions) -> FileTree:
    """Return what people have, brought from one base to another: what they changed stays theirs."""
    if local.id == base.id:
        return wanted
    return merge_packages(base, wanted, local, replace(options, rules=replace(options.rules, winner="local"))).files


def undo_edit(files: FileTree, earlier: FileTree, layer: LocalEdit) -> FileTree:
    """Return the files without an edit; `earlier` are those that it was made of."""
    if layer.after is ABSENT:
        return _given_back(files, earlier, layer)
    data = undo_change(layer.before, layer.after, layer.path, gone=layer.is_removed)
    # its comments may tell functions what to do, and went with what was edited
    like = next((one.document for one in Package(earlier).resources if is_equal_data(one.data, layer.before)), None)
    return _with(files, layer.file, layer.index, data, like)


def undo_change(before: Any, after: Any, path: DataPath, *, gone: bool = False) -> Any:
    """Return what was made of data without the change of what is at a path of it, or was where it is `gone`."""
    if gone:
        return _put_back(before, after, path)
    was = _was(before, after, path)
    return _taken_out(after, before, path) if was is ABSENT else copy_with_value(after, path, was)


def _was(before: Any, after: Any, path: DataPath) -> Any:
    came = find_previous_path(before, after, path)
    return ABSENT if came is None else get_value(before, came)


def _taken_out(after: Any, before: Any, path: DataPath) -> Any:
    """Return the data without what is new at a path, and without what came for it alone."""
    data = copy_without_value(after, path)
    for end in range(len(path) - 1, 0, -1):
        left, was = get_value(data, path[:end]), _was(before, after, path[:end])
        if left or type(was) is type(left):
            break
        data = copy_without_value(data, path[:end]) if was is ABSENT else copy_with_value(data, path[:end], was)
    return data


def _put_back(before: Any, after: Any, path: DataPath) -> Any:
    """Return the data with what is gone from a path where it was, among what is left of its neighbours."""
    step: Any = path[0]
    if isinstance(after, dict):
        inside = _put_back(before[step], after[step], path[1:]) if path[1:] and step in after else before[step]
        return {**after, step: inside}
    now = {one: two for one, two in align_items(before, after) if one is not None and two is not None}
    if step in now:
        return copy_with_value(after, (now[step],), _put_back(before[step], after[now[step]], path[1:]))
    place = next((now[one] for one in range(step + 1, len(before)) if one in now), len(after))
    return [*after[:place], before[step], *after[place:]]


def _given_back(files: FileTree, earlier: FileTree, layer: LocalEdit) -> FileTree:
    """Return the files with a document that is gone, or with its whole file, where nothing is left of that."""
    documents = parse_documents(layer.file, files[layer.file].data) if layer.file in files else ()
    if isinstance(documents, ParseFailure) or not documents or layer.file.endswith(".json"):
        return files.with_files({layer.file: earlier[layer.file].data})
    source = parse_cached(files[layer.file].data)
    assert not isinstance(source, ParseFailure), "it has documents"
    order: list[tuple[int | None, Document]] = [*enumerate(source.documents)]
    order.insert(layer.index, (None, _document(earlier, layer.file, layer.index)))
    return files.with_files({layer.file: source.with_documents(order).to_bytes()})


def _document(files: FileTree, file: str, index: int) -> Document:
    documents = parse_documents(file, files[file].data)
    assert not isinstance(documents, ParseFailure), "a resource was read from it"
    return documents[index]


def _data(files: FileTree, file: str, index: int) -> Any:
    return _document(files, file, index).data


def _with(files: FileTree, file: str, index: int, data: Any, like: Document | None = None) -> FileTree:
    """Return the files with other data in a document, or without the document where the data are ABSENT.

    The document is written `like` itself, or like another.
    """
    old = files[file].data
    if file.endswith(".json"):
        return files.without_files(file) if data is ABSENT else files.with_files({file: format_json(data, old)})
    source = parse_cached(old)
    assert not isinstance(source, ParseFailure), "a resource was read from it"
    if data is not ABSENT:
        changed = source.replace(index, edit_document(like or source.documents[index], data))
    elif len(source.documents) > 1:
        changed = source.remove(index)
    else:
        return files.without_files(file)
    return files.with_files({file: changed.to_bytes()})


# of plain folders
TREE_PREFIX = "tree:"
_ID = re.compile(r"[0-9a-f]{40}\Z")
_TREES = ("base", "merged", "rendered")
_UPSTREAM = ("repo", "directory", "ref", "commit", "tree")

RecordedRuleTexts = Mapping[RuleId, str]
"""The texts of rules with a rollout by which a package was made; a rule that is not named had not arrived."""


@dataclass(frozen=True)
class RecordedRender:
    """What a status file says of how its package came to be (design 10.28).

    `owner` is as status files write it; `upstream` where the source came from, {} for what a room made. `config` is a
    commit, or `tree:<id>` for a plain folder; `digest` that of everything the render asked, with its answers.
    `conditions` are their statuses by type.
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
        """Whether people's edits were in the source."""
        return self.merged != self.base


def parse_recorded_render(content: bytes) -> RecordedRender | str:
    """Return what a status file records, or which of its fields must be otherwise."""
    try:
        documents = parse_yaml(content).documents
    except YamlError as error:
        return f"line {error.line}: {error.message}"
    data = documents[0].data if documents else None
    status = _mapping(_mapping(data).get("status"))
    trees, inputs, to = (_mapping(status.get(name)) for name in ("trees", "inputs", "upstream"))
    to = _mapping(to.get("to"))
    fault = next(_faults(status, trees, inputs, to), "")
    if fault:
        return fault
    base, merged, rendered = (TreeId(trees[name]) for name in _TREES)
    known = {name: to[name] for name in _UPSTREAM if name in to}
    owner, conditions = _mapping(status.get("owner")), _conditions(status)
    return RecordedRender(owner, base, merged, rendered, inputs["config"], _text(inputs, "digest"), known, conditions)


def _faults(
    status: Mapping[str, Any], trees: Mapping[str, Any], inputs: Mapping[str, Any], to: Mapping[str, Any]
) -> Iterator[str]:
    for name in _TREES:
        if not _is_id(trees.get(name)):
            yield f".status.trees.{name} must be the id of a tree, not {trees.get(name)!r}"
    config = inputs.get("config")
    if not isinstance(config, str) or not _is_id(config.removeprefix(TREE_PREFIX)):
        yield f".status.inputs.config must be the id of a commit, or {TREE_PREFIX} and that of a tree, not {config!r}"
    owner = _mapping(status.get("owner"))
    if not owner or any(not isinstance(one, str) for one in owner.values()):
        yield f".status.owner must name the object that wants the package, not {status.get('owner')!r}"
    if to and not (_is_id(to.get("commit")) and _is_id(to.get("tree")) and all(_text(to, one) for one in _UPSTREAM)):
        yield f".status.upstream.to must have {', '.join(_UPSTREAM)}, of which commit and tree are ids"


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.match(value) is not None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _conditions(status: Mapping[str, Any]) -> Mapping[str, str]:
    listed = status.get("conditions")
    found = (_mapping(one) for one in (listed if isinstance(listed, list) else ()))
    return {_text(one, "type"): _text(one, "status") for one in found}


@dataclass(frozen=True)
class RecordedTrees:
    """The contents that a record names: the source as it came, as it entered the pipeline, and what came of it."""

    base: FileTree
    merged: FileTree
    rendered: FileTree


@dataclass(frozen=True)
class RenderCandidates:
    """What a render went by that no record names, each in the order of likelihood; the first that fits is taken.

    `earlier` are outputs that it may have followed (design 10.7), `texts` those of rules in rollouts, where None is
    each by its text of then (10.23), each with what must be told of it. `partners` are the other packages that
    templates may have been merged with (10.17).
    """

    previous_renders: Iterable[tuple[PreviousRender | None, str]] = ((None, ""),)
    rule_texts: Sequence[tuple[RecordedRuleTexts | None, str]] = ((None, ""),)
    list_partners: Callable[[], Sequence[PackageTrees]] = lambda: ({},)


@dataclass(frozen=True)
class ReRenderedPackage:
    """A package made again: its render, and what must be told of the surroundings that it was made in.

    `objects` are those of the config of then.
    """

    variant: Variant
    rendered: PackageRender
    objects: Mapping[ObjectKey, ConfigObject]
    notes: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether it came to something at all."""
        return not select_errors(self.rendered.findings)

    @property
    def trace(self) -> Trace:
        """All that it was made of, as state keeps it."""
        return {**self.rendered.trace, **self.variant.dependencies}


def with_recorded_upstream(variant: Variant, recorded: RecordedRender) -> Variant:
    """Return the variant with the upstream that was recorded, wherever its reference leads today."""
    source = variant.source
    if not isinstance(source, UpstreamPackage) or not recorded.upstream:
        return variant
    then = replace(source, **recorded.upstream)
    return replace(
        variant, source=then, dependencies={**variant.dependencies, "upstream": then.fingerprint}, findings=()
    )


def re_render_package(
    variant: Variant, recorded: RecordedRender, materials: RecordedTrees, around: RenderCandidates, renderer: PackageRenderer,  # noqa: E501
    read: Callable[[TreeId], FileTree], is_recorded: Callable[[Trace], bool],
) -> ReRenderedPackage:  # fmt: skip
    """Return the package made again, by the first of its surroundings that lead to the recorded tree.

    Where none does, by the first whose trace `is_recorded`, so that they are those of then; else by the
    likeliest. `read` returns the files of a partner. Raises InterruptedFunctionError.
    """
    tried: list[ReRenderedPackage] = []
    for one in _attempts(variant, materials.base, materials, around, renderer, read):
        if one.is_usable and one.rendered.files.id == recorded.rendered:
            return one
        tried.append(one)
    return next((one for one in tried if is_recorded(one.trace)), tried[0])


def render_alternative(
    variant: Variant, came: FileTree, materials: RecordedTrees, around: RenderCandidates, renderer: PackageRenderer,
    read: Callable[[TreeId], FileTree],
) -> ReRenderedPackage:  # fmt: skip
    """Return the package as it would have been with another source, or by another config.

    Its surroundings are the likeliest; people's edits that were in its source are merged with what `came`. Raises
    InterruptedFunctionError.
    """
    return next(_attempts(variant, came, materials, around, renderer, read))


def _attempts(
    variant: Variant, came: FileTree, materials: RecordedTrees, around: RenderCandidates, renderer: PackageRenderer,
    read: Callable[[TreeId], FileTree],
) -> Iterator[ReRenderedPackage]:  # fmt: skip
    for earlier, followed in around.previous_renders:
        for texts, ruled in around.rule_texts:
            by, had = _by_texts(renderer, variant.cluster, texts), PreviousOverrides(rule_texts=texts or {})
            made = replace(rebuild_render_inputs(variant, materials, earlier, had), source_files=came)
            plain = by(variant, made)
            for rendered in _templated(variant, plain, made, by, around.list_partners, read):
                yield ReRenderedPackage(
                    variant, rendered, renderer.catalog.objects, tuple(filter(None, (followed, ruled)))
                )


def rebuild_render_inputs(
    variant: Variant, materials: RecordedTrees, earlier: PreviousRender | None, had: PreviousOverrides
) -> RenderInputs:
    """Return ingredients of which exactly the recorded source comes (git.md 3).

    It stands there as if nobody had changed it since, at the upstream that it came from: nothing is left to merge.
    """
    merged = materials.merged
    standing = BranchPackage(materials.rendered, materials.rendered, merged, merged, materials.base)
    return RenderInputs(materials.base, standing, None, earlier, isinstance(variant.source, GeneratedSource), had)


def _by_texts(renderer: PackageRenderer, cluster: str, texts: RecordedRuleTexts | None) -> PackageRenderer:
    mile = renderer.cluster_overrides
    if texts is None or not mile.rollouts:
        return renderer
    behind = [name for name, rule in mile.rollouts.items() if texts.get(name) != rule.text]
    closed = dict.fromkeys(behind, frozenset((cluster,)))
    return replace(renderer, cluster_overrides=replace(mile, closed_clusters=closed))


def _templated(
    variant: Variant, plain: PackageRender, made: RenderInputs, by: PackageRenderer, partners: Callable[[], Sequence[PackageTrees]],  # noqa: E501
    read: Callable[[TreeId], FileTree],
) -> Iterator[PackageRender]:  # fmt: skip
    templating = by.template_merger
    if select_errors(plain.findings) or not plain.has_template_roles:
        yield plain
        return
    for others in partners():
        contents = {**others, variant.target.package: plain.files.id}
        found = {name: plain.files if tree == plain.files.id else read(tree) for name, tree in contents.items()}
        pairs = templating.find_pairs(contents, found.__getitem__)
        yield templating.merge_templates(variant, plain, made, pairs, pairs)


@dataclass(frozen=True)
class ReRenderOutcome:
    """What became of a package, and its render; None where it did not come to one."""

    outcome: PackageOutcome
    render: PackageRender | None


def re_decide_package(variant: Variant, surveyed: PreparedTarget) -> ReRenderOutcome:
    """Return what one package of a destination comes to today; a render that was remembered is made again."""
    shop, package = surveyed.context, variant.target.package
    winners, _ = resolve_claims(surveyed.claims, surveyed.snapshot.state)
    asked = {name: build_decision_input(one, surveyed.claims, surveyed.snapshot) for name, one in winners.items()}
    asked[package] = _ask_anew(variant, surveyed.claims, surveyed.snapshot)
    found = decide_packages(asked.values(), surveyed.claims, surveyed.snapshot, shop, {})
    return ReRenderOutcome(found.outcomes[package], found.renders.get(package))


def re_decide_target(one: PreparedTarget, shop: PlanningContext) -> tuple[DecidedTarget, Mapping[str, PackageRender]]:
    """Return what becomes of the packages that are wanted on one destination, each with the render that it took."""
    return decide_requested_packages(one, shop, _ask_anew)


def _ask_anew(variant: Variant, claims: TargetClaims, ground: TargetSnapshot) -> DecisionInput:
    """Return a question whose answer nobody remembers."""
    question = build_decision_input(variant, claims, ground)
    record = question.record
    return replace(question, record=replace(record, trace={})) if record else question
