"""The fields overrider: YAML, JSON, TOML or ini in a string, edited where it stands in there (kubeadmiral 12.1)."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from reconciler.krm.pointer import format_pointer
from reconciler.krm.secrets import is_secret
from reconciler.krm.yaml import Path, YamlError
from reconciler.rules.edits import value_at, with_value
from reconciler.rules.notes import Note
from reconciler.rules.overrides.codes import FIELD_PATH_INVALID, FIELD_UNPARSABLE
from reconciler.rules.overrides.effect import Effect
from reconciler.rules.overrides.jsonpatch import patched
from reconciler.rules.overrides.model import FieldItem
from reconciler.rules.overrides.paths import Lost, follow
from reconciler.rules.overrides.sectioned import TextError
from reconciler.rules.overrides.texts import TEXTS
from reconciler.rules.provenance import Inside


def apply_field(data: Any, item: FieldItem) -> Effect:
    """Return the resource with what a string holds patched, and the rest of that text as it is."""
    path = follow(data, item.path)
    if isinstance(path, Lost):
        return Effect(data, (Note(FIELD_PATH_INVALID, f"fieldPath must lead to a string: {path.why}", path.path),))
    text = value_at(data, path)
    if not isinstance(text, str):
        message = f"fieldPath must lead to a string, and {format_pointer(path)} is none"
        return Effect(data, (Note(FIELD_PATH_INVALID, message, path),))
    is_encoded = is_secret(data) and path[0] == "data"
    try:
        return _edited(data, path, _decoded(text) if is_encoded else text, item, is_encoded=is_encoded)
    except (TextError, YamlError) as error:
        # what a parser says can quote the text
        why = "" if is_secret(data) else f": {error}"
        return Effect(data, (Note(FIELD_UNPARSABLE, f"the text must be one document of {item.format}{why}", path),))


def _edited(data: Any, path: Path, text: str, item: FieldItem, *, is_encoded: bool) -> Effect:
    form = TEXTS[item.format]
    before = form.read(text)
    effect = Effect(before)
    for operation in item.operations:
        step = patched(effect.data, operation)
        effect = Effect(step.data, effect.notes + step.notes)
        if effect.failed:
            break
    notes = tuple(_outside(note, path) for note in effect.notes)
    if effect.failed or effect.data is before:
        return Effect(data, notes)
    edited = form.edit(text, effect.data)
    written = base64.b64encode(edited.encode()).decode() if is_encoded else edited
    return Effect(with_value(data, path, written), notes, Inside(path, before, effect.data))


def _outside(note: Note, path: Path) -> Note:
    place = format_pointer(note.path) or "its top"
    return Note(note.code, f"inside of it, at {place}: {note.message}", path, note.value)


def _decoded(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise TextError("the data of a Secret must be base64 of UTF-8") from error
