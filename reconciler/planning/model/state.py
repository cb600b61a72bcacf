"""Recorded state of a target, and its serialization to the files of a state ref.

The state ref of a target points to one commit without parents, with these files:

- `destination.json`: the target itself and its draft branches.
- `packages/<package>.json`: one record per package.
- `texts/<digest>.json`: the content of override rules that packages were rendered with.
- `trees/<tree id>/…`: trees that the records refer to. The Git adapter adds these files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from sys import intern
from typing import Any

from reconciler.api.porch.policies import DeletionPolicy
from reconciler.catalog.files import BlobId, CommitId, TreeId
from reconciler.catalog.tenants import TENANT_DEPENDENCY
from reconciler.controllers.override_policies.rollout import RuleId, parse_rule_id
from reconciler.controllers.results import ConfigSources, PackageOwner, parse_object_id
from reconciler.krm.internal_errors import ExpectedError
from reconciler.krm.json_text import compute_hash, encode_indented_json
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.memory import cached

# `serialize_state_changes` keeps unchanged files in the format in which they were written. Therefore a state can
# contain files of several formats, and `parse_state` reads each file in its own format.
STATE_FORMAT = 2
# Maps the current keys to the keys in files of format 1. Keys that are equal in both formats are omitted.
_KEYS_OF_FORMAT_1 = {
    "publishedVersion": "ours", "draftVersion": "put", "unpublishedVersions": "offers", "desiredTree": "wanted",
    "version": "offer",
}  # fmt: skip
_TARGET_FILE = "destination.json"
MAX_UNPUBLISHED_VERSIONS = 20
MAX_REVISIONS = 10
_TEXTS_FOLDER = "texts/"
# The kind of the object that creates an owner, by the kind of the owner. All other owners are created by a
# PackageVariantSet.
_PARENT_KINDS = {"Plugin": "PluginPreset"}
_EMPTY: Mapping[Any, Any] = {}
_NO_SOURCES: ConfigSources = {}
# For some classes, the keys in the state file differ from the field names. These mappings map keys to field names.
_OBSERVED_FIELDS = {"published": "published", "drafted": "drafted", "frozen": "is_frozen", "stuck": "is_stuck"}
_REMOVAL_FIELDS = {"branch": "branch", "against": "against", "declined": "is_declined"}
_DRAFT_FIELDS = {
    "head": "head", "base": "base", "edited": "is_edited", "removes": "is_removal", "request": "pull_request"
}  # fmt: skip
_PULL_REQUEST_FIELDS = {
    "number": "number", "read": "inputs_digest", "change": "change_digest", "status": "status_digest",
    "readied": "is_marked_ready", "unlabelled": "unlabeled_head",
}  # fmt: skip
# The maximum number of cached values. This number is large enough for the distinct outcomes, findings and config
# sources of a large fleet.
_MAX_SHARED_VALUES = 4_096


class EngineTooOldError(ExpectedError):
    """A newer version of the reconciler wrote the state, so that this version must not write to the target."""

    def __init__(self, state_format: int) -> None:
        super().__init__(
            f"the state has format {state_format}, but this version of the reconciler supports only formats up to"
            f" {STATE_FORMAT}"
        )


class StateUnreadableError(ExpectedError):
    """The state is corrupt, or another program wrote it.

    The daemon writes nothing to the target until a person repairs or deletes the state ref.
    """


@dataclass(frozen=True, slots=True)
class RenderedVersion:
    """One rendered version of a package that was written to a draft branch.

    Attributes:
        rendered: The committed tree of the package.
        status: The committed blob of the status file.
        base: The source tree without local changes.
        merged: The source tree with all local changes, which is the input of the pipeline.
        plain: The source tree like `merged`, but without the local changes of the draft.
        review: The digest of the conditions, readiness gates and conflicts.
        against: The tree of the package on the target branch at the time of the draft.
        upstream: The summary of the upstream for commit trailers.
        rules: The content of the override rules that were applied. While the rollout of a changed rule has not reached
            the cluster, the package continues to use this content.
        release: The releases of all charts, in the format of `UpstreamPackage.chart_release`.
    """

    rendered: TreeId
    status: BlobId
    base: TreeId
    merged: TreeId
    plain: TreeId
    review: str
    against: TreeId | None = None
    upstream: str = ""
    rules: Mapping[RuleId, str] = field(default_factory=dict)
    release: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return the version as JSON data. The content of each override rule is replaced by its digest."""
        return {
            "rendered": self.rendered, "status": self.status, "base": self.base, "merged": self.merged,
            "plain": self.plain, "review": self.review, "against": self.against, "upstream": self.upstream,
            **_serialize_rules(self.rules), **({"release": self.release} if self.release else {}),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PublishedRevision:
    """A published revision: its number, its commit on the target branch, and the version that was published.

    Attributes:
        workspace: The workspace number of the draft, or 0 if it is unknown.
        tag: The ID of the Git tag object of the revision, or "" if no tag is known.
    """

    number: int
    commit: CommitId
    version: RenderedVersion
    workspace: int = 0
    tag: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return the revision as JSON data."""
        data = {"number": self.number, "commit": self.commit, "version": self.version.as_data()}
        return {**data, "workspace": self.workspace, "tag": self.tag}


@dataclass(frozen=True, slots=True)
class ObservedPackage:
    """Trees of a package at the time of the decision about it.

    A tree is None if the branch does not contain the package.

    Attributes:
        published: The tree on the target branch.
        drafted: The tree on the draft branch.
        is_frozen: Whether the draft was proposed, so that the daemon must not change it.
        is_stuck: Whether the draft cannot be updated, because the target branch changed the package, and also changed a
            file that has local changes on the draft.
    """

    published: TreeId | None = None
    drafted: TreeId | None = None
    is_frozen: bool = False
    is_stuck: bool = False

    def as_data(self) -> dict[str, Any]:
        """Return the trees and flags as JSON data."""
        return {key: getattr(self, name) for key, name in _OBSERVED_FIELDS.items()}


@dataclass(frozen=True, slots=True)
class ProposedRemoval:
    """The proposed deletion of a published package.

    Attributes:
        branch: The draft branch that deletes the package.
        against: The tree of the package on the target branch when the deletion was proposed.
        is_declined: Whether a person rejected the deletion. It is proposed again when the published tree changes.
    """

    branch: str
    against: TreeId
    is_declined: bool = False

    def as_data(self) -> dict[str, Any]:
        """Return the proposed deletion as JSON data."""
        return {key: getattr(self, name) for key, name in _REMOVAL_FIELDS.items()}


@dataclass(frozen=True, slots=True)
class PackageRecord:
    """All data that the state contains about one package of a target.

    Attributes:
        is_owned: Whether the package has an owner. If False, the record is a tombstone (see `to_tombstone`), or all
            variants of the package were blocked.
        last_workspace: The highest workspace number in use.
        last_revision: The highest revision number in use.
        published_version: The version on the target branch. The branch can also contain later local changes.
        draft_version: The version on the draft branch. The branch can also contain later local changes.
        draft_branch: The branch of `draft_version`. It does not change when the settings change.
        unpublished_versions: The versions that were drafted since the last publication, oldest first.
        revisions: The last published revisions, oldest first.
        declined_trees: The rendered trees that a person rejected, oldest first.
        trace: The dependency fingerprints of the last render.
        observed: The trees on the branches at the time of the last decision.
        desired_tree: The tree of the last render.
        review_digest: `RenderedVersion.review` of the last render.
        render_status: The render result of the last draft, for the status of the owner.
        outcome: The last outcome as JSON data: kind, conditions, findings and upstream.
        conflicts: The conflicts between local changes on the draft and later updates.
        deletion_policy: The deletion policy of the last valid variant.
        declined_source: The source tree of a version that was just rejected, without local changes of the draft. This
            value is set only if the draft had local changes.
        policy_usage: For each override policy in the last render, the resources that name the policy, and the rules
            that select the cluster.
        rule_texts: The content of the override rules that the last render applied.
        definitions: The names of the CustomResourceDefinitions in the last render.
        config_sources: The config files that define the package, with the IDs of its objects in each file. The paths
            start at the root of the config repository.
    """

    owner: PackageOwner
    is_owned: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    last_workspace: int = 0
    last_revision: int = 0
    published_version: RenderedVersion | None = None
    draft_version: RenderedVersion | None = None
    draft_branch: str = ""
    unpublished_versions: tuple[RenderedVersion, ...] = ()
    revisions: tuple[PublishedRevision, ...] = ()
    declined_trees: tuple[TreeId, ...] = ()
    trace: Mapping[str, str] = field(default_factory=dict)
    observed: ObservedPackage = ObservedPackage()
    desired_tree: TreeId | None = None
    review_digest: str = ""
    render_status: Mapping[str, Any] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)
    conflicts: tuple[Mapping[str, Any], ...] = ()
    deletion_policy: DeletionPolicy = "delete"
    removal: ProposedRemoval | None = None
    declined_source: TreeId | None = None
    policy_usage: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rule_texts: Mapping[RuleId, str] = field(default_factory=dict)
    definitions: tuple[str, ...] = ()
    config_sources: ConfigSources = field(default_factory=dict)

    @property
    def tenant(self) -> str:
        """The tenant of the package at its last render. "" if the package has no tenant or was never rendered."""
        return self.trace.get(TENANT_DEPENDENCY, "").partition(" ")[0]

    def to_tombstone(self) -> PackageRecord:
        """Return a record with only the workspace and revision numbers, because they must never be used again."""
        return PackageRecord(self.owner, last_workspace=self.last_workspace, last_revision=self.last_revision)

    def collect_trees(self) -> frozenset[TreeId]:
        """Return the trees of all versions that the state must keep."""
        trees = (
            (version.rendered, version.base, version.merged, version.plain) for version in self._iterate_versions()
        )
        return frozenset(tree for group in trees for tree in group)

    def collect_rule_texts(self) -> frozenset[str]:
        """Return the content of all override rules that the last render and the recorded versions applied."""
        rules = (self.rule_texts, *(version.rules for version in self._iterate_versions()))
        return frozenset(text for texts in rules for text in texts.values())

    def find_published_rule_texts(self, published: TreeId | None) -> Mapping[RuleId, str]:
        """Return the contents of the override rules that the render of the published package applied.

        If the package was deleted from the target branch, use its last published revision. Ignore drafted and declined
        versions.
        """
        last = self.published_version or (self.revisions[-1].version if self.revisions else None)
        if self.desired_tree is not None and self.desired_tree in (published, last and last.rendered):
            return self.rule_texts
        return last.rules if last else {}

    def find_version(self, status: BlobId) -> RenderedVersion | None:
        """Return the recorded version with this status file. Return None if no version has this status file."""
        return next((version for version in self._iterate_versions() if version.status == status), None)

    def _iterate_versions(self) -> Iterator[RenderedVersion]:
        yield from self.unpublished_versions
        yield from (revision.version for revision in self.revisions)
        yield from (version for version in (self.published_version, self.draft_version) if version)

    def with_draft_version(self, version: RenderedVersion, branch: str) -> PackageRecord:
        """Return the record with `version` on the draft branch. A new draft gets the next workspace number."""
        versions = (*(old for old in self.unpublished_versions if old != version), version)[-MAX_UNPUBLISHED_VERSIONS:]
        workspace = self.last_workspace if self.draft_version else self.last_workspace + 1
        return replace(
            self, draft_version=version, draft_branch=branch, unpublished_versions=versions, last_workspace=workspace
        )


@dataclass(frozen=True)
class PullRequestRecord:
    """Recorded data of a draft branch's pull request. The record avoids unnecessary requests to the forge.

    Attributes:
        number: The number of the pull request, or 0 before it is opened.
        inputs_digest: The digest of the inputs of the title, body and commit status.
        change_digest: The digest of the change. It is equal on all clusters that receive the same change.
        status_digest: The digest of the commit status that was last sent to the forge.
        is_marked_ready: Whether the pull request was marked as ready for review, because the draft was proposed.
        unlabeled_head: The last draft head without a label that accepts the conflicts. If a later pass finds the label
            at this head, a reviewer has accepted the conflicts of this head.
    """

    number: int = 0
    inputs_digest: str = ""
    change_digest: str = ""
    status_digest: str = ""
    is_marked_ready: bool = False
    unlabeled_head: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return the record as JSON data.

        The key `unlabelled` is omitted if empty, because older versions cannot read it.
        """
        data = {key: getattr(self, name) for key, name in _PULL_REQUEST_FIELDS.items()}
        return {key: value for key, value in data.items() if value or key != "unlabelled"}


@dataclass(frozen=True)
class DraftBranch:
    """A draft branch of the reconciler.

    Attributes:
        head: The commit that the reconciler pushed last.
        base: The commit of the target branch that the draft branch starts at.
        is_edited: Whether other people pushed commits. Then the reconciler only appends commits until the branch is
            deleted.
        is_removal: Whether the branch only deletes packages.
        pull_request: The record of the pull request. None if the branch has no pull request.
    """

    head: CommitId
    base: CommitId
    is_edited: bool = False
    is_removal: bool = False
    pull_request: PullRequestRecord | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the branch as JSON data."""
        data = {"head": self.head, "base": self.base, "edited": self.is_edited}
        more = {"removes": True} if self.is_removal else {}
        return {**data, **more, **({"request": self.pull_request.as_data()} if self.pull_request else {})}


@dataclass(frozen=True)
class TargetState:
    """Recorded state of one target.

    Attributes:
        url: The URL of the repository without credentials.
        observed_commit: The last known commit of the target branch.
        config_root: The first commit of the config branch, which identifies its history, or "" for a plain folder.
        definition_sources: The config files that define the target, with the IDs of its objects in each file. The paths
            start at the root of the config repository. Empty in states of earlier program versions.
    """

    url: str
    branch: str
    directory: str
    observed_commit: CommitId | None = None
    drafts: Mapping[str, DraftBranch] = field(default_factory=dict)
    packages: Mapping[str, PackageRecord] = field(default_factory=dict)
    config_root: str = ""
    definition_sources: ConfigSources = field(default_factory=dict)

    @cached_property
    def config_sources(self) -> tuple[ConfigSources, ...]:
        """The `config_sources` mappings of all owned packages. Each one maps config files to object IDs.

        If several packages share one mapping object, the result contains it once.
        """
        owned = (record for record in self.packages.values() if record.is_owned)
        return tuple({id(record.config_sources): record.config_sources for record in owned}.values())

    def list_active_packages(self) -> Iterator[tuple[str, PackageRecord]]:
        """Yield the packages that have an owner and whose deletion is not proposed."""
        for package, record in self.packages.items():
            if record.is_owned and record.removal is None:
                yield package, record

    @cached_property
    def active_packages_by_kind(self) -> Mapping[tuple[str, str], tuple[tuple[str, PackageRecord], ...]]:
        """Maps an API group and kind to the active packages (`list_active_packages`) whose owners have this kind."""
        packages: dict[tuple[str, str], list[tuple[str, PackageRecord]]] = {}
        for package, record in self.list_active_packages():
            packages.setdefault((record.owner.key.group, record.owner.key.kind), []).append((package, record))
        return {kind: tuple(entries) for kind, entries in packages.items()}

    def collect_trees(self) -> frozenset[TreeId]:
        """Return all trees that the state refers to."""
        return frozenset(tree for record in self.packages.values() for tree in record.collect_trees())


def serialize_state(state: TargetState) -> dict[str, bytes]:
    """Return the files of a state commit, except for the files in `trees/`. Equal states give equal bytes."""
    return {
        _TARGET_FILE: _serialize_target(state),
        **_serialize_packages(state, state.packages),
        **_serialize_texts(state),
    }


def serialize_state_changes(state: TargetState, known: TargetState) -> dict[str, bytes | None]:
    """Return the files of `serialize_state` that differ between two states. The value None means a deleted file."""
    changed = [
        package for package, record in state.packages.items() if not _is_same(record, known.packages.get(package))
    ]
    deleted = [_get_package_path(package) for package in known.packages.keys() - state.packages.keys()]
    texts, known_texts = _serialize_texts(state), _serialize_texts(known)
    new_texts = {path: content for path, content in texts.items() if path not in known_texts}
    files = {_TARGET_FILE: _serialize_target(state), **_serialize_packages(state, changed), **new_texts}
    return files | dict.fromkeys([*deleted, *(known_texts.keys() - texts.keys())])


def _is_same(record: PackageRecord, other: PackageRecord | None) -> bool:
    return record is other or record == other


def _serialize_target(state: TargetState) -> bytes:
    drafts = {name: draft.as_data() for name, draft in state.drafts.items()}
    definition = {path: list(ids) for path, ids in state.definition_sources.items()}
    origin = {"root": state.config_root, "definition": definition}
    config = {"config": values} if (values := {name: value for name, value in origin.items() if value}) else {}
    return encode_indented_json({
        "format": STATE_FORMAT, "url": state.url, "branch": state.branch, "directory": state.directory,
        "seen": state.observed_commit, "drafts": drafts, **config,
    })  # fmt: skip


def _serialize_packages(state: TargetState, packages: Iterable[str]) -> dict[str, bytes]:
    return {
        _get_package_path(package): encode_indented_json(_serialize_record(state.packages[package]))
        for package in packages
    }


def _get_package_path(package: str) -> str:
    return f"packages/{package}.json"


def _serialize_texts(state: TargetState) -> dict[str, bytes]:
    # Store each rule content as a separate file, because Git stores equal files of all clusters only once.
    texts = {text for record in state.packages.values() for text in record.collect_rule_texts()}
    return {f"{_TEXTS_FOLDER}{compute_hash(text)}.json": text.encode() for text in texts}


def parse_state(files: Mapping[str, bytes]) -> TargetState:
    """Read the files that `serialize_state` wrote.

    Raises:
        EngineTooOldError: The state has a newer format.
        StateUnreadableError: The state cannot be read.
    """
    try:
        return _parse_files(files)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StateUnreadableError(f"the state was not written by the reconciler, or is corrupt ({error!r})") from error


def _parse_files(files: Mapping[str, bytes]) -> TargetState:
    data = json.loads(files[_TARGET_FILE])
    if data["format"] > STATE_FORMAT:
        raise EngineTooOldError(data["format"])
    texts = {
        path.removeprefix(_TEXTS_FOLDER).removesuffix(".json"): content.decode()
        for path, content in files.items()
        if path.startswith(_TEXTS_FOLDER)
    }
    packages = {
        path.removeprefix("packages/").removesuffix(".json"): _parse_record(json.loads(content), texts)
        for path, content in files.items()
        if path.startswith("packages/")
    }
    drafts = {name: _parse_draft(draft) for name, draft in data["drafts"].items()}
    origin = data.get("config", _EMPTY)
    return TargetState(
        data["url"], data["branch"], data["directory"], data["seen"], drafts, packages, origin.get("root", ""),
        _parse_sources(json.dumps(origin.get("definition", {}))),
    )  # fmt: skip


def _parse_draft(data: Mapping[str, Any]) -> DraftBranch:
    fields = _rename_keys(data, _DRAFT_FIELDS)
    recorded = data.get("request")
    # Read the key `told` too, because format 1 has this key instead of `status`.
    names = {**_PULL_REQUEST_FIELDS, "told": "status_digest"}
    pull_request = PullRequestRecord(**_rename_keys(recorded, names)) if recorded else None
    return DraftBranch(**{**fields, "pull_request": pull_request})


def _rename_keys(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Replace the keys of stored data by field names. `names` maps each known key to a field name.

    Raise KeyError for an unknown key, so that no value is silently deleted.
    """
    return {names[key]: value for key, value in data.items()}


def _serialize_record(record: PackageRecord) -> dict[str, Any]:
    return {
        "owner": {"group": record.owner.key.group, **record.owner.as_data()},
        "owned": record.is_owned,
        "labels": dict(record.labels),
        "annotations": dict(record.annotations),
        "workspace": record.last_workspace,
        "revision": record.last_revision,
        "publishedVersion": record.published_version.as_data() if record.published_version else None,
        "draftVersion": record.draft_version.as_data() if record.draft_version else None,
        "draft": record.draft_branch,
        "unpublishedVersions": [version.as_data() for version in record.unpublished_versions],
        "revisions": [revision.as_data() for revision in record.revisions],
        "declined": list(record.declined_trees),
        "trace": dict(record.trace),
        "seen": record.observed.as_data(),
        "desiredTree": record.desired_tree,
        "review": record.review_digest,
        "render": dict(record.render_status),
        "outcome": dict(record.outcome),
        **({"conflicts": [dict(conflict) for conflict in record.conflicts]} if record.conflicts else {}),
        **({"deletion": record.deletion_policy} if record.deletion_policy != "delete" else {}),
        **({"removal": record.removal.as_data()} if record.removal else {}),
        **({"dropped": record.declined_source} if record.declined_source else {}),
        **({"policies": dict(record.policy_usage)} if record.policy_usage else {}),
        **_serialize_rules(record.rule_texts),
        **({"definitions": list(record.definitions)} if record.definitions else {}),
        **(
            {"sources": {path: list(ids) for path, ids in record.config_sources.items()}}
            if record.config_sources
            else {}
        ),
    }


def _serialize_rules(rules: Mapping[RuleId, str]) -> dict[str, dict[str, str]]:
    return {"rules": {str(rule): compute_hash(text) for rule, text in rules.items()}} if rules else {}


def _parse_rules(data: Mapping[str, str], texts: Mapping[str, str]) -> Mapping[RuleId, str]:
    return {rule: texts[key] for name, key in data.items() if (rule := parse_rule_id(name))} if data else _EMPTY


def _parse_record(data: Mapping[str, Any], texts: Mapping[str, str]) -> PackageRecord:
    unpublished, published, drafted, desired_tree = (
        _get_value(data, key) for key in ("unpublishedVersions", "publishedVersion", "draftVersion", "desiredTree")
    )
    versions = tuple([_parse_version(version, texts) for version in unpublished])

    def version_of(value: Mapping[str, Any]) -> RenderedVersion:
        # Reuse the parsed object in `versions`, because `versions` usually contains the published and the drafted
        # version.
        return versions[unpublished.index(value)] if value in unpublished else _parse_version(value, texts)

    return PackageRecord(
        owner=_parse_owner(data["owner"]),
        is_owned=data["owned"],
        labels=_share(data["labels"]),
        annotations=_share(data["annotations"]),
        last_workspace=data["workspace"],
        last_revision=data["revision"],
        published_version=version_of(published) if published else None,
        draft_version=version_of(drafted) if drafted else None,
        draft_branch=intern(data["draft"]),
        unpublished_versions=versions,
        revisions=tuple([_parse_revision(revision, version_of) for revision in data["revisions"]]),
        declined_trees=tuple(data["declined"]),
        trace={intern(name): intern(answer) for name, answer in data["trace"].items()},
        observed=ObservedPackage(**_rename_keys(_intern_values(data["seen"]), _OBSERVED_FIELDS)),
        desired_tree=TreeId(intern(desired_tree)) if desired_tree is not None else None,
        review_digest=intern(data["review"]),
        render_status=_share(data["render"]),
        outcome=_share(data["outcome"]),
        conflicts=tuple(data.get("conflicts", ())),
        deletion_policy=data.get("deletion", "delete"),
        removal=ProposedRemoval(**_rename_keys(data["removal"], _REMOVAL_FIELDS)) if "removal" in data else None,
        declined_source=data.get("dropped"),
        policy_usage=_share(data.get("policies", _EMPTY)),
        rule_texts=_parse_rules(data.get("rules", _EMPTY), texts),
        definitions=tuple(intern(name) for name in data.get("definitions", ())),
        config_sources=_parse_sources(json.dumps(data["sources"])) if "sources" in data else _NO_SOURCES,
    )


@cached(_MAX_SHARED_VALUES)
def _parse_sources(text: str) -> ConfigSources:
    sources = {intern(path): tuple(intern(object_id) for object_id in ids) for path, ids in json.loads(text).items()}
    for ids in sources.values():
        for object_id in ids:
            # Validate each ID. For an invalid ID, `parse_object_id` raises an error, and the caller then treats the
            # whole state as unreadable.
            parse_object_id(object_id)
    return sources


def _parse_revision(
    data: Mapping[str, Any], version_of: Callable[[Mapping[str, Any]], RenderedVersion]
) -> PublishedRevision:
    return PublishedRevision(
        data["number"],
        data["commit"],
        version_of(_get_value(data, "version")),
        data.get("workspace", 0),
        data.get("tag", ""),
    )


def _get_value(data: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key. Files of format 1 have a different key for some values."""
    return data[key] if key in data else data[_KEYS_OF_FORMAT_1[key]]


def _parse_version(data: Mapping[str, Any], texts: Mapping[str, str]) -> RenderedVersion:
    return RenderedVersion(**{**_intern_values(data), "rules": _parse_rules(data.get("rules", _EMPTY), texts)})


def _parse_owner(data: Mapping[str, str]) -> PackageOwner:
    group, kind, namespace = intern(data["group"]), intern(data["kind"]), intern(data["namespace"])
    parent_kind = _PARENT_KINDS.get(kind, "PackageVariantSet")
    parent = _share_key(group, parent_kind, namespace, data["set"]) if "set" in data else None
    return PackageOwner(ObjectKey(group, kind, namespace, data["name"]), intern(data["apiVersion"]), parent)


# Store equal values only once. A process keeps the records of a whole fleet in memory, and most of their values are
# equal.


def _share(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return _parse_shared(json.dumps(data)) if data else _EMPTY


@cached(_MAX_SHARED_VALUES)
def _parse_shared(text: str) -> Mapping[str, Any]:
    value: Mapping[str, Any] = json.loads(text)
    return value


@cached(_MAX_SHARED_VALUES)
def _share_key(group: str, kind: str, namespace: str, name: str) -> ObjectKey:
    return ObjectKey(group, kind, namespace, name)


def _intern_values(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: intern(value) if isinstance(value, str) else value for name, value in data.items()}
