"""What components cost: 200 of them in three environments each, made of a definition and four addons.

    python benchmarks/components.py                         the passes of a fleet, about a minute
    python benchmarks/components.py --components 20 --json  those of a small one, as data
    python benchmarks/components.py --profile override      and which functions the time of one of them is spent in

Every pass is one of a long-lived service; "a new service" finds a world that others have made, and looks at all of it.
The floor is a pass that has to look because the config is another one, and finds nothing to do. CPU seconds count git's
processes, too; memory is the peak of the process itself so far.
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
from benchmarks.passes import measured_in_a_process, run_in_turn, table  # noqa: E402

NAMES = {
    "first": "first",
    "restart": "no change, a new service",
    "no change": "no change",
    "beside": "an object that no component reads",
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
    """Build a fleet with components, and measure its passes."""
    if inside:
        click.echo(json.dumps([asdict(one) for one in run_in_turn(inside, NAMES, CHANGES, profile)]))
        return
    sizes = Sizes(components, clusters)
    measures = measured_in_a_process(__file__, lambda folder: build_world(folder, sizes), profile)
    if as_json:
        click.echo(json.dumps({"sizes": asdict(sizes), "passes": [asdict(one) for one in measures]}, indent=2))
        return
    title = f"{sizes.components} components, {sizes.clusters} clusters an environment: {sizes.packages} packages"
    click.echo(table(title, NAMES, measures))


if __name__ == "__main__":
    main()
