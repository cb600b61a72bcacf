"""Services of a pass: the Protocols and functions that `reconciler.bootstrap` implements with real adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.definition_conflicts import DefinitionConflict
from reconciler.catalog.files import FileTree, TreeId
from reconciler.controllers.clusters.inventory import KnownClusters
from reconciler.controllers.components.component_types import GeneratedKind
from reconciler.controllers.results import ControllerResult
from reconciler.executors.executor import Executor
from reconciler.git.errors import GitError
from reconciler.git.push_outcomes import PushOutcome
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.output.commits import DryCommit
from reconciler.planning.decide.drafts import DraftTextWriter
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.layout.config_proposal import ConfigProposal
from reconciler.planning.layout.refs import TagPolicy
from reconciler.planning.model.shard import Shard
from reconciler.planning.model.state import TargetState
from reconciler.planning.model.targets import Target
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.reconcile.commits import TagResult, WrittenPlan
from reconciler.reconcile.config_proposals import ConfigProposals
from reconciler.reconcile.config_source import ConfigSnapshot
from reconciler.reconcile.pass_cache import FirstSeenTimes, KnownHeads
from reconciler.reconcile.pull_requests.synchronizer import PullRequests, PullRequestSummary
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import RefTemplates
from reconciler.reconcile.review_actions import ApprovalResult


class ConfigSource(Protocol):
    """Source of the config: a folder, a branch or a commit."""

    def read(self) -> ConfigSnapshot:
        """Return the current config. Raises GitError."""
        ...


class PlanPublisher(Protocol):
    """Applies a plan: pushes it, only shows it, or writes it to a folder. Passes do not differ in anything else."""

    @property
    def status_error(self) -> str:
        """Why the last pass could not write the status; "" after a success."""
        ...

    @property
    def status_findings(self) -> Sequence[Finding]:
        """One finding for each object whose status the last pass could not write."""
        ...

    def publish(self, remote: Remote, plans: Sequence[WrittenPlan]) -> Mapping[str, PushOutcome]:
        """Push the drafts and states of one remote's targets; return the outcomes by target name.

        Passes call this for several remotes at the same time, in one thread per remote.
        """
        ...

    def push_tags(self, remote: Remote, plans: Sequence[WrittenPlan]) -> TagResult:
        """Push the missing tags of published revisions, after the states are pushed.

        Passes call this in one thread per remote, like `publish`.
        """
        ...

    def push_approvals(self, groups: Sequence[tuple[Remote, Sequence[WrittenPlan]]], now: int) -> ApprovalResult:
        """Publish the drafts that annotations approve and that are due at `now`, after all other pushes."""
        ...

    def update_pull_requests(
        self,
        pull_requests: PullRequests,
        targets: Sequence[Target],
        remotes: Remotes,
        templates: RefTemplates,
        retry_at: int,
    ) -> PullRequestSummary:
        """Update the pull requests of these targets; `retry_at` is the time of the next attempt after a failure."""
        ...

    def push_config_proposal(
        self, proposals: ConfigProposals, proposal: ConfigProposal, config: ConfigSnapshot
    ) -> PushOutcome:
        """Push a proposal to the config repository."""
        ...

    def push_status(self, plan: FleetPlan | None, remotes: Remotes) -> PushOutcome:
        """Push the status of the config objects, as the last step of a pass. `plan` is None in other shards."""
        ...

    def store_publication_times(self, times: FirstSeenTimes) -> None:
        """Store the publication times that a pass observed, if this publisher pushes."""
        ...

    def store_known_heads(self, heads: KnownHeads) -> None:
        """Store the last known heads of target branches in the cache, if this publisher pushes."""
        ...


class ControllerRunner(Protocol):
    """Runs all controllers."""

    def __call__(
        self, catalog: Catalog, remotes: Remotes, states: Mapping[Target, TargetState], now: int
    ) -> ControllerResult:
        """Return the result of all controllers for a catalog.

        Args:
            catalog: The objects of the config.
            remotes: The fetched remotes.
            states: The states of all targets whose state can be read.
            now: Seconds since 1970. A reference to a new version can wait until it is old enough.
        """
        ...


class ConfigLinter(Protocol):
    """Runs additional checks of the config that a pass does not need."""

    def __call__(
        self, catalog: Catalog, remotes: Remotes, result: ControllerResult, now: int, /
    ) -> tuple[Finding, ...]:
        """Return the findings; `result` is the result of the controllers for the catalog."""
        ...


class FunctionIdentities(Protocol):
    """Identities of functions that run outside of this process. They can change although no ref moves."""

    def refresh(self) -> None:
        """Discard the identities, so that a pass determines each of them once."""
        ...

    def identity(self, name: str) -> str:
        """Return the identity of a function by its dependency name; "" if it cannot be determined now."""
        ...

    @property
    def requested_functions(self) -> tuple[str, ...]:
        """The dependency names of all functions requested so far, in order."""
        ...

    def digest(self) -> str:
        """Return a digest of the identities requested so far."""
        ...


@dataclass(frozen=True)
class PassServices:
    """The services and settings of a pass.

    Attributes:
        preload: Loads code that a config needs, while remotes are being fetched.
        list_urls: Returns the URLs of all upstreams, and the URLs of all targets.
        list_settings_urls: Returns the URL of each repository that the settings name, or why it cannot be used.
        find_rival_claims: Finds objects that define the same cluster, name or target.
        find_claimed_targets: Returns the targets that the objects of conflicts define.
        create_text_writer: Creates the writer of commit messages and status files for a config id.
        state_ref: Template of state refs, with `{repository}`.
        draft_template: Template of draft branches.
        removal_template: Template of removal branches.
        publication_times: When each published version was first seen.
        should_date_actions: Whether actions of people carry the current time.
        should_treat_missing_as_empty: Whether a target repository that does not exist counts as empty.
        report_progress: Receives a stage, the number of completed steps, and the total.
    """

    read_catalog: Callable[[ConfigSnapshot], Catalog]
    preload: Callable[[Catalog], None]
    list_targets: Callable[[Catalog], Sequence[Target]]
    list_urls: Callable[[Catalog], tuple[Sequence[str], Sequence[str]]]
    list_settings_urls: Callable[[], Mapping[str, str | GitError]]
    run_controllers: ControllerRunner
    lint: ConfigLinter
    read_cluster_versions: Callable[[Catalog], KnownClusters]
    find_target_conflicts: Callable[[Catalog], Mapping[ObjectKey, Finding]]
    find_rival_claims: Callable[[Catalog], Sequence[DefinitionConflict]]
    find_claimed_targets: Callable[[Catalog, Sequence[DefinitionConflict]], Mapping[ConfigObject, Target]]
    create_renderer: Callable[[Catalog], PackageRenderer]
    functions: FunctionIdentities
    find_locked_tree: Callable[[FileTree, Catalog, Remotes], TreeId | None]
    find_upstream_urls: Callable[[str, Catalog], Sequence[str]]
    create_text_writer: Callable[[str, DryCommit | None], DraftTextWriter]
    state_ref: str
    draft_template: str
    removal_template: str
    create_tag_policy: Callable[[Catalog], TagPolicy]
    list_generated_kinds: Callable[[Catalog], tuple[tuple[GeneratedKind, ...], tuple[Finding, ...]]]
    config_proposals: ConfigProposals
    pull_requests: PullRequests
    publication_times: FirstSeenTimes
    known_heads: KnownHeads
    clock: Callable[[], float]
    executor: Executor | None = None
    has_annotation_approvals: bool = False
    should_date_actions: bool = True
    shard: Shard = field(default_factory=Shard)
    max_pushes: int = 8
    max_delete_percent: int = 30
    should_treat_missing_as_empty: bool = False
    report_progress: Callable[[str, int, int], None] = lambda stage, done, total: None

    @property
    def ref_templates(self) -> RefTemplates:
        """The templates of ref names."""
        return RefTemplates(self.state_ref, self.draft_template, self.removal_template)


def keep_stages(services: PassServices) -> PassServices:
    """Return services whose renders include every render stage, so that they can be explained.

    Renders then run in this process, because an executor returns packages without their stages.
    """
    return replace(
        services,
        create_renderer=lambda catalog: replace(services.create_renderer(catalog), should_keep_stages=True),
        executor=None,
    )
