"""Run the function pipelines of a package and its subpackages in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import basename, dirname, normpath
from typing import Any, Final, Literal, NoReturn, Protocol

from reconciler.api.kpt import FunctionSelector, FunctionSpec
from reconciler.api.profile import Profile
from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.internal_errors import isolation_boundary
from reconciler.krm.yaml import Document
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.memory import cached
from reconciler.packages.codes import PackageCodes
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    Item,
    create_failure,
)
from reconciler.packages.functions.limits import FunctionBudget, FunctionLimits, LimitError
from reconciler.packages.functions.registry import (
    BUILTIN_FUNCTIONS,
    FunctionMatch,
    FunctionUnavailable,
    format_function_trace_key,
)
from reconciler.packages.kptfile import KPTFILE, SAVE_ON_RENDER_FAILURE, Kptfile, validate_kptfile
from reconciler.packages.package import (
    Package,
    PackageResource,
    get_package,
    is_krm_file,
    is_kustomization_file,
    join_path,
    parse_documents,
)
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.sealed_secrets import format_scope_change, read_scope
from reconciler.packages.sops import is_sops_document
from reconciler.packages.sops_files import locate_document
from reconciler.packages.source_codes import SourceCodes
from reconciler.packages.write_back import write_back

# Maximum numbers of characters: of one function result, and of all results of one function call.
_MAX_RESULT_LENGTH = 4_000
_MAX_RESULTS_LENGTH = 200_000
# Maximum number of cached items: twice the number of cached files. Items are cached, because functions use them as keys
# of their own caches.
_MAX_CACHED_ITEMS = 4096
# The steps that every function call takes from the budget of the render, in addition to the steps of its own work.
_CALL_STEPS = 100
NO_CHARTS: Final = FileTree()
PipelineStage = Literal["mutators", "validators"]
FailureKind = Literal["invalid", "failed", "unavailable"]


class FunctionProvider(Protocol):
    """Finds the function for a pipeline entry: a built-in function, a program or a container."""

    @property
    def limits(self) -> FunctionLimits:
        """The limits of the built-in functions during one render."""
        ...

    def find(self, spec: FunctionSpec) -> FunctionMatch | FunctionUnavailable | None:
        """Return the function for a pipeline entry.

        If no function can run, return FunctionUnavailable with the reason, or None if the reason is unknown.
        """
        ...


class MutatorObserver(Protocol):
    """Callback that receives the resources after each mutator, to observe its effect."""

    def __call__(self, package: str, number: int, spec: FunctionSpec, items: Sequence[Item]) -> None:
        """Receive all resources after one mutator.

        Args:
            package: The path of the package whose pipeline contains the mutator.
            number: The index of the mutator in this pipeline.
            spec: The pipeline entry of the mutator.
            items: The current resources. A resource keeps its id from one mutator to the next.
        """
        ...


@dataclass(frozen=True)
class PipelineStep:
    """The result of one pipeline entry: a function call, or the reason why the function could not be called."""

    package: str
    """The path of the package whose pipeline contains the entry. The root package has the path ""."""
    stage: PipelineStage
    name: str
    image: str
    exec: str
    exit_code: int
    results: tuple[FunctionResult, ...] = ()
    error: str = ""
    """The reason why the function could not be called, or why its output was rejected."""
    log: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return the step as a mapping for YAML output. Empty fields are omitted."""
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
    """The reason why a render failed.

    The kind is `invalid` for invalid input, `failed` for a failed function, and `unavailable` if a function is not
    available.
    """

    kind: FailureKind
    package: str
    function: str
    """The image or command of the function. "" if no function was called."""
    message: str


@dataclass(frozen=True)
class RenderResult:
    """The result of a render: the files, all steps, and findings about the input and about secrets.

    If the render fails, `files` contains the files before the render. `function_identities` contains the identity of
    each external function that the render requested, by trace key.
    """

    files: FileTree
    steps: tuple[PipelineStep, ...] = ()
    failure: RenderFailure | None = None
    findings: tuple[Finding, ...] = ()
    function_identities: Mapping[str, str] = field(default_factory=dict)


class _StopRenderError(Exception):
    """Ends a render because of a failure."""

    def __init__(self, failure: RenderFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def render_pipelines(
    files: FileTree,
    functions: FunctionProvider = BUILTIN_FUNCTIONS,
    profile: Profile = "safe",
    charts: FileTree = NO_CHARTS,
    *,
    is_manual: bool = False,
    skipped_mutator: tuple[str, int] | None = None,
    observer: MutatorObserver | None = None,
) -> RenderResult:
    """Run the pipelines of a package and its subpackages.

    Pipelines of subpackages run before the pipelines of their parents. The root Kptfile can request breadth-first
    order. Functions do not receive SOPS documents, because SOPS could not decrypt a changed document.

    A failed render returns the unchanged files. There is one exception: if the root Kptfile has the annotation
    `kpt.dev/save-on-render-failure`, the result contains the output of all steps before the failure. The exception
    applies to manual renders and to the profile `compat`.

    Args:
        profile: The behavior of the functions: `safe`, or `compat` as in kpt.
        charts: The charts that were downloaded for the functions.
        is_manual: Whether a person runs this render on a local folder.
        skipped_mutator: A mutator to skip, as the path of its package and its index in the pipeline.

    Raises:
        InterruptedFunctionError: An external function was interrupted, and must run again.
    """
    package = get_package(files)
    kptfiles, findings = _read_kptfiles(package, profile)
    if findings:
        return RenderResult(files, (), RenderFailure("invalid", "", "", findings[0].message), findings)
    run = _RenderRun(package, kptfiles, functions, profile, charts, skipped_mutator, observer)
    try:
        for path in _order_packages(package.subpackages, breadth_first=kptfiles[""].renders_breadth_first):
            run.run_package(path)
    except _StopRenderError as stop:
        saves_partial_output = kptfiles[""].annotations.get(SAVE_ON_RENDER_FAILURE) == "true"
        output = run.write_files(prune=False) if saves_partial_output and (is_manual or profile == "compat") else files
        return RenderResult(output, tuple(run.steps), stop.failure, run.list_findings(), run.function_identities)
    return RenderResult(
        run.write_files(prune=True), tuple(run.steps), None, run.list_findings(), run.function_identities
    )


@dataclass(frozen=True)
class _Call:
    package: str
    stage: PipelineStage
    spec: FunctionSpec


class _RenderRun:
    """A render in progress, with its current resources and completed steps."""

    def __init__(
        self,
        package: Package,
        kptfiles: dict[str, Kptfile],
        functions: FunctionProvider,
        profile: Profile,
        charts: FileTree,
        skipped_mutator: tuple[str, int] | None,
        observer: MutatorObserver | None,
    ) -> None:
        self._skipped_mutator = skipped_mutator
        self._observer = observer
        self._package = package
        self._kptfiles = kptfiles
        self._functions = functions
        self._profile = profile
        self._charts = charts
        self._budget = FunctionBudget(functions.limits)
        self._items = {number: _create_item(number, resource) for number, resource in enumerate(package.resources)}
        self._next = len(self._items)
        self._read_files = {resource.file for resource in package.resources}
        # Maps the index of each SOPS document in `package.resources` to the functions that did not receive it.
        self._withheld: dict[int, list[str]] = {
            number: [] for number, resource in enumerate(package.resources) if resource.is_sops
        }
        self._sealed_scopes = {number: scope for number, item in self._items.items() if (scope := read_scope(item))}
        self._scope_findings: list[Finding] = []
        self.steps: list[PipelineStep] = []
        self.function_identities: dict[str, str] = {}

    def run_package(self, path: str) -> None:
        """Run the pipeline of the package at `path` on the resources of this package and its subpackages."""
        pipeline = self._kptfiles[path].pipeline
        if not pipeline.mutators and not pipeline.validators:
            self._require_krm_input(path, None)
        for number, spec in enumerate(pipeline.mutators):
            if self._skipped_mutator == (path, number):
                continue
            selected = self._select_items(path, spec)
            self._items = self._apply_output(path, spec, selected, self._call(path, "mutators", spec, selected))
            self._check_sealed_scopes(spec)
            if self._observer:
                self._observer(path, number, spec, tuple(self._items.values()))
        for spec in pipeline.validators:
            selected = self._select_items(path, spec)
            output = self._call(path, "validators", spec, selected)
            # A validator does not change resources. Check its output anyway, because kpt fails if a validator returns
            # invalid resources.
            if self._profile == "compat":
                self._apply_output(path, spec, selected, output)

    def write_files(self, *, prune: bool) -> FileTree:
        """Return the files with the current resources. If `prune` is true, delete files that lost all resources."""
        return write_back(self._package.files, self._package.resources, self._items.values(), prune=prune)

    def list_findings(self) -> tuple[Finding, ...]:
        """Return a finding for each SOPS document that functions did not receive, and for each changed SealedSecret."""
        withheld = (
            SourceCodes.SOPS_WITHHELD.finding(
                f"this SOPS document is not passed to {_format_functions(functions)}, because a change would break its"
                " MAC",
                locate_document(self._package.resources[number]),
            )
            for number, functions in self._withheld.items()
            if functions
        )
        return (*withheld, *self._scope_findings)

    def _select_items(self, path: str, spec: FunctionSpec) -> list[Item]:
        """Return the items that a function receives, and record the SOPS documents that it does not receive."""
        for number in self._withheld:
            item = self._items[number]
            if _is_in_package(item.package, path) and _select_items([item], spec):
                self._withheld[number].append(spec.display_name)
        return _select_items(self._list_items_in_scope(path), spec)

    def _check_sealed_scopes(self, spec: FunctionSpec) -> None:
        for number, scope in self._sealed_scopes.items():
            item = self._items.get(number)
            new_scope = read_scope(item) if item else None
            if item is None or new_scope in (None, scope):
                continue
            message = format_scope_change(f"the function {spec.display_name}", scope, new_scope, "function")
            location = replace(self._package.resources[number].location, object=item.key.reference)
            self._scope_findings.append(SourceCodes.SEALED_SECRET_SCOPE.finding(message, location))
            self._sealed_scopes[number] = new_scope

    def _list_items_in_scope(self, path: str) -> list[Item]:
        items = [
            item
            for number, item in self._items.items()
            if number not in self._withheld and _is_in_package(item.package, path)
        ]
        return sorted(items, key=lambda item: item.package != path)

    def _call(self, path: str, stage: PipelineStage, spec: FunctionSpec, items: Sequence[Item]) -> FunctionOutput:
        call = _Call(path, stage, spec)
        self._require_krm_input(path, call)
        config = self._read_config(call)
        match = self._functions.find(spec)
        if match and match.identity:
            self.function_identities[format_function_trace_key(spec)] = match.identity
        if not isinstance(match, FunctionMatch):
            self._stop_render("unavailable", path, match.reason if match else "the function is not available", call)
        context = FunctionContext(self._profile, match.version, path, self._budget, self._package.files, self._charts)
        try:
            self._budget.charge_steps(_CALL_STEPS + len(items))
            package = f'package "{path}"' if path else "the root package"
            with isolation_boundary(f'the function "{spec.display_name}" of {package}'):
                output = match.function(items, config, context)
        except LimitError as error:
            output = create_failure(items, str(error))
        warnings = (FunctionResult(match.warning, "warning"),) if match.warning else ()
        self._record(path, stage, spec, replace(output, results=(*warnings, *output.results)))
        return output

    def _record(self, path: str, stage: PipelineStage, spec: FunctionSpec, output: FunctionOutput) -> None:
        errors = [result.message for result in output.results if result.severity == "error"]
        # In the profile `safe`, a result with severity `error` is a failure. kpt ignores such a result if the function
        # exits with 0.
        failed = output.has_failed or (bool(errors) and self._profile == "safe")
        exit_code = output.exit_code or int(failed)
        results = tuple(_limit_results(output.results))
        step = PipelineStep(path, stage, spec.name, spec.image, spec.exec, exit_code, results, output.error, output.log)
        self.steps.append(step)
        if failed:
            messages = errors or ([output.error] if output.error else [result.message for result in output.results])
            message = _shorten("; ".join(messages))
            raise _StopRenderError(RenderFailure("failed", path, spec.display_name, message))

    def _apply_output(
        self, path: str, spec: FunctionSpec, received: Sequence[Item], output: FunctionOutput
    ) -> dict[int, Item]:
        """Return the items after a function call.

        Returned items replace the items with the same ids, and new items follow at the end. Items that the function
        received and did not return are deleted.
        """
        returned_items = [self._assign_location(path, spec, item) for item in output.items]
        unaffected = dict(self._items)
        for item in received:
            assert item.id is not None
            del unaffected[item.id]
        returned_by_id = {item.id: item for item in returned_items if item.id is not None}
        current_items = {number: returned_by_id.get(number, unaffected.get(number)) for number in self._items}
        remaining = {number: item for number, item in current_items.items() if item is not None}
        last_index: dict[str, int] = {}
        for item in remaining.values():
            last_index[item.file] = max(last_index.get(item.file, -1), item.index)
        for number, item in enumerate((item for item in returned_items if item.id is None), self._next):
            index = item.index if item.index >= 0 else last_index.get(item.file, -1) + 1
            last_index[item.file] = max(last_index.get(item.file, -1), index)
            remaining[number] = replace(item, id=number, index=index)
        error = (
            self._find_location_error(remaining.values())
            or _find_krm_error(returned_items, "output")
            or self._find_kptfile_loss(remaining.values())
        )
        if error:
            # The function reported success, but its output is invalid. Therefore, record the call as failed.
            self.steps[-1] = replace(self.steps[-1], exit_code=1, error=error)
            raise _StopRenderError(RenderFailure("failed", path, spec.display_name, error))
        self._next += len(returned_items)
        return remaining

    def _assign_location(self, path: str, spec: FunctionSpec, item: Item) -> Item:
        if item.id is not None:
            return item
        folder = dirname(spec.config_path) if spec.config_path else ""
        name = f"{item.kind.lower()}_{item.name}.yaml"
        return replace(item, package=path, path=item.path or join_path(folder, join_path(item.namespace, name)))

    def _find_location_error(self, items: Iterable[Item]) -> str:
        locations: set[tuple[str, int]] = set()
        for item in items:
            if (item.file, item.index) in locations:
                return f'resource at path "{item.path}" and index "{item.index}" already exists'
            is_kptfile = item.path.endswith(KPTFILE) and basename(item.path) == KPTFILE
            if is_kptfile and (item.index or item.kind != "Kptfile"):
                return f'the Kptfile "{item.file}" must not contain any other resource'
            # Check only the paths of new files, because each file from which resources were read has a valid path.
            if item.file not in self._read_files and (error := self._find_path_error(item)):
                return error
            locations.add((item.file, item.index))
        return ""

    def _find_kptfile_loss(self, items: Iterable[Item]) -> str:
        # Reject output without the Kptfile, because a package without a Kptfile can be neither updated nor rendered
        # again.
        is_lost = self._profile == "safe" and all(item.file != KPTFILE for item in items)
        return "function must not delete the Kptfile of the package" if is_lost else ""

    def _find_path_error(self, item: Item) -> str:
        parts = normpath(item.path).split("/")
        if ".." in parts or item.path.startswith("/"):
            return f"function must not modify resources outside of package: resource has path {item.path}"
        if any(part.lower() == ".git" or not part.isprintable() or "\\" in part for part in parts):
            return f'a resource\'s path must be an ordinary file name, but is "{item.path}"'
        files, folders = self._package.files, [item.file]
        while folders[-1] and folders[-1] != (parent := dirname(folders[-1])):
            folders.append(parent)
        in_use = item.file in files and (not is_krm_file(item.file) or self._package.is_ignored(item.file))
        if in_use or any(folder in files for folder in folders[1:]) or files.subtree(item.file):
            return f'a resource must not replace "{item.path}", which contains no resources'
        return ""

    def _require_krm_input(self, path: str, call: _Call | None) -> None:
        if error := _find_krm_error(self._list_items_in_scope(path), "input"):
            self._stop_render("invalid", path, error, call)

    def _read_config(self, call: _Call) -> FunctionConfig | None:
        spec = call.spec
        if spec.config_map is not None:
            metadata = {"name": "function-input"}
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(spec.config_map)}
        if spec.config_path is None:
            return None
        file = normpath(spec.config_path)
        matching = [item for item in self._items.values() if item.file == join_path(call.package, file)]
        if len(matching) != 1:
            self._stop_render("invalid", call.package, _format_config_error(spec.config_path, len(matching)), call)
        data: FunctionConfig = matching[0].data
        return data

    def _stop_render(self, kind: FailureKind, path: str, message: str, call: _Call | None) -> NoReturn:
        if call:
            spec = call.spec
            self.steps.append(PipelineStep(path, call.stage, spec.name, spec.image, spec.exec, 1, error=message))
        raise _StopRenderError(RenderFailure(kind, path, call.spec.display_name if call else "", message))


def _limit_results(results: Sequence[FunctionResult]) -> Iterator[FunctionResult]:
    """Yield results up to a maximum total length, because status files contain these results and must stay small."""
    remaining = _MAX_RESULTS_LENGTH
    for number, result in enumerate(results):
        shortened, length = result, len(str(result.as_data()))
        if length > _MAX_RESULT_LENGTH:
            shortened = FunctionResult(_shorten(result.message), result.severity)
            length = len(str(shortened.as_data()))
        remaining -= length
        if remaining < 0:
            yield FunctionResult(f"and {len(results) - number} more results")
            return
        yield shortened


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_RESULT_LENGTH else f"{text[:_MAX_RESULT_LENGTH]}…"


def _create_item(number: int, resource: PackageResource) -> Item:
    return _create_cached_item(number, resource.package, resource.path, resource.index, resource.document)


@cached(_MAX_CACHED_ITEMS)
def _create_cached_item(number: int, package: str, path: str, index: int, document: Document) -> Item:
    return Item(package, path, index, document.data, number, document)


def _find_krm_error(items: Iterable[Item], source: str) -> str:
    for item in items:
        if item.missing_krm_field and not is_kustomization_file(item.path):
            reason = f"{item.path}: resource must have `{item.missing_krm_field}`"
            return f"{source} resource list must contain only KRM resources: {reason}"
    return ""


def _order_packages(subpackages: Sequence[str], *, breadth_first: bool) -> list[str]:
    """Return the packages in the order in which their pipelines run.

    In breadth-first order, packages at a lower depth come first. In any other case, subpackages come before their
    parents.
    """
    if breadth_first:
        return ["", *sorted(subpackages, key=lambda path: (_get_depth(path, subpackages), path))]
    return [*_iterate_post_order("", subpackages), ""]


def _iterate_post_order(parent: str, subpackages: Sequence[str]) -> Iterator[str]:
    nested = [path for path in subpackages if path != parent and _is_in_package(path, parent)]
    children = [path for path in nested if not any(path != other and _is_in_package(path, other) for other in nested)]
    for child in children:
        yield from _iterate_post_order(child, nested)
        yield child


def _get_depth(path: str, subpackages: Sequence[str]) -> int:
    return sum(_is_in_package(path, other) for other in subpackages)


def _is_in_package(path: str, package: str) -> bool:
    return not package or path == package or path.startswith(f"{package}/")


def _select_items(items: Sequence[Item], spec: FunctionSpec) -> list[Item]:
    """Return the items that the function of a pipeline entry receives. Each item occurs once."""
    excludes = [selector for selector in spec.exclude if not selector.is_empty]
    selected = (item for item in items if not spec.selectors or any(_matches(item, s) for s in spec.selectors))
    return [item for item in selected if not any(_matches(item, selector) for selector in excludes)]


def _matches(item: Item, selector: FunctionSelector) -> bool:
    fields = (
        (selector.api_version, item.api_version),
        (selector.kind, item.kind),
        (selector.name, item.name),
        (selector.namespace, item.namespace),
    )
    return (
        all(expected in ("", actual) for expected, actual in fields)
        and selector.labels.items() <= dict(item.labels).items()
        and selector.annotations.items() <= dict(item.annotations).items()
    )


def _read_kptfiles(package: Package, profile: Profile) -> tuple[dict[str, Kptfile], tuple[Finding, ...]]:
    """Return the valid Kptfiles of the package and its subpackages, and the findings that need no function call.

    The findings are about files that cannot be parsed, about Kptfiles, and about function configs.
    """
    kptfiles: dict[str, Kptfile] = {}
    findings = list(package.parse_result[1])
    for path in ("", *package.subpackages):
        kptfile = package.read_kptfile_of(path)
        if not isinstance(kptfile, Kptfile):
            reported_files = {finding.location.file for finding in findings}
            findings += [finding for finding in kptfile if finding.location.file not in reported_files]
            continue
        kptfiles[path] = kptfile
        findings += validate_kptfile(kptfile, join_path(path, "Kptfile"), profile)
        findings += _find_config_path_findings(package, path, kptfile)
    return kptfiles, tuple(findings)


def _find_config_path_findings(package: Package, path: str, kptfile: Kptfile) -> Iterator[Finding]:
    for stage, specs in (("mutators", kptfile.pipeline.mutators), ("validators", kptfile.pipeline.validators)):
        for index, spec in enumerate(specs):
            error = _find_config_path_error(package, path, spec.config_path) if spec.config_path else ""
            if error:
                pointer = f"pipeline.{stage}[{index}].configPath"
                line = kptfile.document.find_line(("pipeline", stage, index, "configPath"))
                location = SourceLocation(join_path(path, "Kptfile"), line, pointer=pointer)
                yield PackageCodes.KPTFILE_INVALID.finding(f"{pointer} {error}", location)


def _find_config_path_error(package: Package, path: str, config_path: str) -> str:
    """Return the error of a `configPath` as the end of a message, or "".

    Files that functions create or change are not considered.
    """
    file = join_path(path, normpath(config_path))
    if ".." in file or config_path.startswith("/"):
        return ""  # `validate_kptfile` reports these two errors.
    if file not in package.files:
        return f'refers to the file "{config_path}", which does not exist'
    if package.find_owning_package(file) != path:
        return f'must be the path of a file of this package, but "{config_path}" belongs to a subpackage'
    documents = parse_documents(file, package.files[file].data)
    if isinstance(documents, ParseFailure):
        return ""  # `Package.parse_result` already contains a finding for this file.
    if any(is_sops_document(document.data) for document in documents):
        return f'refers to the SOPS document "{config_path}", which functions cannot decrypt'
    return f"is not valid: {_format_config_error(config_path, len(documents))}" if len(documents) > 1 else ""


def _format_functions(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    return f"the {'function' if len(distinct) == 1 else 'functions'} {', '.join(distinct)}"


def _format_config_error(config_path: str, count: int) -> str:
    if count:
        return f'functionConfig "{config_path}" must not contain more than one config, got {count}'
    return f'functionConfig "{config_path}" must contain a resource of this package'
