"""The published resources of a package as its page shows them: as YAML, or as a tree of fields.

In YAML, the page marks each value that a policy, a template, a function or a person set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.inspect.package_content import PublishedResource
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.line_pointers import find_line_pointers
from reconciler.output.report.model import ReportedValue
from reconciler.output.text import format_object_reference


@dataclass(frozen=True)
class TextPart:
    """Consecutive lines of a resource, up to a line with a value that a policy, template, function or person set.

    Attributes:
        value: The value on the last line. None for the remaining lines of the resource.
    """

    text: str
    value: ReportedValue | None = None


@dataclass(frozen=True)
class ShownResource:
    """A resource on a page.

    Attributes:
        value_count: The number of values that a policy, a template, a function or a person set.
    """

    resource: PublishedResource
    parts: tuple[TextPart, ...]
    value_count: int
    is_tree: bool


def list_shown_resources(
    resources: Iterable[PublishedResource], values: Sequence[ReportedValue], tree: str
) -> tuple[ShownResource, ...]:
    """Return the data that the page requires to show the resources.

    Args:
        values: The values that the page highlights in the resources.
        tree: The reference of the resource that is shown as a tree.
    """
    by_title: dict[str, list[ReportedValue]] = {}
    for value in values:
        by_title.setdefault(format_object_reference(value.resource), []).append(value)
    shown = []
    for resource in resources:
        own = by_title.get(resource.title, [])
        parts = _split_text(resource.text, _find_lines(resource.text, own) if own else {})
        shown.append(ShownResource(resource, parts, len(own), resource.reference == tree))
    return tuple(shown)


def _find_lines(text: str, values: Iterable[ReportedValue]) -> Mapping[int, ReportedValue]:
    """Return the values by the number of their first line. Omit values that the text does not contain.

    If several values start on one line, only the first of them is returned.
    """
    pointers = sorted(find_line_pointers(text).items())
    lines: dict[int, ReportedValue] = {}
    for value in values:
        # A pointer such as `/data/app.yaml!/size` selects a field inside a text. Use the line where the text starts.
        outer = value.pointer.partition("!")[0]
        line = next((line for line, pointer in pointers if f"{pointer}/".startswith(f"{outer}/")), 0)
        if line:
            lines.setdefault(line, value)
    return lines


def _split_text(text: str, values: Mapping[int, ReportedValue]) -> tuple[TextPart, ...]:
    parts, start, lines = [], 0, text.split("\n")
    for number, value in sorted(values.items()):
        parts.append(TextPart("\n".join(lines[start:number]), value))
        start = number
    rest = "\n".join(lines[start:])
    return (*parts, TextPart(rest)) if rest else tuple(parts)
