"""The package context: the ConfigMap in `package-context.yaml` that contains the name and the path of a package."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from posixpath import basename
from typing import Any

from reconciler.api.profile import Profile
from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.yaml import Document, YamlFile, emit
from reconciler.packages.codes import PackageCodes
from reconciler.packages.parsing import ParseFailure, edit_document, parse_cached
from reconciler.packages.resource import LOCAL_CONFIG
from reconciler.packages.sops import SopsMacError
from reconciler.packages.sops_files import create_mac_finding

PACKAGE_CONTEXT_FILE = "package-context.yaml"
PACKAGE_CONTEXT_NAME = "kptfile.kpt.dev"


def ensure_package_context(files: FileTree, name: str, package_path: str) -> tuple[FileTree, tuple[Finding, ...]]:
    """Set `name` and `package-path` in the package context. Return the files and findings.

    The file `package-context.yaml` is created if it does not exist.

    Other keys of the package context do not change. If `package-context.yaml` contains other resources only, the file
    stays unchanged. If the file is not YAML, the result contains a finding.
    """
    return _ensure(files, {"name": name, "package-path": package_path})


def ensure_package_context_name(
    files: FileTree, name: str, profile: Profile = "safe"
) -> tuple[FileTree, tuple[Finding, ...]]:
    """Set the key `name` in the package context of the package. If the package context does not exist, create it.

    With the profile `safe`, the other keys do not change. With the profile `compat`, the existing package contexts of
    the package and its subpackages are deleted first, as in kpt.
    """
    contexts = [path for path in files if basename(path) == PACKAGE_CONTEXT_FILE] if profile == "compat" else ()
    return _ensure(files.without_files(*contexts), {"name": name})


def _ensure(files: FileTree, keys: Mapping[str, str]) -> tuple[FileTree, tuple[Finding, ...]]:
    if PACKAGE_CONTEXT_FILE not in files:
        return files.with_files({PACKAGE_CONTEXT_FILE: emit(build_package_context(keys)).encode()}), ()
    parsed = parse_cached(files[PACKAGE_CONTEXT_FILE].data)
    if isinstance(parsed, YamlFile) and not any(is_package_context(document.data) for document in parsed.documents):
        return files, ()
    context = _find_context(files)
    if isinstance(context, Finding):
        return files, (context,)
    current_data = context[1].data.get("data")
    current_values = current_data if isinstance(current_data, Mapping) else {}
    return _replace_data(
        files, context, {**current_values, **{k: v for k, v in keys.items() if current_values.get(k) != v}}
    )


def read_package_context(files: FileTree) -> Mapping[str, Any] | None:
    """Return the data of the package context. Return None if the package context does not exist or cannot be read."""
    context = _find_context(files)
    if isinstance(context, Finding):
        return None
    data = context[1].data.get("data")
    return data if isinstance(data, Mapping) else None


def update_package_context(
    files: FileTree, data: Mapping[str, str], remove_keys: Collection[str], package: str
) -> tuple[FileTree, tuple[Finding, ...]]:
    """Set the keys in `data` and remove the keys in `remove_keys` from the package context.

    Existing keys keep their positions. New keys follow in sorted order. A missing package context is an error, unless
    `data` and `remove_keys` are empty.

    Args:
        package: The name of the package for error messages.

    Returns:
        The files and findings. After an error, the files are unchanged.
    """
    if not data and not remove_keys:
        return files, ()
    if PACKAGE_CONTEXT_FILE not in files:
        return files, (_create_finding(f'"{PACKAGE_CONTEXT_FILE}" not found in {package}'),)
    context = _find_context(files)
    if isinstance(context, Finding):
        return files, (context,)
    current_values = context[1].data.get("data")
    if not isinstance(current_values, Mapping):
        return files, (_create_finding("PackageContext no data field found"),)
    added_values = {key: data[key] for key in sorted(data) if key not in current_values}
    kept_values = {key: data.get(key, value) for key, value in current_values.items()}
    return _replace_data(
        files, context, {k: v for k, v in {**kept_values, **added_values}.items() if k not in remove_keys}
    )


def build_package_context(keys: Mapping[str, str]) -> dict[str, Any]:
    """Return a new package context with the entries `keys`, as plain data."""
    metadata = {"name": PACKAGE_CONTEXT_NAME, "annotations": {LOCAL_CONFIG: "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(keys)}


def is_package_context(data: Any) -> bool:
    """Return whether the data of a document is a package context: the v1 ConfigMap `kptfile.kpt.dev`."""
    if not isinstance(data, Mapping) or (data.get("apiVersion"), data.get("kind")) != ("v1", "ConfigMap"):
        return False
    metadata = data.get("metadata")
    return isinstance(metadata, Mapping) and metadata.get("name") == PACKAGE_CONTEXT_NAME


_ContextDocument = tuple[int, Document, YamlFile]


def _find_context(files: FileTree) -> _ContextDocument | Finding:
    """Return the index, document and file of the package context. Return a finding if there is no package context."""
    if PACKAGE_CONTEXT_FILE not in files:
        return _create_finding(f'"{PACKAGE_CONTEXT_FILE}" not found')
    parsed = parse_cached(files[PACKAGE_CONTEXT_FILE].data)
    if isinstance(parsed, ParseFailure):
        return _create_finding(f'"{PACKAGE_CONTEXT_FILE}" cannot be parsed: {parsed.message}', parsed.line)
    for index, document in enumerate(parsed.documents):
        if is_package_context(document.data):
            return index, document, parsed
    return _create_finding(
        f'"{PACKAGE_CONTEXT_FILE}" must contain a v1 ConfigMap with the name "{PACKAGE_CONTEXT_NAME}"'
    )


def _replace_data(
    files: FileTree, context: _ContextDocument, data: Mapping[str, Any]
) -> tuple[FileTree, tuple[Finding, ...]]:
    index, document, source = context
    if data == document.data.get("data"):
        return files, ()
    try:
        edited = edit_document(document, {**document.data, "data": dict(data)})
    except SopsMacError as error:
        location = SourceLocation(PACKAGE_CONTEXT_FILE, document.line)
        return files, (create_mac_finding(error, location, "the package context"),)
    return files.with_files({PACKAGE_CONTEXT_FILE: source.replace(index, edited).to_bytes()}), ()


def _create_finding(message: str, line: int = 0) -> Finding:
    return PackageCodes.PACKAGE_CONTEXT.finding(message, SourceLocation(PACKAGE_CONTEXT_FILE, line))
