"""The index of a chart repository: parsing of `index.yaml`, and the URLs of charts."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from reconciler.krm.yaml import YamlError
from reconciler.krm.yaml.events import YamlEventReader
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.source_codes import SourceCodes
from reconciler.sources.addresses import join_url
from reconciler.sources.errors import SourceError
from reconciler.sources.http_client import HttpResponse
from reconciler.sources.limits import SourceLimits

_HEX_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_GZIP = 31
# Entries with longer texts are not valid. The limits keep the stored index small.
_MAX_VERSION_CHARACTERS = 128
_MAX_URL_CHARACTERS = 2_048
_MAX_NOTES = 5
MAX_ENTRIES = 100_000
"""The largest number of versions in an index. The largest public repositories have a quarter of this number."""


@dataclass(frozen=True, slots=True)
class ChartEntry:
    """One version of a chart in an index. `digest` is `sha256:…` or "", and `url` can be relative."""

    version: str
    digest: str = ""
    url: str = ""
    created_seconds: int = 0
    app_version: str = ""


@dataclass(frozen=True)
class ChartIndex:
    """The charts of a repository by name, each with its versions in the order of the index.

    Attributes:
        notes: Descriptions of the first invalid entries, which are ignored.
    """

    charts: Mapping[str, Sequence[ChartEntry]]
    notes: tuple[str, ...] = ()


def decode_index(response: HttpResponse, limits: SourceLimits) -> bytes:
    """Return the text of an index from a response. The response can be compressed with gzip.

    Raises:
        SourceError: The text is larger than `limits.index_bytes`, or has an unknown compression.
    """
    content = response.content
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding in {"gzip", "x-gzip"}:
        content = _decompress(content, limits)
    elif encoding not in {"identity", ""}:
        raise _create_error(f"the index has the unknown compression {encoding[:100]!r}")
    return content


def _decompress(content: bytes, limits: SourceLimits) -> bytes:
    decompressor = zlib.decompressobj(_GZIP)
    try:
        text = decompressor.decompress(content, limits.index_bytes + 1)
    except zlib.error as error:
        raise _create_error(f"the compression of the index is damaged ({error})") from None
    if len(text) > limits.index_bytes:
        raise limits.create_error("index_bytes", "the size of the index in bytes")
    if not decompressor.eof:
        raise _create_error("the index is truncated")
    return text


def parse_index(content: bytes) -> ChartIndex:
    """Parse an `index.yaml`, which can be YAML or JSON.

    Raises:
        SourceError: `SourceInvalid` if the text is not YAML, has no field `entries`, or has too many entries.
    """
    charts: dict[str, list[ChartEntry]] = {}
    notes: list[str] = []
    has_entries, count = False, 0
    try:
        reader = YamlEventReader(content)
        for key in reader.read_mapping():
            if key == "entries":
                has_entries = True
                for name in reader.read_mapping():
                    for entry in _read_versions(reader, name, notes):
                        charts.setdefault(name, []).append(entry)
                        count += 1
                        if count > MAX_ENTRIES:
                            raise _create_error(f"the index must have at most {MAX_ENTRIES:,} versions")
    except YamlError as error:
        raise _create_error(f"the index is not valid YAML: {error}") from None
    if not has_entries:
        raise _create_error("the index must be a mapping with the field `entries`")
    return ChartIndex(charts, tuple(notes))


def _read_versions(reader: YamlEventReader, name: str, notes: list[str]) -> Iterator[ChartEntry]:
    for index in reader.read_sequence():
        fields, is_removed = _read_fields(reader)
        problem = _find_problem(fields)
        if problem and len(notes) < _MAX_NOTES:
            notes.append(f"entry {index + 1} of chart {name[:100]!r}: {problem}")
        if not problem and not is_removed:
            digest = _HEX_DIGEST.fullmatch(fields["digest"].lower())
            yield ChartEntry(
                fields["version"], f"sha256:{digest[1]}" if digest else "", fields["url"],
                parse_created_seconds(fields["created"]), fields["appVersion"][:_MAX_VERSION_CHARACTERS],
            )  # fmt: skip


def _read_fields(reader: YamlEventReader) -> tuple[dict[str, str], bool]:
    fields = dict.fromkeys(("version", "digest", "url", "created", "appVersion"), "")
    is_removed = False
    for field_name in reader.read_mapping():
        if field_name == "urls":
            # Helm downloads the first URL only.
            for index in reader.read_sequence():
                if index == 0:
                    fields["url"] = reader.read_text()
        elif field_name == "removed":
            is_removed = reader.read_text() == "true"
        elif field_name in fields and field_name != "url":
            fields[field_name] = reader.read_text()
    return fields, is_removed


def _find_problem(fields: Mapping[str, str]) -> str:
    version, digest, url = fields["version"], fields["digest"], fields["url"]
    if not version or len(version) > _MAX_VERSION_CHARACTERS or not version.isprintable():
        return "`version` must be a string of at most 128 characters"
    if not url or len(url) > _MAX_URL_CHARACTERS or not url.isprintable() or " " in url:
        return f"version {version}: `urls` must start with a URL"
    if digest and not _HEX_DIGEST.fullmatch(digest.lower()):
        return f"version {version}: `digest` must be 64 hexadecimal digits"
    return ""


def parse_created_seconds(text: str) -> int:
    """Return the seconds since 1970 of an RFC 3339 time. Return 0 if the text is not a time after 1970."""
    try:
        time = datetime.fromisoformat(text)
        return max(int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()), 0)
    except (ValueError, OverflowError):
        return 0


def resolve_chart_url(repository_url: str, url: str) -> str:
    """Return the absolute URL of a chart archive. A relative URL starts at the folder of the index.

    Raises:
        SourceError: `SourceAddressRefused` if the URL is malformed.
    """
    return join_url(f"{repository_url.rstrip('/')}/", url)


def _create_error(message: str) -> SourceError:
    return SourceError(SourceCodes.SOURCE_INVALID.name, message)
