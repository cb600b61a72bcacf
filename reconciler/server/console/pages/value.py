"""The provenance of one value: the layers that set it, and the search for the commit that changed it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from reconciler.inspect.cause_searches import CauseSearch, SearchedValue, TooManySearchesError
from reconciler.inspect.value_explainer import ValueExplanation
from reconciler.krm.findings import SourceLocation
from reconciler.output.fleet.model import PackageRow, TargetEntry
from reconciler.output.json_data import read_mapping
from reconciler.review.restricted_index import TargetNameSet, list_hidden_names
from reconciler.server.console.forms import Form
from reconciler.server.console.page import PageContent, PageRequest, Redirect
from reconciler.server.console.pages.missing import build_forgotten_page, build_missing_page, build_refusal_page

MAX_CHARACTERS = 1_000
"""The maximal length of the name of a resource, and of a pointer."""
_HIDDEN = "The result is not shown, because it contains names of targets that you may not read."


def build_value_page(
    page: PageRequest, target: TargetEntry, row: PackageRow, resource: str, pointer: str
) -> PageContent:
    """Build the page with the layers of a value."""
    explanation = _explain(page, target.name, row.package, resource, pointer)
    upstream = read_mapping(explanation.summary, "upstream")
    return PageContent(
        "value.html",
        {
            "target": target, "row": row, "resource": resource, "pointer": pointer, "explanation": explanation,
            "is_hidden": explanation.error == _HIDDEN, "step_url": partial(_build_step_url, page, target, upstream),
        },
    )  # fmt: skip


def _explain(page: PageRequest, target: str, package: str, resource: str, pointer: str) -> ValueExplanation:
    """Return the explanation of a value, or the reason why the person may not read it."""
    explanation = page.context.explainer.explain(target, package, resource, pointer)
    if _find_hidden_names(page).occur_in(f"{explanation.error} {json.dumps(explanation.values)}"):
        return ValueExplanation(explanation.command, error=_HIDDEN)
    return explanation


def _find_hidden_names(page: PageRequest) -> TargetNameSet:
    return list_hidden_names(page.whole_index, page.index)


def _build_step_url(
    page: PageRequest, target: TargetEntry, upstream: Mapping[str, Any], step: Mapping[str, Any]
) -> str:
    """Return the URL of the line that set a value. Return "" if it is unknown."""
    config, file, line = page.context.config, step["file"], step.get("line", 0)
    if step.get("layer") == "draft":
        return ""
    if step.get("layer") == "edit":
        path = f"{target.directory}/{file}" if target.directory else file
        return config.links.build_file_url(target.url, target.head, path, line)
    if commit := step.get("commit"):
        repository = str(upstream.get("repo", "")) if commit == upstream.get("commit") else ""
        return config.links.build_file_url(repository, commit, file, line)
    return config.build_location_url(page.index.config, SourceLocation(file, line))


def start_search(page: PageRequest, form: Form) -> PageContent | Redirect:
    """Start the search for the commit that changed a value."""
    value = SearchedValue(
        form.get("target"), form.get("package"), form.get("resource")[:MAX_CHARACTERS],
        form.get("pointer")[:MAX_CHARACTERS], form.get("draft") == "yes",
    )  # fmt: skip
    if not _can_read(page, value):
        return build_missing_page("package", f"{value.target}/{value.package}")
    try:
        search = page.context.searches.start(value)
    except TooManySearchesError as error:
        return build_refusal_page("The search cannot start", str(error))
    return Redirect(f"/searches/{search.id}")


def _can_read(page: PageRequest, value: SearchedValue) -> bool:
    target = page.index.by_target.get(value.target)
    return target is not None and value.package in target.by_package


def build_search_page(page: PageRequest) -> PageContent:
    """Build the page of a search."""
    search = _find_search(page)
    if search is None:
        return build_forgotten_page("search", page.request.path_params["id"])
    is_hidden = _find_hidden_names(page).occur_in(f"{search.error} {json.dumps(search.data)}")
    items = () if is_hidden else search.data.get("items", ())
    value = search.value
    query = urlencode({"resource": value.resource, "pointer": value.pointer})
    return PageContent(
        "cause.html",
        {
            "search": search, "changes": items, "error": _HIDDEN if is_hidden else search.error,
            "target": page.index.by_target[value.target], "value_query": f"?{query}",
        },
    )  # fmt: skip


def _find_search(page: PageRequest) -> CauseSearch | None:
    """Return the search of the URL. Return None if the person may not read its package."""
    search = page.context.searches.find(page.request.path_params["id"])
    return search if search and _can_read(page, search.value) else None


def cancel_search(page: PageRequest, _form: Form) -> PageContent | Redirect:
    """Cancel a search."""
    search = _find_search(page)
    if search is None:
        return build_forgotten_page("search", page.request.path_params["id"])
    page.context.searches.cancel(search.id)
    return Redirect(f"/searches/{search.id}")
