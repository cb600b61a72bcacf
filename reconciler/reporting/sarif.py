"""SARIF 2.1.0: findings as code scanners read them, so that they stand at the line (design 10.24).

Written for what GitHub takes: each result has a place in the repository, and no more of them come than are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from reconciler.krm.findings import Code, Scope, Severity, Where, by_name
from reconciler.reporting.located import Located
from reconciler.reporting.paths import quoted

MAX_RESULTS: Final = 25_000
"""How many results of a run GitHub takes; with more of them it refuses the whole file."""

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# the one name by which GitHub tells that a result is the one that it knows already
_FINGERPRINT = "primaryLocationLineHash"
_COSTS = {
    Scope.FILE: "nothing of its file is read, and nothing anywhere is taken for deleted meanwhile",
    Scope.OBJECT: "nothing new is made of its object, and what it has stays",
    Scope.PACKAGE: "its package on that cluster stays as it is",
    Scope.DESTINATION: "nothing is written to that destination",
    Scope.CONFIG: "no change of the config itself is proposed",
    Scope.CLUSTER: "its cluster would refuse it; nothing is withheld for that",
}


def sarif(located: Sequence[Located], version: str, codes: Iterable[Code], category: str) -> dict[str, Any]:
    """Return a log with one run of this tool in `version`, its rules described as `codes` say.

    `category` names what was looked for, so that one upload does not take the place of another. Beyond MAX_RESULTS
    errors come first, and a note of the run says how many were left out.
    """
    kept, known = _most_important(located), by_name(codes)
    names = sorted({one.finding.code for one in kept})
    driver = {"name": "reconciler", "version": version, "rules": [_rule(known[name]) for name in names]}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"reconciler/{category}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(len(located) - len(kept))],
        "results": [_result(one, names.index(one.finding.code)) for one in kept],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _most_important(located: Sequence[Located]) -> Sequence[Located]:
    if len(located) <= MAX_RESULTS:
        return located
    weights = {severity: weight for weight, severity in enumerate(Severity)}
    ranked = sorted(range(len(located)), key=lambda at: (weights[located[at].finding.severity], at))
    return [located[at] for at in sorted(ranked[:MAX_RESULTS])]


def _invocation(left_out: int) -> dict[str, Any]:
    if not left_out:
        return {"executionSuccessful": True}
    text = f"{left_out} more findings are left out, for a run may have {MAX_RESULTS}; the command tells all of them"
    return {
        "executionSuccessful": True,
        "toolExecutionNotifications": [{"level": "warning", "message": {"text": text}}],
    }


def _rule(code: Code) -> dict[str, Any]:
    cost = f"As an error: {_COSTS[code.scope]}." if code.severity is Severity.ERROR else "It withholds nothing."
    return {
        "id": code.name,
        "name": code.name,
        "shortDescription": {"text": code.meaning},
        "fullDescription": {"text": f"{code.meaning} {cost}"},
        "help": {
            "text": f"{code.meaning} {cost} All codes are listed in docs/findings.md.",
            "markdown": f"**{code.name}** ({code.severity}, {code.scope}): {code.meaning}\n\n{cost}",
        },
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
        "properties": {"scope": code.scope.value, "tags": ["gitops", code.scope.value]},
    }


def _result(one: Located, rule: int) -> dict[str, Any]:
    finding = one.finding
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(one)},
        "locations": [_location(one)],
        "partialFingerprints": {_FINGERPRINT: one.fingerprint},
    }


def _message(one: Located) -> str:
    """Return the message; of what lies in a package also where, for the line shown is of whoever asks for it."""
    where = one.finding.where
    if not where.package:
        return one.finding.message
    inside = f"{where.file}:{where.line}" if where.file and where.line else where.file
    named = "" if where.object == where.owner or one.finding.message.startswith(where.object) else where.object
    place = " ".join(filter(None, (where.package, "" if one.is_own else inside, named)))
    return f"{place}: {one.finding.message}"


def _location(one: Located) -> dict[str, Any]:
    # a scanner wants a line; what is about a whole file is shown at its first one
    region = {"startLine": one.line or 1, **({"startColumn": one.column} if one.column else {})}
    place: dict[str, Any] = {"artifactLocation": {"uri": quoted(one.path)}, "region": region}
    names = _names(one.finding.where)
    logical = {"logicalLocations": [{"fullyQualifiedName": name} for name in names]} if names else {}
    return {"physicalLocation": place, **logical}


def _names(where: Where) -> list[str]:
    inside = " ".join(filter(None, (where.package, where.object, where.pointer)))
    return [name for name in dict.fromkeys((inside, where.owner)) if name]
