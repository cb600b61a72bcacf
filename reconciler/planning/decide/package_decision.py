"""The decision about one package: Draft, Unchanged or Blocked. The inputs are its variant, its record and its branches.

A downgrade of the upstream is planned like an update, but reviewers see that it is a downgrade. A tag or branch that
has moved is settling until its `settle` duration has passed. Until then, the package keeps its last upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.catalog.trace import DependencyReader, Trace, find_changed_dependencies
from reconciler.controllers.package_variants.chart_provenance import ChartProvenance
from reconciler.controllers.package_variants.codes import VariantCodes
from reconciler.controllers.package_variants.status import (
    build_downstream_exists_conditions,
    build_failed_conditions,
    build_ready_conditions,
    build_stalled_conditions,
    build_waiting_conditions,
)
from reconciler.controllers.package_variants.upstream_resolution import is_older
from reconciler.controllers.results import PackageTarget, SettlingReference, UpstreamPackage, Variant
from reconciler.krm.findings import (
    CommonCodes,
    Finding,
    FindingCode,
    SourceLocation,
    create_internal_error_finding,
    parse_finding,
    select_errors,
    set_package_location,
)
from reconciler.krm.internal_errors import InternalFailure, ScopeFailedError, isolation_boundary
from reconciler.krm.objects import Condition
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.charts.value_sources import ChartValues
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.functions.registry import is_function_trace_key
from reconciler.packages.source_codes import SourceCodes
from reconciler.planning.decide.locked_charts import lock_required_charts
from reconciler.planning.decide.repeated_definitions import list_definitions
from reconciler.planning.model.cluster_overrides import ROLLOUT_DEPENDENCY
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.outcomes import Blocked, Draft, PackageOutcome, PackageRender, Unchanged
from reconciler.planning.model.sources import (
    PackageContentStore,
    PackageMalformedError,
    PackageTooLargeError,
    RenderInputs,
    SourceFailedError,
    read_render_inputs,
    serialize_conflict,
)
from reconciler.planning.model.state import MAX_REVISIONS, ObservedPackage, PackageRecord, RenderedVersion
from reconciler.planning.observe.base_recovery import UnavailableBase
from reconciler.planning.render.templates import remove_template_dependencies

DOWNGRADE_CAUSE = "downgrade"


def is_downgrade(
    upstream: UpstreamPackage, known: Mapping[str, Any], is_behind: Callable[[UpstreamPackage, CommitId], bool]
) -> bool:
    """Return whether an upstream is older than the recorded upstream `known`.

    If the refs show no difference in version, e.g. because a tag was moved, the Git history decides.
    """
    if upstream.sources:
        by_name = {entry["name"]: entry for entry in known.get("sources", ())}
        named = [source for source in upstream.sources if source.name in by_name]
        return any(is_downgrade(source.upstream, by_name[source.name], is_behind) for source in named)
    if not known.get("commit") or (known["repo"], known["directory"]) != (upstream.repo, upstream.directory):
        return False
    new, old = (ref.rpartition("/")[2] for ref in (upstream.ref, known["ref"]))
    if is_older(old, than=new) or upstream.commit == known["commit"]:
        return False
    return is_older(new, than=old) or is_behind(upstream, known["commit"])


def apply_settling(variant: Variant, record: PackageRecord | None, observed: ObservedPackage) -> Variant | Blocked:
    """Return the variant with its upstream, or with the recorded upstream while a moved tag or branch is settling.

    If there is no recorded upstream, the package is blocked until the tag or branch has settled. If a branch has moved,
    but the files of the upstream package are unchanged, the recorded commit is used, so that `upstreamLock` does not
    change.

    Args:
        record: The record of the variant's own package.
    """
    upstream = variant.upstream
    if upstream is None:
        return variant
    known = record.outcome.get("upstream", {}) if record and record.is_owned else {}
    last = upstream.pin(known) if known.get("tree") else None
    is_same_location = last is not None and _has_same_location(upstream, last)
    if last and is_same_location and last.tree == upstream.tree:
        return _keep_upstream(variant, last, None) if upstream.is_floating else replace(variant, settling=None)
    if variant.settling is None:
        return variant
    if last and is_same_location:
        return _keep_upstream(variant, last, variant.settling)
    # Block the package, because no recorded upstream can be used. The reason is that none is recorded, or that the
    # recorded upstream is in a different repository or directory. Do not record the new upstream, because no render has
    # used it.
    return _block_settling(replace(variant, source=last or _clear_version(upstream)), record, observed)


def _clear_version(upstream: UpstreamPackage) -> UpstreamPackage:
    return replace(upstream, ref="", commit=CommitId(""), tree=TreeId(""))


def _keep_upstream(variant: Variant, last: UpstreamPackage, settling: SettlingReference | None) -> Variant:
    return replace(
        variant, source=last, dependencies={**variant.dependencies, "upstream": last.fingerprint}, settling=settling
    )


def _has_same_location(upstream: UpstreamPackage, last: UpstreamPackage) -> bool:
    return (upstream.repo, upstream.directory) == (last.repo, last.directory)


def _block_settling(variant: Variant, record: PackageRecord | None, observed: ObservedPackage) -> Blocked:
    # Report no error, because the package only waits until its tag or branch has settled.
    assert variant.settling
    conditions = build_stalled_conditions(VariantCodes.UPSTREAM_SETTLING.name, variant.settling.message)
    return Blocked(variant, record, conditions, list_settling_findings(variant), observed)


def list_settling_findings(variant: Variant) -> tuple[Finding, ...]:
    """Return the finding about a settling tag or branch. Return () if nothing is settling.

    The state does not store this finding, because each pass creates it again.
    """
    if variant.settling is None:
        return ()
    return (
        VariantCodes.UPSTREAM_SETTLING.finding(
            variant.settling.message, SourceLocation(object=variant.owner.key.reference)
        ),
    )


READY_CONDITION, VALID_CONDITION = build_ready_conditions()


RenderFunction = Callable[[Variant, RenderInputs], PackageRender]


@dataclass(frozen=True)
class DecisionInput:
    """All inputs of the decision about one package, except for the contents of files.

    Attributes:
        record: The record of the package. Its owner can be different from the owner of the variant.
        nested_packages: The packages that contain the package, or are inside the package.
        is_owner_gone: Whether the recorded owner was deleted from the config, or does not request the package any more.
        obstacle: A local file that occupies the path of the package, as `<branch>:<path>`.
        unavailable_base: The reason why the merge base of a package without a recorded state is unknown.
    """

    variant: Variant
    record: PackageRecord | None
    observed: ObservedPackage
    nested_packages: tuple[str, ...] = ()
    is_owner_gone: bool = False
    obstacle: str | None = None
    unavailable_base: UnavailableBase | None = None

    @property
    def own_record(self) -> PackageRecord | None:
        """The record, if the variant owns the package or becomes its owner. None if another object owns the package."""
        if self.record is None or self.record.owner.key == self.variant.owner.key:
            return self.record
        if not self.record.is_owned:
            # The package has no owner. Keep only its revision numbers and workspace numbers, because these numbers must
            # not be used again.
            variant = self.variant
            return replace(
                self.record.to_tombstone(),
                owner=variant.owner,
                labels=variant.labels,
                annotations=variant.annotations,
            )
        return replace(self.record, owner=self.variant.owner) if self.is_owner_gone else None


def decide_package(
    inputs: DecisionInput, reader: DependencyReader, contents: PackageContentStore, render: RenderFunction
) -> PackageOutcome:
    """Return the outcome of one package. The package is rendered only if a dependency or a branch has changed."""
    try:
        with isolation_boundary(f"package {inputs.variant.target}"):
            inputs = _keep_recorded_commit(inputs)
            return _decide(inputs, reader, contents, render)
    except ScopeFailedError as error:
        return block_unexpected_failure(inputs, _add_package_scope(error.failure, inputs))
    except PackageMalformedError as error:
        message = f"package {inputs.variant.target} cannot be rendered, because {error}"
        return block_failed(
            inputs, (_create_finding(inputs, PlanningCodes.PATH_REFUSED, message),), inputs.variant.dependencies
        )
    except PackageTooLargeError as error:
        message = f"package {inputs.variant.target} cannot be rendered, because {error}"
        return block_failed(
            inputs, (_create_finding(inputs, PlanningCodes.PACKAGE_TOO_LARGE, message),), inputs.variant.dependencies
        )
    except SourceFailedError as error:
        findings, reason = _add_owner(error.findings, inputs), error.findings[0].code
        blocked = block_failed(inputs, findings, inputs.variant.dependencies, reason)
        return replace(blocked, trace={}, should_retry=True) if error.should_retry else blocked
    except InterruptedFunctionError as error:
        message = (
            f"package {inputs.variant.target} was not changed, because {error}. The daemon tries again in the next pass"
        )
        blocked = block_failed(inputs, (_create_finding(inputs, PlanningCodes.FUNCTION_INTERRUPTED, message),), {})
        return replace(blocked, should_retry=True)


def _decide(
    inputs: DecisionInput, reader: DependencyReader, contents: PackageContentStore, render: RenderFunction
) -> PackageOutcome:
    record = inputs.own_record
    if inputs.unavailable_base:
        return _block_unavailable_base(inputs, inputs.unavailable_base)
    if (record is None or not record.is_owned) and (refusal := _refuse_new_package(inputs)):
        return refusal
    if inputs.obstacle:
        return _block_obstacle(inputs, inputs.obstacle)
    if isinstance(settled := apply_settling(inputs.variant, record, inputs.observed), Blocked):
        return settled
    inputs = replace(inputs, variant=_add_rewritten_versions(settled, record))
    if record is None:
        return _render(inputs, (), contents, render)
    changed = _find_changed_dependencies(inputs.variant, record.trace, reader, contents)
    if not changed and (outcome := _reuse_outcome(inputs, record)):
        return outcome
    return _render(inputs, changed, contents, render)


def _add_rewritten_versions(variant: Variant, record: PackageRecord | None) -> Variant:
    """Add a warning for each source whose chart repository or registry now has different files for the same version."""
    upstream, known = variant.upstream, record.outcome.get("upstream", {}) if record and record.is_owned else {}
    if upstream is None or not known:
        return variant
    by_name = {entry["name"]: entry for entry in known.get("sources", ())} if upstream.sources else {"": known}
    findings = tuple(
        finding
        for source in upstream.named_packages
        # Check only sources with resources. The tree of a source with only values files also changes if the package
        # selects different files.
        if source.has_resources and (finding := _find_rewritten(variant, source.upstream, by_name.get(source.name, {})))
    )
    return replace(variant, findings=(*variant.findings, *findings)) if findings else variant


def _find_rewritten(variant: Variant, upstream: UpstreamPackage, known: Mapping[str, Any]) -> Finding | None:
    if upstream.artifacts is None or not known.get("tree"):
        return None
    # Check only versions, because the content of a version must not change. A floating tag may move to a new digest.
    is_version = upstream.type == "helm" or not upstream.is_floating
    is_same = (known["repo"], known["directory"], known["ref"]) == (upstream.repo, upstream.directory, upstream.ref)
    if not (is_version and is_same) or known["tree"] == upstream.tree:
        return None
    message = (
        f"{variant.target}: {upstream.repo} has different files than before for {upstream.directory} {upstream.ref}."
        f" The digest was {known['commit']}, and is {upstream.commit} now. Next step: review the draft. To require one"
        " of the digests, set spec.upstream.digest"
    )
    return SourceCodes.VERSION_REWRITTEN.finding(message, SourceLocation(object=variant.owner.key.reference))


def _find_changed_dependencies(
    variant: Variant, trace: Trace, reader: DependencyReader, contents: PackageContentStore
) -> tuple[str, ...]:
    functions = {
        name: contents.read_function_fingerprint(name) or recorded
        for name, recorded in trace.items()
        if is_function_trace_key(name)
    }
    return find_changed_dependencies(trace, {**variant.dependencies, **functions}, reader)


def is_render_current(inputs: DecisionInput, reader: DependencyReader, contents: PackageContentStore) -> bool:
    """Return whether the dependencies of a package's last render are unchanged. The progress of rollouts is ignored."""
    inputs = _keep_recorded_commit(inputs)
    record = inputs.own_record
    settled = apply_settling(inputs.variant, record, inputs.observed)
    if record is None or isinstance(settled, Blocked):
        return False
    trace = {
        name: fingerprint for name, fingerprint in record.trace.items() if not name.startswith(f"{ROLLOUT_DEPENDENCY} ")
    }
    # Ignore dependencies on Kafka templates, because changes of other packages change them. Other packages of the
    # cluster must not affect the progress of a rollout.
    return not _find_changed_dependencies(settled, remove_template_dependencies(trace), reader, contents)


def _keep_recorded_commit(inputs: DecisionInput) -> DecisionInput:
    """Use the recorded commit of each upstream whose ref and content are unchanged, even if its commit has changed.

    The recorded digests of required charts are used too.
    """
    record = inputs.record
    known = record.outcome.get("upstream", {}) if record else {}
    if (upstream := inputs.variant.upstream) is None:
        return inputs
    locked = lock_required_charts(upstream, known)
    kept = _keep_source_commits(locked, known) if upstream.sources else _keep_commit(locked, known)
    if kept is upstream:
        return inputs
    dependencies = {**inputs.variant.dependencies, "upstream": locked.fingerprint}
    changed = {"source": kept} if locked is upstream else {"source": kept, "dependencies": dependencies}
    return replace(inputs, variant=replace(inputs.variant, **changed))


def _keep_source_commits(upstream: UpstreamPackage, known: Mapping[str, Any]) -> UpstreamPackage:
    """Keep the recorded commit of each source whose content has not changed."""
    by_name = {entry["name"]: entry for entry in known.get("sources", ())}
    sources = tuple(
        replace(source, upstream=_keep_commit(source.upstream, by_name.get(source.name, {})))
        for source in upstream.sources
    )
    return upstream.with_sources(sources)


def _keep_commit(upstream: UpstreamPackage, known: Mapping[str, Any]) -> UpstreamPackage:
    if not _is_same_upstream(upstream, known):
        return upstream
    return replace(upstream, commit=known["commit"], committer_seconds=known["seconds"])


def _reuse_outcome(inputs: DecisionInput, record: PackageRecord) -> PackageOutcome | None:
    """Return the outcome of a package that needs no render. Return None if a render is necessary.

    No render is necessary if a branch contains the desired tree, or if the package is still blocked for the same
    reason.
    """
    # If the recorded outcome is a removal, its key `before` contains the previous outcome. Use the previous outcome,
    # because the package is requested again.
    record = replace(record, outcome=record.outcome.get("before", record.outcome))
    if record.outcome.get("kind") == "blocked":
        return _repeat_blocked(inputs, record) if record.observed == inputs.observed else None
    observed = _clear_pass_flags(inputs.observed)
    is_unchanged = record.observed == observed
    if record.desired_tree is None or (list_edited_branches(record, inputs.observed) and not is_unchanged):
        return None
    findings = tuple(parse_finding(entry) for entry in record.outcome.get("findings", ()))
    outcome = _find_unchanged(inputs, record, findings)
    # Reuse the outcome `drafted` only if the target branch did not change. Otherwise, the draft can contain local
    # changes that a person reverted on the target branch.
    is_draft_of_published = (
        outcome
        and outcome.reason == "drafted"
        and record.draft_version
        and record.draft_version.against == observed.published
    )
    return (
        outcome
        if outcome and (is_unchanged or is_draft_of_published or outcome.reason in ("published", "adopted"))
        else None
    )


def _find_unchanged(inputs: DecisionInput, record: PackageRecord, findings: tuple[Finding, ...]) -> Unchanged | None:
    """Return Unchanged if a branch contains the recorded desired tree, or if a person declined this tree.

    Otherwise, return None.
    """
    published, drafted, observed, desired = (
        record.published_version, record.draft_version, inputs.observed, record.desired_tree
    )  # fmt: skip
    should_withdraw = drafted is not None and _can_withdraw(drafted, observed)
    if published and observed.published == desired and published.review == record.review_digest:
        reason = "published" if published.rendered == desired else "published with edits"
    elif drafted and (observed.drafted or drafted.rendered) == desired and drafted.review == record.review_digest:
        reason, should_withdraw = "drafted", False
    elif desired in record.declined_trees:
        reason = "declined"
    elif record.is_owned and not published and observed.published == desired:
        reason = "adopted"
    else:
        return None
    if list_edited_branches(record, observed) or reason in ("declined", "drafted"):
        record = replace(record, observed=_clear_pass_flags(observed, should_withdraw))
    return Unchanged(inputs.variant, record, reason, should_withdraw, findings)


def _clear_pass_flags(observed: ObservedPackage, should_withdraw: bool = False) -> ObservedPackage:
    """Return the observed trees of a package without a new version. The flags `is_frozen` and `is_stuck` are False.

    These flags are not needed, because they only prevent the write of a new version to the draft. If `should_withdraw`
    is True, the result contains no draft, because this pass deletes the draft.
    """
    return ObservedPackage(observed.published, None if should_withdraw else observed.drafted)


def _can_withdraw(version: RenderedVersion, observed: ObservedPackage) -> bool:
    # Keep a draft with local changes. Also keep a draft that is proposed or cannot be updated, because such a draft
    # must not be changed.
    return not (observed.is_frozen or observed.is_stuck) and observed.drafted in (None, version.rendered)


def _refuse_new_package(inputs: DecisionInput) -> Blocked | None:
    """Block a package that the variant does not own and must not change.

    Return None if the variant can create the package.
    """
    variant, record, observed = inputs.variant, inputs.record, inputs.observed
    if record is not None and record.is_owned:
        message = (
            f"{variant.owner.key} cannot change package {variant.target}, because {record.owner.key} owns this package."
            " Next step: change the package name in one of the two objects"
        )
        return block_stalled(inputs, PlanningCodes.OWNERSHIP_CONFLICT, message)
    if inputs.nested_packages:
        message = (
            f"package {variant.target} cannot be created, because"
            f" {_describe_nesting(variant.target, inputs.nested_packages)}, and packages cannot be nested. Next step:"
            " change the package name"
        )
        return block_stalled(inputs, PlanningCodes.DOWNSTREAM_CONFLICT, message)
    if variant.adoption == "adoptNone" and (observed.published or observed.drafted):
        return _block_existing_package(inputs)
    return None


def _describe_nesting(target: PackageTarget, nested: Collection[str]) -> str:
    parents = sorted({name for name in nested if target.package.startswith(f"{name}/")})
    children = sorted(set(nested).difference(parents))
    groups = (("is inside", parents), ("contains", children))
    return " and ".join(
        f"its path {relation} the path of {', '.join(f'{target.repository}/{name}' for name in names)}"
        for relation, names in groups
        if names
    )


def _block_obstacle(inputs: DecisionInput, obstacle: str) -> Blocked:
    """Block a package whose path is occupied by a local file, because a draft of the package would delete this file."""
    branch, _, path = obstacle.partition(":")
    message = (
        f'package {inputs.variant.target} cannot be written, because "{path}" on branch "{branch}" occupies'
        " the path of a"
        f' folder or file of the package. Next step: move or delete "{path}"'
    )
    # Record no trace, so that the next pass decides about the package again.
    return block_failed(inputs, (_create_finding(inputs, PlanningCodes.LOCAL_FILE_IN_THE_WAY, message),), {})


def _block_existing_package(inputs: DecisionInput) -> Blocked:
    target = inputs.variant.target
    if inputs.variant.upstream:
        exists = build_downstream_exists_conditions(target.repository, target.package)[0]
        return block_stalled(inputs, PlanningCodes.DOWNSTREAM_EXISTS, exists.message)
    message = (
        f"a directory without an owner exists at the path of package {target}. Next step: move the directory. To adopt"
        ' the directory, annotate all objects of the package with reconciler.dev/adopt: "true"'
    )
    return block_stalled(inputs, PlanningCodes.DIRECTORY_NOT_OWNED, message)


def _render(
    inputs: DecisionInput, changed: tuple[str, ...], contents: PackageContentStore, render: RenderFunction
) -> PackageOutcome:
    variant = inputs.variant
    record = inputs.own_record or PackageRecord(variant.owner, labels=variant.labels, annotations=variant.annotations)
    render_inputs = read_render_inputs(variant.source, record, inputs.observed, contents)
    if render_inputs is None:
        assert variant.upstream, "a generated package has no upstream that could be missing"
        return _block_missing_merge_base(inputs, variant.upstream)
    rendered = render(variant, render_inputs)
    trace = {**rendered.trace, **render_inputs.programs, **variant.dependencies}
    if select_errors(rendered.findings):
        blocked = block_failed(inputs, rendered.findings, trace, rendered.blocking_code)
        return replace(blocked, policy_usage=rendered.policy_usage)
    record = replace(
        record,
        owner=variant.owner,
        is_owned=True,
        trace=trace,
        desired_tree=rendered.files.id,
        review_digest=rendered.review_digest,
        conflicts=tuple(serialize_conflict(conflict) for conflict in rendered.source.draft_conflicts),
        policy_usage=rendered.policy_usage,
        rule_texts=rendered.rule_texts,
        definitions=list_definitions(rendered.files),
    )
    record = _decline_without_local_changes(record, rendered, inputs)
    inputs = _add_chart_values(inputs, render_inputs.values)
    if unchanged := _find_unchanged(inputs, record, rendered.findings):
        return unchanged
    return _block_unwritable_draft(inputs, trace) or _build_draft(inputs, record, rendered, contents, changed)


def _decline_without_local_changes(
    record: PackageRecord, rendered: PackageRender, inputs: DecisionInput
) -> PackageRecord:
    """Decline the rendered version if a person just rejected the same version with local changes.

    The versions are the same if their dependencies and their sources without local changes are equal.
    """
    if not record.declined_source:
        return record
    previous = inputs.own_record.trace if inputs.own_record else {}
    is_same = all(previous.get(name) == fingerprint for name, fingerprint in record.trace.items())
    if inputs.observed.drafted or rendered.source.plain.id != record.declined_source or not is_same:
        return replace(record, declined_source=None)
    return replace(
        record, declined_trees=(*record.declined_trees, rendered.files.id)[-MAX_REVISIONS:], declined_source=None
    )


def _build_draft(
    inputs: DecisionInput,
    record: PackageRecord,
    rendered: PackageRender,
    contents: PackageContentStore,
    changed: tuple[str, ...],
) -> Draft:
    observed, source = inputs.observed, rendered.source
    previous = observed.drafted or observed.published
    base, plain, merged = (contents.store_tree(files) for files in (source.base, source.plain, source.files))
    return Draft(
        inputs.variant,
        rendered,
        record,
        observed,
        base,
        plain,
        merged,
        _choose_task(inputs, base),
        contents.read_tree(previous) if previous else FileTree(),
        _list_causes(inputs, changed, contents),
    )


def _add_chart_values(inputs: DecisionInput, values: tuple[ChartValues, ...]) -> DecisionInput:
    """Add `values` to the provenance of the variant: the values files that the render read for charts and sources."""
    provenance = inputs.variant.provenance
    if not values or not isinstance(provenance, ChartProvenance):
        return inputs
    return replace(inputs, variant=replace(inputs.variant, provenance=replace(provenance, values=values)))


def _block_unwritable_draft(inputs: DecisionInput, trace: Trace) -> Blocked | None:
    if inputs.observed.is_frozen:
        return _block_frozen_draft(inputs, trace)
    return _block_stuck_draft(inputs, trace) if inputs.observed.is_stuck else None


def _block_missing_merge_base(inputs: DecisionInput, upstream: UpstreamPackage) -> Blocked:
    if not upstream.is_git_package:
        message = (
            f"package {inputs.variant.target} has no recorded state and no valid status file, so the merge base of its"
            " local changes is unknown. Next step: restore the status file. Otherwise, delete the Kptfile of the"
            " package, and set `adoptionPolicy: adoptExisting`. All differences from the upstream then count as local"
            " changes"
        )
        return _block_unavailable_base(inputs, UnavailableBase(message))
    message = (
        f"package {inputs.variant.target} cannot be updated to {upstream.ref}, because the reconciler did not render"
        " the package, and no Repository contains the commit in its upstreamLock. Next step: correct this commit. To"
        " adopt the package without updates instead, delete the upstreamLock"
    )
    return block_failed(
        inputs, (_create_finding(inputs, PlanningCodes.MERGE_BASE_MISSING, message),), inputs.variant.dependencies
    )


def _block_unavailable_base(inputs: DecisionInput, base: UnavailableBase) -> Blocked:
    # Record no outcome, so that the next pass tries to recover the base again.
    if failure := base.failure:
        return block_unexpected_failure(inputs, failure)
    finding = _create_finding(inputs, SourceCodes.BASE_UNAVAILABLE, base.message)
    return replace(block_failed(inputs, (finding,), {}, finding.code), should_retry=True)


def list_edited_branches(record: PackageRecord, observed: ObservedPackage) -> tuple[str, ...]:
    """Return the branches that contain local changes of the package: the target branch, the draft, both or none.

    If the package was never drafted, its content on the target branch was adopted, and does not count as a local
    change.
    """
    is_known = record.published_version is not None or record.draft_version is not None
    is_branch_edited = (
        is_known
        and observed.published is not None
        and (not record.published_version or observed.published != record.published_version.rendered)
    )
    is_draft_edited = observed.drafted is not None and (
        not record.draft_version or observed.drafted != record.draft_version.rendered
    )
    branches = (("the target branch", is_branch_edited), ("its draft", is_draft_edited))
    return tuple(name for name, is_edited in branches if is_edited)


def _block_stuck_draft(inputs: DecisionInput, trace: Trace) -> Blocked:
    message = (
        f"the draft of {inputs.variant.target} cannot be updated. The target branch and local changes on the draft"
        " branch changed the same files outside of the package. Next step: merge or delete the draft"
    )
    return block_failed(inputs, (_create_finding(inputs, PlanningCodes.DRAFT_EDITED, message),), trace)


def _block_frozen_draft(inputs: DecisionInput, trace: Trace) -> Blocked:
    message = (
        f"the draft of {inputs.variant.target} is proposed; the package is updated after this draft is approved or"
        " rejected"
    )
    conditions = build_waiting_conditions("DownstreamProposed", message)
    return Blocked(inputs.variant, inputs.own_record, conditions, (), inputs.observed, trace)


def block_stalled(inputs: DecisionInput, code: FindingCode, message: str) -> Blocked:
    """Return the outcome of a variant that must not write its package. The outcome has the condition `Stalled`."""
    finding = _create_finding(inputs, code, message)
    return Blocked(
        inputs.variant, inputs.record, build_stalled_conditions(code.name, message), (finding,), inputs.observed
    )


def block_failed(inputs: DecisionInput, findings: tuple[Finding, ...], trace: Trace, reason: str = "") -> Blocked:
    """Return the outcome `Blocked` for a package that has errors although its variant is valid.

    Its condition `Ready` is False. If `reason` is empty, the reason of the condition is `Error`.
    """
    message = "; ".join(finding.message for finding in select_errors(findings))
    conditions = build_failed_conditions(message, reason or "Error")
    return Blocked(inputs.variant, inputs.own_record, conditions, findings, inputs.observed, trace)


def _repeat_blocked(inputs: DecisionInput, record: PackageRecord) -> Blocked:
    outcome = record.outcome
    conditions = tuple(Condition(**condition) for condition in outcome["conditions"])
    findings = tuple(parse_finding(finding) for finding in outcome["findings"])
    return Blocked(inputs.variant, record, conditions, findings, inputs.observed, record.trace)


def _add_package_scope(failure: InternalFailure, inputs: DecisionInput) -> InternalFailure:
    """Add the package name before the scope of the failure, because the scope can be only the name of a function."""
    package = f"package {inputs.variant.target}"
    return failure if failure.scope.startswith(package) else failure.with_scope(f"{package}: {failure.scope}")


def block_unexpected_failure(inputs: DecisionInput, failure: InternalFailure) -> Blocked:
    """Return the outcome of a package with an unexpected exception.

    The outcome is not recorded, so that each pass tries again.
    """
    finding = create_internal_error_finding(failure, SourceLocation(object=inputs.variant.owner.key.reference))
    return replace(block_failed(inputs, (finding,), {}, CommonCodes.INTERNAL_ERROR.name), should_retry=True)


def _add_owner(findings: tuple[Finding, ...], inputs: DecisionInput) -> tuple[Finding, ...]:
    return set_package_location(findings, str(inputs.variant.target), inputs.variant.owner.key.reference)


def _create_finding(inputs: DecisionInput, code: FindingCode, message: str) -> Finding:
    return code.finding(message, SourceLocation(object=inputs.variant.owner.key.reference))


def _choose_task(inputs: DecisionInput, base: TreeId) -> str:
    """Return the kind of the change for the status file, named like the task types of Porch."""
    record, observed = inputs.own_record, inputs.observed
    is_new = observed.published is None and observed.drafted is None
    if (record is None or not record.is_owned) and not is_new:
        return "adopt"
    if inputs.variant.upstream is None:
        return "generate"
    if record is None or is_new:
        return "clone"
    if _is_based_on_upstream(inputs, record, base):
        return "mutate" if observed.drafted else "edit"
    return "update" if observed.drafted else "upgrade"


def _is_based_on_upstream(inputs: DecisionInput, record: PackageRecord, base: TreeId) -> bool:
    last, known = record.draft_version or record.published_version, record.outcome.get("upstream", {})
    # Compare the source tree as well. If the package was blocked, its recorded upstream can be newer than the upstream
    # of its last version.
    upstream = inputs.variant.upstream
    return upstream is not None and _is_same_upstream(upstream, known) and (last is None or last.base == base)


def _is_same_upstream(upstream: UpstreamPackage, known: Mapping[str, Any]) -> bool:
    """Return whether an upstream has the recorded repository, directory, ref and content. The commit is ignored."""
    current = upstream.as_data()
    return all(known.get(name) == current[name] for name in ("repo", "directory", "ref", "tree"))


def _list_causes(inputs: DecisionInput, changed: tuple[str, ...], contents: PackageContentStore) -> tuple[str, ...]:
    if inputs.own_record is None or not inputs.own_record.is_owned:
        return ("variant",)
    known, upstream = inputs.own_record.outcome.get("upstream", {}), inputs.variant.upstream
    if upstream and "upstream" in changed and is_downgrade(upstream, known, contents.is_ancestor):
        return (*changed, DOWNGRADE_CAUSE)
    return changed or ("branch",)
