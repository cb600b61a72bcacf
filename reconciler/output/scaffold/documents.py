"""Config objects and settings as data and text, for the commands that write a config."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.api.porch.manifest import PORCH_API_VERSION
from reconciler.api.porch.package_variant_set import PackageVariantSet
from reconciler.krm import yaml
from reconciler.krm.yaml.emit import format_scalar

CONFIG_FOLDER = "config"
SETTINGS_FILE = "reconciler.yaml"
CLUSTER_LABEL = "reconciler.dev/cluster"
"""The label of all clusters. A selector without labels would also select the catalogs."""
_MAX_COLUMNS = 120


def format_documents(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of a YAML file with these documents."""
    return "---\n".join(map(yaml.emit, documents))


def build_catalog(name: str, kind: str, url: str, branch: str = "", *, is_insecure: bool = False) -> dict[str, Any]:
    """Return a Repository with upstream packages.

    Args:
        kind: `git`, `helm` or `oci`.
        branch: The branch of a Git repository, or "" for the default.
        is_insecure: Whether a chart repository or registry is read with plain HTTP.
    """
    insecure = {"insecure": True} if is_insecure else {}
    location: dict[str, Any]
    match kind:
        case "helm":
            location = {"url": url, **insecure}
        case "oci":
            location = {"registry": url.removeprefix("oci://"), **insecure}
        case _:
            location = {"repo": url, **({"branch": branch} if branch else {})}
    return _build_repository(name, {}, {"type": kind, kind: location})


def _build_repository(name: str, labels: Mapping[str, str], spec: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "labels": dict(labels)} if labels else {"name": name}
    return {"apiVersion": PORCH_API_VERSION, "kind": "Repository", "metadata": metadata, "spec": dict(spec)}


def build_cluster(name: str, labels: Mapping[str, str], location: Mapping[str, str]) -> dict[str, Any]:
    """Return the deployment Repository of a cluster, with the label of all clusters.

    Args:
        location: The fields of `spec.git`.
    """
    spec = {"type": "git", "deployment": True, "git": dict(location)}
    return _build_repository(name, {CLUSTER_LABEL: "true", **labels}, spec)


def build_set(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a PackageVariantSet."""
    kind = PackageVariantSet
    return {
        "apiVersion": kind.api_versions[0],
        "kind": kind.__name__,
        "metadata": {"name": name},
        "spec": dict(spec),
    }


def format_settings(fleet_url: str, descriptions: Mapping[str, str]) -> str:
    """Return the file with the settings `config.url` and `fleet.url`, each with its description as a comment."""
    values = {"config.url": CONFIG_FOLDER, "fleet.url": fleet_url}
    lines = ["# The settings that differ from the defaults."]
    for path, value in values.items():
        group, _, name = path.partition(".")
        lines.append(f"{group}:")
        lines += textwrap.wrap(
            descriptions[path], _MAX_COLUMNS, initial_indent="  # ", subsequent_indent="  # ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        lines.append(f"  {name}: {format_scalar(value, flow=False)}")
    return "\n".join(lines) + "\n"
