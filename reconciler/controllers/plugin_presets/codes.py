"""Finding codes of PluginPresets and of the Plugins that they request."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, FindingScope, error, info, warning

PACKAGE = FindingScope.PACKAGE


class PluginCodes(CodeTable):
    """Finding codes of PluginPresets and of the Plugins that they request."""

    ALIAS_CONFLICT = error(
        "The name and the path of an option differ, or a reference to a secret contains two different keys."
    )
    CATALOG_IGNORED = warning("Overrides in a Catalog have no effect. Use a PluginOverride with mode Default.")
    CONFLICTING_OPTION_PATHS = error(
        "The path of an option leads through another option whose value is not a map or list.", PACKAGE
    )
    CONFLICTING_OVERRIDES = warning(
        "Two overrides on one layer set an option to different values. The value of the later override is used.",
        PACKAGE,
    )
    DEFINITION_INVALID = error("A plugin definition is invalid. Its Plugins stay unchanged.")
    DEFINITION_REF_MISSING = error("A preset or a Plugin has no reference to a plugin definition.")
    DUPLICATE_CLUSTER_OVERRIDE = error("A preset has several clusterOptionOverrides entries for one cluster.", PACKAGE)
    DUPLICATE_OPTION = error(
        "A list contains an option twice. If both values are equal, the severity is warning.", PACKAGE
    )
    DUPLICATE_OPTION_DEFINITION = error("A plugin definition declares an option twice.")
    DUPLICATE_OVERRIDE = error(
        "A PluginOverride contains an option twice. If both values are equal, the severity is warning."
    )
    EXPRESSION_DISABLED = error("An option has an expression, and the settings disable expressions.", PACKAGE)
    EXPRESSION_FAILED = error("The expression of an option fails on a cluster.", PACKAGE)
    EXPRESSION_RETYPED = warning(
        "An expression inserts a string that YAML reads as a different type, e.g. as a number.", PACKAGE
    )
    EXPRESSION_UNUSABLE = warning(
        "The expression of an option fails on every cluster. At the moment, no Plugin uses the option."
    )
    HELM_RELEASE_INVALID = error("Flux would reject the HelmRelease of a Plugin. The Plugin is not written.", PACKAGE)
    IMMUTABLE_FIELD_CHANGED = error(
        "The config changes the cluster or the release namespace of a published Plugin, which is not possible.", PACKAGE
    )
    MULTIPLE_VALUE_SOURCES = error("An option has more than one of value, valueFrom and expression.", PACKAGE)
    NAME_COLLISION = info(
        "Two presets request Plugins with the same name. Only one of these Plugins is created.", PACKAGE
    )
    NO_VALUE_SOURCE = error("An option has no value, valueFrom or expression.", PACKAGE)
    OPTION_NAME_INVALID = error("The name of an option is not a valid path in Helm values.", PACKAGE)
    OPTION_TYPE_MISMATCH = error(
        "An option's value does not have the type that the plugin definition declares.", PACKAGE
    )
    OVERLAPPING_OPTION_PATHS = warning(
        "An option replaces a part of another option's value, although the layer of the other option is higher.",
        PACKAGE,
    )
    OVERRIDE_CLUSTER_NOT_SELECTED = warning("A preset overrides options for a cluster that the preset does not select.")
    OVERRIDE_CLUSTER_UNKNOWN = warning(
        "An override names a cluster that does not exist in the organization of the override."
    )
    OVERRIDE_DEFINITION_UNKNOWN = warning("A PluginOverride names a plugin definition that does not exist.")
    OWNER_LABEL_MISSING = warning("A preset has no label that names its owner team.")
    OWNER_LABEL_NOT_EXISTING_TEAM = warning(
        "The owner label of a preset names a Team that does not exist in the organization."
    )
    OWNER_LABEL_SET_TO_NON_SUPPORT_GROUP_TEAM = warning(
        "The owner label of a preset names a Team that is not a support group."
    )
    PLUGIN_DEFINITION_NOT_FOUND = error("A plugin definition does not exist. Its Plugins stay unchanged.")
    PLUGIN_INVALID = error("A Plugin is invalid.")
    PLUGIN_NAME_INVALID = error(
        "The name of a preset or Plugin is invalid as a label value or as a folder name.", PACKAGE
    )
    PLUGIN_NOT_MANAGED = info(
        "A preset requests a Plugin that already exists, but does not have the label of the preset. The "
        "existing Plugin is not changed.",
        PACKAGE,
    )
    PLUGIN_OVERRIDES_INVALID = error(
        "The pluginOverrides of an Organization or a Cluster are invalid. The Plugins of this object stay unchanged."
    )
    PLUGIN_OVERRIDE_INVALID = error(
        "A PluginOverride is invalid. Plugins that may get values from this PluginOverride stay unchanged."
    )
    PLUGIN_PRESET_INVALID = error("A PluginPreset is invalid. Its Plugins stay unchanged.")
    PLUGIN_SUSPENDED = info("A Plugin is suspended. It is neither changed nor deleted.", PACKAGE)
    REGEX_MISMATCH = warning(
        "An option's value does not match the regular expression of the plugin definition.", PACKAGE
    )
    RELEASE_NAME_CONFLICT = error("Two Plugins have the same Helm release on a cluster.", PACKAGE)
    RELEASE_NAME_INVALID = error("The release name of a Plugin is not valid in Helm.", PACKAGE)
    REQUIRED_OPTION_MISSING = error("An option that the plugin definition requires has no value.", PACKAGE)
    RESERVED_OPTION = warning(
        "The config sets an option that is reserved for the reconciler. The value is ignored.", PACKAGE
    )
    SECRET_LITERAL = error(
        "A secret option has a literal value. If a higher layer replaces the value, the severity is warning.",
        PACKAGE,
    )
    SECRET_REF_INCOMPLETE = error("A reference to a secret has no name or no key.", PACKAGE)
    SELECTOR_EMPTY = error("The cluster selector of a preset is empty. No Plugin is created or deleted.")
    UNDECLARED_OPTION = warning(
        "The config sets an option that the plugin definition does not declare. If the option is set for all "
        "Plugins, the severity is info.",
        PACKAGE,
    )
    UNSUPPORTED_VALUE_SOURCE = error(
        "An option takes its value from another Plugin or preset, which is not supported.", PACKAGE
    )
    WAIT_FOR_CYCLE = error("Plugins on a cluster wait for each other.", PACKAGE)
    WAIT_FOR_DUPLICATE = error("A waitFor list names a Plugin or preset twice.")
    WAIT_FOR_INVALID = error("A waitFor entry must name either a Plugin or a preset.")
    WAIT_FOR_NEVER_MET = warning("A Plugin waits for a Plugin that does not exist on the same cluster.", PACKAGE)
