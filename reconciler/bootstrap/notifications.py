"""The notifications of the service, as the settings describe them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.bootstrap.options import get_cache_file
from reconciler.krm.findings import Severity
from reconciler.notifications import delivery, http, ledger, pass_observer, routes, service, templates, tracker
from reconciler.notifications import text_writer as notifications_text_writer
from reconciler.notifications.channel_findings import ChannelFindings
from reconciler.notifications.channels import email, slack, teams, webhook
from reconciler.planning.model.shard import parse_shard

if TYPE_CHECKING:
    from reconciler.notifications.channel import Channel
    from reconciler.notifications.http import HostPolicy, HttpClient
    from reconciler.notifications.routes import Route
    from reconciler.notifications.service import NotificationService, NotificationWork
    from reconciler.notifications.text_writer import TextWriter
    from reconciler.settings import Settings
    from reconciler.settings.notifications import NotificationChannel, NotificationRoute


def build_notifications(
    settings: Settings, clock: Callable[[], float] = time.time, *, is_read_only: bool = False
) -> NotificationService:
    """Build the notifications of the service. A read-only service, or a service without routes, sends nothing."""
    if is_read_only or not settings.notifications.routes:
        return service.NoNotifications()
    findings = ChannelFindings()

    def build() -> NotificationWork:
        return _build_work(settings, findings, clock)

    return service.Notifications(pass_observer.PassObserver(parse_shard(settings.shard)), findings, build, clock)


def _build_work(settings: Settings, findings: ChannelFindings, clock: Callable[[], float]) -> NotificationWork:
    """Read the ledger, and build the work of the notification thread."""
    options = settings.notifications
    notification_ledger = ledger.Ledger(get_cache_file(settings, "notifications"))
    notification_tracker = tracker.Tracker(
        [_build_route(route) for route in options.routes],
        notification_ledger,
        tracker.TrackerOptions(
            options.gather_seconds, options.review_overdue_hours * 3600, settings.shard, settings.server.external_url
        ),
    )
    messages = delivery.Delivery(build_channels(settings, findings, clock), notification_tracker.record, findings)
    return service.NotificationWork(notification_ledger, notification_tracker, messages)


def build_channels(
    settings: Settings, findings: ChannelFindings, clock: Callable[[], float] = time.time
) -> Mapping[str, Channel]:
    """Return the channels in the settings by name."""
    options = settings.notifications
    hosts = http.HostPolicy(frozenset(options.allowed_hosts))
    client = http.HttpClient(hosts, options.proxy)
    folder = Path(options.templates_dir).expanduser() if options.templates_dir else None
    texts = notifications_text_writer.TextWriter(templates.Templates(folder), findings)
    return {channel.name: _build_channel(channel, hosts, client, texts, clock) for channel in options.channels}


def _build_channel(
    channel: NotificationChannel, hosts: HostPolicy, client: HttpClient, texts: TextWriter, clock: Callable[[], float]
) -> Channel:
    match channel.kind:
        case "slack" if channel.url_file:
            return slack.SlackWebhookChannel(channel.url_file, client, texts)
        case "slack":
            return slack.SlackBotChannel(channel.token_file, channel.channel, channel.api.rstrip("/"), client, texts)
        case "teams":
            return teams.TeamsChannel(channel.name, channel.url_file, client, texts)
        case "webhook":
            return webhook.WebhookChannel(channel.url, channel.secret_file, client, clock)
        case "email":
            return email.EmailChannel(
                channel.host, channel.effective_port, channel.security, channel.username, channel.password_file,
                channel.sender, channel.recipients, hosts, texts,
            )  # fmt: skip


def _build_route(route: NotificationRoute) -> Route:
    return routes.Route(
        route.channel, route.events, Severity(route.severity), route.targets, route.packages,
        routes.parse_quiet_hours(route.quiet_hours), route.digest_minutes, route.tenants,
    )  # fmt: skip
