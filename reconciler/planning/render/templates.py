"""Merging of Kafka templates across the packages of a cluster. This is the last step of a render.

A template is a field of a parent resource. Child resources inherit its values, also in other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from reconciler.catalog.files import FileTree, TreeId
from reconciler.catalog.trace import ABSENT_FINGERPRINT, CatalogView, Trace, format_dependency
from reconciler.controllers.kafka_templates.effective_templates import find_template_changes
from reconciler.controllers.kafka_templates.model import TemplateMergeRule, TemplateOptions
from reconciler.controllers.kafka_templates.package_templates import apply_templates
from reconciler.controllers.kafka_templates.pairing import TemplatePairs, find_pairs, find_roles
from reconciler.controllers.kafka_templates.read_merge_rules import load_built_in_rule
from reconciler.controllers.keyed_cache import KeyedCache
from reconciler.controllers.results import Variant
from reconciler.krm.findings import select_errors, set_package_location, set_source_locations
from reconciler.krm.json_text import compute_digest
from reconciler.krm.merge3.rules import Conflict
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import asdict, dataclass, field, replace
from reconciler.packages.package import get_package
from reconciler.planning.model.outcomes import FilesStage, PackageRender
from reconciler.planning.model.sources import RenderInputs, find_overruled_changes, locate_conflict
from reconciler.planning.render.local_changes import find_removed_inherited_fields

# Types of dependencies. The trace of a render contains its dependencies. The key of a dependency starts with its type.
TEMPLATE_DEPENDENCY, TEMPLATE_RULES_DEPENDENCY = "template", "template-rules"
# The key in a trace for the dependency on all parents and children of templates in a cluster. The key is unique,
# because no object has the name "*".
ALL_TEMPLATES_DEPENDENCY = format_dependency(TEMPLATE_DEPENDENCY, "*")
TEMPLATES_RULE = "templates"

PackageTrees = Mapping[str, TreeId]
"""Tree IDs of the packages of a cluster, by package path."""


@dataclass(frozen=True, eq=False)
class TemplateMerger:
    """Merges Kafka templates with the template merge rules of one config commit.

    Attributes:
        pairs_cache: For the trees of several packages: the pairs of a parent and a child in these packages.
        roles_cache: For the tree of one package: whether the package contains a parent or a child.
    """

    merge_rules: tuple[TemplateMergeRule, ...] = field(default_factory=lambda: (load_built_in_rule(),))
    options: TemplateOptions = field(default_factory=TemplateOptions)
    pairs_cache: KeyedCache[TemplatePairs] = field(default_factory=KeyedCache)
    roles_cache: KeyedCache[bool] = field(default_factory=KeyedCache)

    def build_dependency_functions(self) -> Mapping[str, Callable[[Sequence[str]], str]]:
        """Return a mapping from the dependency type of template merge rules to their fingerprint function."""
        return {TEMPLATE_RULES_DEPENDENCY: self._fingerprint_rules}

    def record_rules_dependency(self, files: FileTree, view: CatalogView) -> None:
        """Record a dependency on the template rules for the kinds in a package. A new rule then causes a render."""
        resources = get_package(files).resources
        if kinds := sorted({f"{resource.group}/{resource.kind}" for resource in resources if resource.name}):
            view.record(TEMPLATE_RULES_DEPENDENCY, ",".join(kinds))

    def _fingerprint_rules(self, arguments: Sequence[str]) -> str:
        kinds = set(arguments[0].split(",")) if len(arguments) == 1 else set()
        rules = {rule.name: rule for kind, rule in self._rules_by_kind if kind in kinds}
        return compute_digest([asdict(rules[name]) for name in sorted(rules)]) if rules else ABSENT_FINGERPRINT

    @cached_property
    def _rules_by_kind(self) -> tuple[tuple[str, TemplateMergeRule], ...]:
        sides = ((rule, side) for rule in self.merge_rules for side in (rule.parent, rule.child))
        return tuple((f"{side.group}/{side.kind}", rule) for rule, side in sides)

    def has_template_roles(self, files: FileTree) -> bool:
        """Return whether a package contains a template or a resource that inherits from a template."""
        return bool(find_roles(files, self.merge_rules))

    def has_template_roles_in_tree(self, tree: TreeId, read_files: Callable[[], FileTree]) -> bool:
        """Return whether a tree contains a resource with a template, or a resource that inherits from a template.

        `read_files` returns the files of the tree.
        """
        return self.roles_cache.get_or_create((self.merge_rules, tree), lambda: self.has_template_roles(read_files()))

    def find_pairs(self, contents: PackageTrees, read_package: Callable[[str], FileTree]) -> TemplatePairs:
        """Return the pairs of a parent and a child in the packages of a cluster.

        `read_package` returns the files of the package at a path.
        """
        key = (self.merge_rules, *sorted(contents.items()))
        return self.pairs_cache.get_or_create(
            key, lambda: find_pairs({name: read_package(name) for name in contents}, self.merge_rules)
        )

    def merge_templates(
        self,
        variant: Variant,
        rendered: PackageRender,
        inputs: RenderInputs,
        pairs: TemplatePairs,
        published: TemplatePairs,
    ) -> PackageRender:
        """Merge templates into a package, and add the effects of the merge on other resources of the cluster.

        Args:
            rendered: The package before templates are merged.
            pairs: The pairs of a parent and a child in all rendered packages of the cluster.
            published: The pairs of a parent and a child in all published packages of the cluster.
        """
        result = apply_templates(rendered.files, pairs, self.options)
        findings = set_package_location(
            set_source_locations(result.findings, rendered.source_locations),
            str(variant.target),
            variant.owner.key.reference,
        )
        dependencies = {format_template_dependency(key): pairs.compute_digest(key) for key in result.dependencies}
        merged = replace(rendered, findings=(*rendered.findings, *findings), trace={**rendered.trace, **dependencies})
        if errors := select_errors(result.findings):
            return replace(merged, blocking_code=errors[0].code)
        children = {effect.child.key for effect in result.effects}
        changes = find_template_changes(published, pairs, self.options, children)
        stages = (*rendered.stages, FilesStage("template", result.files)) if rendered.stages else ()
        overruled = self._iterate_overruled_changes(rendered, inputs, result.files)
        return replace(
            merged,
            files=result.files,
            templates=result,
            template_changes=changes,
            stages=stages,
            overruled_changes=(*rendered.overruled_changes, *overruled),
        )

    def _iterate_overruled_changes(
        self, rendered: PackageRender, inputs: RenderInputs, files: FileTree
    ) -> Iterator[Conflict]:
        """Yield the local changes that templates replaced. Omit changes that an earlier step of the render reported."""
        known = set(map(locate_conflict, rendered.overruled_changes))
        overruled = (
            ()
            if files is rendered.files
            else find_overruled_changes(rendered.source, files, TEMPLATES_RULE, rendered.merge_options)
        )
        for conflict in (*overruled, *find_removed_inherited_fields(inputs, files, self.merge_rules)):
            if (location := locate_conflict(conflict)) not in known:
                known.add(location)
                yield conflict


def format_template_dependency(key: ObjectKey) -> str:
    """Return the key in a trace for the dependency on a parent or a child."""
    return format_dependency(TEMPLATE_DEPENDENCY, key.group, key.kind, key.namespace or "-", key.name)


def fingerprint_packages(contents: PackageTrees) -> str:
    """Return the fingerprint for the dependency on all parents and children of templates in a cluster."""
    return compute_digest(dict(contents))


def build_template_fingerprinter(pairs: TemplatePairs, contents: PackageTrees) -> Callable[[Sequence[str]], str]:
    """Return a function that computes the fingerprints of dependencies on parents and children of Kafka templates."""

    def compute_fingerprint(arguments: Sequence[str]) -> str:
        if [*arguments] == ["*"]:
            return fingerprint_packages(contents)
        if len(arguments) != 4:
            return ""
        group, kind, namespace, name = arguments
        return pairs.compute_digest(ObjectKey(group, kind, "" if namespace == "-" else namespace, name))

    return compute_fingerprint


def is_template_dependency(name: str) -> bool:
    """Return whether a key in a trace is a dependency on the template of a parent, or on a child of a template."""
    return name.startswith(f"{TEMPLATE_DEPENDENCY} ")


def has_template_dependencies(trace: Trace) -> bool:
    """Return whether the trace of a render contains a dependency on a parent or a child."""
    return any(map(is_template_dependency, trace))


def has_template_rules_dependency(trace: Trace) -> bool:
    """Return whether the render with this trace searched for parents and children of templates."""
    return any(name.startswith(f"{TEMPLATE_RULES_DEPENDENCY} ") for name in trace)


def remove_template_dependencies(trace: Trace) -> Trace:
    """Return the trace without its dependencies on parents and children."""
    return {name: answer for name, answer in trace.items() if not is_template_dependency(name)}
