"""Deciding: from a variant and what stands on the branches to Draft, Unchanged or Blocked (design 4.5 to 4.7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from reconciler.krm.codes import INTERNAL_ERROR, internal_error
from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Code, Finding, Severity, Where, errors
from reconciler.krm.isolation import InternalFailure, ScopeFailedError, boundary
from reconciler.packages.functions.facts import is_function
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.codes import (
    DIRECTORY_NOT_OWNED,
    DOWNSTREAM_CONFLICT,
    DOWNSTREAM_EXISTS,
    DRAFT_EDITED,
    FUNCTION_INTERRUPTED,
    LOCAL_FILE_IN_THE_WAY,
    MERGE_BASE_MISSING,
    OWNERSHIP_CONFLICT,
    PACKAGE_TOO_LARGE,
    PATH_REFUSED,
)
from reconciler.planning.conflicts import conflict_data
from reconciler.planning.downgrade import DOWNGRADE, goes_back
from reconciler.planning.ingredients import PackageMalformedError, Sources, TooLargeToReadError, ingredients_of
from reconciler.planning.last_mile import ROLLOUT
from reconciler.planning.outcome import Blocked, Draft, Outcome, Rendered, Unchanged
from reconciler.planning.settling import hold
from reconciler.planning.source import Ingredients
from reconciler.planning.state import KEPT_REVISIONS, Offer, PackageRecord, Seen
from reconciler.planning.templates import without_templates
from reconciler.rules.variant import Upstream, Variant
from reconciler.rules.variants.status import (
    downstream_exists,
    variant_failed,
    variant_ready,
    variant_stalled,
    variant_waiting,
)
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId
from reconciler.snapshot.trace import Answers, Trace, changed_answers

READY, VALID = variant_ready()


Render = Callable[[Variant, Ingredients], Rendered]


@dataclass(frozen=True)
class Question:
    """One variant, what is remembered of its package, and what stands at its place.

    `nested` are packages above or below it; `owner_gone`: the recorded owner is not in the config any more; `obstacle`
    is a local file in the place of the package, as `<branch>:<path>`.
    """

    variant: Variant
    record: PackageRecord | None
    seen: Seen
    nested: tuple[str, ...] = ()
    owner_gone: bool = False
    obstacle: str | None = None

    @property
    def mine(self) -> PackageRecord | None:
        """The record, if it is this variant's or passes to it (design 10.14)."""
        if self.record is None or self.record.owner.key == self.variant.owner.key:
            return self.record
        if not self.record.owned:
            # it was never another's, or is not any more: only the numbers go on
            one = self.variant
            return replace(self.record.tombstone(), owner=one.owner, labels=one.labels, annotations=one.annotations)
        return replace(self.record, owner=self.variant.owner) if self.owner_gone else None


def decide(question: Question, answers: Answers, sources: Sources, render: Render) -> Outcome:
    """Return what to do about one package; renders only when the trace or the branches say so."""
    try:
        with boundary(f"package {question.variant.place}"):
            return _decide(_at_known_commit(question), answers, sources, render)
    except ScopeFailedError as error:
        return failed_unexpectedly(question, _in_package(error.failure, question))
    except PackageMalformedError as error:
        message = f"package {question.variant.place} cannot be made: {error}"
        return failed(question, (_finding(question, PATH_REFUSED, message),), question.variant.facts)
    except TooLargeToReadError as error:
        message = f"package {question.variant.place} cannot be made: {error}"
        return failed(question, (_finding(question, PACKAGE_TOO_LARGE, message),), question.variant.facts)
    except InterruptedFunctionError as error:
        message = f"package {question.variant.place} was left as it is: {error} (next step: retry)"
        blocked = failed(question, (_finding(question, FUNCTION_INTERRUPTED, message),), {})
        return replace(blocked, retry=True)


def _decide(question: Question, answers: Answers, sources: Sources, render: Render) -> Outcome:
    record = question.mine
    if (record is None or not record.owned) and (refusal := _refuse(question)):
        return refusal
    if question.obstacle:
        return _obstructed(question, question.obstacle)
    if isinstance(held := hold(question.variant, record, question.seen), Blocked):
        return held
    question = replace(question, variant=held)
    if record is None:
        return _render(question, (), sources, render)
    moved = _moved(question.variant, record.trace, answers, sources)
    if not moved and (settled := _settled(question, record)):
        return settled
    return _render(question, moved, sources, render)


def _moved(variant: Variant, trace: Trace, answers: Answers, sources: Sources) -> tuple[str, ...]:
    functions = {name: sources.function(name) or was for name, was in trace.items() if is_function(name)}
    return changed_answers(trace, {**variant.facts, **functions}, answers)


def is_current(question: Question, answers: Answers, sources: Sources) -> bool:
    """Return whether a package was last rendered from what it is made of today, whatever rollouts have come to."""
    question = _at_known_commit(question)
    record = question.mine
    held = hold(question.variant, record, question.seen)
    if record is None or isinstance(held, Blocked):
        return False
    trace = {name: answer for name, answer in record.trace.items() if not name.startswith(f"{ROLLOUT} ")}
    # what its templates inherit is for its partners to say, and none of a rollout's
    return not _moved(held, without_templates(trace), answers, sources)


def _at_known_commit(question: Question) -> Question:
    """A branch head that moved without changing the package is no update: the lock stays where it was (porch 14.1)."""
    upstream, record = question.variant.upstream, question.record
    known = record.outcome.get("upstream", {}) if record else {}
    if upstream is None or not _is_same(upstream, known):
        return question
    upstream = replace(upstream, commit=known["commit"], committer_seconds=known["seconds"])
    return replace(question, variant=replace(question.variant, source=upstream))


def _settled(question: Question, record: PackageRecord) -> Outcome | None:
    """What is known without rendering: nothing asked has changed, and the branches hold what was wanted."""
    # what is wanted again goes on from what it was before it was to go, and so do its findings
    record = replace(record, outcome=record.outcome.get("before", record.outcome))
    if record.outcome.get("kind") == "blocked":
        return _blocked_before(question, record) if record.seen == question.seen else None
    seen = _seen_when_settled(question.seen)
    as_before = record.seen == seen
    if record.wanted is None or (edited_places(record, question.seen) and not as_before):
        return None
    warnings = tuple(read_finding(one) for one in record.outcome.get("findings", ()))
    found = _compare(question, record, warnings)
    # what was offered, or declined, may hold edits of the cluster branch that are gone by now
    drafted_from_this = found and found.why == "drafted" and record.put and record.put.against == seen.published
    return found if found and (as_before or drafted_from_this or found.why in ("published", "adopted")) else None


def _compare(question: Question, record: PackageRecord, findings: tuple[Finding, ...]) -> Unchanged | None:
    """Return Unchanged when a branch or the draft holds what the record says is wanted, or people declined it."""
    ours, put, seen, wanted = record.ours, record.put, question.seen, record.wanted
    withdraw = put is not None and _is_ours_to_take_out(put, seen)
    if ours and seen.published == wanted and ours.review == record.review:
        why = "published" if ours.rendered == wanted else "published with edits"
    elif put and (seen.drafted or put.rendered) == wanted and put.review == record.review:
        why, withdraw = "drafted", False
    elif wanted in record.declined:
        why = "declined"
    elif record.owned and not ours and seen.published == wanted:
        why = "adopted"
    else:
        return None
    if edited_places(record, seen) or why in ("declined", "drafted"):
        record = replace(record, seen=_seen_when_settled(seen, withdraw))
    return Unchanged(question.variant, record, why, withdraw, findings)


def _seen_when_settled(seen: Seen, withdraw: bool = False) -> Seen:
    """Return what people's edits are in; the rest of what was seen ends with what this pass does."""
    return Seen(seen.published, None if withdraw else seen.drafted)


def _is_ours_to_take_out(put: Offer, seen: Seen) -> bool:
    # what people have added to the draft stays there; so does everything on one that is frozen or stuck
    return not (seen.frozen or seen.stuck) and seen.drafted in (None, put.rendered)


def _refuse(question: Question) -> Blocked | None:
    """Return why a package that is not ours yet must not be touched (porch 4.1, 5.1; design 10.14)."""
    variant, record, seen = question.variant, question.record, question.seen
    if record is not None and record.owned:
        message = f"package {variant.place} is owned by {record.owner.key}, not by {variant.owner.key}"
        return stalled(question, OWNERSHIP_CONFLICT, message)
    if question.nested:
        message = f"packages cannot be nested: {variant.place} and {', '.join(question.nested)}"
        return stalled(question, DOWNSTREAM_CONFLICT, message)
    if variant.adoption == "adoptNone" and (seen.published or seen.drafted):
        return _in_the_way(question)
    return None


def _obstructed(question: Question, obstacle: str) -> Blocked:
    """Return that a local file occupies the place of the package; a draft of the package would delete that file."""
    branch, _, path = obstacle.partition(":")
    message = (
        f"package {question.variant.place} cannot be written: {path} on branch {branch} is in the place of a folder or"
        " file of the package (next step: move or delete it)"
    )
    # no trace is recorded, so that the pass after its removal decides again
    return failed(question, (_finding(question, LOCAL_FILE_IN_THE_WAY, message),), {})


def _in_the_way(question: Question) -> Blocked:
    """Return that something nobody here owns stands where the package is to go (design 10.14)."""
    place = question.variant.place
    if question.variant.upstream:
        exists = downstream_exists(place.repository, place.package)[0]
        return stalled(question, DOWNSTREAM_EXISTS, exists.message)
    message = (
        f"a directory that nobody here owns stands where {place} is to go; move it away, or annotate all that goes"
        ' there with reconciler.dev/adopt: "true" to take it over'
    )
    return stalled(question, DIRECTORY_NOT_OWNED, message)


def _render(question: Question, moved: tuple[str, ...], sources: Sources, render: Render) -> Outcome:
    variant = question.variant
    record = question.mine or PackageRecord(variant.owner, labels=variant.labels, annotations=variant.annotations)
    made = ingredients_of(variant.source, record, question.seen, sources)
    if made is None:
        assert variant.upstream, "what a room makes needs nothing that could be missing"
        return _merge_base_missing(question, variant.upstream)
    rendered = render(variant, made)
    trace = {**rendered.trace, **variant.facts}
    if errors(rendered.findings):
        blocked = failed(question, rendered.findings, trace, rendered.reason)
        return replace(blocked, policies=rendered.policies)
    record = replace(
        record, owner=variant.owner, owned=True, trace=trace, wanted=rendered.files.id, review=rendered.review,
        conflicts=tuple(conflict_data(one) for one in rendered.source.drafted), policies=rendered.policies,
        rules=rendered.rules,
    )  # fmt: skip
    record = _declined_without_edits(record, rendered, question)
    if unchanged := _compare(question, record, rendered.findings):
        return unchanged
    return _unwritable(question, trace) or _draft(question, record, rendered, sources, moved)


def _declined_without_edits(record: PackageRecord, rendered: Rendered, question: Question) -> PackageRecord:
    """Return the record that knows what an offer, declined just now, is without the edits that went with its draft.

    It is that as long as it comes from the same source, and nothing that it asked for is another.
    """
    if not record.dropped:
        return record
    was = question.mine.trace if question.mine else {}
    same = all(was.get(asked) == answer for asked, answer in record.trace.items())
    if question.seen.drafted or rendered.source.plain.id != record.dropped or not same:
        return replace(record, dropped=None)
    return replace(record, declined=(*record.declined, rendered.files.id)[-KEPT_REVISIONS:], dropped=None)


def _draft(
    question: Question, record: PackageRecord, rendered: Rendered, sources: Sources, moved: tuple[str, ...]
) -> Draft:
    seen, source = question.seen, rendered.source
    before = seen.drafted or seen.published
    base, plain, merged = (sources.keep(files) for files in (source.base, source.plain, source.files))
    return Draft(
        question.variant, rendered, record, seen, base, plain, merged, _task(question, base),
        sources.standing(before) if before else FileTree(), _causes(question, moved, sources),
    )  # fmt: skip


def _unwritable(question: Question, trace: Trace) -> Blocked | None:
    """Return why the draft may not be written now, though its content would differ."""
    if question.seen.frozen:
        return _waiting(question, trace)
    return _stuck(question, trace) if question.seen.stuck else None


def _merge_base_missing(question: Question, upstream: Upstream) -> Blocked:
    message = (
        f"package {question.variant.place} was not made here, and its upstreamLock names a commit that no Repository"
        f" has; correct the lock, or remove it and the package is not updated to {upstream.ref}"
    )
    return failed(question, (_finding(question, MERGE_BASE_MISSING, message),), question.variant.facts)


def edited_places(record: PackageRecord, seen: Seen) -> tuple[str, ...]:
    """Return where people changed the package since it was rendered: the cluster branch, the draft, both or none.

    A package that was never offered is not edited on the cluster branch: what stands there is the source (adoption).
    """
    known = record.ours is not None or record.put is not None
    on_branch = known and seen.published is not None and (not record.ours or seen.published != record.ours.rendered)
    on_draft = seen.drafted is not None and (not record.put or seen.drafted != record.put.rendered)
    return tuple(name for name, edited in (("the cluster branch", on_branch), ("its draft", on_draft)) if edited)


def _stuck(question: Question, trace: Trace) -> Blocked:
    message = (
        f"people changed the draft of {question.variant.place} in files beside the package that the cluster branch has"
        " changed as well, so that it cannot be brought up to date; merge it or delete it, and the update follows"
    )
    return failed(question, (_finding(question, DRAFT_EDITED, message),), trace)


def _waiting(question: Question, trace: Trace) -> Blocked:
    message = f"the draft of {question.variant.place} is proposed; its update waits until it is approved or rejected"
    conditions = variant_waiting("DownstreamProposed", message)
    return Blocked(question.variant, question.mine, conditions, (), question.seen, trace)


def stalled(question: Question, code: Code, message: str) -> Blocked:
    """Return the outcome for a place that the variant may not have (porch 10, conflict cases)."""
    finding = _finding(question, code, message)
    return Blocked(question.variant, question.record, variant_stalled(code.name, message), (finding,), question.seen)


def failed(question: Question, findings: tuple[Finding, ...], trace: Trace, reason: str = "") -> Blocked:
    """Return the outcome for an error after validation: Ready=False, for `reason` or Error, with the errors' texts."""
    message = "; ".join(finding.message for finding in errors(findings))
    conditions = variant_failed(message, reason or "Error")
    return Blocked(question.variant, question.mine, conditions, findings, question.seen, trace)


def _blocked_before(question: Question, record: PackageRecord) -> Blocked:
    outcome = record.outcome
    conditions = tuple(Condition(**one) for one in outcome["conditions"])
    findings = tuple(read_finding(one) for one in outcome["findings"])
    return Blocked(question.variant, record, conditions, findings, question.seen, record.trace)


def finding_data(finding: Finding) -> dict[str, str | int]:
    """Return a finding as state keeps it."""
    return {"code": finding.code, "message": finding.message, "severity": finding.severity.value, **vars(finding.where)}


def read_finding(data: Mapping[str, str | int]) -> Finding:
    """Read what `finding_data` wrote."""
    where = Where(**{one.name: data[one.name] for one in fields(Where) if one.name in data})  # type: ignore[arg-type]
    return Finding(str(data["code"]), str(data["message"]), where, Severity(str(data["severity"])))


def _in_package(failure: InternalFailure, question: Question) -> InternalFailure:
    """Return a failure whose scope names the package; one of a function call names the function only."""
    package = f"package {question.variant.place}"
    return failure if failure.scope.startswith(package) else failure.in_scope(f"{package}: {failure.scope}")


def failed_unexpectedly(question: Question, failure: InternalFailure) -> Blocked:
    """Return the outcome for an unexpected exception; nothing of it is recorded, so that every pass tries again."""
    finding = internal_error(failure, Where(object=str(question.variant.owner.key)))
    return replace(failed(question, (finding,), {}, INTERNAL_ERROR.name), retry=True)


def _finding(question: Question, code: Code, message: str) -> Finding:
    return code.finding(message, Where(object=str(question.variant.owner.key)))


def _task(question: Question, base: TreeId) -> str:
    """Return porch 15.3's word for what the commit does; the status file has it, so no trace may decide it."""
    record, seen = question.mine, question.seen
    is_new = seen.published is None and seen.drafted is None
    if (record is None or not record.owned) and not is_new:
        return "adopt"
    if question.variant.upstream is None:
        return "generate"
    if record is None or is_new:
        return "clone"
    if _same_upstream(question, record, base):
        return "mutate" if seen.drafted else "edit"
    return "update" if seen.drafted else "upgrade"


def _same_upstream(question: Question, record: PackageRecord, base: TreeId) -> bool:
    last, known = record.put or record.ours, record.outcome.get("upstream", {})
    # while a package is blocked, state hears of newer upstreams than the last offer was made from
    upstream = question.variant.upstream
    return upstream is not None and _is_same(upstream, known) and (last is None or last.base == base)


def _is_same(upstream: Upstream, known: Mapping[str, Any]) -> bool:
    """Whether an upstream is the known one, whatever commit its content was found at."""
    now = upstream.as_data()
    return all(known.get(name) == now[name] for name in ("repo", "directory", "ref", "tree"))


def _causes(question: Question, moved: tuple[str, ...], sources: Sources) -> tuple[str, ...]:
    if question.mine is None or not question.mine.owned:
        return ("variant",)
    known, upstream = question.mine.outcome.get("upstream", {}), question.variant.upstream
    if upstream and "upstream" in moved and goes_back(upstream, known, sources.is_behind):
        return (*moved, DOWNGRADE)
    return moved or ("branch",)
