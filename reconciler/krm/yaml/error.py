"""The one exception of this room: YAML that cannot be read, edited or written, and where."""

from __future__ import annotations


class YamlError(ValueError):
    """YAML that will not do.

    `code` is one of YamlSyntax, YamlEncoding, YamlTooLarge, YamlTooDeep, YamlAliases, YamlDocuments, YamlDuplicateKey,
    YamlKey, YamlMerge, YamlTag (reading), YamlValue, YamlComment, YamlEdit (writing and editing); `line` and `column`
    count from 1 and are 0 where no place in a text is known.
    """

    def __init__(self, code: str, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(code, message, line, column)
        self.code = code
        self.message = message
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}" if self.line else self.message

    def below(self, lines: int) -> YamlError:
        """Return the same error in a text that has `lines` more lines in front."""
        return YamlError(self.code, self.message, self.line + lines if self.line else 0, self.column)
