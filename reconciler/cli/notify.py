"""`reconciler notify`: send a sample message to a notification channel, or print it."""

from __future__ import annotations

import time

import click

from reconciler.bootstrap import notifications as bootstrap_notifications
from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS, CannotRunError
from reconciler.cli.options import read_settings, set_up_logs, settings_option
from reconciler.krm import field_text
from reconciler.notifications import channel as notifications_channel
from reconciler.notifications import channel_findings, samples


@click.command("notify")
@click.option("--test", "name", metavar="CHANNEL", required=True, help="The name of the channel in the settings.")
@click.option(
    "--event",
    metavar="EVENT",
    default="drafts_waiting",
    show_default=True,
    help="The event of the sample message. `digest` is a message about several changes.",
)
@click.option("--dry-run", is_flag=True, help="Print the content of the message, and send nothing.")
@settings_option
def command(name: str, event: str, dry_run: bool, settings_file: str | None) -> int:
    """Send a sample message to one channel. Use this command to test the settings and the templates of a channel."""
    with report_errors():
        settings = read_settings(settings_file)
        set_up_logs(settings, service=False)
    if event not in samples.SAMPLE_EVENTS:
        raise click.UsageError(
            f"--event: must be {field_text.describe_choice(samples.SAMPLE_EVENTS)}, but is"
            f" {field_text.quote_value(event)}"
        )
    findings = channel_findings.ChannelFindings()
    channels = bootstrap_notifications.build_channels(settings, findings)
    if name not in channels:
        known = ", ".join(channels) or "none"
        raise CannotRunError(
            f"--test {name}: there is no channel with this name in `notifications.channels`; existing names: {known}"
        )
    message = samples.build_sample(name, event, settings.shard, int(time.time()), settings.server.external_url)
    if dry_run:
        click.echo(channels[name].format(message))
    else:
        try:
            channels[name].send(message)
        except notifications_channel.ChannelError as error:
            raise CannotRunError(f"--test {name}: {error}") from error
        click.echo(f'sent a sample message to the channel "{name}"')
    for finding in findings.list_findings():
        click.echo(f"{finding.severity.value}: {finding.message} ({finding.code})", err=True)
    # Also return a failure for warnings, because the findings about the channel are the result of the test.
    return ERROR_FINDING if findings.list_findings() else SUCCESS
