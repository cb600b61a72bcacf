"""Finds the config file that defined an object in the last pass, by the path in the status file of the object."""

from __future__ import annotations

from reconciler.krm.objects import ObjectKey
from reconciler.output.status.config_statuses import get_object_path
from reconciler.output.status.status_branch import read_recorded_file
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX


def find_recorded_file(key: ObjectKey, remotes: Remotes, url: str, branch: str) -> str:
    """Return the config file that defined an object in the last pass. Return "" if the file is unknown.

    Args:
        url: The URL of the repository with the status branch.
        branch: The name of the status branch.

    Raises:
        GitError: The status branch cannot be read.
    """
    if remotes.get(url) is None and url not in remotes.failures:
        remotes.fetch((), (url,))
    remote = remotes.get(url)
    head = remote.refs.get(BRANCH_PREFIX + branch) if remote else None
    blob = remote.find_blob_at(head, get_object_path(key)) if remote and head else None
    return read_recorded_file(remote.read_blob(blob)) if remote and blob else ""
