"""Finding codes of the component controller."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, FindingScope, error, info, warning

PACKAGE = FindingScope.PACKAGE


class ComponentCodes(CodeTable):
    """Finding codes of the component controller."""

    ADDON_CONFLICT = error("A component uses two addons, and one of them excludes the other addon.")
    ADDON_EMPTY = warning("An addon neither creates nor patches a resource.")
    ADDON_INCOMPATIBLE = error("The targets of an addon match no resource of the component definition.")
    ADDON_INVALID = error("An addon has an invalid field. Components that use the addon are not rendered.")
    ADDON_KEY_COLLISION = error(
        "The key of a developer addon equals the name of a definition field or the key of another addon."
    )
    ADDON_KEY_INVALID = error("The name of a developer addon cannot be converted to a valid field name.")
    ADDON_NOT_ALLOWED = error(
        "The label `allowedFor` of an addon excludes the role that uses the addon: platform engineer or developer."
    )
    ADDON_NOT_FOUND = error("A component type, component or addon names an addon that does not exist.")
    ADDON_ORDER_CYCLE = error("The declared order of addons contains a cycle.")
    ADDON_REQUIREMENT_MISSING = error("An addon requires an addon that is not in use.")
    BUILD_INVALID = error("A Build is invalid. The packages that can depend on it stay unchanged.")
    BUILD_UNUSED = warning("The name of a Build does not match any component in its environment.")
    COMPONENT_DEFINITION_INVALID = error(
        "A component definition has an invalid field. Components that use the definition are not rendered."
    )
    COMPONENT_INVALID = error("A component has an invalid field. Its packages stay unchanged.")
    COMPONENT_NAME_CONFLICT = error("Two components in one namespace have the same name.")
    COMPONENT_TYPE_INVALID = error(
        "A component type has an invalid field. The packages of its components stay unchanged."
    )
    COMPONENT_TYPE_NOT_FOUND = error("No component type generates the kind of a component.")
    COMPONENT_TYPE_NOT_READY = error("The component type of a component is not ready.")
    CONDITION_TYPE = error("A condition does not return true or false.", PACKAGE)
    CONFIG_EXPRESSION_NOT_ALLOWED = error(
        "A component type sets a value of an addon to an expression. Only templates can contain expressions."
    )
    DEFINITION_NOT_FOUND = error("A component type or component names a component definition that does not exist.")
    DEFINITION_VERSION_MISMATCH = error(
        "A component type requires a version that its component definition does not have."
    )
    ENVIRONMENT_INVALID = error("An Environment has an invalid field. The packages in this environment stay unchanged.")
    ENVIRONMENT_NOT_FOUND = error("An EnvBinding names an environment that does not exist or has no cluster.")
    ENV_BINDING_DUPLICATE = error(
        "Two EnvBindings bind one component to the same environment. The packages of both EnvBindings stay unchanged."
    )
    ENV_BINDING_INVALID = error("An EnvBinding has an invalid field. Its packages stay unchanged.")
    ENV_BINDING_OWNER_GUESSED = warning(
        "An EnvBinding does not name its component. The component is derived from the name of the EnvBinding."
    )
    ENV_BINDING_OWNER_UNRESOLVED = error(
        "An EnvBinding names no existing component, or its component is ambiguous or not usable."
    )
    FOR_EACH_TYPE = error("The value of `forEach` is neither a list nor a map.", PACKAGE)
    GENERATED_KIND_COLLISION = error("Two component types generate the same kind.")
    GENERATED_KIND_RESERVED = error("A component type would generate a reserved kind.")
    INSTANCE_ID_DUPLICATE = error("Two instances of an addon have the same id.")
    INSTANCE_ID_IMPLICIT = info(
        "An addon instance has no `instanceId`. Resource names can change when a second instance is added."
    )
    INSTANCE_ID_MISSING = error("An addon has several instances, but one instance has no `instanceId`.")
    LAST_WRITER_WINS = warning(
        "Two addons set different values at one path. The addon that runs last determines the value.", PACKAGE
    )
    LIST_KEY_DUPLICATE = error(
        "After all addons were applied, a list contains two entries with the same name or mount path.", PACKAGE
    )
    LOAD_ORDER_UNSATISFIABLE = error(
        "The declared order of addons contradicts the rule that platform addons run before developer addons."
    )
    LOOP_VAR_RESERVED = error("A loop variable has the name of a predefined variable.")
    MERGED_WRITE = info("Two addons added values at one path. The values were merged.", PACKAGE)
    MERGE_TYPE_MISMATCH = error("A patch merges two values of different types, such as a map and a string.", PACKAGE)
    NAMESPACE_NOT_ALLOWED = error(
        "A component renders a resource in a namespace that is not the namespace of the component.", PACKAGE
    )
    NOT_BAKEABLE = error(
        "A component type cannot be flattened, e.g. because an addon needs values that are unknown before a render."
    )
    NOT_OVERRIDABLE = error("An environment overrides a field that is declared in `parameters`, not in `envOverrides`.")
    OBJECT_DUPLICATE = error("A component renders the same resource twice.", PACKAGE)
    OVERRIDE_KEY_AMBIGUOUS = error(
        "The key of an addon override refers to several addons, or two keys refer to the same addon."
    )
    OVERRIDE_TARGET_UNKNOWN = error("An environment overrides an addon or addon instance that is not in use.")
    OVERWRITTEN_WRITE = warning(
        "An addon replaces or removes a value that another addon set. The addons do not declare their order.", PACKAGE
    )
    PATCH_OP_UNSUPPORTED = error("The operation of a patch is not add, replace, remove or merge.")
    PATCH_PATH_NOT_FOUND = error("The path of a patch does not exist in the resource.", PACKAGE)
    PATCH_TARGET_NOT_FOUND = warning("The target of a patch matches no resource.", PACKAGE)
    PATCH_TOO_LARGE = error(
        "The patches of a component exceed the limit for written data, read data or nesting depth.", PACKAGE
    )
    PATH_AMBIGUOUS_ADD = error(
        "The path of an add operation ends with a filter or wildcard, which can match several values."
    )
    PATH_AMBIGUOUS_CONTAINER = error(
        "The path of a patch contains a number below a value that does not exist. The number can be a list "
        "index or a map key.",
        PACKAGE,
    )
    PATH_DASH_ONLY_ADD = error(
        "A patch path ends with `-`, the position after the last list item, but the operation is not add."
    )
    PATH_FILTER_UNSUPPORTED = error("A filter in a patch path is not a comparison of one field with one value.")
    PATH_INDEX_OUT_OF_RANGE = error("A list index in a patch path does not exist in the resource.", PACKAGE)
    PATH_NOT_ARRAY = error("A patch path requires a list, but the value in the resource is not a list.", PACKAGE)
    PATH_NOT_OBJECT = error("A patch path requires a map, but the value in the resource is not a map.", PACKAGE)
    PATH_ROOT = error("The path of a patch addresses the whole resource.")
    PATH_SYNTAX = error("The path of a patch has a syntax error.")
    PATH_TOO_MANY = error("The path of a patch matches more values than allowed.", PACKAGE)
    RENDERED_OBJECT_INVALID = error("A component renders data without a valid apiVersion, kind or name.", PACKAGE)
    REQUIRED_WITH_DEFAULT = info("A required field has a default, so `required` has no effect.")
    RUNTIME_COMPOSITION_DISABLED = error(
        "A Component without a component type exists, but the setting `rules.runtime_composition` is false."
    )
    SCHEMA_FIELD_COLLISION = error("A field is declared in both `parameters` and `envOverrides`.")
    SCHEMA_TOO_LARGE = error("A schema exceeds the limit for fields, levels or expression length.")
    SCHEMA_VALIDATION = error("A value does not satisfy its schema.")
    SHORTHAND_DEFAULT_INVALID = error("A default does not satisfy the schema of its field.")
    SHORTHAND_EMPTY = error("A schema field has no type.")
    SHORTHAND_FIELD_TYPE = error("A schema field is neither an expression nor a mapping, or its name is not valid.")
    SHORTHAND_MARKER_DUPLICATE = error("A schema field has a marker twice.")
    SHORTHAND_MARKER_NO_VALUE = error("A schema marker has no value.")
    SHORTHAND_MARKER_TYPE = error("A schema marker does not apply to the type of its field.")
    SHORTHAND_NAME_HYPHEN = info(
        'The name of a schema field contains "-". Expressions can access such a field only in brackets.'
    )
    SHORTHAND_SYNTAX = error("A schema field has an unclosed quote or bracket.")
    SHORTHAND_TYPE = error("A schema field has an invalid type.")
    SHORTHAND_TYPE_CYCLE = error("The types of a schema contain a cycle.")
    SHORTHAND_UNKNOWN_MARKER = error("A schema field has an unknown marker.")
    SHORTHAND_UNKNOWN_TYPE = error("A schema field has a type that the schema does not define.")
    SHORTHAND_VALUE = error("The value of a schema marker does not match the type of the field.")
    TARGET_EMPTY = error("A patch target has no field, so it would match every resource.")
    TARGET_INVALID = error("A patch target has an invalid field.")
    TEMPLATE_DUPLICATE_KEY = error("Two keys of a map render to the same text.", PACKAGE)
    TEMPLATE_KEY_TYPE = error("A key of a map does not render to a string.", PACKAGE)
    TEMPLATE_NESTED = error("An expression contains `${`, which begins another expression.")
    TEMPLATE_NULL_IN_TEXT = error("An expression inside a text returns null, which has no text form.", PACKAGE)
    TEMPLATE_OMIT_IN_TEXT = error(
        "An expression inside a text returns `omit()`, which can only remove a complete value.", PACKAGE
    )
    TEMPLATE_UNTERMINATED = error("An expression has no closing brace.")
    UNKNOWN_FIELD = error("An object has a field that is unknown or not declared in its schema.")
    VALIDATION_RULE_FAILED = error("A validation rule of a component type or addon is not met.", PACKAGE)
