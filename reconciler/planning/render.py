"""Rendering: a pure function from a variant and its source to the package as it should stand (design 4.6)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.findings import Finding, Where, errors, in_package, softened
from reconciler.krm.names import tree_path_fault
from reconciler.packages.clone import UpstreamAt, clone
from reconciler.packages.context import ensure_context
from reconciler.packages.functions.registry import BUILTIN
from reconciler.packages.kptfile import KPTFILE, Kptfile, Profile, read_kptfile
from reconciler.packages.pipeline import Functions, RenderFailure, RenderResult
from reconciler.packages.pipeline import render as run_pipeline
from reconciler.planning.codes import FUNCTION_UNAVAILABLE, PATH_REFUSED, RENDER_FAILED, UPSTREAM_LOCK_MISSING
from reconciler.planning.outcome import Rendered
from reconciler.rules.variant import Earlier, Variant
from reconciler.snapshot.catalog import Catalog
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.trace import View

RENDERED = "Rendered"


@dataclass(frozen=True)
class Engine:
    """By whose habits packages are rendered, ours (`safe`) or kpt's (`compat`), and which functions there are."""

    profile: Profile
    functions: Functions = BUILTIN


def render(
    variant: Variant, source: FileTree, catalog: Catalog, engine: Engine, earlier: Earlier | None = None
) -> Rendered:
    """Return the package: cloned, in its context, mutated, and run through its functions.

    `earlier` is the variant's last output (design 10.7). Error findings mean that the files must not be used, as
    when the upstream, or a function, has a path that no tree of ours may hold (design 8, path traversal). A
    function that fails or cannot run here leaves the package as it was before its pipeline, gated by
    `Rendered=False` (design 10.19). Raises InterruptedFunctionError.
    """
    rendered = _render(variant, source, catalog, engine, earlier)
    return replace(rendered, findings=_placed(variant, rendered.findings))


def _placed(variant: Variant, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings with those that are of the package, and not of the variant in the config, placed there."""
    inside = in_package(findings, str(variant.place), str(variant.owner.key))
    return tuple(one if one in variant.findings else placed for one, placed in zip(findings, inside, strict=True))


def _render(variant: Variant, source: FileTree, catalog: Catalog, engine: Engine, earlier: Earlier | None) -> Rendered:
    view = View(catalog)
    files, found = _cloned(variant, source, engine)
    if errors(found):
        return Rendered(files, findings=found, trace=view.trace)
    mutated = variant.mutation(files, view, earlier)
    found = (*variant.findings, *found, *mutated.findings)
    if errors(found):
        return Rendered(mutated.files, findings=found, trace=view.trace)
    result = run_pipeline(mutated.files, engine.functions, engine.profile)
    trace = {**view.trace, **result.asked}
    if faults := _path_faults(variant, result.files):
        return Rendered(result.files, findings=(*found, *faults), trace=trace)
    conditions, gates = _conditions(result)
    return Rendered(
        result.files, conditions, gates, mutated.injected, tuple(step.as_data() for step in result.steps),
        (*found, *_pipeline_findings(variant, result)), trace,
    )  # fmt: skip


def _path_faults(variant: Variant, files: FileTree) -> tuple[Finding, ...]:
    where = Where(object=str(variant.owner.key))
    faults = filter(None, map(tree_path_fault, files))
    return tuple(PATH_REFUSED.finding(f"{variant.place}: {fault}", where) for fault in faults)


def _cloned(variant: Variant, source: FileTree, engine: Engine) -> tuple[FileTree, tuple[Finding, ...]]:
    package, upstream = variant.place.package, variant.upstream
    name = package.rpartition("/")[2]
    lock = UpstreamAt(upstream.repo, upstream.directory, upstream.ref, upstream.commit)
    files, found = _followed(variant, source, name, lock, engine)
    if errors(found) or not variant.deployment:
        return files, found
    files, more = ensure_context(files, name, package)
    return files, (*found, *more)


def _followed(
    variant: Variant, source: FileTree, name: str, lock: UpstreamAt, engine: Engine
) -> tuple[FileTree, tuple[Finding, ...]]:
    if not variant.followed:
        return source, (_not_followed(variant),)
    return (source, ()) if _is_cloned(source, lock) else clone(source, name, lock, engine.profile)


def stands_alone(files: FileTree) -> bool:
    """Return whether a package follows no upstream: it has a Kptfile, and no upstreamLock in it."""
    return KPTFILE in files and _lock_of(files) is None


def _lock_of(files: FileTree) -> UpstreamAt | None:
    """Return what a package's upstreamLock says; None when its Kptfile has none, or cannot be read."""
    kptfile = read_kptfile(files[KPTFILE].data) if KPTFILE in files else ()
    lock = kptfile.upstream_lock.git if isinstance(kptfile, Kptfile) and kptfile.upstream_lock else None
    return UpstreamAt(lock.repo, lock.directory, lock.ref, lock.commit) if lock and lock.ref else None


def _is_cloned(source: FileTree, wanted: UpstreamAt) -> bool:
    """Whether the source is a clone of the wanted upstream already: one that people made, and that is adopted."""
    return _lock_of(source) == wanted


def _not_followed(variant: Variant) -> Finding:
    message = (
        f"{variant.place} was adopted without an upstreamLock: it is mutated, and not updated from"
        f" {variant.upstream.repository}/{variant.upstream.package}"
    )
    return UPSTREAM_LOCK_MISSING.finding(message, Where(object=str(variant.owner.key)))


def _conditions(result: RenderResult) -> tuple[tuple[Condition, ...], tuple[str, ...]]:
    """Return the Kptfile's conditions and `Rendered`, and the gates: the Kptfile's, and `Rendered` where it failed."""
    kptfile = read_kptfile(result.files[KPTFILE].data) if KPTFILE in result.files else ()
    conditions, gates = (kptfile.conditions, kptfile.readiness_gates) if isinstance(kptfile, Kptfile) else ((), ())
    if result.failure is None:
        return upsert(conditions, Condition(RENDERED, "True", "RenderSuccess")), gates
    failed = Condition(RENDERED, "False", "RenderFailed", _why(result.failure))
    return upsert(conditions, failed), tuple(sorted({*gates, RENDERED}))


def _why(failure: RenderFailure) -> str:
    where = f" in subpackage {failure.package}" if failure.package else ""
    function = f"function {failure.function}{where}: " if failure.function else ""
    return function + failure.message


def _pipeline_findings(variant: Variant, result: RenderResult) -> tuple[Finding, ...]:
    # a draft that is gated is still a draft (design 10.19): what is wrong with it is told as a warning
    where = Where(object=str(variant.owner.key))
    told = tuple(map(softened, result.findings))
    if result.failure is None:
        return told
    code = FUNCTION_UNAVAILABLE if result.failure.kind == "unavailable" else RENDER_FAILED
    return (*told, code.finding(f"{variant.place}: {_why(result.failure)}", where))
