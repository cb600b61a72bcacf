"""The codes of reading YAML: what keeps a file from being read (design 10.24)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    YAML_ALIASES := Code(
        "YamlAliases",
        Severity.ERROR,
        Scope.FILE,
        "An alias has no anchor, contains itself, or unfolds to more than the limit allows.",
    ),
    YAML_DOCUMENTS := Code(
        "YamlDocuments", Severity.ERROR, Scope.FILE, "A file holds more documents than the limit allows."
    ),
    YAML_DUPLICATE_KEY := Code("YamlDuplicateKey", Severity.ERROR, Scope.FILE, "A key stands twice in one mapping."),
    YAML_ENCODING := Code("YamlEncoding", Severity.ERROR, Scope.FILE, "A file is not UTF-8 text."),
    YAML_KEY := Code("YamlKey", Severity.ERROR, Scope.FILE, "A key of a mapping is not a string."),
    YAML_MERGE := Code("YamlMerge", Severity.ERROR, Scope.FILE, "A merge key `<<` names something else than mappings."),
    YAML_SYNTAX := Code(
        "YamlSyntax", Severity.ERROR, Scope.FILE, "A file is not YAML, or not JSON where its name ends so."
    ),
    YAML_TAG := Code(
        "YamlTag", Severity.ERROR, Scope.FILE, "A tag names a type that is not read, or that its value does not have."
    ),
    YAML_TOO_DEEP := Code("YamlTooDeep", Severity.ERROR, Scope.FILE, "A file nests deeper than the limit allows."),
    YAML_TOO_LARGE := Code("YamlTooLarge", Severity.ERROR, Scope.FILE, "A file is larger than the limit allows."),
)
