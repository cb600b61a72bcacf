"""The steps of one variant in their order: package context, pipeline, injection (porch 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from reconciler.packages.context import read_context, set_context
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.rules.variant import Earlier, Mutated, MutationStep
from reconciler.rules.variants.injection import inject
from reconciler.rules.variants.model import Injector, PackageContext, PackageVariantSpec, Pipeline
from reconciler.rules.variants.pipeline import prepend_functions
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.trace import View


@dataclass(frozen=True)
class SetContext:
    """Sets and removes keys of the package context; `package` is what error texts call the package."""

    name: ClassVar[MutationStep] = "context"
    changes: PackageContext
    package: str

    def apply(self, files: FileTree, view: View, earlier: Earlier | None) -> Mutated:
        """Return the package with its context changed."""
        kept = _kept_keys(files, earlier) if earlier else {}
        data = {**kept, **self.changes.data}
        remove_keys = self.changes.remove_keys
        wanted = {key: value for key, value in data.items() if key not in remove_keys}
        changed, findings = set_context(files, wanted, remove_keys, self.package)
        return Mutated(changed, findings=findings)


def _kept_keys(files: FileTree, earlier: Earlier) -> dict[str, Any]:
    """Return what an earlier output had set in the package context: it stays until removed (porch 8.1, rule 4).

    A key that upstream has changed since then is upstream's.
    """
    then, base = read_context(earlier.rendered) or {}, read_context(earlier.base) or {}
    now = read_context(files)
    if now is None:
        return {}
    return {key: value for key, value in then.items() if value != base.get(key) and now.get(key) == base.get(key)}


@dataclass(frozen=True)
class PrependFunctions:
    """Puts the variant's functions first in the pipeline."""

    name: ClassVar[MutationStep] = "pipeline"
    functions: Pipeline
    variant: str

    def apply(self, files: FileTree, view: View, earlier: Earlier | None) -> Mutated:
        """Return the package with its pipeline changed."""
        kptfile = read_kptfile(files[KPTFILE].data) if KPTFILE in files else ()
        if not isinstance(kptfile, Kptfile):
            return Mutated(files, findings=kptfile)
        pipeline: Mapping[str, Any] = kptfile.data.get("pipeline") or {}
        mutators = prepend_functions(pipeline.get("mutators") or (), self.functions.mutators, self.variant)
        validators = prepend_functions(pipeline.get("validators") or (), self.functions.validators, self.variant)
        changed = kptfile.with_pipeline(mutators, validators)
        return Mutated(files if changed is kptfile else files.with_files({KPTFILE: changed.to_bytes()}))


@dataclass(frozen=True)
class InjectConfig:
    """Fills the injection points from the context objects of the variant's namespace."""

    name: ClassVar[MutationStep] = "injection"
    injectors: tuple[Injector, ...]
    namespace: str

    def apply(self, files: FileTree, view: View, earlier: Earlier | None) -> Mutated:
        """Return the package with its points filled."""
        return inject(files, self.injectors, self.namespace, view, earlier)


@dataclass(frozen=True)
class VariantMutation:
    """All steps of one variant; the values of its spec and nothing else, so that it can be pickled."""

    steps: tuple[SetContext | PrependFunctions | InjectConfig, ...]

    def __call__(self, files: FileTree, view: View, earlier: Earlier | None = None) -> Mutated:
        """Return the package with every step applied, and all findings.

        Without `earlier` the outcome is that of a first clone.
        """
        outcome = Mutated(files)
        for step in self.steps:
            applied = step.apply(outcome.files, view, earlier)
            outcome = Mutated(
                applied.files, outcome.injected + applied.injected, outcome.findings + applied.findings,
                (*outcome.stages, (step.name, applied.files)),
            )  # fmt: skip
        return outcome


def mutation_of(spec: PackageVariantSpec, name: str, namespace: str) -> VariantMutation:
    """Return the steps of the PackageVariant `name` in `namespace`."""
    package = f"{spec.downstream.repo}/{spec.downstream.package}"
    return VariantMutation(
        (
            SetContext(spec.package_context, package),
            PrependFunctions(spec.pipeline, name),
            InjectConfig(spec.injectors, namespace),
        )
    )
