"""The exchange with a function outside this process: the text it reads, and what its answer comes to (kpt.md 11.5, 12).

Who starts it, and what the world may do to it, is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.krm.strict_json import read_json
from reconciler.krm.yaml import Path, YamlError, YamlLimits, emit, parse
from reconciler.packages.functions.function import Config, Item, Output, Result
from reconciler.packages.functions.wire import resource_list, returned_items, returned_results
from reconciler.packages.functions.words import clean_words

_GROUP = "config.kubernetes.io/"
_NOT_A_LIST = "its output must be a ResourceList of config.kubernetes.io/v1"
# an item of a list stands two levels deeper than in its file
_DEPTH = YamlLimits().depth + 2
_LONGEST_ERROR = 500


@dataclass(frozen=True)
class Answer:
    """How a call ended: its exit code, what it wrote, and what it said beside (kpt.md 12)."""

    code: int
    text: bytes
    log: str = ""


@dataclass(frozen=True)
class _Read:
    """An answer's document, and its line comments by path."""

    data: Mapping[str, Any]
    comments: Mapping[Path, str]


def request_text(items: Sequence[Item], config: Config | None) -> str:
    """Return the resource list that a function reads, as YAML; line comments stand where the files have them."""
    wire = resource_list(items, config)
    entries = [_entry(item, data) for item, data in zip(items, wire["items"], strict=True)]
    head = emit({"apiVersion": wire["apiVersion"], "kind": wire["kind"]})
    body = "".join(["items:\n", *entries]) if entries else "items: []\n"
    return head + body + emit({"functionConfig": wire["functionConfig"]})


def read_answer(items: Sequence[Item], answer: Answer, most_bytes: int) -> Output:
    """Return what a function's answer comes to.

    An exit code other than 0 is a failure; its results count all the same. What is no ResourceList, or could not be
    written to files, is refused.
    """
    read = _read(answer.text, most_bytes)
    results = returned_results(read.data) if isinstance(read, _Read) else ()
    if answer.code:
        # some say on their output what others say beside it
        said = answer.log or (clean_words(answer.text.decode(errors="replace")) if isinstance(read, str) else "")
        return _failed(items, answer, results, _ending(answer.code, said))
    if isinstance(read, str):
        return _failed(items, answer, (), read)
    returned = returned_items(items, read.data, sorts=False)
    if isinstance(returned, str):
        return _failed(items, answer, results, returned)
    return Output(tuple(_commented(returned, read.comments)), results, log=answer.log)


def refused_answer(items: Sequence[Item], log: str, why: str) -> Output:
    """Return the output of a function whose answer was not even read to its end."""
    return Output(tuple(items), failed=True, log=log, exit_code=1, error=why)


def _failed(items: Sequence[Item], answer: Answer, results: tuple[Result, ...], error: str) -> Output:
    return Output(tuple(items), results, failed=True, log=answer.log, exit_code=answer.code or 1, error=error)


def _ending(code: int, said: str) -> str:
    line = "; ".join(line.strip() for line in said.splitlines() if line.strip())
    shortened = line if len(line) <= _LONGEST_ERROR else f"{line[:_LONGEST_ERROR]}…"
    return f"it ended with exit code {code}" + (f": {shortened}" if shortened else "")


def _entry(item: Item, data: Any) -> str:
    """Return one item of the list: the text of its document, moved right; fresh text where that would say otherwise."""
    text = _indented(item.document.with_data(data).text)
    try:
        read = parse(text).documents
    except YamlError:
        read = ()
    # directives, and line ends that only YAML knows, cannot be moved
    return text if [one.data for one in read] == [[data]] else _indented(emit(data))


def _indented(text: str) -> str:
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(["-", *(f"  {line}" if line.strip() else line for line in lines)]) + "\n"


def _read(text: bytes, most_bytes: int) -> _Read | str:
    """Return the document that a function wrote, or why it is none that we take."""
    read = _read_json(text) or _read_yaml(text, most_bytes)
    if isinstance(read, str):
        return f"{_NOT_A_LIST}: {read}"
    kind, version = read.data.get("kind"), str(read.data.get("apiVersion"))
    if kind != "ResourceList" or not version.startswith(_GROUP):
        return f'{_NOT_A_LIST}, not "{version} {kind}"'
    return read


def _read_json(text: bytes) -> _Read | str | None:
    """Return a JSON document, or what must not be in one; None for what may still be YAML."""
    if not text.lstrip().startswith(b"{"):
        return None
    try:
        data = read_json(text)
        # half of a surrogate pair is no text that a file can hold
        json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError:
        return None
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "it must not be nested so deeply"
    return _Read(data, {})


def _read_yaml(text: bytes, most_bytes: int) -> _Read | str:
    try:
        documents = parse(text, YamlLimits(file_bytes=most_bytes, depth=_DEPTH)).documents
    except YamlError as error:
        return f"line {error.line}: {error.message}"
    if len(documents) != 1:
        return f"it must be one document, not {len(documents)}"
    data = documents[0].data
    if not isinstance(data, dict):
        return f"it must be a mapping, not {type(data).__name__}"
    return _Read(data, documents[0].comments())


def _commented(returned: Iterable[Item], comments: Mapping[Path, str]) -> Iterator[Item]:
    """Yield the items with the comments that the function wrote; those it dropped are still in their documents.

    That is kpt.md 11.5 the other way round: an item keeps its own text but for what was changed, so that a comment
    can never end up on another resource (kpt#4211).
    """
    by_item: dict[Any, list[tuple[Path, str]]] = {}
    for path, comment in comments.items():
        if len(path) > 2 and path[0] == "items":
            by_item.setdefault(path[1], []).append((path[2:], comment))
    for number, item in enumerate(returned):
        for path, comment in by_item.get(number, ()):
            item = _with_comment(item, path, comment)
        yield item


def _with_comment(item: Item, path: Path, comment: str) -> Item:
    if item.document.comment(path) == comment:
        return item
    try:
        return item.with_comment(path, comment)
    except YamlError:
        # our own annotations are gone, and a value that shares its line with others has no place for a comment
        return item
