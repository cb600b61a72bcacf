"""Mutation steps of a package variant, in this order: package context, pipeline, injection.

The functions of a PackageVariant are inserted at the start of the pipeline. Their names start with
`PackageVariant.<name>`, so that the next render can find and replace them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from reconciler.api.porch.package_variant import (
    Injector,
    PackageContext,
    PackageVariantSpec,
    PipelineFunction,
    PipelineSpec,
)
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView
from reconciler.controllers.package_variants.injection import inject_config
from reconciler.controllers.results import MutationResult, MutationStep, PreviousRender
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.package_context import PACKAGE_CONTEXT_FILE, read_package_context, update_package_context
from reconciler.packages.parsing import edit_content_masked

_NAME_PREFIX = "PackageVariant"


def prepend_functions(
    existing: Sequence[Mapping[str, Any]], functions: Sequence[PipelineFunction], variant: str
) -> list[dict[str, Any]]:
    """Return a pipeline list that starts with the functions of a PackageVariant.

    Functions that an earlier render added for the same PackageVariant are removed. All other functions are unchanged.
    """
    other_functions = [
        copy.deepcopy(dict(entry)) for entry in existing if not is_variant_function(entry.get("name"), variant)
    ]
    return [_rename_function(function, variant, index) for index, function in enumerate(functions)] + other_functions


def is_variant_function(name: object, variant: str) -> bool:
    """Return whether the PackageVariant `variant` added the function with this name.

    The name has the format `PackageVariant.<variant>.<function>.<index>`. The name of a PackageVariant can contain
    dots. Therefore, the function name is parsed from the right. Porch expects exactly four parts, and fails if there
    are more dots.
    """
    if not isinstance(name, str):
        return False
    start, _, index = name.rpartition(".")
    owner, _, _function = start.rpartition(".")
    return owner == f"{_NAME_PREFIX}.{variant}" and index.isascii() and index.isdecimal()


def _rename_function(function: PipelineFunction, variant: str, index: int) -> dict[str, Any]:
    name = f"{_NAME_PREFIX}.{variant}.{function.name}.{index}"
    return function.model_copy(update={"name": name}).as_data()


@dataclass(frozen=True)
class SetContextStep:
    """Mutation step that sets and removes keys of the package context. `package` is the package's name in messages."""

    name: ClassVar[MutationStep] = "context"
    changes: PackageContext
    package: str

    def apply(self, files: FileTree, view: CatalogView, earlier: PreviousRender | None) -> MutationResult:
        """Return the package with its package context changed."""
        existing_data = _find_kept_keys(files, earlier) if earlier else {}
        data = {**existing_data, **self.changes.data}
        remove_keys = self.changes.remove_keys
        new_data = {key: value for key, value in data.items() if key not in remove_keys}
        edit = partial(_edit_context, [*new_data], remove_keys)
        key = f"context {[*new_data]} {sorted(remove_keys)}"
        shared = _edit_shared(files, PACKAGE_CONTEXT_FILE, tuple(new_data.values()), key, edit)
        if shared:
            return MutationResult(shared)
        changed, findings = update_package_context(files, new_data, remove_keys, self.package)
        return MutationResult(changed, findings=findings)


def _edit_context(
    keys: Sequence[str], remove_keys: Collection[str], content: bytes, values: tuple[str, ...]
) -> bytes | None:
    files, data = FileTree({PACKAGE_CONTEXT_FILE: File(content)}), dict(zip(keys, values, strict=True))
    changed, findings = update_package_context(files, data, remove_keys, "")
    return None if findings else changed[PACKAGE_CONTEXT_FILE].data


def _edit_shared(
    files: FileTree,
    path: str,
    texts: tuple[str, ...],
    key: str,
    edit: Callable[[bytes, tuple[str, ...]], bytes | None],
) -> FileTree | None:
    """Edit one file. Packages of different clusters share the cached result of the edit.

    Return None if the result of this edit cannot be shared. The caller must then edit the file without the cache.
    """
    edited = edit_content_masked(files[path].data, texts, key, edit) if path in files else None
    return files.with_files({path: edited}) if edited is not None else None


def _find_kept_keys(files: FileTree, earlier: PreviousRender) -> dict[str, Any]:
    """Return the keys and values that an earlier render set in the package context, and that this render must keep.

    A key is omitted if its value in the upstream package has changed since the earlier render.
    """
    previous_context, base_context = (
        read_package_context(earlier.rendered) or {},
        read_package_context(earlier.base) or {},
    )
    current_context = read_package_context(files)
    if current_context is None:
        return {}
    return {
        key: value
        for key, value in previous_context.items()
        if value != base_context.get(key) and current_context.get(key) == base_context.get(key)
    }


@dataclass(frozen=True)
class PrependFunctionsStep:
    """Mutation step that inserts the functions of a PackageVariant at the start of the pipeline."""

    name: ClassVar[MutationStep] = "pipeline"
    functions: PipelineSpec
    variant: str

    def apply(self, files: FileTree, view: CatalogView, earlier: PreviousRender | None) -> MutationResult:
        """Return the package with the functions in its pipeline."""
        key = f"pipeline {self.functions.shared_data}"
        shared = _edit_shared(files, KPTFILE, (self.variant,), key, partial(_edit_pipeline, self.functions))
        if shared:
            return MutationResult(shared)
        kptfile = read_kptfile(files[KPTFILE].data) if KPTFILE in files else ()
        if not isinstance(kptfile, Kptfile):
            return MutationResult(files, findings=kptfile)
        changed = _prepend_to_kptfile(kptfile, self.functions, self.variant)
        return MutationResult(files.with_files({KPTFILE: changed.to_bytes()}))


def _prepend_to_kptfile(kptfile: Kptfile, functions: PipelineSpec, variant: str) -> Kptfile:
    pipeline: Mapping[str, Any] = kptfile.data.get("pipeline") or {}
    mutators = prepend_functions(pipeline.get("mutators") or (), functions.mutators, variant)
    validators = prepend_functions(pipeline.get("validators") or (), functions.validators, variant)
    return kptfile.with_pipeline(mutators, validators)


def _edit_pipeline(functions: PipelineSpec, content: bytes, texts: tuple[str, ...]) -> bytes | None:
    kptfile = read_kptfile(content)
    return _prepend_to_kptfile(kptfile, functions, *texts).to_bytes() if isinstance(kptfile, Kptfile) else None


@dataclass(frozen=True)
class InjectConfigStep:
    """Mutation step that fills the injection points with content of config objects in `namespace`."""

    name: ClassVar[MutationStep] = "injection"
    injectors: tuple[Injector, ...]
    namespace: str

    def apply(self, files: FileTree, view: CatalogView, earlier: PreviousRender | None) -> MutationResult:
        """Return the package with its injection points filled."""
        return inject_config(files, self.injectors, self.namespace, view, earlier)


@dataclass(frozen=True)
class VariantMutation:
    """All mutation steps of one package variant. The object contains only plain values, so that it can be pickled."""

    steps: tuple[SetContextStep | PrependFunctionsStep | InjectConfigStep, ...]

    def __call__(self, files: FileTree, view: CatalogView, earlier: PreviousRender | None = None) -> MutationResult:
        """Return the package after all steps, with the findings of all steps.

        `earlier` is the previous render of the package. It is None for the first render.
        """
        outcome = MutationResult(files)
        for step in self.steps:
            applied = step.apply(outcome.files, view, earlier)
            outcome = MutationResult(
                applied.files, outcome.injections + applied.injections, outcome.findings + applied.findings,
                (*outcome.stages, (step.name, applied.files)),
            )  # fmt: skip
        return outcome


def build_mutation(spec: PackageVariantSpec, name: str, namespace: str) -> VariantMutation:
    """Return the mutation steps of the PackageVariant `name` in `namespace`."""
    package = f"{spec.downstream.repo}/{spec.downstream.package}"
    return VariantMutation(
        (
            SetContextStep(spec.package_context, package),
            PrependFunctionsStep(spec.pipeline, name),
            InjectConfigStep(spec.injectors, namespace),
        )
    )
