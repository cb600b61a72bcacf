"""The codes of plugin presets: what can be wrong with them, and with what they make (greenhouse 10, design 10.24)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    ALIAS_CONFLICT := Code(
        "AliasConflict",
        Severity.ERROR,
        Scope.OBJECT,
        "An option is given by name and by path, or a secret in both spellings, and they do not agree.",
    ),
    CATALOG_IGNORED := Code(
        "CatalogIgnored",
        Severity.WARNING,
        Scope.OBJECT,
        "A Catalog changes plugin definitions, which has no effect here; a PluginOverride with mode Default has.",
    ),
    CONFLICTING_OPTION_PATHS := Code(
        "ConflictingOptionPaths",
        Severity.ERROR,
        Scope.PACKAGE,
        "An option has a value that cannot hold another option, which lies below it.",
    ),
    CONFLICTING_OVERRIDES := Code(
        "ConflictingOverrides",
        Severity.WARNING,
        Scope.PACKAGE,
        "Two overrides of one layer give an option different values; the one that is applied last wins.",
    ),
    DEFINITION_INVALID := Code(
        "DefinitionInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A plugin definition cannot be used; the Plugins that are made with it stay as they are.",
    ),
    DEFINITION_REF_MISSING := Code(
        "DefinitionRefMissing",
        Severity.ERROR,
        Scope.OBJECT,
        "A preset or a Plugin does not say which plugin definition it is of.",
    ),
    DUPLICATE_CLUSTER_OVERRIDE := Code(
        "DuplicateClusterOverride",
        Severity.ERROR,
        Scope.PACKAGE,
        "A preset has more than one entry of clusterOptionOverrides for a cluster.",
    ),
    DUPLICATE_OPTION := Code(
        "DuplicateOption",
        Severity.ERROR,
        Scope.PACKAGE,
        "A list gives one option twice; a warning where both say the same.",
    ),
    DUPLICATE_OPTION_DEFINITION := Code(
        "DuplicateOptionDefinition",
        Severity.ERROR,
        Scope.OBJECT,
        "A plugin definition declares one option twice.",
    ),
    DUPLICATE_OVERRIDE := Code(
        "DuplicateOverride",
        Severity.ERROR,
        Scope.OBJECT,
        "A PluginOverride gives one option twice; a warning where both say the same.",
    ),
    EXPRESSION_DISABLED := Code(
        "ExpressionDisabled",
        Severity.ERROR,
        Scope.PACKAGE,
        "An option is given by an expression, and expressions are switched off.",
    ),
    EXPRESSION_FAILED := Code(
        "ExpressionFailed", Severity.ERROR, Scope.PACKAGE, "The expression of an option has no value on a cluster."
    ),
    EXPRESSION_RETYPED := Code(
        "ExpressionRetyped",
        Severity.WARNING,
        Scope.PACKAGE,
        "A text that an expression puts in reads as something else than a text.",
    ),
    EXPRESSION_UNUSABLE := Code(
        "ExpressionUnusable",
        Severity.WARNING,
        Scope.OBJECT,
        "The expression of an option can have no value on any cluster; no Plugin needs it now.",
    ),
    HELM_RELEASE_INVALID := Code(
        "HelmReleaseInvalid",
        Severity.ERROR,
        Scope.PACKAGE,
        "The HelmRelease of a Plugin would be one that Flux refuses; its Plugin is not written.",
    ),
    IMMUTABLE_FIELD_CHANGED := Code(
        "ImmutableFieldChanged",
        Severity.ERROR,
        Scope.PACKAGE,
        "A Plugin that is published would move to another cluster, or its release to another namespace.",
    ),
    MULTIPLE_VALUE_SOURCES := Code(
        "MultipleValueSources",
        Severity.ERROR,
        Scope.PACKAGE,
        "An option has more than one of value, valueFrom and expression.",
    ),
    NAME_COLLISION := Code(
        "NameCollision",
        Severity.INFO,
        Scope.PACKAGE,
        "Two presets make Plugins of one name; one of them has it, and the other is skipped.",
    ),
    NO_VALUE_SOURCE := Code(
        "NoValueSource", Severity.ERROR, Scope.PACKAGE, "An option has none of value, valueFrom and expression."
    ),
    OPTION_NAME_INVALID := Code(
        "OptionNameInvalid",
        Severity.ERROR,
        Scope.PACKAGE,
        "The name of an option does not lead to a place in Helm values.",
    ),
    OPTION_TYPE_MISMATCH := Code(
        "OptionTypeMismatch",
        Severity.ERROR,
        Scope.PACKAGE,
        "An option has a value of another type than its plugin definition wants.",
    ),
    OVERLAPPING_OPTION_PATHS := Code(
        "OverlappingOptionPaths",
        Severity.WARNING,
        Scope.PACKAGE,
        "An option lies below one of a higher layer, and wins over it.",
    ),
    OVERRIDE_CLUSTER_NOT_SELECTED := Code(
        "OverrideClusterNotSelected",
        Severity.WARNING,
        Scope.OBJECT,
        "A preset overrides options for a cluster that it does not select.",
    ),
    OVERRIDE_CLUSTER_UNKNOWN := Code(
        "OverrideClusterUnknown",
        Severity.WARNING,
        Scope.OBJECT,
        "An override names a cluster that its organization does not have.",
    ),
    OVERRIDE_DEFINITION_UNKNOWN := Code(
        "OverrideDefinitionUnknown",
        Severity.WARNING,
        Scope.OBJECT,
        "A PluginOverride names a plugin definition that does not exist.",
    ),
    OWNER_LABEL_MISSING := Code(
        "OwnerLabelMissing", Severity.WARNING, Scope.OBJECT, "A preset does not say which team owns it."
    ),
    OWNER_LABEL_NOT_EXISTING_TEAM := Code(
        "OwnerLabelNotExistingTeam",
        Severity.WARNING,
        Scope.OBJECT,
        "A preset says that a team owns it which its organization does not have.",
    ),
    OWNER_LABEL_NOT_SUPPORT_GROUP := Code(
        "OwnerLabelSetToNonSupportGroupTeam",
        Severity.WARNING,
        Scope.OBJECT,
        "A preset says that a team owns it which is no support group.",
    ),
    PLUGIN_DEFINITION_NOT_FOUND := Code(
        "PluginDefinitionNotFound",
        Severity.ERROR,
        Scope.OBJECT,
        "A plugin definition does not exist; the Plugins that are made with it stay as they are.",
    ),
    PLUGIN_INVALID := Code("PluginInvalid", Severity.ERROR, Scope.OBJECT, "A Plugin cannot be read."),
    PLUGIN_NAME_INVALID := Code(
        "PluginNameInvalid",
        Severity.ERROR,
        Scope.PACKAGE,
        "A preset or Plugin has a name that cannot be a label's value or a folder's on a branch.",
    ),
    PLUGIN_NOT_MANAGED := Code(
        "PluginNotManaged",
        Severity.INFO,
        Scope.PACKAGE,
        "A Plugin of this name is there which does not carry the label of the preset, and is left alone.",
    ),
    PLUGIN_OVERRIDE_INVALID := Code(
        "PluginOverrideInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A PluginOverride cannot be read; Plugins that it may apply to stay as they are.",
    ),
    PLUGIN_OVERRIDES_INVALID := Code(
        "PluginOverridesInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "The pluginOverrides of an Organization or a Cluster cannot be read; its Plugins stay as they are.",
    ),
    PLUGIN_PRESET_INVALID := Code(
        "PluginPresetInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A PluginPreset cannot be read; the Plugins that it made stay as they are.",
    ),
    PLUGIN_SUSPENDED := Code(
        "PluginSuspended",
        Severity.INFO,
        Scope.PACKAGE,
        "A Plugin says that it is suspended, and is neither changed nor removed.",
    ),
    REGEX_MISMATCH := Code(
        "RegexMismatch",
        Severity.WARNING,
        Scope.PACKAGE,
        "The value of an option does not match the regular expression of its plugin definition.",
    ),
    RELEASE_NAME_CONFLICT := Code(
        "ReleaseNameConflict",
        Severity.ERROR,
        Scope.PACKAGE,
        "Two Plugins would be one Helm release on a cluster.",
    ),
    RELEASE_NAME_INVALID := Code(
        "ReleaseNameInvalid", Severity.ERROR, Scope.PACKAGE, "The name of a release is none that Helm takes."
    ),
    REQUIRED_OPTION_MISSING := Code(
        "RequiredOptionMissing",
        Severity.ERROR,
        Scope.PACKAGE,
        "Nothing gives an option that its plugin definition requires.",
    ),
    RESERVED_OPTION := Code(
        "ReservedOption",
        Severity.WARNING,
        Scope.PACKAGE,
        "An option is given that the reconciler sets itself; what is given does not count.",
    ),
    SECRET_LITERAL := Code(
        "SecretLiteral",
        Severity.ERROR,
        Scope.PACKAGE,
        "A secret option is given as it is, and not by reference; its Plugin is not written. A warning where it loses.",
    ),
    SECRET_PATH_SHADOWED := Code(
        "SecretPathShadowed",
        Severity.WARNING,
        Scope.PACKAGE,
        "An option lies at, above or below one from a secret, or in one list with it, and wins over its value.",
    ),
    SECRET_REF_INCOMPLETE := Code(
        "SecretRefIncomplete",
        Severity.ERROR,
        Scope.PACKAGE,
        "A reference to a secret lacks its name or its key.",
    ),
    SELECTOR_EMPTY := Code(
        "SelectorEmpty",
        Severity.ERROR,
        Scope.OBJECT,
        "A preset does not say for which clusters it is; nothing is made, and nothing taken away.",
    ),
    UNDECLARED_OPTION := Code(
        "UndeclaredOption",
        Severity.WARNING,
        Scope.PACKAGE,
        "An option is given that the plugin definition does not declare; an info where it is given to all plugins.",
    ),
    UNSUPPORTED_VALUE_SOURCE := Code(
        "UnsupportedValueSource",
        Severity.ERROR,
        Scope.PACKAGE,
        "An option takes its value from another Plugin or preset, which is not built.",
    ),
    WAIT_FOR_CYCLE := Code(
        "WaitForCycle", Severity.ERROR, Scope.PACKAGE, "Plugins on one cluster wait for each other in a circle."
    ),
    WAIT_FOR_DUPLICATE := Code(
        "WaitForDuplicate", Severity.ERROR, Scope.OBJECT, "A waitFor names one Plugin or preset twice."
    ),
    WAIT_FOR_INVALID := Code(
        "WaitForInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "An entry of waitFor names neither or both of a Plugin and a preset.",
    ),
    WAIT_FOR_NEVER_MET := Code(
        "WaitForNeverMet",
        Severity.WARNING,
        Scope.PACKAGE,
        "A Plugin waits for one that its cluster does not have.",
    ),
)
