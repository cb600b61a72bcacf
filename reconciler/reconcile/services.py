"""The services that a pass needs, as Protocols and callables. The package `reconciler.bootstrap` implements them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.definition_conflicts import DefinitionConflict
from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.controllers.clusters.inventory import KnownClusters
from reconciler.controllers.components.component_types import GeneratedKind
from reconciler.controllers.results import ControllerResult, Variant
from reconciler.executors.executor import Executor
from reconciler.git.errors import GitError
from reconciler.git.object_reader import Commit
from reconciler.git.push_outcomes import PushOutcome
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.commit_messages import DryCommit
from reconciler.planning.decide.drafts import DraftTextWriter
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.layout.config_proposal import ConfigProposal
from reconciler.planning.layout.refs import TagPolicy
from reconciler.planning.model.shard import Shard
from reconciler.planning.model.state import TargetState
from reconciler.planning.model.targets import Target
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.reconcile.artifact_inputs import ArtifactInputs
from reconciler.reconcile.cache_files import FirstSeenTimes, KnownHeads
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.commits import TagResult, WrittenPlan
from reconciler.reconcile.config_proposals import ConfigProposals
from reconciler.reconcile.config_source import ConfigSnapshot
from reconciler.reconcile.input_verifier import InputVerifier, UncheckedInputs
from reconciler.reconcile.pass_inputs import FunctionIdentities
from reconciler.reconcile.pull_requests.open_requests import PullRequestCache
from reconciler.reconcile.pull_requests.synchronizer import PullRequests, PullRequestSummary
from reconciler.reconcile.remotes.ports import SourceRenderer
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import RefTemplates
from reconciler.reconcile.review_actions import ApprovalResult


class PlanPublisher(Protocol):
    """Applies the results of a pass: a publisher pushes them, shows them, or writes them to a folder.

    All commands use the same pass, and differ only in their publisher.
    """

    @property
    def status_error(self) -> str:
        """The error that prevented the last pass from writing the status. It is "" if the status was written."""
        ...

    @property
    def status_findings(self) -> Sequence[Finding]:
        """The findings about statuses that the last pass could not write."""
        ...

    def publish(self, remote: Remote, plans: Sequence[WrittenPlan]) -> Mapping[str, PushOutcome]:
        """Push the drafts and states of all targets of one remote, and return the outcomes by target name.

        A pass calls this method for several remotes at the same time, in one thread per remote.
        """
        ...

    def push_tags(self, remote: Remote, plans: Sequence[WrittenPlan]) -> TagResult:
        """Push the missing tags of published revisions.

        A pass calls this method after it has pushed the states. For each remote, it calls the method in a separate
        thread.
        """
        ...

    def push_approvals(self, groups: Sequence[tuple[Remote, Sequence[WrittenPlan]]], now: int) -> ApprovalResult:
        """Publish the drafts that annotations approve and that are due at `now`, in seconds since 1970."""
        ...

    def update_pull_requests(
        self,
        pull_requests: PullRequests,
        targets: Sequence[Target],
        remotes: Remotes,
        templates: RefTemplates,
        retry_at: int,
    ) -> PullRequestSummary:
        """Update the pull requests of these targets. `retry_at` is the time of the next attempt after a failure."""
        ...

    def push_config_proposal(
        self, proposals: ConfigProposals, proposal: ConfigProposal, config: ConfigSnapshot
    ) -> PushOutcome:
        """Push a config proposal to the config repository."""
        ...

    def push_status(self, plan: FleetPlan | None, remotes: Remotes) -> PushOutcome:
        """Push the status of the config objects. `plan` is None if another shard writes the status."""
        ...

    def store_publication_times(self, times: FirstSeenTimes) -> None:
        """Write the recorded publication times to the cache file. A publisher that does not push does nothing."""
        ...

    def store_known_heads(self, heads: KnownHeads) -> None:
        """Write the known heads of target branches to the cache file. The publisher of a dry run does nothing."""
        ...


class ControllerRunner(Protocol):
    """Runs all controllers for the objects of a config."""

    def __call__(
        self, catalog: Catalog, remotes: Remotes, states: Mapping[Target, TargetState], now: int
    ) -> ControllerResult:
        """Return the result of all controllers.

        Args:
            states: The states of all targets whose state can be read.
            now: The time of the pass, in seconds since 1970. Controllers use it to wait until a moved tag has settled.
        """
        ...


class ConfigLinter(Protocol):
    """Runs additional checks of the config. A pass does not need these checks."""

    def __call__(
        self, catalog: Catalog, remotes: Remotes, result: ControllerResult, now: int, /
    ) -> tuple[Finding, ...]:
        """Return the findings of the checks. `result` is the result of the controllers for `catalog`."""
        ...


@dataclass(frozen=True)
class PassServices:
    """The services and settings of a pass.

    Attributes:
        preload: Imports the code that a config needs, while remotes are being fetched.
        list_urls: Returns the URLs of all upstreams, and the URLs of all targets.
        list_settings_urls: Returns the URL of each repository in the settings, or the error if the URL cannot be used.
        list_requested_variants: Returns the package variants that PackageVariants and PackageVariantSets request,
            without recorded states and without the caches of the controllers. The arguments are the catalog, the
            remotes, and the time in seconds since 1970.
        find_rival_claims: Finds definition conflicts: different objects that define the same cluster, name or target.
        find_recorded_file: Returns the config file that the status file of an object records, or "".
        find_claimed_targets: Returns the targets that the objects in definition conflicts define, by object.
        create_text_writer: Creates the writer of commit messages and status files for a config ID.
        state_ref: The template of state refs, which contains `{repository}`.
        draft_template: The template of names of draft branches.
        removal_template: The template of names of branches with removal drafts.
        publication_times: Stores when a pass first found each published version.
        draft_times: Stores when a pass first found each open draft.
        input_verifier: Checks the signatures of config commits and upstream commits.
        should_date_actions: Whether commits of review actions have the current time as their date.
        read_config_commit: Reads a commit of the config, to find its author. Raises GitError. None if people may
            approve their own changes.
        required_approvals: The number of people who must approve a draft.
        should_treat_missing_as_empty: Whether a missing target repository is handled like an empty repository.
        deprecated_settings: The names of the deprecated settings that are set, each with its replacement.
        report_progress: Receives a stage, the number of completed steps, and the total number of steps.
    """

    read_catalog: Callable[[ConfigSnapshot], Catalog]
    preload: Callable[[Catalog], None]
    list_targets: Callable[[Catalog], Sequence[Target]]
    list_urls: Callable[[Catalog], tuple[Sequence[str], Sequence[str]]]
    list_settings_urls: Callable[[], Mapping[str, str | GitError]]
    run_controllers: ControllerRunner
    list_requested_variants: Callable[[Catalog, Remotes, int], Sequence[Variant]]
    lint: ConfigLinter
    read_cluster_versions: Callable[[Catalog], KnownClusters]
    find_target_conflicts: Callable[[Catalog], Mapping[ObjectKey, Finding]]
    find_rival_claims: Callable[[Catalog], Sequence[DefinitionConflict]]
    find_claimed_targets: Callable[[Catalog, Sequence[DefinitionConflict]], Mapping[ConfigObject, Target]]
    find_recorded_file: Callable[[ObjectKey, Remotes], str]
    create_renderer: Callable[[Catalog], PackageRenderer]
    functions: FunctionIdentities
    sources: SourceRenderer
    artifacts: ArtifactInputs
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
    draft_times: FirstSeenTimes
    known_heads: KnownHeads
    clock: Callable[[], float]
    input_verifier: InputVerifier = field(default_factory=UncheckedInputs)
    executor: Executor | None = None
    has_annotation_approvals: bool = False
    should_date_actions: bool = True
    read_config_commit: Callable[[CommitId], Commit] | None = None
    required_approvals: int = 1
    shard: Shard = field(default_factory=Shard)
    max_pushes: int = 8
    max_delete_percent: int = 30
    should_treat_missing_as_empty: bool = False
    deprecated_settings: tuple[tuple[str, str], ...] = ()
    report_progress: Callable[[str, int, int], None] = lambda stage, done, total: None

    @property
    def deprecation_findings(self) -> tuple[Finding, ...]:
        """A warning for each deprecated setting that is set."""
        return tuple(
            PassCodes.SETTING_DEPRECATED.finding(
                f"`{setting}` is deprecated; use {replacement}", SourceLocation(pointer=setting)
            )
            for setting, replacement in self.deprecated_settings
        )

    @property
    def pull_request_cache(self) -> PullRequestCache:
        """The open pull requests of all repositories."""
        return self.pull_requests.cache

    def repeat_artifact_requests(self, requests: Iterable[str]) -> None:
        """Request again the versions of charts and artifacts that the last pass requested."""
        self.artifacts.repeat(requests)

    def digest_artifacts(self) -> str:
        """Return a digest of all requested versions of charts and artifacts. Return "" if there are none."""
        return self.artifacts.digest()

    def digest_proposal_heads(self) -> str:
        """Return a digest of all refs that a config proposal depends on, except the config branch."""
        return self.config_proposals.digest_heads()

    @property
    def ref_templates(self) -> RefTemplates:
        """The templates of ref names."""
        return RefTemplates(self.state_ref, self.draft_template, self.removal_template)


def keep_stages(services: PassServices) -> PassServices:
    """Return services that keep the result of each render stage, so that a command can explain a package.

    All renders run in this process, because an executor returns packages without their render stages.
    """
    return replace(
        services,
        create_renderer=lambda catalog: replace(services.create_renderer(catalog), should_keep_stages=True),
        executor=None,
    )
