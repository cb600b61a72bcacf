"""The services that read the inputs of a pass. They import neither controllers nor renderers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.bootstrap import engine
from reconciler.bootstrap.forges import ForgeRegistry
from reconciler.bootstrap.options import build_git_options, build_input_verifier
from reconciler.git.errors import GitError, RepositoryMissingError
from reconciler.git.folder import FolderLimits
from reconciler.git.history import MirrorHistory, open_local_history
from reconciler.git.mirror import Mirror, MirrorSigning
from reconciler.git.rate_limit import PushRateLimiters
from reconciler.git.source import FolderSource, RepositoryOrFolder, RepositorySource
from reconciler.git.url import parse_url
from reconciler.krm import yaml
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import replace
from reconciler.reconcile import config_proposals
from reconciler.reconcile.cache_files import KnownHeads
from reconciler.reconcile.config_source import ConfigHistory, FolderConfigSource, RepositoryConfigSource
from reconciler.reconcile.pass_inputs import PROPOSAL_STATE_NAME, ConfigSource, digest_proposal_refs
from reconciler.reconcile.pull_requests import open_requests
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.settings import Settings
from reconciler.telemetry.event_log import log_mirror_rebuild, log_signing_failure

if TYPE_CHECKING:
    from reconciler.bootstrap.source_renderers import SourceRenderers
    from reconciler.git.remote_credentials import RemoteCredentials
    from reconciler.git.signing import Signer
    from reconciler.krm.yaml import YamlFile
    from reconciler.reconcile.artifact_inputs import ArtifactInputs
    from reconciler.reconcile.config_proposals import ConfigProposals
    from reconciler.reconcile.pull_requests.open_requests import PullRequestCache
    from reconciler.runners.functions import CombinedFunctionProvider
    from reconciler.sources.artifacts import Artifacts

Progress = Callable[[str, int, int], None]


class DeferredFunctions:
    """The functions of packages, which are built at the first use. Implements `FunctionIdentities`."""

    def __init__(self, build: Callable[[], CombinedFunctionProvider]) -> None:
        self._build = build

    @cached_property
    def provider(self) -> CombinedFunctionProvider:
        """The provider of functions."""
        return self._build()

    def refresh(self) -> None:
        """Discard all identities, so that the next pass determines them again."""
        if self._is_built:
            self.provider.refresh()

    def identity(self, name: str) -> str:
        """Return the identity of the function with this dependency name. Return "" if the identity cannot be determined
        now.
        """
        return self.provider.identity(name)

    @property
    def requested_functions(self) -> tuple[str, ...]:
        """The dependency names of all functions whose identity was requested, in order."""
        return self.provider.requested_functions if self._is_built else ()

    def digest(self) -> str:
        """Return a digest of all identities that were requested."""
        return self.provider.digest() if self._is_built else compute_digest({})

    @property
    def _is_built(self) -> bool:
        return "provider" in vars(self)


class SettingsInputs:
    """The services that read the inputs of a pass, as the settings describe them. Implements `InputServices`.

    Attributes:
        source: The location of the config.
        functions: The functions of packages, which are built when a function is first requested.
        forges: The forges in the settings.
    """

    def __init__(
        self,
        settings: Settings,
        source: RepositoryOrFolder,
        *,
        clock: Callable[[], float],
        backoff: Backoff,
        rate_limiters: PushRateLimiters,
        report_progress: Progress,
        can_fetch: bool,
        can_call_forges: bool = True,
        signer: Signer | None = None,
        search_path: str = "",
    ) -> None:
        self.source = source
        self.clock = clock
        self.report_progress = report_progress
        self.state_ref = settings.state_ref
        self.search_path = search_path
        self.functions = DeferredFunctions(
            lambda: engine.build_functions(
                settings, backoff, lambda: self.source_renderers.packages.helm, self.source_renderers.programs
            )
        )
        self._settings = settings
        self._rate_limiters = rate_limiters
        self._backoff = backoff
        self._can_call_forges = can_fetch and can_call_forges
        self.signer = signer
        self.input_verifier = build_input_verifier(settings)
        self.forges = ForgeRegistry(settings, clock)
        self._options = replace(build_git_options(settings, self.forges), offline=not can_fetch)
        self._cache = Path(settings.cache).expanduser()

    def build_config_source(self, commit: str) -> ConfigSource:
        """Build the reader of the config at a commit. If `commit` is \"\", the reader reads the current config."""
        if commit:
            history = self.open_history()
            return history.source_at(history.find_commit(commit))
        directory = self._settings.config.directory
        if isinstance(self.source, FolderSource):
            return FolderConfigSource(
                self.source.path, directory, FolderLimits(max_files=self._settings.limits.folder_files)
            )
        names = (self._settings.config.branch, directory, self._settings.drafts.config_branch, self._state_prefix)
        return RepositoryConfigSource(self._config_mirror, *names, self.input_verifier)

    def open_history(self) -> ConfigHistory:
        """Open the history of the config.

        For a folder, this is the history of the Git repository that contains the folder.

        Raises:
            RepositoryMissingError: The folder is not in a Git repository.
        """
        directory = self._settings.config.directory
        if isinstance(self.source, RepositorySource):
            repository = MirrorHistory(self._config_mirror, self._state_prefix)
            return ConfigHistory(repository, directory, f"refs/heads/{self._settings.config.branch}")
        history = open_local_history(self.source.path / directory, self._options)
        if history is None:
            raise RepositoryMissingError(f"{self.source.path} must be in the work tree of a Git repository")
        return ConfigHistory(*history)

    @cached_property
    def artifacts(self) -> ArtifactInputs:
        """The charts and artifacts that passes read."""
        from reconciler.reconcile.artifact_inputs import ArtifactInputs

        return ArtifactInputs(self._build_artifacts)

    def _build_artifacts(self) -> Artifacts:
        # Import the client here, because most fleets have no artifacts.
        from reconciler.bootstrap.sources import build_artifacts

        return build_artifacts(self._settings, is_offline=self._options.offline, clock=self.clock)

    @cached_property
    def source_renderers(self) -> SourceRenderers:
        """The renderers of sources."""
        from reconciler.bootstrap.source_renderers import build_source_renderers

        return build_source_renderers(self._settings, self.artifacts, self.search_path)

    @cached_property
    def _config_mirror(self) -> Mirror:
        return self.open_mirror(self.source.url.connection_url)

    @property
    def _state_prefix(self) -> str:
        return self.state_ref.partition("{repository}")[0]

    @property
    def credentials(self) -> RemoteCredentials:
        """The credentials of all remotes."""
        return self._options.credentials

    @cached_property
    def known_heads(self) -> KnownHeads:
        """The cached heads of all target branches at the end of the last pass."""
        config = f"{self.source.url.identity} {self._settings.config.directory.strip('/')}".strip()
        return KnownHeads(self._cache / "heads.json", config)

    @cached_property
    def config_proposals(self) -> ConfigProposals:
        """The config proposals."""
        if isinstance(self.source, FolderSource):
            return config_proposals.FolderConfigProposals(self._parse_yaml)
        return config_proposals.RepositoryConfigProposals(
            self._config_mirror, self.source.url.identity, self._settings.config.branch,
            self._settings.drafts.config_branch, self._proposal_state_ref, self._settings.config.directory,
            self._parse_yaml,
        )  # fmt: skip

    def digest_proposal_heads(self) -> str:
        """Return a digest of all refs that a config proposal depends on, except the config branch."""
        if isinstance(self.source, FolderSource):
            return ""
        branch = self._settings.drafts.config_branch
        return digest_proposal_refs(self._config_mirror, branch, self._proposal_state_ref)

    @property
    def _proposal_state_ref(self) -> str:
        return self.state_ref.format(repository=PROPOSAL_STATE_NAME)

    def _parse_yaml(self, data: bytes) -> YamlFile:
        return yaml.parse_yaml(data, engine.build_yaml_limits(self._settings))

    @cached_property
    def pull_request_cache(self) -> PullRequestCache:
        """The open pull requests of all repositories."""
        find_forge = self.forges.get_forge if self._can_call_forges else lambda url: None
        lookup = open_requests.ForgeLookup(find_forge, self.forges.get_kind)
        return open_requests.PullRequestCache(lookup, self._backoff)

    def get_commit_page(self, repo: str, commit: str) -> str:
        """Return the URL of a web page about a commit. Return "" if there is no page. "" as `repo` means the config."""
        try:
            url = self.source.url if not repo and isinstance(self.source, RepositorySource) else parse_url(repo)
        except GitError:
            return ""
        return self.forges.build_commit_url(url, commit)

    def list_watched_folders(self) -> tuple[Path, ...]:
        """Return the folder of a local config. A change in this folder starts a pass. Return () for a remote config."""
        return (Path(self.source.url.text),) if self.source.url.is_local else ()

    def repeat_artifact_requests(self, requests: Iterable[str]) -> None:
        """Request again the versions of charts and artifacts that the last pass requested."""
        if requests:
            self.artifacts.repeat(requests)

    def digest_artifacts(self) -> str:
        """Return a digest of all requested versions of charts and artifacts. Return "" if there are none."""
        # Do not import the code of artifacts if no artifact was requested.
        return self.artifacts.digest() if "artifacts" in vars(self) else ""

    def close(self) -> None:
        """Close all connections to forges, chart repositories and registries."""
        self.forges.close()
        if "artifacts" in vars(self):
            self.artifacts.close()

    def open_mirror(self, url: str, folder: str = "") -> Mirror:
        """Open the mirror of a repository, in a folder of the cache."""
        signing = MirrorSigning(self.signer, log_signing_failure) if self.signer else None
        cache, limiters = self._cache / folder, self._rate_limiters
        return Mirror.open(cache, url, self._options, limiters.get, log_mirror_rebuild, signing)
