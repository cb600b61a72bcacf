"""Renders packages again, to explain them. These renders have no effect on the decisions of a pass.

A status file records most inputs of a render. Because anyone can edit a status file, its record is trusted only if the
new render is equal to the recorded package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import FileTree, TreeId
from reconciler.catalog.trace import Trace
from reconciler.controllers.override_policies.rollout import RuleId
from reconciler.controllers.results import (
    GeneratedSource,
    PackageOwner,
    PreviousRender,
    UpstreamPackage,
    Variant,
    read_upstream_status,
)
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.json_text import DIGEST_PATTERN
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import YamlError, parse_yaml
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.planning.attribution.explained_sources import ExplainedSources
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
from reconciler.planning.model.sources import BranchPackage, RenderInputs
from reconciler.planning.observe.target_snapshot import TargetSnapshot
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.planning.render.templates import PackageTrees


@dataclass(frozen=True)
class ReRenderedPackage:
    """One package and its render with one version of the config.

    Attributes:
        target: The package, as `repository/package`.
        config: The ID of the config. "" if it is not known.
        rendered: The render with its stages. None if the render failed or was not possible.
        blocked_reason: The reason why the package is blocked. "" if the package is not blocked.
        findings: The errors that explain `blocked_reason`.
        notes: Notes for the user about the inputs that the record does not contain (see `RecordedInputs`).
        commit: The commit of the target branch, if the user selected a commit. Otherwise "".
        is_reproduced: Whether the re-render has the same files as the recorded render.
        folder: The folder of the package on the branches of its target.
        sources: The sources of the package. None for a generated package, and if the sources are not known.
    """

    target: str
    config: str
    objects: Mapping[ObjectKey, ConfigObject]
    owner: PackageOwner | None = None
    variant: Variant | None = None
    rendered: PackageRender | None = None
    blocked_reason: str = ""
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    commit: str = ""
    is_reproduced: bool = True
    folder: str = ""
    sources: ExplainedSources | None = field(default=None, compare=False)

    @property
    def trace(self) -> Trace:
        """All dependencies of the package with their fingerprints, in the format of the recorded state."""
        return {
            **(self.rendered.trace if self.rendered else {}),
            **(self.variant.dependencies if self.variant else {}),
        }


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
        owner: The fields of the owner, as in the status file.
        base: The source tree without local changes.
        merged: The source tree with local changes.
        config: The commit of the config, or `tree:<id>` for a plain folder.
        digest: The digest of all dependencies of the render with their fingerprints.
        upstream: The upstream of the package, or {} for generated files.
        conditions: The status of each condition by condition type.
        engine: The name, version and digest of the program that rendered the source, such as "helm/3.22 sha256:…".
    """

    owner: Mapping[str, str]
    base: TreeId
    merged: TreeId
    rendered: TreeId
    config: str
    digest: str = ""
    upstream: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    engine: str = ""

    @property
    def upstreams(self) -> Sequence[Mapping[str, Any]]:
        """The upstream of each source: one entry for a package with one upstream, none for generated files."""
        return self.upstream.get("sources") or ([self.upstream] if self.upstream else [])

    def with_upstream(self, upstream: Mapping[str, Any]) -> RecordedRender:
        """Return a copy of the record with `upstream` as its upstream.

        If the package has several sources, `upstream` replaces only the source with the same name.
        """
        sources = self.upstream.get("sources")
        if not sources:
            return replace(self, upstream=upstream)
        changed = [upstream if source["name"] == upstream["name"] else source for source in sources]
        return replace(self, upstream={**self.upstream, "sources": changed})

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
    recorded_upstream = _get_mapping(upstream.get("to"))
    if message := _check_source_names(recorded_upstream):
        return message
    upstream = read_upstream_status(recorded_upstream)
    message = next(_validate_record(status, trees, inputs, upstream), "")
    if message:
        return message
    base, merged, rendered = (TreeId(trees[name]) for name in _TREES)
    known = {name: upstream[name] for name in (*_UPSTREAM, "sources") if name in upstream}
    owner, conditions = _get_mapping(status.get("owner")), _read_condition_statuses(status)
    digest = _get_text(inputs, "digest")
    engine = _get_mapping(_get_mapping(inputs.get("source")).get("engine"))
    program = "/".join(filter(None, (_get_text(engine, "name"), _get_text(engine, "version"))))
    return RecordedRender(owner, base, merged, rendered, inputs["config"], digest, known, conditions, program)


def _validate_record(
    status: Mapping[str, Any], trees: Mapping[str, Any], inputs: Mapping[str, Any], upstream: Mapping[str, Any]
) -> Iterator[str]:
    for name in _TREES:
        if not _is_id(trees.get(name)):
            yield f".status.trees.{name} must be the ID of a Git tree, but is {trees.get(name)!r}"
    config = inputs.get("config")
    if not isinstance(config, str) or not _is_id(config.removeprefix(TREE_PREFIX)):
        yield f".status.inputs.config must be the ID of a commit, or {TREE_PREFIX}<ID of a Git tree>, but is {config!r}"
    owner = _get_mapping(status.get("owner"))
    if not owner or any(not isinstance(text, str) for text in owner.values()):
        yield (
            ".status.owner must be a mapping that identifies the object that requests the package, not"
            f" {status.get('owner')!r}"
        )
    if upstream:
        yield from _validate_upstream(upstream, ".status.upstream.to", _UPSTREAM)
    # Do not require the field `directory`, because a source in the root folder of its repository does not have it.
    names = [name for name in _UPSTREAM if name != "directory"]
    for index, source in enumerate(upstream.get("sources", ())):
        yield from _validate_upstream(source, f".status.upstream.to.sources[{index}]", names)


def _check_source_names(upstream: Mapping[str, Any]) -> str:
    """Return a message if the field `sources` of an upstream is not a list of named sources."""
    sources = upstream.get("sources", [])
    if isinstance(sources, list) and all(_get_text(_get_mapping(source), "name") for source in sources):
        return ""
    return ".status.upstream.to.sources must be a list, and each source must have a name"


def _validate_upstream(upstream: Mapping[str, Any], path: str, names: Sequence[str]) -> Iterator[str]:
    commit = _get_text(upstream, "commit")
    has_ids = (_is_id(commit) or DIGEST_PATTERN.fullmatch(commit) is not None) and _is_id(upstream.get("tree"))
    if not (has_ids and all(_get_text(upstream, name) for name in names)):
        yield (
            f"{path} must contain {', '.join(names)}; the tree must be the ID of a Git object, and the"
            " commit must be the ID of a Git object or the digest of an artifact"
        )


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
class RecordedInputs:
    """The inputs of a recorded render.

    The record does not contain all inputs. A missing input has several candidates, the most likely candidate first. For
    each candidate, there is a note for the user.

    Attributes:
        source_files: The source without local changes. The recorded local changes are merged into this source.
        trees: The files of the recorded render.
        previous_renders: Possible previous renders of the package.
        rule_texts: Possible contents of the override rules with a rollout. None means the contents in the config.
        list_partners: Returns the candidates for the contents of the other packages in the cluster that contain Kafka
            templates. Each candidate contains the trees of all these packages.
        read_tree: Returns the files of another package.
        charts: The charts that were downloaded for the functions of the package.
    """

    source_files: FileTree
    trees: RecordedTrees
    previous_renders: Iterable[tuple[PreviousRender | None, str]]
    rule_texts: Sequence[tuple[RecordedRuleTexts | None, str]]
    list_partners: Callable[[], Sequence[PackageTrees]]
    read_tree: Callable[[TreeId], FileTree]
    charts: FileTree = field(default_factory=FileTree)


def pin_recorded_upstream(variant: Variant, recorded: RecordedRender) -> Variant:
    """Return the variant with the recorded upstream, even if its tag or branch now points to another commit."""
    source = variant.source
    if not isinstance(source, UpstreamPackage) or not recorded.upstream:
        return variant
    pinned = source.pin(recorded.upstream)
    if pinned is None:
        return variant
    return replace(
        variant, source=pinned, dependencies={**variant.dependencies, "upstream": pinned.fingerprint}, findings=()
    )


def list_re_renders(
    variant: Variant, recorded: RecordedInputs, renderer: PackageRenderer
) -> Iterator[ReRenderedPackage]:
    """Render a package with each combination of candidates, and yield each result.

    If an input of the recorded render is unknown, `recorded` contains several candidates for this input.

    Raises:
        InterruptedFunctionError: A function cannot run now.
    """
    for previous_render, render_note in recorded.previous_renders:
        for texts, text_note in recorded.rule_texts:
            candidate_renderer = _close_outdated_rules(renderer, variant.cluster, texts)
            overrides = PreviousOverrides(rule_texts=texts or {})
            inputs = rebuild_render_inputs(variant, recorded.trees, previous_render, overrides)
            inputs = replace(inputs, source_files=recorded.source_files, charts=recorded.charts)
            notes = tuple(filter(None, (render_note, text_note)))
            for rendered in _merge_templates(variant, inputs, candidate_renderer, recorded):
                yield replace(build_re_rendered(variant, rendered, renderer.catalog.objects), notes=notes)


def build_re_rendered(
    variant: Variant, rendered: PackageRender, objects: Mapping[ObjectKey, ConfigObject]
) -> ReRenderedPackage:
    """Convert a render to a ReRenderedPackage. If the render has errors, the result contains only the errors."""
    package = ReRenderedPackage(str(variant.target), "", objects, variant.owner, variant)
    if errors := select_errors(rendered.findings):
        reason = "; ".join(finding.message for finding in rendered.findings)
        return replace(package, blocked_reason=reason, findings=errors)
    return replace(package, rendered=rendered)


def rebuild_render_inputs(
    variant: Variant, trees: RecordedTrees, previous_render: PreviousRender | None, overrides: PreviousOverrides
) -> RenderInputs:
    """Return render inputs that reproduce the recorded render.

    A render first merges the local changes into the source. With these inputs, the result of this merge is exactly the
    recorded source with local changes. The reason is that the inputs describe a published package that is equal to the
    recorded render, and a new source that is equal to the merge base. Therefore, the merge has nothing to change.
    """
    published = BranchPackage(trees.rendered, trees.rendered, trees.merged, trees.merged, trees.base)
    is_generated = isinstance(variant.source, GeneratedSource)
    return RenderInputs(trees.base, published, None, previous_render, is_generated, overrides)


def _close_outdated_rules(renderer: PackageRenderer, cluster: str, texts: RecordedRuleTexts | None) -> PackageRenderer:
    """Return a renderer that applies the recorded content of override rules whose content in the config has changed.

    The renderer treats the cluster as if the rollouts of these rules had not reached this cluster.
    """
    overrides = renderer.cluster_overrides
    if texts is None or not overrides.rollouts:
        return renderer
    outdated = [rule_id for rule_id, rule in overrides.rollouts.items() if texts.get(rule_id) != rule.text]
    closed = dict.fromkeys(outdated, frozenset((cluster,)))
    return replace(renderer, cluster_overrides=replace(overrides, closed_clusters=closed))


def _merge_templates(
    variant: Variant, inputs: RenderInputs, renderer: PackageRenderer, recorded: RecordedInputs
) -> Iterator[PackageRender]:
    """Render a package, and merge its Kafka templates with the templates of other packages.

    `RecordedInputs.list_partners` lists the possible contents of the other packages. Yield one result for each of these
    possibilities. If the render has errors or contains no templates, yield it once without a merge.
    """
    plain, template_merger = renderer(variant, inputs), renderer.template_merger
    if select_errors(plain.findings) or not plain.has_template_roles:
        yield plain
        return
    for partners in recorded.list_partners():
        trees = {**partners, variant.target.package: plain.files.id}
        files = {
            name: plain.files if tree == plain.files.id else recorded.read_tree(tree) for name, tree in trees.items()
        }
        pairs = template_merger.find_pairs(trees, files.__getitem__)
        yield template_merger.merge_templates(variant, plain, inputs, pairs, pairs)


def re_decide_package(variant: Variant, prepared: PreparedTarget) -> tuple[PackageOutcome, PackageRender | None]:
    """Decide about one package of a target. The package is rendered even if no dependency changed.

    Returns:
        The outcome and the render. The render is None if the package was not rendered.
    """
    claims, snapshot, package = prepared.claims, prepared.snapshot, variant.target.package
    winners, _ = resolve_claims(claims, snapshot.state)
    inputs = {name: build_decision_input(winner, claims, snapshot) for name, winner in winners.items()}
    inputs[package] = _build_input_without_trace(variant, claims, snapshot)
    decisions = decide_packages(inputs.values(), claims, snapshot, prepared.context, {})
    return decisions.outcomes[package], decisions.renders.get(package)


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
