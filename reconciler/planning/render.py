"""Rendering: a pure function from a variant and its source to the package as it should stand (design 4.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.findings import Finding, Severity, Where, errors
from reconciler.packages.clone import UpstreamAt, clone
from reconciler.packages.context import ensure_context
from reconciler.packages.kptfile import KPTFILE, Kptfile, Profile, read_kptfile
from reconciler.packages.pipeline import RenderResult
from reconciler.packages.pipeline import render as run_pipeline
from reconciler.planning.outcome import Rendered
from reconciler.rules.variant import Variant
from reconciler.snapshot.catalog import Catalog
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.trace import View

RENDERED = "Rendered"


@dataclass(frozen=True)
class Engine:
    """How packages are rendered: by kpt's habits or ours, and by which version of us."""

    profile: Profile


def render(variant: Variant, source: FileTree, catalog: Catalog, engine: Engine) -> Rendered:
    """Return the package: cloned, in its context, mutated, and run through its functions.

    Error findings mean that the files must not be used. A function that fails or cannot run here leaves the
    package as it was before its pipeline, gated by `Rendered=False` (design 10.19).
    """
    view = View(catalog)
    package = variant.place.package
    lock = UpstreamAt(variant.upstream.repo, variant.upstream.directory, variant.upstream.ref, variant.upstream.commit)
    files, found = clone(source, package.rpartition("/")[2], lock, engine.profile)
    if variant.deployment:
        files, more = ensure_context(files, package.rpartition("/")[2], package)
        found = (*found, *more)
    if errors(found):
        return Rendered(files, findings=found, trace=view.trace)
    mutated = variant.mutation(files, view)
    found = (*variant.findings, *found, *mutated.findings)
    if errors(found):
        return Rendered(mutated.files, findings=found, trace=view.trace)
    result = run_pipeline(mutated.files, profile=engine.profile)
    conditions, gates = _conditions(result)
    return Rendered(
        result.files, conditions, gates, mutated.injected, tuple(step.as_data() for step in result.steps),
        (*found, *_pipeline_findings(variant, result)), view.trace,
    )  # fmt: skip
