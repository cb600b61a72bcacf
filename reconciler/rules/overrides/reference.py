"""Image references: their grammar, their four components, and how these make a reference again (kubeadmiral 5.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from reconciler.rules.overrides.model import Component

NAME_LENGTH = 255
_HEX_OF = {"sha256": 64, "sha384": 96, "sha512": 128}
_DNS_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_DNS_PART}(?:\.{_DNS_PART})*|\[[a-fA-F0-9:]+\])"
_PART = r"[a-z0-9]+(?:(?:\.|__|_|-+)[a-z0-9]+)*"
_TAG = r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*)(?::(?P<tag>{_TAG}))?(?:@(?P<digest>[^@]+))?", re.ASCII
)
_DIGEST = re.compile(r"(?P<algorithm>[a-z0-9]+):(?P<hex>[a-f0-9]+)", re.ASCII)


@dataclass(frozen=True)
class Reference:
    """An image by its components; "" is one that is absent."""

    registry: str = ""
    repository: str = ""
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        start = f"{self.registry}/" if self.registry else ""
        tag, digest = f":{self.tag}" if self.tag else "", f"@{self.digest}" if self.digest else ""
        return f"{start}{self.repository}{tag}{digest}"

    def component(self, name: Component) -> str:
        """Return one component."""
        value: str = getattr(self, name.lower())
        return value

    def with_component(self, name: Component, value: str) -> Reference:
        """Return the reference with another component, which is not looked at."""
        return replace(self, **{name.lower(): value})


def parse_reference(text: str) -> Reference | None:
    """Return the components of an image reference, None if it is none; nothing is implied that is not written."""
    match = _REFERENCE.fullmatch(text)
    if match is None or len(match["name"]) > NAME_LENGTH or (match["digest"] and digest_fault(match["digest"])):
        return None
    first, slash, rest = match["name"].partition("/")
    is_registry = slash and ("." in first or ":" in first or first == "localhost")
    registry, repository = (first, rest) if is_registry else ("", match["name"])
    return Reference(registry, repository, match["tag"] or "", match["digest"] or "")


def tag_fault(text: str) -> str | None:
    """Why a text is no tag, or None."""
    if re.fullmatch(_TAG, text, re.ASCII):
        return None
    return 'must be at most 128 letters, digits, "_", "." and "-", and not start with "." or "-"'


def digest_fault(text: str) -> str | None:
    """Why a text is no digest, or None."""
    match = _DIGEST.fullmatch(text)
    if match and len(match["hex"]) == _HEX_OF.get(match["algorithm"]):
        return None
    allowed = ", ".join(f"{name}:<{length} lower-case hex digits>" for name, length in _HEX_OF.items())
    return f"must be one of {allowed}"
