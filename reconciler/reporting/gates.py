"""Gates: what keeps a draft from being published (porch 7, design 10.19)."""

from __future__ import annotations

from reconciler.planning.outcome import Rendered
from reconciler.reporting.values import one_line, shorten

_WIDTH = 400


def waiting_for(rendered: Rendered) -> tuple[str, ...]:
    """Return what keeps a draft from being published: a failed render, and gates that are not met."""
    known = {condition.type: condition for condition in rendered.conditions}
    unmet = dict.fromkeys(rendered.unmet_gates)
    if (one := known.get("Rendered")) and one.status == "False":
        unmet = {"Rendered": None, **unmet}
    return tuple(
        _gate(name, known[name].status, known[name].message) if name in known else f"{name}: not reported"
        for name in unmet
    )


def _gate(name: str, status: str, message: str) -> str:
    return shorten(one_line(f"{name} is {status}: {message}" if message else f"{name} is {status}"), _WIDTH)
