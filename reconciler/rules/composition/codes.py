"""The codes of composition: what can be wrong with definitions, addons, types and components (openchoreo 15)."""

from __future__ import annotations

from reconciler.expressions.codes import CODES as EXPRESSION_CODES
from reconciler.krm.findings import Code, Scope, Severity, by_name

CODES = (
    ADDON_CONFLICT := Code(
        "AddonConflict",
        Severity.ERROR,
        Scope.OBJECT,
        "Two addons that exclude each other are to work on one component.",
    ),
    ADDON_EMPTY := Code("AddonEmpty", Severity.WARNING, Scope.OBJECT, "An addon neither creates nor patches anything."),
    ADDON_INCOMPATIBLE := Code(
        "AddonIncompatible",
        Severity.ERROR,
        Scope.OBJECT,
        "An addon fits no resource of the definition that its type is made of.",
    ),
    ADDON_INVALID := Code(
        "AddonInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "An addon has a field that cannot be used; nothing that needs it is rendered.",
    ),
    ADDON_KEY_COLLISION := Code(
        "AddonKeyCollision",
        Severity.ERROR,
        Scope.OBJECT,
        "The key of a developer addon is the name of a field of the definition, or of another addon.",
    ),
    ADDON_KEY_INVALID := Code(
        "AddonKeyInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "The name of a developer addon makes no key that a field can have.",
    ),
    ADDON_NOT_ALLOWED := Code(
        "AddonNotAllowed",
        Severity.ERROR,
        Scope.OBJECT,
        "An addon is used by a side that its label allowedFor does not let use it.",
    ),
    ADDON_NOT_FOUND := Code(
        "AddonNotFound",
        Severity.ERROR,
        Scope.OBJECT,
        "A type, a component or an addon names an addon that is not there.",
    ),
    ADDON_ORDER_CYCLE := Code(
        "AddonOrderCycle", Severity.ERROR, Scope.OBJECT, "Addons want to come before one another in a circle."
    ),
    ADDON_REQUIREMENT_MISSING := Code(
        "AddonRequirementMissing", Severity.ERROR, Scope.OBJECT, "An addon needs another one that is not there."
    ),
    BUILD_INVALID := Code(
        "BuildInvalid", Severity.ERROR, Scope.OBJECT, "A Build cannot be used; what it is for stays as it is."
    ),
    BUILD_UNUSED := Code(
        "BuildUnused",
        Severity.WARNING,
        Scope.OBJECT,
        "A Build is called like no component, or like none that runs in its environment.",
    ),
    COMPONENT_DEFINITION_INVALID := Code(
        "ComponentDefinitionInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A component definition has a field that cannot be used; nothing that needs it is rendered.",
    ),
    COMPONENT_INVALID := Code(
        "ComponentInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A component has a field that cannot be used; what it has stays as it is.",
    ),
    COMPONENT_NAME_CONFLICT := Code(
        "ComponentNameConflict", Severity.ERROR, Scope.OBJECT, "Two components of a namespace have one name."
    ),
    COMPONENT_TYPE_INVALID := Code(
        "ComponentTypeInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A component type has a field that cannot be used; its components stay as they are.",
    ),
    COMPONENT_TYPE_NOT_FOUND := Code(
        "ComponentTypeNotFound", Severity.ERROR, Scope.OBJECT, "A component is of a kind that no component type makes."
    ),
    COMPONENT_TYPE_NOT_READY := Code(
        "ComponentTypeNotReady", Severity.ERROR, Scope.OBJECT, "A component is of a type that is not ready."
    ),
    CONDITION_TYPE := Code(
        "ConditionType", Severity.ERROR, Scope.PACKAGE, "A condition gives something else than true or false."
    ),
    CONFIG_EXPRESSION_NOT_ALLOWED := Code(
        "ConfigExpressionNotAllowed",
        Severity.ERROR,
        Scope.OBJECT,
        "The configuration of an addon has an expression, which only templates may have.",
    ),
    DEFINITION_NOT_FOUND := Code(
        "DefinitionNotFound",
        Severity.ERROR,
        Scope.OBJECT,
        "A type or a component names a component definition that is not there.",
    ),
    DEFINITION_VERSION_MISMATCH := Code(
        "DefinitionVersionMismatch",
        Severity.ERROR,
        Scope.OBJECT,
        "A type wants another version of its definition than the one that is there.",
    ),
    ENV_BINDING_DUPLICATE := Code(
        "EnvBindingDuplicate",
        Severity.ERROR,
        Scope.OBJECT,
        "Two EnvBindings are for one component in one environment; the last good output of both stays.",
    ),
    ENV_BINDING_INVALID := Code(
        "EnvBindingInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "An EnvBinding has a field that cannot be used; its package stays as it is.",
    ),
    ENV_BINDING_OWNER_GUESSED := Code(
        "EnvBindingOwnerGuessed",
        Severity.WARNING,
        Scope.OBJECT,
        "An EnvBinding does not name its component, which is guessed from its own name.",
    ),
    ENV_BINDING_OWNER_UNRESOLVED := Code(
        "EnvBindingOwnerUnresolved",
        Severity.ERROR,
        Scope.OBJECT,
        "An EnvBinding names no component that is there, or it cannot be told which.",
    ),
    ENVIRONMENT_INVALID := Code(
        "EnvironmentInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "An Environment has a field that cannot be used; what is in it stays as it is.",
    ),
    ENVIRONMENT_NOT_FOUND := Code(
        "EnvironmentNotFound",
        Severity.ERROR,
        Scope.OBJECT,
        "An EnvBinding is for an environment that is not there, or that has no cluster.",
    ),
    FEATURE_NOT_SUPPORTED := Code(
        "FeatureNotSupported",
        Severity.ERROR,
        Scope.OBJECT,
        "A field is for something that the specification only thinks of.",
    ),
    FOR_EACH_TYPE := Code(
        "ForEachType", Severity.ERROR, Scope.PACKAGE, "What is to be walked through is neither a list nor a map."
    ),
    GENERATED_KIND_COLLISION := Code(
        "GeneratedKindCollision", Severity.ERROR, Scope.OBJECT, "Two component types make one kind."
    ),
    GENERATED_KIND_RESERVED := Code(
        "GeneratedKindReserved",
        Severity.ERROR,
        Scope.OBJECT,
        "A component type would make a kind that has a meaning already.",
    ),
    INSTANCE_ID_DUPLICATE := Code(
        "InstanceIdDuplicate", Severity.ERROR, Scope.OBJECT, "Two instances of an addon have one id."
    ),
    INSTANCE_ID_IMPLICIT := Code(
        "InstanceIdImplicit",
        Severity.INFO,
        Scope.OBJECT,
        "An instance of an addon has no id; names would change if a second one were added.",
    ),
    INSTANCE_ID_MISSING := Code(
        "InstanceIdMissing",
        Severity.ERROR,
        Scope.OBJECT,
        "An addon is there more than once, and an instance has no id.",
    ),
    LAST_WRITER_WINS := Code(
        "LastWriterWins",
        Severity.WARNING,
        Scope.PACKAGE,
        "Two addons set one place to different values; the one that works last wins.",
    ),
    LIST_KEY_DUPLICATE := Code(
        "ListKeyDuplicate",
        Severity.ERROR,
        Scope.PACKAGE,
        "After all addons a list has two entries of one name, or of one path.",
    ),
    LOAD_ORDER_UNSATISFIABLE := Code(
        "LoadOrderUnsatisfiable",
        Severity.ERROR,
        Scope.OBJECT,
        "A platform addon is to come after one of developers, or one of developers before it.",
    ),
    LOOP_VAR_RESERVED := Code(
        "LoopVarReserved",
        Severity.ERROR,
        Scope.OBJECT,
        "A loop's variable has the name of a variable that is there anyway.",
    ),
    MERGE_TYPE_MISMATCH := Code(
        "MergeTypeMismatch", Severity.ERROR, Scope.PACKAGE, "A map is to be merged with something that is none."
    ),
    MERGED_WRITE := Code("MergedWrite", Severity.INFO, Scope.PACKAGE, "What two addons add at one place was merged."),
    NAMESPACE_NOT_ALLOWED := Code(
        "NamespaceNotAllowed",
        Severity.ERROR,
        Scope.PACKAGE,
        "A component renders an object for another namespace than its own.",
    ),
    NOT_BAKEABLE := Code(
        "NotBakeable",
        Severity.ERROR,
        Scope.OBJECT,
        "An addon cannot be written into a definition: where it works is known only when it is rendered.",
    ),
    NOT_OVERRIDABLE := Code(
        "NotOverridable",
        Severity.ERROR,
        Scope.OBJECT,
        "An environment overrides a field that is the same in all environments.",
    ),
    OBJECT_DUPLICATE := Code("ObjectDuplicate", Severity.ERROR, Scope.PACKAGE, "A component renders one object twice."),
    OVERRIDE_KEY_AMBIGUOUS := Code(
        "OverrideKeyAmbiguous", Severity.ERROR, Scope.OBJECT, "An addon is overridden by its name and by its key."
    ),
    OVERRIDE_TARGET_UNKNOWN := Code(
        "OverrideTargetUnknown",
        Severity.ERROR,
        Scope.OBJECT,
        "An environment overrides an addon, or an instance of one, that is not there.",
    ),
    OVERWRITTEN_WRITE := Code(
        "OverwrittenWrite",
        Severity.WARNING,
        Scope.PACKAGE,
        "An addon replaces or removes what another one wrote, without a declared order between them.",
    ),
    PATCH_OP_UNSUPPORTED := Code(
        "PatchOpUnsupported",
        Severity.ERROR,
        Scope.OBJECT,
        "A patch has an operation that is none of add, replace, remove and merge.",
    ),
    PATCH_PATH_NOT_FOUND := Code(
        "PatchPathNotFound", Severity.ERROR, Scope.PACKAGE, "A patch leads to a place that is not there."
    ),
    PATCH_TARGET_NOT_FOUND := Code(
        "PatchTargetNotFound", Severity.WARNING, Scope.PACKAGE, "A patch chooses no object."
    ),
    PATCH_TOO_LARGE := Code(
        "PatchTooLarge",
        Severity.ERROR,
        Scope.PACKAGE,
        "What patches write or look at is more, or deeper, than is allowed.",
    ),
    PATH_AMBIGUOUS_ADD := Code(
        "PathAmbiguousAdd",
        Severity.ERROR,
        Scope.OBJECT,
        "A patch adds at a place that a filter or a wildcard chooses, which may be many.",
    ),
    PATH_AMBIGUOUS_CONTAINER := Code(
        "PathAmbiguousContainer",
        Severity.ERROR,
        Scope.PACKAGE,
        "A patch goes through a place that is missing, and may be a list or a map.",
    ),
    PATH_DASH_ONLY_ADD := Code(
        "PathDashOnlyAdd",
        Severity.ERROR,
        Scope.OBJECT,
        "A path ends in -, the place behind a list's last item, where nothing but add is possible.",
    ),
    PATH_FILTER_UNSUPPORTED := Code(
        "PathFilterUnsupported",
        Severity.ERROR,
        Scope.OBJECT,
        "A filter in a path compares otherwise than a field with a value.",
    ),
    PATH_INDEX_OUT_OF_RANGE := Code(
        "PathIndexOutOfRange", Severity.ERROR, Scope.PACKAGE, "A patch leads to an item that its list does not have."
    ),
    PATH_NOT_ARRAY := Code(
        "PathNotArray", Severity.ERROR, Scope.PACKAGE, "A patch takes something for a list that is none."
    ),
    PATH_NOT_OBJECT := Code(
        "PathNotObject", Severity.ERROR, Scope.PACKAGE, "A patch takes something for a map that is none."
    ),
    PATH_ROOT := Code("PathRoot", Severity.ERROR, Scope.OBJECT, "A patch is of a whole object."),
    PATH_SYNTAX := Code("PathSyntax", Severity.ERROR, Scope.OBJECT, "A path of a patch cannot be read."),
    PATH_TOO_MANY := Code(
        "PathTooMany", Severity.ERROR, Scope.PACKAGE, "A patch leads to more places than are allowed."
    ),
    RENDERED_OBJECT_INVALID := Code(
        "RenderedObjectInvalid",
        Severity.ERROR,
        Scope.PACKAGE,
        "A component renders something that is no object: without apiVersion, kind or a usable name.",
    ),
    REQUIRED_WITH_DEFAULT := Code(
        "RequiredWithDefault",
        Severity.INFO,
        Scope.OBJECT,
        "A field is required and has a default, so that it can never be missing.",
    ),
    RUNTIME_COMPOSITION_DISABLED := Code(
        "RuntimeCompositionDisabled",
        Severity.ERROR,
        Scope.OBJECT,
        "A Component without a type is there, and the setting rules.runtime_composition is off.",
    ),
    SCHEMA_FIELD_COLLISION := Code(
        "SchemaFieldCollision",
        Severity.ERROR,
        Scope.OBJECT,
        "A field is declared among the parameters and among the envOverrides.",
    ),
    SCHEMA_TOO_LARGE := Code(
        "SchemaTooLarge",
        Severity.ERROR,
        Scope.OBJECT,
        "A schema has more fields, more levels or longer expressions than are read.",
    ),
    SCHEMA_VALIDATION := Code(
        "SchemaValidation",
        Severity.ERROR,
        Scope.OBJECT,
        "A value does not satisfy the schema that was declared for it.",
    ),
    SHORTHAND_DEFAULT_INVALID := Code(
        "ShorthandDefaultInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A default does not satisfy the schema of its own field.",
    ),
    SHORTHAND_EMPTY := Code("ShorthandEmpty", Severity.ERROR, Scope.OBJECT, "A field of a schema has no type."),
    SHORTHAND_FIELD_TYPE := Code(
        "ShorthandFieldType",
        Severity.ERROR,
        Scope.OBJECT,
        "A field of a schema is neither an expression nor a mapping, or has a name that fields cannot have.",
    ),
    SHORTHAND_MARKER_DUPLICATE := Code(
        "ShorthandMarkerDuplicate", Severity.ERROR, Scope.OBJECT, "A field of a schema has one marker twice."
    ),
    SHORTHAND_MARKER_NO_VALUE := Code(
        "ShorthandMarkerNoValue", Severity.ERROR, Scope.OBJECT, "A marker of a schema has no value."
    ),
    SHORTHAND_MARKER_TYPE := Code(
        "ShorthandMarkerType",
        Severity.ERROR,
        Scope.OBJECT,
        "A marker of a schema does not go with the type of its field.",
    ),
    SHORTHAND_NAME_HYPHEN := Code(
        "ShorthandNameHyphen",
        Severity.INFO,
        Scope.OBJECT,
        "A field of a schema has a name with -, which expressions can only reach in brackets.",
    ),
    SHORTHAND_SYNTAX := Code(
        "ShorthandSyntax",
        Severity.ERROR,
        Scope.OBJECT,
        "A field of a schema cannot be read: a quote or a bracket is not closed.",
    ),
    SHORTHAND_TYPE := Code(
        "ShorthandType", Severity.ERROR, Scope.OBJECT, "A field of a schema has a type that there is not."
    ),
    SHORTHAND_TYPE_CYCLE := Code(
        "ShorthandTypeCycle", Severity.ERROR, Scope.OBJECT, "Types of a schema are made of one another in a circle."
    ),
    SHORTHAND_UNKNOWN_MARKER := Code(
        "ShorthandUnknownMarker", Severity.ERROR, Scope.OBJECT, "A field of a schema has a marker that there is not."
    ),
    SHORTHAND_UNKNOWN_TYPE := Code(
        "ShorthandUnknownType",
        Severity.ERROR,
        Scope.OBJECT,
        "A field of a schema is of a type that the schema does not name.",
    ),
    SHORTHAND_VALUE := Code(
        "ShorthandValue", Severity.ERROR, Scope.OBJECT, "The value of a marker is not one of the field's type."
    ),
    TARGET_EMPTY := Code(
        "TargetEmpty", Severity.ERROR, Scope.OBJECT, "A target has no field at all, and would choose everything."
    ),
    TARGET_INVALID := Code("TargetInvalid", Severity.ERROR, Scope.OBJECT, "A target has a field that cannot be used."),
    TEMPLATE_DUPLICATE_KEY := Code(
        "TemplateDuplicateKey", Severity.ERROR, Scope.PACKAGE, "Two keys of a map render to one."
    ),
    TEMPLATE_KEY_TYPE := Code(
        "TemplateKeyType", Severity.ERROR, Scope.PACKAGE, "A key of a map renders to something else than text."
    ),
    TEMPLATE_NESTED := Code(
        "TemplateNested", Severity.ERROR, Scope.OBJECT, "An expression begins inside of another one."
    ),
    TEMPLATE_NULL_IN_TEXT := Code(
        "TemplateNullInText", Severity.ERROR, Scope.PACKAGE, "An expression inside of text gives null."
    ),
    TEMPLATE_OMIT_IN_TEXT := Code(
        "TemplateOmitInText", Severity.ERROR, Scope.PACKAGE, "An expression inside of text gives omit()."
    ),
    TEMPLATE_UNTERMINATED := Code("TemplateUnterminated", Severity.ERROR, Scope.OBJECT, "An expression has no end."),
    UNKNOWN_FIELD := Code(
        "UnknownField", Severity.ERROR, Scope.OBJECT, "A field is not declared for the object that has it."
    ),
    VALIDATION_RULE_FAILED := Code(
        "ValidationRuleFailed", Severity.ERROR, Scope.PACKAGE, "A rule of a type or an addon does not hold."
    ),
)

CEL_CODES = by_name(EXPRESSION_CODES)
"""Those of expressions, by the code that an ExpressionError carries."""
