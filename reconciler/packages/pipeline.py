"""Rendering: the function pipelines of a package and its subpackages, in order (kpt.md 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import basename, dirname, normpath
from typing import Any, Literal, NoReturn, Protocol

from reconciler.caching import cached
from reconciler.krm.findings import Finding, Where
from reconciler.krm.isolation import boundary
from reconciler.krm.yaml import Document
from reconciler.packages.codes import KPTFILE_INVALID
from reconciler.packages.functions.facts import fact_name
from reconciler.packages.functions.function import Config, FunctionContext, Item, Output, Result, failure
from reconciler.packages.functions.limits import Budget, FunctionLimits, LimitError
from reconciler.packages.functions.registry import BUILTIN, Found, Missing
from reconciler.packages.kptfile import (
    KPTFILE,
    SAVE_ON_RENDER_FAILURE,
    FunctionSpec,
    Kptfile,
    Profile,
    Selector,
    validate_kptfile,
)
from reconciler.packages.nesting import is_krm_file
from reconciler.packages.package import (
    Package,
    PackageResource,
    documents_of,
    is_kustomization_file,
    join,
)
from reconciler.packages.parsing import Unparsable
from reconciler.packages.write_back import write_back
from reconciler.snapshot.files import FileTree

# of what a function says: characters of one result, and of all of them
_LONGEST_TOLD = 4_000
_MOST_TOLD = 200_000
# the resources of the packages in flight, twice as many as there are files; what functions make of equal ones is shared
_REMEMBERED_ITEMS = 4096
_CALL_STEPS = 100
Stage = Literal["mutators", "validators"]
FailureKind = Literal["invalid", "failed", "unavailable"]


class Functions(Protocol):
    """Where functions come from: the built-in registry, or one that also knows external runners."""

    @property
    def limits(self) -> FunctionLimits:
        """What the functions that run in process may cost in one render."""
        ...

    def find(self, spec: FunctionSpec) -> Found | Missing | None:
        """Return what runs for an entry of a pipeline; why nothing can, or None where there is no more to say."""
        ...


class Watch(Protocol):
    """Somebody who looks on while mutators run."""

    def __call__(self, package: str, number: int, spec: FunctionSpec, items: Sequence[Item]) -> None:
        """Take note of all resources as the mutator `number` of a package left them, by the ids that they came with."""
        ...


@dataclass(frozen=True)
class Step:
    """One function that was called, or that could not be."""

    package: str
    """The path of its package, "" for the root."""
    stage: Stage
    name: str
    image: str
    exec: str
    exit_code: int
    results: tuple[Result, ...] = ()
    error: str = ""
    """Why it could not be called, or why its output was refused."""
    log: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return the step as it is written to YAML; what is empty is left out."""
        data = {
            "package": self.package or ".",
            "stage": self.stage.removesuffix("s"),
            "name": self.name,
            "image": self.image,
            "exec": self.exec,
            "exitCode": self.exit_code,
            "executionError": self.error,
            "results": [result.as_data() for result in self.results],
            "stderr": self.log,
        }
        return {key: value for key, value in data.items() if value not in ("", [])}


@dataclass(frozen=True)
class RenderFailure:
    """Why a render stopped: bad input (`invalid`), a function that failed, or one that cannot run here."""

    kind: FailureKind
    package: str
    function: str
    """The image or command; "" when it stopped before any function."""
    message: str


@dataclass(frozen=True)
class RenderResult:
    """What a render made: the files (those of before when it failed), every step, and what is wrong with the input.

    `asked` are the functions that are no part of us, by their fact names, with what each was (design 5).
    """

    files: FileTree
    steps: tuple[Step, ...] = ()
    failure: RenderFailure | None = None
    findings: tuple[Finding, ...] = ()
    asked: Mapping[str, str] = field(default_factory=dict)


class _StopRenderError(Exception):
    """Ends a render; carries its failure."""

    def __init__(self, failure: RenderFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def render(
    files: FileTree,
    functions: Functions = BUILTIN,
    profile: Profile = "safe",
    *,
    by_hand: bool = False,
    skipped: tuple[str, int] | None = None,
    watch: Watch | None = None,
) -> RenderResult:
    """Return the package with its pipelines run, subpackages before their parents unless the root asks otherwise.

    A failure leaves the files as they were before (design 10.19); only `compat`, and a render by hand, keep what was
    done so far when the root is annotated `kpt.dev/save-on-render-failure`. `skipped` is a mutator that is left out, by
    its package and its number there. Raises InterruptedFunctionError.
    """
    package = Package(files)
    kptfiles, findings = _read_all(package, profile)
    if findings:
        return RenderResult(files, (), RenderFailure("invalid", "", "", findings[0].message), findings)
    run = _Run(package, kptfiles, functions, profile, skipped, watch)
    try:
        for path in _order(package.subpackages, breadth_first=kptfiles[""].renders_breadth_first):
            run.package(path)
    except _StopRenderError as stop:
        asks = kptfiles[""].annotations.get(SAVE_ON_RENDER_FAILURE) == "true"
        done = run.written(prune=False) if asks and (by_hand or profile == "compat") else files
        return RenderResult(done, tuple(run.steps), stop.failure, asked=run.asked)
    return RenderResult(run.written(prune=True), tuple(run.steps), asked=run.asked)


@dataclass(frozen=True)
class _Call:
    package: str
    stage: Stage
    spec: FunctionSpec


class _Run:
    """One render: the resources as they are now, and the steps so far."""

    def __init__(
        self,
        package: Package,
        kptfiles: dict[str, Kptfile],
        functions: Functions,
        profile: Profile,
        skipped: tuple[str, int] | None,
        watch: Watch | None,
    ) -> None:
        self._skipped = skipped
        self._watch = watch
        self._package = package
        self._kptfiles = kptfiles
        self._functions = functions
        self._profile = profile
        self._budget = Budget(functions.limits)
        self._items = {number: _item_of(number, resource) for number, resource in enumerate(package.resources)}
        self._next = len(self._items)
        self._read = {resource.file for resource in package.resources}
        self.steps: list[Step] = []
        self.asked: dict[str, str] = {}

    def package(self, path: str) -> None:
        """Run the pipeline of one package over its resources and those of the packages below it."""
        pipeline = self._kptfiles[path].pipeline
        if not pipeline.mutators and not pipeline.validators:
            self._require_krm_input(path, None)
        for number, spec in enumerate(pipeline.mutators):
            if self._skipped == (path, number):
                continue
            selected = _selected(self._scope(path), spec)
            self._items = self._after(path, spec, selected, self._call(path, "mutators", spec, selected))
            if self._watch:
                self._watch(path, number, spec, tuple(self._items.values()))
        for spec in pipeline.validators:
            selected = _selected(self._scope(path), spec)
            output = self._call(path, "validators", spec, selected)
            # what a validator returns is dropped, but upstream's tool demands that it could be written
            if self._profile == "compat":
                self._after(path, spec, selected, output)

    def written(self, *, prune: bool) -> FileTree:
        """Return the files with the resources as they are now."""
        return write_back(self._package.files, self._package.resources, self._items.values(), prune=prune)

    def _scope(self, path: str) -> list[Item]:
        items = [item for item in self._items.values() if _is_within(item.package, path)]
        return sorted(items, key=lambda item: item.package != path)

    def _call(self, path: str, stage: Stage, spec: FunctionSpec, items: Sequence[Item]) -> Output:
        call = _Call(path, stage, spec)
        self._require_krm_input(path, call)
        config = self._config(call)
        found = self._functions.find(spec)
        if found and found.identity:
            self.asked[fact_name(spec)] = found.identity
        if not isinstance(found, Found):
            message = f'the function "{spec.label}" of package "{path or "."}" cannot run here'
            self._stop("unavailable", path, message + (f": {found.reason}" if found else ""), call)
        context = FunctionContext(self._profile, found.version, path, self._budget)
        try:
            # what a call costs at least; functions charge what they do beside it
            self._budget.spend(_CALL_STEPS + len(items))
            with boundary(f'the function "{spec.label}" of package "{path or "."}"'):
                output = found.function(items, config, context)
        except LimitError as error:
            output = failure(items, str(error))
        warned = (Result(found.warning, "warning"),) if found.warning else ()
        self._record(path, stage, spec, replace(output, results=(*warned, *output.results)))
        return output

    def _record(self, path: str, stage: Stage, spec: FunctionSpec, output: Output) -> None:
        refused = [result.message for result in output.results if result.severity == "error"]
        # D25: upstream takes an error result for a success when the function exits with 0
        failed = output.failed or (bool(refused) and self._profile == "safe")
        code = output.exit_code or int(failed)
        results = tuple(_told(output.results))
        step = Step(path, stage, spec.name, spec.image, spec.exec, code, results, output.error, output.log)
        self.steps.append(step)
        if failed:
            said = refused or ([output.error] if output.error else [result.message for result in output.results])
            reasons = _cut("; ".join(said))
            raise _StopRenderError(RenderFailure("failed", path, spec.label, reasons))

    def _after(self, path: str, spec: FunctionSpec, given: Sequence[Item], output: Output) -> dict[int, Item]:
        """Return the items with what a function returned: by id, missing ones deleted, new ones at the end."""
        returned = [self._placed(path, spec, item) for item in output.items]
        after = dict(self._items)
        for item in given:
            assert item.id is not None
            del after[item.id]
        kept = {item.id: item for item in returned if item.id is not None}
        merged = {number: kept.get(number, after.get(number)) for number in self._items}
        remaining = {number: item for number, item in merged.items() if item is not None}
        last: dict[str, int] = {}
        for item in remaining.values():
            last[item.file] = max(last.get(item.file, -1), item.index)
        for number, item in enumerate((item for item in returned if item.id is None), self._next):
            index = item.index if item.index >= 0 else last.get(item.file, -1) + 1
            last[item.file] = max(last.get(item.file, -1), index)
            remaining[number] = replace(item, id=number, index=index)
        fault = (
            self._places_fault(remaining.values())
            or _krm_fault(returned, "output")
            or self._loss_fault(remaining.values())
        )
        if fault:
            # the function itself said it went well
            self.steps[-1] = replace(self.steps[-1], exit_code=1, error=fault)
            raise _StopRenderError(RenderFailure("failed", path, spec.label, fault))
        self._next += len(returned)
        return remaining

    def _placed(self, path: str, spec: FunctionSpec, item: Item) -> Item:
        if item.id is not None:
            return item
        folder = dirname(spec.config_path) if spec.config_path else ""
        name = f"{item.kind.lower()}_{item.name}.yaml"
        return replace(item, package=path, path=item.path or join(folder, join(item.namespace, name)))

    def _places_fault(self, items: Iterable[Item]) -> str:
        seen: set[tuple[str, int]] = set()
        for item in items:
            if (item.file, item.index) in seen:
                return f'resource at path "{item.path}" and index "{item.index}" already exists'
            if basename(item.path) == KPTFILE and (item.index or item.kind != "Kptfile"):
                return f'a resource must not stand in the Kptfile "{item.file}"'
            # where something was read, something may stand
            if item.file not in self._read and (fault := self._place_fault(item)):
                return fault
            seen.add((item.file, item.index))
        return ""

    def _loss_fault(self, items: Iterable[Item]) -> str:
        # without one a package is none, and nothing could be updated or rendered again
        is_lost = self._profile == "safe" and all(item.file != KPTFILE for item in items)
        return "function must leave the package its Kptfile" if is_lost else ""

    def _place_fault(self, item: Item) -> str:
        parts = normpath(item.path).split("/")
        if ".." in parts or item.path.startswith("/"):
            return f"function must not modify resources outside of package: resource has path {item.path}"
        if any(part.lower() == ".git" or not part.isprintable() or "\\" in part for part in parts):
            return f'a resource\'s path must be an ordinary file name, not "{item.path}"'
        files, folders = self._package.files, [item.file]
        while folders[-1] and folders[-1] != (above := dirname(folders[-1])):
            folders.append(above)
        in_use = item.file in files and (not is_krm_file(item.file) or self._package.is_ignored(item.file))
        if in_use or any(folder in files for folder in folders[1:]) or files.below(item.file):
            return f'a resource must not take the place of "{item.path}", which holds no resources'
        return ""

    def _require_krm_input(self, path: str, call: _Call | None) -> None:
        if fault := _krm_fault(self._scope(path), "input"):
            self._stop("invalid", path, fault, call)

    def _config(self, call: _Call) -> Config | None:
        spec = call.spec
        if spec.config_map is not None:
            metadata = {"name": "function-input"}
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(spec.config_map)}
        if spec.config_path is None:
            return None
        file = normpath(spec.config_path)
        matching = [item for item in self._items.values() if item.file == join(call.package, file)]
        if len(matching) != 1:
            self._stop("invalid", call.package, _config_fault(spec.config_path, len(matching)), call)
        data: Config = matching[0].data
        return data

    def _stop(self, kind: FailureKind, path: str, message: str, call: _Call | None) -> NoReturn:
        if call:
            spec = call.spec
            self.steps.append(Step(path, call.stage, spec.name, spec.image, spec.exec, 1, error=message))
        raise _StopRenderError(RenderFailure(kind, path, call.spec.label if call else "", message))


def _told(results: Sequence[Result]) -> Iterator[Result]:
    """Yield the results that are told: every file that names them has to be read again."""
    left = _MOST_TOLD
    for number, result in enumerate(results):
        short = result if len(str(result.as_data())) <= _LONGEST_TOLD else Result(_cut(result.message), result.severity)
        left -= len(str(short.as_data()))
        if left < 0:
            yield Result(f"and {len(results) - number} more results")
            return
        yield short


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TOLD else f"{text[:_LONGEST_TOLD]}…"


def _item_of(number: int, resource: PackageResource) -> Item:
    return _item(number, resource.package, resource.path, resource.index, resource.document)


@cached(_REMEMBERED_ITEMS)
def _item(number: int, package: str, path: str, index: int, document: Document) -> Item:
    return Item(package, path, index, document.data, number, document)


def _krm_fault(items: Iterable[Item], what: str) -> str:
    for item in items:
        if item.missing_krm_field and not is_kustomization_file(item.path):
            reason = f"{item.path}: resource must have `{item.missing_krm_field}`"
            return f"{what} resource list must contain only KRM resources: {reason}"
    return ""


def _order(subpackages: Sequence[str], *, breadth_first: bool) -> list[str]:
    """Return the packages in the order they run: children before parents, or level by level (kpt.md 11.1)."""
    if breadth_first:
        return ["", *sorted(subpackages, key=lambda path: (_depth(path, subpackages), path))]
    return [*_post_order("", subpackages), ""]


def _post_order(parent: str, subpackages: Sequence[str]) -> Iterator[str]:
    below = [path for path in subpackages if path != parent and _is_within(path, parent)]
    children = [path for path in below if not any(path != other and _is_within(path, other) for other in below)]
    for child in children:
        yield from _post_order(child, below)
        yield child


def _depth(path: str, subpackages: Sequence[str]) -> int:
    return sum(_is_within(path, other) for other in subpackages)


def _is_within(path: str, package: str) -> bool:
    return not package or path == package or path.startswith(f"{package}/")


def _selected(items: Sequence[Item], spec: FunctionSpec) -> list[Item]:
    """Return the items that a function sees, each once (D24)."""
    excludes = [selector for selector in spec.exclude if not selector.is_empty]
    wanted = (item for item in items if not spec.selectors or any(_matches(item, s) for s in spec.selectors))
    return [item for item in wanted if not any(_matches(item, selector) for selector in excludes)]


def _matches(item: Item, selector: Selector) -> bool:
    texts = (
        (selector.api_version, item.api_version),
        (selector.kind, item.kind),
        (selector.name, item.name),
        (selector.namespace, item.namespace),
    )
    return (
        all(wanted in ("", actual) for wanted, actual in texts)
        and selector.labels.items() <= dict(item.labels).items()
        and selector.annotations.items() <= dict(item.annotations).items()
    )


def _read_all(package: Package, profile: Profile) -> tuple[dict[str, Kptfile], tuple[Finding, ...]]:
    """Return every Kptfile, and all that is wrong before a function has run."""
    kptfiles: dict[str, Kptfile] = {}
    findings = list(package.reading[1])
    for path in ("", *package.subpackages):
        kptfile = package.kptfile_of(path)
        if not isinstance(kptfile, Kptfile):
            told = {finding.where.file for finding in findings}
            findings += [finding for finding in kptfile if finding.where.file not in told]
            continue
        kptfiles[path] = kptfile
        findings += validate_kptfile(kptfile, join(path, "Kptfile"), profile)
        findings += _config_path_findings(package, path, kptfile)
    return kptfiles, tuple(findings)


def _config_path_findings(package: Package, path: str, kptfile: Kptfile) -> Iterator[Finding]:
    for stage, specs in (("mutators", kptfile.pipeline.mutators), ("validators", kptfile.pipeline.validators)):
        for index, spec in enumerate(specs):
            fault = _config_path_fault(package, path, spec.config_path) if spec.config_path else ""
            if fault:
                pointer = f"pipeline.{stage}[{index}].configPath"
                line = kptfile.document.line_of(("pipeline", stage, index, "configPath"))
                where = Where(join(path, "Kptfile"), line, pointer=pointer)
                yield KPTFILE_INVALID.finding(f"{pointer}: {fault}", where)


def _config_path_fault(package: Package, path: str, config_path: str) -> str:
    """Return what is wrong with the file of a configPath before anything has run (kpt.md 2 rule 3), or ""."""
    file = join(path, normpath(config_path))
    if ".." in file or config_path.startswith("/"):
        return ""  # the Kptfile's own check says so
    if file not in package.files:
        return f'must be the path of a file, not "{config_path}", which does not exist'
    if package.owner(file) != path:
        return f'must be the path of a file of this package, not "{config_path}", which belongs to a subpackage'
    documents = documents_of(file, package.files[file].data)
    if isinstance(documents, Unparsable):
        return ""  # the file's own finding says so
    return _config_fault(config_path, len(documents)) if len(documents) > 1 else ""


def _config_fault(config_path: str, count: int) -> str:
    if count:
        return f'functionConfig "{config_path}" must not contain more than one config, got {count}'
    return f'functionConfig "{config_path}" must hold a resource of this package'
