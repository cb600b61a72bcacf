"""CEL expressions that contain the name or a label of a cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

CLUSTER_NAME = "repository.name"


def generalize(text: str, cluster: str, labels: Mapping[str, str]) -> list[str]:
    """Return the parts of a text. A part such as `repository.name` is a CEL expression, others are literals.

    Expressions have the odd indexes.
    """
    variables = {cluster: CLUSTER_NAME}
    for key, value in sorted(labels.items()):
        variables.setdefault(value, f"repository.labels[{quote(key)}]")
    words = sorted(filter(None, variables), key=len, reverse=True)
    pattern = "|".join(map(re.escape, words))
    parts = re.split(rf"(?<![A-Za-z0-9])({pattern})(?![A-Za-z0-9])", text)
    return [variables[part] if index % 2 else part for index, part in enumerate(parts)]


def format_expression(parts: Sequence[str]) -> str:
    """Return the CEL expression for the parts that `generalize` returns."""
    texts = [part if index % 2 else quote(part) for index, part in enumerate(parts) if part]
    return " + ".join(texts)


def quote(text: str) -> str:
    """Return a CEL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
