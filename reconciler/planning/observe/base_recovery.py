"""Recovery of the merge base of a package whose source is downloaded or rendered, from its status file.

The base of such a package does not exist in Git. It is rendered again from the recorded inputs, and must have the
recorded tree. Otherwise, the difference between the base and the package would contain changes of the source, and a
merge would treat them as local changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from reconciler.catalog.files import FileTree, TreeId
from reconciler.controllers.results import ACCEPT_BASE, UpstreamPackage, Variant, read_upstream_status
from reconciler.krm.internal_errors import InternalFailure, ScopeFailedError, isolation_boundary
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.planning.model.sources import PackageContentStore, SourceContent, SourceFailedError
from reconciler.planning.render.held_resources import restore_held_resources

# The fields of a chart request, by their name in `inputs.source` of a status file.
_REQUEST_FIELDS = {"releaseName": "release_name", "namespace": "namespace", "kubeVersion": "kube_version"}


@dataclass(frozen=True)
class RecoveredBase:
    """The source of a version on a branch, without local changes and with all local changes.

    `upstream` is the summary of the upstream for commit trailers. `release` is the release of a chart, or "".
    """

    base: TreeId
    merged: TreeId
    upstream: str
    release: str


@dataclass(frozen=True)
class UnavailableBase:
    """The reason why the base of a package cannot be recovered, with the next steps.

    `failure` is the unexpected exception that is the reason. None for other reasons.
    """

    message: str
    failure: InternalFailure | None = None


def recover_base(
    variant: Variant,
    source: UpstreamPackage,
    status: Mapping[str, Any],
    tree: TreeId,
    contents: PackageContentStore,
    hold_kinds: Collection[str],
) -> RecoveredBase | UnavailableBase:
    """Return the base that a status file names.

    Args:
        source: The upstream of the variant.
        tree: The package on the branch of the status file. It can contain local changes.
        hold_kinds: The kinds whose resources can be held, as for `hold_removed_resources`.

    Raises:
        KeyError, TypeError, AttributeError: The status file is not valid.
    """
    recorded = _restore_upstream(source, status)
    base, rendered = TreeId(status["trees"]["base"]), status["trees"]["rendered"]
    try:
        with isolation_boundary(f"base of package {variant.target}"):
            content = contents.read_source(recorded)
    except ScopeFailedError as error:
        return UnavailableBase(error.failure.message, error.failure)
    except SourceFailedError as error:
        return _use_accepted_base(variant, recorded, contents.read_tree(tree), tree, str(error), contents)
    found = content.files
    if found.id != base:
        found = restore_held_resources(found, contents.read_tree(tree), hold_kinds)
    if found.id != base:
        reason = _explain_difference(source, status, content)
        return _use_accepted_base(variant, recorded, content.files, tree, reason, contents)
    has_local_changes = status["trees"]["merged"] != base or rendered != tree
    # The source with local changes is unknown. Use the package, because its steps have no effect if they are repeated.
    return RecoveredBase(
        contents.store_tree(found), tree if has_local_changes else base, recorded.summary, recorded.chart_release
    )


def _restore_upstream(source: UpstreamPackage, status: Mapping[str, Any]) -> UpstreamPackage:
    """Return the upstream with the recorded version and options. The values are those of the variant."""
    recorded = source.pin(read_upstream_status(status["upstream"]["to"]))
    if recorded is None:
        raise KeyError("the status file names other sources")
    options = status["inputs"]["source"]
    if recorded.chart is None:
        return recorded
    fields: dict[str, Any] = {field: options[name] for name, field in _REQUEST_FIELDS.items() if name in options}
    return replace(
        recorded, chart=replace(recorded.chart, **fields, api_versions=tuple(options.get("apiVersions", ())))
    )


def _use_accepted_base(
    variant: Variant,
    recorded: UpstreamPackage,
    candidate: FileTree,
    tree: TreeId,
    reason: str,
    contents: PackageContentStore,
) -> RecoveredBase | UnavailableBase:
    """Return the base that the owner accepts instead of the recorded base."""
    if variant.strategy == "force-delete-replace":
        # With the package as its own base, the update replaces all files.
        return RecoveredBase(tree, tree, recorded.summary, recorded.chart_release)
    if candidate.id in variant.accepted_bases:
        return RecoveredBase(contents.store_tree(candidate), tree, recorded.summary, recorded.chart_release)
    owner = variant.owner.parent or variant.owner.key
    effect = "update all files and discard local changes" if candidate.id == tree else "use the files of this render"
    return UnavailableBase(
        f"the state of package {variant.target} is lost, and its base cannot be restored from {recorded.summary}:"
        f" {reason} (next step: remove this cause; or set updateStrategy: force-delete-replace to discard local"
        f" changes; or annotate {owner} with {ACCEPT_BASE}: {candidate.id} to {effect})"
    )


def _explain_difference(source: UpstreamPackage, status: Mapping[str, Any], content: SourceContent) -> str:
    recorded = status["inputs"]["source"]
    engine = "/".join(recorded.get("engine", {}).values())
    reasons = [
        f"the engine is {program} now, and was {engine}"
        for program in content.programs.values()
        if engine and program != engine
    ]
    if source.chart and recorded.get("valuesDigest") != source.values.fingerprint:
        reasons.append(f"the values have changed since config {status['inputs']['config']}")
    if not reasons:
        reasons.append("options of the render have changed")
    return f"the render has tree {content.files.id} and not {status['trees']['base']}: {'; '.join(reasons)}"
