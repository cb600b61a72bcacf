"""Revisions of other tools: whether a text is a version range."""

from __future__ import annotations

import re

from reconciler.krm.version_ranges import parse_range

_RANGE = re.compile(r"[*^~<>=|,\s]|(?:^|\.)[xX](?:\.|$)")


def is_version_range(text: str) -> bool:
    """Return whether a text is a range such as `1.*`. Argo CD reads a text such as `v1` as the name of a tag."""
    return _RANGE.search(text) is not None and parse_range(text) is not None
