"""Line diffs of the resources in a draft. Resources are matched by group, kind, namespace and name, not by file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.changes.diffs import (
    MaskedDocument,
    SecretOptions,
    find_secret_options,
    format_file_diffs,
    mask_file_documents,
    read_object_data,
)
from reconciler.output.changes.objects import CHANGE_TYPE_ORDER, ChangeType, has_only_objects_in_file, is_kptfile
from reconciler.output.changes.package_changes import PackageChanges, select_differing_files
from reconciler.output.fleet.line_pointers import find_line_pointers
from reconciler.output.fleet.target_names import TargetNames
from reconciler.output.fleet.variants import list_noise
from reconciler.output.text import to_one_line

CONTEXT_LINES = 3
# Limit the size of a diff, because the run time of difflib is quadratic in the number of lines.
_MAX_LINES = 3_000
_MAX_CHARACTERS = 500_000
_MAX_MARKED_CHARACTERS = 500
_MAX_MARKED_WORDS = 60
# A word, or one other character, such as a space or a punctuation mark.
_WORD = re.compile(r"\w+|\W")
_Operation = tuple[str, int, int, int, int]
"""An operation of difflib: its kind, and the start and the end of its lines in the old and in the new text."""
TextPart = tuple[str, bool]
"""A part of a line, and whether it differs between the old and the new line."""


@dataclass(frozen=True)
class DiffLine:
    """One line with its number, starting at 1.

    Attributes:
        pointer: The JSON pointer of the value on an added line of a resource. "" for other lines.
    """

    number: int
    parts: tuple[TextPart, ...]
    pointer: str = ""

    @property
    def text(self) -> str:
        """The text of the line."""
        return "".join(text for text, _ in self.parts)


@dataclass(frozen=True)
class DiffBlock:
    """Consecutive lines of one kind: equal lines, changed lines, or lines that are not shown.

    Attributes:
        old: The lines before the change.
        new: The lines after the change.
        hidden_count: The number of equal lines that are not shown.
    """

    is_changed: bool = False
    old: tuple[DiffLine, ...] = ()
    new: tuple[DiffLine, ...] = ()
    hidden_count: int = 0

    @property
    def rows(self) -> tuple[tuple[DiffLine | None, DiffLine | None], ...]:
        """The lines of both sides next to each other."""
        return tuple(zip_longest(self.old, self.new))


@dataclass(frozen=True)
class ResourceDiff:
    """The diff of one resource, or of a file without resources.

    Attributes:
        title: The resource as `Kind namespace/name`, or the path of the file.
        file: The path of the file with the resource after the change, or before its removal.
        is_noise: Whether the change has no effect on the cluster, for example a new upstream in the Kptfile.
        note: The reason why no lines are shown. "" if lines are shown.
        reference: The resource as `Kind/namespace/name`, or as `Kind/name`. "" for a file without resources.
        is_reformatted: Whether only comments or the format of the file changed.
        is_omitted: Whether the lines can be requested, but are not shown because of the size of the whole draft.
    """

    title: str
    change_type: ChangeType
    file: str
    blocks: tuple[DiffBlock, ...] = ()
    is_noise: bool = False
    note: str = ""
    reference: str = ""
    is_reformatted: bool = False
    is_omitted: bool = False

    @property
    def changed_lines(self) -> int:
        """The number of added and removed lines."""
        return sum(len(block.old) + len(block.new) for block in self.blocks if block.is_changed)

    def compute_digest(self, names: TargetNames) -> str:
        """Return a digest of the shown lines. The names of the target do not affect the digest."""
        lines = [[names.mask_names(line.text) for line in (*block.old, *block.new)] for block in self.blocks]
        return compute_digest([names.mask_names(self.title), self.change_type, self.note, lines])


def build_resource_diffs(before: FileTree, after: FileTree, changes: PackageChanges) -> tuple[ResourceDiff, ...]:
    """Return the diffs between two versions of a package, in the order of importance. Secrets are masked.

    Removed resources come first, then workloads and other changed resources, added resources, and other files.
    """
    old, new = select_differing_files(before, after)
    old_data, new_data = _read_data(old), _read_data(new)
    options = find_secret_options(old_data, new_data)
    old_documents = _index_documents(old, None, options)
    new_documents = _index_documents(new, old_data, options)
    diffs = []
    for change in changes.objects:
        sides = [documents.get(change.key.reference) for documents in (old_documents, new_documents)]
        file = next((found.file for found in reversed(sides) if found), next(iter(sorted(change.files)), ""))
        texts = [None if found is None else found.text for found in sides]
        diff = _build_diff(change.name, change.change_type, file, texts, is_noise=change.is_local_config)
        diffs.append(replace(_add_pointers(diff, texts[1]), reference=format_reference(change.key)))
    other_paths = {file.path for file in changes.files} | {file.path for file in changes.kptfiles}
    reformatted = frozenset(file.path for file in changes.files if file.change_type == "reformatted")
    diffs += (
        replace(diff, is_reformatted=diff.file in reformatted)
        for diff in _build_file_diffs(old, new, other_paths, frozenset(list_noise(changes)))
    )
    return tuple(sorted(diffs, key=lambda diff: (diff.is_noise, CHANGE_TYPE_ORDER.index(diff.change_type))))


def format_reference(key: ObjectKey) -> str:
    """Return a resource as `Kind/namespace/name`, or as `Kind/name` if it has no namespace."""
    return "/".join(filter(None, (key.kind, key.namespace, key.name)))


def _add_pointers(diff: ResourceDiff, text: str | None) -> ResourceDiff:
    """Add the JSON pointer of its value to each added line of a diff. `text` is the text after the change."""
    if text is None or not any(block.is_changed and block.new for block in diff.blocks):
        return diff
    pointers = find_line_pointers(text)
    blocks = (
        replace(
            block, new=tuple(replace(line, pointer=pointers.get(line.number, "")) for line in block.new)
        ) if block.is_changed else block
        for block in diff.blocks
    )  # fmt: skip
    return replace(diff, blocks=tuple(blocks))


def _read_data(files: FileTree) -> Mapping[str, Any]:
    return {key: data for path, file in files.items() for key, data in read_object_data(path, file.data).items()}


def _index_documents(
    files: FileTree, previous: Mapping[str, Any] | None, options: SecretOptions
) -> Mapping[str, MaskedDocument]:
    return {
        document.key: document
        for path, file in files.items()
        if not is_kptfile(path)
        for document in mask_file_documents(path, file.data, previous, options)
    }


def _build_diff(
    title: str, change_type: ChangeType, file: str, texts: Sequence[str | None], *, is_noise: bool
) -> ResourceDiff:
    if max(len(text or "") for text in texts) > _MAX_CHARACTERS:
        note = f"The resource is not shown, because it has more than {_MAX_CHARACTERS} characters."
        return ResourceDiff(title, change_type, file, (), is_noise, note)
    old, new = ((text or "").splitlines() for text in texts)
    if max(len(old), len(new)) > _MAX_LINES:
        note = f"The resource is not shown, because it has more than {_MAX_LINES} lines."
        return ResourceDiff(title, change_type, file, (), is_noise, note)
    blocks = tuple(build_blocks(old, new))
    note = "" if any(block.is_changed for block in blocks) else "Only masked values changed."
    return ResourceDiff(title, change_type, file, blocks if not note else (), is_noise, note)


def _build_file_diffs(
    old: FileTree, new: FileTree, paths: Iterable[str], noise: frozenset[str]
) -> Iterator[ResourceDiff]:
    for path in sorted(paths):
        before, after = (FileTree({path: files[path]} if path in files else {}) for files in (old, new))
        change_type: ChangeType = "added" if path not in old else "removed" if path not in new else "changed"
        # Hide the diff of a file that has only resources, because the diffs of these resources contain all its changes.
        is_noise = path in noise or all(has_only_objects_in_file(path, files) for files in (old, new))
        for _, diff in format_file_diffs(before, after):
            blocks = tuple(_parse_unified_diff(diff.splitlines()[2:]))
            note = "" if blocks else diff.splitlines()[-1].strip("()")
            yield ResourceDiff(to_one_line(path), change_type, path, blocks, is_noise, note)


def build_blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffBlock]:
    """Yield the blocks of the diff between two texts. `old` and `new` are the lines of the texts."""
    operations = _compare_lines(old, new)
    for index, (kind, old_start, old_end, new_start, new_end) in enumerate(operations):
        if kind != "equal":
            yield _build_changed_block(old[old_start:old_end], new[new_start:new_end], old_start, new_start)
            continue
        count = old_end - old_start
        head = CONTEXT_LINES if index else 0
        tail = CONTEXT_LINES if index < len(operations) - 1 else 0
        if count <= head + tail + 1:
            head, tail = count, 0
        yield from _build_equal_blocks(old[old_start:old_end], old_start, new_start, head, tail)


def _compare_lines(old: Sequence[str], new: Sequence[str]) -> Sequence[_Operation]:
    """Return the operations of difflib that change `old` into `new`.

    In texts with more than 200 lines, difflib does not match frequent lines. Without this heuristic of difflib, a list
    of 1,000 items with one changed field each would take minutes. Equal lines at the start and at the end must always
    be matched. Therefore, they are not passed to difflib.
    """
    start, end = _count_common_ends(old, new)
    old_stop, new_stop = len(old) - end, len(new) - end
    operations: list[_Operation] = [("equal", 0, start, 0, start)] if start else []
    matcher = SequenceMatcher(None, old[start:old_stop], new[start:new_stop])
    operations += [
        (kind, old_start + start, old_end + start, new_start + start, new_end + start)
        for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes()
    ]
    return [*operations, ("equal", old_stop, len(old), new_stop, len(new))] if end else operations


def _count_common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal lines or words at the start of both sides, and at their end.

    The second number does not include lines or words that the first number includes.
    """
    limit = min(len(old), len(new))
    start = next((index for index in range(limit) if old[index] != new[index]), limit)
    rest = limit - start
    end = next((index for index in range(rest) if old[-1 - index] != new[-1 - index]), rest)
    return start, end


def _build_equal_blocks(
    lines: Sequence[str], old_start: int, new_start: int, head: int, tail: int
) -> Iterator[DiffBlock]:
    end = len(lines)
    for start, stop in ((0, head), (end - tail, end)):
        if start == end - tail and end - tail > head:
            yield DiffBlock(hidden_count=end - tail - head)
        if stop > start:
            yield DiffBlock(
                old=_number_lines(lines[start:stop], old_start + start),
                new=_number_lines(lines[start:stop], new_start + start),
            )


def _number_lines(lines: Iterable[str], start: int) -> tuple[DiffLine, ...]:
    return tuple(DiffLine(number, ((line, False),)) for number, line in enumerate(lines, start + 1))


def _build_changed_block(old: Sequence[str], new: Sequence[str], old_start: int, new_start: int) -> DiffBlock:
    marked = [_mark_difference(before, after) for before, after in zip(old, new, strict=False)]
    plain = [[((line, False),) for line in lines[len(marked) :]] for lines in (old, new)]
    parts = ([pair[0] for pair in marked] + plain[0], [pair[1] for pair in marked] + plain[1])
    return DiffBlock(
        True,
        tuple(DiffLine(number, line) for number, line in enumerate(parts[0], old_start + 1)),
        tuple(DiffLine(number, line) for number, line in enumerate(parts[1], new_start + 1)),
    )


def _mark_difference(old: str, new: str) -> tuple[tuple[TextPart, ...], tuple[TextPart, ...]]:
    """Split two lines into marked and unmarked parts. The marked parts contain the words that differ."""
    if max(len(old), len(new)) > _MAX_MARKED_CHARACTERS:
        return ((old, False),), ((new, False),)
    words = _WORD.findall(old), _WORD.findall(new)
    start, end = _count_common_ends(*words)
    inner = [side[start : len(side) - end] for side in words]
    spans = [(0, len(inner[0]), 0, len(inner[1]))]
    if max(map(len, inner)) <= _MAX_MARKED_WORDS:
        operations = SequenceMatcher(None, inner[0], inner[1], autojunk=False).get_opcodes()
        spans = [operation[1:] for operation in operations if operation[0] != "equal"]
    old_spans = [(first + start, last + start) for first, last, _, _ in spans]
    new_spans = [(first + start, last + start) for _, _, first, last in spans]
    return _split_line(words[0], old_spans), _split_line(words[1], new_spans)


def _split_line(words: Sequence[str], spans: Iterable[tuple[int, int]]) -> tuple[TextPart, ...]:
    """Divide a line into marked and unmarked parts. `spans` contains the ranges of the marked words, in order."""
    parts, position = [], 0
    for start, end in spans:
        parts += [("".join(words[position:start]), False), ("".join(words[start:end]), True)]
        position = end
    parts.append(("".join(words[position:]), False))
    return tuple(part for part in parts if part[0])


def _parse_unified_diff(lines: Iterable[str]) -> Iterator[DiffBlock]:
    """Yield the blocks of a unified diff of one file."""
    old_number = new_number = 0
    old: list[str] = []
    new: list[str] = []
    for line in [*lines, "@@ -0,0 +0,0 @@"]:
        if line.startswith(("-", "+")):
            (old if line[0] == "-" else new).append(line[1:])
            continue
        if old or new:
            yield _build_changed_block(old, new, old_number, new_number)
            old_number, new_number = old_number + len(old), new_number + len(new)
            old, new = [], []
        if line.startswith("@@ "):
            old_number, new_number = (max(int(part[1:].split(",")[0]) - 1, 0) for part in line.split()[1:3])
        elif line.startswith(" "):
            yield DiffBlock(old=_number_lines([line[1:]], old_number), new=_number_lines([line[1:]], new_number))
            old_number, new_number = old_number + 1, new_number + 1
