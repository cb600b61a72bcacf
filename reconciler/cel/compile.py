"""Compilation of a syntax tree to Python functions.

Each node becomes lines of Python code that assign its value to a local variable. Names are resolved once during
compilation and not in each evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import Any

from reconciler.cel.budget import CONTAINER_BYTES, ELEMENT_BYTES, ENTRY_BYTES, ExpressionBudget
from reconciler.cel.check import NameResolver, ResolvedName
from reconciler.cel.code_writer import GENERATED_FILE, CodeWriter, Operand
from reconciler.cel.errors import EvaluationError
from reconciler.cel.library.signatures import FunctionTable, Overload
from reconciler.cel.loops import LoopCode
from reconciler.cel.operations import write_binary, write_call, write_membership, write_unary
from reconciler.cel.support import SUPPORT, ConstantPath
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
    find_name_offset,
)
from reconciler.cel.values import CEL_TYPES, INT_MAX, CelOptional
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.memory import cached


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """A compiled expression.

    Attributes:
        evaluate: Function that evaluates the expression with the values of its variables, and returns a copy of the
            result.
        offsets: For each line of the generated code: its offset in the expression. `locate_error` uses these offsets.
    """

    evaluate: Callable[[Mapping[str, Any], ExpressionBudget], Any]
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundVariable:
    """A variable of `cel.bind`. Its value is evaluated when the variable is first read.

    Attributes:
        cell: Name of a Python variable whose value is a list with one item. The item is `PENDING` before the
            evaluation, and the evaluated value after it.
        function: Name of the Python function that evaluates the value.
        parameters: Names of the Python variables that are passed to the function.
        cost: Number of steps of the evaluation.
    """

    cell: str
    function: str
    parameters: tuple[str, ...]
    cost: int


Scope = Mapping[str, Operand | BoundVariable]
"""The local variables that a node can use, by name."""


@dataclass
class CelCompiler:
    """Compiler for one syntax tree.

    An undeclared variable or an unknown function causes an error only when it is evaluated.
    """

    names: NameResolver
    functions: FunctionTable
    methods: FunctionTable
    writer: CodeWriter = field(default_factory=CodeWriter)

    def compile(self, tree: SyntaxNode) -> CompiledExpression:
        """Compile a syntax tree. Each evaluation costs one step for each node."""
        with self.writer.function() as name:
            self.writer.spend_steps(tree.size)
            result = self._compile_node(tree, {})
            self._write_return(result)
        code = self.writer.build(name)
        return CompiledExpression(_create_factory(code.source)(*code.constants, code.offsets), code.offsets)

    def _write_return(self, result: Operand) -> None:
        if result.kind in (bool, int, float, type(None)):
            self.writer.write(f"return {result.text}")
            return
        with self.writer.block("if True:" if result.kind is str else f"if type({result.text}) is str:"):
            self.writer.allocate(f"len({result.text})")
            self.writer.write(f"return {result.text}")
        self.writer.write(f"return copy_result(budget, {result.text})")

    def _compile_node(self, node: SyntaxNode, scope: Scope) -> Operand:
        """Write the code of a node and its children. `scope` contains the local variables that the node can use."""
        match node:
            case LiteralNode():
                return self._compile_literal(node)
            case NameNode():
                return self._compile_access(node, (), scope)
            case _ if self.writer.is_deep:
                return self._compile_in_function(node, scope)
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
                operand = self._compile_node(node.operand, scope)
                return write_unary(self.writer, node.operator, node.count, operand, node.offset)
            case ListLiteral():
                return self._compile_list(node, scope)
            case MapLiteral():
                return self._compile_map(node, scope)
            case _:
                assert isinstance(node, BindNode)
                return self._compile_bind(node, scope)

    def _compile_in_function(self, node: SyntaxNode, scope: Scope) -> Operand:
        """Write the code of a node to a new function, because Python limits the number of nested blocks."""
        parameters = _list_local_variables(scope)
        with self.writer.function(parameters) as name:
            result = self._compile_node(node, scope)
            self.writer.write(f"return {result.text}")
        return self.writer.assign(_format_call(name, parameters), kind=result.kind)

    def _compile_literal(self, node: LiteralNode) -> Operand:
        # Reject 2^63 here, because the parser accepts 2^63 as a part of -2^63.
        if type(node.value) is int and node.value > INT_MAX:
            raise EvaluationError("CelSyntax", f"{node.value} is outside of the range of int", node.offset)
        return self.writer.add_constant(node.value)

    def _compile_access(self, node: NameNode | AccessNode, steps: tuple[AccessStep, ...], scope: Scope) -> Operand:
        resolved = self.names.resolve(node, scope)
        if resolved is None:
            assert isinstance(node, AccessNode)
            return self._compile_steps(self._compile_node(node.base, scope), steps, scope)
        steps_after_name = steps[resolved.step_count :]
        if resolved.kind == "variable":
            return self._compile_variable(resolved.name, find_name_offset(node), steps_after_name, scope)
        return self._compile_steps(self._compile_name(resolved, node, steps, scope), steps_after_name, scope)

    def _compile_variable(self, name: str, offset: int, steps: tuple[AccessStep, ...], scope: Scope) -> Operand:
        """Write the code that reads a declared variable and evaluates the accesses to its value."""
        local = self.writer.read_variable(name)
        check = f"if {local} is MISSING: raise_no_value({self.writer.add_object(name)})"
        path = _list_constant_accesses(steps)
        if not path:
            self.writer.write(check, offset)
            return self._compile_steps(Operand(local), steps, scope)
        # A variable without a value contains `MISSING`, and each access to a field of `MISSING` fails. Therefore, the
        # generated code checks for `MISSING` only after a failed access.
        value = self._compile_path(local, path, lambda: self.writer.write(check, offset))
        return self._compile_steps(value, steps[len(path) :], scope)

    def _compile_path(self, value: str, path: ConstantPath, write_check: Callable[[], None] = lambda: None) -> Operand:
        writer = self.writer
        local = writer.add_local()
        keys = "".join(f"[{writer.add_object(key)}]" for key, _, _ in path)
        with writer.block("try:"):
            writer.write(f"{local} = {value}{keys}")
        with writer.block("except NO_ENTRY:"):
            write_check()
            writer.write(f"{local} = read_path(budget, {value}, {writer.add_object(path)})")
        return Operand(local)

    def _compile_name(
        self, resolved: ResolvedName, node: NameNode | AccessNode, steps: tuple[AccessStep, ...], scope: Scope
    ) -> Operand:
        match resolved.kind:
            case "local":
                return self._read_local(scope[resolved.name])
            case "type":
                return self.writer.add_constant(CEL_TYPES[resolved.name])
            case "function":
                method = steps[resolved.step_count - 1]
                assert isinstance(method, MethodStep)
                return self._compile_call(resolved.name, method.arguments, method.offset, scope)
            case _:
                return self._write_failure(
                    "CelUndeclared", f"the variable '{resolved.name}' is not declared", find_name_offset(node)
                )

    def _write_failure(self, code: str, message: str, offset: int) -> Operand:
        code_name, message_name = self.writer.add_object(code), self.writer.add_object(message)
        return self.writer.assign(f"raise_failure({code_name}, {message_name})", offset)

    def _read_local(self, variable: Operand | BoundVariable) -> Operand:
        if isinstance(variable, Operand):
            return variable
        writer = self.writer
        value = writer.assign(f"{variable.cell}[0]")
        with writer.block(f"if {value.text} is PENDING:"):
            writer.spend_steps(variable.cost)
            call = _format_call(variable.function, variable.parameters)
            writer.write(f"{value.text} = {variable.cell}[0] = {call}")
        return value

    def _compile_call(self, name: str, arguments: tuple[SyntaxNode, ...], offset: int, scope: Scope) -> Operand:
        overloads = _select_by_argument_count(self.functions.get(name, ()), len(arguments))
        if not overloads:
            return self._write_failure(
                "CelUnknownFunction", f"there is no function {name}() for these arguments", offset
            )
        operands = [self._compile_node(argument, scope) for argument in arguments]
        return write_call(self.writer, name, overloads, operands, offset)

    def _compile_steps(self, value: Operand, steps: tuple[AccessStep, ...], scope: Scope) -> Operand:
        while steps:
            if path := _list_constant_accesses(steps):
                value, steps = self._compile_path(value.text, path), steps[len(path) :]
            elif isinstance(steps[0], FieldStep) and steps[0].optional:
                value, steps = self._compile_optional_fields(value, steps, scope)
            else:
                value, steps = self._compile_step(value, steps[0], scope), steps[1:]
        return value

    def _compile_step(self, value: Operand, step: AccessStep, scope: Scope) -> Operand:
        writer = self.writer
        match step:
            case FieldStep():
                key = writer.add_object(step.name)
                test = f"{key} in {value.text} if type({value.text}) is dict else has_field({value.text}, {key})"
                return writer.assign(test, step.offset, bool)
            case IndexStep():
                index = self._compile_node(step.index, scope)
                read = "read_optional_index" if step.optional else "read_index"
                return writer.assign(f"{read}(budget, {value.text}, {index.text})", step.offset)
            case MethodStep():
                overloads = _select_by_argument_count(self.methods.get(step.name, ()), len(step.arguments) + 1)
                operands = [value, *(self._compile_node(argument, scope) for argument in step.arguments)]
                return write_call(writer, step.name, overloads, operands, step.offset)
            case LoopStep():
                return self._compile_loop(value, step, scope)
            case AlternativeStep():
                return self._compile_alternative(value, step, scope)
            case _:
                assert isinstance(step, OptionalMapStep)
                return self._compile_optional_map(value, step, scope)

    def _compile_optional_fields(
        self, value: Operand, steps: tuple[AccessStep, ...], scope: Scope
    ) -> tuple[Operand, tuple[AccessStep, ...]]:
        """Write the code for `.?a.b` and a following `orValue`. Return the value and the remaining accesses."""
        writer = self.writer
        fields = [*takewhile(lambda step: isinstance(step, FieldStep) and not step.test, steps)]
        local = self._write_optional_field(value.text, fields[0])
        for step in fields[1:]:
            with writer.block(f"if {local} is not MISSING:"):
                writer.write(f"{local} = {self._write_optional_field(local, step)}")
        match steps[len(fields) :]:
            case [AlternativeStep(function="orValue") as alternative, *others]:
                with writer.block(f"if {local} is MISSING:"):
                    writer.write(f"{local} = {self._compile_node(alternative.argument, scope).text}")
                return Operand(local), tuple(others)
            case others:
                optional = f"EMPTY_OPTIONAL if {local} is MISSING else CelOptional(True, {local})"
                return writer.assign(optional, kind=CelOptional), tuple(others)

    def _write_optional_field(self, value: str, step: AccessStep) -> str:
        assert isinstance(step, FieldStep)
        key = self.writer.add_object(step.name)
        read = f"{value}.get({key}, MISSING) if type({value}) is dict else find_optional_field({value}, {key})"
        return self.writer.assign(read, step.offset).text

    def _compile_loop(self, value: Operand, step: LoopStep, scope: Scope) -> Operand:
        variables = tuple(self.writer.add_local() for _ in step.variables)
        inner = {**scope, **dict(zip(step.variables, map(Operand, variables), strict=True))}
        condition = step.condition
        write_condition = None if condition is None else lambda: self._compile_node(condition, inner)
        return LoopCode(
            self.writer, step, value, variables, write_condition, lambda: self._compile_node(step.body, inner)
        ).write()

    def _compile_alternative(self, value: Operand, step: AlternativeStep, scope: Scope) -> Operand:
        writer, is_flat = self.writer, step.function == "orValue"
        self._check_optional(value, f"{step.function}()", step.offset)
        result = writer.assign(f"{value.text}.value" if is_flat else value.text)
        with writer.block(f"if not {value.text}.is_present:"):
            other = self._compile_node(step.argument, scope)
            if not is_flat:
                self._check_optional(other, "or()", step.offset)
            writer.write(f"{result.text} = {other.text}")
        return result

    def _check_optional(self, value: Operand, operation: str, offset: int) -> None:
        if value.kind is not CelOptional:
            self.writer.write(f"check_optional({value.text}, {self.writer.add_object(operation)})", offset)

    def _compile_optional_map(self, value: Operand, step: OptionalMapStep, scope: Scope) -> Operand:
        writer = self.writer
        self._check_optional(value, f"{step.function}()", step.offset)
        result = writer.assign("EMPTY_OPTIONAL", kind=CelOptional)
        with writer.block(f"if {value.text}.is_present:"):
            variable = writer.assign(f"{value.text}.value")
            body = self._compile_node(step.body, {**scope, step.variable: variable})
            if step.function == "optFlatMap":
                self._check_optional(body, "optFlatMap()", step.offset)
                writer.write(f"{result.text} = {body.text}")
            else:
                writer.write(f"{result.text} = CelOptional(True, {body.text})")
        return result

    def _compile_bind(self, node: BindNode, scope: Scope) -> Operand:
        parameters = _list_local_variables(scope)
        with self.writer.function(parameters) as function:
            self.writer.write(f"return {self._compile_node(node.value, scope).text}")
        cell = self.writer.assign("[PENDING]").text
        variable = BoundVariable(cell, function, parameters, node.value.size)
        return self._compile_node(node.body, {**scope, node.variable: variable})

    def _compile_chain(self, node: BinaryChainNode, scope: Scope) -> Operand:
        value = self._compile_node(node.first, scope)
        for operator, offset, operand in node.operations:
            right = self._compile_node(operand, scope)
            if operator == "in" and (texts := _list_constant_texts(operand)):
                value = write_membership(self.writer, value, right, texts, offset)
            else:
                value = write_binary(self.writer, operator, value, right, offset)
        return value

    def _compile_logical(self, node: LogicalNode, scope: Scope) -> Operand:
        """Write the code of the operator `||` or `&&`.

        An operand that determines the result (true for `||`, false for `&&`) overrides the errors of other operands.
        """
        writer, decisive = self.writer, node.operator == "||"
        error, result = writer.assign("None").text, Operand(writer.add_local(), bool)
        operator, offset = writer.add_object(node.operator), writer.add_object(node.offset)
        with writer.block("while True:"):
            for operand in node.operands:
                with writer.block("try:"):
                    value = self._compile_node(operand, scope)
                with writer.block("except EvaluationError as failure:"):
                    writer.write(f"{error} = absorb_error({error}, failure, offsets)")
                with writer.block("else:"):
                    with writer.block(f"if {value.text} is {decisive}:"):
                        writer.write(f"{result.text} = {decisive}")
                        writer.write("break")
                    if value.kind is not bool:
                        with writer.block(f"if {value.text} is not {not decisive}:"):
                            writer.write(f"{error} = absorb_not_bool({error}, {operator}, {value.text}, {offset})")
            writer.write(f"if {error} is not None: raise {error}")
            writer.write(f"{result.text} = {not decisive}")
            writer.write("break")
        return result

    def _compile_conditional(self, node: ConditionalNode, scope: Scope) -> Operand:
        writer, result = self.writer, self.writer.add_local()
        kinds = set()
        with writer.block("while True:"):
            for test, value in node.arms:
                condition = self._compile_node(test, scope)
                with writer.block(f"if {condition.text} is True:"):
                    kinds.add(self._compile_branch(result, value, scope))
                if condition.kind is not bool:
                    operator = writer.add_object("?:")
                    check = f"if {condition.text} is not False: raise_not_bool({operator}, {condition.text})"
                    writer.write(check, node.offset)
            kinds.add(self._compile_branch(result, node.otherwise, scope))
        return Operand(result, kinds.pop() if len(kinds) == 1 else None)

    def _compile_branch(self, result: str, node: SyntaxNode, scope: Scope) -> type | None:
        value = self._compile_node(node, scope)
        self.writer.write(f"{result} = {value.text}")
        self.writer.write("break")
        return value.kind

    def _compile_list(self, node: ListLiteral, scope: Scope) -> Operand:
        writer = self.writer
        writer.allocate(CONTAINER_BYTES + ELEMENT_BYTES * len(node.items))
        items = []
        for item, is_optional in node.items:
            items.append(self._compile_item(item, scope, is_optional=is_optional, syntax="[?…]", offset=node.offset))
        result = writer.assign(f"[{', '.join(item.text for item in items)}]", kind=list)
        if tests := [f"{item.text} is OMIT" for item in items if item.kind is None]:
            writer.write(f"if {' or '.join(tests)}: {result.text} = remove_omitted({result.text})")
        return result

    def _compile_item(self, node: SyntaxNode, scope: Scope, *, is_optional: bool, syntax: str, offset: int) -> Operand:
        """Write the code of an item of a list or map. The value is `OMIT` if the item must be removed."""
        value = self._compile_node(node, scope)
        if not is_optional:
            return value
        return self.writer.assign(f"unwrap_item({value.text}, {self.writer.add_object(syntax)})", offset)

    def _compile_map(self, node: MapLiteral, scope: Scope) -> Operand:
        writer = self.writer
        writer.allocate(CONTAINER_BYTES)
        result = writer.assign("{}", kind=dict)
        known_keys: set[str] | None = set()
        for key_node, value_node, is_optional in node.entries:
            key = self._compile_node(key_node, scope)
            offset = key_node.offset
            value = self._compile_item(value_node, scope, is_optional=is_optional, syntax="{?…}", offset=offset)
            is_new = known_keys is not None and type(key.constant) is str and key.constant not in known_keys
            with writer.block("if True:" if value.kind else f"if {value.text} is not OMIT:"):
                if is_new:
                    writer.allocate(ENTRY_BYTES, offset)
                    writer.write(f"{result.text}[{key.text}] = {value.text}")
                else:
                    writer.write(f"add_checked_entry(budget, {result.text}, {key.text}, {value.text})", offset)
            known_keys = {*known_keys, key.constant} if is_new and known_keys is not None else None
        return result


@cached(1024)
def _create_factory(source: str) -> Callable[..., Any]:
    """Return the function `create` of the generated code."""
    names: dict[str, Any] = {}
    # The source contains only names of this package, and no text of an expression.
    exec(compile(source, GENERATED_FILE, "exec", dont_inherit=True), SUPPORT, names)  # noqa: S102  # nosec B102
    factory: Callable[..., Any] = names["create"]
    return factory


def _select_by_argument_count(overloads: tuple[Overload, ...], count: int) -> tuple[Overload, ...]:
    return tuple(candidate for candidate in overloads if candidate.accepts_count(count))


def _list_constant_accesses(steps: Iterable[AccessStep]) -> ConstantPath:
    """Return the steps at the start of an access path whose keys are constant.

    For example, return the steps `.a` and `["b"]` of the access path `.a["b"][i]`.
    """
    accesses: list[tuple[str, bool, int]] = []
    for step in steps:
        match step:
            case FieldStep(name=name, optional=False, test=False):
                accesses.append((name, False, step.offset))
            case IndexStep(index=LiteralNode(value=str(name)), optional=False):
                accesses.append((name, True, step.offset))
            case _:
                break
    return tuple(accesses)


def _list_constant_texts(node: SyntaxNode) -> list[str]:
    """Return the elements of a list literal that contains only constant strings. Otherwise, return an empty list."""
    match node:
        case ListLiteral(items=items):
            texts = [
                item.value
                for item, optional in items
                if isinstance(item, LiteralNode) and type(item.value) is str and not optional
            ]
            return texts if len(texts) == len(items) else []
        case _:
            return []


def _list_local_variables(scope: Scope) -> tuple[str, ...]:
    """Return the names of the Python variables for the local variables of a scope."""
    names: dict[str, None] = {}
    for variable in scope.values():
        if isinstance(variable, Operand):
            names[variable.text] = None
        else:
            names.update(dict.fromkeys((variable.cell, *variable.parameters)))
    return tuple(names)


def _format_call(function: str, parameters: Iterable[str]) -> str:
    return f"{function}({', '.join(('bindings', 'budget', *parameters))})"
