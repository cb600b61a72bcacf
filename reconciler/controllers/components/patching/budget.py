"""Budget of all patches in one render, which stops patches that produce too much data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.controllers.components.codes import PATCH_TOO_LARGE
from reconciler.controllers.components.field_findings import FieldFindingError, build_field_finding
from reconciler.krm.yaml import DEFAULT_YAML_LIMITS, DataPath

MAX_DEPTH = DEFAULT_YAML_LIMITS.depth
"""Resources must not be nested deeper than the YAML reader accepts."""
MAX_PATCH_COST = 4_000_000
# Cost of an operation, a value and a read, in characters.
_OPERATION_COST = 64
_VALUE_COST = 8
_READ_COST = 16


@dataclass
class PatchBudget:
    """Number of characters that the patches of a render may still write. Other work is converted to characters.

    All methods raise FieldFindingError if the budget is exhausted.
    """

    remaining: int = MAX_PATCH_COST

    def charge_operation(self, field_path: DataPath) -> None:
        """Charge one operation."""
        self.charge(_OPERATION_COST, field_path)

    def charge(self, characters: int, field_path: DataPath) -> None:
        """Charge work in characters."""
        self.remaining -= characters
        if self.remaining < 0:
            limit = f"{MAX_PATCH_COST:,} written characters or equivalent work"
            message = f"exceeds the limit for the patches of a render: {limit}"
            raise FieldFindingError(build_field_finding(PATCH_TOO_LARGE, field_path, message))

    def copy_for_expressions(self, value: Any, field_path: DataPath) -> Any:
        """Return a copy for expressions. Strings are shared, so their length is not charged."""
        self.charge(_VALUE_COST, field_path)
        match value:
            case dict():
                return {key: self.copy_for_expressions(item, field_path) for key, item in value.items()}
            case list():
                return [self.copy_for_expressions(item, field_path) for item in value]
            case _:
                return value

    def charge_reads(self, count: int, field_path: DataPath) -> None:
        """Charge reads of values."""
        self.charge(_READ_COST * count, field_path)

    def copy_value(self, value: Any, depth: int, field_path: DataPath) -> Any:
        """Return a deep copy of a value for a location that is `depth` steps below the root.

        Raises:
            FieldFindingError: The budget is exhausted, or the result would be nested too deeply.
        """
        if depth > MAX_DEPTH:
            message = f"must not be nested more than {MAX_DEPTH} levels deep"
            raise FieldFindingError(build_field_finding(PATCH_TOO_LARGE, field_path, message))
        self.charge(_VALUE_COST + len(value) if isinstance(value, str) else _VALUE_COST, field_path)
        match value:
            case dict():
                self.charge(sum(map(len, value)), field_path)
                return {key: self.copy_value(item, depth + 1, field_path) for key, item in value.items()}
            case list():
                return [self.copy_value(item, depth + 1, field_path) for item in value]
            case _:
                return value
