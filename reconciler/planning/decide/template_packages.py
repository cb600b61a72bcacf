"""Decisions about all packages of a target, if Kafka templates of one package affect other packages.

A template is a field of a parent resource. Child resources inherit its values, even if they are in other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from reconciler.catalog.files import FileTree, TreeId
from reconciler.catalog.trace import DependencyReader
from reconciler.controllers.kafka_templates.pairing import TemplatePairs
from reconciler.controllers.results import Variant
from reconciler.krm.findings import select_errors
from reconciler.lazy_dataclasses import dataclass, field, replace
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

# A package with one of these recorded outcomes has no drafted version. Therefore, its tree on the draft branch is
# ignored.
_OUTCOMES_WITHOUT_DRAFT = ("published", "published with edits", "adopted", "declined")


@dataclass(frozen=True)
class PackageDecisions:
    """The outcomes of the packages of a target, and the packages that were rendered. The keys are package paths."""

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

    The function first decides about each package separately. Then it decides again about all packages that contain
    parents or children of Kafka templates, because a merge of templates requires the new content of all these packages.
    Templates are merged only between packages of one tenant, so that a package of another tenant has no effect.

    Args:
        inputs: The inputs of the packages to decide about.
        known_outcomes: The outcomes of the other packages of the target.
    """
    by_tenant: dict[str, dict[str, DecisionInput]] = {}
    for entry in inputs:
        by_tenant.setdefault(entry.variant.tenant, {})[entry.variant.target.package] = entry
    tenants = {name: tenant for tenant, packages in by_tenant.items() for name in packages}
    tenants |= {name: outcome.variant.tenant for name, outcome in known_outcomes.items()}
    outcomes, renders = dict(known_outcomes), dict[str, PackageRender]()
    for tenant, packages in sorted(by_tenant.items()):
        run = _TemplateDecisions(tenant, tenants, packages, claims, snapshot, context, dict(known_outcomes))
        decided = run.decide_all()
        outcomes |= {name: decided[name] for name in packages}
        renders |= {**run.renders, **run.merged_renders}
    return PackageDecisions(outcomes, renders)


@dataclass(frozen=True)
class _TemplatePackages:
    """The trees of all packages that contain parents or children of Kafka templates.

    `pairs` contains each parent together with each of its children.
    """

    contents: PackageTrees
    pairs: TemplatePairs


@dataclass
class _TemplateDecisions:
    """Decides about the packages of one tenant on one target. The keys of all mappings are package paths.

    Attributes:
        tenant: The tenant, or "" for the platform team.
        tenants: The tenant of each requested package of the target.
        inputs: The inputs of the packages of the tenant.
        first_outcomes: The outcome of each package if no Kafka template of another package has changed.
        renders: The rendered packages before Kafka templates are merged into them.
        merged_renders: The rendered packages after Kafka templates were merged into them.
        interrupted: For each package whose render was interrupted, the error.
    """

    tenant: str
    tenants: Mapping[str, str]
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
        """Decide about a package, and ignore changes of Kafka templates in other packages."""
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
        rendered = {name for name, render in self.renders.items() if render.has_template_roles}
        requested = (name for name, entry in self.inputs.items() if entry.variant.cluster)
        recorded = {
            name
            for name, record in self.snapshot.state.packages.items()
            if self.tenants.get(name, record.tenant) == self.tenant and self._has_roles(name, record)
        }
        return sorted((rendered & {*requested}) | recorded)

    def _has_roles(self, package: str, record: PackageRecord) -> bool:
        if has_template_dependencies(record.trace):
            return True
        if has_template_rules_dependency(record.trace) or not record.is_owned or not self.snapshot.target.is_deployment:
            return False
        # Search the files of the package for parents and children of templates, because no recorded render has done so.
        tree = self._get_current_tree(package)
        return tree is not None and self.context.template_merger.has_template_roles_in_tree(
            tree, lambda: self._read_package(package, tree)
        )

    def _decide_together(self, members: Sequence[str]) -> dict[str, PackageOutcome]:
        """Decide about the packages `members`, after the Kafka templates of all these packages were merged.

        A rendered package can be blocked or declined, so that it gets no draft. Other packages must then not inherit
        values from its new content. Therefore, the loop decides again, and uses the old content of this package. The
        package gets no draft in any later iteration. Otherwise, two packages that prevent each other's draft would
        alternate forever.
        """
        published = self._collect_packages(members, self._get_published_tree).pairs
        undrafted: dict[str, PackageOutcome] = {}
        while True:
            packages = self._render_changed(members, undrafted)
            names = (name for name in members if name in self.inputs and name not in undrafted)
            outcomes = {name: self._decide_merged(self.inputs[name], packages, published) for name in names}
            new = {
                name: outcome for name, outcome in outcomes.items() if self._is_usable(name) and _is_undrafted(outcome)
            }
            if not new:
                return self._record_undrafted(members, {**outcomes, **undrafted})
            undrafted |= new

    def _render_changed(self, members: Sequence[str], undrafted: Mapping[str, PackageOutcome]) -> _TemplatePackages:
        """Render the packages whose Kafka templates have changed. Return the content of all packages after this pass.

        For a package in `undrafted`, return the content that the package had before this pass.
        """
        tried: set[str] = set()
        while True:
            packages = self._collect_packages(members, partial(self._get_next_tree, undrafted=undrafted))
            changed = [
                name
                for name in members
                if name not in self.renders and name not in tried and self._has_changed(name, packages)
            ]
            if not changed:
                return packages
            for name in changed:
                self._render_again(self.inputs[name])
            # Render each package at most once here. If the render fails, the package keeps its old content.
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

    def _record_undrafted(
        self, members: Sequence[str], outcomes: Mapping[str, PackageOutcome]
    ) -> dict[str, PackageOutcome]:
        """Add a dependency to each blocked or declined package: the content of all packages with Kafka templates.

        Templates in any of these packages can be the reason why the package gets no draft. If one of these packages
        changes, the next pass decides again about the package. Return all outcomes.
        """
        trees = {name: self._get_tree_in_next_pass(name, outcomes.get(name)) for name in members}
        dependency = {
            ALL_TEMPLATES_DEPENDENCY: fingerprint_packages({name: tree for name, tree in trees.items() if tree})
        }
        return {
            name: _replace_template_dependencies(outcome, dependency) if _is_undrafted(outcome) else outcome
            for name, outcome in outcomes.items()
        }

    def _get_tree_in_next_pass(self, package: str, outcome: PackageOutcome | None) -> TreeId | None:
        """Return the tree that the next pass will use for a package if no input changes.

        Return None in two cases: the package has no content, or its outcome is drafted or unchanged and its render
        depends on no template.
        """
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
        """Return the files of a tree. If local changes made the package too large, return its published version."""
        record = self._get_record(package)
        published = record.published_version.rendered if record and record.published_version else None
        for candidate in (tree, published):
            try:
                if candidate is not None:
                    return self.context.contents.read_tree(candidate)
            except PackageTooLargeError:
                # Ignore the error, because another finding reports it and blocks the package.
                continue
        return FileTree()

    def _get_next_tree(self, package: str, undrafted: Mapping[str, PackageOutcome]) -> TreeId | None:
        """Return the tree of a package after this pass. Return None if the package has no tree.

        This is the tree of the new render, or else of the draft, or else of the target branch.
        """
        if package in undrafted:
            return _get_unchanged_tree(self.snapshot.observe_package(package), undrafted[package])
        return self.renders[package].files.id if self._is_usable(package) else self._get_current_tree(package)

    def _is_usable(self, package: str) -> bool:
        return package in self.renders and not select_errors(self.renders[package].findings)

    def _get_current_tree(self, package: str) -> TreeId | None:
        """Return the drafted or published tree of a package that was not rendered. Return None if there is none."""
        observed = self.snapshot.observe_package(package)
        if package in self.first_outcomes:
            return _get_unchanged_tree(observed, self.first_outcomes[package])
        record = self.snapshot.state.packages[package]
        kind = record.outcome.get("before", record.outcome).get("kind")
        is_drafted = kind not in _OUTCOMES_WITHOUT_DRAFT and self.claims.may_be_requested(package, record)
        return (observed.drafted if is_drafted else None) or observed.published

    def _get_published_tree(self, package: str) -> TreeId | None:
        return self.snapshot.observe_package(package).published

    def _get_record(self, package: str) -> PackageRecord | None:
        return self.snapshot.state.packages.get(package)


def _get_unchanged_tree(observed: ObservedPackage, outcome: PackageOutcome) -> TreeId | None:
    """Return the tree of a package that this pass does not change. Return None if the package has no tree.

    Return the published tree if the outcome means that the package has no draft. Otherwise, prefer the drafted tree.
    """
    if isinstance(outcome, Unchanged) and outcome.reason in _OUTCOMES_WITHOUT_DRAFT:
        return observed.published
    return observed.drafted or observed.published


def _is_undrafted(outcome: PackageOutcome) -> bool:
    """Return whether a package is not drafted, because it is blocked or a person declined its content."""
    return isinstance(outcome, Blocked) or (isinstance(outcome, Unchanged) and outcome.reason == "declined")


def _replace_template_dependencies(outcome: PackageOutcome, dependency: Mapping[str, str]) -> PackageOutcome:
    """Replace all dependencies of an outcome on Kafka templates by `dependency`."""
    match outcome:
        case Blocked():
            return replace(outcome, trace={**remove_template_dependencies(outcome.trace), **dependency})
        case _:
            record = outcome.record
            return replace(
                outcome, record=replace(record, trace={**remove_template_dependencies(record.trace), **dependency})
            )
