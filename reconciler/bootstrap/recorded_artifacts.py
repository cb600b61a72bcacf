"""The versions of charts and artifacts that packages use, from the recorded states of all targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from reconciler.controllers.package_variants.artifact_resolution import RecordedArtifact
from reconciler.planning.model.state import TargetState


class RecordedArtifacts:
    """Lists the versions that packages use. The states are read at the first request."""

    def __init__(self, states: Iterable[TargetState]) -> None:
        self._states = states

    def list_versions(self, url: str, name: str) -> Sequence[RecordedArtifact]:
        """Return the versions of a chart or artifact that packages use.

        Args:
            url: The URL of the Repository.
        """
        return self._versions.get((url, name), ())

    @cached_property
    def _versions(self) -> dict[tuple[str, str], Sequence[RecordedArtifact]]:
        versions: dict[tuple[str, str], dict[RecordedArtifact, None]] = {}
        for state in self._states:
            for _, record in state.list_active_packages():
                known = record.outcome.get("upstream", {})
                for entry in known.get("sources") or (known,):
                    if entry.get("kind") and entry.get("tree"):
                        artifact = RecordedArtifact(
                            entry["ref"], entry["commit"], entry["tree"], entry["kind"], entry.get("seconds", 0),
                            has_whole_tree=not entry.get("hasOnlyValues"),
                        )  # fmt: skip
                        versions.setdefault((entry["repo"], entry["directory"]), {})[artifact] = None
        return {key: tuple(artifacts) for key, artifacts in versions.items()}
