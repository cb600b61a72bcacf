"""Clusters of Argo CD. Only the name, the server and the labels are read from a cluster Secret."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping

from reconciler.adopt.documents import SourceDocument, get_mapping, get_text
from reconciler.krm.names import validate_dns_label, validate_label_value
from reconciler.lazy_dataclasses import dataclass, field

SECRET_TYPE_LABEL = "argocd.argoproj.io/secret-type"  # noqa: S105  the name of a label
IN_CLUSTER_SERVER = "https://kubernetes.default.svc"
IN_CLUSTER = "in-cluster"
_ARGO_PREFIX = "argocd.argoproj.io/"
_HOST = re.compile(r"[a-z]+://(?P<host>[^/:]+)")
_NOT_IN_LABEL = re.compile(r"[^-a-z0-9]+")


@dataclass(frozen=True)
class ArgoCluster:
    """A cluster that a cluster Secret declares."""

    name: str
    server: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def own_labels(self) -> Mapping[str, str]:
        """The labels, except for labels of Argo CD and labels whose value is invalid for a Repository."""
        return {
            key: value
            for key, value in sorted(self.labels.items())
            if not key.startswith(_ARGO_PREFIX) and validate_label_value(value) is None
        }


def is_cluster_secret(document: SourceDocument) -> bool:
    """Return whether an object is a cluster Secret."""
    labels = get_mapping(document.data, "metadata", "labels")
    return document.data["kind"] == "Secret" and labels.get(SECRET_TYPE_LABEL) == "cluster"


def read_clusters(documents: Iterable[SourceDocument]) -> tuple[ArgoCluster, ...]:
    """Return the clusters of all cluster Secrets, and the cluster of Argo CD itself."""
    found = [_read_secret(document) for document in documents if is_cluster_secret(document)]
    local = ArgoCluster(IN_CLUSTER, IN_CLUSTER_SERVER)
    has_local = any(cluster.server == IN_CLUSTER_SERVER for cluster in found)
    return tuple(sorted([*found, *([] if has_local else [local])], key=lambda cluster: cluster.name))


def _read_secret(document: SourceDocument) -> ArgoCluster:
    metadata = get_mapping(document.data, "metadata")
    server = _read_value(document, "server")
    return ArgoCluster(
        _read_value(document, "name") or server,
        server,
        _select_texts(get_mapping(metadata, "labels")),
        _select_texts(get_mapping(metadata, "annotations")),
    )


def _read_value(document: SourceDocument, name: str) -> str:
    if text := get_text(get_mapping(document.data, "stringData"), name):
        return text
    try:
        return base64.b64decode(get_text(get_mapping(document.data, "data"), name), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _select_texts(data: Mapping[str, object]) -> Mapping[str, str]:
    return {key: value for key, value in data.items() if isinstance(value, str)}


def find_cluster_name(destination: Mapping[str, object], clusters: Iterable[ArgoCluster]) -> str:
    """Return the name of the cluster of a destination as a DNS label.

    The name of an unknown server is the host of its URL.
    """
    identity = find_cluster_identity(destination, clusters)
    host = _HOST.match(identity)
    text = host["host"] if host else identity
    return text if validate_dns_label(text) is None else _NOT_IN_LABEL.sub("-", text.lower()).strip("-")[:63]


def find_cluster_identity(destination: Mapping[str, object], clusters: Iterable[ArgoCluster]) -> str:
    """Return the name that a cluster has in Argo CD. `destination` is a field of an Application.

    If `destination` contains only the URL of an unknown server, return this URL.
    """
    name, server = get_text(destination, "name"), get_text(destination, "server").rstrip("/")
    return name or next((cluster.name for cluster in clusters if cluster.server.rstrip("/") == server), server)
