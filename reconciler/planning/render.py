"""Rendering: a pure function from a variant and its source to the package as it should stand (design 4.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.conflicts import Conflict
from reconciler.krm.findings import Finding, Where, at_places, errors, in_package, softened
from reconciler.krm.names import tree_path_fault
from reconciler.packages.clone import UpstreamAt, clone, lock_of
from reconciler.packages.context import ensure_context
from reconciler.packages.functions.function import Item
from reconciler.packages.functions.registry import BUILTIN
from reconciler.packages.kptfile import KPTFILE, FunctionSpec, Kptfile, Profile, credential_findings, read_kptfile
from reconciler.packages.pipeline import Functions, RenderFailure, RenderResult
from reconciler.packages.pipeline import render as run_pipeline
from reconciler.packages.update import MergeOptions
from reconciler.planning.codes import (
    FUNCTION_UNAVAILABLE,
    LOCAL_FILE_IN_THE_WAY,
    MERGE_CONFLICT,
    PATH_REFUSED,
    RENDER_FAILED,
    UPSTREAM_LOCK_MISSING,
)
from reconciler.planning.conflicts import place_of
from reconciler.planning.destination import folders_above
from reconciler.planning.last_mile import Had, LastMile, overridden_condition
from reconciler.planning.outcome import Rendered
from reconciler.planning.source import REPLACING, Ingredients, Source, local_special, mix, overruled, without_special
from reconciler.planning.stages import FilesStage, FunctionStage, PolicyStage, Stage
from reconciler.planning.template_edits import told_apart
from reconciler.planning.templates import Templating
from reconciler.planning.unkept import Unkept, find_unkept
from reconciler.rules.secrets_in_branch import secret_findings
from reconciler.rules.variant import ConflictPolicy, Injected, Upstream, Variant, default_conflict_policy
from reconciler.snapshot.catalog import Catalog
from reconciler.snapshot.files import FileTree, SpecialEntry
from reconciler.snapshot.trace import Answers, View

RENDERED = "Rendered"
_SUCCESS = Condition(RENDERED, "True", "RenderSuccess")
CRD_GROUP, CRD_KIND = "apiextensions.k8s.io", "CustomResourceDefinition"


@dataclass(frozen=True)
class Engine:
    """How packages are rendered: by our habits (`safe`) or kpt's (`compat`), and by which functions.

    `conflict_policy` says who wins where both sides changed the same, None for the default of the profile; a variant's
    own `conflictPolicy` goes before it.
    `merging` is the profile's, with switches of its own. `blocks_secrets`: a Secret with values withholds its package.
    `skipped` is a mutator to do without, by its package and its number there, where somebody wants to see what it does.
    """

    profile: Profile
    conflict_policy: ConflictPolicy | None = None
    functions: Functions = BUILTIN
    merging: MergeOptions = field(default_factory=MergeOptions)
    blocks_secrets: bool = False
    skipped: tuple[str, int] | None = None

    def policy_of(self, variant: Variant, *, is_generated: bool) -> ConflictPolicy:
        """Return who wins conflicts in a package. What a controller generates is the controller's."""
        if is_generated:
            return "upstream"
        return variant.conflict_policy or self.conflict_policy or default_conflict_policy(self.profile)


@dataclass(frozen=True)
class Renderer:
    """Renders packages by what one config commit says: its objects, its clusters, its policies.

    For somebody who wants it explained: with `keeps_stages` what it makes tells of each step that led there, and
    `adjust` makes a source what it would be otherwise.
    """

    catalog: Catalog
    last_mile: LastMile
    engine: Engine
    templating: Templating = field(default_factory=Templating)
    keeps_stages: bool = False
    adjust: Callable[[Source, MergeOptions], Source] | None = None

    @cached_property
    def answers(self) -> Answers:
        """Who answers what a render asks, today."""
        return Answers(self.catalog, {**self.last_mile.answers(), **self.templating.answers()})

    def __call__(self, variant: Variant, made: Ingredients) -> Rendered:
        """Return the package as it should stand but for its templates; raises InterruptedFunctionError."""
        return render(variant, made, self)


def render(variant: Variant, made: Ingredients, by: Renderer) -> Rendered:
    """Return the package: brought to its upstream, in its context, mutated, run through its functions, overridden.

    Templates are merged when all packages of the cluster are there (`templates`).

    Error findings mean that the files must not be used, as when the upstream, or a function, has a path that no tree
    of ours may hold (design 8, path traversal), or when both sides changed the same and the policy is `block`. A
    function that fails or cannot run here leaves the package as it was before its pipeline, gated by
    `Rendered=False` (design 10.19). Raises InterruptedFunctionError.
    """
    view, engine = View(by.answers), by.engine
    special, made = local_special(made), without_special(made)
    made = told_apart(made, by.templating.rules) if variant.cluster else made
    policy = engine.policy_of(variant, is_generated=made.is_generated)
    options = _merge_options(made, engine, policy, view)
    source = mix(made, variant.strategy, options)
    if by.adjust and not errors(source.findings):
        source = by.adjust(source, options)
    found = (*source.findings, *(_blocking(source) if policy == "block" else ()))
    run = _Run(variant, source, view, by.keeps_stages)
    rendered = run.render(made, by) if not errors(found) else Rendered(source.files)
    if not errors((*found, *rendered.findings)):
        rendered = _with_special(_without_secrets(rendered, engine), special, variant)
    told = (*found, *rendered.findings)
    # what is generated is mended in the config
    places = view.places if made.is_generated else {}
    findings = (*variant.findings, *in_package(at_places(told, places), str(variant.place), str(variant.owner.key)))
    overruled = tuple(_overruled(source, run.ruled, options))
    if not errors(findings):
        source = _with_unkept(source, find_unkept(made, rendered.files, (*source.conflicts, *overruled)))
    return replace(
        rendered,
        has_roles=bool(variant.cluster) and by.templating.concerns(rendered.files),
        source=source,
        overruled=overruled,
        findings=findings,
        trace={**view.trace, **rendered.trace},
        inputs=view.files,
        places=places,
        merging=options,
        stages=tuple(run.stages),
    )


def _with_unkept(source: Source, unkept: Unkept) -> Source:
    return replace(source, updated=(*source.updated, *unkept.published), drafted=(*source.drafted, *unkept.drafted))


def _with_special(rendered: Rendered, special: Mapping[str, SpecialEntry], variant: Variant) -> Rendered:
    """Return the package with its local links and submodules, and error findings if not everything has its place."""
    kinds = {**dict.fromkeys(rendered.files, "file"), **{path: one.kind for path, one in special.items()}}
    found = [
        *_path_faults(variant, kinds),
        *_clashes(kinds),
        *(_taken(path, one) for path, one in special.items() if path in rendered.files),
    ]
    if not found:
        return replace(rendered, files=rendered.files.with_special(special))
    return replace(rendered, findings=(*rendered.findings, *found), reason=found[0].code)


def _clashes(kinds: Mapping[str, str]) -> Iterator[Finding]:
    for path in kinds:
        above = next((one for one in folders_above(path) if one in kinds), None)
        if above is not None:
            message = f"the package must not contain both the {kinds[above]} {above} and {path}, which is below it"
            yield LOCAL_FILE_IN_THE_WAY.finding(f"{message} (next step: rename or delete one of them)", Where(above))


def _taken(path: str, entry: SpecialEntry) -> Finding:
    message = f"the {entry.kind} {path} is in the place of a file of the package (next step: rename or delete it)"
    return LOCAL_FILE_IN_THE_WAY.finding(message, Where(path))


def _without_secrets(rendered: Rendered, engine: Engine) -> Rendered:
    """Return what is told of Secrets on their way to a branch, and withheld where that is wanted (design 10.29)."""
    found = secret_findings(rendered.files, block=engine.blocks_secrets)
    reason = found[0].code if found and engine.blocks_secrets else rendered.reason
    return replace(rendered, findings=(*rendered.findings, *found), reason=reason)


class _Run:
    """One render on its way: what each rule made of the package, and what was found so far.

    `ruled` is the package after each of those that may overrule people, `stages` after every step, if it keeps them.
    """

    def __init__(self, variant: Variant, source: Source, view: View, keeps_stages: bool) -> None:
        self.variant = variant
        self.source = source
        self.view = view
        self.keeps_stages = keeps_stages
        self.ruled: list[tuple[str, FileTree]] = []
        self.stages: list[Stage] = []
        self.findings: tuple[Finding, ...] = ()

    def render(self, made: Ingredients, by: Renderer) -> Rendered:
        """Return the package and, where it may be used, note what each of the rules made of the source."""
        engine = by.engine
        files, upstream = self.source.files, self.variant.upstream
        if upstream:
            files = self._found(*_cloned(self.variant, upstream, self.source, engine))
            self._keep(FilesStage("clone", files))
            files = self._found(*_in_context(self.variant, files)) if not errors(self.findings) else files
        if errors(self.findings):
            return Rendered(files, findings=self.findings)
        self._keep(FilesStage("context", files))
        mutated = self.variant.mutation(files, self.view, made.earlier)
        self._keep(*(FilesStage(name, changed) for name, changed in mutated.stages or (("room", mutated.files),)))
        files = self._found(mutated.files, mutated.findings)
        if errors(self.findings):
            return Rendered(files, findings=self.findings)
        self.ruled.append((self.variant.owner.key.kind, files))
        if upstream is None:
            return self._overridden(Rendered(files, (_SUCCESS,)), by, made.had)
        rendered, failed = self._piped(files, mutated.injected, engine)
        # what no policy was asked about has the rules that it had, and a rollout must not pass it by
        return replace(rendered, rules=made.had.rules) if failed else self._overridden(rendered, by, made.had)

    def _found(self, files: FileTree, findings: tuple[Finding, ...]) -> FileTree:
        self.findings += findings
        return files

    def _keep(self, *stages: Stage) -> None:
        if self.keeps_stages:
            self.stages += stages

    def _piped(self, files: FileTree, injected: tuple[Injected, ...], engine: Engine) -> tuple[Rendered, bool]:
        """Return the package after its functions, and whether it must stay as it is: one failed (design 10.19)."""
        seen: list[FunctionStage] = []
        watch = partial(_note, seen) if self.keeps_stages else None
        result = run_pipeline(files, engine.functions, engine.profile, skipped=engine.skipped, watch=watch)
        if faults := (*_path_faults(self.variant, result.files), *_credential_faults(result.files)):
            return Rendered(result.files, findings=(*self.findings, *faults), trace=result.asked), True
        self.ruled.append(("pipeline", result.files))
        if result.failure is None:
            self._keep(*seen, *(FilesStage("function", result.files) for _ in seen[:1]))
        self.findings += _pipeline_findings(self.variant, result)
        conditions, gates = _conditions(result)
        steps = tuple(step.as_data() for step in result.steps)
        rendered = Rendered(result.files, conditions, gates, injected, steps, self.findings, result.asked)
        return rendered, result.failure is not None

    def _overridden(self, rendered: Rendered, by: Renderer, had: Had) -> Rendered:
        """Return the package as its cluster is to have it; elsewhere nothing is overridden (design 10.16)."""
        if not self.variant.cluster:
            return rendered
        result = by.last_mile.override(rendered.files, self.variant.cluster, self.view, had)
        by.templating.ask(result.files, self.view)
        self.findings += result.findings
        done = replace(rendered, findings=self.findings, policies=result.usage)
        if faults := errors(result.findings):
            return replace(done, reason=faults[0].code)
        self.ruled.append(("overrides", result.files))
        self._keep(PolicyStage(result.resources), FilesStage("strip", result.files))
        conditions = upsert(rendered.conditions, *overridden_condition(result))
        rules = {name: text for name, text in result.rules.items() if text is not None}
        overrides = tuple(result.as_data())
        return replace(done, files=result.files, conditions=conditions, overrides=overrides, rules=rules)


def _note(seen: list[FunctionStage], package: str, number: int, spec: FunctionSpec, items: Sequence[Item]) -> None:
    seen.append(FunctionStage(package, number, spec, tuple(items)))


def _merge_options(made: Ingredients, engine: Engine, policy: ConflictPolicy, view: View) -> MergeOptions:
    options = engine.merging
    rules = replace(options.rules, winner="local" if policy == "local" else "upstream")
    # a merge may depend on any of them, so that a new one is a reason to merge again
    known = view.of_kind(CRD_GROUP, CRD_KIND) if made.needs_merge else ()
    shapes = options.shapes.with_crds(*(one.data for one in known), compat=engine.profile == "compat")
    return replace(options, rules=rules, shapes=shapes)


def _blocking(source: Source) -> Iterator[Finding]:
    # the draft of a strategy that replaces local changes is intended; its conflict records list what it replaced
    for one in (one for one in source.conflicts if one.rule not in REPLACING):
        place = " ".join(part for part in (one.resource, one.pointer) if part)
        message = f"{place} was changed here and upstream, and the conflictPolicy is block"
        yield MERGE_CONFLICT.finding(message, Where(one.file, pointer=one.pointer))


def _overruled(source: Source, stages: Iterable[tuple[str, FileTree]], options: MergeOptions) -> Iterator[Conflict]:
    known = set()
    for rule, files in stages:
        for one in overruled(source, files, rule, options):
            if (place := place_of(one)) not in known:
                known.add(place)
                yield one


def _path_faults(variant: Variant, files: Iterable[str]) -> tuple[Finding, ...]:
    where = Where(object=str(variant.owner.key))
    faults = filter(None, map(tree_path_fault, files))
    return tuple(PATH_REFUSED.finding(f"{variant.place}: {fault}", where) for fault in faults)


def _credential_faults(files: FileTree) -> Iterator[Finding]:
    """Yield an error for each URL with credentials in a Kptfile: they must not be copied to another branch."""
    for path, file in files.items():
        # every URL with user information contains an @, also as an escape of YAML, and most Kptfiles contain none
        if path.rpartition("/")[2] == KPTFILE and (b"@" in file.data or b"\\" in file.data):
            kptfile = read_kptfile(file.data)
            yield from credential_findings(kptfile, path) if isinstance(kptfile, Kptfile) else ()


def _cloned(
    variant: Variant, upstream: Upstream, source: Source, engine: Engine
) -> tuple[FileTree, tuple[Finding, ...]]:
    name = variant.place.package.rpartition("/")[2]
    lock = UpstreamAt(upstream.repo, upstream.directory, upstream.ref, upstream.commit)
    found: tuple[Finding, ...] = ()
    if not source.follows:
        files, found = source.files, (_not_followed(variant, upstream),)
    elif lock_of(source.files) == lock:
        # a clone of the wanted upstream that people made is adopted as it is
        files = source.files
    else:
        files, found = clone(source.files, name, lock, engine.profile, source.base)
    return files, found


def _in_context(variant: Variant, files: FileTree) -> tuple[FileTree, tuple[Finding, ...]]:
    """Return the package with the context that a cluster's has (porch 8.1)."""
    if not variant.deployment:
        return files, ()
    return ensure_context(files, variant.place.package.rpartition("/")[2], variant.place.package)


def _not_followed(variant: Variant, upstream: Upstream) -> Finding:
    message = (
        f"{variant.place} was adopted without an upstreamLock: it is mutated, and not updated from"
        f" {upstream.repository}/{upstream.package}"
    )
    return UPSTREAM_LOCK_MISSING.finding(message, Where(object=str(variant.owner.key)))


def _conditions(result: RenderResult) -> tuple[tuple[Condition, ...], tuple[str, ...]]:
    """Return the Kptfile's conditions and `Rendered`, and the gates: the Kptfile's, and `Rendered` where it failed."""
    kptfile = read_kptfile(result.files[KPTFILE].data) if KPTFILE in result.files else ()
    conditions, gates = (kptfile.conditions, kptfile.readiness_gates) if isinstance(kptfile, Kptfile) else ((), ())
    if result.failure is None:
        return upsert(conditions, _SUCCESS), gates
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
