"""Manifests: the objects in a YAML document, before they are parsed into models. A `List` is split into its items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

LOCAL_CONFIG_ANNOTATION = "config.kubernetes.io/local-config"
DEFAULT_NAMESPACE = "default"
# The keys are the API groups with namespaced kinds. The values are the cluster-scoped kinds in the same group.
_KINDS_WITHOUT_NAMESPACE: Mapping[str, tuple[str, ...]] = {
    PORCH_GROUP: (),
    "greenhouse.sap": ("ClusterPluginDefinition", "Organization"),
    "platform": ("Addon", "ComponentDefinition", "ComponentType"),
}


@dataclass(frozen=True)
class Manifest:
    """One manifest: a whole YAML document, or an item of a `List`.

    Attributes:
        path: Position of the manifest in the document, e.g. `("items", 2)`.
        api_version: The field `apiVersion`. None if the field is absent or is not a string.
        kind: The field `kind`. None if the field is absent or is not a string.
    """

    path: DataPath
    data: Any
    api_version: str | None
    kind: str | None

    @property
    def name(self) -> str:
        """The field `metadata.name`. "" if the field is absent or is not a string."""
        metadata = self.data.get("metadata") if isinstance(self.data, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else ""

    @property
    def is_local_config(self) -> bool:
        """Whether the annotation `config.kubernetes.io/local-config` excludes the manifest from the config."""
        metadata = self.data.get("metadata") if isinstance(self.data, dict) else None
        return isinstance(metadata, dict) and is_local_config(metadata)

    @property
    def key(self) -> ObjectKey | None:
        """The identity of the object. None if the manifest has no `apiVersion`, no `kind` or no name."""
        if self.api_version is None or self.kind is None or not self.name:
            return None
        group, _ = split_api_version(self.api_version)
        written_namespace = self.data["metadata"].get("namespace")
        namespace = written_namespace or (DEFAULT_NAMESPACE if is_namespaced(group, self.kind) else "")
        return ObjectKey(group, self.kind, str(namespace), self.name)


def list_manifests(
    data: Any, path: DataPath = (), api_version: str | None = None, kind: str | None = None
) -> Iterator[Manifest]:
    """Yield the manifests of a YAML document. Lists are split into their items, as in kubectl.

    A list is a `v1` `List`, or a typed list such as `PackageVariantList`. The kind of a typed list ends in `List`, and
    the list has `items` and no name. Items of a typed list can omit `apiVersion` and `kind`.

    Args:
        data: The document, or a part of the document.
        path: Position of `data` in the document.
        api_version: The `apiVersion` to use if `data` is an item of a typed list and omits this field.
        kind: The `kind` to use if `data` is an item of a typed list and omits this field.
    """
    fields = data if isinstance(data, dict) else {}
    own_api_version, own_kind = fields.get("apiVersion", api_version), fields.get("kind", kind)
    manifest = Manifest(path, data, _get_string(own_api_version), _get_string(own_kind))
    items = _read_items(manifest)
    if items is None:
        yield manifest
        return
    item_kind = (manifest.kind or "").removesuffix("List")
    item_type = (manifest.api_version, item_kind) if item_kind else (None, None)
    for index, item in enumerate(items):
        yield from list_manifests(item, (*path, "items", index), *item_type)


def _read_items(manifest: Manifest) -> Sequence[Any] | None:
    """Return the items of a list. Return None if the manifest is not a list."""
    if manifest.kind is None or manifest.api_version is None or not manifest.kind.endswith("List"):
        return None
    items = manifest.data.get("items")
    if (manifest.api_version, manifest.kind) == ("v1", "List"):
        return items if isinstance(items, list) else ()
    return items if isinstance(items, list) and not manifest.name else None


def _get_string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def is_namespaced(group: str, kind: str) -> bool:
    """Return whether the reconciler treats a kind as namespaced.

    If `metadata.namespace` is absent, objects of these kinds are in the namespace `default`. For all other kinds, the
    namespace is then empty.
    """
    if group == "core.kubeadmiral.io":
        return kind in ("OverridePolicy", "PropagationPolicy")
    if group == "reconciler.dev":
        return kind == "Build"
    return group in _KINDS_WITHOUT_NAMESPACE and kind not in _KINDS_WITHOUT_NAMESPACE[group]


def is_local_config(metadata: Mapping[str, Any]) -> bool:
    """Return whether the annotation `config.kubernetes.io/local-config` marks an object with this metadata as local."""
    annotations = metadata.get("annotations")
    value = annotations.get(LOCAL_CONFIG_ANNOTATION) if isinstance(annotations, dict) else None
    return value not in (None, "", "false", False)
