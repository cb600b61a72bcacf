"""The documents of the output of `helm template`, and the resources that they contain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from reconciler.krm.findings import SourceLocation
from reconciler.krm.yaml import DEFAULT_YAML_LIMITS, Document, normalize_document
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.resource import KrmResource

_SEPARATOR = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_SOURCE_LINE = re.compile(r"\s*^# Source: (\S[^\r\n]*)\r?\n?", re.MULTILINE)


@dataclass(frozen=True)
class OutputText:
    """The text of one document of the output.

    Attributes:
        template: Path of the template file, relative to the folder of the chart.
        index: Number of the document among the documents of this template file, from 1.
        text: The text of the document without `---` and without the line `# Source`.
        has_stable_name: Whether the name of the resource is equal in each render.
        rewrite_reason: The reason why the text was written again from its data, or "".
    """

    template: str
    index: int
    text: str
    has_stable_name: bool = True
    rewrite_reason: str = ""

    @property
    def place(self) -> str:
        """The template file and the number of the document for messages."""
        return f"{self.template}, document {self.index}"


@dataclass(frozen=True)
class RenderedResource(KrmResource):
    """One rendered resource, and its location in the output.

    If the text of the resource was written again from its data, `rewrite_reasons` contains the reasons.
    """

    source: OutputText
    document: Document
    rewrite_reasons: tuple[str, ...] = ()

    @property
    def data(self) -> Any:
        """The content of the resource."""
        return self.document.data

    @cached_property
    def label(self) -> str:
        """The kind, namespace and name for messages, e.g. "Secret/shop/db"."""
        return "/".join(filter(None, (self.kind, self.namespace, self._stable_name)))

    @cached_property
    def _stable_name(self) -> str:
        return self.name if self.source.has_stable_name else ""

    @property
    def location(self) -> SourceLocation:
        """The location of the resource in findings."""
        return SourceLocation(object=self.key._replace(name=self._stable_name).reference)


def split_output(output: str, chart_name: str, default_template: str = "(no template)") -> tuple[OutputText, ...]:
    """Return the documents of the output of a program, without empty documents.

    In the output of `helm template`, a line `# Source` before a document contains the path of its template. Other
    programs do not write such lines. If a document has no such line, it has the same template as the previous document,
    because a file in the folder `crds` can contain several documents.

    Args:
        default_template: The template of all documents before the first line `# Source`.
    """
    texts: list[OutputText] = []
    counts: dict[str, int] = {}
    template = default_template
    for text in _SEPARATOR.split(output):
        match = _SOURCE_LINE.match(text)
        if match:
            template = match[1].removeprefix(f"{chart_name}/")
        content = (text[match.end() :] if match else text).lstrip("\r\n")
        if content.strip():
            counts[template] = counts.get(template, 0) + 1
            texts.append(OutputText(template, counts[template], content))
    return tuple(texts)


def parse_output_text(text: OutputText, *, is_strict: bool = False) -> Iterator[RenderedResource]:
    """Yield the resources of a document. Raises YamlError."""
    normalized = normalize_document(text.text, DEFAULT_YAML_LIMITS, allow_duplicate_keys=not is_strict)
    if normalized is None:
        return
    reasons = (*normalized.reasons, *filter(None, (text.rewrite_reason,)))
    resource = RenderedResource(text, normalized.document, reasons)
    items = resource.data.get("items") if resource.kind == "List" else None
    if not isinstance(items, list):
        yield resource
        return
    for item in items:
        yield RenderedResource(text, Document.from_data(item), (*reasons, "an item of a List"))
