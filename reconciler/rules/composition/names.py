"""Names that are made of names: keys of addons, kinds of component types, names of their CRDs (openchoreo 2)."""

from __future__ import annotations

import re2

_KEY = re2.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Kubernetes: the kind in lower case is a DNS label that begins with a letter
_KIND = re2.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_HISSING = ("s", "x", "z", "ch", "sh")


def camel_case(name: str) -> str:
    """Return a name as one word: `config-files` becomes `configFiles` (openchoreo 2)."""
    first, *later = name.replace(".", "-").replace("_", "-").split("-")
    return first + "".join(_capital(part) for part in later)


def addon_key(name: str) -> str | None:
    """Return the field that a developer addon is opted into by; None where its name makes none (openchoreo 2)."""
    key = camel_case(name)
    return key if _KEY.fullmatch(key) else None


def generated_kind(name: str) -> str | None:
    """Return the kind that a component type makes; None where Kubernetes knows no such kinds (openchoreo 2)."""
    kind = _capital(camel_case(name))
    return kind if _KIND.fullmatch(kind) else None


def plural(kind: str) -> str:
    """Return what a CRD calls many objects of a kind (openchoreo 2)."""
    word = kind.lower()
    if word.endswith(_HISSING):
        return f"{word}es"
    # "y" alone is no word, and what stands before it in "bay" is no consonant
    if word.endswith("y") and word[-2:-1] not in ("", *"aeiou"):
        return f"{word[:-1]}ies"
    return f"{word}s"


def crd_name(kind: str, group: str) -> str:
    """Return the name that a CRD must have (openchoreo 2)."""
    return f"{plural(kind)}.{group}"


def _capital(part: str) -> str:
    return part[:1].upper() + part[1:]
