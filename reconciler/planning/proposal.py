"""The proposal to the config: which revisions a commit for review would write, and what becomes of its branch.

One branch carries one commit with every revision that a tag has moved on from (porch 14.1, tagMode rewrite).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from reconciler.krm.findings import Finding
from reconciler.krm.json_lines import json_lines
from reconciler.krm.yaml import Document, YamlFile
from reconciler.planning.codes import (
    PROPOSAL_EDITED,
    PROPOSAL_NOT_POSSIBLE,
    REVISION_DECLINED,
    REVISION_PROPOSED,
)
from reconciler.planning.state import FORMAT, EngineTooOldError, StateUnreadableError
from reconciler.rules.variant import Pin
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import BlobId, CommitId

STATE_FILE = "config.json"
Stage = Literal["offered", "taken", "declined"]
Revision = str | int


@dataclass(frozen=True)
class Offered:
    """A revision that was put up for review, and what people made of it."""

    revision: Revision
    stage: Stage = "offered"

    def is_of(self, revision: Revision | None) -> bool:
        """Whether it is this revision, however people spell it."""
        return revision is not None and _spelled(self.revision) == _spelled(revision)


@dataclass(frozen=True)
class ProposalState:
    """What is remembered of proposals: the branch with the head that we pushed and the config commit below it.

    `offers` are the last offers by `Pin.id`; one is forgotten when the tag moves on.
    """

    branch: str = ""
    head: CommitId | None = None
    base: CommitId | None = None
    offers: Mapping[str, Offered] = field(default_factory=dict)


@dataclass(frozen=True)
class Edit:
    """One revision that the proposal writes."""

    pin: Pin
    revision: Revision


@dataclass(frozen=True)
class ConfigGround:
    """The config repository as a pass found it.

    `config` is the commit that was read, `head` that of the branch for proposals, `files` those of the config.
    `complete` is False while a file of it cannot be read. `blob_at_base` tells what stood at one of `files`' paths in
    the commit that the standing proposal was made on. `read` parses a file that was read before.
    """

    branch: str
    config: CommitId
    head: CommitId | None
    state: ProposalState
    files: FileTree
    complete: bool
    blob_at_base: Callable[[str], BlobId | None]
    read: Callable[[bytes], YamlFile]

    @property
    def known(self) -> ProposalState:
        """What is remembered of this branch: nothing of heads when the settings name another one now."""
        return self.state if self.state.branch == self.branch else replace(self.state, head=None, base=None)

    @property
    def is_edited(self) -> bool:
        """Whether the branch holds what we did not push."""
        return self.head is not None and self.head != self.known.head


@dataclass(frozen=True)
class Proposal:
    """What becomes of the branch for proposals: written anew on the config's head, ended, or kept as it is.

    `edits` are what it says afterwards, in `before` and `after` the files that they touch. `state` is what is then to
    be remembered, but for the new head.
    """

    branch: str = ""
    layout: Literal["write", "end", "keep"] = "keep"
    edits: tuple[Edit, ...] = ()
    before: FileTree = field(default_factory=FileTree)
    after: FileTree = field(default_factory=FileTree)
    state: ProposalState = ProposalState()
    findings: tuple[Finding, ...] = ()

    @property
    def seconds(self) -> int:
        """The latest date of the commits that the tags name."""
        return max((edit.pin.seconds for edit in self.edits), default=0)


def propose(pins: Iterable[Pin], ground: ConfigGround) -> Proposal:
    """Return what is to be proposed; a revision that people declined, or took back, waits until the tag moves on."""
    pins = tuple(pins)
    offers = _offers(pins, ground)
    edits = tuple(
        Edit(pin, offers[pin.id].revision) for pin in pins if pin.id in offers and offers[pin.id].stage == "offered"
    )
    before, after = _edited_files(edits, ground)
    layout = _layout(edits, after, offers, ground)
    if ground.is_edited:
        offers = _on_the_branch(offers, ground)
    state = replace(ground.known, branch=ground.branch, offers=offers)
    if ground.head is None:
        state = replace(state, head=None, base=None)
    return Proposal(ground.branch, layout, edits, before, after, state, _findings(pins, edits, offers, ground))


def suggest(pins: Iterable[Pin], files: FileTree, read: Callable[[bytes], YamlFile]) -> Proposal:
    """Return what would be proposed to a config that nothing can be proposed to: people write it themselves."""
    edits = tuple(Edit(pin, pin.named) for pin in pins if pin.named is not None and not pin.holds)
    before, after = _edit_files(edits, files, read)
    findings = tuple(
        PROPOSAL_NOT_POSSIBLE.finding(
            f"{move_words(edit)}; CONFIG is a plain folder, so write {_spelled_field(edit)} there by hand",
            edit.pin.where,
        )
        for edit in edits
    )
    return Proposal("", "write" if edits else "keep", edits, before, after, findings=findings)


def move_words(edit: Edit) -> str:
    """Return what a tag names now, and what the config says."""
    pin = edit.pin
    named = f"tag {pin.tag} of {pin.package} names {_spelled(edit.revision)}"
    if pin.written is None:
        return f"{named}, and {_field(pin)} is missing"
    older = ", which is older" if pin.backwards else ""
    return f"{named}{older}; {_field(pin)} is {_spelled(pin.written)}"


def _spelled(revision: Revision) -> str:
    text = str(revision)
    return f"v{text}" if text.isdecimal() else text


def _field(pin: Pin) -> str:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in pin.path)
    return f"{steps[1:]}.revision"


def _spelled_field(edit: Edit) -> str:
    return f"revision: {json.dumps(edit.revision) if isinstance(edit.revision, int) else edit.revision}"


def _offers(pins: Iterable[Pin], ground: ConfigGround) -> dict[str, Offered]:
    known = ground.known
    gone = known.head is not None and ground.head is None
    found = {pin.id: _next(pin, known.offers.get(pin.id), gone) for pin in pins}
    if not ground.complete:
        # whose file cannot be read now is not gone
        found = {**known.offers, **found}
    return {name: offer for name, offer in sorted(found.items()) if offer}


def _next(pin: Pin, known: Offered | None, gone: bool) -> Offered | None:
    """Return what becomes of an offer. `gone`: the branch that carried it is not there any more."""
    if known and known.is_of(pin.written):
        known = replace(known, stage="taken")
    elif known and (known.stage == "taken" or gone):
        # it was merged and taken back, or its branch was deleted: that is people's answer
        known = replace(known, stage="declined")
    if pin.named is None:
        return known
    if known is None or not known.is_of(pin.named):
        known = None if pin.holds else Offered(pin.named)
    # another name for the same package needs no review
    return None if known and pin.holds and known.stage == "offered" else known


def _on_the_branch(offers: Mapping[str, Offered], ground: ConfigGround) -> dict[str, Offered]:
    """Return the offers without those that could not be put on the branch, because people work on it."""
    known = ground.known.offers
    return {
        name: offer if offer.stage != "offered" else known[name]
        for name, offer in offers.items()
        if offer.stage != "offered" or name in known
    }


def _layout(
    edits: tuple[Edit, ...], after: FileTree, offers: Mapping[str, Offered], ground: ConfigGround
) -> Literal["write", "end", "keep"]:
    if ground.is_edited or _is_in_the_dark(offers, edits):
        return "keep"
    if not edits:
        return "end" if ground.head else "keep"
    stands = ground.head is not None and _standing(offers) == _standing(ground.known.offers)
    moved = any(ground.blob_at_base(path) != ground.files[path].id for path in after)
    return "keep" if stands and not moved else "write"


def _is_in_the_dark(offers: Mapping[str, Offered], edits: tuple[Edit, ...]) -> bool:
    """Whether an offer stands for an object that cannot be read now: without it the branch would take it back."""
    return len(_standing(offers)) > len(edits)


def _standing(offers: Mapping[str, Offered]) -> dict[str, Revision]:
    return {name: offer.revision for name, offer in offers.items() if offer.stage == "offered"}


def _edited_files(edits: tuple[Edit, ...], ground: ConfigGround) -> tuple[FileTree, FileTree]:
    return _edit_files(edits, ground.files, ground.read)


def _edit_files(edits: Iterable[Edit], files: FileTree, read: Callable[[bytes], YamlFile]) -> tuple[FileTree, FileTree]:
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.pin.file, []).append(edit)
    before = {path: files[path] for path in by_file}
    after = {path: _edit_file(file, by_file[path], read) for path, file in before.items()}
    return FileTree(before), FileTree(after)


def _edit_file(file: File, edits: Iterable[Edit], read: Callable[[bytes], YamlFile]) -> File:
    content = read(file.data)
    lines = [document.line for document in content.documents]
    for edit in edits:
        index = lines.index(edit.pin.line)
        content = content.replace(index, _edit_document(content.documents[index], edit))
    return File(content.to_bytes(), file.executable)


def _edit_document(document: Document, edit: Edit) -> Document:
    return document.with_data(_with_revision(document.data, edit.pin.path, edit.revision))


def _with_revision(data: Any, path: tuple[str | int, ...], revision: Revision) -> Any:
    if path:
        changed = _with_revision(data[path[0]], path[1:], revision)
        if isinstance(data, list):
            return [changed if index == path[0] else item for index, item in enumerate(data)]
        return {key: changed if key == path[0] else value for key, value in data.items()}
    if "revision" in data:
        return {**data, "revision": revision}
    # before the tag that it holds still
    added: dict[str, Any] = {}
    for key, value in data.items():
        added |= {"revision": revision, key: value} if key in ("tag", "ref") else {key: value}
    return added


def _findings(
    pins: Iterable[Pin], edits: tuple[Edit, ...], offers: Mapping[str, Offered], ground: ConfigGround
) -> tuple[Finding, ...]:
    if edits and ground.is_edited:
        return tuple(
            PROPOSAL_EDITED.finding(
                f"{move_words(edit)}; branch {ground.branch} holds what people put there: merge or delete it,"
                " and the change is proposed",
                edit.pin.where,
            )
            for edit in edits
        )
    offered = (
        REVISION_PROPOSED.finding(
            f"{move_words(edit)}; the change is for review on branch {ground.branch}",
            edit.pin.where,
        )
        for edit in edits
    )
    declined = (
        REVISION_DECLINED.finding(
            f"{move_words(Edit(pin, offers[pin.id].revision))}; that was declined, and is proposed again when the"
            " tag has moved on",
            pin.where,
        )
        for pin in pins
        if pin.id in offers and offers[pin.id].stage == "declined"
    )
    return (*offered, *declined)


def write_proposal_state(state: ProposalState) -> dict[str, bytes]:
    """Return the files of the state commit; equal states give equal bytes."""
    offers = {name: {"revision": one.revision, "stage": one.stage} for name, one in state.offers.items()}
    data = {"format": FORMAT, "branch": state.branch, "head": state.head, "base": state.base, "offers": offers}
    return {STATE_FILE: json_lines(data)}


def read_proposal_state(files: Mapping[str, bytes]) -> ProposalState:
    """Read what `write_proposal_state` wrote; raises EngineTooOldError on a newer format, else StateUnreadableError."""
    try:
        data = json.loads(files[STATE_FILE])
        if data["format"] > FORMAT:
            raise EngineTooOldError(f"the state has format {data['format']}, this engine knows up to {FORMAT}")
        offers = {name: Offered(one["revision"], one["stage"]) for name, one in data["offers"].items()}
        return ProposalState(data["branch"], data["head"], data["base"], offers)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateUnreadableError(f"the state is not one that this engine wrote ({error!r})") from error
