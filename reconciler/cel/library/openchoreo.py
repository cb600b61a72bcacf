"""Functions that OpenChoreo adds to CEL. Each function has two names, e.g. `omit` and `oc_omit`."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

from reconciler.cel.budget import ENTRY_BYTES, ExpressionBudget
from reconciler.cel.library.signatures import MAP, STRING, FunctionTable, Overload, create_overload
from reconciler.cel.values import OMIT, Omit

MAX_NAME_CHARACTERS: Final = 253
MAX_LABEL_CHARACTERS: Final = 63
DIGEST_CHARACTERS: Final = 8


def omit(budget: ExpressionBudget) -> Omit:
    """Evaluate `omit()`: a marker. A map entry or list item with this value is removed."""
    return OMIT


def merge(budget: ExpressionBudget, *maps: dict[Any, Any]) -> dict[Any, Any]:
    """Evaluate `merge(a, b, ...)`: a shallow merge of maps.

    If several maps contain a key, the last map takes precedence.
    """
    count = sum(map(len, maps))
    budget.spend(count)
    budget.allocate(ENTRY_BYTES * count)
    return {key: value for entries in maps for key, value in entries.items()}


def fnv_hash(budget: ExpressionBudget, text: str) -> str:
    """Evaluate `hash(text)`: the 32-bit FNV-1a hash of the text in UTF-8, as 8 hexadecimal digits."""
    budget.spend(len(text))
    state = 0x811C9DC5
    for octet in text.encode("utf-8", "surrogatepass"):
        state = (state ^ octet) * 0x01000193 & 0xFFFFFFFF
    return f"{state:08x}"


def generate_name(budget: ExpressionBudget, *parts: str) -> str:
    """Evaluate `generateName(parts...)`: the parts joined by hyphens, with a hash, in at most 253 characters."""
    return _create_name(budget, parts, MAX_NAME_CHARACTERS)


def dns_label(budget: ExpressionBudget, *parts: str) -> str:
    """Evaluate `dnsLabel(parts...)`: the parts joined by hyphens, with a hash, in at most 63 characters."""
    return _create_name(budget, parts, MAX_LABEL_CHARACTERS)


_INVALID_IN_NAME: Final = re.compile(r"[^a-z0-9.-]")


def _create_name(budget: ExpressionBudget, parts: tuple[str, ...], limit: int) -> str:
    # Subtract the size from the budget before the string is created, because an expression can pass a long string many
    # times.
    length = sum(len(part) if part.isascii() else 4 * len(part) for part in parts) + len(parts)
    budget.scan(8 * length)
    budget.allocate(length)
    raw = "-".join(parts)
    digest = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]
    clean = [part for part in (_INVALID_IN_NAME.sub("-", part.lower()).strip("-.") for part in parts) if part]
    remaining = limit - DIGEST_CHARACTERS - len(clean)  # The name contains one hyphen after each part.
    return "-".join((*_truncate_to_equal_shares(clean, remaining), digest))


def _truncate_to_equal_shares(parts: list[str], limit: int) -> list[str]:
    """Shorten the parts to equal lengths if their total length exceeds `limit`.

    If `limit` is not a multiple of the number of parts, the first parts get one more character.
    """
    if sum(map(len, parts)) <= limit:
        return parts
    share, extra = divmod(max(0, limit), len(parts))
    cut = (part[: share + (index < extra)].strip("-.") for index, part in enumerate(parts))
    return [part for part in cut if part]


def _with_both_names(name: str, prefixed_name: str, *overloads: Overload) -> dict[str, tuple[Overload, ...]]:
    return {name: overloads, prefixed_name: overloads}


FUNCTIONS: FunctionTable = {
    **_with_both_names("omit", "oc_omit", create_overload(omit)),
    **_with_both_names("merge", "oc_merge", create_overload(merge, MAP, MAP, repeated=True)),
    **_with_both_names("hash", "oc_hash", create_overload(fnv_hash, STRING)),
    **_with_both_names("generateName", "oc_generate_name", create_overload(generate_name, STRING, repeated=True)),
    **_with_both_names("dnsLabel", "oc_dns_label", create_overload(dns_label, STRING, repeated=True)),
}
