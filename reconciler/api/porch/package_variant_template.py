"""The template of a PackageVariantSet, whose fields can be CEL expressions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from reconciler.api.base import ApiModel, Deprecation, FieldIssue
from reconciler.api.helm_options import HelmOptionsTemplate
from reconciler.api.kpt import UpdateStrategy
from reconciler.api.kustomize_options import KustomizeOptionsTemplate
from reconciler.api.porch.package_variant import INJECTORS_DESCRIPTION, InjectedType, PipelineFunction
from reconciler.api.porch.policies import (
    ADOPTION_DESCRIPTION,
    CONFLICT_DESCRIPTION,
    DELETION_DESCRIPTION,
    UPDATE_STRATEGY_DESCRIPTION,
    AdoptionPolicy,
    ConflictPolicy,
    DeletionPolicy,
)
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class TemplateExpression:
    """A CEL expression of a template.

    Attributes:
        path: Path of the field, relative to the template.
        text: The expression.
        can_use_repository: Whether the variable `repository` is available. Only `repoExpr` cannot use it, because it
            determines the repository.
    """

    path: DataPath
    text: str
    can_use_repository: bool = True


class MapExpr(ApiModel):
    """An entry of a map, whose key and value can be CEL expressions."""

    key: str = Field("", description="Literal key. Use either key or keyExpr.")
    key_expr: str = Field("", description="CEL expression that returns the key.")
    value: str | None = Field(None, description="Literal value. Use either value or valueExpr.")
    value_expr: str = Field("", description="CEL expression that returns the value.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless exactly one of key and keyExpr, and exactly one of value and valueExpr, is set."""
        # An empty value is valid, but an empty key is not valid.
        for name, has_literal in (("key", bool(data.get("key"))), ("value", "value" in data)):
            has_expression = bool(data.get(f"{name}Expr"))
            if has_literal and has_expression:
                yield FieldIssue(f"{{path}} may specify only one of `{name}` and `{name}Expr`")
            if not has_literal and not has_expression:
                yield FieldIssue(f"{{path}} must specify `{name}` or `{name}Expr`")

    def iterate_expressions(self, path: DataPath) -> Iterator[TemplateExpression]:
        """Yield the expressions of the entry at `path`."""
        for name, text in (("keyExpr", self.key_expr), ("valueExpr", self.value_expr)):
            if text:
                yield TemplateExpression((*path, name), text)


def _iterate_map_expressions(entries: Sequence[MapExpr], path: DataPath) -> Iterator[TemplateExpression]:
    for index, entry in enumerate(entries):
        yield from entry.iterate_expressions((*path, index))


class FunctionTemplate(PipelineFunction):
    """A pipeline function, whose configMap can have expressions."""

    deprecated_lists: ClassVar = ("configMapExprs",)

    config_map_exprs: tuple[MapExpr, ...] = Field(
        (),
        description=(
            "Entries of configMap whose keys or values are CEL expressions. They override the entries in the "
            "field configMap."
        ),
    )


class PipelineTemplate(ApiModel):
    """Functions that run before the functions of the package."""

    mutators: tuple[FunctionTemplate, ...] = Field(
        (), description="Functions that change resources, in the order of execution."
    )
    validators: tuple[FunctionTemplate, ...] = Field(
        (), description="Functions that validate resources, in the order of execution."
    )


class InjectorTemplate(InjectedType):
    """A selector of config objects for injection, whose name can be a CEL expression."""

    name: str = Field("", description="Name of the object. Use either name or nameExpr.")
    name_expr: str = Field("", description="CEL expression that returns the name of the object.")

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless exactly one of name and nameExpr is set."""
        has_literal, has_expression = bool(data.get("name")), bool(data.get("nameExpr"))
        if has_literal and has_expression:
            yield FieldIssue("{path} may specify only one of `name` and `nameExpr`")
        if not has_literal and not has_expression:
            yield FieldIssue("{path} must specify either `name` or `nameExpr`")


class DownstreamTemplate(ApiModel):
    """Location of the package, if this location differs from the target."""

    repo: str = Field("", description="Name of the Repository.")
    repo_expr: str = Field(
        "",
        description=(
            "CEL expression that returns the name of the Repository. The expression cannot use the variable repository."
        ),
    )
    package: str = Field("", description="Path of the package in the Repository.")
    package_expr: str = Field("", description="CEL expression that returns the path of the package.")

    @property
    def repo_expression(self) -> TemplateExpression | None:
        """The expression for the name of the Repository. None if `repoExpr` is not set."""
        path = ("downstream", "repoExpr")
        return TemplateExpression(path, self.repo_expr, can_use_repository=False) if self.repo_expr else None

    @property
    def package_expression(self) -> TemplateExpression | None:
        """The expression for the path of the package. None if `packageExpr` is not set."""
        return TemplateExpression(("downstream", "packageExpr"), self.package_expr) if self.package_expr else None


class PackageContextTemplate(ApiModel):
    """Changes to the package context (package-context.yaml)."""

    deprecated_lists: ClassVar = ("dataExprs",)

    data: dict[str, str] = Field({}, description="Keys to set in the package context, with their values.")
    data_exprs: tuple[MapExpr, ...] = Field(
        (),
        description="Keys to set whose names or values are CEL expressions. They override the keys in the field data.",
    )
    remove_keys: tuple[str, ...] = Field((), description="Keys to remove from the package context.")
    remove_key_exprs: tuple[str, ...] = Field((), description="CEL expressions that return the keys to remove.")

    @property
    def remove_key_expressions(self) -> tuple[TemplateExpression, ...]:
        """The expressions for keys to remove."""
        return tuple(
            TemplateExpression(("packageContext", "removeKeyExprs", index), text)
            for index, text in enumerate(self.remove_key_exprs)
        )


KUSTOMIZE_PATH_EXPRESSION = ("kustomize", "pathExpr")
"""Path of the expression for the folder of an overlay in a template."""


class PackageVariantTemplate(ApiModel):
    """The spec of the PackageVariants for a target. Most fields also accept expressions."""

    deprecated_lists: ClassVar = ("labelExprs", "annotationExprs", "injectors", "injectorExprs")
    deprecated_names: ClassVar = {"injectorExprs": Deprecation("injectors", "Use injectors.", is_merged=True)}
    blank_fields: ClassVar = ("adoptionPolicy", "deletionPolicy", "updateStrategy", "conflictPolicy")

    downstream: DownstreamTemplate = DownstreamTemplate()
    adoption_policy: AdoptionPolicy | None = Field(None, description=ADOPTION_DESCRIPTION)
    deletion_policy: DeletionPolicy | None = Field(None, description=DELETION_DESCRIPTION)
    labels: dict[str, str] = Field({}, description="Labels of the package revision.")
    label_exprs: tuple[MapExpr, ...] = Field(
        (), description="Labels whose keys or values are CEL expressions. They override the labels in the field labels."
    )
    annotations: dict[str, str] = Field({}, description="Annotations of the package revision.")
    annotation_exprs: tuple[MapExpr, ...] = Field(
        (),
        description=(
            "Annotations whose keys or values are CEL expressions. They override the annotations in the "
            "field annotations."
        ),
    )
    package_context: PackageContextTemplate = PackageContextTemplate()
    helm: HelmOptionsTemplate | None = None
    kustomize: KustomizeOptionsTemplate | None = None
    pipeline: PipelineTemplate = PipelineTemplate()
    injectors: tuple[InjectorTemplate, ...] = Field((), description=INJECTORS_DESCRIPTION)
    update_strategy: UpdateStrategy | None = Field(None, description=UPDATE_STRATEGY_DESCRIPTION)
    conflict_policy: ConflictPolicy | None = Field(None, description=CONFLICT_DESCRIPTION)

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for each part of `downstream` that is both a literal and an expression."""
        downstream = data.get("downstream")
        fields = downstream if isinstance(downstream, Mapping) else {}
        for name in ("repo", "package"):
            if fields.get(name) and fields.get(f"{name}Expr"):
                names = f"`downstream.{name}` and `downstream.{name}Expr`"
                yield FieldIssue(f"{{parent}} may specify only one of {names}", ("downstream",))

    def iterate_expressions(self) -> Iterator[TemplateExpression]:
        """Yield all CEL expressions of the template, in the order of the fields in the API."""
        if expression := self.downstream.repo_expression:
            yield expression
        if expression := self.downstream.package_expression:
            yield expression
        yield from _iterate_map_expressions(self.label_exprs, ("labelExprs",))
        yield from _iterate_map_expressions(self.annotation_exprs, ("annotationExprs",))
        yield from _iterate_map_expressions(self.package_context.data_exprs, ("packageContext", "dataExprs"))
        yield from self.package_context.remove_key_expressions
        for index, injector in enumerate(self.injectors):
            if injector.name_expr:
                yield TemplateExpression(("injectors", index, "nameExpr"), injector.name_expr)
        for name, functions in (("mutators", self.pipeline.mutators), ("validators", self.pipeline.validators)):
            for index, function in enumerate(functions):
                path = ("pipeline", name, index, "configMapExprs")
                yield from _iterate_map_expressions(function.config_map_exprs, path)
        for helm_path, text in self.helm.iterate_expressions() if self.helm else ():
            yield TemplateExpression(("helm", *helm_path), text)
        if self.kustomize and self.kustomize.path_expr:
            yield TemplateExpression(KUSTOMIZE_PATH_EXPRESSION, self.kustomize.path_expr)
