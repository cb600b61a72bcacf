"""The data that the pages of the console use. The service replaces the data when the settings change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from reconciler.lazy_dataclasses import dataclass, field
from reconciler.server.console.config_pages import ConfigPages
from reconciler.server.console.people import Authenticator

if TYPE_CHECKING:
    from reconciler.inspect.cause_searches import CauseSearches
    from reconciler.inspect.draft_content import DraftContentReader
    from reconciler.inspect.draft_list import DraftListReader
    from reconciler.inspect.package_content import PackageContentReader
    from reconciler.inspect.release_effects import ReleaseEffectsReader
    from reconciler.inspect.value_explainer import ValueExplainer
    from reconciler.output.fleet.model import FleetIndex
    from reconciler.review.activity_lists import ActivityLists
    from reconciler.review.change_archive import ChangeArchive
    from reconciler.review.confirmations import ConfirmationStore
    from reconciler.review.jobs import ReviewJobs
    from reconciler.review.restore import Restorer
    from reconciler.review.restricted_index import RestrictedIndexes
    from reconciler.review.stages import Stage
    from reconciler.server.authentication.access_tokens import AccessToken
    from reconciler.server.console.forms import CsrfTokens
    from reconciler.server.console.shown_settings import ShownSetting
    from reconciler.server.console.sign_in import SignIn
    from reconciler.service.controls import ServiceControls
    from reconciler.service.index_thread import IndexThread
    from reconciler.service.state import ServiceState


@dataclass(frozen=True)
class ConsoleContext:
    """The data and settings of the console.

    Attributes:
        index_thread: Builds the index of the fleet.
        drafts: Reads the details of drafts.
        contents: Reads the contents of drafts.
        packages: Reads published packages.
        explainer: Explains values of packages.
        effects: Computes the effects of HelmReleases in drafts.
        searches: Searches for the commits that changed values.
        confirmations: The actions that people have not confirmed yet.
        jobs: Applies confirmed actions.
        restorer: Restores earlier revisions of packages.
        controls: The requests to the service, such as a request for a pass.
        csrf: The tokens of forms.
        indexes: Returns the part of the newest fleet index that a person may read.
        archive: The history of changes that are not open any more.
        activity: Lists what people and passes did.
        contact: How people can ask for a role.
        sign_in: Signs people in at a provider. None if the settings contain no provider.
        clock: Returns seconds since 1970.
        config: The links to the config and to targets, and the files of the config.
        stages: The groups of targets that get a change one after the other, such as `canary` and `production`.
        required_approvals: The number of people who must approve a draft.
        can_merge: Returns whether an approval merges the pull requests of a repository with this URL.
        list_tokens: Returns the access tokens of programs.
        list_settings: Returns the effective settings without credentials.
    """

    state: ServiceState
    index_thread: IndexThread
    authenticator: Authenticator
    drafts: DraftListReader
    contents: DraftContentReader
    packages: PackageContentReader
    explainer: ValueExplainer
    effects: ReleaseEffectsReader
    searches: CauseSearches
    confirmations: ConfirmationStore
    jobs: ReviewJobs
    restorer: Restorer
    controls: ServiceControls
    csrf: CsrfTokens
    indexes: RestrictedIndexes
    archive: ChangeArchive
    activity: ActivityLists
    contact: str = ""
    sign_in: SignIn | None = None
    clock: Callable[[], float] = time.time
    config: ConfigPages = field(default_factory=ConfigPages)
    stages: tuple[Stage, ...] = ()
    required_approvals: int = 1
    can_merge: Callable[[str], bool] = lambda _url: False
    list_tokens: Callable[[], tuple[AccessToken, ...]] = tuple
    list_settings: Callable[[], tuple[ShownSetting, ...]] = tuple

    @property
    def index(self) -> FleetIndex | None:
        """The newest fleet index. None if no index is complete."""
        return self.index_thread.index
