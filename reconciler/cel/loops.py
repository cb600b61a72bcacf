"""Writer of the Python code for macros that iterate over a list or map, such as `all`, `map` and `filter`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reconciler.cel.budget import CONTAINER_BYTES, ELEMENT_BYTES, ENTRY_BYTES
from reconciler.cel.code_writer import CodeWriter, Operand
from reconciler.cel.syntax import LoopStep
from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoopCode:
    """Writer of the code for one macro, e.g. `.filter(x, x > 1)`.

    Attributes:
        value: The list or map.
        variables: Names of the Python variables for the variables of the macro.
        write_condition: Function that writes the code of the condition, and returns the operand with the result. None
            if the macro has no condition.
        write_body: Function that writes the code of the body, and returns the operand with the result.
    """

    writer: CodeWriter
    step: LoopStep
    value: Operand
    variables: tuple[str, ...]
    write_condition: Callable[[], Operand] | None
    write_body: Callable[[], Operand]

    def write(self) -> Operand:
        """Write the code of the macro. Return the operand with the result."""
        match self.step.kind:
            case "all" | "exists":
                return self._write_quantifier()
            case "exists_one":
                return self._write_exists_one()
            case "filter":
                return self._write_filter()
            case "map":
                return self._write_map()
            case "sortBy":
                return self._write_sort_by()
            case "transformMap":
                return self._write_transform_map()
            case _:
                return self._write_transform_entries()

    @contextmanager
    def _write_iteration(self) -> Iterator[None]:
        """Write the loop. The lines that are written inside the `with` statement are the body of the loop."""
        with (
            self.writer.iteration(self.step.offset),
            self.writer.block(f"for {', '.join(self.variables)} in {self._write_members()}:"),
        ):
            self.writer.spend_steps(self.step.size)
            yield

    def _write_members(self) -> str:
        value, macro = self.value, self.writer.add_object(self.step.name)
        if len(self.variables) == 1:
            fast, general = value.text, f"list_members(budget, {value.text}, {macro})"
        else:
            fast, general = f"enumerate({value.text})", f"list_pairs(budget, {value.text}, {macro})"
        return fast if value.kind is list else f"{fast} if type({value.text}) is list else {general}"

    @contextmanager
    def _write_selection(self) -> Iterator[None]:
        """Write the loop and its condition. The lines inside the `with` statement run for each selected element."""
        with self._write_iteration():
            if self.write_condition is None:
                yield
                return
            with self._write_test(self.write_condition()):
                yield

    @contextmanager
    def _write_test(self, condition: Operand) -> Iterator[None]:
        """Write an `if` statement for a condition. Lines that the `with` block writes are the body of the `if`."""
        with self.writer.block(f"if {condition.text} is True:"):
            yield
        self._write_bool_check(condition, other="False")

    def _write_bool_check(self, condition: Operand, other: str) -> None:
        """Write an `elif` branch that raises an error if a condition is not a bool.

        The generated `if` branch before it handles one of the two bools. `other` is the other bool, "True" or "False".
        """
        if condition.kind is not bool:
            macro = self.writer.add_object(f"{self.step.name}()")
            self.writer.write(f"elif {condition.text} is not {other}: raise_not_bool({macro}, {condition.text})")

    def _write_quantifier(self) -> Operand:
        """Write the macro `exists` or `all`.

        Errors of elements are ignored if one element determines the result (true for `exists`, false for `all`).
        """
        writer, decisive = self.writer, self.step.kind == "exists"
        error = writer.assign("None")
        result = writer.assign(str(not decisive), kind=bool)
        with self._write_iteration():
            with writer.block("try:"):
                condition = self.write_body()
                with writer.block(f"if {condition.text} is {decisive}:"):
                    writer.write(f"{result.text} = {decisive}")
                    writer.write("break")
                self._write_bool_check(condition, other=str(not decisive))
            with writer.block("except EvaluationError as failure:"):
                writer.write(f"{error.text} = absorb_error({error.text}, failure, offsets)")
        with writer.block("else:"):
            writer.write(f"if {error.text} is not None: raise {error.text}")
        return result

    def _write_exists_one(self) -> Operand:
        writer = self.writer
        count = writer.assign("0")
        with self._write_iteration(), self._write_test(self.write_body()):
            writer.write(f"{count.text} += 1")
        return writer.assign(f"{count.text} == 1", kind=bool)

    def _write_filter(self) -> Operand:
        writer = self.writer
        results = writer.assign("[]", kind=list)
        with self._write_iteration(), self._write_test(self.write_body()):
            writer.write(f"{results.text}.append({self.variables[0]})")
        writer.allocate(f"{CONTAINER_BYTES} + {ELEMENT_BYTES} * len({results.text})", self.step.offset)
        return results

    def _write_map(self) -> Operand:
        writer = self.writer
        writer.allocate(CONTAINER_BYTES, self.step.offset)
        results = writer.assign("[]", kind=list)
        with self._write_selection(), self._write_unless_omitted(self.write_body()) as element:
            writer.allocate(ELEMENT_BYTES)
            writer.write(f"{results.text}.append({element})")
        return results

    @contextmanager
    def _write_unless_omitted(self, element: Operand) -> Iterator[str]:
        """Write a test that an element is not `OMIT`. The lines inside the `with` statement add the element."""
        if element.kind is not None:
            yield element.text
            return
        with self.writer.block(f"if {element.text} is not OMIT:"):
            yield element.text

    def _write_sort_by(self) -> Operand:
        writer, offset = self.writer, self.step.offset
        writer.write(f"check_sortable({self.value.text})", offset)
        elements, keys = writer.assign("[]"), writer.assign("[]")
        with self._write_selection():
            writer.allocate(2 * ELEMENT_BYTES)
            writer.write(f"{elements.text}.append({self.variables[0]})")
            writer.write(f"{keys.text}.append({self.write_body().text})")
        return writer.assign(f"sort_by_keys(budget, {elements.text}, {keys.text})", offset, list)

    def _write_transform_map(self) -> Operand:
        writer = self.writer
        writer.allocate(CONTAINER_BYTES, self.step.offset)
        results = writer.assign("{}", kind=dict)
        with self._write_selection(), self._write_unless_omitted(self.write_body()) as element:
            writer.allocate(ENTRY_BYTES)
            writer.write(f"{results.text}[encode_map_key({self.variables[0]})] = {element}")
        return results

    def _write_transform_entries(self) -> Operand:
        writer = self.writer
        writer.allocate(CONTAINER_BYTES, self.step.offset)
        results = writer.assign("{}", kind=dict)
        macro = writer.add_object(self.step.name)
        with self._write_selection():
            entries = self.write_body()
            writer.write(f"add_entries(budget, {results.text}, {entries.text}, {macro})")
        return results
