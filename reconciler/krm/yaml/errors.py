"""Errors and limits of reading YAML.

The limits bound the cost of hostile files. The composer counts events while it reads, and stops at the first event over
a limit. libyaml's own composer is not used: it is recursive, and 200,000 nested brackets crash it. Its event stream is
read instead.
"""

from __future__ import annotations

from dataclasses import dataclass


class YamlError(ValueError):
    """YAML that cannot be read, edited or written.

    Attributes:
        code: For reading: YamlSyntax, YamlEncoding, YamlTooLarge, YamlTooDeep, YamlAliases, YamlDocuments,
            YamlDuplicateKey, YamlKey, YamlMerge or YamlTag. For writing and editing: YamlValue, YamlComment or
            YamlEdit.
        line: From 1; 0 if the position is unknown. The same applies to `column`.
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
        """Return the same error for a text with `lines` additional lines before it."""
        return YamlError(self.code, self.message, self.line + lines if self.line else 0, self.column)


@dataclass(frozen=True)
class YamlLimits:
    """Upper limits. A file that exceeds one is rejected.

    Attributes:
        file_bytes: Size in UTF-8.
        depth: Number of collections around a value, including those reached through aliases.
        aliases: Number of aliases in a file.
        expanded_nodes: Number of nodes that all aliases of a file represent.
        documents: Number of parts between `---` and `...` lines, including empty parts.
    """

    file_bytes: int = 4 * 1024 * 1024
    depth: int = 100
    aliases: int = 1_000
    expanded_nodes: int = 100_000
    documents: int = 2_000


DEFAULT_YAML_LIMITS = YamlLimits()
