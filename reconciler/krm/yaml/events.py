"""Reading of selected fields of a large YAML text, such as the index of a chart repository.

The reader skips all other fields without creating objects for them. It needs a tenth of the time of a complete parse.
Anchors, aliases, merge keys and types have no meaning: each scalar is a text.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml
from yaml._yaml import CParser

from reconciler.krm.yaml.errors import YamlError

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class YamlEventReader:
    """Reads the first document of a text from its start to its end.

    A value that the caller does not read is skipped. For example, this code prints the field `name` of all items:

        for key in reader.read_mapping():
            if key == "items":
                for _ in reader.read_sequence():
                    for field in reader.read_mapping():
                        if field == "name":
                            print(reader.read_text())

    All methods raise YamlError if the text is not valid YAML.
    """

    def __init__(self, source: str | bytes) -> None:
        """Create a reader of a text. The text is a string, or bytes in UTF-8."""
        self._parser = CParser(source)
        self._count = 0
        while not isinstance(self._peek(), (yaml.NodeEvent, yaml.StreamEndEvent)):
            self._next()

    def read_mapping(self) -> Iterator[str]:
        """Yield each key of a mapping. Yield "" for a key that is not a scalar.

        If the next value is not a mapping, skip the value and yield nothing.
        """
        if not isinstance(self._peek(), yaml.MappingStartEvent):
            self.skip()
            return
        self._next()
        while not isinstance(self._peek(), yaml.MappingEndEvent):
            key = self.read_text()
            count = self._count
            yield key
            if count == self._count:
                self.skip()
        self._next()

    def read_sequence(self) -> Iterator[int]:
        """Yield the index of each item of a sequence. Skip a value that is not a sequence."""
        if not isinstance(self._peek(), yaml.SequenceStartEvent):
            self.skip()
            return
        self._next()
        index = 0
        while not isinstance(self._peek(), yaml.SequenceEndEvent):
            count = self._count
            yield index
            if count == self._count:
                self.skip()
            index += 1
        self._next()

    def read_text(self) -> str:
        """Return the text of a scalar. Return "" for null and for a value that is not a scalar."""
        event = self._peek()
        self.skip()
        if not isinstance(event, yaml.ScalarEvent):
            return ""
        return "" if event.style is None and event.value in _NULLS else str(event.value)

    def skip(self) -> None:
        """Skip a value of any type."""
        depth = 0
        while True:
            event = self._next()
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth == 0:
                return

    def _peek(self) -> yaml.Event:
        try:
            return self._parser.peek_event() or yaml.StreamEndEvent()
        except yaml.YAMLError as error:
            raise _convert(error) from error

    def _next(self) -> yaml.Event:
        self._count += 1
        try:
            return self._parser.get_event() or yaml.StreamEndEvent()
        except yaml.YAMLError as error:
            raise _convert(error) from error


def _convert(error: yaml.YAMLError) -> YamlError:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        message = f'the text is not valid YAML; the parser reports: "{error.problem}"'
        return YamlError("YamlSyntax", message, mark.line + 1, mark.column + 1)
    return YamlError("YamlSyntax", "the text is not valid YAML")
