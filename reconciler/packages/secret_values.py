"""Search for the unencrypted values of a Secret. Everyone with read access to a branch could read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.krm.yaml import DataPath
from reconciler.redaction import SECRET_VALUE_FIELDS, is_ciphertext, is_secret


def find_plaintext_values(data: Any, *, is_encrypted: bool) -> tuple[DataPath, ...]:
    """Return the paths of the values in a Secret of the core group. Empty values are placeholders and do not count.

    Args:
        is_encrypted: Whether the resource is in a SOPS document, so that ciphertexts do not count.
    """
    fields = [(field, data.get(field)) for field in SECRET_VALUE_FIELDS] if is_secret(data) else []
    return tuple(path for field, values in fields for path in _find_in_field(field, values, is_encrypted=is_encrypted))


def _find_in_field(field: str, values: Any, *, is_encrypted: bool) -> Iterator[DataPath]:
    entries = (
        {(field, key): value for key, value in values.items()} if isinstance(values, Mapping) else {(field,): values}
    )
    for path, value in entries.items():
        has_value = value is not None and bool(str(value).strip())
        if has_value and not (is_encrypted and is_ciphertext(value)):
            yield path
