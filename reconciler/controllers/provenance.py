"""Provenance: the changes of single values in a resource, and the policy that made each change.

Secret values are masked for output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.json_text import compute_digest, encode_canonical_json
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass
from reconciler.redaction import (
    HIDDEN_CIPHERTEXT,
    MASK,
    contains_secret,
    hide_ciphertexts,
    is_ciphertext,
    is_secret_value,
)

MAX_SHOWN_BYTES = 1024
_DIGEST_LENGTH = 12

ChangeOperation = Literal["added", "replaced", "removed"]
Change = tuple[DataPath, Any, Any]


@dataclass(frozen=True)
class EmbeddedChange:
    """A change inside a string, such as an embedded YAML document.

    `path` is the path of the string. `before` and `after` are the parsed contents of the string.
    """

    path: DataPath
    before: Any
    after: Any


@dataclass(frozen=True)
class ProvenanceStep:
    """One change of one leaf value in a resource. A leaf is a value that contains no other values.

    Values of Secrets are masked, and long values are shortened. ABSENT means that there is no value.

    Attributes:
        path: Path of the leaf. If the leaf is in a document that a string contains, e.g. YAML in a ConfigMap, the path
            is that of the string.
        source_name: Name of the policy or other object that made the change.
        source_item: Item in this object, such as a rule.
        embedded_path: Path of the leaf in the document that the string contains. None if the leaf is not in a string.
    """

    path: DataPath
    source_name: str
    source_item: str
    op: ChangeOperation
    before: Any = ABSENT
    after: Any = ABSENT
    embedded_path: DataPath | None = None

    @property
    def pointer(self) -> str:
        """The JSON pointer to the leaf at the time of the change. A later step can move the leaf to another path.

        For a leaf in a document inside a string, the result is `POINTER!POINTER`: the pointer to the string, and the
        pointer in the document.
        """
        return format_pointer(self.path) + (
            "" if self.embedded_path is None else f"!{format_pointer(self.embedded_path)}"
        )

    def as_data(self) -> dict[str, Any]:
        """Return the step in the format of status files."""
        data = {
            "by": self.source_name,
            "where": self.source_item,
            "op": self.op,
            "before": self.before,
            "after": self.after,
        }
        return {name: value for name, value in data.items() if value is not ABSENT}


def compute_steps(before: Any, after: Any, policy: str, item: str) -> tuple[ProvenanceStep, ...]:
    """Return the changes that one item of a policy made: the differences between `before` and `after`."""
    return tuple(
        ProvenanceStep(
            path, policy, item, get_operation(old, new), *redact_both_values(old, new, path, (before, after))
        )
        for path, old, new in diff_values(before, after, ())
    )


def compute_embedded_steps(resource: Any, change: EmbeddedChange, policy: str, item: str) -> tuple[ProvenanceStep, ...]:
    """Return the changes that one item of a policy made inside a string of a resource."""
    path, hides = change.path, is_secret_value(resource, change.path)
    # Mask the values of the embedded document too, because this document may be the manifest of a Secret.
    return tuple(
        ProvenanceStep(
            path,
            policy,
            item,
            get_operation(old, new),
            *redact_both_values(old, new, embedded_path, (change.before, change.after), hides),
            embedded_path,
        )
        for embedded_path, old, new in diff_values(change.before, change.after, ())
    )


def format_steps(file: str, resource: str, steps: Iterable[ProvenanceStep]) -> list[dict[str, Any]]:
    """Return the steps of a resource in the format of status files. Steps with the same pointer are grouped."""
    by_pointer: dict[str, list[ProvenanceStep]] = {}
    for step in steps:
        by_pointer.setdefault(step.pointer, []).append(step)
    return [
        {
            "file": file,
            "resource": resource,
            "pointer": pointer,
            "steps": [step.as_data() for step in by_pointer[pointer]],
        }
        for pointer in sorted(by_pointer)
    ]


def diff_values(before: Any, after: Any, path: DataPath) -> Iterator[Change]:
    """Yield the path, the old value and the new value of each leaf that differs."""
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from diff_values(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _diff_lists(before, after, path)
    elif before is ABSENT or after is ABSENT:
        yield from _iterate_leaves(before, after, path)
    elif not is_equal_data(before, after):
        yield path, before, after


def _iterate_leaves(before: Any, after: Any, path: DataPath) -> Iterator[Change]:
    """Yield each leaf inside a value that was added or removed."""
    value = after if before is ABSENT else before
    if not isinstance(value, dict) or not value:
        yield path, before, after
        return
    for key, item in value.items():
        old, new = (ABSENT, item) if before is ABSENT else (item, ABSENT)
        yield from _iterate_leaves(old, new, (*path, key))


def _diff_lists(before: list[Any], after: list[Any], path: DataPath) -> Iterator[Change]:
    shorter = min(len(before), len(after))
    start = next((index for index in range(shorter) if not is_equal_data(before[index], after[index])), shorter)
    rest = shorter - start
    end = next((index for index in range(rest) if not is_equal_data(before[-1 - index], after[-1 - index])), rest)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    for index in range(max(len(old), len(new))):
        old_item, new_item = (items[index] if index < len(items) else ABSENT for items in (old, new))
        yield from diff_values(old_item, new_item, (*path, start + index))


def get_operation(before: Any, after: Any) -> ChangeOperation:
    """Return whether a value was added, replaced or removed."""
    return "added" if before is ABSENT else "removed" if after is ABSENT else "replaced"


def redact_both_values(
    old: Any, new: Any, path: DataPath, wholes: Iterable[Any], hides: bool = False
) -> tuple[Any, Any]:
    """Return the old and the new value at a path. Secret values are masked.

    Args:
        path: The path of the value in the document.
        wholes: The old and the new document. Both values are masked if one document has a secret value at `path`.
        hides: Whether to mask every value.
    """
    hides = hides or any(is_secret_value(whole, path) for whole in wholes)
    return redact_value(old, hides=hides), redact_value(new, hides=hides)


def redact_value(value: Any, *, hides: bool) -> Any:
    """Return a value for output. Mask the value if `hides` is True or if the value contains a Secret. Shorten a long
    value.
    """
    if value is ABSENT or value is None:
        return value
    if is_ciphertext(value):
        return HIDDEN_CIPHERTEXT
    if hides or contains_secret(value):
        return MASK
    value = hide_ciphertexts(value)
    text = encode_canonical_json(value)
    if len(text) <= MAX_SHOWN_BYTES:
        return value
    start = (value if isinstance(value, str) else text.decode(errors="replace"))[: MAX_SHOWN_BYTES // 4]
    return f"{start}… ({len(text)} bytes, {compute_digest(value)[: len('sha256:') + _DIGEST_LENGTH]})"


def describe_objects(digests: Mapping[ConfigObject, str]) -> list[dict[str, str]]:
    """Return the config objects that a package was generated from, with their digests, as data for a status file."""
    return [
        {
            "kind": manifest.key.kind,
            "namespace": manifest.key.namespace,
            "name": manifest.key.name,
            "file": manifest.file,
            "hash": digest,
        }
        for manifest, digest in sorted(digests.items(), key=lambda item: item[0].key)
    ]
