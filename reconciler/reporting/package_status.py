"""What a status file says of a package on a draft, in words; everybody may edit it, so nothing in it is relied on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.reporting.kptfile_changes import short_ref
from reconciler.reporting.values import one_line, shorten

_WIDTH = 100


def task_words(status: Mapping[str, Any]) -> str:
    """Return what the draft does and from which upstream to which: `upgrade v1 → v2`; "" when nobody tells."""
    ways = [way for side in ("from", "to") if (way := _ref(upstream(status, side)))]
    way = ways[0] if len(set(ways)) == 1 else " → ".join(ways)
    return shorten(one_line(" ".join(filter(None, (text(status, "task"), way)))), _WIDTH)


def owner_of(status: Mapping[str, Any]) -> str:
    """Return the owner as `Kind namespace/name`; "" when nobody tells."""
    owner = _mapping(status.get("owner"))
    name = "/".join(filter(None, (text(owner, "namespace"), text(owner, "name"))))
    return one_line(" ".join(filter(None, (text(owner, "kind"), name))))


def upstream(status: Mapping[str, Any], side: str) -> Mapping[str, Any]:
    """Return the upstream that a package comes `from`, or goes `to`; {} when nobody tells."""
    return _mapping(_mapping(status.get("upstream")).get(side))


def inputs(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the package was made from; {} when nobody tells."""
    return _mapping(status.get("inputs"))


def text(data: Mapping[str, Any], name: str) -> str:
    """Return a text of the data; "" when it is none."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _ref(side: Mapping[str, Any]) -> str:
    return short_ref(text(side, "ref"), text(side, "directory"))
