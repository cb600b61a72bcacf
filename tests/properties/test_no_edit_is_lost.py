"""Every kind of edit, at each moment, per kind of package: the next draft has it, or a record or finding names it.

One fleet has a package for each edit, so that one pass processes all. `RECONCILER_EDITS=all` runs every combination.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.local_changes import FILE, LINK, SUBMODULE, Change, Entry, commit_entries, read_entries
from tests.support.policies import resource
from tests.support.world import PassResult, World, catalog, config_map, deployment, repository, variant

ADA = b"# written by Ada"
DRAFT, CLUSTER = "drafts/berlin", "clusters/berlin"
Text = Callable[[bytes], bytes]


def above_metadata(line: bytes) -> Text:
    return lambda data: data.replace(b"\nmetadata:", b"\n" + line + b"\nmetadata:", 1)


# a function that edits the text, and a pattern that finds the edit
TEXTS: Mapping[str, tuple[Text, bytes]] = {
    "trailing comment": (lambda data: data + ADA + b"\n", ADA),
    "leading comment": (lambda data: ADA + b"\n" + data, ADA),
    "comment in a document of its own": (lambda data: data + b"---\n" + ADA + b"\n", ADA),
    "comment above a field": (above_metadata(ADA), ADA),
    "comment at the end of a line": (lambda data: data.replace(b"\nkind: ", b" " + ADA + b"\nkind: ", 1), ADA),
    "blank line": (above_metadata(b""), rb"\n\nmetadata:"),
    "quotes": (lambda data: re.sub(rb"\nkind: (\w+)", rb"\nkind: '\1'", data, count=1), rb"kind: '"),
    "order": (lambda data: re.sub(rb"^(apiV.*\n)(kind.*\n)", rb"\2\1", data, count=1), rb"^kind.*\napiV"),
    "CRLF": (lambda data: data.replace(b"\n", b"\r\n"), rb"kind: \w+\r\n"),
    "byte order mark": (lambda data: b"\xef\xbb\xbf" + data, b"\xef\xbb\xbf"),
}
ENTRIES: Mapping[str, Callable[[Entry], Entry | None]] = {
    "executable": lambda entry: Entry("100755", entry.data),
    "deletion": lambda entry: None,
    "link": lambda entry: Entry(LINK, b"elsewhere"),
    "submodule": lambda entry: Entry(SUBMODULE, b"1" * 40),
    "binary": lambda entry: Entry(FILE, b"\0\xff"),
}
EDITS = (*TEXTS, *ENTRIES)


@dataclass(frozen=True)
class Kind:
    """A kind of package: its location, its edited files, and the config of its two versions."""

    folder: str
    files: tuple[str, ...]
    evolve: Callable[[World, int, int], None]


def upstream(world: World, step: int, count: int) -> None:
    kptfile = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\ninfo:\n  description: version {step}\n"
    files = {"Kptfile": kptfile, "deployment.yaml": deployment("app", image=f"{step}.0")}
    world.release("app", f"v{step}", files | ({"gone.yaml": config_map("gone", a="1")} if step == 1 else {}))
    generator_type = (variant(f"p{number}", "berlin", f"p{number}", f"v{step}", "app") for number in range(count))
    world.write({"catalog.yaml": catalog(), "variants.yaml": "---\n".join(generator_type)})


def placed(world: World, step: int, count: int) -> None:
    for number in range(count):
        limits = resource("ConfigMap", "limits", f"p{number}", on="berlin", cpu=f"'{step}'")
        other = resource("ConfigMap", "gone" if step == 1 else "new", f"p{number}", on="berlin", cpu="'1'")
        world.write({f"placed/p{number}.yaml": f"{limits}---\n{other}"})


KINDS = {
    "upstream": Kind("", ("deployment.yaml", "gone.yaml", "Kptfile", "package-context.yaml"), upstream),
    "placement": Kind("resources/", ("configmap-limits.yaml", "configmap-gone.yaml"), placed),
}
MOMENTS = ("on a draft", "after the merge", "before the pass after the merge", "while an update is open")
CASES = [(kind, moment) for kind in KINDS for moment in MOMENTS]


def chosen(kind: Kind, moment: str) -> list[tuple[str, str]]:
    """Return the edits of files that a case has: all of them, or its share."""
    values = [(edit, file) for file in kind.files for edit in EDITS]
    if os.environ.get("RECONCILER_EDITS") == "all":
        return values
    return [item for number, item in enumerate(values) if number % len(MOMENTS) == MOMENTS.index(moment)]


def edited(edit: str, entry: Entry) -> Entry | None:
    return ENTRIES[edit](entry) if edit in ENTRIES else Entry(entry.mode, TEXTS[edit][0](entry.data))


def is_kept(edit: str, file: str, package: Mapping[str, Entry]) -> bool:
    if edit in TEXTS:
        return any(re.search(TEXTS[edit][1], item.data) for item in package.values())
    now = package.get(file)
    entry = ENTRIES[edit](now or Entry(FILE, b""))
    return now == entry


class Edited:
    """A fleet with one package for each edit, and all reports since its start."""

    def __init__(self, folder: Path, kind: Kind, edits: list[tuple[str, str]]) -> None:
        self.world = World.create(folder)
        self.world.write({"clusters/berlin.yaml": repository("berlin")})
        self.kind, self.edits = kind, edits
        self.reported: dict[str, str] = {}

    def evolve(self, step: int) -> None:
        self.kind.evolve(self.world, step, len(self.edits))

    def package(self, number: int) -> str:
        return f"{self.kind.folder}p{number}"

    def sync(self) -> PassResult:
        pass_result = self.world.sync()
        head = DRAFT if self.world.head(DRAFT) else CLUSTER
        entries = read_entries(self.world.fleet, f"refs/heads/{head}", ".reconciler")
        for number in range(len(self.edits)):
            package = self.package(number)
            status = parse_yaml(entries[f"{package}.yaml"].data).documents[0].data["status"]
            about = (finding.message for finding in pass_result.findings if f"{package}" in str(finding.location))
            more = [str(conflict.get("file")) for conflict in status.get("conflicts", ())]
            self.reported[package] = " ".join([self.reported.get(package, ""), *about, *more])
        return pass_result

    def edit(self, branch: str) -> None:
        result = read_entries(self.world.fleet, f"refs/heads/{branch}")
        change: dict[str, Entry | None] = {}
        for number, (edit, file) in enumerate(self.edits):
            path = f"{self.package(number)}/{file}"
            # the open update has already deleted some files
            change |= {path: edited(edit, result[path])} if path in result else {}
        commit: Change = change
        commit_entries(self.world.fleet, f"refs/heads/{branch}", commit)

    def lost(self) -> list[str]:
        output = read_entries(self.world.fleet, f"refs/heads/{DRAFT}")
        lost = []
        for number, (edit, file) in enumerate(self.edits):
            start = f"{self.package(number)}/"
            package = {path.removeprefix(start): entry for path, entry in output.items() if path.startswith(start)}
            if not is_kept(edit, file, package) and file not in self.reported[self.package(number)]:
                lost.append(f"{edit} in {file}")
        return lost


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(("name", "moment"), CASES, ids=[f"{kind}, {moment}" for kind, moment in CASES])
def test_no_edit_is_lost(tmp_path: Path, name: str, moment: str) -> None:
    kind = KINDS[name]
    result = Edited(tmp_path / "world", kind, chosen(kind, moment))
    result.evolve(1)
    result.sync()
    if moment == "on a draft":
        result.edit(DRAFT)
        result.sync()
    else:
        result.world.merge("berlin", "squash")
        if moment == "while an update is open":
            result.sync()
            result.evolve(2)
            result.sync()
        result.edit(CLUSTER)
        if moment != "before the pass after the merge":
            result.sync()
    result.evolve(3)

    result.sync()

    assert result.lost() == []
    assert result.world.sync().is_unchanged
