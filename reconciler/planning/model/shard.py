"""Shards: several instances of the service divide a fleet by its targets, without communication between them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.krm.json_text import compute_digest

if TYPE_CHECKING:
    # The settings use this module, and are read before planning is imported.
    from reconciler.planning.model.targets import Target

# The assignment of a target computes one digest per shard, so that the number of shards is limited.
MAX_SHARDS = 1_000
_TEXT = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", re.ASCII)


@dataclass(frozen=True)
class Shard:
    """Shard `index` of `count` shards. `index` starts at 1. Shard 1/1 has all targets."""

    index: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def is_alone(self) -> bool:
        """Whether there is no other shard."""
        return self.count == 1

    @property
    def is_leader(self) -> bool:
        """Whether this shard does the fleet-wide tasks: status and config proposals."""
        return self.index == 1

    def is_responsible_for(self, target: Target) -> bool:
        """Return whether a target belongs to this shard. Exactly one shard of each count is responsible for a target.

        Only the name counts, because refs are named after it. Two processes that have different URLs, or different
        kinds of object, for one target still do not both write to its refs.
        """
        return self.is_alone or _get_shard_index(target.name, self.count) == self.index


def _get_shard_index(name: str, count: int) -> int:
    """Return the shard with the highest digest for a name.

    A new shard changes the assignment of its own targets only.
    """
    return max(range(1, count + 1), key=lambda index: compute_digest([index, name]))


def parse_shard(text: str) -> Shard:
    """Parse a shard in the form `i/n`.

    Raises:
        ValueError: The text is invalid. The message contains the allowed values.
    """
    match = _TEXT.fullmatch(text)
    shard = Shard(int(match[1]), int(match[2])) if match else None
    if shard is None or not shard.index <= shard.count <= MAX_SHARDS:
        raise ValueError(
            f"must be i/n, shard i of n with 1 <= i <= n <= {MAX_SHARDS:,}, for example 2/5; 1/1 has all targets"
        )
    return shard
