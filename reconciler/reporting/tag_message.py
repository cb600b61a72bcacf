"""The messages of revision tags: what was published, with all that a lost state is rebuilt from (porch 15.3, 15.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from reconciler.planning.destination import Destination
from reconciler.planning.tags import MissingTag
from reconciler.reporting.causes import object_words
from reconciler.reporting.values import one_line


def tag_message(tag: MissingTag, destination: Destination) -> str:
    """Return the message of a revision's tag; labels and annotations are those of the draft that was published."""
    owner, revision, record = tag.record.owner, tag.revision, tag.record
    trailers = {
        "Task": "publish",
        "Owner": object_words(owner.key),
        "Owner-UID": owner.key.uid,
        "Repository": destination.name,
        "Package": tag.package,
        "Workspace": f"packagevariant-{revision.workspace}" if revision.workspace else "",
        "Revision": str(revision.number),
        "Upstream": revision.offer.upstream,
        "Labels": _as_json(record.labels),
        "Annotations": _as_json(record.annotations),
    }
    lines = (f"Reconciler-{name}: {one_line(value)}" for name, value in trailers.items() if value)
    return "\n".join((f"publish({destination.name}/{tag.package}): v{revision.number}", "", *lines)) + "\n"


def _as_json(data: Mapping[str, str]) -> str:
    return json.dumps(dict(data), sort_keys=True) if data else ""
