"""YAML 1.2 with its core schema, read as data: for texts that are not files of Kubernetes (design 10.4)."""

from __future__ import annotations

import math
import re
from typing import Any

from reconciler.krm.yaml.compose import Budget, compose
from reconciler.krm.yaml.error import YamlError
from reconciler.krm.yaml.file import parse
from reconciler.krm.yaml.limits import DEFAULT_LIMITS, YamlLimits

_WORDS: dict[str, Any] = (
    dict.fromkeys(("", "~", "null", "Null", "NULL"))
    | dict.fromkeys(("true", "True", "TRUE"), True)
    | dict.fromkeys(("false", "False", "FALSE"), False)
    | {sign + word: math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")}
    | dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf)
    | dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan)
)
_NUMBER = re.compile(
    r"(?P<decimal>[-+]?[0-9]+)|0o(?P<octal>[0-7]+)|0x(?P<hexadecimal>[0-9a-fA-F]+)"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
)
_BASES = {"decimal": 10, "octal": 8, "hexadecimal": 16}
# Python refuses to read decimal numbers longer than this; nobody means a number by them
_MAX_DIGITS = 4_000


# a word without anything that means something in YAML, as most results of expressions are
_WORD = re.compile("[A-Za-z0-9](?:[A-Za-z0-9_./:-]{,254}[A-Za-z0-9_./-])?")


def read_core(text: str, limits: YamlLimits = DEFAULT_LIMITS) -> Any:
    """Return the data of the one document in `text`, None when there is none; merge keys are read as everywhere.

    Raises YamlError for several documents, and for all that a file must not hold either: what is not YAML, is beyond
    `limits`, or has keys that Kubernetes takes for one (`yes` and `true`).
    """
    if _WORD.fullmatch(text) and len(text) <= limits.file_bytes:
        return resolve_core(text)
    documents = parse(text, limits).documents
    if len(documents) > 1:
        raise YamlError("YamlDocuments", "one document is read here, not several", documents[1].line, 1)
    root = compose(documents[0].text, Budget(limits), resolve_core) if documents else None
    return None if root is None else root.data


def resolve_core(text: str) -> Any:
    """Return what the plain scalar `text` is in the core schema (YAML 1.2.2, 10.3): str, int, float, bool or None."""
    if text in _WORDS:
        return _WORDS[text]
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > _MAX_DIGITS:
        return text
    kind = match.lastgroup or ""
    if kind in _BASES:
        return int(match[kind], _BASES[kind])
    number = float(text)
    # JSON has no infinity, and nobody means one by digits
    return text if math.isinf(number) else number
