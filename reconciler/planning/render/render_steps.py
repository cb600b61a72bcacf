"""The declaration of a step of a render: its name, and whether it depends on the cluster.

The module `renderer` declares the steps and calls them in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from reconciler.memory import cached

Result = TypeVar("Result")
# Maximum number of cached results of one step.
_MAX_CACHED_RESULTS = 256


class _UncachedResultError(Exception):
    """Contains a result that must not be cached.

    A cached function raises the result as this exception, because its cache does not store exceptions.
    """

    def __init__(self, result: object) -> None:
        super().__init__()
        self.result = result


class RenderStep(Generic[Result]):
    """One step of a render.

    A step that does not depend on the cluster is a pure function of its arguments. Its results are cached, because many
    clusters have packages with equal files.

    Attributes:
        depends_on_cluster: Whether the result depends on data that is not in the arguments, such as the override
            policies of the cluster or config objects.
    """

    def __init__(
        self,
        name: str,
        apply: Callable[..., Result],
        *,
        depends_on_cluster: bool,
        can_cache: Callable[[Result], bool] = lambda result: True,
    ) -> None:
        """Declare a step.

        Args:
            apply: The function of the step. If the step does not depend on the cluster, its arguments are hashable.
            can_cache: Receives a result, and returns whether the same arguments always lead to this result.
        """
        self.name = name
        self.depends_on_cluster = depends_on_cluster

        def apply_or_raise(*arguments: object) -> Result:
            result = apply(*arguments)
            if not can_cache(result):
                raise _UncachedResultError(result)
            return result

        self._apply: Callable[..., Result] = (
            apply if depends_on_cluster else cached(_MAX_CACHED_RESULTS)(apply_or_raise)
        )

    def __call__(self, *arguments: object) -> Result:
        """Return the result of the step."""
        try:
            return self._apply(*arguments)
        except _UncachedResultError as uncached:
            return uncached.result  # type: ignore[return-value]
