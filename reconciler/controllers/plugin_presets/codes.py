"""Finding codes of PluginPresets and of the Plugins that they request."""

from __future__ import annotations

from reconciler.krm.findings import FindingCode, FindingScope, Severity

CODES = (
    ALIAS_CONFLICT := FindingCode(
        "AliasConflict",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The name and the path of an option differ, or a reference to a secret contains two different keys.",
    ),
    CATALOG_IGNORED := FindingCode(
        "CatalogIgnored",
        Severity.WARNING,
        FindingScope.OBJECT,
        "Overrides in a Catalog have no effect. Use a PluginOverride with mode Default.",
    ),
    CONFLICTING_OPTION_PATHS := FindingCode(
        "ConflictingOptionPaths",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The path of an option continues below another option whose value is not the required map or list.",
    ),
    CONFLICTING_OVERRIDES := FindingCode(
        "ConflictingOverrides",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "Two overrides on one layer set an option to different values. The value of the later override is used.",
    ),
    DEFINITION_INVALID := FindingCode(
        "DefinitionInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A plugin definition is invalid. Its Plugins stay unchanged.",
    ),
    DEFINITION_REF_MISSING := FindingCode(
        "DefinitionRefMissing",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A preset or a Plugin has no reference to a plugin definition.",
    ),
    DUPLICATE_CLUSTER_OVERRIDE := FindingCode(
        "DuplicateClusterOverride",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A preset has several clusterOptionOverrides entries for one cluster.",
    ),
    DUPLICATE_OPTION := FindingCode(
        "DuplicateOption",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A list contains an option twice. If both values are equal, the severity is warning.",
    ),
    DUPLICATE_OPTION_DEFINITION := FindingCode(
        "DuplicateOptionDefinition",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A plugin definition declares an option twice.",
    ),
    DUPLICATE_OVERRIDE := FindingCode(
        "DuplicateOverride",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A PluginOverride contains an option twice. If both values are equal, the severity is warning.",
    ),
    EXPRESSION_DISABLED := FindingCode(
        "ExpressionDisabled",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "An option has an expression, and the settings disable expressions.",
    ),
    EXPRESSION_FAILED := FindingCode(
        "ExpressionFailed",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The expression of an option fails on a cluster.",
    ),
    EXPRESSION_RETYPED := FindingCode(
        "ExpressionRetyped",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "YAML reads a string that an expression inserts as another type, e.g. as a number.",
    ),
    EXPRESSION_UNUSABLE := FindingCode(
        "ExpressionUnusable",
        Severity.WARNING,
        FindingScope.OBJECT,
        "The expression of an option fails on every cluster. No Plugin uses the expression now.",
    ),
    HELM_RELEASE_INVALID := FindingCode(
        "HelmReleaseInvalid",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "Flux would reject the HelmRelease of a Plugin. The Plugin is not written.",
    ),
    IMMUTABLE_FIELD_CHANGED := FindingCode(
        "ImmutableFieldChanged",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The config changes the cluster or the release namespace of a published Plugin, which is not possible.",
    ),
    MULTIPLE_VALUE_SOURCES := FindingCode(
        "MultipleValueSources",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "An option has more than one of value, valueFrom and expression.",
    ),
    NAME_COLLISION := FindingCode(
        "NameCollision",
        Severity.INFO,
        FindingScope.PACKAGE,
        "Two presets request Plugins with the same name. One of the Plugins is skipped.",
    ),
    NO_VALUE_SOURCE := FindingCode(
        "NoValueSource", Severity.ERROR, FindingScope.PACKAGE, "An option has no value, valueFrom or expression."
    ),
    OPTION_NAME_INVALID := FindingCode(
        "OptionNameInvalid",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The name of an option is not a valid path in Helm values.",
    ),
    OPTION_TYPE_MISMATCH := FindingCode(
        "OptionTypeMismatch",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "An option's value does not have the type that the plugin definition declares.",
    ),
    OVERLAPPING_OPTION_PATHS := FindingCode(
        "OverlappingOptionPaths",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "An option replaces a part of another option's value, although the layer of the other option is higher.",
    ),
    OVERRIDE_CLUSTER_NOT_SELECTED := FindingCode(
        "OverrideClusterNotSelected",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A preset overrides options for a cluster that it does not select.",
    ),
    OVERRIDE_CLUSTER_UNKNOWN := FindingCode(
        "OverrideClusterUnknown",
        Severity.WARNING,
        FindingScope.OBJECT,
        "An override names a cluster that does not exist in the organization of the override.",
    ),
    OVERRIDE_DEFINITION_UNKNOWN := FindingCode(
        "OverrideDefinitionUnknown",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A PluginOverride names a plugin definition that does not exist.",
    ),
    OWNER_LABEL_MISSING := FindingCode(
        "OwnerLabelMissing", Severity.WARNING, FindingScope.OBJECT, "A preset has no label that names its owner team."
    ),
    OWNER_LABEL_NOT_EXISTING_TEAM := FindingCode(
        "OwnerLabelNotExistingTeam",
        Severity.WARNING,
        FindingScope.OBJECT,
        "The owner label of a preset names a Team that does not exist in the organization.",
    ),
    OWNER_LABEL_NOT_SUPPORT_GROUP := FindingCode(
        "OwnerLabelSetToNonSupportGroupTeam",
        Severity.WARNING,
        FindingScope.OBJECT,
        "The owner label of a preset names a Team that is not a support group.",
    ),
    PLUGIN_DEFINITION_NOT_FOUND := FindingCode(
        "PluginDefinitionNotFound",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A plugin definition does not exist. Its Plugins stay unchanged.",
    ),
    PLUGIN_INVALID := FindingCode("PluginInvalid", Severity.ERROR, FindingScope.OBJECT, "A Plugin is invalid."),
    PLUGIN_NAME_INVALID := FindingCode(
        "PluginNameInvalid",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The name of a preset or Plugin is invalid as a label value or as a folder name.",
    ),
    PLUGIN_NOT_MANAGED := FindingCode(
        "PluginNotManaged",
        Severity.INFO,
        FindingScope.PACKAGE,
        "A preset requests a Plugin that exists without the preset's label. The existing Plugin is not changed.",
    ),
    PLUGIN_OVERRIDE_INVALID := FindingCode(
        "PluginOverrideInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A PluginOverride is invalid. Plugins that it may apply to stay unchanged.",
    ),
    PLUGIN_OVERRIDES_INVALID := FindingCode(
        "PluginOverridesInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The pluginOverrides of an Organization or a Cluster are invalid. Its Plugins stay unchanged.",
    ),
    PLUGIN_PRESET_INVALID := FindingCode(
        "PluginPresetInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A PluginPreset is invalid. Its Plugins stay unchanged.",
    ),
    PLUGIN_SUSPENDED := FindingCode(
        "PluginSuspended",
        Severity.INFO,
        FindingScope.PACKAGE,
        "A Plugin is suspended. It is neither changed nor deleted.",
    ),
    REGEX_MISMATCH := FindingCode(
        "RegexMismatch",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "An option's value does not match the regular expression of the plugin definition.",
    ),
    RELEASE_NAME_CONFLICT := FindingCode(
        "ReleaseNameConflict",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "Two Plugins have the same Helm release on a cluster.",
    ),
    RELEASE_NAME_INVALID := FindingCode(
        "ReleaseNameInvalid", Severity.ERROR, FindingScope.PACKAGE, "The release name of a Plugin is not valid in Helm."
    ),
    REQUIRED_OPTION_MISSING := FindingCode(
        "RequiredOptionMissing",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "An option that the plugin definition requires has no value.",
    ),
    RESERVED_OPTION := FindingCode(
        "ReservedOption",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "The config sets an option that is reserved for the reconciler. The value is ignored.",
    ),
    SECRET_LITERAL := FindingCode(
        "SecretLiteral",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A secret option has a literal value, and its Plugin is not written. If a higher layer replaces the value, the "
        "severity is warning.",
    ),
    SECRET_PATH_SHADOWED := FindingCode(
        "SecretPathShadowed",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "An option replaces the value of a secret option, because their paths overlap or lead into the same list.",
    ),
    SECRET_REF_INCOMPLETE := FindingCode(
        "SecretRefIncomplete",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A reference to a secret has no name or no key.",
    ),
    SELECTOR_EMPTY := FindingCode(
        "SelectorEmpty",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The cluster selector of a preset is empty. No Plugin is created or deleted.",
    ),
    UNDECLARED_OPTION := FindingCode(
        "UndeclaredOption",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "The config sets an option that the plugin definition does not declare. If the option is set for all Plugins, "
        "the finding is an info.",
    ),
    UNSUPPORTED_VALUE_SOURCE := FindingCode(
        "UnsupportedValueSource",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "An option takes its value from another Plugin or preset, which is not supported.",
    ),
    WAIT_FOR_CYCLE := FindingCode(
        "WaitForCycle", Severity.ERROR, FindingScope.PACKAGE, "Plugins on a cluster wait for each other."
    ),
    WAIT_FOR_DUPLICATE := FindingCode(
        "WaitForDuplicate", Severity.ERROR, FindingScope.OBJECT, "A waitFor list names a Plugin or preset twice."
    ),
    WAIT_FOR_INVALID := FindingCode(
        "WaitForInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A waitFor entry must name either a Plugin or a preset.",
    ),
    WAIT_FOR_NEVER_MET := FindingCode(
        "WaitForNeverMet",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A Plugin waits for a Plugin that its cluster does not have.",
    ),
)
