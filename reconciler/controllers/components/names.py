"""Names of the component controller: its API groups and kinds, and names that are derived from the names of objects."""

from __future__ import annotations

from typing import Final

import re2

from reconciler.krm.field_text import quote_value

GROUP: Final = "platform"
DEFINITION, ADDON, TYPE = "ComponentDefinition", "Addon", "ComponentType"
COMPONENT, BINDING, RESULT = "Component", "EnvBinding", "RenderResult"
KINDS: Final = (DEFINITION, ADDON, TYPE, COMPONENT, BINDING, RESULT)
"""Kinds of this API group that the reconciler defines. No component type may generate one of these kinds."""

RECONCILER_GROUP: Final = "reconciler.dev"
ENVIRONMENT, BUILD = "Environment", "Build"

_KEY_PATTERN = re2.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Restrict kinds as Kubernetes does: the kind in lower case must be a DNS label that begins with a letter.
_KIND_PATTERN = re2.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_SIBILANT_ENDINGS = ("s", "x", "z", "ch", "sh")


def to_camel_case(name: str) -> str:
    """Return a name in camel case, e.g. `config-files` -> `configFiles`."""
    first, *later = name.replace(".", "-").replace("_", "-").split("-")
    return first + "".join(_capitalize(part) for part in later)


def derive_addon_key(name: str) -> str | None:
    """Return the name of the component field for the values of an addon, e.g. `log-level` -> `logLevel`.

    Return None if the name of the addon does not form a valid field name.
    """
    key = to_camel_case(name)
    return key if _KEY_PATTERN.fullmatch(key) else None


def explain_invalid_addon_key(name: str) -> str:
    """Return the message about an addon for whose name `derive_addon_key` returns None."""
    key = quote_value(to_camel_case(name))
    return (
        f'the name of the addon "{name}" results in the key {key}, which is not a valid field name; choose a name that'
        " begins with a letter"
    )


def derive_kind(name: str) -> str | None:
    """Return the kind that a component type generates, e.g. `public-api` -> `PublicApi`.

    Return None if the name of the component type does not form a valid kind.
    """
    kind = _capitalize(to_camel_case(name))
    return kind if _KIND_PATTERN.fullmatch(kind) else None


def pluralize_kind(kind: str) -> str:
    """Return the plural name of a kind for its CRD, e.g. `Proxy` -> `proxies`."""
    lower_kind = kind.lower()
    if lower_kind.endswith(_SIBILANT_ENDINGS):
        return f"{lower_kind}es"
    # Replace "y" only after a consonant: "proxy" becomes "proxies", but "bay" becomes "bays".
    if lower_kind.endswith("y") and lower_kind[-2:-1] not in ("", *"aeiou"):
        return f"{lower_kind[:-1]}ies"
    return f"{lower_kind}s"


def derive_crd_name(kind: str, group: str) -> str:
    """Return the name of the CRD of a kind. Kubernetes requires the form `<plural>.<group>`."""
    return f"{pluralize_kind(kind)}.{group}"


def _capitalize(part: str) -> str:
    return part[:1].upper() + part[1:]
