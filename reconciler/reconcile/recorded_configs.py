"""Lists the package variants that earlier config commits request. They are needed to recover lost state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from reconciler.catalog.files import CommitId
from reconciler.controllers.results import PackageOwner, PackageTarget, Variant
from reconciler.git.errors import GitError
from reconciler.output.text import shorten_id
from reconciler.reconcile.config_source import ConfigSnapshot
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.services import PassServices

_COMMIT = re.compile(r"[0-9a-f]{40}\Z")
# Limit the number of cached configs, because one config contains the variants of the whole fleet.
_MAX_CACHED_CONFIGS = 4
_Variants = Mapping[tuple[PackageOwner, PackageTarget], Variant]


class RecordedConfigs:
    """Reads earlier commits of the config. The latest results are cached.

    The IDs of the commits come from status files. Anyone who can push to a branch can edit these files. Therefore, only
    commits in the history of the current config commit are read.
    """

    def __init__(self, current: ConfigSnapshot, remotes: Remotes, services: PassServices, now: int) -> None:
        self._current = current
        self._remotes = remotes
        self._services = services
        self._now = now
        self._read_variants = lru_cache(_MAX_CACHED_CONFIGS)(self._list_variants)

    def find_variant(self, config: str, variant: Variant) -> Variant | str:
        """Return the variant in a config that has the same owner and the same package as `variant`.

        Args:
            config: The ID of the current config or of an earlier config.
            variant: A variant of the current config.

        Returns:
            The variant, or the reason why it is unknown, as a part of a sentence.
        """
        if config == self._current.id:
            return variant
        variants = self._read_variants(config)
        if isinstance(variants, str):
            return variants
        found = variants.get((variant.owner, variant.target))
        return found or (
            f"config {shorten_id(config)} does not request the package, or the package cannot be rendered now"
        )

    def _list_variants(self, config: str) -> _Variants | str:
        name = f"config {shorten_id(config)}"
        try:
            snapshot = self._current.read_earlier(CommitId(config)) if _COMMIT.match(config) else None
        except GitError as error:
            return f"{name} cannot be read: {error.message}"
        if snapshot is None:
            return f"{name} is not a commit in the history of the current config"
        catalog = self._services.read_catalog(snapshot)
        variants = self._services.list_requested_variants(catalog, self._remotes, self._now)
        return {(variant.owner, variant.target): variant for variant in variants}
