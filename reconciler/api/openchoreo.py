"""Kinds of the component model: definitions, addons, component types, components and EnvBindings.

The API group `platform` is an early form of OpenChoreo. Objects of the kinds that ComponentTypes generate have the
model `TypedComponent`. Templates and CEL expressions are values of any type here. The component controller compiles
them.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    StrictBool,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from reconciler.api.base import ApiModel, FieldIssue, issue
from reconciler.api.field_types import (
    EXTENSION_PREFIX,
    NOT_EMPTY,
    ExtensibleModel,
    FreeMapping,
    NonEmptyText,
    Unparsed,
    check_text,
    raise_issues,
)
from reconciler.api.manifest import CheckedManifest, get_metadata_entry
from reconciler.api.messages import MessageTemplates
from reconciler.krm.field_text import describe_choice, describe_value, quote_value
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.names import validate_dns_subdomain, validate_name_segment
from reconciler.krm.yaml import DataPath

API_VERSION = "platform/v1alpha1"
FLATTEN_ANNOTATION = "reconciler.dev/bake"
EXPRESSION_START = "${"
"""Beginning of an expression in a template. The end is "}"."""
DEFAULT_INSTANCE = "default"
LOOP_VARIABLE = "item"
"""Name of the loop variable if the field `var` is not set."""
PatchOp = Literal["add", "replace", "remove", "merge"]
PATCH_OPS: tuple[PatchOp, ...] = get_args(PatchOp)
AddonUsers = Literal["platform-engineer", "developer", "both"]
ADDON_USERS: tuple[AddonUsers, ...] = get_args(AddonUsers)
"""Values of the label `allowedFor` of an addon. The first value is the default."""
_TARGET_TEXT = "must be a mapping with requirements such as resourceType or resourceId"

COMPONENT_TEMPLATES = MessageTemplates(
    {"missing": "{path} must be a string that is not empty"},
    {
        ("missing", "spec"): "{path} must be a mapping",
        ("missing", "componentDefinitionRef"): "{path}.name must be a string that is not empty",
        ("missing", "id"): "{path} must be a unique id",
        ("missing", "template"): "{path} must be the template of an object",
        ("missing", "kind"): "{path} must be the name of a kind and must not contain expressions",
        ("missing", "target"): f"{{path}} {_TARGET_TEXT}",
        ("model_type", "target"): f"{{path}} {_TARGET_TEXT}{{found}}",
        ("missing", "op"): f"{{path}} must be {describe_choice(PATCH_OPS)}, but is missing",
        ("missing", "path"): '{path} must be a string, such as "/spec/replicas"',
        **{
            (error_type, "resources"): "{path} must be a list with at least one resource"
            for error_type in ("missing", "too_short")
        },
    },
)


def is_template_text(value: object) -> bool:
    """Return whether a value is a string that contains an expression."""
    return isinstance(value, str) and EXPRESSION_START in value


def list_duplicates(entries: object, name: str) -> Iterator[tuple[int, str]]:
    """Yield the index and the value of the field `name` for each entry that repeats the value of an earlier entry."""
    values = set()
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        value = entry.get(name) if isinstance(entry, Mapping) else None
        if isinstance(value, str) and value:
            if value in values:
                yield index, value
            values.add(value)


def _find_duplicates(field: str, entries: object, name: str) -> Iterator[FieldIssue]:
    for index, value in list_duplicates(entries, name):
        text = f"{{path}} must be unique, but {quote_value(value)} is used twice"
        yield FieldIssue(text, (field, index, name))


ID_PATTERN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
ID_DESCRIPTION = 'lower-case letters, digits and "-", with a letter or digit at both ends'


def _check_id(value: str) -> str:
    if not ID_PATTERN.fullmatch(value):
        raise issue(f"{{path}} must be {ID_DESCRIPTION}, but is {quote_value(value)}")
    return value


Identifier = Annotated[
    str, AfterValidator(_check_id), Field(json_schema_extra={"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"})
]
InstanceId = Annotated[
    Identifier,
    Field(
        description=(
            "ID of this instance of the addon. The ID is required if a component has several instances of the addon."
        ),
        json_schema_extra={"default": DEFAULT_INSTANCE},
    ),
]
AddonValues = Annotated[FreeMapping, Field(description="Parameters of the addon.")]
_EXPRESSION_SCHEMA: dict[str, JsonValue] = {"type": "string", "pattern": r"\$\{"}


def _describe_condition(text: str) -> Any:
    schema: dict[str, JsonValue] = {"anyOf": [{"type": "boolean"}, _EXPRESSION_SCHEMA]}
    return Field(None, description=f"{text}: true, false, or an expression ${{…}}.", json_schema_extra=schema)


class ValidationRule(ExtensibleModel):
    """A validation rule for the parameters."""

    name: str = Field("", description="Name of the rule in messages.")
    expression: NonEmptyText = Field(description="CEL expression that must be true.")
    message: str = Field("", description="Message that is reported if the expression is not true.")


class ValidationRules(ExtensibleModel):
    """Validation rules for the parameters."""

    rules: tuple[ValidationRule, ...] = Field((), description="List of rules.")


def _check_section(value: object) -> object:
    if not isinstance(value, Mapping):
        raise issue(f"{{path}} must be a mapping of names to types, but is {describe_value(value)}")
    return value


SchemaSection = Annotated[FreeMapping, BeforeValidator(_check_section)]


class SchemaSections(ExtensibleModel):
    """The schema of the parameters, in shorthand: a type, then |, then constraints and a default."""

    types: SchemaSection = Field({}, description="Named types that fields can use.")
    parameters: SchemaSection = Field(
        {},
        description="Parameters that have the same value in all environments.",
        examples=[{"port": "integer | default=8080 minimum=1"}],
    )
    env_overrides: SchemaSection = Field({}, description="Parameters that an environment can override.")
    required_by_default: StrictBool = Field(False, description="Whether fields without a default are required.")


def _check_kind(value: object) -> object:
    if not isinstance(value, str) or not value or EXPRESSION_START in value:
        raise issue(
            f"{{path}} must be the name of a kind and must not contain expressions, but is {quote_value(value)}"
        )
    return value


class ObjectTemplateFields(ApiModel):
    """The template of a Kubernetes object. It can contain expressions ${…}."""

    is_open: ClassVar = True

    api_version: Any = Field(
        None, description="API group and version of the object.", json_schema_extra={"type": "string"}
    )
    kind: Annotated[NonEmptyText, BeforeValidator(_check_kind)] = Field(
        description="Kind of the object. It must not contain expressions."
    )
    metadata: Any = Field(None, description="Name, namespace, labels and annotations of the object.")


ObjectTemplateData = Annotated[dict[Any, Any], Unparsed(ObjectTemplateFields)]


class LoopFields(ExtensibleModel):
    """The fields of an entry that is rendered once for each item of a list."""

    for_each: Any = Field(
        None,
        description=(
            "A list, a mapping, or an expression ${…} that returns a list or a mapping. The template is "
            "rendered once for each item."
        ),
        json_schema_extra={"anyOf": [{"type": "array"}, {"type": "object"}, _EXPRESSION_SCHEMA]},
    )
    var: Any = Field(
        None,
        description="Name of the variable that contains the current item.",
        json_schema_extra={"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "default": LOOP_VARIABLE},
    )


class ObjectEntry(LoopFields):
    """An entry of a list that contains the template of an object."""

    id: Identifier = Field("", description="ID of the object. Addons select the object by this ID.")
    include_when: Any = _describe_condition("Whether to render the object")

    @property
    def object_field(self) -> str:
        """Name of the field that contains the template of the object."""
        return "template"

    @property
    def object_data(self) -> dict[str, Any]:
        """The template of the object."""
        data: dict[str, Any] = getattr(self, self.object_field)
        return data


class ResourceEntry(ObjectEntry):
    """An entry of a component definition, which renders one or more objects."""

    id: Identifier = Field(description="ID of the object. Addons select the object by this ID.")
    template: ObjectTemplateData


class ComponentDefinitionSpec(ExtensibleModel):
    """The schema of the parameters, and the templates of the objects."""

    subtree_codes: ClassVar = {"schema": "ShorthandFieldType"}

    schema_: SchemaSections = Field(SchemaSections(), alias="schema")
    resources: Annotated[tuple[ResourceEntry, ...], *NOT_EMPTY] = Field(
        description="Templates of the objects that a component renders."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for each resource with the same id as an earlier resource."""
        return _find_duplicates("resources", data.get("resources"), "id")


class ComponentManifest(CheckedManifest):
    """An object of the API group."""

    api_versions: ClassVar = (API_VERSION,)
    templates: ClassVar = COMPONENT_TEMPLATES


class ComponentDefinition(ComponentManifest):
    """Templates for the objects of a component, and the schema of their parameters."""

    spec: ComponentDefinitionSpec


def _read_texts(value: object) -> object:
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        raise issue(f"{{path}} must be a string, but is {describe_value(value)}")
    return (value,)


OneOrMoreTexts = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_texts),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


def _check_target_labels(labels: dict[Any, Any]) -> dict[Any, Any]:
    issues = (
        FieldIssue(f"{{path}} must be a string, but is {describe_value(value)}", (str(key),))
        for key, value in labels.items()
        if value is None or isinstance(value, Mapping | list)
    )
    raise_issues(issues, labels)
    return labels


class OrExpression:
    """Annotation of a field whose value can also be a string with an expression."""

    def __init__(self, value_type: Any) -> None:
        self.value_type = value_type

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a schema that keeps an expression, and validates all other values."""

        def validate(value: Any, read: Callable[[Any], Any]) -> Any:
            return value if is_template_text(value) else read(value)

        return core_schema.no_info_wrap_validator_function(validate, handler.generate_schema(self.value_type))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return a JSON Schema that accepts the value and an expression."""
        return {"anyOf": [handler(schema), _EXPRESSION_SCHEMA]}


class TargetSelector(ExtensibleModel):
    """Labels that a selected object must have, or an expression ${…} that returns them."""

    match_labels: Annotated[Any, OrExpression(Annotated[dict[Any, Any], AfterValidator(_check_target_labels)])] = Field(
        {},
        description=(
            "Labels that a selected object must have, with their values, or an expression ${…} that returns them."
        ),
    )


class PatchTargetFields(ExtensibleModel):
    """The selected objects. An object must match all fields that are set."""

    resource_type: OneOrMoreTexts | None = Field(None, description="Kinds of the objects. * matches all kinds.")
    resource_id: OneOrMoreTexts | None = Field(None, description="IDs of the objects.")
    selector: Annotated[Any, OrExpression(TargetSelector)] = Field(
        None, description="Labels that a selected object must have, or an expression ${…} that returns them."
    )
    container_name: OneOrMoreTexts | None = Field(
        None, description="Names of containers. A selected object must have at least one of these containers."
    )
    containers: OneOrMoreTexts | None = Field(None, description="Alias of containerName.")
    group: str | None = Field(None, description="API group of the objects that are selected.")
    version: str | None = Field(None, description="API version of the objects that are selected.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for a target without requirements, and for a target with both containers and containerName."""
        if "containerName" in data and "containers" in data:
            text = "{path} must not be set together with containerName, which has the same meaning"
            yield FieldIssue(text, ("containers",))
        selector = data.get("selector")
        labels = selector.get("matchLabels") if isinstance(selector, Mapping) else selector
        if labels in (None, {}) and all(name == "selector" or str(name).startswith(EXTENSION_PREFIX) for name in data):
            fields = ", ".join(cls.field_names)
            text = f"{{path}} must have at least one of {fields}; otherwise the target matches every resource"
            yield FieldIssue(text, code="TargetEmpty")


def _check_patch_path(value: object) -> object:
    if not isinstance(value, str):
        raise issue(
            f'{{path}} must be a string, such as "/spec/replicas", but is {describe_value(value)}', "PathSyntax"
        )
    return value


class PatchOperationFields(ExtensibleModel):
    """One patch operation."""

    field_codes: ClassVar = {"op": "PatchOpUnsupported", "path": "PathSyntax"}
    nullable_fields: ClassVar = frozenset({"value"})

    op: PatchOp = Field(description="Operation on the value at the path.")
    path: Annotated[str, BeforeValidator(_check_patch_path)] = Field(
        description="Path of the value, for example /spec/template/spec/containers/[?(@.name=='app')]/env/-."
    )
    value: Any = Field(
        default_factory=lambda: ABSENT,
        description="New value, or an expression ${…} that returns it. Only the operation remove has no value.",
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if `value` is missing, or if `value` is set for the operation `remove`."""
        operation = data.get("op")
        if operation in PATCH_OPS and ("value" in data) == (operation == "remove"):
            requirement = f'must {"not " if operation == "remove" else ""}be set for the operation "{operation}"'
            yield FieldIssue(f"{{path}} {requirement}", ("value",))


_WRAPPER_FIELDS = ("id", "includeWhen", "forEach", "var", "resource", "template")


class CreationWrapper(ObjectEntry):
    """An entry of an addon, with the template of an object in the field `resource` or `template`."""

    resource: ObjectTemplateData | None = None
    template: ObjectTemplateData | None = Field(None, description="Alias of resource.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless exactly one of the fields `resource` and `template` is set."""
        if ("resource" in data) == ("template" in data):
            fields = "exactly one of the fields `resource` and `template`"
            yield FieldIssue(f"{{path}} must be a resource, or contain a resource in {fields}")

    @property
    def object_field(self) -> str:
        """Name of the field that contains the template of the object."""
        return "template" if self.resource is None else "resource"


class _ObjectOrWrapper:
    """Annotation of an entry that is an object, or a wrapper with an object."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a schema that only validates an object, and that converts a wrapper to a `CreationWrapper`."""

        def validate(value: Any, read_wrapper: Callable[[Any], Any], info: ValidationInfo) -> Any:
            if not isinstance(value, Mapping) or (value.get("kind") is None and value.get("apiVersion") is None):
                return read_wrapper(value)
            if names := [name for name in _WRAPPER_FIELDS if value.get(name) is not None]:
                text = (
                    "must be either a resource, or an entry that contains a resource in `resource`, but is a "
                    "resource with the additional fields"
                )
                raise issue(f"{{path}} {text} {', '.join(names)}")
            ObjectTemplateFields.model_validate(value, context=info.context)
            return value

        return core_schema.with_info_wrap_validator_function(validate, handler.generate_schema(CreationWrapper))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return a JSON Schema that accepts an object or a wrapper.

        An entry with `kind` or `apiVersion` is validated as an object. Any other entry is validated as a wrapper.
        """
        ObjectTemplateFields.model_rebuild()
        return {
            "type": "object",
            "if": {"anyOf": [{"required": ["kind"]}, {"required": ["apiVersion"]}]},
            "then": handler(ObjectTemplateFields.__pydantic_core_schema__),
            "else": handler(schema),
        }


class PatchEntry(LoopFields):
    """Patch operations on the selected objects."""

    subtree_codes: ClassVar = {"target": "TargetInvalid"}
    blank_fields: ClassVar = ("onMissing",)

    condition: Any = _describe_condition("Whether to apply the patch")
    include_when: Any = _describe_condition("Alias of condition")
    target: Annotated[Any, Unparsed(PatchTargetFields)]
    patch: PatchOperationFields | None = Field(None, description="One operation. Use either patch or operations.")
    operations: tuple[PatchOperationFields, ...] = Field(
        (), description="Several operations. Use either operations or patch."
    )
    on_missing: Literal["error", "skip"] = Field(
        "error", description="Behavior if the path does not exist: error or skip the operation."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless exactly one of patch and operations is set.

        Also yield an issue if condition and includeWhen are both set.
        """
        if ("patch" in data) == ("operations" in data):
            yield FieldIssue("{path} must have exactly one of the fields patch and operations")
        if "condition" in data and "includeWhen" in data:
            text = "{path} must not be set together with condition, which has the same meaning"
            yield FieldIssue(text, ("includeWhen",))

    def iterate_operations(self) -> Iterator[tuple[DataPath, PatchOperationFields]]:
        """Yield each operation with its path in the entry."""
        if self.patch:
            yield ("patch",), self.patch
        yield from ((("operations", index), operation) for index, operation in enumerate(self.operations))


def _check_addon_name(value: object) -> object:
    if not isinstance(value, str) or not value:
        raise issue(f"{{path}} must be the name of an addon, but is {quote_value(value)}")
    return value


AddonNames = tuple[Annotated[NonEmptyText, BeforeValidator(_check_addon_name)], ...]


class AddonRelation(ExtensibleModel):
    """Another addon that this addon requires or excludes."""

    addon: NonEmptyText = Field(description="Name of the addon.")
    reason: str = Field("", description="Reason for the relation. Messages contain this text.")


class LoadOrder(ExtensibleModel):
    """The order in which this addon and other addons are applied."""

    after: AddonNames = Field((), description="Addons that are applied before this addon.")
    before: AddonNames = Field((), description="Addons that are applied after this addon.")


class AddonDependencies(ExtensibleModel):
    """Other addons that this addon requires or excludes, and the order of addons."""

    requires: tuple[AddonRelation, ...] = Field((), description="Required addons.")
    conflicts_with: tuple[AddonRelation, ...] = Field((), description="Conflicting addons.")
    load_order: LoadOrder = LoadOrder()


class AddonSpec(ExtensibleModel):
    """The schema of the parameters, and the templates of the objects."""

    subtree_codes: ClassVar = {"schema": "ShorthandFieldType", "targets": "TargetInvalid"}
    unsupported_fields: ClassVar = {"outputs": "remove the field"}

    display_name: str = Field("", description="Display name.")
    description: str = Field("", description="Description.")
    icon: str = Field("", description="Icon.")
    schema_: SchemaSections = Field(SchemaSections(), alias="schema")
    condition: Any = _describe_condition("Whether to apply the addon")
    targets: tuple[PatchTargetFields, ...] = Field((), description="Objects to patch.")
    creates: tuple[Annotated[Any, _ObjectOrWrapper()], ...] = Field(
        (),
        description=(
            "Objects that the addon creates. An item is an object, or a mapping that contains an object in "
            "its field `resource`."
        ),
    )
    patches: tuple[PatchEntry, ...] = Field((), description="Patches for objects of the component.")
    dependencies: AddonDependencies = AddonDependencies()
    validation: ValidationRules = ValidationRules()

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for each item of `creates` with the same id as an earlier item."""
        return _find_duplicates("creates", data.get("creates"), "id")


class Addon(ComponentManifest):
    """An extension of components that creates objects and patches other objects."""

    label_schemas: ClassVar = {
        "allowedFor": {
            "anyOf": [{"enum": [*ADDON_USERS]}, {"type": "null"}],
            "description": "Users who can use the addon.",
            "default": ADDON_USERS[0],
        }
    }

    spec: AddonSpec

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an unknown value of the label `allowedFor`."""
        yield from super().find_issues(data)
        users = get_metadata_entry(data, "labels", "allowedFor")
        if users is not None and users not in ADDON_USERS:
            text = f"{{path}} must be {describe_choice(ADDON_USERS)}, but is {quote_value(users)}"
            yield FieldIssue(text, ("metadata", "labels", "allowedFor"))


class AddonUse(ExtensibleModel):
    """One instance of an addon with its values."""

    name: NonEmptyText = Field(description="Name of the addon.")
    instance_id: InstanceId | None = None
    config: AddonValues = Field({})


class PlatformAddon(AddonUse):
    """One instance of an addon that all components of a type have."""

    condition: Any = _describe_condition("Whether a component has this addon")


class AllowedAddon(ExtensibleModel):
    """An addon that developers can add."""

    unsupported_fields: ClassVar = {"presets": "remove the field"}

    name: NonEmptyText = Field(description="Name of the addon.")
    description: str = Field("", description="Purpose of the addon in this component type.")
    defaults: AddonValues = Field({}, description="Default values.")


class DeveloperAddons(ExtensibleModel):
    """Addons that developers can add."""

    allowed: tuple[AllowedAddon, ...] = Field((), description="The allowed addons. Each addon can occur once.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for each addon that an earlier item already contains."""
        return _find_duplicates("allowed", data.get("allowed"), "name")


class DefinitionReference(ExtensibleModel):
    """The ComponentDefinition of the component type."""

    name: NonEmptyText = Field(description="Name of the ComponentDefinition.")
    version: str = Field("", description="Value that the label `version` of the ComponentDefinition must have.")


class ComponentTypeSpec(ExtensibleModel):
    """The ComponentDefinition and the addons of the component type."""

    component_definition_ref: DefinitionReference
    platform_addons: tuple[PlatformAddon, ...] = Field((), description="Addons of all components of this type.")
    developer_addons: DeveloperAddons = DeveloperAddons()
    validation: ValidationRules = ValidationRules()


class ComponentType(ComponentManifest):
    """A ComponentDefinition with addons. It generates a kind of components for developers."""

    annotation_schemas: ClassVar = {
        FLATTEN_ANNOTATION: {
            "description": "Name of the ComponentDefinition to generate. It contains all platform addons."
        }
    }

    spec: ComponentTypeSpec

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if the annotation with the name of the flattened definition is invalid."""
        yield from super().find_issues(data)
        name = get_metadata_entry(data, "annotations", FLATTEN_ANNOTATION)
        if isinstance(name, str) and name and (reason := validate_dns_subdomain(name)):
            text = f"{{path}} is not a valid object name: {reason}"
            yield FieldIssue(text, ("metadata", "annotations", FLATTEN_ANNOTATION))


class TypedComponent(ComponentManifest):
    """A component of a kind that a ComponentType generates. The ComponentType defines its spec."""

    scope: ClassVar = "default"

    spec: FreeMapping

    @staticmethod
    def validate_name(name: str) -> str | None:
        """Return the reason why a name is not valid in a package path. Return None if the name is valid."""
        return validate_name_segment(name)


class ComponentSpec(ExtensibleModel):
    """The ComponentDefinition, its parameters, and the addons of the component."""

    component_definition: NonEmptyText = Field(description="Name of the ComponentDefinition.")
    parameters: FreeMapping = Field({}, description="Parameters that the ComponentDefinition declares.")
    addons: tuple[AddonUse, ...] = Field((), description="Addons of the component.")


class Component(TypedComponent):
    """A component without a ComponentType. It names its ComponentDefinition and its addons."""

    spec: ComponentSpec  # type: ignore[assignment]


class BindingOwner(ExtensibleModel):
    """The component that the EnvBinding binds."""

    component_name: str = Field("", description="Name of the component.")
    namespace: str = Field(
        "", description="Namespace of the component. The default is the namespace of the EnvBinding."
    )


class Endpoint(ExtensibleModel):
    """A network endpoint of the component."""

    name: str = Field("", description="Name of the endpoint.")
    host: str = Field("", description="Host name of the endpoint.")


def _complete_overrides(overrides: object) -> object:
    if not isinstance(overrides, Mapping):
        return overrides
    return {str(name): {} if values is None else values for name, values in overrides.items()}


OverridesByAddon = Annotated[
    dict[str, FreeMapping],
    BeforeValidator(_complete_overrides),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["object", "null"]}}),
]


class EnvBindingSpec(ExtensibleModel):
    """The component, its environment, and the overrides for this environment."""

    owner: BindingOwner = BindingOwner()
    environment: Annotated[
        NonEmptyText, check_text(validate_name_segment, "{path} must be a valid environment name")
    ] = Field(description="Name of the environment.")
    overrides: FreeMapping = Field({}, description="Parameters of the component in this environment.")
    platform_addon_overrides: OverridesByAddon = Field(
        {},
        description=(
            "Values of platform addons in this environment, by addon name. If an addon has several "
            "instances, its values are grouped by instance ID."
        ),
    )
    addon_overrides: OverridesByAddon = Field(
        {}, description="Values of developer addons in this environment, by addon name."
    )
    endpoints: tuple[Annotated[dict[Any, Any], Unparsed(Endpoint)], ...] = Field(
        (), description="Endpoints of the component in this environment."
    )


class EnvBinding(ComponentManifest):
    """Installs a component in an environment, with overrides for this environment."""

    scope: ClassVar = "default"
    annotation_schemas: ClassVar = {
        "reconciler.dev/ack-deletions": {
            "description": "Hash from the message about a held deletion. It confirms all deletions in the message."
        },
        "reconciler.dev/adopt": {
            "examples": ["true"],
            "description": '"true" adopts an existing package that has no owner.',
        },
    }

    spec: EnvBindingSpec
