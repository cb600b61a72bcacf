"""Causes: why a draft is made, in words, from what its trace says has moved (design 5)."""

from __future__ import annotations

from reconciler.krm.identity import ObjectKey
from reconciler.planning.destination import Destination
from reconciler.planning.downgrade import DOWNGRADE
from reconciler.planning.last_mile import CLOSED
from reconciler.planning.outcome import Draft
from reconciler.planning.templates import RULES, TEMPLATE
from reconciler.reporting.inputs import home
from reconciler.reporting.kptfile_changes import kptfile_lock, short_ref
from reconciler.reporting.values import one_line
from reconciler.rules.overrides.rollout import rule_id_of
from reconciler.rules.placement.model import NO_NAMESPACE
from reconciler.rules.placement.model import OWNER_KIND as PLACEMENT
from reconciler.rules.variant import Owner
from reconciler.snapshot.trace import ABSENT

_NEW = frozenset({"clone", "adopt"})


def cause_words(draft: Draft, destination: Destination) -> tuple[str, ...]:
    """Return one phrase for each cause of the draft, in their order."""
    return tuple(one_line(_words(cause, draft, destination)) for cause in draft.causes if cause != DOWNGRADE)


def upstream_words(draft: Draft) -> str:
    """Return the way from the upstream that the package is locked to, if it is, to the wanted one."""
    return f"{DOWNGRADE} {_way(draft)}" if DOWNGRADE in draft.causes else _way(draft)


def _way(draft: Draft) -> str:
    wanted, lock = draft.variant.upstream, kptfile_lock(draft.before)
    if wanted is None:
        return ""
    new = short_ref(wanted.ref, wanted.directory)
    if not lock.get("ref"):
        return new
    old = short_ref(lock["ref"], lock.get("directory", ""))
    if _place(lock.get("repo", ""), lock.get("directory", "")) != _place(wanted.repo, wanted.directory):
        return f"{lock.get('directory', '')} {old} → {wanted.directory} {new}"
    if old != new:
        return f"{old} → {new}"
    return new if lock.get("commit") == wanted.commit else f"{new} moved to {wanted.commit[:7]}"


def origin_words(draft: Draft) -> str:
    """Return the package that it is made from, as `repository/package`; "" for what a room makes itself."""
    upstream = draft.variant.upstream
    return f"{upstream.repository}/{upstream.package}" if upstream else ""


def owner_words(owner: Owner) -> str:
    """Return the owner as `Kind namespace/name`, and the set that made it."""
    made_by = f", made by {object_words(owner.set)}" if owner.set else ""
    return object_words(owner.key) + made_by


def object_words(key: ObjectKey) -> str:
    """Return an object as `Kind namespace/name`."""
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def _words(cause: str, draft: Draft, destination: Destination) -> str:
    match cause.split(" ", 4):
        case ["variant"] if draft.variant.owner.key.kind == PLACEMENT:
            return f"{_placed(draft.variant.owner.key.name)} go to {destination.name}"
        case ["variant"]:
            is_new = draft.task in _NEW or draft.variant.upstream is None
            asks = "asks for this package" if is_new else "changed"
            return f"{owner_words(draft.variant.owner)} {asks}"
        case ["upstream"]:
            return f"upstream {origin_words(draft)}: {upstream_words(draft)}"
        case ["resources"]:
            return f"other resources go to {draft.variant.place} now"
        case ["cluster", name]:
            return f"the labels of cluster {name} changed"
        case ["selectors", _]:
            return "other policies choose its resources now"
        case ["rollout", text, _]:
            rule = rule_id_of(text)
            named = f"{rule.rule} of {object_words(rule.policy)}" if rule else text
            return f"rule {named} {_rolled_out(draft.record.trace.get(cause, ''), destination.name)}"
        case [question, group, kind, namespace, name] if question == TEMPLATE:
            key = ObjectKey(group, kind, "" if namespace == "-" else namespace, name)
            return f"what templates take from {object_words(key)} changed"
        case [question, *_] if question == TEMPLATE:
            return f"other parents or children of templates are on {destination.name} now"
        case [question, *_] if question == RULES:
            return "other rules for templates are for its kinds now"
        case ["repository"]:
            return f"{destination.title} changed"
        case ["engine"]:
            return "this version of the reconciler renders the package differently"
        case ["branch"]:
            return f"the package on branch {destination.branch} or its draft changed"
        case ["function", _, what, *_]:
            return f"function {what.replace('%20', ' ').replace('%25', '%')} changed"
        case ["kind", _, kind]:
            return f"an object of kind {kind} changed"
        case ["object", api_version, kind, namespace, name]:
            gone = draft.record.trace.get(cause) == ABSENT
            return f"{_named(api_version, kind, namespace, name)} {'is gone' if gone else 'changed'}"
        case ["policy", api_version, kind, namespace, place]:
            name, _, cluster = place.partition(" ")
            gone = draft.record.trace.get(cause) == ABSENT
            what = "is gone" if gone else f"changed for cluster {cluster}"
            return f"{_named(api_version, kind, namespace, name)} {what}"
        case ["type", _, kind, namespace]:
            gone = draft.record.trace.get(cause) == ABSENT
            return f"{'no' if gone else 'the first'} {kind} is in namespace {namespace}"
        case _:
            return f"{cause} changed"


def _rolled_out(answer: str, cluster: str) -> str:
    if answer == CLOSED:
        return f"has another text, which has not come to {cluster} yet"
    return "is not rolled out in waves any more" if answer == ABSENT else f"has reached {cluster}"


def _named(api_version: str, kind: str, namespace: str, name: str) -> str:
    return object_words(ObjectKey("", kind, home(api_version, kind, namespace), name))


def _placed(namespace: str) -> str:
    return "resources without a namespace" if namespace == NO_NAMESPACE else f"resources of namespace {namespace}"


def _place(repo: str, directory: str) -> tuple[str, str]:
    return repo.removesuffix(".git"), directory.strip("/")
