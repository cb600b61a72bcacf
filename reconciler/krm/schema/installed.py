"""Installed schemas: those of Kubernetes' own kinds that the extra `k8s-schemas` brings, by release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.krm.schema.api_removals import Release, release_words
from reconciler.krm.schema.validation import EXTRA, Violation, installed_releases, kubernetes_schemas


class InstalledSchemas:
    """The schemas that are installed; none at all without the extra."""

    def __init__(self) -> None:
        self._releases = installed_releases()

    def violations(self, release: Release | None, data: Mapping[str, Any]) -> tuple[Violation, ...] | None:
        """Return what is wrong with a resource of a kind of Kubernetes; None where there is no schema for it."""
        schemas = kubernetes_schemas(strict=True, release=release) if self.is_whole(release) else None
        return schemas.violations(data) if schemas else None

    def is_whole(self, release: Release | None) -> bool:
        """Tell whether the schemas of a release are installed."""
        return bool(self._releases) if release is None else release in self._releases

    def words(self, release: Release | None) -> str:
        """Return the release that is meant, as people say it."""
        meant = release or max(self._releases, default=None)
        return f"Kubernetes {release_words(meant)}" if meant else "what is known of removed API versions"

    def missing_reason(self, release: Release | None) -> str:
        """Return why a built-in kind has no schema, and what to do about it."""
        if not self._releases:
            return f'no schemas are installed; install the extra "reconciler[{EXTRA}]", or use --schemas DIR'
        if release is None:
            return (
                "no installed release serves their API version; set --kubernetes-version, or the annotation"
                " reconciler.dev/kubernetes-version of the cluster"
            )
        oldest, newest = release_words(self._releases[0]), release_words(self._releases[-1])
        return (
            f"the extra {EXTRA} has the schemas of Kubernetes {oldest} to {newest}, and none of"
            f" {release_words(release)}; use --schemas DIR"
        )
