"""Cost of plugin presets: 300 clusters with the Plugins of 20 presets each, with overrides on every layer.

    python benchmarks/presets.py                        the passes of a fleet, about three minutes
    python benchmarks/presets.py --clusters 60 --json   a small fleet, as JSON
    python benchmarks/presets.py --profile cluster      a profile of one of the passes

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

from benchmarks.passes import format_table, measure_in_process, run_in_turn  # noqa: E402
from benchmarks.presets_world import CHANGES, Sizes, build_world  # noqa: E402

NAMES = {
    "first": "first",
    "restart": "no change, a new service",
    "no change": "no change",
    "unrelated": "an object that no preset reads",
    "no-op": "a comment in an override for all",
    "cluster": "an override for one cluster of a preset",
    "tier": "an override for a tier of {edge} clusters",
    "default": "a default of a definition",
    "again": "no change, a new service again",
}


@click.command()
@click.option("--clusters", default=300, show_default=True)
@click.option("--presets", default=20, show_default=True)
@click.option("--edge", default=30, show_default=True, help="Clusters of the tier whose override is changed.")
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
@click.option("--profile", type=click.Choice([*NAMES]), help="Show where the time of one pass goes.")
@click.option("--inside", type=click.Path(path_type=Path), hidden=True)
def main(clusters: int, presets: int, edge: int, as_json: bool, profile: str, inside: Path | None) -> None:
    """Build a fleet with presets and measure its passes."""
    if inside:
        click.echo(json.dumps([asdict(measure) for measure in run_in_turn(inside, NAMES, CHANGES, profile)]))
        return
    sizes = Sizes(clusters, presets, edge)
    measures = measure_in_process(__file__, lambda folder: build_world(folder, sizes), profile)
    if as_json:
        click.echo(json.dumps({"sizes": asdict(sizes), "passes": [asdict(measure) for measure in measures]}, indent=2))
        return
    title = f"{sizes.clusters} clusters, {sizes.presets} presets: {sizes.plugins} Plugins"
    click.echo(format_table(title, {key: text.format(edge=edge) for key, text in NAMES.items()}, measures))


if __name__ == "__main__":
    main()
