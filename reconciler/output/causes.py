"""The causes of a draft as text. Each cause is a dependency of the package that changed since the last render."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from reconciler.catalog.tenants import TENANT_DEPENDENCY
from reconciler.catalog.trace import ABSENT_FINGERPRINT
from reconciler.controllers.override_policies.rollout import parse_rule_id
from reconciler.controllers.placement.model import CLUSTER_SCOPED_NAMESPACE
from reconciler.controllers.placement.model import OWNER_KIND as PLACEMENT
from reconciler.controllers.results import PackageOwner, UpstreamPackage
from reconciler.krm.objects import ObjectKey
from reconciler.output.changes.package_changes import read_source_locks, read_upstream_lock, shorten_ref
from reconciler.output.status.package_status import get_effective_namespace
from reconciler.output.text import to_one_line
from reconciler.planning.decide.package_decision import DOWNGRADE_CAUSE
from reconciler.planning.model.cluster_overrides import CLOSED_FINGERPRINT
from reconciler.planning.model.outcomes import Draft
from reconciler.planning.model.targets import Target
from reconciler.planning.render.templates import TEMPLATE_DEPENDENCY, TEMPLATE_RULES_DEPENDENCY

_NEW_PACKAGE_TASKS = frozenset({"clone", "adopt"})
DraftAction = Literal["install", "adopt", "update", "re-render"]
"""The effect of a draft on its package. The action `update` means that the upstream version changes."""


def get_draft_action(draft: Draft) -> DraftAction:
    """Return the effect of a draft on its package."""
    if draft.task == "adopt":
        return "adopt"
    if draft.task == "clone" or not draft.previous_files:
        return "install"
    return "update" if draft.variant.upstream is not None and "upstream" in draft.causes else "re-render"


def format_causes(draft: Draft, target: Target) -> tuple[str, ...]:
    """Return one phrase for each cause of the draft, in the order of `draft.causes`."""
    causes = (cause for cause in draft.causes if cause != DOWNGRADE_CAUSE)
    return tuple(to_one_line(_format_cause(cause, draft, target)) for cause in causes)


def format_upstream_change(draft: Draft) -> str:
    """Return the change from the revision in `upstreamLock` to the requested revision, such as `v1 → v2`."""
    change = _format_revisions(draft)
    return f"{DOWNGRADE_CAUSE} {change}" if DOWNGRADE_CAUSE in draft.causes else change


def _format_revisions(draft: Draft) -> str:
    requested, lock = draft.variant.upstream, read_upstream_lock(draft.previous_files)
    if requested is None:
        return ""
    if requested.sources:
        return ", ".join(_list_source_changes(requested, read_source_locks(draft.previous_files)))
    new = shorten_ref(requested.ref, requested.directory)
    if not lock.get("ref"):
        return new
    if not _is_same_source(lock, requested):
        directory = lock.get("directory", "")
        return f"{directory} {shorten_ref(lock['ref'], directory)} → {requested.directory} {new}"
    old = shorten_ref(lock["ref"], requested.directory)
    if old != new:
        return f"{old} → {new}"
    return new if lock.get("commit") == requested.commit else f"{new} moved to {requested.commit[:7]}"


def _list_source_changes(requested: UpstreamPackage, locks: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the version change of each source, such as `web v1 → v2`. Skip sources whose version did not change."""
    for source in requested.sources:
        package, lock = source.upstream, locks.get(source.name, {})
        new, old = (shorten_ref(ref, package.directory) for ref in (package.ref, lock.get("ref", "")))
        if not old:
            yield f"{source.name} {new}"
        elif old != new:
            yield f"{source.name} {old} → {new}"
        elif lock.get("commit") != package.commit:
            yield f"{source.name} {new} moved to {package.commit[:7]}"


def _format_upstream_package(draft: Draft) -> str:
    upstream = draft.variant.upstream
    return upstream.title if upstream else ""


def _format_owner(owner: PackageOwner) -> str:
    parent = f", created by {owner.parent}" if owner.parent else ""
    return str(owner.key) + parent


def _format_cause(cause: str, draft: Draft, target: Target) -> str:
    is_absent = draft.record.trace.get(cause) == ABSENT_FINGERPRINT
    if cause.startswith(f"{TENANT_DEPENDENCY} "):
        cause = cause.split(" ", 2)[2]
    match cause.split(" ", 4):
        case ["tenant"]:
            return f"the rights of tenant {draft.variant.tenant} changed"
        case ["variant"] if draft.variant.owner.key.kind == PLACEMENT:
            return f"{_format_placed_resources(draft.variant.owner.key.name)} are placed on {target.name}"
        case ["variant"]:
            is_new = draft.task in _NEW_PACKAGE_TASKS or draft.variant.upstream is None
            return f"{_format_owner(draft.variant.owner)} {'requests this package' if is_new else 'changed'}"
        case ["upstream"]:
            return f"upstream {_format_upstream_package(draft)}: {format_upstream_change(draft)}"
        case ["resources"]:
            return f"the set of resources that are placed on {draft.variant.target} changed"
        case ["cluster", name]:
            return f"the labels of cluster {name} changed"
        case ["selectors", _]:
            return "the set of policies that select resources of this package changed"
        case ["rollout", text, _]:
            rule = parse_rule_id(text)
            name = f"{rule.rule} of {rule.policy}" if rule else text
            return f"rule {name} {_format_rollout(draft.record.trace.get(cause, ''), target.name)}"
        case [dependency, group, kind, namespace, name] if dependency == TEMPLATE_DEPENDENCY:
            key = ObjectKey(group, kind, "" if namespace == "-" else namespace, name)
            return f"the template settings of {key} changed"
        case [dependency, *_] if dependency == TEMPLATE_DEPENDENCY:
            return f"the template parents or children on {target.name} changed"
        case [dependency, *_] if dependency == TEMPLATE_RULES_DEPENDENCY:
            return "the template merge rules for the kinds of this package changed"
        case ["deletions"]:
            return f"{_format_owner(draft.variant.owner)} confirms other deletions of resources"
        case ["repository"]:
            return f"{target.title} changed"
        case ["engine"]:
            return "this version of the reconciler renders the package differently"
        case ["branch"]:
            return f"the package changed on the branch {target.branch} or on the draft branch"
        case ["function", _, name, *_]:
            return f"function {name.replace('%20', ' ').replace('%25', '%')} changed"
        case ["kind", _, kind]:
            return f"an object of kind {kind} changed"
        case ["object", api_version, kind, namespace, name]:
            return (
                f"{_format_dependency(api_version, kind, namespace, name)} {'was removed' if is_absent else 'changed'}"
            )
        case ["policy", api_version, kind, namespace, policy_and_cluster]:
            name, _, cluster = policy_and_cluster.partition(" ")
            change = "was removed" if is_absent else f"changed for cluster {cluster}"
            return f"{_format_dependency(api_version, kind, namespace, name)} {change}"
        case ["type", _, kind, namespace]:
            change = "no longer contains" if is_absent else "now contains"
            return f"namespace {namespace} {change} an object of kind {kind}"
        case _:
            return f"{cause} changed"


def _format_rollout(fingerprint: str, cluster: str) -> str:
    if fingerprint == CLOSED_FINGERPRINT:
        return f"has a new version that is not rolled out to {cluster} yet"
    return "is no longer rolled out in waves" if fingerprint == ABSENT_FINGERPRINT else f"is rolled out to {cluster}"


def _format_dependency(api_version: str, kind: str, namespace: str, name: str) -> str:
    return str(ObjectKey("", kind, get_effective_namespace(api_version, kind, namespace), name))


def _format_placed_resources(namespace: str) -> str:
    is_cluster_scoped = namespace == CLUSTER_SCOPED_NAMESPACE
    return "resources without a namespace" if is_cluster_scoped else f"resources of namespace {namespace}"


def _is_same_source(lock: Mapping[str, str], requested: UpstreamPackage) -> bool:
    """Return whether a lock contains the repository and the folder of the requested upstream.

    In the lock of a chart, `repo` can contain a part of the folder. Therefore, the function also compares the joined
    paths `repo/directory`.
    """
    repo, directory = lock.get("repo", ""), lock.get("directory", "").strip("/")
    requested_directory = requested.directory.strip("/")
    if f"{repo}/{directory}" == f"{requested.repo}/{requested_directory}":
        return True
    return (repo.removesuffix(".git"), directory) == (requested.repo.removesuffix(".git"), requested_directory)
