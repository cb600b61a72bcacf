"""The kinds of results that `-o json` prints, with their JSON Schemas, and the result of `reconciler schema`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Literal

from reconciler.krm.findings import Finding
from reconciler.output.adoption.result import AdoptionResult
from reconciler.output.envelope import API_VERSION, CommandResult, OutputModel, build_result_schema, create_cli_metadata
from reconciler.output.explain.result import ExplanationResult
from reconciler.output.explain.verification import VerificationResult
from reconciler.output.explain.why import ValueChangeResult
from reconciler.output.findings.code_scanning import ValidationResult
from reconciler.output.findings.entries import FindingEntry, build_finding_entries
from reconciler.output.fleet.results import ChangeListResult
from reconciler.output.impact.models import ImpactResult
from reconciler.output.package_report import PackageResult
from reconciler.output.plan.models import PlanResult
from reconciler.output.plan.pass_results import RenderResult, SyncResult
from reconciler.output.remote_checks import RemoteCheckResult
from reconciler.output.report.result import ReportResult
from reconciler.output.review.action_results import ReviewResult
from reconciler.output.review.models import DraftListResult
from reconciler.output.scaffold.result import ScaffoldResult
from reconciler.output.schemas.json_schemas import Kind
from reconciler.output.status.result import StatusResult


class KindEntry(OutputModel):
    """A kind of config objects, or of results."""

    kind: str
    api_versions: tuple[str, ...]
    description: str


class KindListSummary(OutputModel):
    """The number of kinds."""

    kinds: int


class KindListResult(CommandResult):
    """The result of `reconciler schema` without a kind."""

    kind: Literal["KindList"] = "KindList"
    items: tuple[KindEntry, ...]
    findings: tuple[FindingEntry, ...]
    summary: KindListSummary


RESULTS: tuple[type[CommandResult], ...] = (
    PlanResult, ImpactResult, SyncResult, RenderResult, ValidationResult, StatusResult, DraftListResult,
    ChangeListResult, ReviewResult, ExplanationResult, ValueChangeResult, VerificationResult, ReportResult,
    RemoteCheckResult, PackageResult, KindListResult, ScaffoldResult, AdoptionResult,
)  # fmt: skip
"""The results of all commands."""


@cache
def list_result_kinds() -> tuple[Kind, ...]:
    """Return the kinds of all results."""
    return tuple(map(_build_kind, RESULTS))


def _build_kind(model: type[CommandResult]) -> Kind:
    schema = build_result_schema(model)
    description = f"{schema['description'].partition('. ')[0].rstrip('.')}."
    return Kind(model.model_fields["kind"].default, (API_VERSION,), description, schema)


def build_kind_list_result(kinds: Iterable[Kind], findings: Iterable[Finding] = ()) -> KindListResult:
    """Return the list of kinds."""
    entries = tuple(
        KindEntry(kind=kind.name, api_versions=kind.api_versions, description=kind.description) for kind in kinds
    )
    return KindListResult(
        metadata=create_cli_metadata(),
        items=entries,
        findings=build_finding_entries(findings),
        summary=KindListSummary(kinds=len(entries)),
    )
