"""Compilation of a syntax tree to Python closures.

Each node becomes a closure. The parameter of a closure is the frame: a list that contains the budget and the variables
of one evaluation. Names are resolved once during compilation and not in each evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reconciler.cel.budget import CONTAINER_BYTES, ELEMENT_BYTES, ExpressionBudget
from reconciler.cel.check import NameResolver, ResolvedName
from reconciler.cel.errors import BudgetExceededError, EvaluationError
from reconciler.cel.library.signatures import FunctionTable, Overload, call_overload
from reconciler.cel.loops import CompiledExpression, CompiledStep, Frame, LoopIteration, add_entry, compile_loop_step
from reconciler.cel.operators import (
    BINARY_OPERATORS,
    UNARY_OPERATORS,
    BinaryOperator,
    create_not_bool_error,
    has_field,
    read_field,
    read_index,
    read_optional_field,
    read_optional_index,
)
from reconciler.cel.syntax import (
    AccessNode,
    AccessStep,
    AlternativeStep,
    BinaryChainNode,
    BindNode,
    CallNode,
    ConditionalNode,
    FieldStep,
    IndexStep,
    ListLiteral,
    LiteralNode,
    LogicalNode,
    LoopStep,
    MapLiteral,
    MethodStep,
    NameNode,
    OptionalMapStep,
    SyntaxNode,
    UnaryNode,
)
from reconciler.cel.values import (
    CEL_TYPES,
    EMPTY_OPTIONAL,
    INT_MAX,
    KEY_TYPES,
    MISSING,
    OMIT,
    CelOptional,
    get_type_name,
)
from reconciler.lazy_dataclasses import dataclass, field

Scope = Mapping[str, CompiledExpression]
"""The local variables that a node can use: the name of each variable, and the closure that reads its value."""

PENDING: Final = object()
"""The value of a `cel.bind` variable before its first evaluation."""


@dataclass
class CelCompiler:
    """Compiler for one syntax tree. After compilation, `variables` contains the frame index of each variable.

    Without a static check, the evaluation of an undeclared variable or of an unknown function is an error.
    """

    names: NameResolver
    functions: FunctionTable
    methods: FunctionTable
    variables: dict[str, int] = field(default_factory=dict)
    slots: int = 1

    def compile(self, node: SyntaxNode, scope: Scope) -> CompiledExpression:
        """Compile a node and its children to a closure. `scope` contains the local variables that the node can use."""
        match node:
            case LiteralNode():
                return _compile_literal(node)
            case NameNode():
                return self._compile_access(node, (), scope)
            case AccessNode():
                return self._compile_access(node, node.steps, scope)
            case CallNode():
                return self._compile_call(node.function, node.arguments, node.offset, scope)
            case BinaryChainNode():
                return self._compile_chain(node, scope)
            case LogicalNode():
                return self._compile_logical(node, scope)
            case ConditionalNode():
                return self._compile_conditional(node, scope)
            case UnaryNode():
                return _create_unary(self.compile(node.operand, scope), node)
            case ListLiteral():
                return _create_list(
                    [(self.compile(item, scope), optional) for item, optional in node.items], node.offset
                )
            case MapLiteral():
                return self._compile_map(node, scope)
            case _:
                assert isinstance(node, BindNode)
                return self._compile_bind(node, scope)

    def _allocate_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _compile_variable(self, name: str, offset: int) -> CompiledExpression:
        slot = self.variables.get(name)
        if slot is None:
            slot = self.variables[name] = self._allocate_slot()
        return _create_variable(slot, name, offset)

    def _compile_access(
        self, node: NameNode | AccessNode, steps: tuple[AccessStep, ...], scope: Scope
    ) -> CompiledExpression:
        resolved = self.names.resolve(node, scope)
        if resolved is None:
            assert isinstance(node, AccessNode)
            return _apply_steps(self.compile(node.base, scope), self._compile_steps(steps, scope))
        code = self._compile_name(resolved, node, steps, scope)
        return _apply_steps(code, self._compile_steps(steps[resolved.step_count :], scope))

    def _compile_name(
        self, resolved: ResolvedName, node: NameNode | AccessNode, steps: tuple[AccessStep, ...], scope: Scope
    ) -> CompiledExpression:
        offset = node.base.offset if isinstance(node, AccessNode) else node.offset
        match resolved.kind:
            case "local":
                return scope[resolved.name]
            case "variable":
                return self._compile_variable(resolved.name, offset)
            case "type":
                return _compile_constant(CEL_TYPES[resolved.name])
            case "function":
                method = steps[resolved.step_count - 1]
                assert isinstance(method, MethodStep)
                return self._compile_call(resolved.name, method.arguments, method.offset, scope)
            case _:
                return _compile_failure("CelUndeclared", f"undeclared variable '{resolved.name}'", offset)

    def _compile_call(
        self, name: str, arguments: tuple[SyntaxNode, ...], offset: int, scope: Scope
    ) -> CompiledExpression:
        overloads = _select_by_argument_count(self.functions.get(name, ()), len(arguments))
        if not overloads:
            return _compile_failure("CelUnknownFunction", f"there is no function {name}() for these arguments", offset)
        return _compile_function_call(
            name, overloads, [self.compile(argument, scope) for argument in arguments], offset
        )

    def _compile_steps(self, steps: tuple[AccessStep, ...], scope: Scope) -> list[CompiledStep]:
        return [self._compile_step(step, scope) for step in steps]

    def _compile_step(self, step: AccessStep, scope: Scope) -> CompiledStep:
        match step:
            case FieldStep():
                return _create_field(step)
            case IndexStep(index=LiteralNode(value=str(key)), optional=False):
                return _create_entry(key, step.offset)
            case IndexStep():
                return _compile_index(
                    read_optional_index if step.optional else read_index, self.compile(step.index, scope), step.offset
                )
            case MethodStep():
                return self._compile_method(step, scope)
            case LoopStep():
                return self._compile_loop(step, scope)
            case AlternativeStep():
                return _create_alternative(self.compile(step.argument, scope), step)
            case _:
                assert isinstance(step, OptionalMapStep)
                return self._compile_optional_map(step, scope)

    def _compile_method(self, step: MethodStep, scope: Scope) -> CompiledStep:
        overloads = _select_by_argument_count(self.methods.get(step.name, ()), len(step.arguments) + 1)
        arguments = [self.compile(argument, scope) for argument in step.arguments]
        return _compile_method_call(step.name, overloads, arguments, step.offset)

    def _compile_loop(self, step: LoopStep, scope: Scope) -> CompiledStep:
        slots = tuple(self._allocate_slot() for _ in step.variables)
        inner = {**scope, **{name: _read_slot(slot) for name, slot in zip(step.variables, slots, strict=True)}}
        condition = None if step.condition is None else self.compile(step.condition, inner)
        iteration = LoopIteration(step.name, slots, step.size)
        return _add_offset(
            compile_loop_step(step.kind, iteration, condition, self.compile(step.body, inner)), step.offset
        )

    def _compile_optional_map(self, step: OptionalMapStep, scope: Scope) -> CompiledStep:
        slot = self._allocate_slot()
        body = self.compile(step.body, {**scope, step.variable: _read_slot(slot)})
        return _create_optional_map(slot, body, step)

    def _compile_bind(self, node: BindNode, scope: Scope) -> CompiledExpression:
        slot = self._allocate_slot()
        read = _compile_bound_variable(slot, self.compile(node.value, scope), node.value.size)
        body = self.compile(node.body, {**scope, node.variable: read})

        def evaluate(frame: Frame) -> Any:
            frame[slot] = PENDING
            return body(frame)

        return evaluate

    def _compile_chain(self, node: BinaryChainNode, scope: Scope) -> CompiledExpression:
        first = self.compile(node.first, scope)
        operations = [
            (BINARY_OPERATORS[sign], offset, self.compile(operand, scope)) for sign, offset, operand in node.operations
        ]
        return _create_binary(first, *operations[0]) if len(operations) == 1 else _create_chain(first, operations)

    def _compile_logical(self, node: LogicalNode, scope: Scope) -> CompiledExpression:
        operands = [self.compile(operand, scope) for operand in node.operands]
        return _create_logical(operands, node)

    def _compile_conditional(self, node: ConditionalNode, scope: Scope) -> CompiledExpression:
        arms = [(self.compile(test, scope), self.compile(value, scope)) for test, value in node.arms]
        return _create_conditional(arms, self.compile(node.otherwise, scope), node.offset)

    def _compile_map(self, node: MapLiteral, scope: Scope) -> CompiledExpression:
        entries = [
            (self.compile(key, scope), self.compile(value, scope), optional, key.offset)
            for key, value, optional in node.entries
        ]
        return _create_map(entries)


def _select_by_argument_count(overloads: tuple[Overload, ...], count: int) -> tuple[Overload, ...]:
    return tuple(candidate for candidate in overloads if candidate.accepts_count(count))


def _compile_literal(node: LiteralNode) -> CompiledExpression:
    # Reject 2^63 here, because the parser accepts 2^63 as a part of -2^63.
    if type(node.value) is int and node.value > INT_MAX:
        raise EvaluationError("CelSyntax", f"{node.value} is outside of the range of int", node.offset)
    return _compile_constant(node.value)


def _compile_constant(value: Any) -> CompiledExpression:
    return lambda frame: value


def _read_slot(slot: int) -> CompiledExpression:
    return lambda frame: frame[slot]


def _compile_failure(code: str, message: str, offset: int) -> CompiledExpression:
    def evaluate(frame: Frame) -> Any:
        raise EvaluationError(code, message, offset)

    return evaluate


def _create_variable(slot: int, name: str, offset: int) -> CompiledExpression:
    def evaluate(frame: Frame) -> Any:
        value = frame[slot]
        if value is MISSING:
            raise EvaluationError("CelUndeclared", f"the variable '{name}' has no value in this expression", offset)
        return value

    return evaluate


def _compile_bound_variable(slot: int, value: CompiledExpression, cost: int) -> CompiledExpression:
    """Return a closure that reads a variable of `cel.bind`. The value is evaluated when the variable is first read."""

    def evaluate(frame: Frame) -> Any:
        bound_value = frame[slot]
        if bound_value is PENDING:
            frame[0].spend(cost)
            bound_value = frame[slot] = value(frame)
        return bound_value

    return evaluate


def _apply_steps(code: CompiledExpression, steps: list[CompiledStep]) -> CompiledExpression:
    if not steps:
        return code
    if len(steps) == 1:
        only = steps[0]
        return lambda frame: only(frame, code(frame))

    def evaluate(frame: Frame) -> Any:
        value = code(frame)
        for step in steps:
            value = step(frame, value)
        return value

    return evaluate


def _add_offset(step: CompiledStep, offset: int) -> CompiledStep:
    def apply_step(frame: Frame, value: Any) -> Any:
        try:
            return step(frame, value)
        except EvaluationError as error:
            raise error.with_offset(offset)  # noqa: B904  this is the same error

    return apply_step


def _create_field(step: FieldStep) -> CompiledStep:
    name, offset = step.name, step.offset
    if step.test or step.optional:
        read: Callable[[Any, str], Any] = has_field if step.test else read_optional_field
        return _add_offset(lambda frame, value: read(value, name), offset)

    def apply_step(frame: Frame, value: Any) -> Any:
        if type(value) is dict and name in value:
            return value[name]
        try:
            return read_field(value, name)
        except EvaluationError as error:
            raise error.with_offset(offset)  # noqa: B904  this is the same error

    return apply_step


def _create_entry(key: str, offset: int) -> CompiledStep:
    """Compile an index with a constant string, e.g. `labels['region']`, to a faster closure than for other indexes."""

    def apply_step(frame: Frame, value: Any) -> Any:
        if type(value) is dict and key in value:
            return value[key]
        try:
            return read_index(frame[0], value, key)
        except EvaluationError as error:
            raise error.with_offset(offset)  # noqa: B904  this is the same error

    return apply_step


def _compile_index(apply: BinaryOperator, argument: CompiledExpression, offset: int) -> CompiledStep:
    def apply_step(frame: Frame, value: Any) -> Any:
        operand = argument(frame)
        try:
            return apply(frame[0], value, operand)
        except EvaluationError as error:
            raise error.with_offset(offset)  # noqa: B904  this is the same error

    return apply_step


def _compile_function_call(
    name: str, overloads: tuple[Overload, ...], arguments: list[CompiledExpression], offset: int
) -> CompiledExpression:
    def evaluate(frame: Frame) -> Any:
        values = tuple([argument(frame) for argument in arguments])
        try:
            return call_overload(name, overloads, frame[0], values)
        except EvaluationError as error:
            raise error.with_offset(offset)  # noqa: B904  this is the same error

    return evaluate


def _compile_method_call(
    name: str, overloads: tuple[Overload, ...], arguments: list[CompiledExpression], offset: int
) -> CompiledStep:
    def apply_step(frame: Frame, value: Any) -> Any:
        values = (value, *[argument(frame) for argument in arguments])
        try:
            return call_overload(name, overloads, frame[0], values)
        except EvaluationError as error:
            raise error.with_offset(offset)  # noqa: B904  this is the same error

    return apply_step


def _create_alternative(argument: CompiledExpression, step: AlternativeStep) -> CompiledStep:
    flat = step.function == "orValue"

    def apply_step(frame: Frame, value: Any) -> Any:
        _check_optional(value, f"{step.function}()", step.offset)
        if value.is_present:
            return value.value if flat else value
        other = argument(frame)
        if not flat:
            _check_optional(other, "or()", step.offset)
        return other

    return apply_step


def _create_optional_map(slot: int, body: CompiledExpression, step: OptionalMapStep) -> CompiledStep:
    flat = step.function == "optFlatMap"

    def apply_step(frame: Frame, value: Any) -> Any:
        _check_optional(value, f"{step.function}()", step.offset)
        if not value.is_present:
            return EMPTY_OPTIONAL
        frame[slot] = value.value
        result = body(frame)
        if not flat:
            return CelOptional(is_present=True, value=result)
        _check_optional(result, "optFlatMap()", step.offset)
        return result

    return apply_step


def _check_optional(value: Any, operation: str, offset: int) -> None:
    if type(value) is not CelOptional:
        raise EvaluationError(
            "CelNoOverload", f"{operation} requires an optional, not a value of type {get_type_name(value)}", offset
        )


def _create_binary(
    first: CompiledExpression, apply: BinaryOperator, offset: int, second: CompiledExpression
) -> CompiledExpression:
    def evaluate(frame: Frame) -> Any:
        left, right = first(frame), second(frame)
        try:
            return apply(frame[0], left, right)
        except EvaluationError as error:
            raise error.with_offset(offset)  # noqa: B904  this is the same error

    return evaluate


def _create_chain(
    first: CompiledExpression, operations: list[tuple[BinaryOperator, int, CompiledExpression]]
) -> CompiledExpression:
    def evaluate(frame: Frame) -> Any:
        budget, value = frame[0], first(frame)
        for apply, offset, operand in operations:
            right = operand(frame)
            try:
                value = apply(budget, value, right)
            except EvaluationError as error:
                raise error.with_offset(offset)  # noqa: B904  this is the same error
        return value

    return evaluate


def _create_logical(operands: list[CompiledExpression], node: LogicalNode) -> CompiledExpression:
    """Compile the operator `||` or `&&`.

    An operand that determines the result (true for `||`, false for `&&`) overrides the errors of other operands.
    """
    decisive = node.operator == "||"

    def evaluate(frame: Frame) -> bool:
        first_error: EvaluationError | None = None
        for operand in operands:
            try:
                value: object = operand(frame)
            except BudgetExceededError:
                raise
            except EvaluationError as error:
                first_error = first_error or error
                continue
            if value is decisive:
                return decisive
            if type(value) is not bool:
                first_error = first_error or create_not_bool_error(node.operator, value).with_offset(node.offset)
        if first_error is not None:
            raise first_error
        return not decisive

    return evaluate


def _create_conditional(
    arms: list[tuple[CompiledExpression, CompiledExpression]], otherwise: CompiledExpression, offset: int
) -> CompiledExpression:
    def evaluate(frame: Frame) -> Any:
        for test, value in arms:
            condition_result = test(frame)
            if condition_result is True:
                return value(frame)
            if condition_result is not False:
                raise create_not_bool_error("?:", condition_result).with_offset(offset)
        return otherwise(frame)

    return evaluate


def _create_unary(operand: CompiledExpression, node: UnaryNode) -> CompiledExpression:
    apply, count, offset = UNARY_OPERATORS[node.operator], node.count, node.offset

    def evaluate(frame: Frame) -> Any:
        value = operand(frame)
        try:
            for _ in range(count):
                value = apply(value)
        except EvaluationError as error:
            raise error.with_offset(offset)  # noqa: B904  this is the same error
        return value

    return evaluate


def _create_list(items: list[tuple[CompiledExpression, bool]], offset: int) -> CompiledExpression:
    size = CONTAINER_BYTES + ELEMENT_BYTES * len(items)

    def evaluate(frame: Frame) -> list[Any]:
        frame[0].allocate(size)
        elements = []
        for item, optional in items:
            value = item(frame)
            if optional:
                _check_optional(value, "[?…]", offset)
                if not value.is_present:
                    continue
                value = value.value
            if value is not OMIT:
                elements.append(value)
        return elements

    return evaluate


def _create_map(entries: list[tuple[CompiledExpression, CompiledExpression, bool, int]]) -> CompiledExpression:
    def evaluate(frame: Frame) -> dict[Any, Any]:
        frame[0].allocate(CONTAINER_BYTES)
        result: dict[Any, Any] = {}
        for key_code, value_code, optional, offset in entries:
            key, value = key_code(frame), value_code(frame)
            if optional:
                _check_optional(value, "{?…}", offset)
                if not value.is_present:
                    continue
                value = value.value
            if value is not OMIT:
                _add_checked_entry(frame[0], result, key, value, offset)
        return result

    return evaluate


def _add_checked_entry(budget: ExpressionBudget, entries: dict[Any, Any], key: Any, value: Any, offset: int) -> None:
    if type(key) not in KEY_TYPES:
        raise EvaluationError(
            "CelNoOverload", f"a value of type {get_type_name(key)} cannot be the key of a map", offset
        )
    try:
        add_entry(budget, entries, key, value)
    except EvaluationError as error:
        raise error.with_offset(offset)  # noqa: B904  this is the same error
