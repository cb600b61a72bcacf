"""The result of `reconciler explain`: the inputs of a package, and the steps that set each value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from reconciler.api.base import omit_empty
from reconciler.controllers.results import UpstreamPackage
from reconciler.output.entries import OwnerEntry, build_owner_entry
from reconciler.output.envelope import CommandResult, OutputModel, create_cli_metadata
from reconciler.output.explain.model import ExplainedValue, PackageExplanation
from reconciler.output.findings.entries import FindingEntry, build_finding_entries
from reconciler.output.status.package_status import build_injected_data, build_inputs_data
from reconciler.output.text import shorten_id
from reconciler.planning.attribution.re_render import ReRenderedPackage


class OptionLayerEntry(OutputModel):
    """One layer of the options of a Plugin."""

    id: str
    source: str
    is_effective: bool = Field(description="Whether the layer sets one of the values in `items`.")


class ExplainedPackage(OutputModel):
    """The explained package, and the inputs of its render. The inputs have the same format as in status files."""

    package: str = Field(description="The package, as `target/package`.")
    commit: str = Field(default="", description="The commit of the target branch that the option --at selects.")
    is_rendered: bool = Field(description="Whether the render succeeded.")
    is_reproduced: bool = Field(description="Whether the re-render has the same files as the package at `commit`.")
    blocked_reason: str = ""
    requested_resource: str = ""
    owner: OwnerEntry | None = None
    owner_parent: str = Field(default="", description="The object that created the owner, as `Kind/namespace/name`.")
    source: str = Field(default="", description="The source of the package, as one phrase.")
    upstream: Mapping[str, Any] = Field(
        default={},
        description="The upstream package. For a package with several sources, the field `sources` contains the"
        " sources.",
    )
    inputs: Mapping[str, Any] = Field(default={}, description="The config, and the objects that the render used.")
    injected: tuple[Mapping[str, str], ...] = Field(default=(), description="The completed config injections.")
    applied_overrides: tuple[Mapping[str, str], ...] = Field(
        default=(),
        description=(
            "The addons or plugin overrides that changed the package, in the order in which they were applied."
        ),
    )
    option_layers: tuple[OptionLayerEntry, ...] = Field(
        default=(), description="All layers of the options of a Plugin, from the lowest to the highest precedence."
    )
    templates: tuple[Mapping[str, Any], ...] = Field(
        default=(), description="The child resources that inherit templates, in the format of status files."
    )


class ExplanationResult(CommandResult):
    """The result of `reconciler explain`. `items` contains the values, and `summary` the package."""

    kind: Literal["Explanation"] = "Explanation"
    items: tuple[ExplainedValue, ...]
    findings: tuple[FindingEntry, ...]
    summary: ExplainedPackage


def build_explanation_result(explanation: PackageExplanation) -> ExplanationResult:
    """Return the result for an explanation."""
    package, effective_layers = explanation.package, explanation.effective_layers
    owner, variant, rendered = package.owner, package.variant, package.rendered
    provenance = variant.provenance if variant else None
    inputs = build_inputs_data(variant, rendered, package.trace, package.config) if variant and rendered else {}
    return ExplanationResult(
        metadata=create_cli_metadata(package.config),
        items=explanation.values,
        findings=build_finding_entries(package.findings),
        summary=ExplainedPackage(
            package=package.target,
            commit=package.commit,
            is_rendered=rendered is not None,
            is_reproduced=package.is_reproduced,
            blocked_reason=package.blocked_reason,
            requested_resource=explanation.requested_resource,
            owner=build_owner_entry(owner) if owner else None,
            owner_parent=owner.parent.reference if owner and owner.parent else "",
            source=_format_source(package) if variant else "",
            upstream=variant.source.as_data() if variant else {},
            inputs=omit_empty(inputs),
            injected=tuple(build_injected_data(rendered)) if rendered else (),
            applied_overrides=tuple(provenance.list_applied_overrides()) if provenance else (),
            option_layers=tuple(
                OptionLayerEntry(id=layer.id, source=layer.source, is_effective=layer.id in effective_layers)
                for layer in explanation.option_layers
            ),
            templates=explanation.template_children,
        ),
    )


def _format_source(package: ReRenderedPackage) -> str:
    upstream = package.variant.source if package.variant else None
    if not isinstance(upstream, UpstreamPackage):
        return f"generated by {package.owner.key if package.owner else 'its owner'}"
    if not upstream.sources:
        return f"upstream {_format_upstream(upstream)}"
    sources = (f"{source.name} ({_format_upstream(source.upstream)})" for source in upstream.sources)
    return f"sources {', '.join(sources)}"


def _format_upstream(upstream: UpstreamPackage) -> str:
    kind = "digest" if upstream.artifacts else "commit"
    return f"{upstream.title} {upstream.ref} at {kind} {shorten_id(upstream.commit)}"
