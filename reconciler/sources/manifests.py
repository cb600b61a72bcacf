"""Manifests of OCI artifacts: the selection of the layer that contains the files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.krm.json_text import parse_json_object
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.artifacts import CHART_LAYER, ArtifactRepository
from reconciler.packages.source_codes import SourceCodes
from reconciler.sources.artifact_cache import parse_digest
from reconciler.sources.chart_index import parse_created_seconds
from reconciler.sources.errors import SourceError
from reconciler.sources.limits import SourceLimits

_ARCHIVE_SUFFIXES = ("tar+gzip", "tar.gzip")
_CREATED = "org.opencontainers.image.created"
_MAX_SHOWN = 5


@dataclass(frozen=True)
class ArtifactManifest:
    """The manifest of an artifact.

    Attributes:
        layer_digest: The digest of the layer with the files.
        layer_type: The media type of this layer.
        created_seconds: The creation time in seconds since 1970. 0 if unknown.
    """

    layer_digest: str
    layer_type: str
    created_seconds: int = 0


def find_manifest_in_index(data: Mapping[str, Any], repository: ArtifactRepository) -> str:
    """Return the digest of the manifest that an image index contains. Return "" if `data` is a manifest.

    Raises:
        SourceError: The index belongs to a chart, or has no entry without a platform.
    """
    entries = data.get("manifests")
    if not isinstance(entries, list):
        return ""
    if repository.type == "helm":
        raise _create_error("the artifact is an image index, and a chart must be a single manifest")
    usable = [entry for entry in entries if isinstance(entry, dict) and not entry.get("platform")]
    if not usable:
        raise _create_error(
            "the image index must contain an entry without a platform, because packages have no platform"
        )
    digest = str(usable[0].get("digest"))
    parse_digest(digest)
    return digest


def select_layer(data: Mapping[str, Any], repository: ArtifactRepository, limits: SourceLimits) -> ArtifactManifest:
    """Return the layer with the files of an artifact. `data` contains the fields of its manifest.

    The layer is the first one with the media type that the Repository sets. If the Repository sets no media type, it is
    the first archive.

    Raises:
        SourceError: The manifest is not valid, has no such layer, or its layer is larger than the limit.
    """
    layers = data.get("layers")
    if not isinstance(layers, list):
        raise _create_error("the manifest has no list `layers`")
    typed = [(str(layer.get("mediaType")), layer) for layer in layers if isinstance(layer, dict)]
    for media_type, layer in typed:
        if _is_selected(media_type, repository):
            digest, size = str(layer.get("digest")), layer.get("size")
            parse_digest(digest)
            if isinstance(size, int) and size > limits.archive_bytes:
                raise limits.create_error("archive_bytes", f"a layer of {size:,} bytes")
            return ArtifactManifest(digest, media_type, _find_created_seconds(data))
    # Use `repr`, because it escapes control characters and lone surrogates.
    found = ", ".join(repr(media_type[:100])[1:-1] for media_type, _ in typed[:_MAX_SHOWN]) or "no layers"
    wanted = repository.layer_media_type or (CHART_LAYER if repository.type == "helm" else "…tar+gzip")
    raise _create_error(f"the artifact must have a layer with the media type {wanted}, but it has {found}")


def _is_selected(media_type: str, repository: ArtifactRepository) -> bool:
    if repository.layer_media_type:
        return media_type == repository.layer_media_type
    return media_type == CHART_LAYER if repository.type == "helm" else media_type.endswith(_ARCHIVE_SUFFIXES)


def _find_created_seconds(data: Mapping[str, Any]) -> int:
    annotations = data.get("annotations")
    return parse_created_seconds(str(annotations.get(_CREATED))) if isinstance(annotations, dict) else 0


def parse_manifest(content: bytes) -> Mapping[str, Any]:
    """Return the fields of a manifest or of an image index. Raises SourceError."""
    data = parse_json_object(content)
    if data is None:
        raise _create_error("the manifest is not a JSON object")
    return data


def _create_error(message: str) -> SourceError:
    return SourceError(SourceCodes.SOURCE_INVALID.name, message)
