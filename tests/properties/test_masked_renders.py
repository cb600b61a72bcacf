"""Masked names never change a render: all packages of the golden cases, with random names of clusters and variants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.package_variants.mutation import build_mutation
from reconciler.krm.yaml import compose as composition
from reconciler.krm.yaml import masked_names as masked_names_module
from reconciler.packages import parsing
from reconciler.packages.kptfile import KPTFILE, read_kptfile
from reconciler.packages.package_context import ensure_package_context
from reconciler.packages.parsing import masked_names
from reconciler.packages.pipeline import RenderResult, render_pipelines
from tests.cases.case_world import find_cases
from tests.support.catalogs import catalog_of
from tests.support.examples import examples
from tests.unit.controllers.package_variants.test_mutation import build_spec

_CACHES = (
    parsing.parse_cached,
    parsing._edit_cached,
    parsing._edit_masked_text,
    parsing._edit_masked_content,
    composition._compose_cached,
    masked_names_module._unmask_document,
    read_kptfile,
)
_NAMES = st.one_of(
    st.from_regex(r"edge-[0-9]{2}", fullmatch=True),
    st.from_regex(r"[a-z0-9][a-z0-9-]{0,12}[a-z0-9]", fullmatch=True),
    st.sampled_from(
        ["labels", "metadata", "config", "namespace", "package-context", "kpt.dev", "set-labels", "123456"]
    ),
)


@cache
def _list_packages() -> list[FileTree]:
    """Return the distinct packages with a Kptfile in the repositories of all golden cases."""
    return [*dict.fromkeys(package for case in find_cases() for package in _iterate_packages(case.data["repos"]))]


def _iterate_packages(repos: dict[str, Any]) -> Iterator[FileTree]:
    for commit in (commit for commits in repos.values() for commit in commits or []):
        files = FileTree({path: File(text.encode()) for path, text in (commit.get("files") or {}).items()})
        folders = [path.removesuffix(KPTFILE).rstrip("/") for path in files if path.endswith(KPTFILE)]
        yield from (files.subtree(folder) for folder in folders)


def _render(
    package: FileTree, cluster: str, variant: str, mask: AbstractContextManager[None], *, has_names_in_keys: bool
) -> RenderResult:
    context = {"cluster": cluster, "url": f"https://{cluster}.example/{variant}"}
    config = {cluster: variant} if has_names_in_keys else {"fleet": "edge"}
    spec = build_spec(
        packageContext={"data": context | ({variant: cluster} if has_names_in_keys else {}), "removeKeys": ["owner"]},
        pipeline={"mutators": [{"image": "set-annotations:v0.1", "name": "fleet", "configMap": config}]},
    )
    with mask:
        files, _ = ensure_package_context(package, "web", f"{cluster}/web")
        mutated = build_mutation(spec, variant, "default")(files, CatalogView(DependencyReader(catalog_of())))
        return render_pipelines(mutated.files)


@settings(max_examples=examples(200), deadline=None)
@given(
    data=st.data(), names=st.lists(st.tuples(_NAMES, _NAMES), min_size=2, max_size=3), has_names_in_keys=st.booleans()
)
def test_render_with_masked_names_equals_render(
    data: st.DataObject, names: list[tuple[str, str]], has_names_in_keys: bool
) -> None:
    """Renders of several clusters that share work have the same files, steps and findings as renders without masks."""
    package = data.draw(st.sampled_from(_list_packages()))
    _clear_caches()
    render = partial(_render, package, has_names_in_keys=has_names_in_keys)
    masked = [render(*pair, masked_names(*pair)) for pair in names]
    _clear_caches()
    assert masked == [render(*pair, nullcontext()) for pair in names]


def _clear_caches() -> None:
    for cached_function in _CACHES:
        cached_function.cache_clear()
