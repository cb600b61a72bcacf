"""The Kptfile: read without losing anything, validated, and edited where it must change (kpt.md 2, porch.md 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from posixpath import normpath
from typing import Annotated, Any, Literal

import re2
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from reconciler.krm.conditions import Condition, Status
from reconciler.krm.findings import Code, Finding, Where
from reconciler.krm.identity import split_api_version
from reconciler.krm.yaml import Document, YamlFile, emit
from reconciler.krm.yaml.same import same
from reconciler.packages.codes import KPTFILE_DEPRECATED, KPTFILE_INVALID, KPTFILE_SYNTAX, KPTFILE_UNKNOWN
from reconciler.packages.parsing import edited_document, parse_cached

KPTFILE = "Kptfile"
BFS_RENDERING = "kpt.dev/bfs-rendering"
SAVE_ON_RENDER_FAILURE = "kpt.dev/save-on-render-failure"
Profile = Literal["safe", "compat"]
Strategy = Literal["resource-merge", "fast-forward", "force-delete-replace", "copy-merge"]

_DEPRECATED = ("kpt.dev/v1alpha1", "kpt.dev/v1alpha2")
# the OCI reference grammar: [domain[:port]/]path[:tag][@digest]
_IMAGE = re2.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,})?"
)


def _as_config_text(value: object) -> object:
    # upstream decodes any scalar into the string it was; a float's text cannot be told from its value, so it is refused
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else "" if value is None else value


ConfigText = Annotated[str, BeforeValidator(_as_config_text)]


class _Section(BaseModel):
    """A part of the Kptfile: unknown fields are kept, null reads as absent."""

    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: value for key, value in data.items() if value is not None}


class GitUpstream(_Section):
    """Where a package comes from; `ref` is a branch, tag or commit."""

    repo: str = ""
    directory: str = ""
    ref: str = ""


class GitLock(GitUpstream):
    """The same, resolved."""

    commit: str = ""


class Upstream(_Section):
    """upstream: what to follow and how to merge it."""

    type: str = ""
    git: GitUpstream | None = None
    update_strategy: Strategy | None = None
    preserve_explicit_null: bool = False


class GenericLock(_Section):
    """An upstream that is not Git."""

    store_id: str = Field("", alias="storeID")
    resource_id: str = Field("", alias="resourceID")
    resource_version: str = ""


class UpstreamLock(_Section):
    """upstreamLock: what was merged last; `git.commit` is the origin of the next merge."""

    type: str = ""
    git: GitLock | None = None
    generic: GenericLock | None = None


class Selector(_Section):
    """Which resources a function sees: all given fields are equal, labels and annotations are subsets (kpt.md 2)."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing."""
        texts = (self.api_version, self.kind, self.name, self.namespace)
        return not any(texts) and not self.labels and not self.annotations


class FunctionSpec(_Section):
    """One entry of a pipeline."""

    image: str = ""
    exec: str = ""
    name: str = ""
    tag: str = ""
    config_path: str | None = None
    config_map: dict[str, ConfigText] | None = None
    selectors: tuple[Selector, ...] = ()
    exclude: tuple[Selector, ...] = ()

    @property
    def label(self) -> str:
        """What people call the function: its image or command."""
        return self.image or self.exec


class Pipeline(_Section):
    """pipeline: functions in the order they run."""

    mutators: tuple[FunctionSpec, ...] = ()
    validators: tuple[FunctionSpec, ...] = ()


class ReadinessGate(_Section):
    """info.readinessGates[]: a condition that must be True before the package is published."""

    condition_type: str


class Info(_Section):
    """info: the parts with a meaning for us."""

    site: str = ""
    emails: tuple[str, ...] = ()
    license: str = ""
    license_file: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    man: str = ""
    readiness_gates: tuple[ReadinessGate, ...] = ()


class StoredCondition(_Section):
    """status.conditions[] as it stands in the file."""

    type: str
    status: Status = "Unknown"
    reason: str = ""
    message: str = ""


class KptfileStatus(_Section):
    """status: conditions, and the render status that upstream's tool leaves there (never written by us, D26)."""

    conditions: tuple[StoredCondition, ...] = ()
    render_status: Any = None


class Metadata(_Section):
    """metadata: the package name, labels and annotations."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Inventory(_Section):
    """inventory: which cluster-side inventory the package is applied with."""

    namespace: str = ""
    name: str = ""
    inventory_id: str = Field("", alias="inventoryID")
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class KptfileModel(_Section):
    """The typed view of a whole Kptfile."""

    api_version: str
    kind: str
    metadata: Metadata = Metadata()
    upstream: Upstream | None = None
    upstream_lock: UpstreamLock | None = None
    info: Info = Info()
    pipeline: Pipeline = Pipeline()
    inventory: Inventory | None = None
    status: KptfileStatus = KptfileStatus()


@dataclass(frozen=True)
class Kptfile:
    """A Kptfile: its text, and what it says. Edits return a new one and keep every line they do not change."""

    source: YamlFile
    model: KptfileModel

    @property
    def document(self) -> Document:
        """The Kptfile's document."""
        return self.source.documents[0]

    @property
    def data(self) -> Mapping[str, Any]:
        """The Kptfile as plain data; read-only."""
        data: Mapping[str, Any] = self.document.data
        return data

    def to_bytes(self) -> bytes:
        """Return the file's content."""
        return self.source.to_bytes()

    @property
    def name(self) -> str:
        """The package's name."""
        return self.model.metadata.name

    @property
    def annotations(self) -> Mapping[str, str]:
        """metadata.annotations."""
        return self.model.metadata.annotations

    @property
    def upstream(self) -> Upstream | None:
        """What the package follows."""
        return self.model.upstream

    @property
    def upstream_lock(self) -> UpstreamLock | None:
        """What was merged last."""
        return self.model.upstream_lock

    @property
    def pipeline(self) -> Pipeline:
        """The functions of the package."""
        return self.model.pipeline

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """status.conditions, in the order they stand."""
        return tuple(Condition(c.type, c.status, c.reason, c.message) for c in self.model.status.conditions)

    @cached_property
    def readiness_gates(self) -> tuple[str, ...]:
        """The condition types of info.readinessGates, in the order they stand."""
        return tuple(gate.condition_type for gate in self.model.info.readiness_gates)

    @property
    def renders_breadth_first(self) -> bool:
        """Whether root pipelines run before those of subpackages (kpt.md 11.1)."""
        return self.annotations.get(BFS_RENDERING) == "true"

    def with_name(self, name: str) -> Kptfile:
        """Return the Kptfile with another metadata.name."""
        return self._with(metadata=dict(self.data.get("metadata") or {}) | {"name": name})

    def with_upstream(self, repo: str, directory: str, ref: str, commit: str) -> Kptfile:
        """Return the Kptfile with upstream and upstreamLock at this commit; other fields there, as the strategy, stay.

        `directory` is written without a leading "/", as Porch does (porch.md 5.1).
        """
        git = {"repo": repo, "directory": directory.lstrip("/"), "ref": ref}
        upstream = _merged(self.data.get("upstream"), {"type": "git", "git": git})
        lock = _merged(self.data.get("upstreamLock"), {"type": "git", "git": git | {"commit": commit}})
        return self._with(upstream=upstream, upstreamLock=lock)

    def without_upstream(self) -> Kptfile:
        """Return the Kptfile of a package that follows nothing."""
        return self._with(upstream=None, upstreamLock=None)

    def with_pipeline(self, mutators: Sequence[Mapping[str, Any]], validators: Sequence[Mapping[str, Any]]) -> Kptfile:
        """Return the Kptfile with these functions; empty lists, and an empty pipeline, are left out (porch.md 8.2)."""
        lists = {"mutators": list(mutators) or None, "validators": list(validators) or None}
        return self._with(pipeline=_merged(self.data.get("pipeline"), lists) or None)

    def with_conditions_and_gates(self, conditions: Sequence[Condition], gates: Sequence[str]) -> Kptfile:
        """Return the Kptfile with exactly these status.conditions and info.readinessGates, in this order.

        Entries that stay keep the fields that we do not know; what ends up empty is left out.
        """
        old_conditions = {c.get("type"): c for c in _entries(self.data, "status", "conditions")}
        old_gates = {g.get("conditionType"): g for g in _entries(self.data, "info", "readinessGates")}
        stored = [_stored(old_conditions.get(condition.type, {}), condition) for condition in conditions]
        gated = [{**old_gates.get(gate, {}), "conditionType": gate} for gate in gates]
        return self._with(
            info=_merged(self.data.get("info"), {"readinessGates": gated or None}) or None,
            status=_merged(self.data.get("status"), {"conditions": stored or None}) or None,
        )

    def with_data(self, data: Mapping[str, Any]) -> Kptfile:
        """Return the Kptfile that says `data`; every line that this does not change stays."""
        return self if same(self.data, data) else self.with_document(edited_document(self.document, in_order(data)))

    def with_document(self, document: Document) -> Kptfile:
        """Return the Kptfile with another document of a Kptfile in the same file."""
        if document is self.document:
            return self
        return Kptfile(self.source.replace(0, document), KptfileModel.model_validate(document.data))

    def _with(self, **changes: Any) -> Kptfile:
        return self.with_data(_merged(self.data, changes))


def read_kptfile(content: bytes, file: str = KPTFILE) -> Kptfile | tuple[Finding, ...]:
    """Return the Kptfile, or every reason why it cannot be read, each with its field path (kpt.md 2).

    `file` is the path that findings name.
    """
    parsed = parse_cached(content)
    if not isinstance(parsed, YamlFile):
        return (KPTFILE_SYNTAX.finding(f"the Kptfile must be YAML: {parsed.message}", Where(file, parsed.line)),)
    fault = _identity_fault(parsed)
    if fault:
        code, message = fault
        return (code.finding(message, Where(file, parsed.documents[0].line if parsed.documents else 0)),)
    return _typed(parsed, file)


def new_kptfile(name: str) -> Kptfile:
    """Return the smallest Kptfile of a package."""
    data = {"apiVersion": "kpt.dev/v1", "kind": "Kptfile", "metadata": {"name": name}}
    read = read_kptfile(emit(data).encode())
    assert isinstance(read, Kptfile)
    return read


def validate_kptfile(kptfile: Kptfile, file: str = KPTFILE, profile: Profile = "safe") -> tuple[Finding, ...]:
    """Return what is wrong with a Kptfile that can be read: rules 1 to 3 of kpt.md 2 as far as they need no files.

    Unknown fields are findings in `compat` only (design 10.18).
    """
    findings = [_finding(kptfile, file, *fault) for fault in _pipeline_faults(kptfile.pipeline)]
    if profile == "compat":
        findings += [
            _finding(kptfile, file, path, f"field {path[-1]} is not known", "") for path in _unknown(kptfile.model, ())
        ]
    return tuple(findings)


def field_path(path: Sequence[str | int]) -> str:
    """Return a path as people write it: `pipeline.mutators[0].configPath`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


Fault = tuple[tuple[str | int, ...], str, str]


def _identity_fault(source: YamlFile) -> tuple[Code, str] | None:
    if len(source.documents) != 1 or not isinstance(source.documents[0].data, dict):
        return KPTFILE_SYNTAX, "a Kptfile must hold exactly one document, a mapping"
    data = source.documents[0].data
    api_version, kind = data.get("apiVersion"), data.get("kind")
    if kind == KPTFILE and api_version in _DEPRECATED:
        version = split_api_version(api_version)[1]
        return KPTFILE_DEPRECATED, f'the Kptfile has an old version ("{version}") of the schema; it must be kpt.dev/v1'
    if (api_version, kind) != ("kpt.dev/v1", KPTFILE):
        return KPTFILE_UNKNOWN, f'a Kptfile must be kpt.dev/v1 Kptfile, not "{api_version} {kind}"'
    return None


def _typed(source: YamlFile, file: str) -> Kptfile | tuple[Finding, ...]:
    document = source.documents[0]
    try:
        return Kptfile(source, KptfileModel.model_validate(document.data))
    except ValidationError as error:
        return tuple(
            KPTFILE_INVALID.finding(
                f"{field_path(item['loc'])}: {item['msg']}",
                Where(file, document.line_of(item["loc"]), pointer=field_path(item["loc"])),
            )
            for item in error.errors()
        )


def _finding(kptfile: Kptfile, file: str, path: tuple[str | int, ...], reason: str, value: str) -> Finding:
    quoted = f', not "{value}"' if value else ""
    where = Where(file, kptfile.document.line_of(path), pointer=field_path(path))
    return KPTFILE_INVALID.finding(f"{field_path(path)}: {reason}{quoted}", where)


def _pipeline_faults(pipeline: Pipeline) -> Iterator[Fault]:
    for kind, functions in (("mutators", pipeline.mutators), ("validators", pipeline.validators)):
        for index, function in enumerate(functions):
            yield from (
                (("pipeline", kind, index, *path), reason, value) for path, reason, value in _function_faults(function)
            )


def _function_faults(function: FunctionSpec) -> Iterator[Fault]:
    if bool(function.image) == bool(function.exec):
        yield (), "a function must have exactly one of image and exec", ""
    if function.image and not _IMAGE.fullmatch(function.image):
        yield ("image",), "must be an OCI image reference", function.image
    if function.config_path is not None and function.config_map:
        yield (), "a function must have at most one of configMap and configPath", ""
    if function.config_path is not None:
        yield from _config_path_faults(function.config_path)
    if "condition" in (function.model_extra or {}):
        # running it unconditionally would do what its author ruled out
        yield ("condition",), "conditions of functions are not supported", ""


def _config_path_faults(path: str) -> Iterator[Fault]:
    if not path.strip():
        yield ("configPath",), "must not be empty", ""
    elif path.startswith("/"):
        yield ("configPath",), "must be relative", path
    elif ".." in normpath(path):
        # upstream refuses any name with two dots in it, "..." included
        yield ("configPath",), 'must not contain ".."', path


def _unknown(section: _Section, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    yield from ((*path, field) for field in section.model_extra or ())
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        for index, entry in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(entry, _Section):
                here = (*path, field.alias or name)
                yield from _unknown(entry, (*here, index) if isinstance(value, tuple) else here)


def _merged(old: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with changes, mappings merged recursively; None takes a key away."""
    data = dict(old) if isinstance(old, Mapping) else {}
    for key, value in changes.items():
        if value is None:
            data.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(data.get(key), Mapping):
            data[key] = _merged(data[key], value)
        else:
            data[key] = value
    return data


_ORDER = ("apiVersion", "kind", "metadata", "upstream", "upstreamLock", "info", "pipeline", "inventory", "status")


def in_order(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a Kptfile with its sections as upstream's own writer orders them."""
    return {key: data[key] for key in (*(k for k in _ORDER if k in data), *(k for k in data if k not in _ORDER))}


def _entries(data: Mapping[str, Any], section: str, field: str) -> list[Mapping[str, Any]]:
    return [entry for entry in (data.get(section) or {}).get(field) or [] if isinstance(entry, Mapping)]


def _stored(old: Mapping[str, Any], condition: Condition) -> dict[str, Any]:
    new = {key: value for key, value in condition.as_data().items() if value or key in old}
    return {**old, **new}
