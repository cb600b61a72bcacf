"""Read, validate and edit the file `Kptfile` of a package. An edit does not change other lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from posixpath import normpath
from typing import Any

import re2

from reconciler.api import kpt
from reconciler.api.base import ApiModel, ReadResult, read_model
from reconciler.api.kpt import FunctionSpec, KptfilePipeline, KptfileUpstream, UpstreamLock
from reconciler.api.profile import Profile
from reconciler.krm.field_text import format_path, quote_value
from reconciler.krm.findings import CommonCodes, Finding, FindingCode, SourceLocation
from reconciler.krm.objects import Condition
from reconciler.krm.yaml import Document, YamlFile, emit
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.packages.codes import PackageCodes
from reconciler.packages.parsing import edit_document, parse_cached
from reconciler.packages.sops import is_sops_document
from reconciler.redaction import has_credentials, redact_url

KPTFILE = "Kptfile"
BFS_RENDERING = "kpt.dev/bfs-rendering"
SAVE_ON_RENDER_FAILURE = "kpt.dev/save-on-render-failure"

# Maximum number of cached Kptfiles. Kptfiles are cached, because a render reads its Kptfile about twelve times, and
# many clusters have equal Kptfiles.
_MAX_CACHED_KPTFILES = 1024
_MAX_CACHED_IMAGES = 1024
_DEPRECATED = ("kpt.dev/v1alpha1", "kpt.dev/v1alpha2")


@dataclass(frozen=True)
class Kptfile:
    """The text and the typed content of a Kptfile. An edit returns a new `Kptfile` and does not change other lines."""

    source: YamlFile

    @cached_property
    def model(self) -> kpt.Kptfile:
        """The content as a model.

        The model is created when it is first read. Therefore, a chain of edits does not create a model for each
        intermediate Kptfile.
        """
        model = _read_model(self.document).model
        assert model, "`read_kptfile` returns only valid Kptfiles, and an edit keeps the types of all fields"
        return model

    @property
    def document(self) -> Document:
        """The single YAML document in the Kptfile."""
        return self.source.documents[0]

    @property
    def data(self) -> Mapping[str, Any]:
        """The content of the Kptfile as read-only data."""
        data: Mapping[str, Any] = self.document.data
        return data

    def to_bytes(self) -> bytes:
        """Return the content of the Kptfile as bytes."""
        return self.source.to_bytes()

    @property
    def name(self) -> str:
        """The name of the package, from `metadata.name`."""
        return self.model.metadata.name

    @property
    def annotations(self) -> Mapping[str, str]:
        """The field `metadata.annotations`."""
        return self.model.metadata.annotations

    @property
    def upstream(self) -> KptfileUpstream | None:
        """The section `upstream`, or None if the package has no upstream."""
        return self.model.upstream

    @property
    def upstream_lock(self) -> UpstreamLock | None:
        """The section `upstreamLock`, which contains the upstream commit of the last clone or update, or None."""
        return self.model.upstream_lock

    @property
    def pipeline(self) -> KptfilePipeline:
        """The section `pipeline`, which contains the functions of the package."""
        return self.model.pipeline

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions in `status.conditions`, in the order of the Kptfile."""
        return tuple(Condition(c.type, c.status, c.reason, c.message) for c in self.model.status.conditions)

    @cached_property
    def readiness_gates(self) -> tuple[str, ...]:
        """The condition types in `info.readinessGates`, in the order of the Kptfile."""
        return tuple(gate.condition_type for gate in self.model.info.readiness_gates)

    @property
    def renders_breadth_first(self) -> bool:
        """Whether the Kptfile requests that pipelines of parent packages run before pipelines of their subpackages."""
        return self.annotations.get(BFS_RENDERING) == "true"

    def with_name(self, name: str) -> Kptfile:
        """Return the Kptfile with `name` as its `metadata.name`."""
        return self._with_sections(metadata=dict(self.data.get("metadata") or {}) | {"name": name})

    def with_upstream(self, repo: str, directory: str, ref: str, commit: str) -> Kptfile:
        """Return the Kptfile with this location and commit in the sections `upstream` and `upstreamLock`.

        Other fields of both sections, such as the update strategy, do not change. As in Porch, `directory` is written
        without a leading "/".
        """
        git = {"repo": repo, "directory": directory.lstrip("/"), "ref": ref}
        upstream = _merge_fields(self.data.get("upstream"), {"type": "git", "git": git})
        lock = _merge_fields(self.data.get("upstreamLock"), {"type": "git", "git": git | {"commit": commit}})
        return self._with_sections(upstream=upstream, upstreamLock=lock)

    def with_generic_lock(self, store_id: str, resource_id: str, version: str) -> Kptfile:
        """Return the Kptfile with a lock of type `generic`, for a package that comes from no Git package.

        The section `upstream` is removed, because kpt can only update packages whose upstream is in Git.
        """
        generic = {"storeID": store_id, "resourceID": resource_id, "resourceVersion": version}
        lock = _merge_fields(self.data.get("upstreamLock"), {"type": "generic", "generic": generic, "git": None})
        return self._with_sections(upstream=None, upstreamLock=lock)

    def with_description(self, description: str) -> Kptfile:
        """Return the Kptfile with this text as its `info.description`."""
        return self._with_sections(info=_merge_fields(self.data.get("info"), {"description": description}))

    def without_upstream(self) -> Kptfile:
        """Return the Kptfile without the sections `upstream` and `upstreamLock`."""
        return self._with_sections(upstream=None, upstreamLock=None)

    def with_pipeline(self, mutators: Sequence[Mapping[str, Any]], validators: Sequence[Mapping[str, Any]]) -> Kptfile:
        """Return the Kptfile with these functions in its pipeline. Empty lists and an empty pipeline are omitted."""
        lists = {"mutators": list(mutators) or None, "validators": list(validators) or None}
        return self._with_sections(pipeline=_merge_fields(self.data.get("pipeline"), lists) or None)

    def with_conditions_and_gates(self, conditions: Sequence[Condition], gates: Sequence[str]) -> Kptfile:
        """Return the Kptfile with `conditions` as its status.conditions and `gates` as its info.readinessGates.

        An existing condition or gate keeps its unknown fields. Empty lists and sections are omitted.
        """
        if not conditions and not gates and "info" not in self.data and "status" not in self.data:
            return self
        old_conditions = {entry.get("type"): entry for entry in _list_entries(self.data, "status", "conditions")}
        old_gates = {entry.get("conditionType"): entry for entry in _list_entries(self.data, "info", "readinessGates")}
        new_conditions = [
            _update_condition(old_conditions.get(condition.type, {}), condition) for condition in conditions
        ]
        new_gates = [{**old_gates.get(gate, {}), "conditionType": gate} for gate in gates]
        return self._with_sections(
            info=_merge_fields(self.data.get("info"), {"readinessGates": new_gates or None}) or None,
            status=_merge_fields(self.data.get("status"), {"conditions": new_conditions or None}) or None,
        )

    def with_data(self, data: Mapping[str, Any]) -> Kptfile:
        """Return the Kptfile with the content `data`. Lines whose content does not change keep their text."""
        return self.with_document(edit_document(self.document, order_sections(data)))

    def with_document(self, document: Document) -> Kptfile:
        """Return the Kptfile with `document` as its YAML document."""
        return self if document is self.document else Kptfile(self.source.replace(0, document))

    def _with_sections(self, **sections: Any) -> Kptfile:
        """Return the Kptfile with these sections replaced. The value None removes a section."""
        data = {**self.data, **sections}
        return self.with_data({key: value for key, value in data.items() if sections.get(key, value) is not None})


@cached(_MAX_CACHED_KPTFILES)
def read_kptfile(content: bytes, file: str = KPTFILE) -> Kptfile | tuple[Finding, ...]:
    """Return the Kptfile in `content`. If the Kptfile cannot be read, return a finding for each error.

    `file` is the path that the findings contain.
    """
    parsed = parse_cached(content)
    if not isinstance(parsed, YamlFile):
        return (
            PackageCodes.KPTFILE_SYNTAX.finding(
                f"the Kptfile cannot be parsed: {parsed.message}", SourceLocation(file, parsed.line)
            ),
        )
    identity_error = _find_identity_error(parsed)
    if identity_error:
        code, message = identity_error
        return (code.finding(message, SourceLocation(file, parsed.documents[0].line if parsed.documents else 0)),)
    return _parse_model(parsed, file)


def create_kptfile(name: str) -> Kptfile:
    """Return a Kptfile that contains only `apiVersion`, `kind` and `metadata.name`."""
    data = {"apiVersion": kpt.KPT_API_VERSION, "kind": "Kptfile", "metadata": {"name": name}}
    kptfile = read_kptfile(emit(data).encode())
    assert isinstance(kptfile, Kptfile)
    return kptfile


def _find_identity_error(source: YamlFile) -> tuple[FindingCode, str] | None:
    if len(source.documents) != 1 or not isinstance(source.documents[0].data, dict):
        return PackageCodes.KPTFILE_SYNTAX, "a Kptfile must contain exactly one YAML document, which must be a mapping"
    data = source.documents[0].data
    if is_sops_document(data):
        return (
            PackageCodes.KPTFILE_INVALID,
            "a Kptfile must not be encrypted with SOPS, because renders change it (next step: decrypt the Kptfile)",
        )
    api_version, kind = data.get("apiVersion"), data.get("kind")
    if kind == KPTFILE and api_version in _DEPRECATED:
        return (
            PackageCodes.KPTFILE_DEPRECATED,
            f'apiVersion of the Kptfile must be "{kpt.KPT_API_VERSION}", but is the old version "{api_version}"',
        )
    if (api_version, kind) != (kpt.KPT_API_VERSION, KPTFILE):
        return PackageCodes.KPTFILE_UNKNOWN, (
            f'a Kptfile must have apiVersion "{kpt.KPT_API_VERSION}" and kind "{KPTFILE}", but has'
            f" {_describe_field(api_version)} and {_describe_field(kind)}"
        )
    return None


def _describe_field(value: object) -> str:
    return "no value" if value is None else quote_value(value)


def _parse_model(source: YamlFile, file: str) -> Kptfile | tuple[Finding, ...]:
    document = source.documents[0]
    result = _read_model(document)
    if result.model:
        return Kptfile(source)
    return tuple(
        PackageCodes.KPTFILE_INVALID.finding(
            error.text, SourceLocation(file, document.find_line(error.path), pointer=format_path(error.path))
        )
        for error in result.errors
    )


@cached(_MAX_CACHED_KPTFILES)
def _read_model(document: Document) -> ReadResult[kpt.Kptfile]:
    return read_model(kpt.Kptfile, document.data, kpt.Kptfile.templates)


def _merge_fields(old: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping `old` with `changes`. Nested mappings are merged recursively. The value None removes a key."""
    data = dict(old) if isinstance(old, Mapping) else {}
    for key, value in changes.items():
        if value is None:
            data.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(data.get(key), Mapping):
            data[key] = _merge_fields(data[key], value)
        else:
            data[key] = value
    return data


_SECTION_ORDER = (
    "apiVersion",
    "kind",
    "metadata",
    "upstream",
    "upstreamLock",
    "info",
    "pipeline",
    "inventory",
    "status",
)


def order_sections(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a Kptfile with its sections in the order of kpt. Unknown sections follow at the end."""
    return {
        key: data[key]
        for key in (*(k for k in _SECTION_ORDER if k in data), *(k for k in data if k not in _SECTION_ORDER))
    }


def _list_entries(data: Mapping[str, Any], section: str, field: str) -> list[Mapping[str, Any]]:
    return [entry for entry in (data.get(section) or {}).get(field) or [] if isinstance(entry, Mapping)]


def _update_condition(old: Mapping[str, Any], condition: Condition) -> dict[str, Any]:
    new = {key: value for key, value in condition.as_data().items() if value or key in old}
    return {**old, **new}


# An error in a function of the pipeline: field path, reason, and invalid value. The value is "" if the reason is
# sufficient.
_FieldError = tuple[tuple[str | int, ...], str, str]

# The grammar of OCI image references: [domain[:port]/]path[:tag][@digest]
_IMAGE = re2.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,})?"
)


def validate_kptfile(kptfile: Kptfile, file: str = KPTFILE, profile: Profile = "safe") -> tuple[Finding, ...]:
    """Return findings about the pipeline of a Kptfile. Other files of the package are not checked.

    In the profile `compat`, unknown fields of the Kptfile are reported too.
    """
    findings = [_create_finding(kptfile, file, *error) for error in _find_pipeline_errors(kptfile.pipeline)]
    if profile == "compat":
        findings += [
            _create_finding(kptfile, file, path, "is an unknown field", "")
            for path in _find_unknown_fields(kptfile.model, ())
        ]
    return tuple(findings)


def find_credentials(kptfile: Kptfile, file: str = KPTFILE) -> Iterator[Finding]:
    """Yield an error for each URL with credentials in a Kptfile. Credentials must not be copied to other branches."""
    for name, section in (("upstream", kptfile.upstream), ("upstreamLock", kptfile.upstream_lock)):
        repo = section.git.repo if section and section.git else ""
        if has_credentials(repo):
            path = (name, "git", "repo")
            message = (
                f'{format_path(path)} must not contain a user name, password or token; use "{redact_url(repo)}" instead'
            )
            location = SourceLocation(file, kptfile.document.find_line(path), pointer=format_path(path))
            yield CommonCodes.CREDENTIAL_IN_URL.finding(message, location)


def _create_finding(kptfile: Kptfile, file: str, path: tuple[str | int, ...], reason: str, value: str) -> Finding:
    found_value = f', but is "{value}"' if value else ""
    location = SourceLocation(file, kptfile.document.find_line(path), pointer=format_path(path))
    return PackageCodes.KPTFILE_INVALID.finding(f"{format_path(path)} {reason}{found_value}", location)


def _find_pipeline_errors(pipeline: KptfilePipeline) -> Iterator[_FieldError]:
    for kind, functions in (("mutators", pipeline.mutators), ("validators", pipeline.validators)):
        for index, function in enumerate(functions):
            yield from (
                (("pipeline", kind, index, *path), reason, value)
                for path, reason, value in _find_function_errors(function)
            )


def _find_function_errors(function: FunctionSpec) -> Iterator[_FieldError]:
    if bool(function.image) == bool(function.exec):
        yield (), "must have exactly one of image and exec", ""
    if function.image and not _is_image_reference(function.image):
        yield ("image",), "must be an OCI image reference", function.image
    if function.config_path is not None and function.config_map:
        yield (), "must have at most one of configMap and configPath", ""
    if function.config_path is not None:
        yield from _find_config_path_errors(function.config_path)
    if "condition" in (function.model_extra or {}):
        # The field `condition` is an error here, because this program would ignore it and always run the function.
        yield ("condition",), "must not be set, because conditions of functions are not supported", ""


@cached(_MAX_CACHED_IMAGES)
def _is_image_reference(image: str) -> bool:
    return bool(_IMAGE.fullmatch(image))


def _find_config_path_errors(path: str) -> Iterator[_FieldError]:
    if not path.strip():
        yield ("configPath",), "must not be empty", ""
    elif path.startswith("/"):
        yield ("configPath",), "must be relative", path
    elif ".." in normpath(path):
        # Like kpt, reject every path that contains "..", even a file name such as "a...yaml".
        yield ("configPath",), 'must not contain ".."', path


def _find_unknown_fields(section: ApiModel, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    yield from ((*path, field) for field in section.model_extra or ())
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        for index, entry in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(entry, ApiModel):
                section_path = (*path, field.alias or name)
                yield from _find_unknown_fields(
                    entry, (*section_path, index) if isinstance(value, tuple) else section_path
                )
