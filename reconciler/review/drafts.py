"""Reads the open drafts of the targets that a review command selects, and gives access to their remotes and forges."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from reconciler.catalog.catalog import Catalog
from reconciler.catalog.files import CommitId
from reconciler.controllers.clusters.inventory import read_inventory
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.repositories import read_repositories
from reconciler.git.errors import GitError, InternalGitError
from reconciler.git.object_reader import Commit
from reconciler.git.push_outcomes import PushReport, PushUnit
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.output.status.package_sections import read_inputs, read_text
from reconciler.output.text import shorten_id
from reconciler.planning.decide.deletion_safety import check_repository_reset
from reconciler.planning.lifecycle.open_drafts import BlockingReason, DraftedPackage, OpenDraft
from reconciler.planning.model.targets import Target
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.reconcile.pass_inputs import ConfigSource
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import (
    BRANCH_PREFIX,
    DraftReader,
    OpenTarget,
    ReviewSelection,
    UnknownTargetError,
    read_target_states,
)
from reconciler.reconcile.services import PassServices
from reconciler.reconcile.snapshot import resolve_definition_conflicts
from reconciler.review import draft_effects

if TYPE_CHECKING:
    from reconciler.review.draft_effects import DraftEffects

OTHER_PERSON_REQUIRED = "OtherPersonRequired"
_MAX_NAMES_IN_MESSAGE = 20


class DraftReview(DraftReader):
    """Access to one config, and to the drafts of its targets, for a review command.

    The caller must keep `remotes` open while this object is in use.
    """

    def __init__(self, source: ConfigSource, remotes: Remotes, services: PassServices) -> None:
        super().__init__(remotes, services.ref_templates)
        self._source = source
        self._services = services
        self.config_id = ""
        """ID of the config that was read last: a commit ID, or `tree:` followed by a tree ID."""

    def open_targets(self, selection: ReviewSelection) -> tuple[OpenTarget, ...]:
        """Fetch the selected targets, and return them with their open drafts, sorted by target name.

        Raises:
            GitError: The config cannot be read.
            UnknownTargetError: The selection names an unknown target.
        """
        config = self._source.read()
        self.config_id = config.id
        unresolved = self._services.read_catalog(config)
        catalog = resolve_definition_conflicts(unresolved, config, self._remotes, self._services, self.fetch)
        targets = self._services.list_targets(catalog)
        _check_targets_exist(selection, targets)
        clusters = read_inventory(catalog, read_repositories(catalog)[0]).clusters
        read_labels = partial(_read_labels, catalog=catalog, clusters=clusters)
        selected, labels, failed = self._select(selection, targets, read_labels)
        self.fetch({target.url for target in selected})
        # Read the states of all targets now, because one request per remote is faster than one request per target.
        read_target_states(selected, self._remotes, self.state_ref)
        conflicts = self._services.find_target_conflicts(catalog)
        open_targets = [
            OpenTarget(target, error=conflicts[target.key].message)
            if target.key in conflicts
            else self.read_target(target)
            for target in selected
        ]
        checked = [self._check_reset_isolated(open_target, catalog) for open_target in open_targets]
        labelled = [
            *failed, *(replace(open_target, labels=labels[open_target.target]) for open_target in checked)
        ]  # fmt: skip
        return tuple(sorted(labelled, key=lambda open_target: open_target.target.key.name))

    def _select(
        self,
        selection: ReviewSelection,
        targets: Iterable[Target],
        read_labels: Callable[[Target], Mapping[str, str]],
    ) -> tuple[Sequence[Target], Mapping[Target, Mapping[str, str]], Sequence[OpenTarget]]:
        """Select targets by name and labels.

        Returns:
            Three values: the selected targets, the labels of each selected target, and an entry with an error for each
                target whose labels cannot be read.
        """
        selected: dict[Target, Mapping[str, str]] = {}
        failed: list[OpenTarget] = []
        for target in targets:
            try:
                with repository_boundary(target.title):
                    labels = read_labels(target)
                    if selection.matches(target.name, labels):
                        selected[target] = labels
            except InternalGitError as error:
                log_if_internal(error)
                if not selection.names_targets or selection.matches(target.name, {}):
                    failed.append(OpenTarget(target, error=error.full_message))
        return tuple(selected), selected, failed

    def _check_reset_isolated(self, open_target: OpenTarget, catalog: Catalog) -> OpenTarget:
        """Return the result of `_check_reset`. Convert an unexpected exception to an error of the target."""
        try:
            with repository_boundary(open_target.target.title):
                return self._check_reset(open_target, catalog)
        except InternalGitError as error:
            log_if_internal(error)
            return OpenTarget(open_target.target, error=error.full_message)

    def _check_reset(self, open_target: OpenTarget, catalog: Catalog) -> OpenTarget:
        """Return the target. Add an error if its branch and state are missing, but existed in an earlier pass."""
        target = open_target.target
        remote = None if open_target.error or open_target.snapshot else self._remotes.get(target.url)
        if remote is None or BRANCH_PREFIX + target.branch in remote.refs:
            return open_target
        known = self._services.known_heads.find(target)
        finding = check_repository_reset(target, known, catalog.objects[target.key].annotations) if known else None
        return replace(open_target, error=finding.message) if finding else open_target

    @property
    def state_ref(self) -> str:
        """Template for the names of state refs."""
        return self._templates.state

    @property
    def max_pushes(self) -> int:
        """Maximum number of remotes that receive a push at the same time."""
        return self._services.max_pushes

    def report_progress(self, stage: str, done: int, total: int) -> None:
        """Report that `done` of `total` steps of a stage are complete."""
        self._services.report_progress(stage, done, total)

    def action_seconds(self) -> int | None:
        """Return the date for the commits that a review action publishes, in seconds since 1970.

        Return None if these commits must use the date of the commits on which they are based.
        """
        return int(self._services.clock()) if self._services.should_date_actions else None

    def now(self) -> int:
        """Return the current time, in seconds since 1970."""
        return int(self._services.clock())

    def fetch(self, urls: Iterable[str]) -> None:
        """Fetch the remotes with these URLs. Read their open pull requests as well if approvals merge pull requests."""
        unique = set(urls)
        self._remotes.fetch((), unique)
        if self._services.pull_requests.options.merge_method:
            self._services.pull_requests.cache.refresh(unique)

    def find_own_change(
        self, draft: OpenDraft, packages: Collection[str], person: tuple[str, str] | None
    ) -> BlockingReason | None:
        """Return the reason why another person must approve a draft. Return None if this person may approve it.

        Args:
            packages: The names of the packages to approve. If empty, the whole draft is approved.
        """
        read_commit = self._services.read_config_commit
        if read_commit is None or person is None:
            return None
        editors = [(author.email, f"a commit on {draft.branch}") for author in self.list_editors(draft)]
        try:
            authors = [*editors, *_list_config_authors(draft.select_packages(packages), read_commit)]
        except GitError as error:
            return BlockingReason(
                OTHER_PERSON_REQUIRED, f"the author of the config commit cannot be determined: {error.full_message}"
            )
        own = [change for email, change in authors if email.casefold() == person[1].casefold()]
        if not own:
            return None
        message = f"{person[1]} is the author of {own[0]}; another person must approve the draft"
        return BlockingReason(OTHER_PERSON_REQUIRED, message)

    @property
    def required_approvals(self) -> int:
        """The number of people who must approve a draft."""
        return self._services.required_approvals

    def can_merge(self, draft: OpenDraft) -> bool:
        """Return whether an approval publishes the draft by merging its pull request, and not by a push."""
        return self._services.pull_requests.can_merge(draft.target)

    def merge(self, draft: OpenDraft, message: str) -> str:
        """Merge the pull request of a draft, and return the URL of the pull request.

        Raises:
            ForgeError: The merge failed, e.g. because the draft branch has moved since it was read.
        """
        return self._services.pull_requests.merge(draft.target, draft.branch, draft.head, message)

    def open_effects(self) -> DraftEffects:
        """Fetch all remotes in the config, and return the object that computes the effects of HelmReleases.

        Raises:
            GitError: The config cannot be read.
        """
        return draft_effects.DraftEffects(self._source, self._remotes, self._services)

    def push(self, target: Target, units: Sequence[PushUnit]) -> PushReport:
        """Push `units` to the remote of a target. All ref updates of one push unit are atomic."""
        remote = self._remotes.get(target.url)
        assert remote is not None, "a review action opens the remotes of its targets"
        return remote.mirror.push(units)

    def list_branches(self, target: Target) -> Mapping[str, CommitId] | None:
        """Return the current branches of a target's remote. Return None if the remote does not respond."""
        return self._remotes.list_branches(target.url)


def _list_config_authors(
    packages: Iterable[DraftedPackage], read_commit: Callable[[CommitId], Commit]
) -> Iterator[tuple[str, str]]:
    """For each config commit of the packages, yield the author's mail address and a description of the commit."""
    for config in dict.fromkeys(read_text(read_inputs(package.status), "config") for package in packages):
        # A config folder without Git has no author.
        if config and not config.startswith("tree:"):
            yield read_commit(CommitId(config)).author.email, f"the config commit {shorten_id(config)}"


def _read_labels(target: Target, catalog: Catalog, clusters: Mapping[str, Cluster]) -> Mapping[str, str]:
    """Return the labels of a target. The labels of a cluster come from all objects that describe the cluster."""
    return clusters[target.name].labels if target.is_deployment else catalog.objects[target.key].labels


def _check_targets_exist(selection: ReviewSelection, targets: Iterable[Target]) -> None:
    names = sorted({target.name for target in targets})
    for reference in selection.references:
        if reference.cluster not in names:
            raise UnknownTargetError(
                f'{reference}: there is no Repository or cluster "{reference.cluster}"; '
                f"existing names: {_join_names(names)}"
            )


def list_target_errors(open_targets: Iterable[OpenTarget]) -> tuple[Finding, ...]:
    """Return one finding for each target that cannot be read."""
    return tuple(
        PassCodes.TARGET_UNREADABLE.finding(open_target.error, SourceLocation(object=open_target.target.key.reference))
        for open_target in open_targets
        if open_target.error
    )


def check_packages_exist(selection: ReviewSelection, open_targets: Iterable[OpenTarget]) -> None:
    """Raise UnknownTargetError if the selection names a package that its target does not have."""
    for open_target in open_targets:
        name = open_target.target.name
        for package in sorted(selection.packages_of(name)):
            if not open_target.error and package not in open_target.packages:
                known = _join_names(sorted(open_target.packages))
                raise UnknownTargetError(f"{name}/{package}: {name} has no such package; existing packages: {known}")


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES_IN_MESSAGE} more" if len(names) > _MAX_NAMES_IN_MESSAGE else ""
    return f"{', '.join(names[:_MAX_NAMES_IN_MESSAGE])}{more}" if names else "none"
