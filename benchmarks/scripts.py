"""Cost of one call of a Starlark script with 15 resources.

    python -m benchmarks scripts [--calls N]

`here` evaluates in this process, `process` in the worker process of renders. Both include the exchange of the resources
as JSON. `call` is the whole function with the comparison of the result. The script changes one label of each resource,
or nothing.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from reconciler.packages.functions.function import FunctionContext, Item  # noqa: E402
from reconciler.packages.functions.limits import DEFAULT_LIMITS, FunctionBudget  # noqa: E402
from reconciler.packages.functions.resource_list import build_resource_list  # noqa: E402
from reconciler.packages.functions.starlark import create_starlark_function, run_in_process  # noqa: E402
from reconciler.packages.parsing import parse_cached  # noqa: E402
from reconciler.runners.scripts import ScriptProcess  # noqa: E402

RESOURCES = 15
NOTHING = "x = 1"
EDIT = 'for r in ctx.resource_list["items"]:\n    r["metadata"]["labels"]["tier"] = "prod"\n'
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-{number}
  namespace: shop
  labels: {{app: web, tier: dev}}
spec:
  replicas: 3
  selector:
    matchLabels: {{app: web}}
  template:
    metadata:
      labels: {{app: web}}
    spec:
      containers:
      - name: web
        image: example.com/web:1.2.3
        ports:
        - containerPort: 8080
        env:
        - name: LEVEL
          value: info
        resources:
          requests: {{cpu: 100m, memory: 128Mi}}
          limits: {{cpu: 500m, memory: 256Mi}}
"""


@click.command()
@click.option("--calls", default=1_000, show_default=True, help="Calls of each kind.")
def main(calls: int) -> None:
    """Measure, and print the median and the shortest time in milliseconds."""
    items = _items()
    process = ScriptProcess(60)
    start = time.perf_counter()
    process(_request(items, NOTHING), DEFAULT_LIMITS, 1 << 30)
    click.echo(f"start of the process: {1_000 * (time.perf_counter() - start):.0f} ms")
    try:
        for name, source in (("nothing", NOTHING), ("edit", EDIT)):
            request = _request(items, source)
            click.echo(f"script: {name}, {RESOURCES} resources, {len(request):,} bytes of JSON")
            _print_row(
                "evaluated here", calls, lambda request=request: run_in_process(request, DEFAULT_LIMITS, 1 << 30)
            )
            _print_row(
                "evaluated in the process", calls, lambda request=request: process(request, DEFAULT_LIMITS, 1 << 30)
            )
            config = {"apiVersion": "fn.kpt.dev/v1alpha1", "kind": "StarlarkRun", "source": source}
            for where, run in (("here", run_in_process), ("in the process", process)):
                function = create_starlark_function(run)
                _print_row(
                    f"function call, {where}",
                    calls,
                    lambda function=function, config=config: function(
                        items, config, FunctionContext(budget=FunctionBudget(DEFAULT_LIMITS))
                    ),
                )
    finally:
        process.end()


def _items() -> list[Item]:
    texts = [DEPLOYMENT.format(number=number).encode() for number in range(RESOURCES)]
    documents = [parse_cached(text).documents[0] for text in texts]  # type: ignore[union-attr]
    return [Item("", f"r{n}.yaml", 0, document.data, n, document) for n, document in enumerate(documents)]


def _request(items: list[Item], source: str) -> bytes:
    return json.dumps({"name": "script", "source": source, "resourceList": build_resource_list(items, None)}).encode()


def _print_row(name: str, calls: int, call: Callable[[], object]) -> None:
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(1_000 * (time.perf_counter() - start))
    times.sort()
    # On a busy machine, the shortest time is the most reliable figure.
    click.echo(f"  {name:30} median {statistics.median(times):.2f} ms, shortest {times[0]:.2f} ms")


if __name__ == "__main__":
    main()
