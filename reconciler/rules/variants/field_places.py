"""Where in a file a message belongs: at the field that it names first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reconciler.krm.findings import Code, Finding
from reconciler.snapshot.catalog import ConfigObject

_FIELD_PATH = re.compile(r'\b(?:metadata|spec)\b(?:\.[A-Za-z]+|\[\d+\])*|\bapiVersion\b|(?<=^unknown field ")[A-Za-z]+')
_STEP = re.compile(r"([A-Za-z]+)|\[(\d+)\]")


def field_findings(one: ConfigObject, texts: Iterable[str], code: Code) -> tuple[Finding, ...]:
    """Return a finding for each text, at the field it names: `spec.injectors[1].name must not be empty`."""
    return tuple(field_finding(one, text, code) for text in texts)


def field_finding(one: ConfigObject, text: str, code: Code, field: str = "") -> Finding:
    """Return a finding at the field that its text names, else at `field`, else at the whole object."""
    named = _FIELD_PATH.search(text)
    path = tuple(_steps(named[0] if named else field))
    return code.finding(text, one.where_at(path) if path else one.where)


def _steps(path: str) -> Iterator[str | int]:
    for name, index in _STEP.findall(path):
        yield name or int(index)
