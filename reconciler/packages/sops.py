"""SOPS documents: recognition, and the edits after which SOPS can still decrypt a document.

SOPS encrypts the values of a document, and writes a message authentication code (MAC) into the field `sops.mac`. The
MAC covers all values in their order. With `sops.mac_only_encrypted`, it covers only the encrypted values. This module
uses no key and decrypts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from reconciler.krm.json_pointer import iterate_leaves
from reconciler.krm.patterns import PatternError, compile_pattern
from reconciler.krm.yaml import DataPath, Document, YamlError
from reconciler.lazy_dataclasses import dataclass
from reconciler.redaction import is_ciphertext

SOPS = "sops"
_REQUIRED = ("mac", "lastmodified")
_RULES = (
    "unencrypted_suffix",
    "encrypted_suffix",
    "unencrypted_regex",
    "encrypted_regex",
    "unencrypted_comment_regex",
    "encrypted_comment_regex",
)
# SOPS uses this rule if the document itself contains no rule for the selection of encrypted fields.
_DEFAULT_RULE = ("unencrypted_suffix", "_unencrypted")
_Leaf = tuple[DataPath, Any]


class SopsMacError(YamlError):
    """An edit that is refused, because SOPS could not decrypt the edited document.

    `path` is the first field that must not be changed.
    """

    def __init__(self, path: DataPath, reason: str) -> None:
        super().__init__("YamlEdit", reason)
        self.path = path


def is_sops_document(data: object) -> bool:
    """Return whether the data is a SOPS document: its field `sops` contains `mac` and `lastmodified`."""
    metadata = data.get(SOPS) if isinstance(data, Mapping) else None
    return isinstance(metadata, Mapping) and all(name in metadata for name in _REQUIRED)


def check_sops_edit(document: Document, data: Any) -> None:
    """Check that SOPS can still decrypt a document after a rule has changed its content to `data`.

    Documents that are not SOPS documents can be changed without restrictions.

    Raises:
        SopsMacError: The MAC covers a changed field.
    """
    if not is_sops_document(document.data):
        return
    scope = SopsScope(document)
    before, after = list(_iterate_leaves(document.data)), list(_iterate_leaves(data))
    difference = _find_first_difference(before, after)
    if difference is None:
        return
    if not scope.is_mac_only_encrypted:
        raise SopsMacError(difference, _COVERED)
    if path := scope.find_refused_change(before, after):
        raise SopsMacError(path, _ENCRYPTED)


_COVERED = "the MAC of the document covers this field (sops.mac_only_encrypted is not set)"
_ENCRYPTED = "the rules in the field sops of the document encrypt this field"


@dataclass(frozen=True)
class SopsScope:
    """The fields of a SOPS document that are encrypted, according to the rules in its field `sops`."""

    document: Document

    @cached_property
    def is_mac_only_encrypted(self) -> bool:
        """Whether the MAC covers only encrypted values."""
        return self._metadata.get("mac_only_encrypted") is True

    def iterate_plaintext(self) -> Iterator[DataPath]:
        """Yield each field that must be encrypted and is not encrypted. SOPS never encrypts null and empty texts."""
        for path, value in _iterate_leaves(self.document.data):
            is_plaintext = value not in (None, "") and not _is_container(value) and not is_ciphertext(value)
            if is_plaintext and path[0] != SOPS and self._must_be_encrypted(path):
                yield path

    def list_protected(self, leaves: list[_Leaf]) -> list[_Leaf]:
        """Return the values that an edit must not change if the MAC covers only encrypted values.

        Args:
            leaves: The path and the value of each scalar and each empty collection. The result has the same order.
        """
        return [
            (path, value)
            for path, value in leaves
            if path[0] == SOPS or is_ciphertext(value) or (self._can_be_encrypted(path) and not _is_container(value))
        ]

    def find_refused_change(self, before: list[_Leaf], after: list[_Leaf]) -> DataPath | None:
        """Return the first changed field that an edit must not change. Return None if there is no such field."""
        if self._uses_comments:
            return self._find_change_near_comment(before, after)
        return _find_first_difference(self.list_protected(before), self.list_protected(after))

    def _find_change_near_comment(self, before: list[_Leaf], after: list[_Leaf]) -> DataPath | None:
        """Return the first refused change of a document in which comments select the encrypted fields.

        A comment can also select fields that an edit adds below it. Therefore, an edit can add fields only in a
        top-level field in which no comment selects fields. In all other top-level fields, an edit can only replace
        existing plaintext values.
        """
        old, new = dict(before), dict(after)
        for path in dict.fromkeys((*old, *new)):
            if path in old and path in new and repr(old[path]) == repr(new[path]):
                continue
            is_plaintext = path in old and path in new and not is_ciphertext(old[path]) and old[path] not in (None, "")
            is_far = self._rule[0].startswith("encrypted") and not self._has_comment_in_section(path)
            if path[0] == SOPS or not (is_far or (is_plaintext and not _is_container(old[path]))):
                return path
        # Compare the order of the fields that exist before and after the edit.
        remaining = [(path, None) for path in old if path in new]
        return _find_first_difference(remaining, [(path, None) for path in new if path in old])

    def _must_be_encrypted(self, path: DataPath) -> bool:
        """Return whether SOPS encrypts a field.

        If comments select the encrypted fields, return True only if the result is certain.
        """
        if not self._is_known:
            return False
        if not self._uses_comments:
            return self._is_encrypted(path)
        if self._rule[0].startswith("encrypted"):
            return path in self._selected_by_comment
        return not self._has_comment_in_section(path)

    def _can_be_encrypted(self, path: DataPath) -> bool:
        return not self._is_known or (not self._uses_comments and self._is_encrypted(path))

    def _is_encrypted(self, path: DataPath) -> bool:
        """Return whether the suffix or the regular expression of the rule selects a field.

        As in SOPS, the path does not contain the indexes of list items.
        """
        name, pattern = self._rule
        keys = [step for step in path if isinstance(step, str)]
        if name.endswith("suffix"):
            is_selected = any(key.endswith(pattern) for key in keys)
        else:
            is_selected = any(compile_pattern(pattern).search(key) for key in keys)
        return is_selected == name.startswith("encrypted")

    def _has_comment_in_section(self, path: DataPath) -> bool:
        """Return whether a comment selects fields for encryption in the same top-level field as `path`."""
        return any(selected[:1] == path[:1] for selected in self._selected_by_comment)

    @cached_property
    def _metadata(self) -> Mapping[str, Any]:
        metadata: Mapping[str, Any] = self.document.data[SOPS]
        return metadata

    @cached_property
    def _rule(self) -> tuple[str, str]:
        """The name and the pattern of the rule that selects fields."""
        return self._rules[0] if self._rules else _DEFAULT_RULE

    @cached_property
    def _rules(self) -> list[tuple[str, str]]:
        return [(name, str(self._metadata[name])) for name in _RULES if self._metadata.get(name) not in (None, "")]

    @cached_property
    def _is_known(self) -> bool:
        """Whether the encrypted fields are known.

        They are unknown if the document has several rules, or if its pattern is not supported.
        """
        if self._rule[0].endswith("regex") and not _is_pattern(self._rule[1]):
            return False
        return len(self._rules) <= 1

    @cached_property
    def _uses_comments(self) -> bool:
        return self._is_known and self._rule[0].endswith("comment_regex")

    @cached_property
    def _selected_by_comment(self) -> frozenset[DataPath]:
        """The paths of the fields with a comment that the rule selects."""
        pattern = compile_pattern(self._rule[1])
        line_comments = ((path, (text,)) for path, text in self.document.comments().items())
        comments = (*line_comments, *self.document.leading_comments().items())
        return frozenset(
            path for path, lines in comments if any(pattern.search(line.strip().lstrip("#")) for line in lines)
        )


def find_stale_mac(old: Document, new: Document) -> DataPath | None:
    """Return the first changed field that makes the MAC of a SOPS document invalid. Return None if the MAC is valid.

    SOPS cannot decrypt a document with an invalid MAC. If `sops.lastmodified` or `sops.mac` changed, SOPS has encrypted
    `new` again, and the MAC is treated as valid.
    """
    if not (is_sops_document(old.data) and is_sops_document(new.data)):
        return None
    if any(old.data[SOPS][name] != new.data[SOPS][name] for name in _REQUIRED):
        return None
    scope = SopsScope(new)
    before, after = (
        [leaf for leaf in _iterate_leaves(data) if leaf[0][0] != SOPS and not _is_container(leaf[1])]
        for data in (old.data, new.data)
    )
    if scope.is_mac_only_encrypted:
        before, after = scope.list_protected(before), scope.list_protected(after)
    return _find_first_difference(before, after)


def _iterate_leaves(data: Any) -> Iterator[_Leaf]:
    """Yield the path and the value of each scalar and each empty collection, in the order of the document."""
    return (leaf for leaf in iterate_leaves(data) if leaf[0])


def _find_first_difference(before: list[_Leaf], after: list[_Leaf]) -> DataPath | None:
    """Return the first path whose value or position differs. Return None if both lists of values are equal."""
    old, new = dict(before), dict(after)
    for path in dict.fromkeys((*old, *new)):
        # Compare texts, because 1 == True == 1.0 in Python.
        if path not in old or path not in new or repr(old[path]) != repr(new[path]):
            return path
    return next((path for path, other in zip(new, old, strict=True) if path != other), None)


def _is_container(value: Any) -> bool:
    return isinstance(value, (Mapping, list))


def _is_pattern(text: str) -> bool:
    try:
        compile_pattern(text)
    except PatternError:
        return False
    return True
