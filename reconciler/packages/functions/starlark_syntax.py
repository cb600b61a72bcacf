"""The Starlark dialect and its built-in names, and a check of the nesting depth of scripts.

The check runs before the interpreter parses a script, because the parser has no recursion limit. A script with ten
thousand brackets or `not` operators would crash the process, and `try` cannot prevent this.
"""

from __future__ import annotations

import re2
import starlark

from reconciler.memory import cached


def create_starlark_dialect() -> starlark.Dialect:
    """Return the dialect of scripts and modules. It allows top-level statements, functions, `load` and f-strings."""
    dialect = starlark.Dialect.extended()
    dialect.enable_top_level_stmt = True
    dialect.enable_f_strings = True
    return dialect


def create_starlark_globals() -> starlark.Globals:
    """Return the built-in names of the dialect. They do not include `print`, which the caller must add."""
    extension = starlark.LibraryExtension
    return starlark.Globals.extended_by([extension.StructType, extension.Json, extension.Map, extension.Filter])


MAX_EXPRESSION = 500
MAX_BLOCKS = 50
# The maximum number of `elif` and `lambda` tokens. In the syntax tree, each of these tokens can be nested in the
# previous one, even with commas, semicolons or line breaks between them.
MAX_CHAINED = 500
_CHAINED = ("elif", "lambda")
# Match strings first, so that the content of a string is not read as other tokens. The parser rejects an unterminated
# string.
_TOKENS = re2.compile(
    r'"""(?s:\\.|.)*?"""|' + r"'''(?s:\\.|.)*?'''|" + r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'"
    r"|#[^\n]*|\\\r?\n|\n[ \t]*|[ \t\r]+|[A-Za-z_0-9]+|[^\sA-Za-z_0-9]"
)
# Maximum number of cached check results. This number equals the number of cached scripts in `starlark_script.py`.
_MAX_CACHED_SCRIPTS = 256
_OPEN, _CLOSE, _SEPARATORS = "([{", ")]}", ",;"


@cached(_MAX_CACHED_SCRIPTS)
def find_nesting_error(source: str) -> str | None:
    """Return an error message if the script is nested too deeply. Return None otherwise.

    The check counts the tokens since the last comma, semicolon or line break. It adds the counts of all open brackets.
    The syntax tree is never deeper than this sum.
    """
    counts, total, chained, blocks = [0], 0, 0, [0]
    for match in _TOKENS.finditer(source):
        token = match.group(0)
        if token[0] in "#\\ \t\r":
            continue
        if token[0] == "\n" and len(counts) == 1:
            blocks = _open_block(blocks, len(token.expandtabs(8)) - 1)
            total, counts = 0, [0]
        elif token[0] in _SEPARATORS:
            total, counts[-1] = total - counts[-1], 0
        elif token[0] in _CLOSE and len(counts) > 1:
            total -= counts.pop()
        elif token[0] != "\n":
            total, counts[-1] = total + 1, counts[-1] + 1
            counts += [0] if token[0] in _OPEN else []
            chained += token in _CHAINED
        if total > MAX_EXPRESSION or len(blocks) > MAX_BLOCKS or chained > MAX_CHAINED:
            return (
                f"an expression must not have more than {MAX_EXPRESSION} parts, and blocks must not be nested more than"
                f" {MAX_BLOCKS} levels deep"
            )
    return None


def _open_block(indents: list[int], indent: int) -> list[int]:
    outer = [indent_of_block for indent_of_block in indents if indent_of_block < indent]
    return [*outer, indent]
