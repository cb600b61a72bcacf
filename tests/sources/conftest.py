"""Fixtures for tests of sources: servers, and a reader of artifacts with a manual clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.sources.artifacts import ArtifactOptions, Artifacts
from reconciler.sources.credentials import SourceCredentials
from reconciler.sources.keyless import KeylessVerifier
from reconciler.sources.programs import ProgramFinder, ProgramRunner
from reconciler.sources.provenance import ProvenanceVerifier
from reconciler.sources.verifier_program import VerifierProgram
from tests.support.artifact_servers import ArtifactServer, RegistryServer, registry, serve

__all__ = ["registry"]


@pytest.fixture
def charts() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as server:
        yield server


@pytest.fixture
def other_registry() -> Iterator[RegistryServer]:
    server = RegistryServer()
    with serve(server):
        yield server


@dataclass
class World:
    """A reader of artifacts with a clock that the test moves. `restart` creates a new reader with the same cache."""

    folder: Path
    now: float = 1_000_000.0
    options: ArtifactOptions = field(default_factory=lambda: ArtifactOptions(timeout_seconds=10.0))
    credentials: SourceCredentials = field(default_factory=SourceCredentials)
    programs: dict[str, Path] = field(default_factory=dict)
    trusted_root: str = ""
    artifacts: Artifacts = field(init=False)

    def __post_init__(self) -> None:
        self._start()

    def restart(self, **changes: object) -> None:
        self.artifacts.close()
        self.options = replace(self.options, **changes)  # type: ignore[arg-type]
        self._start()

    def _start(self) -> None:
        backoff = Backoff(5.0, 300.0, lambda: self.now)
        gpgv, cosign = (
            VerifierProgram(
                name, ProgramFinder(name, self.programs.get(name), ""), ProgramRunner("none"), f"install {name}"
            )
            for name in ("gpgv", "cosign")
        )
        self.artifacts = Artifacts(
            self.folder, self.options, self.credentials, backoff, ProvenanceVerifier(gpgv),
            KeylessVerifier(cosign, self.trusted_root), lambda: self.now,
        )  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "cache")
    yield world
    world.artifacts.close()
