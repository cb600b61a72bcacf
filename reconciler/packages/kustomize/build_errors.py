"""Conversion of the error output of `kustomize build` and `kubectl kustomize` to findings."""

from __future__ import annotations

import json
import re

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding
from reconciler.krm.yaml import YamlError, parse_yaml
from reconciler.packages.charts.documents import split_output
from reconciler.packages.charts.secrets import MIN_MASKED_CHARACTERS, collect_secret_values, mask_values
from reconciler.packages.kustomize.request import SOURCE_FOLDER
from reconciler.packages.package import is_kustomization_file
from reconciler.packages.source_codes import SourceCodes

# Some programs write a log entry instead of the plain message. The entry contains the message as a JSON text, or as
# lines between "<" and ">".
_LOG_ENTRY = re.compile(
    r'^[EF]\d{4} [^\n]*? err=(?:(?P<json>"(?:[^"\\]|\\.)*")\s*$|<\n(?P<lines>.*?)\n >)', re.M | re.S
)
_PREFIX = re.compile(r"^(?:Error|error): ", re.MULTILINE)
# Kustomize adds the helm command to the error message of helm. The command contains the paths of temporary folders.
_HELM_COMMAND = re.compile(r":? unable to run: '.*? \(is '[^']*' installed\?\)(?:: exit status \d+)?", re.DOTALL)
_WARNING = re.compile(r"^(?:# )?Warning: .*\n?", re.MULTILINE | re.IGNORECASE)
_MAX_CHARACTERS = 1_200


def convert_build_error(stderr: str, label: str, files: FileTree) -> Finding:
    """Return the finding for a failed build. It contains no secret value and no path of a temporary folder.

    Args:
        label: The overlay for messages.
        files: The files of the upstream package.
    """
    text = _HELM_COMMAND.sub("", _PREFIX.sub("", _read_message(stderr)))
    text = re.sub(rf"/[^\s'\"]*/work(?:/{SOURCE_FOLDER})?(?=[/'\"\s:]|$)/?", "", text)
    message = " ".join(mask_values(text, _collect_secrets(files)).split())
    shortened = message if len(message) <= _MAX_CHARACTERS else message[:_MAX_CHARACTERS] + "…"
    report = f'Kustomize reports: "{shortened}"' if shortened else "Kustomize gives no reason"
    return SourceCodes.KUSTOMIZE_FAILED.finding(f"{label} cannot be built. {report}")


def _read_message(stderr: str) -> str:
    entry = _LOG_ENTRY.search(stderr)
    if entry is None:
        return _WARNING.sub("", stderr)
    return str(json.loads(entry["json"], strict=False)) if entry["json"] else entry["lines"]


def _collect_secrets(files: FileTree) -> set[str]:
    """Return the values of Secrets in files, and the literals of generators of Secrets."""
    values: set[str] = set()
    for path, file in files.items():
        text = file.data.decode(errors="replace")
        if is_kustomization_file(path):
            values |= _read_literals(text)
        elif "Secret" in text:
            values |= collect_secret_values(split_output(text, ""))
    return {value for value in values if len(value) >= MIN_MASKED_CHARACTERS}


def _read_literals(text: str) -> set[str]:
    try:
        documents = parse_yaml(text).documents
    except YamlError:
        return set()
    fields = [document.data for document in documents if isinstance(document.data, dict)]
    generators = [entry for data in fields for name, entry in data.items() if str(name).lower() == "secretgenerator"]
    literals = [
        literal
        for entries in generators
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
        for name, texts in entry.items()
        if str(name).lower() == "literals" and isinstance(texts, list)
        for literal in map(str, texts)
    ]
    return {part for literal in literals for part in (literal, literal.partition("=")[2])}
