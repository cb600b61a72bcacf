"""The inputs of a pass: the config, the refs of all remotes, external functions, pull requests and proposals.

If no input has changed since the last pass, a command needs only this module. Therefore, this module imports neither
controllers nor renderers, not even indirectly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from reconciler.krm.findings import Finding
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass
from reconciler.reconcile.input_verifier import InputVerifier
from reconciler.telemetry.phases import phase

if TYPE_CHECKING:
    from reconciler.git.mirror import Mirror
    from reconciler.reconcile.cache_files import CompletedPass
    from reconciler.reconcile.config_source import ConfigSnapshot
    from reconciler.reconcile.pull_requests.open_requests import PullRequestCache
    from reconciler.reconcile.remotes.remotes import Remotes

# The name of the state of config proposals. Because of the underscore, no Repository object can have the same name.
PROPOSAL_STATE_NAME = "_config"


class ConfigSource(Protocol):
    """Reads the config from a folder, a branch or a commit."""

    def read(self) -> ConfigSnapshot:
        """Return the current config. Raises GitError."""
        ...


class FunctionIdentities(Protocol):
    """Determines the identities of functions that run outside of this process.

    The identity shows which version of a function is used. It can change although no ref moves, for example if a
    program is replaced.
    """

    def refresh(self) -> None:
        """Discard all identities, so that the next pass determines them again."""
        ...

    def identity(self, name: str) -> str:
        """Return the identity of the function with this dependency name. Return "" if the identity cannot be determined
        now.
        """
        ...

    @property
    def requested_functions(self) -> tuple[str, ...]:
        """The dependency names of all functions whose identity was requested, in order."""
        ...

    def digest(self) -> str:
        """Return a digest of all identities that were requested."""
        ...


class InputServices(Protocol):
    """The services that read the inputs of a pass."""

    @property
    def functions(self) -> FunctionIdentities:
        """The identities of functions that run outside of this process."""
        ...

    @property
    def pull_request_cache(self) -> PullRequestCache:
        """The open pull requests of all repositories."""
        ...

    @property
    def state_ref(self) -> str:
        """The template of state refs, which contains `{repository}`."""
        ...

    @property
    def clock(self) -> Callable[[], float]:
        """A function that returns the current time in seconds since 1970."""
        ...

    @property
    def report_progress(self) -> Callable[[str, int, int], None]:
        """A function that receives a stage name, the number of completed steps, and the total number of steps."""
        ...

    @property
    def input_verifier(self) -> InputVerifier:
        """Checks the signatures of config commits and upstream commits."""
        ...

    def repeat_artifact_requests(self, requests: Iterable[str]) -> None:
        """Request again the versions of charts and artifacts that the last pass requested."""
        ...

    def digest_artifacts(self) -> str:
        """Return a digest of all requested versions of charts and artifacts. Return "" if there are none."""
        ...

    def digest_proposal_heads(self) -> str:
        """Return a digest of all refs that a config proposal depends on, except the config branch."""
        ...


@dataclass(frozen=True)
class PassInputs:
    """The config of a pass, and a digest of all other inputs if they were read.

    Attributes:
        config: The config.
        heads: A digest of all inputs except the config. "" if the remotes were not fetched.
        now: The time of the pass, in seconds since 1970. 0 if the remotes were not fetched.
    """

    config: ConfigSnapshot
    heads: str = ""
    now: int = 0


def read_inputs_if_changed(
    source: ConfigSource, remotes: Remotes, services: InputServices, last: CompletedPass | None
) -> PassInputs | CompletedPass:
    """Read the inputs of a pass. If no input has changed since the pass `last` and no pass is due, return `last`.

    If the config is unchanged, fetch the remotes of the pass `last`. If the config has changed, read only the config,
    because the changed config can contain URLs of other remotes.
    """
    with phase("fetch"):
        config = source.read()
    if last is None or last.config != config.id:
        return PassInputs(config)
    services.report_progress("fetching", 0, 1)
    with phase("fetch", remotes=len({*last.upstreams, *last.destinations})):
        remotes.fetch(last.upstreams, last.destinations)
    refresh_pull_requests(last.destinations, remotes, services)
    services.report_progress("fetching", 1, 1)
    services.functions.refresh()
    services.repeat_artifact_requests(last.artifacts)
    for name in last.functions:
        # Request the identities of these functions, because the digest contains only requested functions. Without these
        # requests, the digest could differ from the digest of the last pass although nothing has changed.
        services.functions.identity(name)
    now, heads = int(services.clock()), digest_heads(remotes, services, config.findings)
    return last if heads == last.heads and last.is_current(now) else PassInputs(config, heads, now)


def refresh_pull_requests(urls: Iterable[str], remotes: Remotes, services: InputServices) -> None:
    """Read the pull requests of all repositories with a recorded state. Other repositories cannot have drafts."""
    cache, prefix = services.pull_request_cache, services.state_ref.partition("{repository}")[0]
    fetched = {url: remote for url in urls if cache.has_driver(url) and (remote := remotes.get(url))}
    with phase("pull_requests"):
        cache.refresh(url for url, remote in fetched.items() if any(ref.startswith(prefix) for ref in remote.refs))


def digest_proposal_refs(mirror: Mirror, branch: str, state_ref: str) -> str:
    """Return a digest of the heads of a proposal branch and of its state ref."""
    refs = mirror.refs()
    return compute_digest({ref: refs.get(ref) for ref in (f"refs/heads/{branch}", state_ref)})


def digest_heads(remotes: Remotes, services: InputServices, config_findings: Iterable[Finding]) -> str:
    """Return a digest of all inputs of a pass except the config: refs, functions, proposals and pull requests.

    The digest also contains the findings about the config commit: a new head without a valid signature changes these
    findings, but not the config.
    """
    return compute_digest(
        [
            remotes.digest(),
            services.functions.digest(),
            services.digest_proposal_heads(),
            services.pull_request_cache.digest(),
            services.input_verifier.refresh(),
            services.digest_artifacts(),
            [finding.message for finding in config_findings],
        ]
    )
