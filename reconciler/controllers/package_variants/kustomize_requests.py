"""The request to build an overlay for one PackageVariant, from its field `spec.kustomize`."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from reconciler.api.kustomize_options import KustomizeOptions
from reconciler.krm.json_text import format_canonical_json
from reconciler.packages.kustomize.request import KustomizeRequest


def build_kustomize_request(options: KustomizeOptions | None, allowed_secrets: tuple[str, ...]) -> KustomizeRequest:
    """Return the request to build the overlay of a PackageVariant. Without options, the package itself is built.

    Args:
        allowed_secrets: Secrets with values that are allowed in the output, as "Kind/name".
    """
    fields: Mapping[str, object] = options.as_data() if options else {}
    path = str(fields.get("path", ""))
    components = options.components if options else ()
    generated = {name: value for name, value in fields.items() if name not in ("path", "components")}
    return KustomizeRequest(
        _normalize(path),
        format_canonical_json(generated),
        tuple(_normalize(posixpath.join(path, component)) for component in components),
        allowed_secrets,
    )


def _normalize(path: str) -> str:
    normalized = posixpath.normpath(path)
    return "" if normalized == "." else normalized
