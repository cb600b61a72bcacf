"""Tests of render steps: results of steps that do not depend on the cluster are computed once for equal arguments."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.packages.functions.function import FunctionConfig, FunctionContext, FunctionOutput, Item, create_failure
from reconciler.packages.functions.limits import DEFAULT_LIMITS, FunctionLimits
from reconciler.packages.functions.registry import FunctionMatch
from reconciler.planning.render.render_steps import RenderStep
from reconciler.planning.render.renderer import CLONE_STEP, CONTEXT_STEP, FUNCTION_STEP, MUTATION_STEP, OVERRIDE_STEP
from tests.unit.output.builders import build_tree

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: a\npipeline:\n  mutators:\n    - image: f:v1\n"
PACKAGE = {"Kptfile": KPTFILE, "map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n"}


@pytest.mark.parametrize(
    ("depends_on_cluster", "can_cache", "call_count"),
    [
        pytest.param(False, True, 1, id="independent-of-the-cluster"),
        pytest.param(True, True, 2, id="dependent-on-the-cluster"),
        pytest.param(False, False, 2, id="result-that-can-change"),
    ],
)
def test_number_of_calls_for_equal_arguments(depends_on_cluster: bool, can_cache: bool, call_count: int) -> None:
    calls: list[str] = []

    def apply(name: str) -> str:
        calls.append(name)
        return name.upper()

    step = RenderStep("s", apply, depends_on_cluster=depends_on_cluster, can_cache=lambda result: can_cache)

    assert [step("a"), step("a"), step("b")] == ["A", "A", "B"]
    assert calls.count("a") == call_count


def test_declared_steps() -> None:
    steps = (CLONE_STEP, CONTEXT_STEP, MUTATION_STEP, FUNCTION_STEP, OVERRIDE_STEP)

    assert {step.name: step.depends_on_cluster for step in steps} == {
        "clone": False, "context": False, "mutation": True, "functions": False, "overrides": True,
    }  # fmt: skip


class CountingProvider:
    """Provides one function for all images, and counts its calls."""

    limits: FunctionLimits = DEFAULT_LIMITS

    def __init__(self, identity: str = "", error: str = "") -> None:
        self.call_count = 0
        self._identity = identity
        self._error = error

    def find(self, spec: FunctionSpec) -> FunctionMatch:
        """Return the function."""
        return FunctionMatch(self._run, (1, 0, 0), identity=self._identity)

    def _run(self, items: Sequence[Item], config: FunctionConfig, context: FunctionContext) -> FunctionOutput:
        self.call_count += 1
        return create_failure(items, self._error) if self._error else FunctionOutput(tuple(items))


@pytest.mark.parametrize(
    ("provider", "call_count"),
    [
        pytest.param(CountingProvider(), 1, id="built-in-function"),
        pytest.param(CountingProvider(identity="sha256:0"), 2, id="external-function"),
        pytest.param(CountingProvider(error="no"), 2, id="failed-function"),
    ],
)
def test_number_of_function_calls_for_equal_packages(provider: CountingProvider, call_count: int) -> None:
    first, second = (FUNCTION_STEP(build_tree(PACKAGE), provider, "safe") for _ in range(2))

    assert first == second
    assert provider.call_count == call_count
