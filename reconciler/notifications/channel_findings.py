"""Findings about the settings of channels, such as a template that fails. The next pass reports them."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.krm.findings import Finding


class ChannelFindings:
    """The findings of the last attempt of each channel. The pass thread can read them at any time."""

    def __init__(self) -> None:
        self._channel = ""
        self._by_channel: Mapping[str, tuple[Finding, ...]] = {}

    def start_attempt(self, channel: str) -> None:
        """Start an attempt to send messages to a channel, and delete the findings of the previous attempt."""
        self._channel = channel
        self._by_channel = {**self._by_channel, channel: ()}

    def report(self, finding: Finding) -> None:
        """Add a finding of the current attempt."""
        known = self._by_channel.get(self._channel, ())
        self._by_channel = {**self._by_channel, self._channel: (*known, finding)}

    def list_findings(self) -> tuple[Finding, ...]:
        """Return all findings without duplicates."""
        return tuple(dict.fromkeys(finding for findings in self._by_channel.values() for finding in findings))
