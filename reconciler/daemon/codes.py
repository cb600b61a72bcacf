"""The codes of the world: what keeps a pass from reading or writing a repository; and all tables (design 10.24)."""

from __future__ import annotations

from reconciler.expressions import codes as expressions
from reconciler.krm import codes as krm
from reconciler.krm.findings import Code, Scope, Severity
from reconciler.packages import codes as packages
from reconciler.planning import codes as planning
from reconciler.rules import codes as rules
from reconciler.rules.composition import codes as composition
from reconciler.rules.overrides import codes as overrides
from reconciler.rules.placement import codes as placement
from reconciler.rules.presets import codes as presets
from reconciler.rules.templates import codes as templates
from reconciler.rules.variants import codes as variants
from reconciler.snapshot import codes as snapshot

CODES = (
    APPROVAL_FAILED := Code(
        "ApprovalFailed",
        Severity.WARNING,
        Scope.DESTINATION,
        "What annotations approve could not be pushed; it is tried again.",
    ),
    APPROVAL_HELD := Code(
        "ApprovalHeld",
        Severity.WARNING,
        Scope.PACKAGE,
        "An annotation approves a draft that has conflicts; the draft waits for a person who accepts them.",
    ),
    APPROVAL_REFUSED := Code(
        "ApprovalRefused",
        Severity.WARNING,
        Scope.DESTINATION,
        "A host refused what annotations approve; people are to merge it, or to let the cluster branch be written to.",
    ),
    ENGINE_TOO_OLD := Code(
        "EngineTooOld", Severity.ERROR, Scope.DESTINATION, "State was written by a newer version, and is left alone."
    ),
    PROPOSAL_BRANCH_TAKEN := Code(
        "ProposalBranchTaken",
        Severity.WARNING,
        Scope.CONFIG,
        "The branch of a proposal cannot be made, because another branch is in its way.",
    ),
    PROPOSAL_FAILED := Code(
        "ProposalFailed",
        Severity.WARNING,
        Scope.CONFIG,
        "A proposal to the config could not be pushed; it is tried again.",
    ),
    PROPOSAL_LOST := Code(
        "ProposalLost",
        Severity.INFO,
        Scope.CONFIG,
        "A proposal to the config lost a race, and is made again in the next pass.",
    ),
    PROPOSAL_REFUSED := Code(
        "ProposalRefused", Severity.WARNING, Scope.CONFIG, "The host of the config refused a proposal."
    ),
    PUSH_FAILED := Code(
        "PushFailed", Severity.ERROR, Scope.DESTINATION, "Drafts could not be pushed; it is tried again."
    ),
    PUSH_POSTPONED := Code(
        "PushPostponed",
        Severity.INFO,
        Scope.DESTINATION,
        "Drafts wait for their turn at a remote, and are pushed by a next pass.",
    ),
    PROPOSAL_POSTPONED := Code(
        "ProposalPostponed",
        Severity.INFO,
        Scope.CONFIG,
        "A proposal to the config waits for its turn, and is pushed by a next pass.",
    ),
    PUSH_REFUSED := Code("PushRefused", Severity.ERROR, Scope.DESTINATION, "A host refused to take drafts."),
    REPOSITORY_UNREACHABLE := Code(
        "RepositoryUnreachable", Severity.ERROR, Scope.DESTINATION, "A repository cannot be read now."
    ),
    REQUEST_REFUSED := Code(
        "PullRequestRefused",
        Severity.WARNING,
        Scope.DESTINATION,
        "A forge refused a pull request; the draft stands without it, and it is tried again later.",
    ),
    REQUESTS_UNREACHABLE := Code(
        "PullRequestsUnreachable",
        Severity.WARNING,
        Scope.DESTINATION,
        "The pull requests of a repository cannot be read now; drafts go on without them.",
    ),
    REQUESTS_WAIT := Code(
        "PullRequestsWait",
        Severity.INFO,
        Scope.DESTINATION,
        "Drafts wait for their pull requests, as many as a budget or a limit lets through.",
    ),
    STATE_UNREADABLE := Code(
        "StateUnreadable",
        Severity.ERROR,
        Scope.DESTINATION,
        "The state of a destination is not what this program wrote, and is left alone.",
    ),
    STATUS_BRANCH_UNUSABLE := Code(
        "StatusBranchUnusable",
        Severity.ERROR,
        Scope.CONFIG,
        "The branch for the status is not one that a pass wrote; it stays as it is, and drafts continue.",
    ),
    TAG_FAILED := Code(
        "RevisionTagFailed",
        Severity.WARNING,
        Scope.DESTINATION,
        "The tag of a published revision could not be pushed; it is tried again.",
    ),
    TAG_REFUSED := Code(
        "RevisionTagRefused",
        Severity.WARNING,
        Scope.DESTINATION,
        "A host refused the tag of a published revision; everything else goes on, and it is tried again later.",
    ),
    TAG_TAKEN := Code(
        "RevisionTagTaken",
        Severity.WARNING,
        Scope.DESTINATION,
        "The tag of a published revision is called like one that stands elsewhere, and is left alone.",
    ),
    URL_REFUSED := Code("UrlRefused", Severity.ERROR, Scope.DESTINATION, "An address may not be used, or is none."),
)

ALL_CODES = tuple(
    code
    for table in (
        krm.CODES,
        expressions.CODES,
        snapshot.CODES,
        packages.CODES,
        rules.CODES,
        variants.CODES,
        overrides.CODES,
        placement.CODES,
        presets.CODES,
        composition.CODES,
        templates.CODES,
        planning.CODES,
        CODES,
    )
    for code in table
)
