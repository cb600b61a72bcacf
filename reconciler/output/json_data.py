"""Functions for plain data: read fields with type checks, and mask Secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.catalog.trace import ABSENT_FINGERPRINT, Trace
from reconciler.redaction import (
    HIDDEN_CIPHERTEXT,
    LAST_APPLIED_ANNOTATION,
    MASK,
    SEALED_DATA,
    SECRET_VALUE_FIELDS,
    hide_ciphertexts,
    is_ciphertext,
    is_sealed_secret,
    is_secret,
    is_secret_manifest_text,
)


def read_mapping(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the mapping in a field. Return {} if the field is absent or has a different type."""
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def read_mappings(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the mappings from the list in a field. Return [] if the field is absent or is not a list."""
    value = data.get(name)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def mask_secrets(data: Any, previous: Any = None, *, should_mark_changes: bool = False) -> Any:
    """Return a copy of the data in which the values of all Secrets and SealedSecrets are masked.

    Ciphertexts of SOPS are replaced by `ENC[…]`.

    Args:
        data: The data, which can contain Secrets at any depth.
        previous: The earlier version of the data. None if there is no earlier version.
        should_mark_changes: Whether to append "(changed)" to each masked value that differs from `previous`.
    """
    if isinstance(data, str):
        if is_secret_manifest_text(data) or is_ciphertext(data):
            return _mask_value(data, previous, should_mark_changes)
        return hide_ciphertexts(data)
    if isinstance(data, list):
        items = previous if isinstance(previous, list) else []
        return [
            mask_secrets(item, _get_item(items, index), should_mark_changes=should_mark_changes)
            for index, item in enumerate(data)
        ]
    if not isinstance(data, Mapping):
        return data
    previous_fields = previous if isinstance(previous, Mapping) else {}
    mask_field = (
        _mask_secret_field if is_secret(data) else _mask_sealed_field if is_sealed_secret(data) else _mask_nested_field
    )
    return {key: mask_field(key, value, previous_fields.get(key), should_mark_changes) for key, value in data.items()}


def mask_trace(trace: Trace) -> dict[str, str]:
    """Return the trace with masked hashes of Secrets, because a short secret value can be guessed from its hash."""
    return {
        dependency: MASK
        if dependency.startswith("object v1 Secret ") and fingerprint != ABSENT_FINGERPRINT
        else fingerprint
        for dependency, fingerprint in trace.items()
    }


def _mask_nested_field(_key: str, value: Any, previous: Any, should_mark_changes: bool) -> Any:
    return mask_secrets(value, previous, should_mark_changes=should_mark_changes)


def _mask_secret_field(key: str, value: Any, previous: Any, should_mark_changes: bool) -> Any:
    previous_values = previous if isinstance(previous, Mapping) else {}
    if key in SECRET_VALUE_FIELDS and isinstance(value, Mapping):
        return {name: _mask_value(item, previous_values.get(name), should_mark_changes) for name, item in value.items()}
    if key == "metadata" and isinstance(value, Mapping) and isinstance(value.get("annotations"), Mapping):
        annotations = {
            name: MASK if name == LAST_APPLIED_ANNOTATION else text for name, text in value["annotations"].items()
        }
        return hide_ciphertexts({**value, "annotations": annotations})
    if key in SECRET_VALUE_FIELDS:
        return _mask_value(value, previous, should_mark_changes)
    return _mask_nested_field(key, value, previous, should_mark_changes)


def _mask_sealed_field(key: str, value: Any, previous: Any, should_mark_changes: bool) -> Any:
    section, name = SEALED_DATA
    if key != section or not isinstance(value, Mapping) or name not in value:
        return _mask_nested_field(key, value, previous, should_mark_changes)
    previous_data = previous.get(name) if isinstance(previous, Mapping) else None
    masked = _mask_secret_field(SECRET_VALUE_FIELDS[0], value[name], previous_data, should_mark_changes)
    return {**_mask_nested_field(key, value, previous, should_mark_changes), name: masked}


def _mask_value(value: object, previous: object, should_mark_changes: bool) -> str:
    mask = HIDDEN_CIPHERTEXT if is_ciphertext(value) else MASK
    return f"{mask} (changed)" if should_mark_changes and previous is not None and value != previous else mask


def _get_item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None
