"""Decisions about all packages of one target, with templates merged across the packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.catalog.files import FileTree, TreeId
from reconciler.catalog.trace import DependencyReader
from reconciler.controllers.kafka_templates.pairing import TemplatePairs
from reconciler.controllers.results import Variant
from reconciler.krm.findings import select_errors
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.decide.package_decision import DecisionInput, decide_package
from reconciler.planning.decide.target_inputs import PlanningContext, TargetClaims
from reconciler.planning.model.outcomes import Blocked, Draft, PackageOutcome, PackageRender, Unchanged
from reconciler.planning.model.sources import PackageTooLargeError, RenderInputs
from reconciler.planning.model.state import ObservedPackage, PackageRecord
from reconciler.planning.observe.target_snapshot import TargetSnapshot
from reconciler.planning.render.templates import (
    ALL_TEMPLATES_DEPENDENCY,
    TEMPLATE_DEPENDENCY,
    PackageTrees,
    build_template_fingerprinter,
    fingerprint_packages,
    has_template_dependencies,
    has_template_rules_dependency,
    is_template_dependency,
    remove_template_dependencies,
)

# Recorded outcomes of packages without a drafted version. If the draft branch contains such a package, that content is
# not counted.
_OUTCOMES_WITHOUT_DRAFT = ("published", "published with edits", "adopted", "declined")


@dataclass(frozen=True)
class PackageDecisions:
    """The outcomes of the packages of a target, by package, and the renders that were needed."""

    outcomes: Mapping[str, PackageOutcome]
    renders: Mapping[str, PackageRender]


def decide_packages(
    inputs: Iterable[DecisionInput],
    claims: TargetClaims,
    snapshot: TargetSnapshot,
    context: PlanningContext,
    known_outcomes: Mapping[str, PackageOutcome],
) -> PackageDecisions:
    """Return the outcome of each requested package of a target.

    A first round decides about each package alone. A second round decides again about the packages with parents or
    children of templates, when the content of all packages is known.

    Args:
        inputs: Inputs of the packages to decide about.
        claims: Requested packages of the target.
        snapshot: The target.
        context: Settings and functions of planning.
        known_outcomes: Outcomes of the other packages of the target.
    """
    packages = {entry.variant.target.package: entry for entry in inputs}
    run = _TemplateRound(packages, claims, snapshot, context, dict(known_outcomes))
    outcomes = run.decide_all()
    return PackageDecisions(outcomes, {**run.renders, **run.merged_renders})


@dataclass(frozen=True)
class _TemplatePackages:
    """The packages of a target with parents or children, and their pairs."""

    contents: PackageTrees
    pairs: TemplatePairs


@dataclass
class _TemplateRound:
    """State of the decisions about one target.

    Attributes:
        first_outcomes: Outcomes of the first round.
        renders: Packages without merged templates.
        merged_renders: Packages with merged templates.
        interrupted: Errors of renders that were interrupted.
    """

    inputs: Mapping[str, DecisionInput]
    claims: TargetClaims
    snapshot: TargetSnapshot
    context: PlanningContext
    first_outcomes: dict[str, PackageOutcome] = field(default_factory=dict)
    renders: dict[str, PackageRender] = field(default_factory=dict)
    merged_renders: dict[str, PackageRender] = field(default_factory=dict)
    interrupted: dict[str, InterruptedFunctionError] = field(default_factory=dict)

    def decide_all(self) -> dict[str, PackageOutcome]:
        self.first_outcomes.update((name, self._decide_alone(entry)) for name, entry in self.inputs.items())
        members = self._find_template_packages()
        return {**self.first_outcomes, **self._decide_together(members)} if members else self.first_outcomes

    def _decide_alone(self, inputs: DecisionInput) -> PackageOutcome:
        """Decide about a package as if its parents and children had not changed."""
        record = inputs.record and replace(inputs.record, trace=remove_template_dependencies(inputs.record.trace))
        return decide_package(
            replace(inputs, record=record), self.context.dependency_reader, self.context.contents, self._render
        )

    def _render(self, variant: Variant, inputs: RenderInputs) -> PackageRender:
        package = variant.target.package
        if package in self.interrupted:
            raise self.interrupted[package]
        if package not in self.renders:
            try:
                self.renders[package] = self.context.render(variant, inputs)
            except InterruptedFunctionError as error:
                self.interrupted[package] = error
                raise
        return self.renders[package]

    def _find_template_packages(self) -> list[str]:
        """Return the packages with parents or children: requested packages, and packages on the branches."""
        rendered = {name for name, render in self.renders.items() if render.has_template_roles}
        requested = (name for name, entry in self.inputs.items() if entry.variant.cluster)
        recorded = {name for name, record in self.snapshot.state.packages.items() if self._has_roles(name, record)}
        return sorted((rendered & {*requested}) | recorded)

    def _has_roles(self, package: str, record: PackageRecord) -> bool:
        """Return whether a package on the branches has parents or children."""
        if has_template_dependencies(record.trace):
            return True
        if has_template_rules_dependency(record.trace) or not record.is_owned or not self.snapshot.target.is_deployment:
            return False
        # The last render did not search for parents and children, or is unknown. Therefore, the tree is searched.
        tree = self._get_current_tree(package)
        return tree is not None and self.context.template_merger.has_template_roles_in_tree(
            tree, lambda: self._read_package(package, tree)
        )

    def _decide_together(self, members: Sequence[str]) -> dict[str, PackageOutcome]:
        """Decide about packages with merged templates.

        A withheld package is rendered, but not drafted. Other packages must not inherit from it. Therefore, the loop
        decides about them again without its new content. A withheld package stays withheld until the loop ends.
        Otherwise, two packages that prevent each other's draft would alternate forever.
        """
        published = self._collect_packages(members, self._get_published_tree).pairs
        withheld: dict[str, PackageOutcome] = {}
        while True:
            packages = self._render_changed(members, withheld)
            names = (name for name in members if name in self.inputs and name not in withheld)
            outcomes = {name: self._decide_merged(self.inputs[name], packages, published) for name in names}
            new = {
                name: outcome for name, outcome in outcomes.items() if self._is_usable(name) and _is_withheld(outcome)
            }
            if not new:
                return self._record_withheld(members, {**outcomes, **withheld})
            withheld |= new

    def _render_changed(self, members: Sequence[str], withheld: Mapping[str, PackageOutcome]) -> _TemplatePackages:
        """Return the packages after this pass. Packages whose template dependencies changed are rendered first."""
        tried: set[str] = set()
        while True:
            packages = self._collect_packages(members, partial(self._get_next_tree, withheld=withheld))
            changed = [
                name
                for name in members
                if name not in self.renders and name not in tried and self._has_changed(name, packages)
            ]
            if not changed:
                return packages
            for name in changed:
                self._render_again(self.inputs[name])
            # A package that cannot be rendered keeps its content.
            tried.update(changed)

    def _has_changed(self, package: str, packages: _TemplatePackages) -> bool:
        record = self._get_record(package)
        if package not in self.inputs or record is None:
            return False
        reader = self._build_reader(packages)
        return any(
            reader.read_fingerprint(name) != fingerprint
            for name, fingerprint in record.trace.items()
            if is_template_dependency(name)
        )

    def _render_again(self, inputs: DecisionInput) -> None:
        record = inputs.record and replace(inputs.record, trace={})
        decide_package(
            replace(inputs, record=record), self.context.dependency_reader, self.context.contents, self._render
        )

    def _decide_merged(
        self, inputs: DecisionInput, packages: _TemplatePackages, published: TemplatePairs
    ) -> PackageOutcome:
        """Decide about a package with merged templates."""
        render = partial(self._render_merged, pairs=packages.pairs, published=published)
        return decide_package(inputs, self._build_reader(packages), self.context.contents, render)

    def _build_reader(self, packages: _TemplatePackages) -> DependencyReader:
        reader = self.context.dependency_reader
        fingerprinter = build_template_fingerprinter(packages.pairs, packages.contents)
        return replace(reader, extra={**reader.extra, TEMPLATE_DEPENDENCY: fingerprinter})

    def _render_merged(
        self, variant: Variant, inputs: RenderInputs, pairs: TemplatePairs, published: TemplatePairs
    ) -> PackageRender:
        rendered = self._render(variant, inputs)
        if select_errors(rendered.findings) or not variant.cluster:
            return rendered
        package = variant.target.package
        self.merged_renders[package] = self.context.template_merger.merge_templates(
            variant, rendered, inputs, pairs, published
        )
        return self.merged_renders[package]

    def _record_withheld(
        self, members: Sequence[str], outcomes: Mapping[str, PackageOutcome]
    ) -> dict[str, PackageOutcome]:
        """Return the outcomes. Withheld packages depend on all template packages of the target.

        The content of a withheld package is known only in this pass, and any other package can be the reason.
        """
        trees = {name: self._get_tree_in_next_pass(name, outcomes.get(name)) for name in members}
        dependency = {
            ALL_TEMPLATES_DEPENDENCY: fingerprint_packages({name: tree for name, tree in trees.items() if tree})
        }
        return {
            name: _replace_template_dependencies(outcome, dependency) if _is_withheld(outcome) else outcome
            for name, outcome in outcomes.items()
        }

    def _get_tree_in_next_pass(self, package: str, outcome: PackageOutcome | None) -> TreeId | None:
        """Return the tree of a package that the next pass will see if nothing else changes."""
        match outcome:
            case Draft(rendered=rendered, record=record):
                return rendered.files.id if has_template_dependencies(record.trace) else None
            case Unchanged(record=record, reason=reason) if (
                not has_template_dependencies(record.trace) and reason != "declined"
            ):
                return None
            case None:
                return self._get_current_tree(package)
            case _:
                return _get_unchanged_tree(self.snapshot.observe_package(package), outcome)

    def _collect_packages(self, members: Sequence[str], find_tree: Callable[[str], TreeId | None]) -> _TemplatePackages:
        contents: PackageTrees = {name: tree for name in members if (tree := find_tree(name))}
        rendered = {render.files.id: render.files for render in self.renders.values()}

        def read(name: str) -> FileTree:
            tree = contents[name]
            return rendered[tree] if tree in rendered else self._read_package(name, tree)

        return _TemplatePackages(contents, self.context.template_merger.find_pairs(contents, read))

    def _read_package(self, package: str, tree: TreeId) -> FileTree:
        """Return the files of a tree. If local changes made it too large to read, return the published version."""
        record = self._get_record(package)
        published = record.published_version.rendered if record and record.published_version else None
        for candidate in (tree, published):
            try:
                if candidate is not None:
                    return self.context.contents.read_tree(candidate)
            except PackageTooLargeError:
                # The package is blocked for this reason, with a finding.
                continue
        return FileTree()

    def _get_next_tree(self, package: str, withheld: Mapping[str, PackageOutcome]) -> TreeId | None:
        """Return the tree of a package after this pass: its new render, else the draft, else the published tree."""
        if package in withheld:
            return _get_unchanged_tree(self.snapshot.observe_package(package), withheld[package])
        return self.renders[package].files.id if self._is_usable(package) else self._get_current_tree(package)

    def _is_usable(self, package: str) -> bool:
        return package in self.renders and not select_errors(self.renders[package].findings)

    def _get_current_tree(self, package: str) -> TreeId | None:
        """Return the tree of a package without a render: the draft, else the published tree."""
        observed = self.snapshot.observe_package(package)
        if package in self.first_outcomes:
            return _get_unchanged_tree(observed, self.first_outcomes[package])
        record = self.snapshot.state.packages[package]
        kind = record.outcome.get("before", record.outcome).get("kind")
        is_drafted = kind not in _OUTCOMES_WITHOUT_DRAFT and self._may_be_requested(package, record)
        return (observed.drafted if is_drafted else None) or observed.published

    def _may_be_requested(self, package: str, record: PackageRecord) -> bool:
        """Return whether a package may be requested. Otherwise, this pass can delete its draft."""
        if self.claims.is_requested(package) or not self.claims.is_complete:
            return True
        return self.claims.is_unresolved(record.owner) or bool(self.claims.explain_similar_object(record.owner))

    def _get_published_tree(self, package: str) -> TreeId | None:
        return self.snapshot.observe_package(package).published

    def _get_record(self, package: str) -> PackageRecord | None:
        return self.snapshot.state.packages.get(package)


def _get_unchanged_tree(observed: ObservedPackage, outcome: PackageOutcome) -> TreeId | None:
    """Return the tree of a package that does not change in this pass: the draft, else the published tree."""
    if isinstance(outcome, Unchanged) and outcome.reason in _OUTCOMES_WITHOUT_DRAFT:
        return observed.published
    return observed.drafted or observed.published


def _is_withheld(outcome: PackageOutcome) -> bool:
    """Return whether the rendered package is not drafted, because it is blocked or was declined."""
    return isinstance(outcome, Blocked) or (isinstance(outcome, Unchanged) and outcome.reason == "declined")


def _replace_template_dependencies(outcome: PackageOutcome, dependency: Mapping[str, str]) -> PackageOutcome:
    """Return a withheld outcome with a dependency instead of its template dependencies."""
    match outcome:
        case Blocked():
            return replace(outcome, trace={**remove_template_dependencies(outcome.trace), **dependency})
        case _:
            record = outcome.record
            return replace(
                outcome, record=replace(record, trace={**remove_template_dependencies(record.trace), **dependency})
            )
