"""The package context: the ConfigMap that tells a package's functions its name and path (kpt.md 1.1, porch.md 8.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from posixpath import basename
from typing import Any

from reconciler.caching import cached
from reconciler.krm.findings import Finding, Where
from reconciler.krm.yaml import Document, YamlFile, emit
from reconciler.packages.codes import PACKAGE_CONTEXT
from reconciler.packages.kptfile import Profile
from reconciler.packages.parsing import Unparsable, edited_document, parse_cached
from reconciler.packages.resource import LOCAL_CONFIG
from reconciler.snapshot.files import FileTree

CONTEXT_FILE = "package-context.yaml"
CONTEXT_NAME = "kptfile.kpt.dev"
# the packages in flight: one that many clusters have at the same path begins with the same context
_REMEMBERED_PACKAGES = 256


@cached(_REMEMBERED_PACKAGES)
def ensure_context(files: FileTree, name: str, package_path: str) -> tuple[FileTree, tuple[Finding, ...]]:
    """Return the files with a package context that says `name` and `package_path`; all other keys stay.

    A file of that name without a package context belongs to the package, and stays as it is. Text that is not YAML
    gives a finding.
    """
    return _ensure(files, {"name": name, "package-path": package_path})


def ensure_name(files: FileTree, name: str, profile: Profile = "safe") -> tuple[FileTree, tuple[Finding, ...]]:
    """Return the files with a package context that says `name`, as `ensure_context` does; nobody knows a path.

    `compat` makes it afresh, and leaves subpackages without one.
    """
    contexts = [path for path in files if basename(path) == CONTEXT_FILE] if profile == "compat" else ()
    return _ensure(files.without(*contexts), {"name": name})


def _ensure(files: FileTree, keys: Mapping[str, str]) -> tuple[FileTree, tuple[Finding, ...]]:
    if CONTEXT_FILE not in files:
        return files.with_files({CONTEXT_FILE: emit(context_data(keys)).encode()}), ()
    parsed = parse_cached(files[CONTEXT_FILE].data)
    if isinstance(parsed, YamlFile) and not any(is_context(document.data) for document in parsed.documents):
        return files, ()
    found = _find(files)
    if isinstance(found, Finding):
        return files, (found,)
    data = found[1].data.get("data")
    old = data if isinstance(data, Mapping) else {}
    return _written(files, found, {**old, **{k: v for k, v in keys.items() if old.get(k) != v}}), ()


def read_context(files: FileTree) -> Mapping[str, Any] | None:
    """Return the data of the package context, or None where there is none that can be read."""
    found = _find(files)
    if isinstance(found, Finding):
        return None
    data = found[1].data.get("data")
    return data if isinstance(data, Mapping) else None


def set_context(
    files: FileTree, data: Mapping[str, str], remove_keys: Collection[str], package: str
) -> tuple[FileTree, tuple[Finding, ...]]:
    """Return the files with these keys set and those removed in the package context (porch.md 8.1).

    Existing keys keep their place, new ones follow sorted. `package` is what the error text calls the package. With
    nothing to set and nothing to remove the context need not exist. Errors leave the files as they were.
    """
    if not data and not remove_keys:
        return files, ()
    if CONTEXT_FILE not in files:
        return files, (_fault(f'"{CONTEXT_FILE}" not found in {package}'),)
    found = _find(files)
    if isinstance(found, Finding):
        return files, (found,)
    old = found[1].data.get("data")
    if not isinstance(old, Mapping):
        return files, (_fault("PackageContext no data field found"),)
    new = {key: data[key] for key in sorted(data) if key not in old}
    kept = {key: data.get(key, value) for key, value in old.items()}
    return _written(files, found, {k: v for k, v in {**kept, **new}.items() if k not in remove_keys}), ()


def context_data(keys: Mapping[str, str]) -> dict[str, Any]:
    """Return a fresh package context as plain data."""
    metadata = {"name": CONTEXT_NAME, "annotations": {LOCAL_CONFIG: "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(keys)}


def is_context(data: Any) -> bool:
    """Tell whether a document is a package context."""
    if not isinstance(data, Mapping) or (data.get("apiVersion"), data.get("kind")) != ("v1", "ConfigMap"):
        return False
    metadata = data.get("metadata")
    return isinstance(metadata, Mapping) and metadata.get("name") == CONTEXT_NAME


Found = tuple[int, Document, YamlFile]


def _find(files: FileTree) -> Found | Finding:
    """Return the context's index, document and file, or the reason why it cannot be used, naming the file."""
    if CONTEXT_FILE not in files:
        return _fault(f'"{CONTEXT_FILE}" not found')
    parsed = parse_cached(files[CONTEXT_FILE].data)
    if isinstance(parsed, Unparsable):
        return _fault(f'"{CONTEXT_FILE}" must be YAML: {parsed.message}', parsed.line)
    for index, document in enumerate(parsed.documents):
        if is_context(document.data):
            return index, document, parsed
    return _fault(f'"{CONTEXT_FILE}" must hold a v1 ConfigMap called "{CONTEXT_NAME}"')


def _written(files: FileTree, found: Found, data: Mapping[str, Any]) -> FileTree:
    index, document, source = found
    if data == document.data.get("data"):
        return files
    changed = edited_document(document, {**document.data, "data": dict(data)})
    return files.with_files({CONTEXT_FILE: source.replace(index, changed).to_bytes()})


def _fault(message: str, line: int = 0) -> Finding:
    return PACKAGE_CONTEXT.finding(message, Where(CONTEXT_FILE, line))
