"""What the options of one Plugin come to: the value of each, and all that was said of it (greenhouse 14)."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.krm.findings import Finding, errors
from reconciler.rules.presets.layers import Contributor, Statement
from reconciler.rules.presets.model import Given, SecretRef


@dataclass(frozen=True, eq=False)
class ResolvedOption:
    """One option of a Plugin: its value, and what every layer said of it, lowest first.

    `hides`: the definition says that it is a secret, so that no value of any layer may be seen (greenhouse 7.2).
    """

    name: str
    source: Given | SecretRef
    said: tuple[Statement, ...]
    hides: bool = False

    @property
    def winner(self) -> Statement:
        """The statement that counts."""
        return self.said[-1]

    def as_data(self) -> dict[str, object]:
        """Return the entry of optionValues that it makes."""
        if isinstance(self.source, SecretRef):
            return {"name": self.name, "valueFrom": self.source.as_data()}
        return {"name": self.name, "value": self.source.value}


@dataclass(frozen=True, eq=False)
class Resolution:
    """The options of one Plugin by name in order, and what is wrong with them; with an error there is no Plugin.

    `applied` are the lists that had a say, lowest layer first.
    """

    options: tuple[ResolvedOption, ...] = ()
    findings: tuple[Finding, ...] = ()
    applied: tuple[Contributor, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Why there is no Plugin."""
        return errors(self.findings)
