"""CustomResourceDefinitions that several packages of a cluster contain.

The agent of the cluster applies the versions of all these packages. When one of the packages is removed, the agent can
delete the definition, and then the cluster deletes all resources of the kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.packages.package import Package
from reconciler.packages.source_codes import SourceCodes
from reconciler.planning.model.outcomes import PackageOutcome

_KIND = "CustomResourceDefinition"


def list_definitions(files: FileTree) -> tuple[str, ...]:
    """Return the sorted names of the CustomResourceDefinitions in a package."""
    candidates = FileTree({path: file for path, file in files.items() if _KIND.encode() in file.data})
    return tuple(sorted({resource.name for resource in Package(candidates).resources if resource.kind == _KIND}))


def find_repeated_definitions(outcomes: Iterable[PackageOutcome]) -> Iterator[Finding]:
    """Yield a warning for each package of a chart whose CustomResourceDefinitions are also in another package.

    Args:
        outcomes: The outcomes of the packages of one target.
    """
    in_cluster = [outcome for outcome in outcomes if outcome.variant.cluster and outcome.record]
    packages: dict[str, list[str]] = {}
    for outcome in in_cluster:
        for name in outcome.record.definitions if outcome.record else ():
            packages.setdefault(name, []).append(outcome.variant.target.package)
    for outcome in in_cluster:
        upstream, target = outcome.variant.upstream, outcome.variant.target
        if upstream is None or not upstream.has_chart or outcome.record is None:
            continue
        for name in outcome.record.definitions:
            if others := [package for package in packages[name] if package != target.package]:
                message = (
                    f'the {_KIND} "{name}" is in package {target}, and also in {", ".join(sorted(others))}. Next step:'
                    " omit it from all packages except for one. Set `spec.helm.includeCRDs: false`, or values that omit"
                    " it"
                )
                owner = outcome.variant.owner.key.reference
                location = SourceLocation(object=owner, package=str(target), owner=owner)
                yield SourceCodes.CRD_IN_TWO_PACKAGES.finding(message, location)
