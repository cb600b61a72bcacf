"""The number of examples of the property tests."""

import os

_ALL = "RECONCILER_ALL_EXAMPLES"
_SHARE = 4
_MIN = 10


def examples(count: int) -> int:
    """Return a quarter of `count`, or `count` itself in the second test run of `.ci/run`.

    The number stays above 10, because the first examples of Hypothesis are simple.
    """
    return count if os.environ.get(_ALL) else min(count, max(count // _SHARE, _MIN))
