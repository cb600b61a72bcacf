"""The request to build an overlay for one PackageVariant, from its field `spec.kustomize`."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from reconciler.api.kustomize_options import KustomizeOptions
from reconciler.krm.json_text import format_canonical_json
from reconciler.packages.charts.request import ChartRequest
from reconciler.packages.kustomize.request import KustomizeRequest

# The fields that are not copied to the generated kustomization.yaml.
_NOT_GENERATED = ("path", "components", "helmCharts")


def build_kustomize_request(options: KustomizeOptions | None, charts: ChartRequest) -> KustomizeRequest:
    """Return the request to build the overlay of a PackageVariant.

    If `options` is None, the kustomization in the root folder of the package is built without additional fields.

    Args:
        charts: The options for charts that the overlay uses, and the Secrets that are allowed in the output.
    """
    fields: Mapping[str, object] = options.as_data() if options else {}
    path = str(fields.get("path", ""))
    components = options.components if options else ()
    generated = {name: value for name, value in fields.items() if name not in _NOT_GENERATED}
    return KustomizeRequest(
        _normalize(path),
        format_canonical_json(generated),
        tuple(_normalize(posixpath.join(path, component)) for component in components),
        charts.allowed_secrets,
        charts if options and options.helm_charts == "render" else None,
    )


def _normalize(path: str) -> str:
    normalized = posixpath.normpath(path)
    return "" if normalized == "." else normalized
