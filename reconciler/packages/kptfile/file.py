"""The Kptfile as a file: read without losing anything, and edited where it must change (kpt.md 2, porch.md 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from reconciler.caching import cached
from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Code, Finding, Where
from reconciler.krm.identity import split_api_version
from reconciler.krm.yaml import Document, YamlFile, emit
from reconciler.packages.codes import KPTFILE_DEPRECATED, KPTFILE_INVALID, KPTFILE_SYNTAX, KPTFILE_UNKNOWN
from reconciler.packages.kptfile.model import KptfileModel, Pipeline, Upstream, UpstreamLock
from reconciler.packages.kptfile.paths import field_path
from reconciler.packages.parsing import edited_document, parse_cached

KPTFILE = "Kptfile"
BFS_RENDERING = "kpt.dev/bfs-rendering"
SAVE_ON_RENDER_FAILURE = "kpt.dev/save-on-render-failure"

# a render reads its Kptfile a dozen times, and most Kptfiles on their way are those of other clusters, too
_REMEMBERED_KPTFILES = 1024
_DEPRECATED = ("kpt.dev/v1alpha1", "kpt.dev/v1alpha2")


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
        if not conditions and not gates and "info" not in self.data and "status" not in self.data:
            return self
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
        return self.with_document(edited_document(self.document, in_order(data)))

    def with_document(self, document: Document) -> Kptfile:
        """Return the Kptfile with another document of a Kptfile in the same file."""
        if document is self.document:
            return self
        return Kptfile(self.source.replace(0, document), _model_of(document))

    def _with(self, **sections: Any) -> Kptfile:
        """Return the Kptfile with whole sections replaced; None removes one."""
        data = {**self.data, **sections}
        return self.with_data({key: value for key, value in data.items() if sections.get(key, value) is not None})


@cached(_REMEMBERED_KPTFILES)
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
        return Kptfile(source, _model_of(document))
    except ValidationError as error:
        return tuple(
            KPTFILE_INVALID.finding(
                f"{field_path(item['loc'])}: {item['msg']}",
                Where(file, document.line_of(item["loc"]), pointer=field_path(item["loc"])),
            )
            for item in error.errors()
        )


@cached(_REMEMBERED_KPTFILES)
def _model_of(document: Document) -> KptfileModel:
    return KptfileModel.model_validate(document.data)


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
