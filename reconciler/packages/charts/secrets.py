"""Secrets in the output of charts: a Secret with plaintext values is an error, because Git keeps it in its history."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.yaml import Document, YamlError
from reconciler.lazy_dataclasses import replace
from reconciler.packages.charts.documents import OutputText, RenderedResource, parse_output_text
from reconciler.packages.secret_values import find_plaintext_values
from reconciler.packages.source_codes import SourceCodes
from reconciler.redaction import MASK, SECRET_VALUE_FIELDS, is_secret

Engine = Literal["helm", "kustomize"]

MIN_MASKED_CHARACTERS: Final = 4
_SECRET_ADVICE: Final[dict[Engine, str]] = {
    "helm": "set a value such as existingSecret, use an ExternalSecret",
    "kustomize": "encrypt it with SOPS, use an ExternalSecret",
}


def check_secret(resource: RenderedResource, label: str, allowed: tuple[str, ...], engine: Engine) -> Finding | None:
    """Return an error if a resource is a Secret with values. The message does not contain a value.

    Args:
        label: Name and version of the chart, or path of the overlay, for messages.
        allowed: The Secrets that the owner of the package allows, as "Kind/name".
    """
    paths = find_plaintext_values(resource.data, is_encrypted=resource.is_sops)
    if not paths or f"{resource.kind}/{resource.name}" in allowed:
        return None
    pointers = [format_pointer(path) for path in paths]
    message = (
        f"{label}: {resource.label} in {resource.source.template} contains a plaintext secret at {', '.join(pointers)}."
        f" Next step: {_SECRET_ADVICE[engine]}, or allow it with the annotation"
        f" `reconciler.dev/allow-plaintext-secrets: {resource.kind}/{resource.name}`"
    )
    location = SourceLocation(object=resource.location.object, pointer=pointers[0])
    return SourceCodes.PLAINTEXT_SECRET.finding(message, location)


def mask_secret(resource: RenderedResource) -> RenderedResource:
    """Return a resource with masked values if it is a Secret. Comments are removed, because they can contain values."""
    paths = find_plaintext_values(resource.data, is_encrypted=resource.is_sops)
    if not paths:
        return resource
    data = dict(resource.data)
    for name, *keys in paths:
        data[name] = {**data[name], keys[0]: MASK} if keys else MASK
    return replace(resource, document=Document.from_data(data))


def collect_secret_values(texts: Iterable[OutputText]) -> frozenset[str]:
    """Return the values of the Secrets in an output, encoded and decoded, except very short values."""
    values: set[str] = set()
    for text in texts:
        if "Secret" in text.text:
            values.update(_iterate_secret_values(text))
    return frozenset(value for value in values if len(value) >= MIN_MASKED_CHARACTERS)


def mask_values(text: str, values: Iterable[str]) -> str:
    """Return a text in which the values are masked."""
    # Mask long values first, because a short value can be a part of a longer value.
    for value in sorted(values, key=lambda value: (-len(value), value)):
        text = text.replace(value, MASK)
    return text


def _iterate_secret_values(text: OutputText) -> Iterator[str]:
    try:
        resources = list(parse_output_text(text))
    except YamlError:
        return
    for data in (resource.data for resource in resources if is_secret(resource.data)):
        fields = [data.get(field) for field in SECRET_VALUE_FIELDS]
        for value in (str(value) for field in fields if isinstance(field, dict) for value in field.values()):
            yield value
            yield _decode(value)


def _decode(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
