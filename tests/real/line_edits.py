"""Line edits of packages by upstream and users, and the expected result, which needs no merge.

Each edit changes lines of its own, so that the merge has no choice: the expected text is known to the byte.
A seed selects the edits. The YAML parser is not the one of the project.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import yaml

Part: TypeAlias = Literal["value", "comment", "gone", "before", "after"]
Lines: TypeAlias = dict[tuple[str, int, Part], str]
"""What becomes of a line of a file: another value or comment, nothing at all, or lines before or after it."""

_ENTRY = re.compile(r"^(?P<start>\s*[\w./-]+:[ ]+)(?P<value>[^#\s'\"][^#]*?)(?P<comment>\s+#.*)?$")
_WORKLOADS = {"Deployment", "StatefulSet", "DaemonSet"}
_OURS = ("kpt.dev", "kubernetes.io", "k8s.io", "nephio.org")
_RESERVED = {"apiVersion", "kind", "name", "namespace"}


@dataclass(frozen=True)
class Leaf:
    """One mapping entry on a line of its own: the file, the line, and the keys of its path."""

    file: str
    line: int
    path: tuple[str, ...]
    is_listed: bool
    text: str
    siblings: int

    @property
    def pointer(self) -> str:
        """Return the JSON pointer of the entry."""
        return "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in self.path)

    @property
    def indent(self) -> str:
        """Return the indentation of the line."""
        return self.text[: len(self.text) - len(self.text.lstrip())]

    def changed(self, to: str) -> str:
        """Return another value of the same type."""
        value = _split(self.text)["value"]
        if value in ("true", "false"):
            return "false" if value == "true" else "true"
        return f"{value}{to}" if value.isdigit() else f"{value}-{to}"

    @property
    def has_comment(self) -> bool:
        """Return whether the line has a comment."""
        return bool(_split(self.text)["comment"])


@dataclass
class Side:
    """The edits of one side in a package."""

    lines: Lines = field(default_factory=dict)
    files: dict[str, str | None] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    moves: dict[str, str] = field(default_factory=dict)
    """Files whose last document moves into a file of its own."""

    def then(self, later: Side) -> Side:
        """Return these edits and later ones."""
        pairs = ((getattr(self, part), getattr(later, part)) for part in ("lines", "files", "renames", "moves"))
        return Side(*({**earlier, **more} for earlier, more in pairs))


def applied(package: Mapping[str, str], *sides: Side) -> dict[str, str]:
    """Return the package with the edits of all sides. The last side wins where two change the same line."""
    whole = Side()
    for side in sides:
        whole = whole.then(side)
    texts = {path: _edited(path, text, whole.lines) for path, text in package.items()} | whole.files
    for path, target in whole.moves.items():
        remaining, _, moved = (texts[path] or "").rpartition("---\n")
        texts |= {path: remaining, target: moved}
    return {whole.renames.get(path, path): text for path, text in texts.items() if text is not None}


def _edited(path: str, text: str, lines: Lines) -> str:
    if not any(file == path for file, _, _ in lines):
        return text
    edited = (_line(path, number, line, lines) for number, line in enumerate(text.splitlines(keepends=True)))
    return "".join(edited)


def _line(path: str, number: int, line: str, lines: Lines) -> str:
    mapping: dict[Part, str] = {part: text for (file, at, part), text in lines.items() if (file, at) == (path, number)}
    if not mapping:
        return line
    return mapping.get("before", "") + _changed(line, mapping) + mapping.get("after", "")


def _changed(line: str, mapping: Mapping[Part, str]) -> str:
    if "gone" in mapping:
        return ""
    if "value" not in mapping and "comment" not in mapping:
        return line
    parts = _split(line.rstrip("\n"))
    value, comment = mapping.get("value", parts["value"]), parts["comment"] or ""
    return f"{parts['start']}{value}{mapping.get('comment', comment)}\n"


def _split(line: str) -> dict[str, str]:
    match = _ENTRY.match(line)
    assert match, line
    return match.groupdict()


# entries that can be edited


def leaves(package: Mapping[str, str]) -> list[Leaf]:
    """Return the entries of all resources that have a line of their own."""
    return [leaf for path, text in sorted(package.items()) for leaf in _leaves(path, text)]


def containers(package: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield the list of containers of every workload, with its file."""
    for path, text in sorted(package.items()):
        for root in _resources(path, text):
            result = _find(root, ("spec", "template", "spec", "containers"))
            is_workload = _entries(root)["kind"].value in _WORKLOADS
            if is_workload and isinstance(result, yaml.SequenceNode) and not result.flow_style:
                yield path, result


def last_line(node: Any) -> int:
    """Return the number of the last line of a node."""
    if isinstance(node, yaml.ScalarNode):
        return int(node.end_mark.line - (node.style in ("|", ">")))
    if node.flow_style or not node.value:
        return int(node.end_mark.line)
    last = node.value[-1]
    return last_line(last[1] if isinstance(node, yaml.MappingNode) else last)


def resource_files(package: Mapping[str, str]) -> list[str]:
    """Return the files that contain only resources."""
    return [path for path, text in sorted(package.items()) if _resources(path, text)]


def _resources(path: str, text: str) -> Sequence[Any]:
    if not path.endswith((".yaml", ".yml")) or "{{" in text or "\r" in text or not text.endswith("\n"):
        return ()
    roots: list[Any] = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
    return roots if all(map(_is_resource, roots)) else ()


def _is_resource(root: Any) -> bool:
    if not isinstance(root, yaml.MappingNode) or not {"apiVersion", "kind", "metadata"} <= _entries(root).keys():
        return False
    return isinstance(_find(root, ("metadata", "name")), yaml.ScalarNode)


def _leaves(path: str, text: str) -> Iterator[Leaf]:
    lines = text.splitlines()
    for root in _resources(path, text):
        is_workload = _entries(root)["kind"].value in _WORKLOADS
        yield from _below(path, lines, root, (), is_workload=is_workload)


def _below(path: str, lines: list[str], node: Any, keys: tuple[str, ...], *, is_workload: bool) -> Iterator[Leaf]:
    if isinstance(node, yaml.SequenceNode) and is_workload and keys[-3:] == ("template", "spec", "containers"):
        for index, element in enumerate(node.value):
            yield from _below(path, lines, element, (*keys, str(index)), is_workload=is_workload)
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return
    for key, value in node.value:
        here = (*keys, key.value)
        line = key.start_mark.line
        if _is_leaf(here, key, value, lines[line], lines[line - 1] if line else ""):
            yield Leaf(path, line, here, any(item.isdigit() for item in here), lines[line], len(node.value))
        yield from _below(path, lines, value, here, is_workload=is_workload)


def _is_leaf(path: tuple[str, ...], key: Any, value: Any, line: str, above: str) -> bool:
    """Return whether an entry can be edited. Identities and entries below a comment cannot."""
    return (
        isinstance(value, yaml.ScalarNode)
        and not value.style
        and key.start_mark.line == value.end_mark.line
        and path[-1] not in _RESERVED
        and len(path) > 1 + (path[0] == "metadata")
        and not any(mark in path[-1] for mark in _OURS)
        and _ENTRY.match(line) is not None
        and not above.lstrip().startswith("#")
        and bool(above.strip())
        and "kpt-set" not in line
    )


def _entries(root: Any) -> dict[str, Any]:
    return {key.value: value for key, value in root.value if isinstance(key, yaml.ScalarNode)}


def _find(node: Any, path: Iterable[str]) -> Any:
    for key in path:
        node = _entries(node).get(key) if isinstance(node, yaml.MappingNode) else None
    return node


# generated edits


@dataclass(frozen=True)
class PackageEdits:
    """All edits of a package: two upstream updates, local changes, and fields that both sides change."""

    first: Mapping[str, str]
    second: Side
    third: Side
    people: Side
    on_the_draft: Side
    conflicts: frozenset[tuple[str, str]]
    """The file and the pointer of every field that both sides change differently, in the second version."""


ADDED = "added-upstream.yaml"
_NEW_FILE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: added-upstream\ndata:\n  from: upstream # two\n"
_SIDECAR = "{0}- name: of-ours\n{0}  image: example.com/ours:1 # by hand\n"
_CONTAINER = "{0}- name: of-theirs\n{0}  image: example.com/theirs:2\n"


def generate_edits(package: Mapping[str, str], seed: str) -> PackageEdits:
    """Generate the edits of a package from a seed."""
    draw = random.Random(seed)
    leafs = leaves(package)
    draw.shuffle(leafs)
    generator = _EditGenerator(dict(package), draw)
    generator.files()
    generator.containers()
    generator.fields([leaf for leaf in leafs if leaf.file not in generator.gone])
    conflicts = frozenset((generator.renamed(leaf.file), leaf.pointer) for leaf in generator.both)
    return PackageEdits(package, generator.second, generator.third, generator.people, generator.on_the_draft, conflicts)


class _EditGenerator:
    def __init__(self, package: dict[str, str], draw: random.Random) -> None:
        self.package = package
        self.draw = draw
        self.second, self.third, self.people, self.on_the_draft = Side(), Side(), Side(), Side()
        self.gone: set[str] = set()
        self.both: list[Leaf] = []

    def renamed(self, path: str) -> str:
        return self.second.renames.get(path, path)

    def files(self) -> None:
        """Add, change, rename, divide and remove files in upstream. Remove one file and add one locally."""
        paths = resource_files(self.package)
        self.draw.shuffle(paths)
        self.second.files[ADDED] = _NEW_FILE
        self.third.files[ADDED] = _NEW_FILE.replace("# two", "# three")
        self.people.files["ours.txt"] = "Kept by us.\n"
        if len(paths) > 3:
            self.second.renames[paths[0]] = _in_subfolder(paths[0], "moved")
            self.people.files[paths[1]] = None
            self.third.files[paths[2]] = None
            self.gone = {paths[1], paths[2]}
        for path in resource_files(self.package):
            if path not in self.gone | self.second.renames.keys() and "\n---\n" in self.package[path]:
                self.third.moves[path] = _in_subfolder(path, "apart")
        for path in sorted(path for path in self.package if path.endswith(".md"))[:1]:
            self.second.files[path] = self.package[path] + "More.\n"

    def containers(self) -> None:
        """Add a container at the start locally, and one at the end in upstream."""
        for path, node in containers(self.package):
            if path not in self.gone and not node.value[0].flow_style:
                first, last, indent = node.start_mark.line, last_line(node), " " * node.start_mark.column
                self.people.lines[path, first, "before"] = _SIDECAR.format(indent)
                self.second.lines[path, last, "after"] = _CONTAINER.format(indent)

    def fields(self, leafs: list[Leaf]) -> None:
        """Generate every kind of edit for every side, each on its own line, while lines are left."""
        kinds = (self._both, self._explain, self._upstream, self._set, self._drop, self._add, self._add_upstream,
                 self._explain_upstream, self._drop_here, self._alike, self._value_and_comment, self._later,
                 self._at_review)  # fmt: skip
        mappings: set[tuple[str, tuple[str, ...]]] = set()
        for kind, leaf in zip(kinds * 2, leafs, strict=False):
            # One edit per mapping: no mapping becomes empty, and a new key has one possible position.
            if (leaf.file, leaf.path[:-1]) not in mappings or kind not in (self._drop, self._drop_here):
                kind(leaf)
                mappings.add((leaf.file, leaf.path[:-1]))

    def _both(self, leaf: Leaf) -> None:
        if not leaf.is_listed and leaf.changed("a") != leaf.changed("b"):
            self.people.lines[leaf.file, leaf.line, "value"] = leaf.changed("8")
            self.second.lines[leaf.file, leaf.line, "value"] = leaf.changed("9")
            self.both.append(leaf)

    def _explain(self, leaf: Leaf) -> None:
        if not leaf.has_comment:
            self.people.lines[leaf.file, leaf.line, "comment"] = " # ours"

    def _upstream(self, leaf: Leaf) -> None:
        self.second.lines[leaf.file, leaf.line, "value"] = leaf.changed("2")
        self.third.lines[leaf.file, leaf.line, "value"] = leaf.changed("3")

    def _set(self, leaf: Leaf) -> None:
        self.people.lines[leaf.file, leaf.line, "value"] = leaf.changed("7")

    def _drop(self, leaf: Leaf) -> None:
        if leaf.siblings > 2:
            self.second.lines[leaf.file, leaf.line, "gone"] = ""

    def _drop_here(self, leaf: Leaf) -> None:
        if leaf.siblings > 2:
            self.people.lines[leaf.file, leaf.line, "gone"] = ""

    def _add(self, leaf: Leaf) -> None:
        self.people.lines[leaf.file, leaf.line, "before"] = f"{leaf.indent}ours{leaf.line}: kept # by hand\n"

    def _add_upstream(self, leaf: Leaf) -> None:
        self.second.lines[leaf.file, leaf.line, "before"] = f"{leaf.indent}theirs{leaf.line}: new # since two\n"

    def _explain_upstream(self, leaf: Leaf) -> None:
        self.second.lines[leaf.file, leaf.line, "comment"] = " # by upstream"

    def _alike(self, leaf: Leaf) -> None:
        self.people.lines[leaf.file, leaf.line, "value"] = leaf.changed("5")
        self.second.lines[leaf.file, leaf.line, "value"] = leaf.changed("5")

    def _value_and_comment(self, leaf: Leaf) -> None:
        self.second.lines[leaf.file, leaf.line, "value"] = leaf.changed("4")
        self.people.lines[leaf.file, leaf.line, "comment"] = " # mind this"

    def _later(self, leaf: Leaf) -> None:
        self.third.lines[leaf.file, leaf.line, "value"] = leaf.changed("6")

    def _at_review(self, leaf: Leaf) -> None:
        self.on_the_draft.lines[leaf.file, leaf.line, "comment"] = " # at review"


def _in_subfolder(path: str, folder: str) -> str:
    start, slash, name = path.rpartition("/")
    return f"{start}{slash}{folder}/{name}"
