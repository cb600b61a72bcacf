"""The web console, as the settings describe it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from reconciler import __version__
from reconciler.bootstrap.console_authentication import (
    SignInState,
    build_authenticator,
    list_tokens,
    open_session_file,
    store_sessions,
)
from reconciler.bootstrap.console_config import build_config_pages
from reconciler.bootstrap.console_reviews import (
    ConsoleReviews,
    build_console_reviews,
    build_merge_check,
    build_stages,
)
from reconciler.bootstrap.options import get_cache_file
from reconciler.bootstrap.services import build_services
from reconciler.bootstrap.settings_changes import list_changed_settings
from reconciler.bootstrap.shown_settings import list_shown_settings
from reconciler.controllers.clusters.inventory import read_cluster_labels
from reconciler.inspect.cause_searches import CauseSearches
from reconciler.inspect.draft_content import DraftContentReader
from reconciler.inspect.draft_list import DraftListReader
from reconciler.inspect.fleet_index import FleetIndexer, ObservedPass
from reconciler.inspect.index_cache import IndexCache
from reconciler.inspect.package_content import PackageContentReader
from reconciler.inspect.release_effects import ReleaseEffectsReader
from reconciler.inspect.value_explainer import ValueExplainer
from reconciler.krm.json_text import compute_digest
from reconciler.output.fleet.rollouts import list_rollouts
from reconciler.reconcile.remotes.targets import DraftReader
from reconciler.review.activity_lists import ActivityLists
from reconciler.review.change_archive import ChangeArchive
from reconciler.review.restricted_index import RestrictedIndexes
from reconciler.server.console.context import ConsoleContext
from reconciler.service.index_thread import IndexThread
from reconciler.service.pass_activity import list_pass_events, list_published_removals

if TYPE_CHECKING:
    from reconciler.git.errors import GitError
    from reconciler.output.fleet.model import FleetIndex
    from reconciler.planning.decide.fleet_plan import FleetPlan
    from reconciler.planning.model.targets import Target
    from reconciler.reconcile.reconcile_pass import PassReport
    from reconciler.service.controls import ServiceControls
    from reconciler.service.state import ServiceState
    from reconciler.settings import Settings


# Settings that determine the targets of the index, and the tenants and refs of these targets. After a change of such a
# setting, pages wait for a new index, because roles cannot be checked with the old index.
_SETTINGS_OF_THE_FLEET = frozenset({"config", "fleet", "cache", "state_ref", "shard", "drafts", "tenancy"})
# Settings without an effect on the index. After a change of any setting that is not listed here, the index reads all
# targets again.
_SETTINGS_WITHOUT_EFFECT = frozenset({
    "console", "health", "log", "max_backoff_seconds", "metrics", "notifications", "poll_jitter_percent",
    "poll_seconds", "server", "tracing", "webhooks",
})  # fmt: skip


class Console:
    """The console of the service. A reload with unchanged settings keeps this object.

    Args:
        config: The URL or path of the config.
        sign_ins: The sessions of people. It must be the same object after a reload of the settings.
        previous: The console before a reload. Its index is shown until the new index is complete.

    Raises:
        SettingsError: The settings of the console are not safe.
    """

    def __init__(
        self,
        settings: Settings,
        config: str,
        state: ServiceState,
        controls: ServiceControls,
        sign_ins: SignInState,
        command_options: Sequence[str],
        previous: Console | None = None,
    ) -> None:
        clock = sign_ins.clock
        previous_reviews = previous._reviews if previous else None
        reviews = build_console_reviews(settings, config, controls.wake_pass, clock, previous_reviews)
        self._reviews: ConsoleReviews = reviews
        authenticator, sign_in = build_authenticator(settings, reviews.find_permissions, sign_ins)
        self._sign_ins = sign_ins
        self._session_file = open_session_file(settings)
        sign_ins.restore(self._session_file)
        indexer = build_fleet_indexer(settings, config)
        archive = ChangeArchive(get_cache_file(settings, "change_history"))

        def record_index(index: FleetIndex) -> None:
            archive.update(index)
            reviews.activity.update(index)
            if not state.is_read_only:
                reviews.activity.append(indexer.take_removals())

        self._index_thread = index_thread = IndexThread(indexer, record_index)
        self._settings = settings
        if previous:
            self._continue_from(previous)
        self._clock = clock
        self._is_started = False
        self.context = ConsoleContext(
            state=state,
            index_thread=index_thread,
            authenticator=authenticator,
            drafts=DraftListReader(indexer),
            contents=DraftContentReader(indexer),
            packages=PackageContentReader(indexer),
            explainer=ValueExplainer(command_options),
            effects=ReleaseEffectsReader(command_options),
            searches=CauseSearches(command_options, clock),
            confirmations=reviews.confirmations,
            jobs=reviews.jobs,
            restorer=reviews.restorer,
            controls=controls,
            csrf=sign_ins.csrf,
            indexes=RestrictedIndexes(lambda: index_thread.index),
            archive=archive,
            activity=ActivityLists(reviews.activity.read),
            contact=settings.console.contact,
            sign_in=sign_in,
            clock=clock,
            config=build_config_pages(settings, config),
            stages=build_stages(settings),
            required_approvals=settings.review.approvals,
            can_merge=build_merge_check(settings),
            list_tokens=partial(list_tokens, authenticator),
            list_settings=partial(list_shown_settings, settings),
        )

    def _continue_from(self, previous: Console) -> None:
        """Reuse the index of the previous console, unless a setting that determines the fleet has changed."""
        changed = list_changed_settings(previous._settings, self._settings)
        groups = {name.partition(".")[0] for name in changed}
        if groups.isdisjoint(_SETTINGS_OF_THE_FLEET):
            keeps_entries = groups <= _SETTINGS_WITHOUT_EFFECT
            self._index_thread.continue_from(previous._index_thread, keeps_entries=keeps_entries)

    def start(self) -> None:
        """Start the threads of the console, and start to store the sessions. Only the first call has an effect.

        After a reload, the previous console must be closed first. Otherwise, jobs could use the settings of both
        consoles.
        """
        if not self._is_started:
            self._is_started = True
            # Store the sessions here and not in the constructor, because a refused reload must not change their file.
            store_sessions(self._settings, self._sign_ins, self._session_file)
            self._index_thread.start()
            self._reviews.start()

    def observe(self, report: PassReport, failures: Mapping[str, GitError]) -> None:
        """Record the activity of a pass, and update the pages."""
        now = int(self._clock())
        if not self.context.state.is_read_only:
            # Record no activity of a standby, because it is read-only and its pushes have no effect.
            self._reviews.activity.append(list_pass_events(report, now))
        self._index_thread.observe(observe_pass(report, failures, now))

    def close(self, successor: Console | None = None) -> None:
        """Stop the threads of the console. The current review action is completed.

        Args:
            successor: The console after a reload. It can continue the jobs of this console.
        """
        self.context.searches.close()
        if successor is None or successor.context.jobs is not self.context.jobs:
            self._reviews.jobs.close()
        self._index_thread.close()


def build_console(
    settings: Settings,
    config: str,
    state: ServiceState,
    controls: ServiceControls,
    sign_ins: SignInState,
    command_options: Sequence[str] = (),
    previous: Console | None = None,
) -> Console | None:
    """Build the console. Return None if it is disabled, or if the service has no HTTP server.

    The caller must start and close the console.

    Args:
        sign_ins: The sessions of people. It must be the same object after a reload of the settings.
        command_options: The options with which other commands use the same config, settings and repositories.
        previous: The console before a reload. None at the start, or if the console was disabled.

    Raises:
        SettingsError: The settings of the console are not safe.
    """
    if not (settings.console.enabled and settings.listen_address):
        return None
    return Console(settings, config, state, controls, sign_ins, command_options, previous)


def build_fleet_indexer(settings: Settings, config: str) -> FleetIndexer:
    """Build the indexer of the console. It reads only the mirrors in the cache, and contacts no remote."""
    groups = settings.model_dump(mode="json", exclude=set(_SETTINGS_WITHOUT_EFFECT))
    scope = compute_digest([__version__, groups, config])
    cache = IndexCache(get_cache_file(settings, "console_index", ".pickle"), scope)
    return FleetIndexer(partial(_open_reader, settings, config), cache)


@contextmanager
def _open_reader(settings: Settings, config: str, urls: frozenset[str]) -> Iterator[DraftReader]:
    services = build_services(settings, config, can_fetch=False, can_call_forges=False)
    with services.remotes as remotes:
        remotes.fetch((), urls)
        yield DraftReader(remotes, services.pass_services.ref_templates)


def observe_pass(report: PassReport, failures: Mapping[str, GitError], completed_at: int) -> ObservedPass:
    """Return the data of a pass that is required to build the index.

    Args:
        failures: Maps the URL of each remote that the pass could not read to the error.
        completed_at: The end of the pass, in seconds since 1970.
    """
    plan = report.plan
    labels = read_cluster_labels(plan.objects)
    targets = {target_plan.target: labels.get(target_plan.target.name, {}) for target_plan in plan.targets}
    errors = {target: failures[target.url].message for target in targets if target.url in failures}
    errors |= dict(_list_unread(plan))
    rollouts = tuple(list_rollouts(plan.rollout_gates))
    removals = tuple(list_published_removals(report))
    findings = plan.list_findings()
    tenants = {str(value.location): name for value in findings if (name := plan.find_finding_tenant(value))}
    return ObservedPass(
        plan.config_id, completed_at, targets, findings, errors, rollouts, removals, plan.objects, tenants
    )  # fmt: skip


def _list_unread(plan: FleetPlan) -> Iterator[tuple[Target, str]]:
    for target_plan in plan.targets:
        if target_plan.findings and not target_plan.outcomes:
            yield target_plan.target, target_plan.findings[0].message
