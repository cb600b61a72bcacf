"""Values as templates: the text that renders to a value, whatever that looks like (openchoreo 13.3.5)."""

from __future__ import annotations

import json
from typing import Any

from reconciler.rules.composition.marks import OPEN


def literal(value: Any) -> str:
    """Return the CEL of a value that JSON has: what JSON writes, CEL reads."""
    return json.dumps(value, ensure_ascii=False)


def as_template(value: Any) -> Any:
    """Return the template that renders to `value`, whatever the strings in it look like (openchoreo 13.3.5)."""
    match value:
        case str():
            return f"{OPEN}{literal(value)}}}" if OPEN in value else value
        case dict():
            return {as_template(key): as_template(one) for key, one in value.items()}
        case list():
            return [as_template(item) for item in value]
        case _:
            return value
