"""What plugin presets cost: 300 clusters with the Plugins of 20 presets each, with overrides on every layer.

    python benchmarks/presets.py                        the passes of a fleet, about three minutes
    python benchmarks/presets.py --clusters 60 --json   those of a small one, as data
    python benchmarks/presets.py --profile cluster      and which functions the time of one of them is spent in

Every pass is one of a long-lived service; "a new service" finds a world that others have made, and looks at all of it.
The floor is a pass that has to look because the config is another one, and finds nothing to do. CPU seconds count git's
processes, too; memory is the peak of the process itself so far.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.overrides_world import edit  # noqa: E402
from benchmarks.passes import Measure, in_a_process, measured, service  # noqa: E402
from benchmarks.presets_world import CHANGES, Sizes, build_world  # noqa: E402

NAMES = {
    "first": "first",
    "restart": "no change, a new service",
    "no change": "no change",
    "beside": "an object that no preset reads",
    "no-op": "a comment in an override for all",
    "cluster": "an override for one cluster of a preset",
    "tier": "an override for a tier of {edge} clusters",
    "default": "a default of a definition",
    "again": "no change, a new service again",
}
NEW = ("restart", "again")
FLOOR = "beside"


@click.command()
@click.option("--clusters", default=300, show_default=True)
@click.option("--presets", default=20, show_default=True)
@click.option("--edge", default=30, show_default=True, help="Clusters of the tier whose override is changed.")
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
@click.option("--profile", type=click.Choice([*NAMES]), help="Show where the time of one pass goes.")
@click.option("--inside", type=click.Path(path_type=Path), hidden=True)
def main(clusters: int, presets: int, edge: int, as_json: bool, profile: str, inside: Path | None) -> None:
    """Build a fleet with presets, and measure its passes."""
    if inside:
        click.echo(json.dumps([asdict(one) for one in _passes(inside, profile)]))
        return
    sizes = Sizes(clusters, presets, edge)
    with tempfile.TemporaryDirectory(prefix="presets-") as temporary:
        world = Path(temporary) / "world"
        build_world(world, sizes)
        found = in_a_process(__file__, ["--inside", str(world), *(("--profile", profile) if profile else ())])
    measures = [Measure(**one) for one in found]
    data = {"sizes": asdict(sizes), "passes": found}
    click.echo(json.dumps(data, indent=2) if as_json else _table(sizes, measures))


def _passes(folder: Path, profile: str) -> Iterator[Measure]:
    os.chdir(folder)
    passes = service()
    for name in NAMES:
        if name in NEW:
            passes = service()
        if name in CHANGES:
            edit(folder, *CHANGES[name])
        yield measured(name, passes, profiled=name == profile)


def _table(sizes: Sizes, measures: Sequence[Measure]) -> str:
    (floor,) = (one.cpu_seconds for one in measures if one.name == FLOOR)
    lines = [f"{sizes.clusters} clusters, {sizes.presets} presets: {sizes.plugins} Plugins\n"]
    lines += ["| pass | seconds | CPU seconds | to the floor | peak MiB | renders | drafts |"]
    lines += [f"|---|{'---:|' * 6}"]
    for one in measures:
        ratio = f"{one.cpu_seconds / floor:.2f}"
        figures = (one.seconds, one.cpu_seconds, ratio, one.peak_mib, one.renders, one.drafts)
        lines += [f"| {NAMES[one.name].format(edge=sizes.edge)} | {' | '.join(map(str, figures))} |"]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
