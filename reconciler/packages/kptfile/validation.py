"""What is wrong with a Kptfile that can be read (kpt.md 2)."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath

import re2

from reconciler.krm.codes import CREDENTIAL_IN_URL
from reconciler.krm.findings import Finding, Where
from reconciler.packages.codes import KPTFILE_INVALID
from reconciler.packages.kptfile.file import KPTFILE, Kptfile
from reconciler.packages.kptfile.model import FunctionSpec, Pipeline, Profile, Section
from reconciler.packages.kptfile.paths import field_path
from reconciler.redaction import has_credentials, redact_url

Fault = tuple[tuple[str | int, ...], str, str]

# the OCI reference grammar: [domain[:port]/]path[:tag][@digest]
_IMAGE = re2.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,})?"
)


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


def credential_findings(kptfile: Kptfile, file: str = KPTFILE) -> Iterator[Finding]:
    """Yield an error for each URL of a Kptfile that contains credentials: they must not reach another branch."""
    for name, section in (("upstream", kptfile.upstream), ("upstreamLock", kptfile.upstream_lock)):
        repo = section.git.repo if section and section.git else ""
        if has_credentials(repo):
            path = (name, "git", "repo")
            message = (
                f'{field_path(path)} must be written without user name, password or token: "{redact_url(repo)}" is'
                " what remains"
            )
            where = Where(file, kptfile.document.line_of(path), pointer=field_path(path))
            yield CREDENTIAL_IN_URL.finding(message, where)


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


def _unknown(section: Section, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    yield from ((*path, field) for field in section.model_extra or ())
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        for index, entry in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(entry, Section):
                here = (*path, field.alias or name)
                yield from _unknown(entry, (*here, index) if isinstance(value, tuple) else here)
