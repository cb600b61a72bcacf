"""Builders of packages and resources from text, for the tests of the package engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import dedent
from typing import Any

from reconciler.api.profile import Profile
from reconciler.catalog.files import File, FileTree
from reconciler.packages.functions.function import FunctionContext, FunctionOutput, FunctionVersion, Item, KrmFunction
from reconciler.packages.parsing import parse_cached

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n"


def build_tree(files: Mapping[str, str]) -> FileTree:
    """Return files from dedented text."""
    return FileTree({path: File(dedent(text).lstrip("\n").encode()) for path, text in files.items()})


def read_texts(files: FileTree) -> dict[str, str]:
    """Return the text of each file."""
    return {path: file.data.decode() for path, file in files.items()}


def parse_items(text: str, path: str = "r.yaml") -> list[Item]:
    """Return the documents of one file as items."""
    parsed = parse_cached(dedent(text).lstrip("\n").encode())
    return [Item("", path, n, doc.data, n, doc) for n, doc in enumerate(parsed.documents)]  # type: ignore[union-attr]


def build_config(kind: str, data: Mapping[str, Any], group: str = "fn.kpt.dev/v1alpha1") -> dict[str, Any]:
    """Return the configuration of a function. The content of a ConfigMap goes to `data`."""
    if kind == "ConfigMap":
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "function-input"}, "data": dict(data)}
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "config"}, **data}


def run_function(
    function: KrmFunction,
    text: str,
    configuration: Mapping[str, Any] | None,
    profile: Profile = "safe",
    version: FunctionVersion = (9, 9, 9),
) -> FunctionOutput:
    """Call a function on the documents of a text."""
    return function(parse_items(text), configuration, FunctionContext(profile, version))


def format_items(output: Sequence[Item]) -> str:
    """Return items as one YAML text."""
    return "---\n".join(item.document.text for item in output)


def list_messages(output: FunctionOutput) -> list[tuple[str, str]]:
    """Return the severity and message of each result of a function."""
    return [(result.severity, result.message) for result in output.results]
