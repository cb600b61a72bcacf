"""Models of whole manifests: apiVersion, kind, metadata, spec and status.

A kind is a subclass of `Manifest` with the type of its spec. The class name is the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from reconciler.api.base import ApiModel, FieldMessage, Model, ReadResult, read_model
from reconciler.api.messages import DEFAULT_TEMPLATES, MessageTemplates


class Metadata(ApiModel):
    """Metadata of the object. Kubernetes defines its other fields."""

    is_open: ClassVar = True

    name: Any = Field(None, description="Name of the object.")


class Manifest(ApiModel):
    """An object of the config repository."""

    api_versions: ClassVar[tuple[str, ...]] = ()
    templates: ClassVar[MessageTemplates] = DEFAULT_TEMPLATES
    annotation_schemas: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """JSON Schemas of the annotations that the reconciler reads. Their type is string."""
    has_default_namespace: ClassVar[bool] = False
    """Whether an object without a namespace is in the namespace `default`."""

    api_version: Any = Field(None, description="API group and version.")
    kind: Any = None
    metadata: Metadata = Metadata()
    spec: Any = None
    status: Any = Field(None, description="Programs write this field. It is not read.")


def read_manifest(model: type[Model], data: Mapping[str, Any]) -> ReadResult[Model]:
    """Read a whole object. An object of an unsupported version has only one error."""
    if not issubclass(model, Manifest):
        raise TypeError(f"{model.__name__} is not a manifest")
    version = data.get("apiVersion")
    if version not in model.api_versions:
        versions = " or ".join(text.rpartition("/")[2] for text in model.api_versions)
        text = f"unsupported {model.__name__} apiVersion {version}; use {versions}"
        return ReadResult(None, (FieldMessage(("apiVersion",), text),))
    return read_model(model, data, model.templates)
