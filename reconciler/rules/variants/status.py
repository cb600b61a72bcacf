"""The conditions of variants and sets in each situation, in the words of porch 10 and 11.7."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.krm.conditions import Condition, Status
from reconciler.krm.messages import join_messages
from reconciler.rules.variants.sets import SetFailure
from reconciler.rules.variants.upstream import Unresolved

Conditions = tuple[Condition, ...]
_VALID = "all validation checks passed"
_INVALID_VARIANT = "invalid packagevariant object"


def deprecated(warnings: Iterable[str]) -> Conditions:
    """An object that was read although some of it should be written otherwise (porch 2.4); none without warnings."""
    message = "; ".join(warnings)
    return (Condition("Deprecated", "True", "ReadAsAlias", message),) if message else ()


def variant_invalid(errors: Iterable[str]) -> Conditions:
    """A PackageVariant that breaks rules of its kind."""
    return _pair(("True", "ValidationError", "; ".join(errors)), ("False", "Error", _INVALID_VARIANT))


def variant_unresolved(failure: Unresolved) -> Conditions:
    """A PackageVariant whose upstream does not exist or is not published."""
    return _pair(("True", failure.reason, failure.message), ("False", "Error", failure.message))


def variant_stalled(reason: str, message: str) -> Conditions:
    """A PackageVariant that its place or its upstream leads nowhere: DownstreamExists, UpstreamCycle and the like."""
    return _pair(("True", reason, message), ("False", reason, message))


def variant_failed(message: str, reason: str = "Error") -> Conditions:
    """A PackageVariant with sound inputs whose package cannot be made, for a reason of its own where there is one."""
    return variant_waiting(reason, message)


def variant_waiting(reason: str, message: str) -> Conditions:
    """A PackageVariant that waits for people: DownstreamProposed, DeletionPending."""
    return _pair(("False", "Valid", _VALID), ("False", reason, message))


def variant_ready() -> Conditions:
    """A PackageVariant whose downstream is as it should be."""
    message = "successfully ensured downstream package variant"
    return _pair(("False", "Valid", _VALID), ("True", "NoErrors", message))


def downstream_exists(repo: str, package: str) -> Conditions:
    """An unowned published package in the way of adoptNone."""
    message = f"package {repo}/{package} already exists and is not owned; use adoptExisting"
    return variant_stalled("DownstreamExists", message)


def set_invalid(errors: Iterable[str]) -> Conditions:
    """A PackageVariantSet that breaks rules of its kind."""
    return set_failed(SetFailure("ValidationError", "; ".join(errors)))


def set_failed(failure: SetFailure) -> Conditions:
    """A PackageVariantSet that is left as it was, or whose deletions are held."""
    return variant_stalled(failure.reason, failure.message)


def set_reconciled(not_ready: Iterable[str], skipped: Iterable[str] = ()) -> Conditions:
    """A PackageVariantSet whose variants are as it wants them.

    `not_ready` names the variants that are not Ready, `skipped` are the messages of targets that were skipped.
    """
    failures = join_messages(skipped)
    done: _Value = ("True", "Reconciled", "package variants successfully reconciled")
    ready: _Value = ("False", "TargetsSkipped", failures) if failures else done
    return (*_pair(("False", "Valid", _VALID), ready), variants_ready(not_ready))


def variants_ready(not_ready: Iterable[str]) -> Condition:
    """Whether all variants of a set are Ready: what the seed means by a ready set (porch 11.7)."""
    names = sorted(not_ready)
    if not names:
        return Condition("VariantsReady", "True", "AllReady", "all package variants are ready")
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return Condition("VariantsReady", "False", "NotReady", f"{len(names)} package variants are not ready: {shown}")


_Value = tuple[Status, str, str]


def _pair(stalled: _Value, ready: _Value) -> Conditions:
    return Condition("Ready", *ready), Condition("Stalled", *stalled)
