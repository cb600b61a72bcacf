"""Finding codes of the component controller."""

from __future__ import annotations

from reconciler.cel.errors import CODES as EXPRESSION_CODES
from reconciler.krm.findings import FindingCode, FindingScope, Severity, index_codes_by_name

CODES = (
    ADDON_CONFLICT := FindingCode(
        "AddonConflict",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A component uses two addons, and one of them excludes the other addon.",
    ),
    ADDON_EMPTY := FindingCode(
        "AddonEmpty", Severity.WARNING, FindingScope.OBJECT, "An addon neither creates nor patches a resource."
    ),
    ADDON_INCOMPATIBLE := FindingCode(
        "AddonIncompatible",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The targets of an addon match no resource of the component definition.",
    ),
    ADDON_INVALID := FindingCode(
        "AddonInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An addon has an invalid field. Components that use the addon are not rendered.",
    ),
    ADDON_KEY_COLLISION := FindingCode(
        "AddonKeyCollision",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The key of a developer addon equals the name of a definition field or the key of another addon.",
    ),
    ADDON_KEY_INVALID := FindingCode(
        "AddonKeyInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The name of a developer addon does not form a valid key.",
    ),
    ADDON_NOT_ALLOWED := FindingCode(
        "AddonNotAllowed",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The label `allowedFor` of an addon does not include the role that uses it: platform engineer or developer.",
    ),
    ADDON_NOT_FOUND := FindingCode(
        "AddonNotFound",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A component type, component or addon names an addon that does not exist.",
    ),
    ADDON_ORDER_CYCLE := FindingCode(
        "AddonOrderCycle", Severity.ERROR, FindingScope.OBJECT, "The declared order of addons contains a cycle."
    ),
    ADDON_REQUIREMENT_MISSING := FindingCode(
        "AddonRequirementMissing", Severity.ERROR, FindingScope.OBJECT, "An addon requires an addon that is not in use."
    ),
    BUILD_INVALID := FindingCode(
        "BuildInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A Build is invalid. The packages that can depend on it stay unchanged.",
    ),
    BUILD_UNUSED := FindingCode(
        "BuildUnused",
        Severity.WARNING,
        FindingScope.OBJECT,
        "The name of a Build does not match any component in its environment.",
    ),
    COMPONENT_DEFINITION_INVALID := FindingCode(
        "ComponentDefinitionInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A component definition has an invalid field. Components that use the definition are not rendered.",
    ),
    COMPONENT_INVALID := FindingCode(
        "ComponentInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A component has an invalid field. Its packages stay unchanged.",
    ),
    COMPONENT_NAME_CONFLICT := FindingCode(
        "ComponentNameConflict",
        Severity.ERROR,
        FindingScope.OBJECT,
        "Two components in one namespace have the same name.",
    ),
    COMPONENT_TYPE_INVALID := FindingCode(
        "ComponentTypeInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A component type has an invalid field. The packages of its components stay unchanged.",
    ),
    COMPONENT_TYPE_NOT_FOUND := FindingCode(
        "ComponentTypeNotFound",
        Severity.ERROR,
        FindingScope.OBJECT,
        "No component type generates the kind of a component.",
    ),
    COMPONENT_TYPE_NOT_READY := FindingCode(
        "ComponentTypeNotReady", Severity.ERROR, FindingScope.OBJECT, "The component type of a component is not ready."
    ),
    CONDITION_TYPE := FindingCode(
        "ConditionType", Severity.ERROR, FindingScope.PACKAGE, "A condition does not return true or false."
    ),
    CONFIG_EXPRESSION_NOT_ALLOWED := FindingCode(
        "ConfigExpressionNotAllowed",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A component type sets a value of an addon to an expression. Only templates can contain expressions.",
    ),
    DEFINITION_NOT_FOUND := FindingCode(
        "DefinitionNotFound",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A component type or component names a component definition that does not exist.",
    ),
    DEFINITION_VERSION_MISMATCH := FindingCode(
        "DefinitionVersionMismatch",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A component type requires a version that its component definition does not have.",
    ),
    ENV_BINDING_DUPLICATE := FindingCode(
        "EnvBindingDuplicate",
        Severity.ERROR,
        FindingScope.OBJECT,
        "Two EnvBindings bind one component to the same environment. The packages of both EnvBindings stay unchanged.",
    ),
    ENV_BINDING_INVALID := FindingCode(
        "EnvBindingInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An EnvBinding has an invalid field. Its packages stay unchanged.",
    ),
    ENV_BINDING_OWNER_GUESSED := FindingCode(
        "EnvBindingOwnerGuessed",
        Severity.WARNING,
        FindingScope.OBJECT,
        "An EnvBinding does not name its component. The component is derived from the name of the EnvBinding.",
    ),
    ENV_BINDING_OWNER_UNRESOLVED := FindingCode(
        "EnvBindingOwnerUnresolved",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An EnvBinding names no existing component, or its component is ambiguous or not usable.",
    ),
    ENVIRONMENT_INVALID := FindingCode(
        "EnvironmentInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An Environment has an invalid field. The packages in this environment stay unchanged.",
    ),
    ENVIRONMENT_NOT_FOUND := FindingCode(
        "EnvironmentNotFound",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An EnvBinding names an environment that does not exist or has no cluster.",
    ),
    FEATURE_NOT_SUPPORTED := FindingCode(
        "FeatureNotSupported",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A field belongs to a feature that is not supported.",
    ),
    FOR_EACH_TYPE := FindingCode(
        "ForEachType", Severity.ERROR, FindingScope.PACKAGE, "The value of `forEach` is neither a list nor a map."
    ),
    GENERATED_KIND_COLLISION := FindingCode(
        "GeneratedKindCollision", Severity.ERROR, FindingScope.OBJECT, "Two component types generate the same kind."
    ),
    GENERATED_KIND_RESERVED := FindingCode(
        "GeneratedKindReserved",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A component type would generate a reserved kind.",
    ),
    INSTANCE_ID_DUPLICATE := FindingCode(
        "InstanceIdDuplicate", Severity.ERROR, FindingScope.OBJECT, "Two instances of an addon have the same id."
    ),
    INSTANCE_ID_IMPLICIT := FindingCode(
        "InstanceIdImplicit",
        Severity.INFO,
        FindingScope.OBJECT,
        "An addon instance has no `instanceId`. Resource names can change when a second instance is added.",
    ),
    INSTANCE_ID_MISSING := FindingCode(
        "InstanceIdMissing",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An addon has several instances, and one of them has no id.",
    ),
    LAST_WRITER_WINS := FindingCode(
        "LastWriterWins",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "Two addons set different values at one path. The addon that runs last determines the value.",
    ),
    LIST_KEY_DUPLICATE := FindingCode(
        "ListKeyDuplicate",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "After all addons were applied, a list contains two entries with the same name or mount path.",
    ),
    LOAD_ORDER_UNSATISFIABLE := FindingCode(
        "LoadOrderUnsatisfiable",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The declared order of addons contradicts the rule that platform addons run before developer addons.",
    ),
    LOOP_VAR_RESERVED := FindingCode(
        "LoopVarReserved",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A loop variable has the name of a predefined variable.",
    ),
    MERGE_TYPE_MISMATCH := FindingCode(
        "MergeTypeMismatch",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A patch merges two values of different types, such as a map and a string.",
    ),
    MERGED_WRITE := FindingCode(
        "MergedWrite",
        Severity.INFO,
        FindingScope.PACKAGE,
        "Two addons added values at one path. The values were merged.",
    ),
    NAMESPACE_NOT_ALLOWED := FindingCode(
        "NamespaceNotAllowed",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A component renders a resource in another namespace than its own.",
    ),
    NOT_FLATTENABLE := FindingCode(
        "NotBakeable",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A component type cannot be flattened, for example because an expression of an addon depends on values that "
        "are known only during a render.",
    ),
    NOT_OVERRIDABLE := FindingCode(
        "NotOverridable",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An environment overrides a field that is declared in `parameters`, not in `envOverrides`.",
    ),
    OBJECT_DUPLICATE := FindingCode(
        "ObjectDuplicate", Severity.ERROR, FindingScope.PACKAGE, "A component renders the same resource twice."
    ),
    OVERRIDE_KEY_AMBIGUOUS := FindingCode(
        "OverrideKeyAmbiguous",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The key of an addon override refers to several addons, or two keys refer to the same addon.",
    ),
    OVERRIDE_TARGET_UNKNOWN := FindingCode(
        "OverrideTargetUnknown",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An environment overrides an addon or addon instance that is not in use.",
    ),
    OVERWRITTEN_WRITE := FindingCode(
        "OverwrittenWrite",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "An addon replaces or removes a value that another addon set. The addons do not declare their order.",
    ),
    PATCH_OP_UNSUPPORTED := FindingCode(
        "PatchOpUnsupported",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The operation of a patch is not add, replace, remove or merge.",
    ),
    PATCH_PATH_NOT_FOUND := FindingCode(
        "PatchPathNotFound", Severity.ERROR, FindingScope.PACKAGE, "The path of a patch does not exist in the resource."
    ),
    PATCH_TARGET_NOT_FOUND := FindingCode(
        "PatchTargetNotFound", Severity.WARNING, FindingScope.PACKAGE, "The target of a patch matches no resource."
    ),
    PATCH_TOO_LARGE := FindingCode(
        "PatchTooLarge",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The patches of a component exceed the limit for written data, read data or nesting depth.",
    ),
    PATH_AMBIGUOUS_ADD := FindingCode(
        "PathAmbiguousAdd",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The path of an add operation ends with a filter or wildcard, which can match several values.",
    ),
    PATH_AMBIGUOUS_CONTAINER := FindingCode(
        "PathAmbiguousContainer",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The path of a patch contains a number below a missing value. It can be a list index or a map key.",
    ),
    PATH_DASH_ONLY_ADD := FindingCode(
        "PathDashOnlyAdd",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A patch path ends with `-`, the position after the last list item, but the operation is not add.",
    ),
    PATH_FILTER_UNSUPPORTED := FindingCode(
        "PathFilterUnsupported",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A filter in a patch path is not a comparison of one field with one value.",
    ),
    PATH_INDEX_OUT_OF_RANGE := FindingCode(
        "PathIndexOutOfRange",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A list index in a patch path does not exist in the resource.",
    ),
    PATH_NOT_ARRAY := FindingCode(
        "PathNotArray",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A patch path requires a list where the resource has another value.",
    ),
    PATH_NOT_OBJECT := FindingCode(
        "PathNotObject",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A patch path requires a map where the resource has another value.",
    ),
    PATH_ROOT := FindingCode(
        "PathRoot", Severity.ERROR, FindingScope.OBJECT, "The path of a patch addresses the whole resource."
    ),
    PATH_SYNTAX := FindingCode(
        "PathSyntax", Severity.ERROR, FindingScope.OBJECT, "The path of a patch has a syntax error."
    ),
    PATH_TOO_MANY := FindingCode(
        "PathTooMany", Severity.ERROR, FindingScope.PACKAGE, "The path of a patch matches more values than allowed."
    ),
    RENDERED_OBJECT_INVALID := FindingCode(
        "RenderedObjectInvalid",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A component renders data without a valid apiVersion, kind or name.",
    ),
    REQUIRED_WITH_DEFAULT := FindingCode(
        "RequiredWithDefault",
        Severity.INFO,
        FindingScope.OBJECT,
        "A required field has a default, so `required` has no effect.",
    ),
    RUNTIME_COMPOSITION_DISABLED := FindingCode(
        "RuntimeCompositionDisabled",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A Component without a component type exists, but `rules.runtime_composition` is false.",
    ),
    SCHEMA_FIELD_COLLISION := FindingCode(
        "SchemaFieldCollision",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A field is declared in both `parameters` and `envOverrides`.",
    ),
    SCHEMA_TOO_LARGE := FindingCode(
        "SchemaTooLarge",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A schema exceeds the limit for fields, levels or expression length.",
    ),
    SCHEMA_VALIDATION := FindingCode(
        "SchemaValidation",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A value does not satisfy its schema.",
    ),
    SHORTHAND_DEFAULT_INVALID := FindingCode(
        "ShorthandDefaultInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A default does not satisfy the schema of its field.",
    ),
    SHORTHAND_EMPTY := FindingCode(
        "ShorthandEmpty", Severity.ERROR, FindingScope.OBJECT, "A schema field has no type."
    ),
    SHORTHAND_FIELD_TYPE := FindingCode(
        "ShorthandFieldType",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A schema field is neither an expression nor a mapping, or its name is not valid.",
    ),
    SHORTHAND_MARKER_DUPLICATE := FindingCode(
        "ShorthandMarkerDuplicate", Severity.ERROR, FindingScope.OBJECT, "A schema field has a marker twice."
    ),
    SHORTHAND_MARKER_NO_VALUE := FindingCode(
        "ShorthandMarkerNoValue", Severity.ERROR, FindingScope.OBJECT, "A schema marker has no value."
    ),
    SHORTHAND_MARKER_TYPE := FindingCode(
        "ShorthandMarkerType",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A schema marker does not apply to the type of its field.",
    ),
    SHORTHAND_NAME_HYPHEN := FindingCode(
        "ShorthandNameHyphen",
        Severity.INFO,
        FindingScope.OBJECT,
        'The name of a schema field contains "-". Expressions can access such a field only in brackets.',
    ),
    SHORTHAND_SYNTAX := FindingCode(
        "ShorthandSyntax",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A schema field has an unclosed quote or bracket.",
    ),
    SHORTHAND_TYPE := FindingCode(
        "ShorthandType", Severity.ERROR, FindingScope.OBJECT, "A schema field has an invalid type."
    ),
    SHORTHAND_TYPE_CYCLE := FindingCode(
        "ShorthandTypeCycle",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The types of a schema contain a cycle.",
    ),
    SHORTHAND_UNKNOWN_MARKER := FindingCode(
        "ShorthandUnknownMarker",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A schema field has an unknown marker.",
    ),
    SHORTHAND_UNKNOWN_TYPE := FindingCode(
        "ShorthandUnknownType",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A schema field has a type that the schema does not define.",
    ),
    SHORTHAND_VALUE := FindingCode(
        "ShorthandValue",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The value of a schema marker does not match the type of the field.",
    ),
    TARGET_EMPTY := FindingCode(
        "TargetEmpty",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A patch target has no field, so it would match every resource.",
    ),
    TARGET_INVALID := FindingCode(
        "TargetInvalid", Severity.ERROR, FindingScope.OBJECT, "A patch target has an invalid field."
    ),
    TEMPLATE_DUPLICATE_KEY := FindingCode(
        "TemplateDuplicateKey", Severity.ERROR, FindingScope.PACKAGE, "Two keys of a map render to the same text."
    ),
    TEMPLATE_KEY_TYPE := FindingCode(
        "TemplateKeyType", Severity.ERROR, FindingScope.PACKAGE, "A key of a map does not render to a string."
    ),
    TEMPLATE_NESTED := FindingCode(
        "TemplateNested",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An expression contains the beginning of another expression.",
    ),
    TEMPLATE_NULL_IN_TEXT := FindingCode(
        "TemplateNullInText",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "An expression inside a text returns null, which has no text form.",
    ),
    TEMPLATE_OMIT_IN_TEXT := FindingCode(
        "TemplateOmitInText",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "An expression inside a text returns `omit()`, which can only remove a complete value.",
    ),
    TEMPLATE_UNTERMINATED := FindingCode(
        "TemplateUnterminated", Severity.ERROR, FindingScope.OBJECT, "An expression has no closing brace."
    ),
    UNKNOWN_FIELD := FindingCode(
        "UnknownField",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An object has a field that is unknown or not declared in its schema.",
    ),
    VALIDATION_RULE_FAILED := FindingCode(
        "ValidationRuleFailed",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A validation rule of a component type or addon is false.",
    ),
)

CEL_CODES = index_codes_by_name(EXPRESSION_CODES)
"""Finding codes for errors in CEL expressions, by the `code` of the ExpressionError."""
