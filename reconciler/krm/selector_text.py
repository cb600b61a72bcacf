"""Label selectors as one types them on a command line: `region=north,tier!=test,zone in (a, b),!old`."""

from __future__ import annotations

import re

from reconciler.krm.selectors import LabelSelector, read_label_selector

_FORMS = "key=value, key!=value, key in (a, b), key notin (a, b), key, !key"
_SET = re.compile(r"(?P<key>[^\s,()!=]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL = re.compile(r"(?P<key>[^\s,()!=]+)\s*(?P<operator>=|==|!=)\s*(?P<value>[^\s,()!=]*)")
_EXISTS = re.compile(r"(?P<absent>!?)\s*(?P<key>[^\s,()!=]+)")


def parse_selector(text: str) -> LabelSelector | str:
    """Return the selector that a text spells, in the form of `kubectl --selector`, or what is wrong with it."""
    expressions = []
    # a comma between brackets separates values, not requirements
    for part in re.split(r",(?![^()]*\))", text):
        expression = _expression(part.strip())
        if expression is None:
            return f"a selector must be made of {_FORMS}, separated by commas; {part.strip()!r} is none of them"
        expressions.append(expression)
    selector, faults = read_label_selector({"matchExpressions": expressions})
    return selector if selector else "; ".join(faults)


def _expression(text: str) -> dict[str, object] | None:
    if found := _SET.fullmatch(text):
        operator = "In" if found["operator"] == "in" else "NotIn"
        values = [value.strip() for value in found["values"].split(",")]
        return {"key": found["key"], "operator": operator, "values": values}
    if found := _EQUAL.fullmatch(text):
        operator = "NotIn" if found["operator"] == "!=" else "In"
        return {"key": found["key"], "operator": operator, "values": [found["value"]]}
    if found := _EXISTS.fullmatch(text):
        return {"key": found["key"], "operator": "DoesNotExist" if found["absent"] else "Exists"}
    return None
