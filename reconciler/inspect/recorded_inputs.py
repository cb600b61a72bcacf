"""Finds the inputs of a recorded render that a status file does not contain, in the history of the target.

These inputs are the previous output of the package, and the other packages with Kafka templates.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reconciler.catalog.files import CommitId, FileTree
from reconciler.controllers.results import GeneratedSource, PreviousRender, Variant
from reconciler.inspect.committed_packages import CommittedPackage, PastConfig, list_packages, read_files, read_package
from reconciler.planning.attribution.re_render import RecordedTrees
from reconciler.planning.render.templates import PackageTrees

_PREVIOUS_OUTPUT_UNKNOWN_NOTE = (
    "the previous output of the package is unknown; the values that a render copies from the previous output, for "
    "example keys of the package context, come from the recorded output"
)


def list_previous_renders(
    package: CommittedPackage, variant: Variant, trees: RecordedTrees
) -> Iterator[tuple[PreviousRender | None, str]]:
    """Yield the possible previous outputs of a package, each with a note for the user.

    The candidates are, in this order:

    1. The previous version of the package.
    2. None, which means that the package was new.
    3. The recorded output of the package itself, as an approximation if the previous output is unknown.
    """
    if isinstance(variant.source, GeneratedSource):
        # Yield only None: the controller generates the complete package, so the result does not depend on the previous
        # render.
        yield None, ""
        return
    if previous_render := _find_previous_render(package):
        yield previous_render, ""
    yield None, ""
    yield PreviousRender(trees.rendered, trees.base), _PREVIOUS_OUTPUT_UNKNOWN_NOTE


def _find_previous_render(package: CommittedPackage) -> PreviousRender | None:
    commit = package.find_commit_before()
    previous = read_package(package.target, package.remote, package.package, commit) if commit else None
    if not isinstance(previous, CommittedPackage):
        return None
    rendered = read_files(package.remote, previous.recorded.rendered)
    if rendered is None:
        return None
    base = read_files(package.remote, previous.recorded.base)
    return PreviousRender(rendered, base if base is not None else FileTree())


def list_related_trees(package: CommittedPackage, past_config: PastConfig) -> tuple[PackageTrees, ...]:
    """Return the possible trees of the other packages with Kafka templates at the time of the render of a package.

    The candidates are the trees at three commits: the commit of the package, the commit that added its status file,
    and the parent of the commit that added its status file.
    """
    commits = (package.commit, package.find_introducing_commit(), package.find_commit_before())
    candidates = [read_related_packages(package, past_config, commit) for commit in dict.fromkeys(commits) if commit]
    return tuple(trees for index, trees in enumerate(candidates) if trees not in candidates[:index])


def read_related_packages(package: CommittedPackage, past_config: PastConfig, commit: CommitId) -> PackageTrees:
    """Return the trees of all other packages that contain or inherit Kafka templates at `commit`.

    If the config has tenants, return only packages of the same tenant, because a render reads no packages of other
    tenants.
    """
    target, remote, template_merger = package.target, package.remote, past_config.renderer.template_merger
    names = (name for name in list_packages(target, remote, commit) if name != package.package)
    trees = {name: tree for name in names if (tree := remote.find_tree_at(commit, target.get_package_path(name)))}
    related = {
        name: tree
        for name, tree in trees.items()
        if template_merger.has_template_roles_in_tree(tree, partial(remote.read_files, tree))
    }
    if not past_config.catalog.tenants:
        return related
    tenant = past_config.find_tenant(package)
    others = {name: read_package(target, remote, name, commit) for name in related}
    return {
        name: tree
        for name, tree in related.items()
        if isinstance(other := others[name], CommittedPackage) and past_config.find_tenant(other) == tenant
    }
