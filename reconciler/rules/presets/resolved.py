"""What the options of one Plugin come to: the value of each, and all that was said of it (greenhouse 14)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reconciler.caching import cached
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding, errors
from reconciler.krm.yaml import emit
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

    @cached_property
    def data(self) -> dict[str, Any]:
        """The entry of optionValues that it makes."""
        if isinstance(self.source, SecretRef):
            return {"name": self.name, "valueFrom": self.source.as_data()}
        return {"name": self.name, "value": self.source.value}

    @property
    def text(self) -> str:
        """That entry as it is written in the spec of a Plugin."""
        return self._written[0]

    @property
    def digest(self) -> str:
        """That entry as a digest."""
        return self._written[1]

    @cached_property
    def _written(self) -> tuple[str, str]:
        value = self.source.value if isinstance(self.source, Given) else None
        return _written_string(self.name, value) if isinstance(value, str) else _written(self.data)


# what is injected, the name of a cluster for one, stands in as many Plugins as there are presets
@cached(8_192)
def _written_string(name: str, value: str) -> tuple[str, str]:
    return _written({"name": name, "value": value})


def _written(data: dict[str, Any]) -> tuple[str, str]:
    # only "\n" ends lines here, whatever else a value may hold
    *lines, _ = emit([data]).split("\n")
    return "".join(f"  {line}\n" if line else "\n" for line in lines), digest(data)


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
