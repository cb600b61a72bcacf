"""How much YAML we read before we say no: hostile files must cost little and kill nobody.

Nothing is scanned beforehand: the composer counts while the events come and stops at the first one too many. The
crash that libyaml is known for sits in its recursive composer, which we do not use (measured: 200,000 nested brackets
kill the C composer, its event stream only grows slow, and we leave that stream at level 101).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class YamlLimits:
    """Upper bounds; a file that exceeds one is refused whole.

    `file_bytes` is the size in UTF-8; `depth` the number of collections around a value, those reached through aliases
    included; `aliases` the number of `*name` in a file and `expanded_nodes` what they would write out; `documents` the
    number of parts between `---` and `...` lines, empty ones included.
    """

    file_bytes: int = 4 * 1024 * 1024
    depth: int = 100
    aliases: int = 1_000
    expanded_nodes: int = 100_000
    documents: int = 2_000


DEFAULT_LIMITS = YamlLimits()
