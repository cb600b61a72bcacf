"""Nesting: scripts whose expressions or blocks lie too deep in each other, told before the interpreter sees them.

The interpreter's parser recurses without a limit of its own: ten thousand brackets, or as many `not`s, take the whole
process down, and no `try` can catch that.
"""

from __future__ import annotations

import re2

from reconciler.caching import cached

MAX_EXPRESSION = 500
MAX_BLOCKS = 50
# each lies in the one before, whatever separators stand between
MAX_CHAINED = 500
_CHAINED = ("elif", "lambda")
# strings first, so that what they hold is no token; a string that never ends is left to the parser
_TOKENS = re2.compile(
    r'"""(?s:\\.|.)*?"""|' + r"'''(?s:\\.|.)*?'''|" + r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'"
    r"|#[^\n]*|\\\r?\n|\n[ \t]*|[ \t\r]+|[A-Za-z_0-9]+|[^\sA-Za-z_0-9]"
)
# as many as are remembered parsed
_REMEMBERED_SCRIPTS = 256
_OPEN, _CLOSE, _SEPARATORS = "([{", ")]}", ",;"


@cached(_REMEMBERED_SCRIPTS)
def nesting_fault(source: str) -> str | None:
    """Return why the script lies too deep, or None.

    What counts is the number of tokens since the last separator, in the present brackets and in all around them: an
    upper bound for the depth of the tree that the parser builds.
    """
    counts, total, chained, blocks = [0], 0, 0, [0]
    for match in _TOKENS.finditer(source):
        token = match.group(0)
        if token[0] in "#\\ \t\r":
            continue
        if token[0] == "\n" and len(counts) == 1:
            blocks = _blocks(blocks, len(token.expandtabs(8)) - 1)
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
                f"an expression must not have more than {MAX_EXPRESSION} parts, a block not be {MAX_BLOCKS} blocks deep"
            )
    return None


def _blocks(blocks: list[int], indent: int) -> list[int]:
    outer = [block for block in blocks if block < indent]
    return [*outer, indent]
