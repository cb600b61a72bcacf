"""Parser of CEL expressions, based on the library lark (LALR(1)). It is imported when the first expression is compiled.

The grammar follows the CEL language definition with these differences:

- A chain of operators or accesses, e.g. `a + b + c` or `a.b.c`, is one node and not several nested nodes.
- Message literals such as `Point{x: 1}` are not supported.
- The syntax of optionals is supported: `a.?name`, `a[?index]`, `[?element]` and `{?key: value}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final, TypeVar

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, UnexpectedToken

from reconciler.cel import literals, macros
from reconciler.cel.errors import EvaluationError
from reconciler.cel.syntax import (
    AccessNode,
    AccessStep,
    BinaryChainNode,
    CallNode,
    ConditionalNode,
    FieldStep,
    IndexStep,
    ListLiteral,
    LiteralNode,
    LogicalNode,
    MapLiteral,
    MethodStep,
    NameNode,
    SyntaxNode,
    UnaryNode,
    measure_node,
)
from reconciler.lazy_dataclasses import replace

GRAMMAR = r"""
?start: disjunction
    | disjunction QUESTION disjunction _COLON start -> conditional

?disjunction: conjunction (OR conjunction)*
?conjunction: relation (AND relation)*
?relation: addition ((LESS_EQUAL | LESS | GREATER_EQUAL | GREATER | EQUAL | NOT_EQUAL | IN) addition)*
?addition: product ((PLUS | MINUS) product)*
?product: unary ((TIMES | DIVIDE | MODULO) unary)*

?unary: access
    | NOT+ access -> negation
    | MINUS+ access -> negation

?access: primary
    | primary _step+

_step: field | optional_field | method | index | optional_index
field: DOT (IDENT | QUOTED)
optional_field: OPTIONAL_DOT (IDENT | QUOTED)
method: DOT IDENT _OPEN arguments _CLOSE
index: BRACKET start BRACKET_END
optional_index: BRACKET QUESTION start BRACKET_END

?primary: IDENT -> name
    | DOT IDENT -> absolute_name
    | IDENT _OPEN arguments _CLOSE -> call
    | DOT IDENT _OPEN arguments _CLOSE -> absolute_call
    | _OPEN start _CLOSE -> group
    | BRACKET (item (_COMMA item)*)? _COMMA? BRACKET_END -> list_literal
    | BRACE (entry (_COMMA entry)*)? _COMMA? _BRACE_END -> map_literal
    | INT -> int_literal
    | UINT -> uint_literal
    | FLOAT -> double_literal
    | STRING -> string_literal
    | BYTES -> bytes_literal
    | TRUE -> true_literal
    | FALSE -> false_literal
    | NULL -> null_literal

arguments: (start (_COMMA start)*)?
item: [QUESTION] start
entry: [QUESTION] start _COLON start

OR: "||"
AND: "&&"
EQUAL: "=="
NOT_EQUAL: "!="
LESS_EQUAL: "<="
LESS: "<"
GREATER_EQUAL: ">="
GREATER: ">"
IN: "in"
PLUS: "+"
MINUS: "-"
TIMES: "*"
DIVIDE: "/"
MODULO: "%"
NOT: "!"
QUESTION: "?"
_COLON: ":"
_COMMA: ","
DOT: "."
OPTIONAL_DOT: ".?"
_OPEN: "("
_CLOSE: ")"
BRACKET: "["
BRACKET_END: "]"
BRACE: "{"
_BRACE_END: "}"
TRUE: "true"
FALSE: "false"
NULL: "null"

IDENT: /[_a-zA-Z][_a-zA-Z0-9]*/
QUOTED: /`[a-zA-Z0-9_.\-\/ ]+`/
FLOAT.3: /[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+/
UINT.2: /(0x[0-9a-fA-F]+|[0-9]+)[uU]/
INT.1: /0x[0-9a-fA-F]+|[0-9]+/

// Try three quotes before one quote, because a literal in three quotes also begins with an empty literal.
STRING.4: /[rR]/ RAW_BODY | BODY
BYTES.5: /[bB]/ (/[rR]/ RAW_BODY | BODY)
BODY: LONG_BODY | SHORT_BODY
RAW_BODY: RAW_LONG_BODY | RAW_SHORT_BODY
LONG_BODY: /\"\"\"(\\(.|\n)|[^\\])*?\"\"\"|'''(\\(.|\n)|[^\\])*?'''/
SHORT_BODY: /\"(\\.|[^\"\\\n\r])*\"|'(\\.|[^'\\\n\r])*'/
RAW_LONG_BODY: /\"\"\"(.|\n)*?\"\"\"|'''(.|\n)*?'''/
RAW_SHORT_BODY: /\"[^\"\n\r]*\"|'[^'\n\r]*'/

%ignore /[ \t\n\f\r]+/
%ignore /\/\/[^\n]*/
"""


RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"}
    | {"namespace", "return", "var", "void", "while"}
)
"""Words that cannot be names of variables. They can be names of fields, e.g. `target.package`."""

_T = TypeVar("_T")


def parse_expression(text: str) -> SyntaxNode:
    """Parse an expression, expand its macros, and return its syntax tree.

    Raises:
        EvaluationError: The expression is invalid (code CelSyntax or CelArrowFunction), or nested too deeply
            (CelTooDeep).
    """
    try:
        tree = _create_parser().parse(text)
    except UnexpectedInput as error:
        raise _create_syntax_error(text, error) from None
    assert isinstance(tree, SyntaxNode)
    return tree


@cache
def _create_parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer="basic", transformer=_Builder(), maybe_placeholders=True)


@v_args(inline=True)
class _Builder(Transformer[Token, SyntaxNode]):
    """Converter from the grammar rules to the syntax tree. For each parsed rule, lark calls the method that has
    the name of the rule."""

    def conditional(
        self, condition: SyntaxNode, question: Token, value: SyntaxNode, otherwise: SyntaxNode
    ) -> SyntaxNode:
        offset = _get_offset(question)
        arms: tuple[tuple[SyntaxNode, SyntaxNode], ...] = ((condition, value),)
        if isinstance(otherwise, ConditionalNode):
            arms, otherwise = arms + otherwise.arms, otherwise.otherwise
        return ConditionalNode(
            arms, otherwise, **measure_node(offset, (*(part for arm in arms for part in arm), otherwise))
        )

    def disjunction(self, *parts: SyntaxNode | Token) -> SyntaxNode:
        return _create_logical("||", parts)

    def conjunction(self, *parts: SyntaxNode | Token) -> SyntaxNode:
        return _create_logical("&&", parts)

    def relation(self, *parts: SyntaxNode | Token) -> SyntaxNode:
        return _create_chain(parts)

    def addition(self, *parts: SyntaxNode | Token) -> SyntaxNode:
        return _create_chain(parts)

    def product(self, *parts: SyntaxNode | Token) -> SyntaxNode:
        return _create_chain(parts)

    def negation(self, *parts: SyntaxNode | Token) -> SyntaxNode:
        *signs, operand = parts
        assert isinstance(operand, SyntaxNode)
        operator, offset, count = str(signs[0]), _get_offset(signs[0]), len(signs)
        if operator == "-" and isinstance(operand, LiteralNode) and type(operand.value) is int:
            operand, count = LiteralNode(-operand.value, offset=operand.offset), count - 1
        return UnaryNode(operator, count, operand, **measure_node(offset, (operand,))) if count else operand

    def access(self, base: SyntaxNode, *steps: AccessStep) -> SyntaxNode:
        offset = base.offset
        match base, steps:
            case NameNode(name="cel", absolute=False), (MethodStep(name="bind", arguments=(_, _, _)) as method, *rest):
                base, steps = macros.expand_bind(method), tuple(rest)
        steps = tuple(macros.expand_method_macro(step) if isinstance(step, MethodStep) else step for step in steps)
        return AccessNode(base, steps, **measure_node(offset, (base, *steps))) if steps else base

    def field(self, dot: Token, name: Token) -> AccessStep:
        return FieldStep(_get_field_name(name), _get_end(name), offset=_get_offset(name))

    def optional_field(self, dot: Token, name: Token) -> AccessStep:
        return FieldStep(_get_field_name(name), _get_end(name), optional=True, offset=_get_offset(name))

    def method(self, dot: Token, name: Token, arguments: tuple[SyntaxNode, ...]) -> AccessStep:
        return MethodStep(str(name), arguments, **measure_node(_get_offset(name), arguments))

    def index(self, bracket: Token, index: SyntaxNode, bracket_end: Token) -> AccessStep:
        return IndexStep(index, _get_end(bracket_end), **measure_node(_get_offset(bracket), (index,)))

    def optional_index(self, bracket: Token, question: Token, index: SyntaxNode, bracket_end: Token) -> AccessStep:
        return IndexStep(index, _get_end(bracket_end), optional=True, **measure_node(_get_offset(bracket), (index,)))

    def arguments(self, *arguments: SyntaxNode) -> tuple[SyntaxNode, ...]:
        return arguments

    def name(self, name: Token) -> SyntaxNode:
        start = _get_offset(name)
        return NameNode(_check_not_reserved(name), start, _get_end(name), offset=start)

    def absolute_name(self, dot: Token, name: Token) -> SyntaxNode:
        start, end = _get_offset(dot), _get_end(name)
        return NameNode(_check_not_reserved(name), start, end, absolute=True, offset=_get_offset(name))

    def call(self, name: Token, arguments: tuple[SyntaxNode, ...]) -> SyntaxNode:
        offset = _get_offset(name)
        if name == "has":
            return macros.expand_has(offset, arguments)
        return CallNode(_check_not_reserved(name), arguments, **measure_node(offset, arguments))

    def absolute_call(self, dot: Token, name: Token, arguments: tuple[SyntaxNode, ...]) -> SyntaxNode:
        return CallNode(_check_not_reserved(name), arguments, **measure_node(_get_offset(name), arguments))

    def group(self, inner: SyntaxNode) -> SyntaxNode:
        return replace(inner, is_grouped=True) if isinstance(inner, NameNode) else inner

    def item(self, question: Token | None, value: SyntaxNode) -> tuple[SyntaxNode, bool]:
        return value, question is not None

    def entry(self, question: Token | None, key: SyntaxNode, value: SyntaxNode) -> tuple[SyntaxNode, SyntaxNode, bool]:
        return key, value, question is not None

    def list_literal(self, bracket: Token, *parts: tuple[SyntaxNode, bool] | Token) -> SyntaxNode:
        items = tuple(part for part in parts if not isinstance(part, Token))
        return ListLiteral(items, **measure_node(_get_offset(bracket), (item for item, _ in items)))

    def map_literal(self, brace: Token, *entries: tuple[SyntaxNode, SyntaxNode, bool]) -> SyntaxNode:
        parts = (part for key, value, _ in entries for part in (key, value))
        return MapLiteral(entries, **measure_node(_get_offset(brace), parts))

    def int_literal(self, token: Token) -> SyntaxNode:
        return _create_literal(token, literals.read_int)

    def uint_literal(self, token: Token) -> SyntaxNode:
        return _create_literal(token, literals.read_uint)

    def double_literal(self, token: Token) -> SyntaxNode:
        return _create_literal(token, literals.read_double)

    def string_literal(self, token: Token) -> SyntaxNode:
        return _create_literal(token, literals.read_string)

    def bytes_literal(self, token: Token) -> SyntaxNode:
        return _create_literal(token, literals.read_bytes)

    def true_literal(self, token: Token) -> SyntaxNode:
        return LiteralNode(value=True, offset=_get_offset(token))

    def false_literal(self, token: Token) -> SyntaxNode:
        return LiteralNode(value=False, offset=_get_offset(token))

    def null_literal(self, token: Token) -> SyntaxNode:
        return LiteralNode(value=None, offset=_get_offset(token))


def _create_logical(operator: str, parts: tuple[SyntaxNode | Token, ...]) -> SyntaxNode:
    operands = tuple(part for part in parts if isinstance(part, SyntaxNode))
    return LogicalNode(operator, operands, **measure_node(_get_offset(parts[1]), operands))


def _create_chain(parts: tuple[SyntaxNode | Token, ...]) -> SyntaxNode:
    operands = [part for part in parts if isinstance(part, SyntaxNode)]
    operators = [part for part in parts if isinstance(part, Token)]
    first, *other_operands = operands
    operations = tuple(
        (str(sign), _get_offset(sign), operand) for sign, operand in zip(operators, other_operands, strict=True)
    )
    return BinaryChainNode(first, operations, **measure_node(_get_offset(operators[0]), operands))


def _create_literal(token: Token, read: Callable[[str], _T]) -> SyntaxNode:
    try:
        return LiteralNode(read(str(token)), offset=_get_offset(token))
    except EvaluationError as error:
        raise error.with_offset(_get_offset(token)) from None


def _get_field_name(token: Token) -> str:
    return token[1:-1] if token.type == "QUOTED" else str(token)


def _check_not_reserved(token: Token) -> str:
    if token in RESERVED:
        raise EvaluationError("CelSyntax", f"'{token}' is a reserved word and cannot be a name", _get_offset(token))
    return str(token)


def _get_offset(part: SyntaxNode | Token) -> int:
    if isinstance(part, SyntaxNode):
        return part.offset
    assert part.start_pos is not None
    return part.start_pos


def _get_end(token: Token) -> int:
    assert token.end_pos is not None
    return token.end_pos


_QUOTED_TEXT: Final = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)

_HINTS: Final = {
    "=": "write == to compare",
    "&": "write && for a logical and",
    "|": "write || for a logical or",
    ";": "an expression has no statements",
    "'": "the string has no closing quote on its line",
    '"': "the string has no closing quote on its line",
    "{": "Protocol Buffers messages are not supported; write a map as {'key': value}",
    "`": "backquotes are only allowed around a field name after a dot",
    "$": "write expressions without ${",
}


def _create_syntax_error(text: str, error: UnexpectedInput) -> EvaluationError:
    unquoted = _QUOTED_TEXT.sub(lambda match: " " * len(match[0]), text)
    if "=>" in unquoted:
        message = (
            "CEL has no arrow functions; to build a map from a list, use list.transformMapEntry(i, v, {key: value})"
        )
        return EvaluationError("CelArrowFunction", message, unquoted.index("=>"))
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return EvaluationError("CelSyntax", "the expression is incomplete", len(text))
    offset = _find_position(error)
    unexpected = str(error.token) if isinstance(error, UnexpectedToken) else text[offset : offset + 1]
    shortened = unexpected if len(unexpected) <= 40 else f"{unexpected[:40]}…"
    hint = _HINTS.get(unexpected)
    return EvaluationError("CelSyntax", f"unexpected {shortened}" + (f"; {hint}" if hint else ""), offset)


def _find_position(error: UnexpectedInput) -> int:
    position: int | None = error.pos_in_stream  # The value can be None, although lark declares int.
    return 0 if position is None else position
