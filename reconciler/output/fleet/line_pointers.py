"""The JSON pointers of the values on the lines of a YAML document."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.krm.json_pointer import format_pointer, iterate_leaves
from reconciler.krm.yaml import YamlError, parse_yaml


def find_line_pointers(text: str) -> Mapping[int, str]:
    """Return the JSON pointer of the first value on each line, by the number of the line, starting at 1.

    If a value has several lines, all these lines have its pointer. Lines without a value, for example `spec:`, have no
    pointer. If `text` is not valid YAML, return {}.
    """
    try:
        documents = parse_yaml(text).documents
    except YamlError:
        return {}
    pointers: dict[int, str] = {}
    for document in documents[:1]:
        for path, value in iterate_leaves(document.data):
            line, pointer = document.find_line(path), format_pointer(path)
            count = value.count("\n") if isinstance(value, str) else 0
            for number in range(line, line + count + 1):
                pointers.setdefault(number, pointer)
    return pointers
