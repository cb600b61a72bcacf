"""The functions that composition adds to CEL (openchoreo 5.5), each by its plain and its `oc_` name."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

from reconciler.expressions.budget import ENTRY_BYTES, Budget
from reconciler.expressions.library.signatures import MAP, STRING, Functions, Overload, overload
from reconciler.expressions.values import OMIT, Omit

NAME_LENGTH: Final = 253
LABEL_LENGTH: Final = 63
DIGEST_LENGTH: Final = 8


def omit(budget: Budget) -> Omit:
    """`omit()`: the key or item whose value it is falls away."""
    return OMIT


def merge(budget: Budget, *maps: dict[Any, Any]) -> dict[Any, Any]:
    """`merge(a, b, ...)`: shallow, later maps win."""
    count = sum(map(len, maps))
    budget.spend(count)
    budget.allocate(ENTRY_BYTES * count)
    return {key: value for entries in maps for key, value in entries.items()}


def fnv_hash(budget: Budget, text: str) -> str:
    """`hash(text)`: FNV-1a, 32 bits, over the UTF-8, as 8 hexadecimal digits."""
    budget.spend(len(text))
    state = 0x811C9DC5
    for octet in text.encode("utf-8", "surrogatepass"):
        state = (state ^ octet) * 0x01000193 & 0xFFFFFFFF
    return f"{state:08x}"


def generate_name(budget: Budget, *parts: str) -> str:
    """`generateName(parts...)`: a name of at most 253 characters that ends in a digest of the parts."""
    return _name(budget, parts, NAME_LENGTH)


def dns_label(budget: Budget, *parts: str) -> str:
    """`dnsLabel(parts...)`: a name of at most 63 characters that ends in a digest of the parts."""
    return _name(budget, parts, LABEL_LENGTH)


_OTHER: Final = re.compile(r"[^a-z0-9.-]")


def _name(budget: Budget, parts: tuple[str, ...], limit: int) -> str:
    # before the text is made: one variable may be given any number of times
    length = sum(len(part) if part.isascii() else 4 * len(part) for part in parts) + len(parts)
    budget.scan(8 * length)
    budget.allocate(length)
    raw = "-".join(parts)
    digest = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]
    clean = [part for part in (_OTHER.sub("-", part.lower()).strip("-.") for part in parts) if part]
    room = limit - DIGEST_LENGTH - len(clean)  # every part is followed by a hyphen
    return "-".join((*_shares(clean, room), digest))


def _shares(parts: list[str], room: int) -> list[str]:
    """Cut parts that are too long together to equal shares of `room`; what does not divide goes to the first ones."""
    if sum(map(len, parts)) <= room:
        return parts
    share, extra = divmod(max(0, room), len(parts))
    cut = (part[: share + (index < extra)].strip("-.") for index, part in enumerate(parts))
    return [part for part in cut if part]


def _both_names(name: str, other: str, *overloads: Overload) -> dict[str, tuple[Overload, ...]]:
    return {name: overloads, other: overloads}


FUNCTIONS: Functions = {
    **_both_names("omit", "oc_omit", overload(omit)),
    **_both_names("merge", "oc_merge", overload(merge, MAP, MAP, repeated=True)),
    **_both_names("hash", "oc_hash", overload(fnv_hash, STRING)),
    **_both_names("generateName", "oc_generate_name", overload(generate_name, STRING, repeated=True)),
    **_both_names("dnsLabel", "oc_dns_label", overload(dns_label, STRING, repeated=True)),
}
