"""Sources of packages, and the conflicts of local changes with sources.

A package source is an upstream package, or generated files. A render merges the local changes of the target branch and
of the draft into the source. Recorded conflicts contain no secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from reconciler.api.kpt import UpdateStrategy
from reconciler.catalog.files import CommitId, FileTree, SpecialEntry, TreeId
from reconciler.controllers.override_policies.policy_usage import parse_policy_name
from reconciler.controllers.results import GeneratedSource, PreviousRender, UpstreamPackage
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.internal_errors import ExpectedError
from reconciler.krm.json_pointer import PointerError, parse_pointer, resolve_pointer
from reconciler.krm.json_text import encode_canonical_json
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.charts.value_sources import ChartValues
from reconciler.packages.clone import read_upstream, read_upstream_lock
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import Package, PackageResource
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.sides import UpdateResult
from reconciler.packages.update.three_way import get_update_strategy, merge_packages, update_package
from reconciler.planning.model.cluster_overrides import PreviousOverrides
from reconciler.planning.model.state import ObservedPackage, PackageRecord, RenderedVersion
from reconciler.redaction import MASK, contains_secret, is_sealed_path

_SIDES = ("base", "local", "upstream")
_PARTS = frozenset({"kind", "chosen", "rule"})
_CHOICES = ("upstream", "local", "rule")


def serialize_conflict(conflict: Conflict) -> dict[str, Any]:
    """Serialize a conflict. Sides without a value are omitted.

    Values of Secrets, and other values that contain a secret, are masked. In a conflict about a whole resource, file or
    package, the value of a side is True instead of the content.
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
    """Return the valid conflicts of a status file. Invalid entries are omitted."""
    entries = recorded if isinstance(recorded, list) else ()
    return tuple(entry for entry in entries if _is_conflict(entry))


def are_conflicts_readable(recorded: object) -> bool:
    """Return whether all conflicts of a status file are valid."""
    return recorded is None or (isinstance(recorded, list) and all(map(_is_conflict, recorded)))


def _is_conflict(entry: object) -> bool:
    return isinstance(entry, dict) and entry.keys() >= _PARTS and entry["chosen"] in _CHOICES


def deduplicate_conflicts(conflicts: Iterable[Conflict]) -> tuple[Conflict, ...]:
    """Return the conflicts without duplicates. Two conflicts are duplicates if their serialized forms are equal."""
    return tuple({encode_canonical_json(serialize_conflict(conflict)): conflict for conflict in conflicts}.values())


def locate_conflict(conflict: Conflict) -> tuple[str, str, str]:
    """Return the location of a conflict: file, resource and JSON pointer."""
    return conflict.file, conflict.resource, conflict.pointer


def has_conflict_outcome(conflict: Conflict, files: FileTree) -> bool:
    """Return whether a package still contains the value that won a conflict. A later change can replace this value.

    For a whole resource, file or package, only the existence is checked. For list elements, the result is always True.
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
    # Parse only the file of the conflict, to save time.
    content = FileTree({conflict.file: files[conflict.file]}) if conflict.file in files else FileTree()
    return (resource for resource in Package(content).resources if resource.key.reference == conflict.resource)


def _get_value_at(data: Any, pointer: str) -> Any:
    try:
        return resolve_pointer(data, parse_pointer(pointer))
    except PointerError:
        return ABSENT


def _mask_sides(conflict: Conflict, sides: Mapping[str, Any]) -> Mapping[str, Any]:
    if conflict.kind not in ("field", "element"):
        return dict.fromkeys(sides, True)
    is_hidden = (
        conflict.resource.startswith("Secret/")
        or (conflict.resource.startswith("SealedSecret/") and is_sealed_path(parse_pointer(conflict.pointer)))
        or any(map(contains_secret, sides.values()))
    )
    return dict.fromkeys(sides, MASK) if is_hidden else sides


@dataclass(frozen=True)
class BranchPackage:
    """A package on a branch, and the rendered version that it is based on. The differences are the local changes.

    If the reconciler did not render the package, `base` contains the upstream of the package's `upstreamLock`. All
    other trees then contain the files on the branch.

    Attributes:
        files: The files on the branch.
        rendered: The files of the rendered version.
        merged: The source of the rendered version with all local changes. The source is the input of the pipeline.
        plain: As `merged`, but without the local changes of the draft.
        base: The source of the rendered version without local changes.
        conflicts: The conflicts that were recorded for the rendered version.
        is_foreign: Whether the reconciler did not render the package, and the package has no Kptfile. The renderer then
            determines the local changes.
    """

    files: FileTree
    rendered: FileTree
    merged: FileTree
    plain: FileTree
    base: FileTree
    conflicts: tuple[Conflict, ...] = ()
    is_foreign: bool = False

    @property
    def follows_upstream(self) -> bool:
        """Whether the package has an upstream."""
        return not is_without_upstream(self.rendered)

    @property
    def is_edited(self) -> bool:
        """Whether the package has local changes."""
        return self.files.id != self.rendered.id

    def without_special_entries(self) -> BranchPackage:
        """Return the package without symbolic links and submodules, because merges do not support them."""
        trees = {name: getattr(self, name).with_special_entries({}) for name in _TREES}
        return replace(self, **trees)


_TREES = ("files", "rendered", "merged", "plain", "base")


@dataclass(frozen=True)
class RenderInputs:
    """All inputs of a render that do not come from the catalog.

    Attributes:
        source_files: The files of the upstream, or the generated files.
        previous_render: The last rendered version.
        is_generated: Whether a controller generated the source files.
        previous_overrides: The override policies of the last rendered version.
        deleted_tree: The last published tree, if the package was deleted from the target branch without a removal
            draft.
        source_findings: Warnings and information about the render of the source.
        values: The values of each chart. () if the values include no values file from a source.
        programs: Maps the trace key of each program that rendered the source to the identity of the program.
        charts: The charts that were downloaded for the functions of the package.
    """

    source_files: FileTree
    published: BranchPackage | None = None
    drafted: BranchPackage | None = None
    previous_render: PreviousRender | None = None
    is_generated: bool = False
    previous_overrides: PreviousOverrides = field(default_factory=PreviousOverrides)
    deleted_tree: TreeId | None = None
    source_findings: tuple[Finding, ...] = ()
    programs: Mapping[str, str] = field(default_factory=dict)
    values: tuple[ChartValues, ...] = ()
    charts: FileTree = field(default_factory=FileTree)

    @property
    def needs_merge(self) -> bool:
        """Whether the target branch or the draft contains local changes, which must be merged with the source."""
        sides = [side for side in (self.published, self.drafted) if side]
        return any(side.is_edited or side.merged.id != side.base.id for side in sides)


@dataclass(frozen=True)
class PackageSource:
    """Input of the function pipeline. If `findings` contains an error, the files must not be used.

    Attributes:
        files: The source files with all local changes.
        plain: The source files without the local changes of the draft.
        base: The source files without local changes.
        follows_upstream: False for a package that was adopted without an `upstreamLock`. Such a package is never
            updated.
        published_conflicts: The conflicts of local changes on the target branch. Each render computes them again.
        draft_conflicts: The conflicts of local changes on the draft. They are recorded while the package still contains
            the value that won.
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
        """Conflicts of local changes on the target branch, followed by those of local changes on the draft."""
        return deduplicate_conflicts((*self.published_conflicts, *self.draft_conflicts))

    @property
    def is_edited(self) -> bool:
        """Whether the source contains local changes."""
        return self.files.id != self.base.id


def find_local_special_entries(inputs: RenderInputs) -> Mapping[str, SpecialEntry]:
    """Return the symbolic links and submodules on the target branch, with the local changes on the draft.

    Renders create no such entries. Therefore, all of them are local changes.
    """
    published = inputs.published.files.special_entries if inputs.published else {}
    if inputs.drafted is None:
        return published
    drafted, rendered = inputs.drafted.files.special_entries, inputs.drafted.rendered.special_entries
    changed = {path for path in {*drafted, *rendered} if drafted.get(path) != rendered.get(path)}
    unchanged = {path: entry for path, entry in published.items() if path not in changed}
    return {**unchanged, **{path: drafted[path] for path in changed if path in drafted}}


def remove_special_entries(inputs: RenderInputs) -> RenderInputs:
    """Return the inputs without the symbolic links and submodules of the packages."""
    return replace(
        inputs,
        published=inputs.published.without_special_entries() if inputs.published else None,
        drafted=inputs.drafted.without_special_entries() if inputs.drafted else None,
    )


# The value of `Conflict.rule` if a local change is missing after the render, although no merge reported a conflict.
NOT_KEPT_RULE = "not-kept"
# Update strategies that replace local changes. Each replaced local change causes a conflict whose field `rule` contains
# the name of the strategy.
REPLACING_STRATEGIES: tuple[UpdateStrategy, ...] = ("copy-merge", "force-delete-replace")
EMPTY_SOURCE = PackageSource(FileTree(), FileTree(), FileTree())


def merge_source(inputs: RenderInputs, strategy: UpdateStrategy | None, options: MergeOptions) -> PackageSource:
    """Merge the local changes of the target branch and then those of the draft into the upstream or generated files.

    If there are no local changes, the result contains exactly the upstream or generated files.

    Args:
        strategy: The update strategy, or None for the strategy in the Kptfile.
    """
    source = _merge_published_changes(inputs, strategy, options)
    if select_errors(source.findings):
        return source
    if inputs.drafted:
        source = _merge_draft_changes(source, inputs.drafted, options)
    return _restore_generated(source, options) if inputs.is_generated else source


def _merge_published_changes(
    inputs: RenderInputs, strategy: UpdateStrategy | None, options: MergeOptions
) -> PackageSource:
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
    base: FileTree, local: FileTree, updated: UpdateResult, strategy: UpdateStrategy
) -> list[Conflict]:
    known = {conflict.file for conflict in updated.conflicts}
    paths = sorted(path for path in {*base, *local} if base.get(path) != local.get(path))
    conflicts = []
    for path in paths:
        # Skip the Kptfile, because the update has merged it and has already recorded its conflicts.
        if path == KPTFILE or path in known or updated.files.get(path) == local.get(path):
            continue
        before, changed, after = (
            file.id if (file := tree.get(path)) else ABSENT for tree in (base, local, updated.files)
        )
        conflicts.append(Conflict("file", "", before, changed, after, "upstream", strategy, file=path))
    return conflicts


def _merge_draft_changes(source: PackageSource, draft: BranchPackage, options: MergeOptions) -> PackageSource:
    local = _extract_local_source(draft, options)
    # Merge comments and blank lines line by line, because both sides contain local changes: those of the target branch,
    # and those of the draft.
    both_local = replace(options, rules=replace(options.rules, merges_unattached_lines=True))
    merged = _merge_changed(draft.plain, source.plain, local.files, both_local)
    new = (*local.conflicts, *merged.conflicts)
    new_locations = set(map(locate_conflict, new))
    # Skip recorded conflicts about local changes that a render lost, because `find_lost_changes` detects these
    # conflicts again after the render.
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
    """In a generated package, restore every file and field that the controller generates.

    A replaced local change is recorded as a conflict. Files and fields that people added are kept.
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
    # Merge with an empty base, so that the content of both sides counts as added. If both sides set a field, the
    # generated value is used.
    upstream_wins = replace(options, rules=replace(options.rules, winner="upstream"))
    merged = merge_packages(FileTree(), generated, local, upstream_wins)
    # Use the generated version of each file that cannot be merged.
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
    """Return the source of a package on a branch, with its local changes. Changes by the render are removed.

    The source also contains local changes of fields that the render sets. If a step of the next render sets such a
    field again, the step wins, and a conflict is recorded.
    """
    if not package.is_edited:
        return UpdateResult(package.merged)
    rules = replace(options.rules, winner="local", merges_scalar_lists=True)
    # Match resources also by their position in the file, because a function can change the kind, name or namespace.
    local_wins = replace(options, rules=rules, match_positions=True, merges_sops_documents=True)
    merged = merge_packages(package.rendered, package.merged, package.files, local_wins)
    # Keep only conflicts whose local change is missing in the result, e.g. because the changed file is not valid YAML.
    # In all other conflicts, the local change has won.
    return replace(merged, conflicts=tuple(conflict for conflict in merged.conflicts if conflict.chosen == "upstream"))


def _merge_changed(base: FileTree, upstream: FileTree, local: FileTree, options: MergeOptions) -> UpdateResult:
    if local.id in (base.id, upstream.id):
        return UpdateResult(upstream)
    return UpdateResult(local) if base.id == upstream.id else merge_packages(base, upstream, local, options)


def find_overruled_changes(
    source: PackageSource, result: FileTree, rule: str, options: MergeOptions
) -> Iterator[Conflict]:
    """Yield a conflict for each local change that a step of the render replaced.

    `rule` is the name of the step. `result` is the package after the step.
    """
    if source.is_edited:
        options = replace(options, merges_sops_documents=True)
        for conflict in merge_packages(source.base, result, source.files, options).conflicts:
            # Ignore `upstream` and `upstreamLock` of the Kptfile, because the variant sets them.
            if conflict.file != KPTFILE or not conflict.pointer.startswith("/upstream"):
                yield replace(conflict, chosen="rule", rule=rule)


def is_without_upstream(files: FileTree) -> bool:
    """Return whether a package has a Kptfile without an `upstreamLock`."""
    return KPTFILE in files and read_upstream_lock(files) is None


class PackageTooLargeError(ExpectedError):
    """A package exceeds a size limit for reading packages.

    The message contains the limit. Only this package is blocked.
    """


class SourceFailedError(ExpectedError):
    """The source of a package cannot be read or rendered now. Only this package is blocked.

    Attributes:
        findings: The errors.
        should_retry: Whether a later pass can succeed although no input changes.
    """

    def __init__(self, findings: tuple[Finding, ...], *, should_retry: bool = False) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings
        self.should_retry = should_retry


@dataclass(frozen=True)
class SourceContent:
    """The files of a package source without local changes.

    Attributes:
        findings: Warnings and information about the render of the source.
        programs: Maps trace keys to the identities of the programs that rendered the source.
        templates: For charts: maps each rendered file to the template file that wrote it.
        values: The values of each chart. () if these values include no values files of sources.
        source_names: Maps each file to the name of its source. {} for a package with one upstream.
        charts: The charts that were downloaded for the functions of the package.
    """

    files: FileTree
    findings: tuple[Finding, ...] = ()
    programs: Mapping[str, str] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=dict)
    values: tuple[ChartValues, ...] = ()
    source_names: Mapping[str, str] = field(default_factory=dict)
    charts: FileTree = field(default_factory=FileTree)


class PackageMalformedError(PackageTooLargeError):
    """The Git tree of a package is malformed: entries contradict each other, or a file system cannot store them."""


class PackageContentStore(Protocol):
    """Access to the contents of packages: upstream packages, and packages on the branches of one target.

    `read_source` and `read_tree` raise PackageTooLargeError.
    """

    def read_source(self, upstream: UpstreamPackage) -> SourceContent:
        """Return the files of an upstream package. Charts and overlays are rendered.

        Raises:
            SourceFailedError: The source cannot be read or rendered now.
        """
        ...

    def read_unrendered_source(self, upstream: UpstreamPackage) -> FileTree:
        """Return the files of an upstream package before a render: the files of a chart and of its dependencies.

        Raises:
            SourceFailedError: The source cannot be read now.
        """
        ...

    def is_ancestor(self, upstream: UpstreamPackage, commit: CommitId) -> bool:
        """Return whether the commit of an upstream is an ancestor of `commit`. Only fetched commits are searched."""
        ...

    def read_tree(self, tree: TreeId) -> FileTree:
        """Return the files of a tree in the repository of the target."""
        ...

    def find_locked_tree(self, files: FileTree) -> TreeId | None:
        """Return the upstream tree that the `upstreamLock` in `files` refers to. Return None if it cannot be found."""
        ...

    def read_function_fingerprint(self, name: str) -> str:
        """Return the fingerprint of a program or container function. Return "" if the fingerprint is unknown."""
        ...

    def store_tree(self, files: FileTree) -> TreeId:
        """Store a tree that the recorded state refers to, and return its ID."""
        ...


def read_render_inputs(
    source: UpstreamPackage | GeneratedSource,
    record: PackageRecord,
    observed: ObservedPackage,
    contents: PackageContentStore,
) -> RenderInputs | None:
    """Read the inputs of a render.

    If the record of a package contains no version, the reconciler has never rendered the package. The merge base is
    then the upstream that the `upstreamLock` of the package refers to. For a generated package, it is an empty tree.

    Returns:
        The inputs, or None if the upstream at the merge base cannot be found.
    """
    content = SourceContent(source.files) if isinstance(source, GeneratedSource) else contents.read_source(source)
    files = content.files
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
        content.findings,
        content.programs,
        content.values,
        content.charts,
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
    if base is None:
        return None
    is_foreign = KPTFILE not in files and not isinstance(source, GeneratedSource)
    return BranchPackage(files, files, files, base, base, is_foreign=is_foreign)


def _read_base(
    files: FileTree, upstream: UpstreamPackage, source_files: FileTree, contents: PackageContentStore
) -> FileTree | None:
    """Return the merge base: the upstream files that a package was created from. Return None if they cannot be found.

    Return `source_files` for a package without an upstream, and for an adopted package without a Kptfile. The
    differences between an adopted package and these files are local changes.
    """
    if is_without_upstream(files) or (KPTFILE not in files and not upstream.is_kpt_package):
        return source_files
    tree = contents.find_locked_tree(files)
    if tree is None or tree == upstream.tree:
        return source_files if tree else None
    return contents.read_source(replace(upstream, tree=tree)).files


def _find_deleted_tree(record: PackageRecord, observed: ObservedPackage) -> TreeId | None:
    if observed.published or not record.is_owned or record.published_version or not record.revisions:
        return None
    return record.revisions[-1].version.rendered


def _get_previous_overrides(record: PackageRecord, observed: ObservedPackage) -> PreviousOverrides:
    policies = (parse_policy_name(name) for name in record.policy_usage)
    # If the record has an owner but no last render, it was restored from the status file of the package. Such a record
    # does not contain the applied rules.
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
