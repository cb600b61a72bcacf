"""What override policies cost: 1,000 clusters with 20 resources each, every one of them by two policies.

    python benchmarks/overrides.py                        the passes of a fleet, about two minutes
    python benchmarks/overrides.py --clusters 100 --json  those of a small one, as data
    python benchmarks/overrides.py --profile policy       and which functions the time of one of them is spent in

The fleet is built twice, with policies and without: the second is the floor that the first is told in. Every pass is
one of a long-lived service; "a new service" finds a world that others have made. CPU seconds count git's processes,
too; memory is the peak of the process itself so far.
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
from benchmarks.passes import Measure, edit, in_a_process, measured, service  # noqa: E402

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
    """Build a fleet with policies and one without, and measure the passes of both."""
    if inside:
        click.echo(json.dumps([asdict(one) for one in _passes(inside, profile)]))
        return
    sizes = Sizes(clusters, resources, early, regions)
    with tempfile.TemporaryDirectory(prefix="overrides-") as temporary:
        plain = _world(Path(temporary) / "plain", replace(sizes, policies=False), "")
        overridden = _world(Path(temporary) / "policies", sizes, profile)
    found = {"sizes": asdict(sizes), "plain": plain, "policies": overridden}
    click.echo(json.dumps(found, indent=2) if as_json else _table(sizes, plain, overridden))


def _world(folder: Path, sizes: Sizes, profile: str) -> dict[str, object]:
    """Build one world, run its passes in a process of their own, and return their measures with the size of state."""
    build_world(folder, sizes)
    passes = in_a_process(__file__, ["--inside", str(folder), *(("--profile", profile) if profile else ())])
    return {"passes": passes, "state_bytes": _state_bytes(folder / "fleet.git")}


def _state_bytes(fleet: Path) -> int:
    """Return what all records of packages have in bytes, before git compresses them."""
    git = partial(subprocess.check_output, cwd=fleet, text=True)
    refs = git(["git", "for-each-ref", "--format=%(refname)", "refs/reconciler/state"]).split()
    names = [line for ref in refs for line in git(["git", "ls-tree", "-rl", ref, "packages"]).splitlines()]
    return sum(int(line.split()[3]) for line in names if line.endswith(".json"))


def _passes(folder: Path, profile: str) -> Iterator[Measure]:
    os.chdir(folder)
    passes = service()
    for name in NAMES:
        if name == "restart":
            passes = service()
        if name in CHANGES and not _change(folder, name):
            continue
        yield measured(name, passes, profiled=name == profile)


def _change(folder: Path, name: str) -> bool:
    """Change the config; the world without policies has only labels."""
    if name != "label" and not (folder / "config" / "shop-00.yaml").exists():
        return False
    CHANGES[name](folder)
    return True


def _table(sizes: Sizes, plain: dict, overridden: dict) -> str:
    pairs = sizes.clusters * sizes.resources
    lines = [f"{sizes.clusters} clusters with {sizes.resources} resources each\n"]
    lines += ["| pass | without: CPU seconds | with: CPU seconds | µs more a resource and cluster | renders | drafts |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    without = {one["name"]: one["cpu_seconds"] for one in plain["passes"]}
    for one in overridden["passes"]:
        floor = without.get(one["name"])
        more = "" if floor is None else f"{(one['cpu_seconds'] - floor) / pairs * 1e6:.0f}"
        figures = ("" if floor is None else floor, one["cpu_seconds"], more, one["renders"], one["drafts"])
        lines += [f"| {NAMES[one['name']].format(early=sizes.early)} | {' | '.join(map(str, figures))} |"]
    peaks = [world["passes"][0]["peak_mib"] for world in (plain, overridden)]
    states = [round(world["state_bytes"] / 2**20, 1) for world in (plain, overridden)]
    lines += ["", _sizes("peak of the first pass", peaks, pairs), _sizes("records in state", states, pairs)]
    return "\n".join(lines)


def _sizes(what: str, mib: Sequence[float], pairs: int) -> str:
    more = (mib[1] - mib[0]) * 2**10 / pairs
    return f"{what}: {mib[0]} MiB without, {mib[1]} with policies, {more:.1f} KiB more a resource and cluster"


if __name__ == "__main__":
    main()
