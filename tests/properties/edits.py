"""Local changes in the files of a branch. Each edit adds a unique token that tests search for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from tests.support.world import config_map

# files of a branch, blobs by path
_Files = Mapping[str, str]


class EditContext(Protocol):
    """Source of unique tokens, and storage of file contents."""

    def token(self) -> str:
        """Return a new unique token."""

    def ruled(self) -> str:
        """Return a token for a field whose value a rule decides."""

    def blob(self, text: str) -> str:
        """Write a file's content."""

    def text(self, blob: str) -> str:
        """Return a file's content."""


# Returns changed files, "" for deleted files. The last argument is the edited package.
Edit = Callable[[EditContext, _Files, str], dict[str, str]]


def _outside_file(context: EditContext, files: _Files, name: str) -> dict[str, str]:
    token = context.token()
    return {f"docs/{token}.md": context.blob(f"{token}\n")}


def _shared_outside_file(context: EditContext, files: _Files, name: str) -> dict[str, str]:
    path = "docs/shared.md"
    before = context.text(files[path]) if path in files else ""
    return {path: context.blob(f"{before}{context.token()}\n")}


def _own_file(context: EditContext, files: _Files, name: str) -> dict[str, str]:
    token = context.token()
    return {f"{name}/{token}.yaml": context.blob(config_map("own", mark=token))}


def _own_note(context: EditContext, files: _Files, name: str) -> dict[str, str]:
    token = context.token()
    return {f"{name}/notes/{token}.md": context.blob(f"{token}\n")}


def insert_token(path: str, old: str, new: str) -> Edit:
    """Return an edit that inserts a token at the first occurrence of `old` in a file of the package."""

    def edit(context: EditContext, files: _Files, name: str) -> dict[str, str]:
        blob = files.get(f"{name}/{path}")
        text = context.text(blob) if blob else ""
        if old not in text:
            return {}
        return {f"{name}/{path}": context.blob(text.replace(old, new.format(context.token()), 1))}

    return edit


def overrule(path: str, pattern: str, new: str) -> Edit:
    """Return an edit that puts a token in place of a value that users do not decide."""

    def edit(context: EditContext, files: _Files, name: str) -> dict[str, str]:
        blob = files.get(f"{name}/{path}")
        text = context.text(blob) if blob else ""
        if not re.search(pattern, text):
            return {}
        return {f"{name}/{path}": context.blob(re.sub(pattern, new.format(context.ruled()), text, count=1))}

    return edit


def _drop(path: str) -> Edit:
    return lambda context, files, name: {f"{name}/{path}": ""} if f"{name}/{path}" in files else {}


EDITS: Mapping[str, Edit] = {
    "beside": _outside_file,
    "beside, shared": _shared_outside_file,
    "file": _own_file,
    "note": _own_note,
    "field": insert_token("settings.yaml", "data:\n", 'data:\n  {0}: "{0}"\n'),
    "last field": insert_token("settings.yaml", "  tail: end\n", '  tail: end\n  {0}: "{0}"\n'),
    "comment": insert_token("deployment.yaml", "    spec:\n", "    # {0}\n    spec:\n"),
    "replicas": insert_token("deployment.yaml", "replicas: ", "replicas: 1"),
    "drop extra": _drop("extra.yaml"),
    "drop settings": _drop("settings.yaml"),
    "drop status": lambda context, files, name: {f".reconciler/{name}.yaml": ""},
}
# edits of packages with policies, and of generated packages
POLICY_EDITS: Mapping[str, Edit] = {
    **EDITS,
    "placed field": insert_token("configmap-settings.yaml", "data:\n", 'data:\n  {0}: "{0}"\n'),
    "placed comment": insert_token("deployment-web.yaml", "    spec:\n", "    # {0}\n    spec:\n"),
    "emitted field": overrule("configmap-settings.yaml", r"tail: \w+", "tail: {0}"),
    "overridden field": overrule("deployment.yaml", r'edge: "?\w+"?', "edge: {0}"),
    "placed, overridden field": overrule("deployment-web.yaml", r'edge: "?\w+"?', "edge: {0}"),
    "drop settings": lambda context, files, name: {
        path: "" for path in (f"{name}/settings.yaml", f"{name}/configmap-settings.yaml") if path in files
    },
    "drop web": _drop("deployment-web.yaml"),
    "drop role": _drop("clusterrole-reader.yaml"),
}
