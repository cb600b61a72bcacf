"""The identity of a KRM resource, and the annotation names that the engine reads or writes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from reconciler.krm.objects import ObjectKey, split_api_version

LOCAL_CONFIG = "config.kubernetes.io/local-config"
UPSTREAM_IDENTIFIER = "internal.kpt.dev/upstream-identifier"
PATH_ANNOTATIONS = ("internal.config.kubernetes.io/path", "config.kubernetes.io/path")
INDEX_ANNOTATIONS = ("internal.config.kubernetes.io/index", "config.kubernetes.io/index")


class KrmResource:
    """The identity fields of a KRM document. Subclasses provide the plain data.

    Fields that are missing or have the wrong type read as "" or as an empty mapping. Each field is computed once,
    because all renders of the same document share one object.
    """

    if TYPE_CHECKING:
        # Declared for the type checker only. A property would conflict with subclasses that store the data in a field.
        @property
        def data(self) -> Any:
            """The document as plain data; read-only."""

    @cached_property
    def api_version(self) -> str:
        """apiVersion, e.g. `apps/v1`."""
        return _get_text(self._root.get("apiVersion"))

    @cached_property
    def kind(self) -> str:
        """Kind, e.g. `Deployment`."""
        return _get_text(self._root.get("kind"))

    @cached_property
    def group(self) -> str:
        """The API group; the core group is ""."""
        return split_api_version(self.api_version)[0]

    @cached_property
    def version(self) -> str:
        """The API version without its group."""
        return split_api_version(self.api_version)[1]

    @cached_property
    def name(self) -> str:
        """metadata.name."""
        return _get_text(self.metadata.get("name"))

    @cached_property
    def namespace(self) -> str:
        """metadata.namespace, "" when unset."""
        return _get_text(self.metadata.get("namespace"))

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata mapping."""
        return _get_mapping(self._root.get("metadata"))

    @cached_property
    def labels(self) -> Mapping[str, Any]:
        """metadata.labels."""
        return _get_mapping(self.metadata.get("labels"))

    @cached_property
    def annotations(self) -> Mapping[str, Any]:
        """metadata.annotations."""
        return _get_mapping(self.metadata.get("annotations"))

    @cached_property
    def key(self) -> ObjectKey:
        """The group, kind, namespace and name, which identify the object."""
        return ObjectKey(self.group, self.kind, self.namespace, self.name)

    @cached_property
    def is_local_config(self) -> bool:
        """Whether the object is for tools only and never applied to a cluster."""
        return self.annotations.get(LOCAL_CONFIG) not in (None, "", "false", False)

    @cached_property
    def missing_krm_field(self) -> str:
        """The first of the required fields `apiVersion`, `kind` and `metadata.name` that is missing, or ""."""
        if _is_kustomization(self):
            return ""
        fields = {"apiVersion": self.api_version, "kind": self.kind, "metadata.name": self.name}
        return next((field for field, value in fields.items() if not value), "")

    @cached_property
    def _root(self) -> Mapping[str, Any]:
        return _get_mapping(self.data)


def _is_kustomization(resource: KrmResource) -> bool:
    # kpt exempts Kustomization files from the check for KRM fields.
    api_version = resource.api_version
    return api_version.startswith("kustomize.config.k8s.io") or (resource.kind == "Kustomization" and not api_version)


def _get_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _get_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
