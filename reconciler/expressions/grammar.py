"""The grammar of CEL for lark, LALR(1), after the grammar of the CEL language definition.

Differences: chains stay flat, message literals are left out (there are no messages here), and the optional syntax of
`.?name`, `[?i]`, `[?x]` and `{?k: v}` is in.
"""

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
index: BRACKET start _BRACKET_END
optional_index: BRACKET QUESTION start _BRACKET_END

?primary: IDENT -> name
    | DOT IDENT -> absolute_name
    | IDENT _OPEN arguments _CLOSE -> call
    | DOT IDENT _OPEN arguments _CLOSE -> absolute_call
    | _OPEN start _CLOSE -> group
    | BRACKET (item (_COMMA item)*)? _COMMA? _BRACKET_END -> list_literal
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
_BRACKET_END: "]"
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

// three quotes before one: '''a''' is not '' with something after it
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
