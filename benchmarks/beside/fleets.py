"""Passes over a fleet of real packages, beside scripts around kustomize and kpt.

The folder `fleet` contains the scripts. `python -m benchmarks.beside.fleet` prints their details.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

from benchmarks.beside.fleet.measure import list_scripts, run_programs
from benchmarks.beside.programs import SkippedError, build_program, find_installed
from benchmarks.beside.rows import Row
from benchmarks.scale.world import PACKAGES_FOLDER, Sizes

_CHECKED = "kinds, labels, cluster names and changed values"


def compare_fleets(clusters: int) -> Iterator[Row]:
    """Render and publish all packages of a fleet, and then the packages with a changed object, in one process each."""
    if not PACKAGES_FOLDER.is_dir():
        raise SkippedError(f"the packages are read from {PACKAGES_FOLDER}, which does not exist")
    sizes = Sizes(clusters, max(1, clusters // 10))
    kustomize = build_program("kustomize", "sigs.k8s.io/kustomize/kustomize/v5")
    scripts = dict(list_scripts(str(kustomize), _find_kpt(), str(build_program("set_labels"))))
    ours, *others = run_programs(sizes, scripts, 1, partial(print, file=sys.stderr))
    for theirs in others:
        program = f"{theirs.tool}, {theirs.version}"
        is_equal, checked = not theirs.difference, theirs.difference or _CHECKED
        for work, run in (("first pass over a fleet, a package", "first"), ("a changed object, a package", "changed")):
            milliseconds = (getattr(row, run).cpu_seconds * 1000 / sizes.variants for row in (ours, theirs))
            yield Row(work, program, *milliseconds, is_equal, checked)


def _find_kpt() -> str:
    """Return kpt, built from source. Return the installed kpt if a module of the source is not available."""
    try:
        return str(build_program("kpt_source", "./cli"))
    except SkippedError:
        return find_installed("kpt", "see https://kpt.dev/installation")
