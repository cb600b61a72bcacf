"""Work limit for all patches of one render, so that patches cannot produce too much data."""

from __future__ import annotations

from typing import Any

from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFindingError, build_field_finding
from reconciler.krm.yaml import DEFAULT_YAML_LIMITS, DataPath
from reconciler.lazy_dataclasses import dataclass

MAX_DEPTH = DEFAULT_YAML_LIMITS.depth
"""Maximum nesting depth of a patched resource, which is also the maximum depth of the YAML reader."""
MAX_PATCH_COST = 4_000_000
# Costs of one operation, one copied value and one read. The unit is one written character.
_OPERATION_COST = 64
_VALUE_COST = 8
_READ_COST = 16


@dataclass
class PatchBudget:
    """Remaining work for the patches of one render. The unit is one written character.

    Each operation, copied value and read also costs a fixed number of characters. All methods raise FieldFindingError
    if `remaining` becomes negative.
    """

    remaining: int = MAX_PATCH_COST

    def charge_operation(self, field_path: DataPath) -> None:
        """Subtract the cost of one operation from `remaining`."""
        self.charge(_OPERATION_COST, field_path)

    def charge(self, characters: int, field_path: DataPath) -> None:
        """Subtract a number of characters from `remaining`."""
        self.remaining -= characters
        if self.remaining < 0:
            message = (
                f"exceeds a limit: all patches of a render together can write at most {MAX_PATCH_COST:,} characters;"
                " each operation and each read counts as additional characters"
            )
            raise FieldFindingError(build_field_finding(ComponentCodes.PATCH_TOO_LARGE, field_path, message))

    def copy_for_expressions(self, value: Any, field_path: DataPath) -> Any:
        """Return a copy of `value` for use in expressions, and subtract the cost of the copy from `remaining`.

        The cost does not depend on the length of strings, because the copy refers to the same string objects.
        """
        self.charge(_VALUE_COST, field_path)
        match value:
            case dict():
                return {key: self.copy_for_expressions(item, field_path) for key, item in value.items()}
            case list():
                return [self.copy_for_expressions(item, field_path) for item in value]
            case _:
                return value

    def charge_reads(self, count: int, field_path: DataPath) -> None:
        """Subtract the cost of `count` reads from `remaining`."""
        self.charge(_READ_COST * count, field_path)

    def copy_value(self, value: Any, depth: int, field_path: DataPath) -> Any:
        """Return a deep copy of `value`, and subtract the cost of the copy from `remaining`.

        `depth` is the number of path steps from the root of the resource to the location of the copy.

        Raises:
            FieldFindingError: `remaining` becomes negative, or the copy is nested more than `MAX_DEPTH` levels deep.
        """
        if depth > MAX_DEPTH:
            message = f"must not be nested more than {MAX_DEPTH} levels deep"
            raise FieldFindingError(build_field_finding(ComponentCodes.PATCH_TOO_LARGE, field_path, message))
        self.charge(_VALUE_COST + len(value) if isinstance(value, str) else _VALUE_COST, field_path)
        match value:
            case dict():
                self.charge(sum(map(len, value)), field_path)
                return {key: self.copy_value(item, depth + 1, field_path) for key, item in value.items()}
            case list():
                return [self.copy_value(item, depth + 1, field_path) for item in value]
            case _:
                return value
