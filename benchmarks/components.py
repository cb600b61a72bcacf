"""Cost of components: 200 components in three environments each, with one definition and four addons.

    python benchmarks/components.py                         the passes of a fleet, about a minute
    python benchmarks/components.py --components 20 --json  a small fleet, as JSON
    python benchmarks/components.py --profile override      a profile of one of the passes

Each pass is a pass of a long-lived service. "a new service" reads a fleet that another process has rendered.
The floor is a pass over a changed config that changes no package. CPU seconds include Git processes. Memory is the peak
of the process up to this pass.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.components_world import CHANGES, Sizes, build_world  # noqa: E402
from benchmarks.passes import format_table, measure_in_process, run_in_turn  # noqa: E402

NAMES = {
    "first": "first",
    "restart": "no change, a new service",
    "no change": "no change",
    "unrelated": "an object that no component reads",
    "no-op": "a comment in an addon of all",
    "override": "an override of one environment",
    "build": "a build of one component",
    "developer": "an addon that a tenth has opted into",
    "platform": "an addon of all",
    "service": "a new component in three environments",
    "again": "no change, a new service again",
}


@click.command()
@click.option("--components", default=200, show_default=True)
@click.option("--clusters", default=1, show_default=True, help="Clusters that serve each of the three environments.")
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
@click.option("--profile", type=click.Choice([*NAMES]), help="Show where the time of one pass goes.")
@click.option("--inside", type=click.Path(path_type=Path), hidden=True)
def main(components: int, clusters: int, as_json: bool, profile: str, inside: Path | None) -> None:
    """Build a fleet with components and measure its passes."""
    if inside:
        click.echo(json.dumps([asdict(measure) for measure in run_in_turn(inside, NAMES, CHANGES, profile)]))
        return
    sizes = Sizes(components, clusters)
    measures = measure_in_process(__file__, lambda folder: build_world(folder, sizes), profile)
    if as_json:
        click.echo(json.dumps({"sizes": asdict(sizes), "passes": [asdict(measure) for measure in measures]}, indent=2))
        return
    title = f"{sizes.components} components, {sizes.clusters} clusters an environment: {sizes.packages} packages"
    click.echo(format_table(title, NAMES, measures))


if __name__ == "__main__":
    main()
