"""State: what a destination's state ref says, as values and as the files it is written in (git.md 3).

One parentless commit per destination: `destination.json`, `packages/<P>.json`, `texts/<digest>.json` of rules that
packages were made by, `trees/<tree id>/…`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from sys import intern
from typing import Any

from reconciler.caching import cached
from reconciler.krm.digest import digest
from reconciler.krm.identity import ObjectKey
from reconciler.krm.isolation import ExpectedError
from reconciler.krm.json_lines import json_lines
from reconciler.rules.overrides.rollout import RuleId, rule_id_of
from reconciler.rules.variant import ConfigSources, DeletionPolicy, Owner, object_of
from reconciler.snapshot.objects import BlobId, CommitId, TreeId

# a commit of another format must not be built on (`written_anew`)
FORMAT = 1
_DESTINATION = "destination.json"
KEPT_OFFERS = 20
KEPT_REVISIONS = 10
_TEXTS = "texts/"
# the kind of what made an owner, where it is not the usual one
_MAKERS = {"Plugin": "PluginPreset"}
_NOTHING: Mapping[Any, Any] = {}
_NO_SOURCES: ConfigSources = {}
# room for what is said of every package of a large catalogue, and of its faults, on whatever cluster
_SHARED = 4_096


class EngineTooOldError(ExpectedError):
    """The state was written by a newer engine; an older one must leave the destination alone (design 10.10)."""


class StateUnreadableError(ExpectedError):
    """Somebody else wrote the state, or spoilt it: the destination is left alone until the ref is mended or deleted."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One version of a package that we put on a draft branch (git.md 3).

    `rendered` and `status` are the package tree and the status blob as committed, `base` is the source as it
    came, `merged` the source with all edits as it entered the pipeline, `plain` the same without edits made
    on the draft, `against` what stood on the cluster branch, `review` a digest of conditions, gates, conflicts.
    `upstream` are the words for where it came from that trailers use, `rules` the texts of override rules that it was
    made by: where it is published, a rule whose rollout has not arrived goes on by that (design 10.23).
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

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data; of the texts, what they are kept by."""
        return {
            "rendered": self.rendered, "status": self.status, "base": self.base, "merged": self.merged,
            "plain": self.plain, "review": self.review, "against": self.against, "upstream": self.upstream,
            **_rules_data(self.rules),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Revision:
    """A published revision: its number, the commit on the cluster branch, and the offer it came from.

    `workspace` is the number of its draft, 0 where nobody knows; `tag` the tag object that bears its name at the
    remote, "" as long as none is known to.
    """

    number: int
    commit: CommitId
    offer: Offer
    workspace: int = 0
    tag: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        data = {"number": self.number, "commit": self.commit, "offer": self.offer.as_data()}
        return {**data, "workspace": self.workspace, "tag": self.tag}


@dataclass(frozen=True, slots=True)
class Seen:
    """What stood on the branches when the outcome was found: the package's trees, None where absent.

    `frozen`: the draft was proposed, so that nothing could be written to it. `stuck`: people work on the draft, and
    the cluster branch has moved on in this package, and in a file of theirs, since it began.
    """

    published: TreeId | None = None
    drafted: TreeId | None = None
    frozen: bool = False
    stuck: bool = False

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"published": self.published, "drafted": self.drafted, "frozen": self.frozen, "stuck": self.stuck}


@dataclass(frozen=True, slots=True)
class Removal:
    """A published package that was put up for removal: on which branch, and the tree that stood there then.

    `declined`: people did not want that; it is put up again when another tree stands there.
    """

    branch: str
    against: TreeId
    declined: bool = False

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"branch": self.branch, "against": self.against, "declined": self.declined}


@dataclass(frozen=True, slots=True)
class PackageRecord:
    """All that is remembered of one package of a destination.

    `owned` is False while the variant was only ever blocked, or when it is gone for good: the place is nobody's, and
    only the numbers that must not be used again are known (a tombstone). `deletion` is what the last valid variant
    asked for, should it go, and `removal` what became of that. `wanted` and
    `review` are what the last render came to, `trace` what it depended on, `render` what the owner is told of
    the last draft's render, `conflicts` those of edits on the draft with what came after them. `draft` names the
    branch that `put` is on: an offer keeps its branch whatever the settings say later. `dropped`
    is the source, without edits of the draft, of an offer that people have just declined with such edits on it.
    `policies` says how the last render used override policies (kubeadmiral 10.4), `rules` by which texts of their
    rules it was made. `sources` are the config files that the package comes from, as paths from the root of the config
    repository, each with the ids of its objects (`object_id`).
    """

    owner: Owner
    owned: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    workspace: int = 0
    revision: int = 0
    ours: Offer | None = None
    put: Offer | None = None
    draft: str = ""
    offers: tuple[Offer, ...] = ()
    revisions: tuple[Revision, ...] = ()
    declined: tuple[TreeId, ...] = ()
    trace: Mapping[str, str] = field(default_factory=dict)
    seen: Seen = Seen()
    wanted: TreeId | None = None
    review: str = ""
    render: Mapping[str, Any] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)
    conflicts: tuple[Mapping[str, Any], ...] = ()
    deletion: DeletionPolicy = "delete"
    removal: Removal | None = None
    dropped: TreeId | None = None
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rules: Mapping[RuleId, str] = field(default_factory=dict)
    sources: ConfigSources = field(default_factory=dict)

    def tombstone(self) -> PackageRecord:
        """Return what is left of the record when its owner gave the package up: numbers are never used again."""
        return PackageRecord(self.owner, workspace=self.workspace, revision=self.revision)

    def trees(self) -> frozenset[TreeId]:
        """Return the trees that state must keep alive: those of `ours`, the open offers and the last revisions."""
        trees = ((one.rendered, one.base, one.merged, one.plain) for one in self._known_offers())
        return frozenset(tree for found in trees for tree in found)

    def texts(self) -> frozenset[str]:
        """Return the texts of rules that it was made by, and those of every offer that state keeps."""
        rules = (self.rules, *(one.rules for one in self._known_offers()))
        return frozenset(text for found in rules for text in found.values())

    def arrived(self, published: TreeId | None) -> Mapping[RuleId, str]:
        """Return the texts of rules by which what is published was made, or was last before somebody deleted it.

        What is only drafted, or was declined, has not arrived.
        """
        last = self.ours or (self.revisions[-1].offer if self.revisions else None)
        if self.wanted is not None and self.wanted in (published, last and last.rendered):
            return self.rules
        return last.rules if last else {}

    def offer_of(self, status: BlobId) -> Offer | None:
        """Return the offer whose status file this is, as far as it is remembered."""
        return next((one for one in self._known_offers() if one.status == status), None)

    def _known_offers(self) -> Iterator[Offer]:
        yield from self.offers
        yield from (revision.offer for revision in self.revisions)
        yield from (offer for offer in (self.ours, self.put) if offer)

    def offered(self, offer: Offer, draft: str) -> PackageRecord:
        """Return the record with `offer` put on a draft branch; a new draft gets the next workspace number."""
        offers = (*(old for old in self.offers if old != offer), offer)[-KEPT_OFFERS:]
        workspace = self.workspace if self.put else self.workspace + 1
        return replace(self, put=offer, draft=draft, offers=offers, workspace=workspace)


@dataclass(frozen=True)
class OpenRequest:
    """What is remembered of the pull request of a draft branch, so that the forge is asked only what it must be.

    `number` is 0 while it waits to be opened. `read` is a digest of what its words and verdict were made from, `change`
    of what it changes, equal on all clusters where that is the same, `told` of the verdict as the forge has it.
    `readied`: we marked it ready for review, because the draft was proposed.
    `unlabelled` is a head of the draft, with conflicts, at which the request was seen without the label that accepts
    them: a label that is there later was set for this head.
    """

    number: int = 0
    read: str = ""
    change: str = ""
    told: str = ""
    readied: bool = False
    unlabelled: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data; an older version can read it unless the draft has conflicts."""
        return {name: value for name, value in vars(self).items() if value or name != "unlabelled"}


@dataclass(frozen=True)
class DraftBranch:
    """A draft branch of ours: the head that we pushed, and the commit of the cluster branch it starts at.

    `edited`: people have moved its head since it was made; it is only appended to until it ends (git.md 3).
    `removes`: it is a removal draft, which takes packages away and never adds any. `request` is its pull request's,
    where a forge is asked for one.
    """

    head: CommitId
    base: CommitId
    edited: bool = False
    removes: bool = False
    request: OpenRequest | None = None

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        data = {"head": self.head, "base": self.base, "edited": self.edited}
        more = {"removes": True} if self.removes else {}
        return {**data, **more, **({"request": self.request.as_data()} if self.request else {})}


@dataclass(frozen=True)
class DestinationState:
    """What the state ref of one destination says; url has no credentials.

    `config_root` is the first commit of the config branch, "" for a plain folder: another history has another one.
    `definition` are the config files that define the destination, as paths from the root of the config repository, each
    with the ids of its objects (`object_id`); empty in a state of an earlier version.
    """

    url: str
    branch: str
    directory: str
    seen: CommitId | None = None
    drafts: Mapping[str, DraftBranch] = field(default_factory=dict)
    packages: Mapping[str, PackageRecord] = field(default_factory=dict)
    config_root: str = ""
    definition: ConfigSources = field(default_factory=dict)

    @cached_property
    def sources(self) -> tuple[ConfigSources, ...]:
        """The config files that owned packages come from. Equal mappings of one process are mostly one object."""
        return tuple({id(one.sources): one.sources for one in self.packages.values() if one.owned}.values())

    def standing(self) -> Iterator[tuple[str, PackageRecord]]:
        """Yield the packages that somebody has here; what is on its way out was let go before, and counts no more."""
        for package, record in self.packages.items():
            if record.owned and record.removal is None:
                yield package, record

    @cached_property
    def owned_kinds(self) -> Mapping[tuple[str, str], tuple[tuple[str, PackageRecord], ...]]:
        """The packages that somebody has here, by group and kind of the owner."""
        found: dict[tuple[str, str], list[tuple[str, PackageRecord]]] = {}
        for package, record in self.standing():
            found.setdefault((record.owner.key.group, record.owner.key.kind), []).append((package, record))
        return {kind: tuple(ours) for kind, ours in found.items()}

    def trees(self) -> frozenset[TreeId]:
        """Return every tree that the state names."""
        return frozenset(tree for record in self.packages.values() for tree in record.trees())


def write_state(state: DestinationState) -> dict[str, bytes]:
    """Return the files of a state commit, without `trees/`; equal states give equal bytes."""
    return {_DESTINATION: _destination_file(state), **_package_files(state, state.packages), **_text_files(state)}


def written_anew(state: DestinationState, known: DestinationState) -> dict[str, bytes | None]:
    """Return by which files what `write_state` returns differs from that of another state; None: it has no such file.

    What the two have in common is not written.
    """
    changed = [package for package, one in state.packages.items() if not _is_same(one, known.packages.get(package))]
    gone = [_package_path(package) for package in known.packages.keys() - state.packages.keys()]
    texts, before = _text_files(state), _text_files(known)
    new = {path: content for path, content in texts.items() if path not in before}
    files = {_DESTINATION: _destination_file(state), **_package_files(state, changed), **new}
    return files | dict.fromkeys([*gone, *(before.keys() - texts.keys())])


def _is_same(one: PackageRecord, other: PackageRecord | None) -> bool:
    return one is other or one == other


def _destination_file(state: DestinationState) -> bytes:
    drafts = {name: draft.as_data() for name, draft in state.drafts.items()}
    definition = {path: list(ids) for path, ids in state.definition.items()}
    origin = {"root": state.config_root, "definition": definition}
    config = {"config": known} if (known := {name: value for name, value in origin.items() if value}) else {}
    return json_lines({
        "format": FORMAT, "url": state.url, "branch": state.branch, "directory": state.directory,
        "seen": state.seen, "drafts": drafts, **config,
    })  # fmt: skip


def _package_files(state: DestinationState, packages: Iterable[str]) -> dict[str, bytes]:
    return {_package_path(package): json_lines(_record_data(state.packages[package])) for package in packages}


def _package_path(package: str) -> str:
    return f"packages/{package}.json"


def _text_files(state: DestinationState) -> dict[str, bytes]:
    # equal on all clusters of a fleet, these cost it next to nothing
    texts = {text for record in state.packages.values() for text in record.texts()}
    return {f"{_TEXTS}{_hash(text)}.json": text.encode() for text in texts}


def _hash(text: str) -> str:
    return digest(text).removeprefix("sha256:")


def read_state(files: Mapping[str, bytes]) -> DestinationState:
    """Read what `write_state` wrote; raises EngineTooOldError on a newer format number, else StateUnreadableError."""
    try:
        return _read(files)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StateUnreadableError(f"the state is not one that this engine wrote ({error!r})") from error


def _read(files: Mapping[str, bytes]) -> DestinationState:
    data = json.loads(files[_DESTINATION])
    if data["format"] > FORMAT:
        raise EngineTooOldError(f"the state has format {data['format']}, this engine knows up to {FORMAT}")
    texts = {
        path.removeprefix(_TEXTS).removesuffix(".json"): content.decode()
        for path, content in files.items()
        if path.startswith(_TEXTS)
    }
    packages = {
        path.removeprefix("packages/").removesuffix(".json"): _read_record(json.loads(content), texts)
        for path, content in files.items()
        if path.startswith("packages/")
    }
    drafts = {name: _read_draft(draft) for name, draft in data["drafts"].items()}
    origin = data.get("config", _NOTHING)
    return DestinationState(
        data["url"], data["branch"], data["directory"], data["seen"], drafts, packages, origin.get("root", ""),
        _read_sources(json.dumps(origin.get("definition", {}))),
    )  # fmt: skip


def _read_draft(data: Mapping[str, Any]) -> DraftBranch:
    request = OpenRequest(**data["request"]) if data.get("request") else None
    return DraftBranch(**{**data, "request": request})


def _record_data(record: PackageRecord) -> dict[str, Any]:
    return {
        "owner": {"group": record.owner.key.group, **record.owner.as_data()},
        "owned": record.owned,
        "labels": dict(record.labels),
        "annotations": dict(record.annotations),
        "workspace": record.workspace,
        "revision": record.revision,
        "ours": record.ours.as_data() if record.ours else None,
        "put": record.put.as_data() if record.put else None,
        "draft": record.draft,
        "offers": [offer.as_data() for offer in record.offers],
        "revisions": [revision.as_data() for revision in record.revisions],
        "declined": list(record.declined),
        "trace": dict(record.trace),
        "seen": record.seen.as_data(),
        "wanted": record.wanted,
        "review": record.review,
        "render": dict(record.render),
        "outcome": dict(record.outcome),
        **({"conflicts": [dict(one) for one in record.conflicts]} if record.conflicts else {}),
        **({"deletion": record.deletion} if record.deletion != "delete" else {}),
        **({"removal": record.removal.as_data()} if record.removal else {}),
        **({"dropped": record.dropped} if record.dropped else {}),
        **({"policies": dict(record.policies)} if record.policies else {}),
        **_rules_data(record.rules),
        **({"sources": {path: list(ids) for path, ids in record.sources.items()}} if record.sources else {}),
    }


def _rules_data(rules: Mapping[RuleId, str]) -> dict[str, dict[str, str]]:
    return {"rules": {str(rule): _hash(text) for rule, text in rules.items()}} if rules else {}


def _read_rules(data: Mapping[str, str], texts: Mapping[str, str]) -> Mapping[RuleId, str]:
    return {rule: texts[key] for name, key in data.items() if (rule := rule_id_of(name))} if data else _NOTHING


def _read_record(data: Mapping[str, Any], texts: Mapping[str, str]) -> PackageRecord:
    offers = tuple([_read_offer(offer, texts) for offer in data["offers"]])

    def offer_of(one: Mapping[str, Any]) -> Offer:
        # nearly always one of those that were made
        return offers[data["offers"].index(one)] if one in data["offers"] else _read_offer(one, texts)

    return PackageRecord(
        owner=_read_owner(data["owner"]),
        owned=data["owned"],
        labels=_shared(data["labels"]),
        annotations=_shared(data["annotations"]),
        workspace=data["workspace"],
        revision=data["revision"],
        ours=offer_of(data["ours"]) if data["ours"] else None,
        put=offer_of(data["put"]) if data["put"] else None,
        draft=intern(data["draft"]),
        offers=offers,
        revisions=tuple([_read_revision(revision, offer_of) for revision in data["revisions"]]),
        declined=tuple(data["declined"]),
        trace={intern(name): intern(answer) for name, answer in data["trace"].items()},
        seen=Seen(**_interned(data["seen"])),
        wanted=TreeId(intern(data["wanted"])) if data["wanted"] is not None else None,
        review=intern(data["review"]),
        render=_shared(data["render"]),
        outcome=_shared(data["outcome"]),
        conflicts=tuple(data.get("conflicts", ())),
        deletion=data.get("deletion", "delete"),
        removal=Removal(**data["removal"]) if "removal" in data else None,
        dropped=data.get("dropped"),
        policies=_shared(data.get("policies", _NOTHING)),
        rules=_read_rules(data.get("rules", _NOTHING), texts),
        sources=_read_sources(json.dumps(data["sources"])) if "sources" in data else _NO_SOURCES,
    )


@cached(_SHARED)
def _read_sources(text: str) -> ConfigSources:
    sources = {intern(path): tuple(intern(one) for one in ids) for path, ids in json.loads(text).items()}
    for ids in sources.values():
        for one in ids:
            # an id that cannot be read makes the state unreadable
            object_of(one)
    return sources


def _read_revision(data: Mapping[str, Any], offer_of: Callable[[Mapping[str, Any]], Offer]) -> Revision:
    return Revision(
        data["number"], data["commit"], offer_of(data["offer"]), data.get("workspace", 0), data.get("tag", "")
    )


def _read_offer(data: Mapping[str, Any], texts: Mapping[str, str]) -> Offer:
    return Offer(**{**_interned(data), "rules": _read_rules(data.get("rules", _NOTHING), texts)})


def _read_owner(data: Mapping[str, str]) -> Owner:
    group, kind, namespace = intern(data["group"]), intern(data["kind"]), intern(data["namespace"])
    maker = _MAKERS.get(kind, "PackageVariantSet")
    made_by = _set_of(group, maker, namespace, data["set"]) if "set" in data else None
    return Owner(ObjectKey(group, kind, namespace, data["name"]), intern(data["apiVersion"]), made_by)


# a process holds the records of a whole fleet, which say much the same: what is equal is kept once


def _shared(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return _one_of(json.dumps(data)) if data else _NOTHING


@cached(_SHARED)
def _one_of(text: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(text)
    return found


@cached(_SHARED)
def _set_of(group: str, kind: str, namespace: str, name: str) -> ObjectKey:
    return ObjectKey(group, kind, namespace, name)


def _interned(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: intern(value) if isinstance(value, str) else value for name, value in data.items()}
