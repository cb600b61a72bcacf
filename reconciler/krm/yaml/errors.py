"""Errors and limits of the YAML parser.

The limits protect against files that would use too much memory or time. The module `compose` counts nodes while it
reads, and stops at the first node that exceeds a limit. It uses only the parser of libyaml. The composer of libyaml is
recursive, and crashes on 200,000 nested brackets.
"""

from __future__ import annotations

from reconciler.lazy_dataclasses import dataclass


class YamlError(ValueError):
    """YAML that cannot be read, edited or written.

    Attributes:
        code: For reading: YamlSyntax, YamlEncoding, YamlTooLarge, YamlTooDeep, YamlAliases, YamlDocuments,
            YamlDuplicateKey, YamlKey, YamlMerge or YamlTag. For writing and editing: YamlValue, YamlComment or
            YamlEdit.
        message: The message without the position.
        line: Line number from 1. 0 if the position is unknown.
        column: Column number from 1. 0 if the position is unknown.
    """

    def __init__(self, code: str, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(code, message, line, column)
        self.code = code
        self.message = message
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}" if self.line else self.message

    def with_line_offset(self, lines: int) -> YamlError:
        """Return a copy of the error whose line number is larger by `lines`.

        Pass the number of lines above the parsed text to get the line number in the whole file.
        """
        return YamlError(self.code, self.message, self.line + lines if self.line else 0, self.column)


@dataclass(frozen=True)
class YamlLimits:
    """Limits of a YAML file. A file that exceeds a limit is rejected.

    Attributes:
        file_bytes: Maximum size of the file in bytes.
        depth: Maximum number of nested collections around a value. Collections in the value of an alias are included.
        aliases: Maximum number of aliases in a file.
        expanded_nodes: Maximum number of nodes that all aliases of a file represent.
        documents: Maximum number of parts between `---` and `...` lines, including empty parts.
    """

    file_bytes: int = 4 * 1024 * 1024
    depth: int = 100
    aliases: int = 1_000
    expanded_nodes: int = 100_000
    documents: int = 2_000


DEFAULT_YAML_LIMITS = YamlLimits()
