"""What the files of resources are called that stand one to a file (design 3, 10.32)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from reconciler.krm.identity import ObjectKey

LONGEST_NAME = 255
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]")
# neither "-" nor ".": what follows a kind is told apart by them
_NOT_IN_A_KIND = re.compile(r"[^a-z0-9]")


def file_names(keys: Iterable[ObjectKey]) -> Mapping[ObjectKey, str]:
    """Return what the files of the resources of one package are called.

    Where two would share a name, every one with an API group carries that.
    """
    keys = list(keys)
    shared = Counter(map(short_name, keys))
    return {key: short_name(key) if shared[short_name(key)] == 1 else full_name(key) for key in keys}


def short_name(key: ObjectKey) -> str:
    """Return the name of a file that no other shares: kind and name."""
    return f"{_kind(key)}-{_escaped(key.name)}.yaml"


def full_name(key: ObjectKey) -> str:
    """Return the name of a file among others of equal kind and name."""
    return f"{_kind(key)}.{_escaped(key.group)}-{_escaped(key.name)}.yaml" if key.group else short_name(key)


def _kind(key: ObjectKey) -> str:
    return _escaped(key.kind.lower(), _NOT_IN_A_KIND)


def _escaped(text: str, outside: re.Pattern[str] = _NOT_IN_A_NAME) -> str:
    return outside.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)
