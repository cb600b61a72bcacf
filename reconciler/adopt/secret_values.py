"""Chart values that look like secrets. The import does not copy these values, and reports them without their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.adopt.requests import HelmRequest, PackageRequest, ReadRequests
from reconciler.adopt.units import NotImported
from reconciler.krm import yaml
from reconciler.krm.helm_paths import format_option_name
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.parsing import ParseFailure, parse_cached

_SECRET_NAME = re.compile(
    r"(?:password|passwd|passphrase|token|apikey|accesskey|privatekey|encryptionkey|clientsecret|credentials?)\Z"
)
_NOT_IN_NAME = re.compile(r"[^a-z0-9]")
_EXISTING = "existing"
"""The start of names such as `existingSecret`. The value of such a name is the name of a Secret or of a key."""
_PRIVATE_KEY = "PRIVATE KEY-----"
_REFERENCE = re.compile(r"vault[:+]|ref\+|<path:|ENC\[|\{\{|\$[{(]")
_SUGGESTION = "Keep the value in a Secret that the chart reads, or in a Secret of valuesFrom with output: helmRelease."

_Path = tuple[str | int, ...]


@dataclass(frozen=True)
class CheckedRequests:
    """Requests without values that look like secrets.

    Attributes:
        unverified: Maps the cluster and package of a request to the reason why its content cannot be compared.
    """

    requests: ReadRequests
    unverified: Mapping[tuple[str, str], str] = field(default_factory=dict)


def leave_out_secret_values(read: ReadRequests) -> CheckedRequests:
    """Return the requests without values that look like secrets, and a `NotImported` entry for each of these values."""
    requests: list[PackageRequest] = []
    entries: list[NotImported] = []
    unverified: dict[tuple[str, str], str] = {}
    for request in read.requests:
        found: list[str] = []
        requests.append(_filter_request(request, found))
        entries += (NotImported(request.file, _explain(request, name), _SUGGESTION) for name in found)
        if found:
            reason = f"contains {format_count(len(found), 'secret value')}, which the import does not copy"
            unverified[request.cluster, request.package] = reason
    return CheckedRequests(
        replace(read, requests=tuple(requests), not_imported=(*read.not_imported, *entries)), unverified
    )


def _explain(request: PackageRequest, name: str) -> str:
    return f"{request.package}: the value {name} looks like a secret, and is not copied"


def _filter_request(request: PackageRequest, found: list[str]) -> PackageRequest:
    sources = tuple(
        replace(source, helm=_filter_options(source.helm, found)) if source.helm else source
        for source in request.sources
    )
    helm = _filter_options(request.helm, found) if request.helm else None
    files = {path: _filter_file(path, data, found) for path, data in request.config_files.items()}
    return replace(request, helm=helm, sources=sources, config_files=files)


def _filter_options(helm: HelmRequest, found: list[str]) -> HelmRequest:
    paths: list[_Path] = []
    values = _filter(helm.values, (), paths)
    found += map(format_option_name, paths)
    return replace(helm, values=values) if paths else helm


def _filter_file(path: str, data: bytes, found: list[str]) -> bytes:
    """Return the text of a values file. A file with secrets is written again without them and without comments."""
    parsed = parse_cached(data)
    if isinstance(parsed, ParseFailure) or not parsed.documents:
        return data
    paths: list[_Path] = []
    values = _filter(parsed.documents[0].data_without_aliases, (), paths)
    found += (f"{format_option_name(steps)} in {path}" for steps in paths)
    return yaml.emit(values).encode() if paths else data


def _filter(value: Any, path: _Path, found: list[_Path]) -> Any:
    """Return a value without secrets, and add their paths to `found`."""
    if isinstance(value, Mapping):
        secrets = {*_find_secrets(value)}
        found += ((*path, key) for key in value if key in secrets)
        return {key: _filter(inner, (*path, key), found) for key, inner in value.items() if key not in secrets}
    if isinstance(value, list):
        return [_filter(inner, (*path, index), found) for index, inner in enumerate(value)]
    return value


def _find_secrets(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of values that look like secrets."""
    for key, value in values.items():
        # An environment variable has the fields `name` and `value`. The field `name` shows whether `value` is a secret.
        name = values.get("name") if key == "value" else key
        if _is_secret(str(name), value):
            yield key


def _is_secret(name: str, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return False
    text = str(value)
    if _PRIVATE_KEY in text:
        return True
    plain_name = _NOT_IN_NAME.sub("", name.lower())
    is_named = bool(_SECRET_NAME.search(plain_name)) and not plain_name.startswith(_EXISTING)
    return is_named and not _REFERENCE.match(text)
