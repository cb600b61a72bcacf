"""Models of whole objects: apiVersion, kind, metadata, spec and status.

A kind is a subclass of `Manifest` that declares its spec, or of `KrmObject` if it has no spec. The class name is the
kind.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field

from reconciler.api.base import ApiModel, FieldIssue, FieldMessage, ReadResult, read_model
from reconciler.api.messages import DEFAULT_TEMPLATES, MessageTemplates
from reconciler.krm.field_text import describe_choice, quote_value
from reconciler.krm.names import validate_dns_label, validate_dns_subdomain

KUBERNETES_VERSION_ANNOTATION = "reconciler.dev/kubernetes-version"
KUBERNETES_VERSION_SCHEMA: Mapping[str, Mapping[str, Any]] = {
    KUBERNETES_VERSION_ANNOTATION: {
        "examples": ["1.31"],
        "description": (
            "Kubernetes version of the cluster. Charts are rendered for this version, and the command validate checks "
            "resources against this version."
        ),
    }
}
"""JSON Schema of the annotation that all kinds of clusters can have."""


class Metadata(ApiModel):
    """Metadata of the object. Kubernetes defines its other fields."""

    is_open: ClassVar = True

    name: Any = Field(None, description="Name of the object.")


class KrmObject(ApiModel):
    """An object with apiVersion, kind and metadata."""

    api_versions: ClassVar[tuple[str, ...]] = ()
    """The supported values of apiVersion."""
    templates: ClassVar[MessageTemplates] = DEFAULT_TEMPLATES
    """The message templates for all fields of the kind."""
    scope: ClassVar[Literal["namespaced", "default", "cluster"]] = "namespaced"
    """`cluster`: objects have no namespace. `default`: an object without a namespace is in the namespace `default`."""
    lenient_codes: ClassVar[frozenset[str]] = frozenset()
    """Names of finding codes. If an object has only errors with these codes, it is read leniently: see `read_model`."""
    is_name_optional: ClassVar[bool] = False
    """Whether an object without a name is valid in the JSON Schema."""
    label_schemas: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """JSON Schemas of the labels that the reconciler reads."""
    annotation_schemas: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """JSON Schemas of the annotations that the reconciler reads. Their type is string."""

    api_version: Any = Field(None, description="API group and version.")
    kind: Any = None
    metadata: Metadata = Metadata()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Set `_has_rules`: whether `find_issues` can yield issues for this kind. If not, the method is not called."""
        super().__pydantic_init_subclass__(**kwargs)
        has_own_rules = cls.find_issues.__func__ is not KrmObject.find_issues.__func__  # type: ignore[attr-defined]
        cls._has_rules = has_own_rules or cls.scope == "cluster"

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if a cluster-scoped object has a namespace."""
        metadata = data.get("metadata")
        namespace = metadata.get("namespace") if isinstance(metadata, Mapping) else None
        if cls.scope == "cluster" and namespace:
            text = f"{{path}} must be absent, but is {quote_value(namespace)}: a {cls.__name__} has no namespace"
            yield FieldIssue(text, ("metadata", "namespace"))


class Manifest(KrmObject):
    """An object of the config repository."""

    is_spec_optional: ClassVar[bool] = False
    """Whether an object without a spec is valid in the JSON Schema."""

    spec: Any = None
    status: Any = Field(
        None, description="Status of the object, which programs write. The reconciler does not read the status."
    )


def get_metadata_entry(data: Mapping[str, Any], field: Literal["labels", "annotations"], key: str) -> Any:
    """Return the value of the label or annotation `key`. Return None if the object has no such label or annotation."""
    metadata = data.get("metadata")
    entries = metadata.get(field) if isinstance(metadata, Mapping) else None
    return entries.get(key) if isinstance(entries, Mapping) else None


class CheckedManifest(Manifest):
    """A namespaced object whose name is checked. If its scope is `default`, its namespace is checked too."""

    unknown_field_code: ClassVar = "UnknownField"

    metadata: dict[Any, Any] = Field({}, description="Metadata of the object.")  # type: ignore[assignment]

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an invalid name, and for an invalid namespace."""
        metadata = data.get("metadata")
        if not isinstance(metadata, Mapping):
            return
        if reason := cls.validate_name(str(metadata.get("name"))):
            yield FieldIssue(f"{{path}} is not a valid object name: {reason}", ("metadata", "name"))
        namespace = metadata.get("namespace")
        if cls.scope == "default" and namespace and (reason := validate_dns_label(str(namespace))):
            yield FieldIssue(f"{{path}} is not a valid namespace name: {reason}", ("metadata", "namespace"))

    @staticmethod
    def validate_name(name: str) -> str | None:
        """Return the reason why a name is invalid. Return None if the name is valid."""
        return validate_dns_subdomain(name)


AnyObject = TypeVar("AnyObject", bound=KrmObject)


def read_manifest(model: type[AnyObject], data: Mapping[str, Any]) -> ReadResult[AnyObject]:
    """Read a whole object. If its apiVersion is not supported, report only this error."""
    version = data.get("apiVersion")
    if version in model.api_versions:
        return read_model(model, data, model.templates, lenient_codes=model.lenient_codes)
    template = model.templates.find("api_version", "apiVersion")
    text = template.format(
        kind=model.__name__,
        found=version,
        value=quote_value(version),
        choice=describe_choice(model.api_versions),
        versions=" or ".join(name.rpartition("/")[2] for name in model.api_versions),
    )
    return ReadResult(None, (FieldMessage(("apiVersion",), text),))
