"""The rows of the table: one kind of work, the CPU time of both programs, and the equality of the results."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from reconciler import memory

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """CPU milliseconds of one item, for this project and for the other program.

    Attributes:
        is_equal: Whether the results are equal. `checked` contains the compared data.
    """

    work: str
    program: str
    ours: float
    theirs: float
    is_equal: bool
    checked: str


def format_table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield "| work | other program | ours, CPU ms | theirs, CPU ms | theirs / ours | equal? |"
    yield "|---|---|---:|---:|---:|---|"
    for row in rows:
        figures = (_format(row.ours), _format(row.theirs), f"{row.theirs / row.ours:.2g}")
        equal = f"{'yes' if row.is_equal else '**no**'}: {row.checked}"
        yield f"| {row.work} | {row.program} | {' | '.join(figures)} | {equal} |"


def _format(milliseconds: float) -> str:
    return f"{milliseconds:.3g}" if milliseconds < 100 else f"{milliseconds:,.0f}"


def measure_cold(items: Sequence[T], process: Callable[[T], object], rounds: int) -> float:
    """Return the median CPU milliseconds of one item. Each round starts with empty caches."""
    seconds = []
    for _ in range(rounds):
        clear_caches()
        began = time.process_time()
        for item in items:
            process(item)
        seconds.append(time.process_time() - began)
    return statistics.median(seconds) * 1000 / len(items)


def clear_caches() -> None:
    """Empty all caches of this project and free their memory."""
    for cache in list(memory._CACHES):
        cache.cache_clear()
    gc.collect()
