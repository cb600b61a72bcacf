"""The showcase: a config for all controllers, a catalog and a fleet of four clusters, from `fixtures/showcase`."""

from __future__ import annotations

import shutil
from pathlib import Path

from reconciler.git.folder import read_folder
from reconciler.git.local_repository import create_repository
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.push_outcomes import PushUnit, RefUpdate

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "showcase"
# Equal input gives equal commit ids on each machine.
_SECONDS = 1_767_225_600


def build_showcase(folder: Path) -> None:
    """Write the config and the repositories `catalog.git` and `fleet.git` to a folder, without a pass."""
    shutil.copytree(FIXTURES / "config", folder / "config")
    create_repository(folder / "catalog.git")
    create_repository(folder / "fleet.git")
    mirror = Mirror.open(folder / ".cache", str(folder / "catalog.git"))
    commits = mirror.write_commits(
        [
            NewCommit((), _puts("catalog"), "catalog: the gateway, and monitoring", _SECONDS),
            NewCommit((0,), _puts("catalog-v2"), "gateway: one per zone, 1.5.1", _SECONDS + 86_400),
        ]
    )
    refs = {"heads/main": 1, "tags/gateway/v1": 0, "tags/monitoring/v1": 0, "tags/gateway/v2": 1}
    updates = tuple(RefUpdate(f"refs/{name}", commits[index], None) for name, index in refs.items())
    assert mirror.push([PushUnit("catalog", updates)]).is_complete


def _puts(name: str) -> tuple[PutFile, ...]:
    return tuple(PutFile(path, file.data, file.mode) for path, file in read_folder(FIXTURES / name).files.items())
