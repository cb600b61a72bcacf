"""Status conditions of PackageVariants and PackageVariantSets, with the messages of Porch."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.controllers.package_variants.set_expansion import SetFailure
from reconciler.controllers.package_variants.upstream_resolution import UnresolvedUpstream
from reconciler.krm.findings import join_messages
from reconciler.krm.objects import Condition, ConditionStatus

Conditions = tuple[Condition, ...]
_VALID_MESSAGE = "all validation checks passed"
_INVALID_MESSAGE = "invalid packagevariant object"


def build_deprecated_conditions(warnings: Iterable[str]) -> Conditions:
    """Return a condition with the warnings about deprecated fields. Return () if there are no warnings."""
    message = "; ".join(warnings)
    return (Condition("Deprecated", "True", "ReadAsAlias", message),) if message else ()


def build_invalid_conditions(errors: Iterable[str]) -> Conditions:
    """Return the conditions of a PackageVariant whose manifest is invalid."""
    return _build_pair(("True", "ValidationError", "; ".join(errors)), ("False", "Error", _INVALID_MESSAGE))


def build_unresolved_conditions(failure: UnresolvedUpstream) -> Conditions:
    """Return the conditions of a PackageVariant whose upstream does not exist or cannot be used."""
    return _build_pair(("True", failure.reason, failure.message), ("False", "Error", failure.message))


def build_stalled_conditions(reason: str, message: str) -> Conditions:
    """Return conditions with Stalled=True and Ready=False, for example for an upstream cycle."""
    return _build_pair(("True", reason, message), ("False", reason, message))


def build_failed_conditions(message: str, reason: str = "Error") -> Conditions:
    """Return the conditions of a valid PackageVariant whose package cannot be rendered."""
    return build_waiting_conditions(reason, message)


def build_waiting_conditions(reason: str, message: str) -> Conditions:
    """Return the conditions of a PackageVariant that waits for a person, for example to approve a proposed draft."""
    return _build_pair(("False", "Valid", _VALID_MESSAGE), ("False", reason, message))


def build_ready_conditions() -> Conditions:
    """Return the conditions of a PackageVariant whose downstream package is up to date."""
    message = "successfully ensured downstream package variant"
    return _build_pair(("False", "Valid", _VALID_MESSAGE), ("True", "NoErrors", message))


def build_downstream_exists_conditions(repo: str, package: str) -> Conditions:
    """Return the conditions if the policy is adoptNone and the target contains a package without an owner."""
    message = f"package {repo}/{package} already exists and is not owned; use adoptExisting"
    return build_stalled_conditions("DownstreamExists", message)


def build_invalid_set_conditions(errors: Iterable[str]) -> Conditions:
    """Return the conditions of a PackageVariantSet whose manifest is invalid."""
    return build_failed_set_conditions(SetFailure("ValidationError", "; ".join(errors)))


def build_failed_set_conditions(failure: SetFailure) -> Conditions:
    """Return the conditions of a PackageVariantSet that cannot be expanded or whose deletions are blocked."""
    return build_stalled_conditions(failure.reason, failure.message)


def build_reconciled_set_conditions(not_ready: Iterable[str], skipped: Iterable[str] = ()) -> Conditions:
    """Return the conditions of a PackageVariantSet that was expanded.

    Args:
        not_ready: The names of the PackageVariants that are not Ready.
        skipped: The messages of the targets that failed and were skipped.
    """
    failures = join_messages(skipped)
    reconciled: _ConditionFields = ("True", "Reconciled", "package variants successfully reconciled")
    ready: _ConditionFields = ("False", "TargetsSkipped", failures) if failures else reconciled
    return (*_build_pair(("False", "Valid", _VALID_MESSAGE), ready), build_variants_ready_condition(not_ready))


def build_variants_ready_condition(not_ready: Iterable[str]) -> Condition:
    """Return the condition that shows whether all PackageVariants of a set are Ready."""
    names = sorted(not_ready)
    if not names:
        return Condition("VariantsReady", "True", "AllReady", "all package variants are ready")
    examples = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    count = "1 package variant is" if len(names) == 1 else f"{len(names)} package variants are"
    return Condition("VariantsReady", "False", "NotReady", f"{count} not ready: {examples}")


_ConditionFields = tuple[ConditionStatus, str, str]


def _build_pair(stalled: _ConditionFields, ready: _ConditionFields) -> Conditions:
    return Condition("Ready", *ready), Condition("Stalled", *stalled)
