"""Renders templates for channels. If a template fails, the channel uses its default text and reports a finding."""

from __future__ import annotations

from reconciler.lazy_dataclasses import dataclass
from reconciler.notifications.channel_findings import ChannelFindings
from reconciler.notifications.messages import Message
from reconciler.notifications.templates import TemplateFailedError, TemplateFormat, Templates
from reconciler.reconcile.codes import PassCodes


@dataclass(frozen=True)
class TextWriter:
    """The templates of all channels, and the receiver of their findings."""

    templates: Templates
    findings: ChannelFindings

    def render(self, message: Message, template_format: TemplateFormat) -> str | None:
        """Return the text of the template for a message. Return None if there is no template, or if it failed."""
        try:
            return self.templates.render(message, template_format)
        except TemplateFailedError as error:
            self.findings.report(
                PassCodes.NOTIFICATION_TEMPLATE_FAILED.finding(
                    f"{error}. The message contains the default text instead"
                )
            )
            return None
