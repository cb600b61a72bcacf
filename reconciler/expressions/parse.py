"""Text to syntax tree. The only module that knows lark; it is imported when the first expression is compiled."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final, TypeVar

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, UnexpectedToken

from reconciler.expressions import literals, macros
from reconciler.expressions.errors import Fault
from reconciler.expressions.grammar import GRAMMAR
from reconciler.expressions.syntax import (
    Access,
    Call,
    Chain,
    Conditional,
    Field,
    Index,
    ListLiteral,
    Literal_,
    Logical,
    MapLiteral,
    Method,
    Name,
    Node,
    Step,
    Unary,
    measured,
)

RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"}
    | {"namespace", "return", "var", "void", "while"}
)
"""Words that are no variables; after a dot they are ordinary fields (`target.package`)."""

_T = TypeVar("_T")


def parse(text: str) -> Node:
    """Return the syntax tree of an expression, macros expanded.

    Raises Fault with the codes CelSyntax, CelArrowFunction and CelTooDeep.
    """
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _syntax_fault(text, error) from None
    assert isinstance(tree, Node)
    return tree


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer="basic", transformer=_Builder(), maybe_placeholders=True)


@v_args(inline=True)
class _Builder(Transformer[Token, Node]):
    """One method per rule of the grammar; they run while the text is parsed, inner rules first."""

    def conditional(self, condition: Node, question: Token, value: Node, otherwise: Node) -> Node:
        at = _offset(question)
        arms: tuple[tuple[Node, Node], ...] = ((condition, value),)
        if isinstance(otherwise, Conditional):
            arms, otherwise = arms + otherwise.arms, otherwise.otherwise
        return Conditional(arms, otherwise, **measured(at, (*(part for arm in arms for part in arm), otherwise)))

    def disjunction(self, *parts: Node | Token) -> Node:
        return _logical("||", parts)

    def conjunction(self, *parts: Node | Token) -> Node:
        return _logical("&&", parts)

    def relation(self, *parts: Node | Token) -> Node:
        return _chain(parts)

    def addition(self, *parts: Node | Token) -> Node:
        return _chain(parts)

    def product(self, *parts: Node | Token) -> Node:
        return _chain(parts)

    def negation(self, *parts: Node | Token) -> Node:
        *signs, operand = parts
        assert isinstance(operand, Node)
        operator, at, count = str(signs[0]), _offset(signs[0]), len(signs)
        if operator == "-" and isinstance(operand, Literal_) and type(operand.value) is int:
            operand, count = Literal_(-operand.value, at=operand.at), count - 1
        return Unary(operator, count, operand, **measured(at, (operand,))) if count else operand

    def access(self, base: Node, *steps: Step) -> Node:
        at = base.at
        match base, steps:
            case Name(name="cel", absolute=False), (Method(name="bind", arguments=(_, _, _)) as method, *rest):
                base, steps = macros.bind(method), tuple(rest)
        steps = tuple(macros.expand_method(step) if isinstance(step, Method) else step for step in steps)
        return Access(base, steps, **measured(at, (base, *steps))) if steps else base

    def field(self, dot: Token, name: Token) -> Step:
        return Field(_field_name(name), at=_offset(name))

    def optional_field(self, dot: Token, name: Token) -> Step:
        return Field(_field_name(name), optional=True, at=_offset(name))

    def method(self, dot: Token, name: Token, arguments: tuple[Node, ...]) -> Step:
        return Method(str(name), arguments, **measured(_offset(name), arguments))

    def index(self, bracket: Token, index: Node) -> Step:
        return Index(index, **measured(_offset(bracket), (index,)))

    def optional_index(self, bracket: Token, question: Token, index: Node) -> Step:
        return Index(index, optional=True, **measured(_offset(bracket), (index,)))

    def arguments(self, *arguments: Node) -> tuple[Node, ...]:
        return arguments

    def name(self, name: Token) -> Node:
        return Name(_not_reserved(name), at=_offset(name))

    def absolute_name(self, dot: Token, name: Token) -> Node:
        return Name(_not_reserved(name), absolute=True, at=_offset(name))

    def call(self, name: Token, arguments: tuple[Node, ...]) -> Node:
        at = _offset(name)
        if name == "has":
            return macros.has(at, arguments)
        return Call(_not_reserved(name), arguments, **measured(at, arguments))

    def absolute_call(self, dot: Token, name: Token, arguments: tuple[Node, ...]) -> Node:
        return Call(_not_reserved(name), arguments, **measured(_offset(name), arguments))

    def group(self, inner: Node) -> Node:
        return inner

    def item(self, question: Token | None, value: Node) -> tuple[Node, bool]:
        return value, question is not None

    def entry(self, question: Token | None, key: Node, value: Node) -> tuple[Node, Node, bool]:
        return key, value, question is not None

    def list_literal(self, bracket: Token, *items: tuple[Node, bool]) -> Node:
        return ListLiteral(items, **measured(_offset(bracket), (item for item, _ in items)))

    def map_literal(self, brace: Token, *entries: tuple[Node, Node, bool]) -> Node:
        parts = (part for key, value, _ in entries for part in (key, value))
        return MapLiteral(entries, **measured(_offset(brace), parts))

    def int_literal(self, token: Token) -> Node:
        return _constant(token, literals.read_int)

    def uint_literal(self, token: Token) -> Node:
        return _constant(token, literals.read_uint)

    def double_literal(self, token: Token) -> Node:
        return _constant(token, literals.read_double)

    def string_literal(self, token: Token) -> Node:
        return _constant(token, literals.read_string)

    def bytes_literal(self, token: Token) -> Node:
        return _constant(token, literals.read_bytes)

    def true_literal(self, token: Token) -> Node:
        return Literal_(value=True, at=_offset(token))

    def false_literal(self, token: Token) -> Node:
        return Literal_(value=False, at=_offset(token))

    def null_literal(self, token: Token) -> Node:
        return Literal_(value=None, at=_offset(token))


def _logical(operator: str, parts: tuple[Node | Token, ...]) -> Node:
    operands = tuple(part for part in parts if isinstance(part, Node))
    return Logical(operator, operands, **measured(_offset(parts[1]), operands))


def _chain(parts: tuple[Node | Token, ...]) -> Node:
    operands = [part for part in parts if isinstance(part, Node)]
    operators = [part for part in parts if isinstance(part, Token)]
    first, *others = operands
    rest = tuple((str(sign), _offset(sign), operand) for sign, operand in zip(operators, others, strict=True))
    return Chain(first, rest, **measured(_offset(operators[0]), operands))


def _constant(token: Token, read: Callable[[str], _T]) -> Node:
    try:
        return Literal_(read(str(token)), at=_offset(token))
    except Fault as fault:
        raise fault.placed(_offset(token)) from None


def _field_name(token: Token) -> str:
    return token[1:-1] if token.type == "QUOTED" else str(token)


def _not_reserved(token: Token) -> str:
    if token in RESERVED:
        raise Fault("CelSyntax", f"'{token}' is a reserved word and cannot be a name", _offset(token))
    return str(token)


def _offset(part: Node | Token) -> int:
    if isinstance(part, Node):
        return part.at
    assert part.start_pos is not None
    return part.start_pos


_QUOTED_TEXT: Final = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)

_HINTS: Final = {
    "=": "to compare, write ==",
    "&": "to say and, write &&",
    "|": "to say or, write ||",
    ";": "an expression has no statements",
    "'": "the string has no closing quote on its line",
    '"': "the string has no closing quote on its line",
    "{": "there are no messages here; a map stands alone, as in {'key': value}",
    "`": "backquotes stand around a field's name, after a dot",
    "$": "inside of an expression no ${ is needed",
}


def _syntax_fault(text: str, error: UnexpectedInput) -> Fault:
    outside = _QUOTED_TEXT.sub(lambda match: " " * len(match[0]), text)
    if "=>" in outside:
        message = (
            "CEL has no arrow functions; to build a map from a list, use list.transformMapEntry(i, v, {key: value})"
        )
        return Fault("CelArrowFunction", message, outside.index("=>"))
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return Fault("CelSyntax", "the expression ends too early", len(text))
    at = _position(error)
    found = str(error.token) if isinstance(error, UnexpectedToken) else text[at : at + 1]
    shown = found if len(found) <= 40 else f"{found[:40]}…"
    hint = _HINTS.get(found)
    return Fault("CelSyntax", f"unexpected {shown}" + (f"; {hint}" if hint else ""), at)


def _position(error: UnexpectedInput) -> int:
    position: int | None = error.pos_in_stream  # lark declares an int and leaves None at the end of the text
    return 0 if position is None else position
