"""Rendering: a pure function from a variant and its source to the package as it should stand (design 4.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.conflicts import Conflict
from reconciler.krm.findings import Finding, Where, errors, in_package, softened
from reconciler.krm.names import tree_path_fault
from reconciler.packages.clone import UpstreamAt, clone, lock_of
from reconciler.packages.context import ensure_context
from reconciler.packages.functions.registry import BUILTIN
from reconciler.packages.kptfile import KPTFILE, Kptfile, Profile, read_kptfile
from reconciler.packages.pipeline import Functions, RenderFailure, RenderResult
from reconciler.packages.pipeline import render as run_pipeline
from reconciler.packages.update import MergeOptions
from reconciler.planning.codes import (
    FUNCTION_UNAVAILABLE,
    MERGE_CONFLICT,
    PATH_REFUSED,
    RENDER_FAILED,
    UPSTREAM_LOCK_MISSING,
)
from reconciler.planning.conflicts import place_of
from reconciler.planning.outcome import Rendered
from reconciler.planning.source import Ingredients, Source, mix, overruled
from reconciler.rules.variant import ConflictPolicy, Variant
from reconciler.snapshot.catalog import Catalog
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.trace import View

RENDERED = "Rendered"
CRD_GROUP, CRD_KIND = "apiextensions.k8s.io", "CustomResourceDefinition"


@dataclass(frozen=True)
class Engine:
    """How packages are rendered: by our habits (`safe`) or kpt's (`compat`), and by which functions.

    `conflict_policy` says who wins where both sides changed the same; a variant's own `conflictPolicy` goes before it.
    `merging` is the profile's, with switches of its own.
    """

    profile: Profile
    conflict_policy: ConflictPolicy = "upstream"
    functions: Functions = BUILTIN
    merging: MergeOptions = field(default_factory=MergeOptions)


def render(variant: Variant, made: Ingredients, catalog: Catalog, engine: Engine) -> Rendered:
    """Return the package: brought to its upstream, in its context, mutated, and run through its functions.

    Error findings mean that the files must not be used, as when the upstream, or a function, has a path that no tree
    of ours may hold (design 8, path traversal), or when both sides changed the same and the policy is `block`. A
    function that fails or cannot run here leaves the package as it was before its pipeline, gated by
    `Rendered=False` (design 10.19). Raises InterruptedFunctionError.
    """
    view = View(catalog)
    policy = variant.conflict_policy or engine.conflict_policy
    options = _merge_options(made, engine, policy, view)
    source = mix(made, variant.strategy, options)
    found = (*source.findings, *(_blocking(source) if policy == "block" else ()))
    rendered, stages = (
        _rendered(variant, source, made, view, engine) if not errors(found) else (Rendered(source.files), ())
    )
    findings = (
        *variant.findings,
        *in_package((*found, *rendered.findings), str(variant.place), str(variant.owner.key)),
    )
    overruled = tuple(_overruled(source, stages, options))
    return replace(
        rendered, source=source, overruled=overruled, findings=findings, trace={**view.trace, **rendered.trace}
    )


Stages = tuple[tuple[str, FileTree], ...]


def _rendered(
    variant: Variant, source: Source, made: Ingredients, view: View, engine: Engine
) -> tuple[Rendered, Stages]:
    """Return the package and, where it may be used, what the variant and then the functions made of the source."""
    files, found = _cloned(variant, source, engine)
    if errors(found):
        return Rendered(files, findings=found), ()
    mutated = variant.mutation(files, view, made.earlier)
    found = (*found, *mutated.findings)
    if errors(found):
        return Rendered(mutated.files, findings=found), ()
    result = run_pipeline(mutated.files, engine.functions, engine.profile)
    if faults := _path_faults(variant, result.files):
        return Rendered(result.files, findings=(*found, *faults), trace=result.asked), ()
    conditions, gates = _conditions(result)
    rendered = Rendered(
        result.files, conditions, gates, mutated.injected, tuple(step.as_data() for step in result.steps),
        (*found, *_pipeline_findings(variant, result)), result.asked,
    )  # fmt: skip
    return rendered, ((variant.owner.key.kind, mutated.files), ("pipeline", result.files))


def _merge_options(made: Ingredients, engine: Engine, policy: ConflictPolicy, view: View) -> MergeOptions:
    options = engine.merging
    rules = replace(options.rules, winner="local" if policy == "local" else "upstream")
    # a merge may depend on any of them, so that a new one is a reason to merge again
    known = view.of_kind(CRD_GROUP, CRD_KIND) if made.needs_merge else ()
    shapes = options.shapes.with_crds(*(one.data for one in known), compat=engine.profile == "compat")
    return replace(options, rules=rules, shapes=shapes)


def _blocking(source: Source) -> Iterator[Finding]:
    for one in source.conflicts:
        place = " ".join(part for part in (one.resource, one.pointer) if part)
        message = f"{place} was changed here and upstream, and the conflictPolicy is block"
        yield MERGE_CONFLICT.finding(message, Where(one.file, pointer=one.pointer))


def _overruled(source: Source, stages: Stages, options: MergeOptions) -> Iterator[Conflict]:
    known = set()
    for rule, files in stages:
        for one in overruled(source, files, rule, options):
            if (place := place_of(one)) not in known:
                known.add(place)
                yield one


def _path_faults(variant: Variant, files: FileTree) -> tuple[Finding, ...]:
    where = Where(object=str(variant.owner.key))
    faults = filter(None, map(tree_path_fault, files))
    return tuple(PATH_REFUSED.finding(f"{variant.place}: {fault}", where) for fault in faults)


def _cloned(variant: Variant, source: Source, engine: Engine) -> tuple[FileTree, tuple[Finding, ...]]:
    package, upstream = variant.place.package, variant.upstream
    name = package.rpartition("/")[2]
    lock = UpstreamAt(upstream.repo, upstream.directory, upstream.ref, upstream.commit)
    files, found = _followed(variant, source, name, lock, engine)
    if errors(found) or not variant.deployment:
        return files, found
    files, more = ensure_context(files, name, package)
    return files, (*found, *more)


def _followed(
    variant: Variant, source: Source, name: str, lock: UpstreamAt, engine: Engine
) -> tuple[FileTree, tuple[Finding, ...]]:
    if not source.follows:
        return source.files, (_not_followed(variant),)
    # a clone of the wanted upstream that people made is adopted as it is
    return (
        (source.files, ())
        if lock_of(source.files) == lock
        else clone(source.files, name, lock, engine.profile, source.base)
    )


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
