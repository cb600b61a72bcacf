"""Mirrors of chart repositories and registries, for machines without access to the original hosts."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.artifacts import ArtifactRepository


@dataclass(frozen=True)
class Mirror:
    """A mirror that replaces all URLs below a prefix.

    Attributes:
        prefix: The start of the original URLs, up to a slash.
        url: The text that replaces the prefix.
        insecure: Whether a mirror at an `oci://` URL uses plain HTTP.
    """

    prefix: str
    url: str
    insecure: bool = False

    def rewrite(self, url: str) -> str | None:
        """Return the URL in the mirror. Return None if the URL does not start with the prefix."""
        prefix, target = self.prefix.rstrip("/"), self.url.rstrip("/")
        return target + url.removeprefix(prefix) if url == prefix or url.startswith(f"{prefix}/") else None


def rewrite_repository(repository: ArtifactRepository, mirrors: Sequence[Mirror]) -> ArtifactRepository:
    """Return the repository with the URL of the first mirror that matches.

    The Secrets of the repository are removed, because they are for the original host.
    """
    for mirror in mirrors:
        if (url := mirror.rewrite(repository.url)) is not None:
            return replace(repository, url=url, insecure=mirror.insecure, secret_name="", cert_secret_name="")
    return repository


def rewrite_url(url: str, mirrors: Sequence[Mirror]) -> str:
    """Rewrite a URL with the first mirror that matches the URL. Return the URL unchanged if no mirror matches."""
    return next((mirrored for mirror in mirrors if (mirrored := mirror.rewrite(url)) is not None), url)
