"""The identity of a KRM resource, and the names of annotations that kpt functions and merges use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.sops import is_sops_document
from reconciler.redaction import is_ciphertext

LOCAL_CONFIG = "config.kubernetes.io/local-config"
UPSTREAM_IDENTIFIER = "internal.kpt.dev/upstream-identifier"
PATH_ANNOTATIONS = ("internal.config.kubernetes.io/path", "config.kubernetes.io/path")
INDEX_ANNOTATIONS = ("internal.config.kubernetes.io/index", "config.kubernetes.io/index")


class KrmResource:
    """The identity fields of a KRM document, such as its kind and name. Subclasses provide the data of the document.

    A missing or encrypted field, or a field of the wrong type, has the value "" or an empty mapping. Each field is
    cached, because all renders of a document share one Python object.
    """

    if TYPE_CHECKING:
        # Declare `data` for the type checker only. At run time, the property would conflict with subclasses that store
        # `data` in a field.
        @property
        def data(self) -> Any:
            """The content of the document as read-only data."""

    @cached_property
    def api_version(self) -> str:
        """The field `apiVersion`, e.g. `apps/v1`."""
        return _get_text(self._root.get("apiVersion"))

    @cached_property
    def kind(self) -> str:
        """The field `kind`, e.g. `Deployment`."""
        return _get_text(self._root.get("kind"))

    @cached_property
    def group(self) -> str:
        """The API group, e.g. `apps`. The core group is ""."""
        return split_api_version(self.api_version)[0]

    @cached_property
    def version(self) -> str:
        """The API version without the API group, e.g. `v1`."""
        return split_api_version(self.api_version)[1]

    @cached_property
    def name(self) -> str:
        """The field `metadata.name`."""
        return _get_text(self.metadata.get("name"))

    @cached_property
    def namespace(self) -> str:
        """The field `metadata.namespace`, or "" if the resource has no namespace."""
        return _get_text(self.metadata.get("namespace"))

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """The field `metadata`."""
        return _get_mapping(self._root.get("metadata"))

    @cached_property
    def labels(self) -> Mapping[str, Any]:
        """The field `metadata.labels`."""
        return _get_mapping(self.metadata.get("labels"))

    @cached_property
    def annotations(self) -> Mapping[str, Any]:
        """The field `metadata.annotations`."""
        return _get_mapping(self.metadata.get("annotations"))

    @cached_property
    def key(self) -> ObjectKey:
        """The identity of the resource: group, kind, namespace and name."""
        return ObjectKey(self.group, self.kind, self.namespace, self.name)

    @cached_property
    def is_local_config(self) -> bool:
        """Whether the annotation `config.kubernetes.io/local-config` excludes the resource from clusters."""
        return self.annotations.get(LOCAL_CONFIG) not in (None, "", "false", False)

    @cached_property
    def is_sops(self) -> bool:
        """Whether the document is a SOPS document. Override rules must not change the fields that its MAC covers."""
        return is_sops_document(self.data)

    @cached_property
    def missing_krm_field(self) -> str:
        """The first missing field of `apiVersion`, `kind` and `metadata.name`. "" if no field is missing."""
        if _is_kustomization(self):
            return ""
        fields = {"apiVersion": self.api_version, "kind": self.kind, "metadata.name": self.name}
        return next((field for field, value in fields.items() if not value), "")

    @cached_property
    def _root(self) -> Mapping[str, Any]:
        return _get_mapping(self.data)


@dataclass(frozen=True, eq=False)
class ResourceData(KrmResource):
    """The identity fields of data that is not a document of a file."""

    data: Any


def _is_kustomization(resource: KrmResource) -> bool:
    # As in kpt, a Kustomization can omit `apiVersion`, `kind` and `metadata.name`.
    api_version = resource.api_version
    return api_version.startswith("kustomize.config.k8s.io") or (resource.kind == "Kustomization" and not api_version)


def _get_text(value: object) -> str:
    return value if isinstance(value, str) and not is_ciphertext(value) else ""


def _get_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
