"""The codes that every layer may use: files that cannot be read, credentials in URLs, and internal errors."""

from __future__ import annotations

from dataclasses import replace

from reconciler.krm.findings import Code, Finding, Scope, Severity, Where
from reconciler.krm.isolation import InternalFailure

CODES = (
    CREDENTIAL_IN_URL := Code(
        "CredentialInUrl",
        Severity.ERROR,
        Scope.OBJECT,
        "The URL of a repository contains a user name, a password or a token. The message does not repeat it.",
    ),
    INTERNAL_ERROR := Code(
        "InternalError",
        Severity.ERROR,
        Scope.OBJECT,
        "An unexpected exception ended the work on one file, object, package, destination or remote. What is published"
        " and drafted of it stays as it is; everything else is reconciled. The log has the traceback.",
    ),
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


def internal_error(failure: InternalFailure, where: Where | None = None) -> Finding:
    """Return the finding of a scope that ended with an unexpected exception."""
    return replace(INTERNAL_ERROR.finding(failure.message, where or Where()), failure=failure)
