"""Downgrades: an upstream that goes back is an ordinary update, and its reviewers are told (porch 5, 14.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.rules.variant import Upstream
from reconciler.rules.variants.revision_names import is_older
from reconciler.snapshot.objects import CommitId

DOWNGRADE = "downgrade"


def goes_back(upstream: Upstream, known: Mapping[str, Any], is_behind: Callable[[Upstream, CommitId], bool]) -> bool:
    """Return whether an upstream is older than the known one: by version numbers, else by Git's history.

    A tag that moves keeps its name: only history tells where it moved to.
    """
    if not known.get("commit") or (known["repo"], known["directory"]) != (upstream.repo, upstream.directory):
        return False
    new, old = (ref.rpartition("/")[2] for ref in (upstream.ref, known["ref"]))
    if is_older(old, than=new) or upstream.commit == known["commit"]:
        return False
    return is_older(new, than=old) or is_behind(upstream, known["commit"])
