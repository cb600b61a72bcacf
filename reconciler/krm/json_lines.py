"""JSON for files of ours: a value a line, keys sorted, so that Git shows what changed."""

from __future__ import annotations

import json
from typing import Any


def json_lines(data: Any) -> bytes:
    """Return `data` as UTF-8 JSON, each level a column further in; it ends in a newline.

    Raises TypeError for what is no JSON data.
    """
    return f"{json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True)}\n".encode()
