"""From syntax tree to closures: each node becomes a function of the frame, so nothing is looked up twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.expressions.access import (
    has_field,
    read_field,
    read_index,
    read_optional_field,
    read_optional_index,
)
from reconciler.expressions.budget import CONTAINER_BYTES, ELEMENT_BYTES, Budget
from reconciler.expressions.errors import Exhausted, Fault
from reconciler.expressions.library.signatures import Functions, Overload, dispatch
from reconciler.expressions.loops import Code, Frame, Link, Rounds, add_entry, loop
from reconciler.expressions.names import Meaning, Names
from reconciler.expressions.operators import OPERATORS, SIGNS, Operator, not_bool
from reconciler.expressions.syntax import (
    Access,
    Alternative,
    Bind,
    Call,
    Chain,
    Conditional,
    Field,
    Index,
    ListLiteral,
    Literal_,
    Logical,
    Loop,
    MapLiteral,
    Method,
    Name,
    Node,
    OptionalMap,
    Step,
    Unary,
)
from reconciler.expressions.values import INT_MAX, KEYS, MISSING, NONE, OMIT, TYPES, Optional, type_name

Scope = Mapping[str, Code]
"""The local variables at a place, and how each is read."""

PENDING: Final = object()
"""Stands in the slot of a `cel.bind` variable that nobody has asked for yet."""


@dataclass
class Compiler:
    """Compiles one tree. `variables` then has the slots of the declared variables it reads."""

    names: Names
    functions: Functions
    methods: Functions
    variables: dict[str, int] = field(default_factory=dict)
    slots: int = 1

    def compile(self, node: Node, scope: Scope) -> Code:
        """Return the closure of a node."""
        match node:
            case Literal_():
                return _literal(node)
            case Name():
                return self._access(node, (), scope)
            case Access():
                return self._access(node, node.steps, scope)
            case Call():
                return self._call(node.function, node.arguments, node.at, scope)
            case Chain():
                return self._chain(node, scope)
            case Logical():
                return self._logical(node, scope)
            case Conditional():
                return self._conditional(node, scope)
            case Unary():
                return _unary(self.compile(node.operand, scope), node)
            case ListLiteral():
                return _list([(self.compile(item, scope), optional) for item, optional in node.items], node.at)
            case MapLiteral():
                return self._map(node, scope)
            case _:
                assert isinstance(node, Bind)
                return self._bind(node, scope)

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _variable(self, name: str, at: int) -> Code:
        slot = self.variables.get(name)
        if slot is None:
            slot = self.variables[name] = self._slot()
        return _variable(slot, name, at)

    def _access(self, node: Name | Access, steps: tuple[Step, ...], scope: Scope) -> Code:
        meaning = self.names.meaning(node, scope)
        if meaning is None:
            assert isinstance(node, Access)
            return _linked(self.compile(node.base, scope), self._links(steps, scope))
        code = self._meaning(meaning, node, steps, scope)
        return _linked(code, self._links(steps[meaning.used :], scope))

    def _meaning(self, meaning: Meaning, node: Name | Access, steps: tuple[Step, ...], scope: Scope) -> Code:
        at = node.base.at if isinstance(node, Access) else node.at
        match meaning.kind:
            case "local":
                return scope[meaning.name]
            case "variable":
                return self._variable(meaning.name, at)
            case "type":
                return _constant(TYPES[meaning.name])
            case "function":
                method = steps[meaning.used - 1]
                assert isinstance(method, Method)
                return self._call(meaning.name, method.arguments, method.at, scope)
            case _:
                return _failing("CelUndeclared", f"undeclared variable '{meaning.name}'", at)

    def _call(self, name: str, arguments: tuple[Node, ...], at: int, scope: Scope) -> Code:
        overloads = _of_count(self.functions.get(name, ()), len(arguments))
        if not overloads:
            return _failing("CelUnknownFunction", f"there is no function {name}() of these arguments", at)
        return _called(name, overloads, [self.compile(argument, scope) for argument in arguments], at)

    def _links(self, steps: tuple[Step, ...], scope: Scope) -> list[Link]:
        return [self._link(step, scope) for step in steps]

    def _link(self, step: Step, scope: Scope) -> Link:
        match step:
            case Field():
                return _field(step)
            case Index(index=Literal_(value=str(key)), optional=False):
                return _entry(key, step.at)
            case Index():
                return _applied(
                    read_optional_index if step.optional else read_index, self.compile(step.index, scope), step.at
                )
            case Method():
                return self._method(step, scope)
            case Loop():
                return self._loop(step, scope)
            case Alternative():
                return _alternative(self.compile(step.argument, scope), step)
            case _:
                assert isinstance(step, OptionalMap)
                return self._optional_map(step, scope)

    def _method(self, step: Method, scope: Scope) -> Link:
        overloads = _of_count(self.methods.get(step.name, ()), len(step.arguments) + 1)
        arguments = [self.compile(argument, scope) for argument in step.arguments]
        return _sent(step.name, overloads, arguments, step.at)

    def _loop(self, step: Loop, scope: Scope) -> Link:
        slots = tuple(self._slot() for _ in step.variables)
        inner = {**scope, **{name: _slot(slot) for name, slot in zip(step.variables, slots, strict=True)}}
        condition = None if step.condition is None else self.compile(step.condition, inner)
        rounds = Rounds(step.name, slots, step.size, step.at)
        return _placed(loop(step.kind, rounds, condition, self.compile(step.body, inner)), step.at)

    def _optional_map(self, step: OptionalMap, scope: Scope) -> Link:
        slot = self._slot()
        body = self.compile(step.body, {**scope, step.variable: _slot(slot)})
        return _optional_map(slot, body, step)

    def _bind(self, node: Bind, scope: Scope) -> Code:
        slot = self._slot()
        read = _bound(slot, self.compile(node.value, scope), node.value.size)
        body = self.compile(node.body, {**scope, node.variable: read})

        def bind(frame: Frame) -> Any:
            frame[slot] = PENDING
            return body(frame)

        return bind

    def _chain(self, node: Chain, scope: Scope) -> Code:
        first = self.compile(node.first, scope)
        rest = [(OPERATORS[sign], at, self.compile(operand, scope)) for sign, at, operand in node.rest]
        return _binary(first, *rest[0]) if len(rest) == 1 else _chain(first, rest)

    def _logical(self, node: Logical, scope: Scope) -> Code:
        operands = [self.compile(operand, scope) for operand in node.operands]
        return _logical(operands, node)

    def _conditional(self, node: Conditional, scope: Scope) -> Code:
        arms = [(self.compile(test, scope), self.compile(value, scope)) for test, value in node.arms]
        return _conditional(arms, self.compile(node.otherwise, scope), node.at)

    def _map(self, node: MapLiteral, scope: Scope) -> Code:
        entries = [
            (self.compile(key, scope), self.compile(value, scope), optional, key.at)
            for key, value, optional in node.entries
        ]
        return _map(entries)


def _of_count(overloads: tuple[Overload, ...], count: int) -> tuple[Overload, ...]:
    return tuple(candidate for candidate in overloads if candidate.takes_count(count))


def _literal(node: Literal_) -> Code:
    if type(node.value) is int and node.value > INT_MAX:  # the lexer lets 2^63 through, for the sake of -2^63
        raise Fault("CelSyntax", f"{node.value} is outside of the range of int", node.at)
    return _constant(node.value)


def _constant(value: Any) -> Code:
    return lambda frame: value


def _slot(slot: int) -> Code:
    return lambda frame: frame[slot]


def _failing(code: str, message: str, at: int) -> Code:
    def failing(frame: Frame) -> Any:
        raise Fault(code, message, at)

    return failing


def _variable(slot: int, name: str, at: int) -> Code:
    def variable(frame: Frame) -> Any:
        value = frame[slot]
        if value is MISSING:
            raise Fault("CelUndeclared", f"the variable '{name}' has no value here", at)
        return value

    return variable


def _bound(slot: int, value: Code, cost: int) -> Code:
    """Read a variable of `cel.bind`: its value is evaluated when it is first needed."""

    def bound(frame: Frame) -> Any:
        known = frame[slot]
        if known is PENDING:
            frame[0].spend(cost)
            known = frame[slot] = value(frame)
        return known

    return bound


def _linked(code: Code, links: list[Link]) -> Code:
    if not links:
        return code
    if len(links) == 1:
        only = links[0]
        return lambda frame: only(frame, code(frame))

    def linked(frame: Frame) -> Any:
        value = code(frame)
        for link in links:
            value = link(frame, value)
        return value

    return linked


def _placed(link: Link, at: int) -> Link:
    def placed(frame: Frame, value: Any) -> Any:
        try:
            return link(frame, value)
        except Fault as fault:
            raise fault.placed(at)  # noqa: B904  it is the same fault

    return placed


def _field(step: Field) -> Link:
    name, at = step.name, step.at
    if step.test or step.optional:
        read: Callable[[Any, str], Any] = has_field if step.test else read_optional_field
        return _placed(lambda frame, value: read(value, name), at)

    def field_of(frame: Frame, value: Any) -> Any:
        if type(value) is dict and name in value:
            return value[name]
        try:
            return read_field(value, name)
        except Fault as fault:
            raise fault.placed(at)  # noqa: B904  it is the same fault

    return field_of


def _entry(key: str, at: int) -> Link:
    """Read an index that is written out, the most common one: `labels['region']`."""

    def entry(frame: Frame, value: Any) -> Any:
        if type(value) is dict and key in value:
            return value[key]
        try:
            return read_index(frame[0], value, key)
        except Fault as fault:
            raise fault.placed(at)  # noqa: B904  it is the same fault

    return entry


def _applied(apply: Operator, argument: Code, at: int) -> Link:
    def applied(frame: Frame, value: Any) -> Any:
        operand = argument(frame)
        try:
            return apply(frame[0], value, operand)
        except Fault as fault:
            raise fault.placed(at)  # noqa: B904  it is the same fault

    return applied


def _called(name: str, overloads: tuple[Overload, ...], arguments: list[Code], at: int) -> Code:
    def called(frame: Frame) -> Any:
        values = tuple([argument(frame) for argument in arguments])
        try:
            return dispatch(name, overloads, frame[0], values)
        except Fault as fault:
            raise fault.placed(at)  # noqa: B904  it is the same fault

    return called


def _sent(name: str, overloads: tuple[Overload, ...], arguments: list[Code], at: int) -> Link:
    def sent(frame: Frame, value: Any) -> Any:
        values = (value, *[argument(frame) for argument in arguments])
        try:
            return dispatch(name, overloads, frame[0], values)
        except Fault as fault:
            raise fault.placed(at)  # noqa: B904  it is the same fault

    return sent


def _alternative(argument: Code, step: Alternative) -> Link:
    flat = step.function == "orValue"

    def alternative(frame: Frame, value: Any) -> Any:
        _needs_optional(value, f"{step.function}()", step.at)
        if value.present:
            return value.value if flat else value
        other = argument(frame)
        if not flat:
            _needs_optional(other, "or()", step.at)
        return other

    return alternative


def _optional_map(slot: int, body: Code, step: OptionalMap) -> Link:
    flat = step.function == "optFlatMap"

    def optional_map(frame: Frame, value: Any) -> Any:
        _needs_optional(value, f"{step.function}()", step.at)
        if not value.present:
            return NONE
        frame[slot] = value.value
        result = body(frame)
        if not flat:
            return Optional(present=True, value=result)
        _needs_optional(result, "optFlatMap()", step.at)
        return result

    return optional_map


def _needs_optional(value: Any, what: str, at: int) -> None:
    if type(value) is not Optional:
        raise Fault("CelNoOverload", f"{what} needs an optional, not a value of type {type_name(value)}", at)


def _binary(first: Code, apply: Operator, at: int, second: Code) -> Code:
    def binary(frame: Frame) -> Any:
        left, right = first(frame), second(frame)
        try:
            return apply(frame[0], left, right)
        except Fault as fault:
            raise fault.placed(at)  # noqa: B904  it is the same fault

    return binary


def _chain(first: Code, rest: list[tuple[Operator, int, Code]]) -> Code:
    def chain(frame: Frame) -> Any:
        budget, value = frame[0], first(frame)
        for apply, at, operand in rest:
            right = operand(frame)
            try:
                value = apply(budget, value, right)
            except Fault as fault:
                raise fault.placed(at)  # noqa: B904  it is the same fault
        return value

    return chain


def _logical(operands: list[Code], node: Logical) -> Code:
    """`||` (true decides) and `&&` (false decides): an operand that decides outweighs faults in the others."""
    decisive = node.operator == "||"

    def logical(frame: Frame) -> bool:
        fault: Fault | None = None
        for operand in operands:
            try:
                value: object = operand(frame)
            except Exhausted:
                raise
            except Fault as error:
                fault = fault or error
                continue
            if value is decisive:
                return decisive
            if type(value) is not bool:
                fault = fault or not_bool(node.operator, value).placed(node.at)
        if fault is not None:
            raise fault
        return not decisive

    return logical


def _conditional(arms: list[tuple[Code, Code]], otherwise: Code, at: int) -> Code:
    def conditional(frame: Frame) -> Any:
        for test, value in arms:
            verdict = test(frame)
            if verdict is True:
                return value(frame)
            if verdict is not False:
                raise not_bool("?:", verdict).placed(at)
        return otherwise(frame)

    return conditional


def _unary(operand: Code, node: Unary) -> Code:
    apply, count, at = SIGNS[node.operator], node.count, node.at

    def unary(frame: Frame) -> Any:
        value = operand(frame)
        try:
            for _ in range(count):
                value = apply(value)
        except Fault as fault:
            raise fault.placed(at)  # noqa: B904  it is the same fault
        return value

    return unary


def _list(items: list[tuple[Code, bool]], at: int) -> Code:
    size = CONTAINER_BYTES + ELEMENT_BYTES * len(items)

    def make_list(frame: Frame) -> list[Any]:
        frame[0].allocate(size)
        elements = []
        for item, optional in items:
            value = item(frame)
            if optional:
                _needs_optional(value, "[?…]", at)
                if not value.present:
                    continue
                value = value.value
            if value is not OMIT:
                elements.append(value)
        return elements

    return make_list


def _map(entries: list[tuple[Code, Code, bool, int]]) -> Code:
    def make_map(frame: Frame) -> dict[Any, Any]:
        frame[0].allocate(CONTAINER_BYTES)
        made: dict[Any, Any] = {}
        for key_code, value_code, optional, at in entries:
            key, value = key_code(frame), value_code(frame)
            if optional:
                _needs_optional(value, "{?…}", at)
                if not value.present:
                    continue
                value = value.value
            if value is not OMIT:
                _put(frame[0], made, key, value, at)
        return made

    return make_map


def _put(budget: Budget, made: dict[Any, Any], key: Any, value: Any, at: int) -> None:
    if type(key) not in KEYS:
        raise Fault("CelNoOverload", f"a value of type {type_name(key)} cannot be the key of a map", at)
    try:
        add_entry(budget, made, key, value)
    except Fault as fault:
        raise fault.placed(at)  # noqa: B904  it is the same fault
