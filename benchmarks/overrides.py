"""Cost of override policies: 1,000 clusters with 20 resources each, and two policies for each resource.

    python benchmarks/overrides.py                        the passes of a fleet, about two minutes
    python benchmarks/overrides.py --clusters 100 --json  a small fleet, as JSON
    python benchmarks/overrides.py --profile policy       a profile of one of the passes

The benchmark builds the fleet with policies and without policies. The fleet without policies is the floor. Each pass is
a pass of a long-lived service. "a new service" reads a fleet that another process has rendered. CPU seconds include Git
processes. Memory is the peak of the process up to this pass.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.overrides_world import Sizes, build_world  # noqa: E402
from benchmarks.passes import Measure, build_service, edit, measure_pass, run_script  # noqa: E402

CHANGES: Mapping[str, Callable[[Path], None]] = {
    "policy": lambda folder: edit(folder, "shop-00.yaml", "--log=debug", "--log=trace"),
    "label": lambda folder: edit(folder, "clusters.yaml", "site: site-0007", "site: attic"),
    "selectors": lambda folder: edit(folder, "shop-00.yaml", "spec:\n", f"spec:\n{SELECTORS}"),
}
SELECTORS = "  resourceSelectors:\n  - {apiVersion: apps/v1, kind: Deployment, name: shop-01}\n"
NAMES = {
    "first": "first",
    "restart": "no change, a new service",
    "no change": "no change",
    "policy": "a rule for {early} clusters changed",
    "label": "a label of one cluster changed",
    "selectors": "the resourceSelectors of a policy changed",
}


@click.command()
@click.option("--clusters", default=1_000, show_default=True)
@click.option("--resources", default=20, show_default=True, help="Resources of each cluster, half of them placed.")
@click.option("--early", default=30, show_default=True, help="Clusters that the rule is for that is changed.")
@click.option("--regions", default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
@click.option("--profile", type=click.Choice([*NAMES]), help="Show where the time of one pass goes.")
@click.option("--inside", type=click.Path(path_type=Path), hidden=True)
def main(
    clusters: int,
    resources: int,
    early: int,
    regions: int,
    as_json: bool,
    profile: str,
    inside: Path | None,
) -> None:
    """Build a fleet with policies and a fleet without, and measure the passes of both."""
    if inside:
        click.echo(json.dumps([asdict(measure) for measure in _passes(inside, profile)]))
        return
    sizes = Sizes(clusters, resources, early, regions)
    with tempfile.TemporaryDirectory(prefix="overrides-") as temporary:
        plain = _world(Path(temporary) / "plain", replace(sizes, policies=False), "")
        overridden = _world(Path(temporary) / "policies", sizes, profile)
    mapping = {"sizes": asdict(sizes), "plain": plain, "policies": overridden}
    click.echo(json.dumps(mapping, indent=2) if as_json else _table(sizes, plain, overridden))


def _world(folder: Path, sizes: Sizes, profile: str) -> dict[str, object]:
    """Build one fleet, run its passes in a separate process, and return their measures with the size of the state."""
    build_world(folder, sizes)
    passes = run_script(__file__, ["--inside", str(folder), *(("--profile", profile) if profile else ())])
    return {"passes": passes, "state_bytes": _state_bytes(folder / "fleet.git")}


def _state_bytes(fleet: Path) -> int:
    """Return the size of all package records in bytes, before compression."""
    git = partial(subprocess.check_output, cwd=fleet, text=True)
    refs = git(["git", "for-each-ref", "--format=%(refname)", "refs/reconciler/state"]).split()
    names = [line for ref in refs for line in git(["git", "ls-tree", "-rl", ref, "packages"]).splitlines()]
    return sum(int(line.split()[3]) for line in names if line.endswith(".json"))


def _passes(folder: Path, profile: str) -> Iterator[Measure]:
    os.chdir(folder)
    passes = build_service()
    for name in NAMES:
        if name == "restart":
            passes = build_service()
        if name in CHANGES and not _change(folder, name):
            continue
        yield measure_pass(name, passes, profiled=name == profile)


def _change(folder: Path, name: str) -> bool:
    """Change the config. The fleet without policies has only labels."""
    if name != "label" and not (folder / "config" / "shop-00.yaml").exists():
        return False
    CHANGES[name](folder)
    return True


def _table(sizes: Sizes, plain: dict, overridden: dict) -> str:
    pairs = sizes.clusters * sizes.resources
    lines = [f"{sizes.clusters} clusters with {sizes.resources} resources each\n"]
    lines += ["| pass | without: CPU seconds | with: CPU seconds | µs more a resource and cluster | renders | drafts |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    without = {entry["name"]: entry["cpu_seconds"] for entry in plain["passes"]}
    for item in overridden["passes"]:
        floor = without.get(item["name"])
        more = "" if floor is None else f"{(item['cpu_seconds'] - floor) / pairs * 1e6:.0f}"
        figures = ("" if floor is None else floor, item["cpu_seconds"], more, item["renders"], item["drafts"])
        lines += [f"| {NAMES[item['name']].format(early=sizes.early)} | {' | '.join(map(str, figures))} |"]
    peaks = [world["passes"][0]["peak_mib"] for world in (plain, overridden)]
    states = [round(world["state_bytes"] / 2**20, 1) for world in (plain, overridden)]
    lines += ["", _sizes("peak of the first pass", peaks, pairs), _sizes("records in state", states, pairs)]
    return "\n".join(lines)


def _sizes(what: str, mib: Sequence[float], pairs: int) -> str:
    more = (mib[1] - mib[0]) * 2**10 / pairs
    return f"{what}: {mib[0]} MiB without, {mib[1]} with policies, {more:.1f} KiB more a resource and cluster"


if __name__ == "__main__":
    main()
