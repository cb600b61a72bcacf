"""Static checks of CEL expressions: existence of names, fields and functions, and the nesting of loops.

This module also resolves names. A name can be a local variable, a function with a dotted name, a declared variable,
or a type. The first of these that exists is used, as in the CEL specification.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from reconciler.cel.errors import EvaluationError
from reconciler.cel.library import conversions, times
from reconciler.cel.library.signatures import FunctionTable, Overload
from reconciler.cel.macros import MACRO_NAMES
from reconciler.cel.syntax import (
    AccessNode,
    AccessStep,
    AlternativeStep,
    BindNode,
    CallNode,
    FieldStep,
    IndexStep,
    ListLiteral,
    LiteralNode,
    LoopStep,
    MapLiteral,
    MethodStep,
    NameNode,
    OptionalMapStep,
    SyntaxNode,
    find_name_offset,
    list_children,
)
from reconciler.cel.values import CEL_TYPES
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ResolvedName:
    """The meaning of the name at the start of a node, e.g. of `a.b` in `a.b.c[0]`.

    `step_count` is the number of fields and methods that belong to the name after the first identifier, e.g. 1 for
    `a.b`.
    """

    kind: Literal["local", "variable", "type", "function", "undeclared"]
    name: str
    step_count: int = 0


@dataclass(frozen=True, slots=True)
class NameResolver:
    """Resolver for names of functions and declared variables. Names can contain dots, e.g. `math.abs`.

    `container` is a prefix of variable names, as in CEL. If it is `a.b`, the name `x` means the first of `a.b.x`, `a.x`
    and `x` that is declared.
    """

    variables: Container[str]
    functions: Container[str]
    container: str = ""

    def resolve(self, node: NameNode | AccessNode, local: Container[str]) -> ResolvedName | None:
        """Return the meaning of the name at the start of a node. Return None if the node does not start with a name.

        The longest declared name takes precedence, e.g. `a.b` over `a` at the start of `a.b.c`.
        """
        name = node.base if isinstance(node, AccessNode) else node
        if not isinstance(name, NameNode):
            return None
        fields, is_call = _split_name(node)
        if name.name in local and not name.absolute:
            return ResolvedName("local", name.name)
        if fields and is_call and ".".join((name.name, *fields)) in self.functions:
            return ResolvedName("function", ".".join((name.name, *fields)), len(fields))
        fields = fields[:-1] if is_call else fields
        return self._find_variable(name, fields) or _find_type(name, fields) or ResolvedName("undeclared", name.name)

    def _find_variable(self, name: NameNode, fields: list[str]) -> ResolvedName | None:
        for step_count in range(len(fields), -1, -1):
            path = ".".join((name.name, *fields[:step_count]))
            for prefix in ("",) if name.absolute else _iterate_prefixes(self.container):
                if prefix + path in self.variables:
                    return ResolvedName("variable", prefix + path, step_count)
        return None


def _find_type(name: NameNode, fields: list[str]) -> ResolvedName | None:
    for step_count in range(len(fields), -1, -1):
        path = ".".join((name.name, *fields[:step_count]))
        if path in CEL_TYPES:
            return ResolvedName("type", path, step_count)
    return None


def _split_name(node: SyntaxNode) -> tuple[list[str], bool]:
    """Return the names after the first identifier, and whether the last name is a method.

    Example: (["b", "c"], True) for `a.b.c(x)`.
    """
    fields: list[str] = []
    for step in node.steps if isinstance(node, AccessNode) else ():
        if isinstance(step, MethodStep):
            return [*fields, step.name], True
        if not isinstance(step, FieldStep) or step.optional or step.test:
            break
        fields.append(step.name)
    return fields, False


def _iterate_prefixes(container: str) -> Iterator[str]:
    while container:
        yield container + "."
        container = container.rpartition(".")[0]
    yield ""


FieldDeclarations: TypeAlias = Mapping[str, Any] | None
"""A mapping from the name of each declared field to the declared fields of its value. None allows all fields."""


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """One access to a field with a constant name, e.g. `.size` or `["size"]`.

    Attributes:
        name: Name of the field.
        start: Offset where this access begins: after the variable, or after the previous access.
        end: Offset after this access.
        is_optional: Whether the access has the form `.?size`.
        is_test: Whether the access is the last field in `has(spec.size)`.
    """

    name: str
    start: int
    end: int
    is_optional: bool = False
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class VariableReference:
    """One use of a declared variable in an expression.

    Attributes:
        name: Name of the variable.
        start: Offset of the variable, or of its leading dot.
        end: Offset after the variable.
        is_absolute: Whether the variable has a leading dot.
        accesses: The field accesses with constant names that directly follow the variable.
    """

    name: str
    start: int
    end: int
    is_absolute: bool = False
    accesses: tuple[FieldAccess, ...] = ()


STANDARD_FUNCTIONS = frozenset(
    {*conversions.FUNCTIONS, *times.METHODS, "contains", "startsWith", "endsWith", "matches"}
    | {"all", "exists", "exists_one", "map", "filter"}
)
"""The names of the functions, methods and macros of standard CEL, which every CEL engine supports.

A macro in this set is standard only with one variable, e.g. `list.map(x, x + 1)`.
"""


@dataclass
class StaticCheck:
    """Check of one syntax tree. It raises `EvaluationError` for the first error.

    Attributes:
        nesting: Maximum number of nested loops.
        used_variables: Result: the declared variables that the expression uses.
        references: Result: each use of a declared variable.
        field_reads: Result: paths of the fields that the expression reads, e.g. `("spec", "size")`.
        extensions: Result: the nonstandard functions, macros and operators in the expression.
    """

    names: NameResolver
    functions: FunctionTable
    methods: FunctionTable
    declarations: Mapping[str, FieldDeclarations]
    nesting: int
    used_variables: set[str] = field(default_factory=set)
    references: list[VariableReference] = field(default_factory=list)
    extensions: set[str] = field(default_factory=set)
    field_reads: set[tuple[str, ...]] = field(default_factory=set)

    def check_node(self, node: SyntaxNode, local: frozenset[str], loops: int) -> None:
        """Check a node and its children.

        Args:
            local: Names of the local variables that the node can use.
            loops: Number of loops around the node.
        """
        self.extensions |= find_extensions(node)
        match node:
            case NameNode() | AccessNode():
                self._check_path(node, local, loops)
            case CallNode():
                self._check_function(node.function, len(node.arguments), node.offset)
                self._check_all(node.arguments, local, loops)
            case BindNode():
                self.check_node(node.value, local, loops)
                self.check_node(node.body, local | {node.variable}, loops)
            case _:
                self._check_all(list_children(node), local, loops)

    def _check_all(self, nodes: Iterable[SyntaxNode], local: frozenset[str], loops: int) -> None:
        for node in nodes:
            self.check_node(node, local, loops)

    def _check_path(self, node: NameNode | AccessNode, local: frozenset[str], loops: int) -> None:
        resolved = self.names.resolve(node, local)
        steps = node.steps if isinstance(node, AccessNode) else ()
        if resolved is None:
            assert isinstance(node, AccessNode)
            self.check_node(node.base, local, loops)
        else:
            self._check_name(node, resolved, steps)
        for index, step in enumerate(steps):
            is_function = resolved is not None and resolved.kind == "function" and index == resolved.step_count - 1
            self._check_step(step, local, loops, is_function=is_function)

    def _check_name(self, node: SyntaxNode, resolved: ResolvedName, steps: tuple[AccessStep, ...]) -> None:
        match resolved.kind:
            case "undeclared":
                raise self._create_undeclared_error(resolved.name, node)
            case "variable":
                self.used_variables.add(resolved.name)
                self.references.append(_create_reference(node, resolved, steps))
                self.field_reads.add((resolved.name, *_iterate_leading_fields(steps[resolved.step_count :])))
                _check_fields(resolved.name, self.declarations[resolved.name], steps[resolved.step_count :])
            case "function":
                method = steps[resolved.step_count - 1]
                assert isinstance(method, MethodStep)
                self._check_function(resolved.name, len(method.arguments), method.offset)

    def _check_step(self, step: AccessStep, local: frozenset[str], loops: int, *, is_function: bool) -> None:
        self.extensions |= find_extensions(step)
        match step:
            case LoopStep():
                if loops == self.nesting:
                    raise EvaluationError(
                        "CelNesting", f"comprehensions are nested more than {self.nesting} levels deep", step.offset
                    )
                self._check_all(list_children(step), local | set(step.variables), loops + 1)
            case OptionalMapStep():
                self.check_node(step.body, local | {step.variable}, loops)
            case MethodStep():
                if not is_function:
                    self._check_method(step)
                self._check_all(step.arguments, local, loops)
            case _:
                self._check_all(list_children(step), local, loops)

    def _create_undeclared_error(self, name: str, node: SyntaxNode) -> EvaluationError:
        declared = ", ".join(sorted(self.declarations)) or "none"
        return EvaluationError(
            "CelUndeclared",
            f"the variable '{name}' is not declared; declared variables: {declared}",
            find_name_offset(node),
        )

    def _check_function(self, name: str, count: int, offset: int) -> None:
        if name not in STANDARD_FUNCTIONS:
            self.extensions.add(name)
        if name in self.functions:
            _check_argument_count(name, self.functions[name], count, 0, offset)
        elif name in self.methods or name in MACRO_NAMES:
            raise EvaluationError("CelUnknownFunction", f"{name}() is a method; write x.{name}(…)", offset)
        else:
            raise EvaluationError("CelUnknownFunction", f"there is no function {name}()", offset)

    def _check_method(self, method: MethodStep) -> None:
        if method.name not in STANDARD_FUNCTIONS:
            self.extensions.add(method.name)
        if method.name in self.methods:
            _check_argument_count(method.name, self.methods[method.name], len(method.arguments), 1, method.offset)
        elif method.name in MACRO_NAMES:
            message = f"{method.name}() does not take {format_count(len(method.arguments), 'argument')}"
            raise EvaluationError("CelUnknownFunction", message, method.offset)
        elif method.name in self.functions:
            raise EvaluationError(
                "CelUnknownFunction", f"{method.name}() is a function; write {method.name}(x)", method.offset
            )
        else:
            raise EvaluationError("CelUnknownFunction", f"there is no method {method.name}()", method.offset)


def _create_reference(node: SyntaxNode, resolved: ResolvedName, steps: tuple[AccessStep, ...]) -> VariableReference:
    name = node.base if isinstance(node, AccessNode) else node
    assert isinstance(name, NameNode)
    end = name.end
    for step in steps[: resolved.step_count]:
        assert isinstance(step, FieldStep)
        end = step.end
    accesses = () if name.is_grouped else tuple(_iterate_accesses(steps[resolved.step_count :], end))
    return VariableReference(resolved.name, name.start, end, name.absolute, accesses)


def _iterate_accesses(steps: tuple[AccessStep, ...], start: int) -> Iterator[FieldAccess]:
    for step in steps:
        match step:
            case FieldStep(name=name, end=end):
                yield FieldAccess(name, start, end, step.optional, step.test)
            case IndexStep(index=LiteralNode(value=str(name)), end=end, optional=False):
                yield FieldAccess(name, start, end)
            case _:
                return
        start = end


def _iterate_leading_fields(steps: tuple[AccessStep, ...]) -> Iterator[str]:
    """Yield the names of the fields at the start of an access path, before the first index, method or macro."""
    for step in steps:
        if not isinstance(step, FieldStep):
            return
        yield step.name


def find_extensions(node: SyntaxNode) -> set[str]:
    """Return the nonstandard macros and operators that one node uses, e.g. `cel.bind` and `.?`.

    Nonstandard functions are not included.
    """
    match node:
        case LoopStep():
            return set() if node.name in STANDARD_FUNCTIONS and len(node.variables) == 1 else {node.name}
        case AlternativeStep() | OptionalMapStep():
            return {node.function}
        case BindNode():
            return {"cel.bind"}
        case FieldStep(optional=True):
            return {".?"}
        case IndexStep(optional=True):
            return {"[?]"}
        case ListLiteral(items=items):
            return {"[?]"} if any(optional for _, optional in items) else set()
        case MapLiteral(entries=entries):
            return {"{?}"} if any(optional for _, _, optional in entries) else set()
        case _:
            return set()


def _check_argument_count(name: str, overloads: tuple[Overload, ...], count: int, receivers: int, offset: int) -> None:
    """Raise `EvaluationError` if no overload accepts `count` arguments.

    `receivers` is 1 for a method and 0 for a function. The first parameter of a method is the value before the dot.
    """
    if any(overload.accepts_count(count + receivers) for overload in overloads):
        return
    counts = sorted({len(overload.parameters) - receivers for overload in overloads})
    suffix = " or more" if any(overload.repeated for overload in overloads) else ""
    noun = "argument" if counts == [1] and not suffix else "arguments"
    expected = f"{' or '.join(map(str, counts))}{suffix} {noun}"
    raise EvaluationError("CelUnknownFunction", f"{name}() takes {expected}, not {count}", offset)


def _check_fields(path: str, declarations: FieldDeclarations, steps: tuple[AccessStep, ...]) -> None:
    """Raise `EvaluationError` if an access path reads a field that is not declared."""
    for step in steps:
        match step:
            case FieldStep(name=name) | IndexStep(index=LiteralNode(value=str(name))):
                pass
            case _:
                return
        if declarations is None:
            return
        if name not in declarations:
            names = ", ".join(sorted(declarations)) or "none"
            raise EvaluationError(
                "CelUndefinedField", f"{path} has no field '{name}'; existing fields: {names}", step.offset
            )
        path, declarations = f"{path}.{name}", declarations[name]
