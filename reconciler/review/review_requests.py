"""Requests of people for review actions, and the drafts to which a request applies."""

from __future__ import annotations

from typing import Literal, get_args

from reconciler.catalog.files import CommitId
from reconciler.krm.internal_errors import ExpectedError
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.risk import RiskLevel
from reconciler.planning.lifecycle.open_drafts import BlockingReason

ConsoleVerb = Literal["approve", "propose", "reject"]
CONSOLE_VERBS: tuple[ConsoleVerb, ...] = get_args(ConsoleVerb)
"""The actions on the drafts of a change."""
JobVerb = Literal[ConsoleVerb, "revert"]
"""All actions that a person confirms. `revert` applies to published packages and creates drafts."""


class ReviewRequestError(ExpectedError):
    """A request of a person that cannot be completed. The message contains the next step.

    Attributes:
        code: The reason as an identifier, such as `UnknownChange`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class SelectedTarget:
    """A target that a person selects. If the heads are not "", the person saw the draft with these heads."""

    name: str
    head: str = ""
    published_head: str = ""


@dataclass(frozen=True)
class ChangeSelection:
    """The part of a change that a person selects.

    Attributes:
        key: The key of the change.
        variants: The short keys of the selected variants. If empty, all variants are selected.
        targets: The selected targets. If empty, all targets are selected.
        effects: The digest `ReviewChange.effects` of the change that the person saw in a list. "" if the person saw the
            change on its own page.
    """

    key: str
    variants: frozenset[str] = frozenset()
    targets: tuple[SelectedTarget, ...] = ()
    effects: str = ""


@dataclass(frozen=True)
class ConfirmedDraft:
    """A draft of one package, as the person saw it.

    For the action `revert`, `head` is the commit of the target branch that contains the earlier content of the package,
    and `published_head` is the commit that contains the content which the revert replaces.

    Attributes:
        change: The key of the change.
        variant_digest: The full digest of the variant.
        variant: The short key of the variant.
        conflict_count: The number of conflicts of the package.
        other_packages: The other packages on the draft branch. A proposal or a rejection also applies to them.
    """

    target: str
    package: str
    branch: str
    head: CommitId
    published_head: CommitId
    change: str
    variant_digest: str
    variant: str
    risk: RiskLevel
    is_removal: bool = False
    conflict_count: int = 0
    other_packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExcludedDraft:
    """A draft to which the action does not apply, with the reason."""

    target: str
    package: str
    reason: BlockingReason


@dataclass(frozen=True)
class PublishedDraft:
    """A draft that a job has published.

    Attributes:
        draft: The draft, as the person confirmed it.
        commit: The commit of the target branch that published the draft. "" if a forge has merged the draft.
    """

    draft: ConfirmedDraft
    commit: str = ""


@dataclass(frozen=True)
class ReviewRequest:
    """The action that a person requests.

    Attributes:
        removals: Whether the action applies only to drafts that remove packages. If False, it applies only to all other
            drafts.
        accepts_conflicts: Whether the person has reviewed the conflicts of the drafts.
        stage: The stage to which the selections are limited. "" if there is none.
        published: The approved drafts that the action `revert` applies to. () for all other actions, which have
            selections.
    """

    verb: JobVerb
    selections: tuple[ChangeSelection, ...]
    removals: bool = False
    accepts_conflicts: bool = False
    stage: str = ""
    published: tuple[PublishedDraft, ...] = ()
