"""What people change by hand in the files of a branch: each edit leaves a token that can be found again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from tests.support.world import config_map

# files of a branch, blobs by path
_Files = Mapping[str, str]


class Desk(Protocol):
    """Where people work: it gives out words that nobody has written, and keeps contents."""

    def token(self) -> str:
        """Return a word that nobody has written yet."""

    def ruled(self) -> str:
        """Return a word for a place that somebody else decides on."""

    def blob(self, text: str) -> str:
        """Write a file's content."""

    def text(self, blob: str) -> str:
        """Return a file's content."""


# what becomes of files, "" for those that go; the last argument is the package that is worked on
Edit = Callable[[Desk, _Files, str], dict[str, str]]


def _beside(desk: Desk, files: _Files, name: str) -> dict[str, str]:
    token = desk.token()
    return {f"docs/{token}.md": desk.blob(f"{token}\n")}


def _shared(desk: Desk, files: _Files, name: str) -> dict[str, str]:
    path = "docs/shared.md"
    before = desk.text(files[path]) if path in files else ""
    return {path: desk.blob(f"{before}{desk.token()}\n")}


def _own_file(desk: Desk, files: _Files, name: str) -> dict[str, str]:
    token = desk.token()
    return {f"{name}/{token}.yaml": desk.blob(config_map("own", mark=token))}


def _own_note(desk: Desk, files: _Files, name: str) -> dict[str, str]:
    token = desk.token()
    return {f"{name}/notes/{token}.md": desk.blob(f"{token}\n")}


def put_beside(path: str, old: str, new: str) -> Edit:
    """Return the edit that puts a token next to the first place where `old` stands in a package's file."""

    def edit(desk: Desk, files: _Files, name: str) -> dict[str, str]:
        blob = files.get(f"{name}/{path}")
        text = desk.text(blob) if blob else ""
        if old not in text:
            return {}
        return {f"{name}/{path}": desk.blob(text.replace(old, new.format(desk.token()), 1))}

    return edit


def overrule(path: str, pattern: str, new: str) -> Edit:
    """Return the edit that puts a word where a value stands that is not people's to choose."""

    def edit(desk: Desk, files: _Files, name: str) -> dict[str, str]:
        blob = files.get(f"{name}/{path}")
        text = desk.text(blob) if blob else ""
        if not re.search(pattern, text):
            return {}
        return {f"{name}/{path}": desk.blob(re.sub(pattern, new.format(desk.ruled()), text, count=1))}

    return edit


def _drop(path: str) -> Edit:
    return lambda desk, files, name: {f"{name}/{path}": ""} if f"{name}/{path}" in files else {}


EDITS: Mapping[str, Edit] = {
    "beside": _beside,
    "beside, shared": _shared,
    "file": _own_file,
    "note": _own_note,
    "field": put_beside("settings.yaml", "data:\n", 'data:\n  {0}: "{0}"\n'),
    "last field": put_beside("settings.yaml", "  tail: end\n", '  tail: end\n  {0}: "{0}"\n'),
    "comment": put_beside("deployment.yaml", "    spec:\n", "    # {0}\n    spec:\n"),
    "replicas": put_beside("deployment.yaml", "replicas: ", "replicas: 1"),
    "drop extra": _drop("extra.yaml"),
    "drop settings": _drop("settings.yaml"),
    "drop status": lambda desk, files, name: {f".reconciler/{name}.yaml": ""},
}
# in packages that policies change, and in generated ones
POLICY_EDITS: Mapping[str, Edit] = {
    **EDITS,
    "placed field": put_beside("configmap-settings.yaml", "data:\n", 'data:\n  {0}: "{0}"\n'),
    "placed comment": put_beside("deployment-web.yaml", "    spec:\n", "    # {0}\n    spec:\n"),
    "emitted field": overrule("configmap-settings.yaml", r"tail: \w+", "tail: {0}"),
    "overridden field": overrule("deployment.yaml", r'edge: "?\w+"?', "edge: {0}"),
    "placed, overridden field": overrule("deployment-web.yaml", r'edge: "?\w+"?', "edge: {0}"),
    "drop settings": lambda desk, files, name: {
        path: "" for path in (f"{name}/settings.yaml", f"{name}/configmap-settings.yaml") if path in files
    },
    "drop web": _drop("deployment-web.yaml"),
    "drop role": _drop("clusterrole-reader.yaml"),
}
