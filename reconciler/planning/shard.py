"""Shards: several daemons that share a fleet by its destinations, without a word between them (design 9)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.krm.digest import digest

if TYPE_CHECKING:
    # settings are read before anything is planned
    from reconciler.planning.destination import Destination

# a destination is weighed once for every shard that there is
MOST_SHARDS = 1_000
_TEXT = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", re.ASCII)


@dataclass(frozen=True)
class Shard:
    """The `index`-th of `count` shards, counted from 1; 1 of 1 has everything."""

    index: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def is_alone(self) -> bool:
        """Whether there is no other shard."""
        return self.count == 1

    @property
    def leads(self) -> bool:
        """Whether it does what is done once for a fleet: the status, and proposals to the config."""
        return self.index == 1

    def holds(self, destination: Destination) -> bool:
        """Return whether a destination is this shard's: of every number of shards, exactly one says so.

        It goes by the name alone. That is what its refs are called by, so that two processes that disagree about an
        address, or about the kind of object that makes it a destination, still do not write to one ref.
        """
        return self.is_alone or _shard_of(destination.name, self.count) == self.index


def _shard_of(name: str, count: int) -> int:
    """Return who weighs most for a name: one more shard takes its share from all others, and moves nothing else."""
    return max(range(1, count + 1), key=lambda index: digest([index, name]))


def read_shard(text: str) -> Shard:
    """Return the shard that is written as `i/n`; raises ValueError, which names what is allowed."""
    found = _TEXT.fullmatch(text)
    shard = Shard(int(found[1]), int(found[2])) if found else None
    if shard is None or not shard.index <= shard.count <= MOST_SHARDS:
        raise ValueError(
            f"must be i/n, the i-th of n shards with 1 <= i <= n <= {MOST_SHARDS:,}, for example 2/5; 1/1 has it all"
        )
    return shard
