"""Drafts without the names of targets that a person may not read."""

from __future__ import annotations

from reconciler.lazy_dataclasses import replace
from reconciler.output.review.models import DraftEntry, DraftPackageEntry
from reconciler.review.restricted_index import TargetNameSet, hide_names, hide_names_in_reasons


def hide_names_in_draft(draft: DraftEntry, hidden: TargetNameSet) -> DraftEntry:
    """Return a draft whose reasons and causes contain no names of hidden targets."""
    rejection = draft.rejection
    return draft.model_copy(
        update={
            "rejection": rejection and rejection.model_copy(update={"reason": hide_names(rejection.reason, hidden)}),
            "refusals": hide_names_in_reasons(draft.refusals, hidden),
            "warnings": hide_names_in_reasons(draft.warnings, hidden),
            "packages": tuple(_hide_in_package(package, hidden) for package in draft.packages),
        }
    )


def _hide_in_package(package: DraftPackageEntry, hidden: TargetNameSet) -> DraftPackageEntry:
    content = package.content
    causes = tuple(hide_names(cause, hidden) for cause in content.causes) if content else ()
    return package.model_copy(
        update={
            "conditions": tuple(
                replace(condition, message=hide_names(condition.message, hidden)) for condition in package.conditions
            ),
            "unmet_gates": hide_names_in_reasons(package.unmet_gates, hidden),
            "errors": hide_names_in_reasons(package.errors, hidden),
            "content": content and content.model_copy(update={"causes": causes}),
        }
    )
