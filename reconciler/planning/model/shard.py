"""Shards: several daemons divide the targets of a fleet, without communication between the daemons."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    # Import `Target` only for type checks, because the settings use `Shard` before planning is imported.
    from reconciler.planning.model.targets import Target

# Limit the number of shards, because the assignment of a target computes one digest per shard.
MAX_SHARDS = 1_000
_TEXT = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", re.ASCII)


@dataclass(frozen=True)
class Shard:
    """Shard number `index` of `count` shards. `index` starts at 1. The shard 1/1 is responsible for all targets."""

    index: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def is_alone(self) -> bool:
        """Whether there is only one shard."""
        return self.count == 1

    @property
    def is_leader(self) -> bool:
        """Whether this shard also does the tasks for the whole fleet: it writes the status and the config proposal."""
        return self.index == 1

    def is_responsible_for(self, target: Target) -> bool:
        """Return whether this shard is responsible for a target. Exactly one shard is responsible for each target.

        The result depends only on the name of the target, which is also part of the ref names. Therefore, daemons never
        write to the same refs, even if their configs contain different URLs or object kinds for one target name.
        """
        return self.is_alone or _get_shard_index(target.name, self.count) == self.index


def _get_shard_index(name: str, count: int) -> int:
    """Return the index of the shard that is responsible for the target `name`.

    For each shard, a digest of its index and the name is computed. The shard with the highest digest is responsible. If
    a shard is added, targets move only to the new shard, and not between the other shards.
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
            f"must be i/n, which means shard i of n shards, with 1 <= i <= n <= {MAX_SHARDS:,}, for example "
            "2/5; 1/1 means all targets"
        )
    return shard
