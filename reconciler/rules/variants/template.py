"""Rendering a template: from one target's inputs to the spec of one PackageVariant (porch 11.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.expressions import Limits
from reconciler.rules.variants.inputs import Described, Inputs, TemplateError, describe
from reconciler.rules.variants.model import Function, Injector, PackageContext, Pipeline, Upstream, written
from reconciler.rules.variants.naming import TargetKey
from reconciler.rules.variants.set_model import FunctionTemplate, InjectorTemplate, MapEntry, MapTemplate, Template
from reconciler.rules.variants.unroll import TargetContext

FindRepository = Callable[[str], Described | None]
Seen = Mapping[str, Any]


@dataclass(frozen=True)
class Placed:
    """A target whose downstream is known, and all that the rest of its template may see."""

    context: TargetContext
    upstream: Upstream
    key: TargetKey
    inputs: Inputs


def place_target(
    context: TargetContext, upstream: Upstream, upstream_seen: Seen, find: FindRepository, namespace: str, cel: Limits
) -> Placed:
    """Return where one target's variant goes.

    `upstream_seen` is what expressions see of the upstream revision, `find` gives the Repositories of the set's
    namespace by name, `cel` is what each expression may cost. Raises TemplateError, whose text starts with the path
    of the expression.
    """
    template = context.template
    bindings: dict[str, Any] = {
        "repoDefault": context.repo_default,
        "packageDefault": context.package_default,
        "upstream": upstream_seen,
        "target": context.target,
    }
    repo = Inputs(bindings, cel).evaluate(template.repo) if template.repo else context.repo_default
    inputs = Inputs({**bindings, "repository": _load_repository(repo, find, namespace)}, cel)
    package = inputs.evaluate(template.package) if template.package else context.package_default
    return Placed(context, upstream, TargetKey(repo, package), inputs)


def render_spec(placed: Placed) -> dict[str, Any]:
    """Return the spec of the PackageVariant, as data and not yet validated. Raises TemplateError."""
    downstream = {"repo": placed.key.repo, "package": placed.key.package}
    rest = _render_rest(placed.context.template, placed.inputs)
    return {"upstream": placed.upstream.as_data(), "downstream": downstream, **rest}


def _load_repository(name: str, find: FindRepository, namespace: str) -> dict[str, Any]:
    repository = find(name)
    if repository is None:
        raise TemplateError(f'repository "{name}" could not be loaded')
    return describe(repository, namespace)


def _render_rest(template: Template, inputs: Inputs) -> dict[str, Any]:
    # the order is that of porch 11.3: with several faulty expressions it decides which one is told
    labels, annotations = render_map(template.labels, inputs), render_map(template.annotations, inputs)
    context = PackageContext(render_map(template.context, inputs), _render_remove_keys(template, inputs))
    injectors = [_render_injector(injector, inputs).as_data() for injector in template.injectors]
    validators = _render_functions(template.validators, inputs)
    pipeline = Pipeline(_render_functions(template.mutators, inputs), validators)
    return written(
        {
            "adoptionPolicy": template.adoption_policy,
            "deletionPolicy": template.deletion_policy,
            "labels": labels,
            "annotations": annotations,
            "packageContext": context.as_data(),
            "pipeline": pipeline.as_data(),
            "injectors": injectors,
            "updateStrategy": template.update_strategy,
            "conflictPolicy": template.conflict_policy,
        }
    )


def render_map(template: MapTemplate, inputs: Inputs) -> dict[str, str]:
    """Return the static map, overwritten by each entry in turn."""
    return {**template.static, **_render_entries(template.entries, inputs)}


def _render_entries(entries: Sequence[MapEntry], inputs: Inputs) -> dict[str, str]:
    return {inputs.evaluate(entry.key): inputs.evaluate(entry.value) for entry in entries}


def _render_remove_keys(template: Template, inputs: Inputs) -> tuple[str, ...]:
    return tuple(sorted({inputs.evaluate(key) for key in template.remove_keys}))


def _render_injector(template: InjectorTemplate, inputs: Inputs) -> Injector:
    return Injector(inputs.evaluate(template.name), template.group, template.version, template.kind)


def _render_functions(templates: Sequence[FunctionTemplate], inputs: Inputs) -> tuple[Function, ...]:
    return tuple(
        replace(one.function, config_map={**one.function.config_map, **_render_entries(one.config, inputs)})
        for one in templates
    )
