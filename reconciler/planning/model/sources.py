"""Sources of packages: the inputs of a render, merged with local changes, and records of the conflicts.

A package source is the upstream package, or the generated files, with the local changes of the target branch and of the
draft merged in. Conflicts are stored as plain data without secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from reconciler.catalog.files import CommitId, FileTree, SpecialEntry, TreeId
from reconciler.controllers.override_policies.policy_usage import parse_policy_name
from reconciler.controllers.results import GeneratedSource, PreviousRender, UpstreamPackage
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.isolation import ExpectedError
from reconciler.krm.json_pointer import PointerError, parse_pointer, resolve_pointer
from reconciler.krm.json_text import encode_canonical_json
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.packages.clone import read_upstream, read_upstream_lock
from reconciler.packages.kptfile import KPTFILE, Strategy
from reconciler.packages.package import Package, PackageResource
from reconciler.packages.update import MergeOptions, UpdateResult, get_update_strategy, merge_packages, update_package
from reconciler.planning.model.cluster_overrides import PreviousOverrides
from reconciler.planning.model.state import ObservedPackage, PackageRecord, RenderedVersion
from reconciler.redaction import MASK, contains_secret

_SIDES = ("base", "local", "upstream")
_PARTS = frozenset({"kind", "chosen", "rule"})
_CHOICES = ("upstream", "local", "rule")


def serialize_conflict(conflict: Conflict) -> dict[str, Any]:
    """Return a conflict as data, without sides that have no value.

    Values of Secrets, and values that contain a secret, are masked. For whole resources, files and packages, each side
    that has one is True.
    """
    sides = {side: value for side in _SIDES if (value := getattr(conflict, side)) is not ABSENT}
    data = {
        "kind": conflict.kind,
        "file": conflict.file,
        "resource": conflict.resource,
        "pointer": conflict.pointer,
        **_mask_sides(conflict, sides),
        "chosen": conflict.chosen,
        "rule": conflict.rule,
    }
    return {name: value for name, value in data.items() if value != "" or name in _SIDES}


def parse_conflict(data: Mapping[str, Any]) -> Conflict:
    """Read the result of `serialize_conflict`."""
    sides = {side: data.get(side, ABSENT) for side in _SIDES}
    texts = {name: data.get(name, "") for name in ("file", "resource", "pointer")}
    return Conflict(kind=data["kind"], chosen=data["chosen"], rule=data["rule"], **texts, **sides)


def filter_recorded_conflicts(recorded: object) -> tuple[Mapping[str, Any], ...]:
    """Return the conflicts of a status file, without invalid entries."""
    entries = recorded if isinstance(recorded, list) else ()
    return tuple(entry for entry in entries if _is_conflict(entry))


def are_conflicts_readable(recorded: object) -> bool:
    """Return whether all conflicts of a status file are valid."""
    return recorded is None or (isinstance(recorded, list) and all(map(_is_conflict, recorded)))


def _is_conflict(entry: object) -> bool:
    return isinstance(entry, dict) and entry.keys() >= _PARTS and entry["chosen"] in _CHOICES


def deduplicate_conflicts(conflicts: Iterable[Conflict]) -> tuple[Conflict, ...]:
    """Return each conflict once. Conflicts with equal data are the same conflict, even if one of them was recorded."""
    return tuple({encode_canonical_json(serialize_conflict(conflict)): conflict for conflict in conflicts}.values())


def locate_conflict(conflict: Conflict) -> tuple[str, str, str]:
    """Return the location of a conflict. A later conflict with the same location replaces it."""
    return conflict.file, conflict.resource, conflict.pointer


def has_conflict_outcome(conflict: Conflict, files: FileTree) -> bool:
    """Return whether a package still contains the chosen side of a conflict. A later change may have resolved it.

    For resources, files and packages, only their existence is compared. Elements of lists always count as unchanged.
    """
    decided = conflict.local if conflict.chosen == "local" else conflict.upstream
    match conflict.kind:
        case "field":
            values = (_get_value_at(resource.data, conflict.pointer) for resource in _find_resources(conflict, files))
            return decided == MASK or any(is_equal_data(value, decided) for value in values)
        case "resource":
            return any(_find_resources(conflict, files)) == (decided is not ABSENT)
        case "file":
            return (conflict.file in files) == (decided is not ABSENT)
        case "package":
            return any(path.startswith(f"{conflict.file}/") for path in files) == (decided is not ABSENT)
        case "element":
            return True


def _find_resources(conflict: Conflict, files: FileTree) -> Iterator[PackageResource]:
    # Only the file of the conflict is parsed.
    content = FileTree({conflict.file: files[conflict.file]}) if conflict.file in files else FileTree()
    return (resource for resource in Package(content).resources if str(resource.key) == conflict.resource)


def _get_value_at(data: Any, pointer: str) -> Any:
    try:
        return resolve_pointer(data, parse_pointer(pointer))
    except PointerError:
        return ABSENT


def _mask_sides(conflict: Conflict, sides: Mapping[str, Any]) -> Mapping[str, Any]:
    if conflict.kind not in ("field", "element"):
        return dict.fromkeys(sides, True)
    is_hidden = conflict.resource.startswith("Secret/") or any(map(contains_secret, sides.values()))
    return dict.fromkeys(sides, MASK) if is_hidden else sides


@dataclass(frozen=True)
class BranchPackage:
    """A package on a branch, and the rendered version that it is based on. Their difference is the local changes.

    For a package that was not rendered by the reconciler, all versions are its own files, and `base` is the upstream
    that its lock names.

    Attributes:
        files: Files on the branch.
        rendered: Files of the rendered version.
        merged: Source of the rendered version with all local changes, the input of the pipeline.
        plain: Like `merged`, without local changes of the draft.
        base: Source of the rendered version without local changes.
        conflicts: Conflicts that were recorded for the rendered version.
    """

    files: FileTree
    rendered: FileTree
    merged: FileTree
    plain: FileTree
    base: FileTree
    conflicts: tuple[Conflict, ...] = ()

    @property
    def follows_upstream(self) -> bool:
        """Whether the package has an upstream."""
        return not is_without_upstream(self.rendered)

    @property
    def is_edited(self) -> bool:
        """Whether the package has local changes."""
        return self.files.id != self.rendered.id

    def without_special_entries(self) -> BranchPackage:
        """Return the package without symbolic links and submodules, which merges do not support."""
        trees = {name: getattr(self, name).with_special_entries({}) for name in _TREES}
        return replace(self, **trees)


_TREES = ("files", "rendered", "merged", "plain", "base")


@dataclass(frozen=True)
class RenderInputs:
    """All inputs of a render besides the catalog.

    Attributes:
        source_files: Files of the upstream, or generated files.
        published: Package on the target branch.
        drafted: Package on the draft branch.
        previous_render: Last rendered version.
        is_generated: A controller generated the source, and owns all its content.
        previous_overrides: Override policies of the last rendered version.
        deleted_tree: Last published tree of a package that was deleted from the target branch without a removal draft.
    """

    source_files: FileTree
    published: BranchPackage | None = None
    drafted: BranchPackage | None = None
    previous_render: PreviousRender | None = None
    is_generated: bool = False
    previous_overrides: PreviousOverrides = field(default_factory=PreviousOverrides)
    deleted_tree: TreeId | None = None

    @property
    def needs_merge(self) -> bool:
        """Whether a branch contains local changes."""
        sides = [side for side in (self.published, self.drafted) if side]
        return any(side.is_edited or side.merged.id != side.base.id for side in sides)


@dataclass(frozen=True)
class PackageSource:
    """Input of the pipeline. It is not valid if there are error findings.

    Attributes:
        files: Files with all local changes.
        plain: Files without local changes of the draft.
        base: Files without local changes.
        follows_upstream: False for a package that was adopted without a lock: it is mutated, but never updated.
        published_conflicts: Conflicts of local changes on the target branch. They are computed again in each render.
        draft_conflicts: Conflicts of local changes on the draft. They are recorded while the package still contains
            their outcome.
    """

    files: FileTree
    plain: FileTree
    base: FileTree
    follows_upstream: bool = True
    published_conflicts: tuple[Conflict, ...] = ()
    draft_conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Conflicts of local changes on the target branch, then of those on the draft."""
        return deduplicate_conflicts((*self.published_conflicts, *self.draft_conflicts))

    @property
    def is_edited(self) -> bool:
        """Whether the source contains local changes."""
        return self.files.id != self.base.id


def find_local_special_entries(inputs: RenderInputs) -> Mapping[str, SpecialEntry]:
    """Return the symbolic links and submodules of a package. All are local changes, because no renderer creates any.

    The result has the entries of the target branch, with the changes on the draft since its last rendered version.
    """
    published = inputs.published.files.special_entries if inputs.published else {}
    if inputs.drafted is None:
        return published
    drafted, rendered = inputs.drafted.files.special_entries, inputs.drafted.rendered.special_entries
    changed = {path for path in {*drafted, *rendered} if drafted.get(path) != rendered.get(path)}
    unchanged = {path: entry for path, entry in published.items() if path not in changed}
    return {**unchanged, **{path: drafted[path] for path in changed if path in drafted}}


def remove_special_entries(inputs: RenderInputs) -> RenderInputs:
    """Return the inputs without symbolic links and submodules."""
    return replace(
        inputs,
        published=inputs.published.without_special_entries() if inputs.published else None,
        drafted=inputs.drafted.without_special_entries() if inputs.drafted else None,
    )


# Rule of a conflict about a local change that no merge detected.
NOT_KEPT_RULE = "not-kept"
# Update strategies that replace local changes. Each is also the rule of the conflicts that it causes.
REPLACING_STRATEGIES: tuple[Strategy, ...] = ("copy-merge", "force-delete-replace")
EMPTY_SOURCE = PackageSource(FileTree(), FileTree(), FileTree())


def merge_source(inputs: RenderInputs, strategy: Strategy | None, options: MergeOptions) -> PackageSource:
    """Return the source of a package: upstream, with the local changes of the target branch and then of the draft.

    Without local changes, the source is the upstream, byte for byte.

    Args:
        inputs: Trees to merge.
        strategy: Update strategy, None for the strategy of the Kptfile.
        options: Options of the merge.
    """
    source = _merge_published_changes(inputs, strategy, options)
    if select_errors(source.findings):
        return source
    if inputs.drafted:
        source = _merge_draft_changes(source, inputs.drafted, options)
    return _restore_generated(source, options) if inputs.is_generated else source


def _merge_published_changes(inputs: RenderInputs, strategy: Strategy | None, options: MergeOptions) -> PackageSource:
    if inputs.published is None:
        return PackageSource(inputs.source_files, inputs.source_files, inputs.source_files)
    local = _extract_local_source(inputs.published, options)
    files = local.files
    if select_errors(local.findings):
        return PackageSource(files, files, inputs.source_files, findings=local.findings)
    follows = inputs.is_generated or inputs.published.follows_upstream
    if not follows or inputs.published.base.id == inputs.source_files.id:
        return PackageSource(
            files, files, inputs.source_files, follows, published_conflicts=local.conflicts, findings=local.findings
        )
    if files.id == inputs.published.base.id:
        return PackageSource(
            inputs.source_files,
            inputs.source_files,
            inputs.source_files,
            published_conflicts=local.conflicts,
            findings=local.findings,
        )
    if inputs.is_generated:
        updated = merge_packages(inputs.published.base, inputs.source_files, files, options)
    else:
        chosen = strategy or get_update_strategy(read_upstream(files))
        updated = update_package(inputs.published.base, inputs.source_files, files, chosen, options)
        if chosen in REPLACING_STRATEGIES:
            updated = updated.with_details(_find_replaced_changes(inputs.published.base, files, updated, chosen))
    return PackageSource(
        updated.files,
        updated.files,
        inputs.source_files,
        published_conflicts=(*local.conflicts, *updated.conflicts),
        findings=(*local.findings, *updated.findings),
    )


def _find_replaced_changes(
    base: FileTree, local: FileTree, updated: UpdateResult, strategy: Strategy
) -> list[Conflict]:
    """Return a conflict for each file whose local change an update strategy replaced."""
    known = {conflict.file for conflict in updated.conflicts}
    paths = sorted(path for path in {*base, *local} if base.get(path) != local.get(path))
    conflicts = []
    for path in paths:
        # These strategies merge the Kptfile, and record its conflicts themselves.
        if path == KPTFILE or path in known or updated.files.get(path) == local.get(path):
            continue
        before, changed, after = (
            file.id if (file := tree.get(path)) else ABSENT for tree in (base, local, updated.files)
        )
        conflicts.append(Conflict("file", "", before, changed, after, "upstream", strategy, file=path))
    return conflicts


def _merge_draft_changes(source: PackageSource, draft: BranchPackage, options: MergeOptions) -> PackageSource:
    local = _extract_local_source(draft, options)
    # Both sides have local changes: one has those of the target branch, the other those of the draft.
    both_local = replace(options, rules=replace(options.rules, merges_unattached_lines=True))
    merged = _merge_changed(draft.plain, source.plain, local.files, both_local)
    new = (*local.conflicts, *merged.conflicts)
    new_locations = set(map(locate_conflict, new))
    # `find_lost_changes` looks for these conflicts again after the render.
    recorded = (conflict for conflict in draft.conflicts if conflict.rule != NOT_KEPT_RULE)
    still_valid = (
        conflict
        for conflict in recorded
        if locate_conflict(conflict) not in new_locations and has_conflict_outcome(conflict, merged.files)
    )
    return replace(
        source,
        files=merged.files,
        published_conflicts=tuple(
            conflict for conflict in source.published_conflicts if has_conflict_outcome(conflict, merged.files)
        ),
        draft_conflicts=(*new, *still_valid),
        findings=(*source.findings, *local.findings, *merged.findings),
    )


def _restore_generated(source: PackageSource, options: MergeOptions) -> PackageSource:
    """Return the source of a generated package with every file and field that its controller generates.

    Local changes of generated content are replaced, with a conflict. Other local content is kept.
    """
    plain, files = (
        _overlay_local_content(source.plain, source.base, options),
        _overlay_local_content(source.files, source.base, options),
    )
    known = set(map(locate_conflict, (*source.published_conflicts, *plain.conflicts)))
    draft_conflicts = (conflict for conflict in files.conflicts if locate_conflict(conflict) not in known)
    return replace(
        source,
        plain=plain.files,
        files=files.files,
        published_conflicts=(*source.published_conflicts, *plain.conflicts),
        draft_conflicts=(*source.draft_conflicts, *draft_conflicts),
        findings=(*source.findings, *files.findings),
    )


def _overlay_local_content(local: FileTree, generated: FileTree, options: MergeOptions) -> UpdateResult:
    if local.id == generated.id:
        return UpdateResult(generated)
    # With an empty base, both sides have added all their content. Where both set a field, the generated value wins.
    upstream_wins = replace(options, rules=replace(options.rules, winner="upstream"))
    merged = merge_packages(FileTree(), generated, local, upstream_wins)
    # A file that cannot be merged is taken from the generated files, if they have it.
    whole = {
        conflict.file: generated[conflict.file]
        for conflict in merged.conflicts
        if conflict.kind == "file" and conflict.file in generated
    }
    conflicts = (
        replace(conflict, base=conflict.upstream, chosen="upstream", rule="generated") for conflict in merged.conflicts
    )
    return replace(merged, files=merged.files.with_files(whole), conflicts=tuple(conflicts))


def _extract_local_source(package: BranchPackage, options: MergeOptions) -> UpdateResult:
    """Return the source of a package on a branch: without the effects of rendering, with its local changes.

    A local change of a rendered field is kept here. A later rule that sets the field again overrules it, with a
    conflict.
    """
    if not package.is_edited:
        return UpdateResult(package.merged)
    rules = replace(options.rules, winner="local", merges_scalar_lists=True)
    # A function may have changed the kind, name or namespace of a resource between the two sides.
    local_wins = replace(options, rules=rules, match_positions=True)
    merged = merge_packages(package.rendered, package.merged, package.files, local_wins)
    # Local changes win every merge. A lost one, for example in a file that is no longer valid, needs a conflict.
    return replace(merged, conflicts=tuple(conflict for conflict in merged.conflicts if conflict.chosen == "upstream"))


def _merge_changed(base: FileTree, upstream: FileTree, local: FileTree, options: MergeOptions) -> UpdateResult:
    if local.id in (base.id, upstream.id):
        return UpdateResult(upstream)
    return UpdateResult(local) if base.id == upstream.id else merge_packages(base, upstream, local, options)


def find_overruled_changes(
    source: PackageSource, result: FileTree, rule: str, options: MergeOptions
) -> Iterator[Conflict]:
    """Yield a conflict for each local change that a rule replaced; `result` is the package after that rule."""
    if source.is_edited:
        for conflict in merge_packages(source.base, result, source.files, options).conflicts:
            # The variant sets the upstream of the Kptfile, and the lock of an adopted package is not a local change.
            if conflict.file != KPTFILE or not conflict.pointer.startswith("/upstream"):
                yield replace(conflict, chosen="rule", rule=rule)


def is_without_upstream(files: FileTree) -> bool:
    """Return whether a package has no upstream: it has a Kptfile without an upstreamLock."""
    return KPTFILE in files and read_upstream_lock(files) is None


class PackageTooLargeError(ExpectedError):
    """A package exceeds a limit for reading, which the message names. Only this package is blocked."""


class PackageMalformedError(PackageTooLargeError):
    """The tree of a package has entries that contradict each other, or that file systems do not support."""


class PackageContentStore(Protocol):
    """Contents of trees: upstream packages, and packages on the branches of a target.

    `read_upstream` and `read_tree` raise PackageTooLargeError.
    """

    def read_upstream(self, upstream: UpstreamPackage) -> FileTree:
        """Return the files of an upstream package."""
        ...

    def is_ancestor(self, upstream: UpstreamPackage, commit: CommitId) -> bool:
        """Return whether an upstream's commit is an ancestor of `commit`, as far as the history is known."""
        ...

    def read_tree(self, tree: TreeId) -> FileTree:
        """Return the files of a tree of the target."""
        ...

    def find_locked_tree(self, files: FileTree) -> TreeId | None:
        """Return the upstream tree of a Kptfile's lock; None if it cannot be found."""
        ...

    def read_function_fingerprint(self, name: str) -> str:
        """Return the current fingerprint of a function outside of this process, "" if it is unknown."""
        ...

    def store_tree(self, files: FileTree) -> TreeId:
        """Keep a tree that the state will refer to, and return its id."""
        ...


def read_render_inputs(
    source: UpstreamPackage | GeneratedSource,
    record: PackageRecord,
    observed: ObservedPackage,
    contents: PackageContentStore,
) -> RenderInputs | None:
    """Read the inputs of a render.

    A package without a recorded version was not rendered by the reconciler. It is based on the upstream of its lock,
    or, for a generated package, on nothing.

    Returns:
        The inputs; None if the upstream that the package is based on cannot be found.
    """
    files = source.files if isinstance(source, GeneratedSource) else contents.read_upstream(source)
    published = _read_branch_package(observed.published, record.published_version, source, files, contents)
    drafted = _read_branch_package(observed.drafted, record.draft_version, source, files, contents)
    if (published is None and observed.published) or (drafted is None and observed.drafted):
        return None
    if drafted:
        drafted = replace(drafted, conflicts=tuple(map(parse_conflict, record.conflicts)))
    previous = _read_previous_render(record, contents, drafted or published)
    return RenderInputs(
        files,
        published,
        drafted,
        previous,
        isinstance(source, GeneratedSource),
        _get_previous_overrides(record, observed),
        _find_deleted_tree(record, observed),
    )


def _read_branch_package(
    tree: TreeId | None,
    version: RenderedVersion | None,
    source: UpstreamPackage | GeneratedSource,
    source_files: FileTree,
    contents: PackageContentStore,
) -> BranchPackage | None:
    if tree is None:
        return None
    files = contents.read_tree(tree)
    if version:
        trees = {tree: files, source_files.id: source_files}
        for name in (version.rendered, version.merged, version.plain, version.base):
            trees[name] = trees.get(name) or contents.read_tree(name)
        return BranchPackage(
            files, trees[version.rendered], trees[version.merged], trees[version.plain], trees[version.base]
        )
    base = FileTree() if isinstance(source, GeneratedSource) else _read_base(files, source, source_files, contents)
    return BranchPackage(files, files, files, base, base) if base is not None else None


def _read_base(
    files: FileTree, upstream: UpstreamPackage, source_files: FileTree, contents: PackageContentStore
) -> FileTree | None:
    """Return the upstream that a package is based on. A package without upstream is never updated, and needs none."""
    if is_without_upstream(files):
        return source_files
    tree = contents.find_locked_tree(files)
    if tree is None or tree == upstream.tree:
        return source_files if tree else None
    return contents.read_upstream(replace(upstream, tree=tree))


def _find_deleted_tree(record: PackageRecord, observed: ObservedPackage) -> TreeId | None:
    """Return the last published tree of a package that was deleted without a removal draft."""
    if observed.published or not record.is_owned or record.published_version or not record.revisions:
        return None
    return record.revisions[-1].version.rendered


def _get_previous_overrides(record: PackageRecord, observed: ObservedPackage) -> PreviousOverrides:
    policies = (parse_policy_name(name) for name in record.policy_usage)
    # An owned package without a recorded render was recovered from its status file.
    is_known = record.desired_tree is not None or not record.is_owned
    return PreviousOverrides(
        tuple(policy for policy in policies if policy),
        record.find_published_rule_texts(observed.published),
        is_known,
    )


def _read_previous_render(
    record: PackageRecord, contents: PackageContentStore, package: BranchPackage | None
) -> PreviousRender | None:
    last = record.draft_version or record.published_version
    if last is None:
        return None
    files = package.files if package else None
    return PreviousRender(contents.read_tree(last.rendered), contents.read_tree(last.base), files)
