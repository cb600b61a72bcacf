"""What clusters have of Plugins, as their states and branches tell: that room's port over real Git (design 10.7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from posixpath import dirname
from typing import Any

from reconciler.daemon.owned import Owned, States
from reconciler.daemon.publish import HEADS
from reconciler.daemon.remotes import Remotes
from reconciler.gitio.errors import GitError
from reconciler.krm.yaml import YamlFile
from reconciler.packages.parsing import parse_cached
from reconciler.planning.destination import Destination
from reconciler.rules.presets.model import GROUP, PLUGIN
from reconciler.rules.presets.mutate import PLUGIN_FILE
from reconciler.rules.remembered import Remembered
from reconciler.snapshot.files import FileTree

_FOLDER = "plugins"

Published = Mapping[str, Mapping[str, Any]]


class Plugins(Owned):
    """The packages of Plugins on all clusters, and what stands in them; what is owned tell the states alone."""

    def __init__(
        self, destinations: Iterable[Destination], states: States, remotes: Remotes, known: Remembered[Published]
    ) -> None:
        super().__init__(states, GROUP, PLUGIN)
        self._destinations = {one.name: one for one in destinations if one.deployment}
        self._remotes = remotes
        self._known = known

    def published(self, cluster: str) -> Published:
        """Return the Plugins on the branch of a cluster by package, ours or not; {} for one that cannot be read.

        A folder that has not changed is not read again, and what is returned of it is the very same.
        """
        destination = self._destinations.get(cluster)
        remote = self._remotes.get(destination.url) if destination else None
        head = remote.refs.get(HEADS + destination.branch) if remote and destination else None
        if destination is None or remote is None or head is None:
            return {}
        try:
            tree = remote.tree_at(head, destination.path(_FOLDER))
            return self._known.of(tree, lambda: _plugins(remote.files(tree))) if tree else {}
        except GitError:
            # whoever plans for the destination is told
            return {}


def _plugins(files: FileTree) -> Published:
    plugins = ((path, file) for path, file in files.items() if path.endswith(f"/{PLUGIN_FILE}"))
    found = ((dirname(path), _plugin(file.data)) for path, file in plugins)
    return {f"{_FOLDER}/{package}": data for package, data in found if data is not None and "/" not in package}


def _plugin(content: bytes) -> Mapping[str, Any] | None:
    parsed = parse_cached(content)
    documents = parsed.documents if isinstance(parsed, YamlFile) else ()
    data = documents[0].data if len(documents) == 1 else None
    return data if isinstance(data, dict) and data.get("kind") == PLUGIN else None
