"""Normalization of YAML documents that templates wrote: text that parsers read differently is written again.

Template engines write tabs, duplicate keys and values such as `yes` or `0644`, which YAML 1.1 and YAML 1.2 read as
different values. A document without such text keeps its text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from reconciler.krm.yaml.compose import YamlBudget, compose
from reconciler.krm.yaml.document import Document
from reconciler.krm.yaml.errors import YamlError, YamlLimits
from reconciler.krm.yaml.file import resolve_core_scalar
from reconciler.krm.yaml.layout import TextLayout, TextSpan
from reconciler.krm.yaml.nodes import AliasNode, ScalarNode, YamlNode
from reconciler.krm.yaml.resolve import resolve_plain
from reconciler.lazy_dataclasses import dataclass

TABS = "tabs"
DUPLICATE_KEYS = "duplicate keys"
VERSION_DEPENDENT_VALUES = "values that YAML 1.1 and YAML 1.2 read differently"

# API servers use the Go library yaml.v2, which reads these words as booleans in addition to those of `resolve_plain`.
_SHORT_BOOLEANS = {"y": True, "Y": True, "n": False, "N": False}
# Match each text that can contain a scalar whose value depends on the YAML version. Most documents have no match, so
# that their scalars are not compared.
_CANDIDATE = re.compile(
    r"(?:^|[\s\[{,:?-])(?:[yYnN]|[yY][eE][sS]|[nN][oO]|[oO][nN]|[oO][fF][fF]|[-+]?(?:0[0-9bBxXoO_]|[0-9.]+_)[\w.+-]*)"
    r"(?=[\s\]},:]|\Z)",
    re.MULTILINE,
)
# The lookbehind and the possessive quantifier make the search fast: without them, it would start again at each space of
# an indentation.
_TRAILING_SPACES = re.compile(r"(?<![ \t])[ \t]++(?=\r?$)", re.MULTILINE)


@dataclass(frozen=True)
class NormalizedDocument:
    """A document with normalized text.

    If the text had to be generated from the data, `reasons` contains the reasons. Otherwise, `reasons` is empty.
    """

    document: Document
    reasons: tuple[str, ...] = ()


def normalize_document(text: str, limits: YamlLimits, *, allow_duplicate_keys: bool) -> NormalizedDocument | None:
    """Parse the text of one document and normalize it. Return None if the document is empty.

    Values are read as API servers read them. The text ends with one line end and has no spaces at the ends of lines,
    except in scalars with several lines.

    Raises:
        YamlError: The text is not valid YAML, or exceeds `limits`.
    """
    if len(text) > limits.file_bytes:
        raise YamlError("YamlTooLarge", f"a document must not be larger than {limits.file_bytes} bytes")
    has_duplicates = False
    try:
        root = compose(text, YamlBudget(limits))
    except YamlError as error:
        if error.code != "YamlDuplicateKey" or not allow_duplicate_keys:
            raise
        has_duplicates = True
        root = compose(text, YamlBudget(limits), _resolve_like_api_server, use_last_duplicate=True)
    if root is None:
        return None
    has_different_values = _has_version_dependent_values(text, root)
    reasons = {
        DUPLICATE_KEYS: has_duplicates,
        TABS: "\t" in text and _has_separating_tabs(text, root),
        VERSION_DEPENDENT_VALUES: has_different_values,
    }
    found = tuple(reason for reason, is_found in reasons.items() if is_found)
    if not found:
        document = Document(text, 1, root)
        return NormalizedDocument(_remove_trailing_spaces(document).as_only_document())
    if has_different_values:
        root = compose(text, YamlBudget(limits), _resolve_like_api_server, use_last_duplicate=has_duplicates)
    return NormalizedDocument(Document.from_data(root.data if root else None), found)


def _resolve_like_api_server(text: str) -> Any:
    return _SHORT_BOOLEANS[text] if text in _SHORT_BOOLEANS else resolve_plain(text)


def _has_version_dependent_values(text: str, root: YamlNode) -> bool:
    if not _CANDIDATE.search(text):
        return False
    plain_texts = {scalar.value for scalar in _iterate_scalars(root) if not scalar.style and scalar.tag is None}
    return any(repr(_resolve_like_api_server(value)) != repr(resolve_core_scalar(value)) for value in plain_texts)


def _iterate_scalars(root: YamlNode) -> Iterator[ScalarNode]:
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, ScalarNode):
            yield node
        elif not isinstance(node, AliasNode):
            pending += node.children


def _has_separating_tabs(text: str, root: YamlNode) -> bool:
    """Return whether a tab separates or indents values. Tabs in scalars and at the ends of lines are allowed."""
    spans = _find_scalar_spans(root)
    trailing = {match.end() for match in _TRAILING_SPACES.finditer(text)}
    return any(
        match.end() not in trailing and not _is_in_span(match.start(), spans) for match in re.finditer("\t+", text)
    )


def _is_in_span(offset: int, spans: list[TextSpan]) -> bool:
    index = bisect_right(spans, offset, key=itemgetter(0)) - 1
    return index >= 0 and offset < spans[index][1]


def _remove_trailing_spaces(document: Document) -> Document:
    text = document.text
    matches = list(_TRAILING_SPACES.finditer(text))
    if not matches:
        return document
    layout = TextLayout(text)
    lines = ((layout.line(start), layout.line(end - 1)) for start, end in _find_scalar_spans(document.root))
    kept_lines = {line for first, last in lines if first != last for line in range(first, last + 1)}
    parts, position = [], 0
    for match in matches:
        if layout.line(match.start()) not in kept_lines:
            parts.append(text[position : match.start()])
            position = match.end()
    return document.with_equal_text("".join(parts) + text[position:]) or document


def _find_scalar_spans(root: YamlNode) -> list[TextSpan]:
    return sorted((scalar.start, scalar.end) for scalar in _iterate_scalars(root))
