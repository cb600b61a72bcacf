"""The endpoints of the API that show one package or one change in detail, and the search."""

from __future__ import annotations

from http import HTTPStatus

from reconciler.git.errors import GitError
from reconciler.inspect.draft_content import DraftMovedError
from reconciler.inspect.package_content import PackageMissingError
from reconciler.krm.field_text import describe_choice, quote_value
from reconciler.output.envelope import CommandResult
from reconciler.output.fleet.detail_results import (
    ChangeDiffResult,
    FoundObject,
    PackageHistoryResult,
    SearchResult,
    build_change_diff,
    build_package_history,
    build_search_result,
)
from reconciler.output.fleet.model import ReviewChange
from reconciler.reconcile.failures import repository_boundary
from reconciler.review.restricted_index import hide_publication_names
from reconciler.server.api.endpoint import (
    PACKAGE_PARAMETER,
    TARGET_PARAMETER,
    ApiRequest,
    Endpoint,
    Parameter,
    create_missing_error,
    create_unreadable_error,
    find_change,
    find_row,
)
from reconciler.server.api.paging import read_page
from reconciler.server.api.problems import ApiError
from reconciler.server.console.search import build_result, search
from reconciler.server.console.selected_drafts import select_member, select_variant


def _get_history(request: ApiRequest) -> CommandResult:
    target, package = request.query["target"], request.query["package"]
    row = find_row(request.index, target, package)
    try:
        with repository_boundary(f"the package {target}/{package}"):
            publications = request.context.packages.read_publications(target, package)
    except PackageMissingError:
        raise create_missing_error("package", f"{target}/{package}") from None
    except GitError as error:
        raise create_unreadable_error(request, error) from None
    page = read_page(publications, request)
    hidden = request.hidden_names
    shown = [hide_publication_names(publication, hidden) for publication in page.items]
    return build_package_history(request.index, row, shown, page.total, page.cursor)


def _get_diff(request: ApiRequest) -> CommandResult:
    change = find_change(request)
    key, target = request.query.get("variant", ""), request.query.get("target", "")
    _check_draft(change, key, target)
    variant = select_variant(change, key, target)
    member = select_member(variant, target)
    try:
        with repository_boundary("the content of a draft"):
            diffs = request.context.contents.read(member, variant.content.changes).diffs
    except DraftMovedError:
        raise ApiError(
            "DraftMoved", f"the draft of {member.target}/{member.package} has changed since the last pass",
            HTTPStatus.CONFLICT, "Try again after the next pass.",
        ) from None  # fmt: skip
    except GitError as error:
        raise create_unreadable_error(request, error) from None
    page = read_page(diffs, request)
    return build_change_diff(request.index, change, variant, member, diffs, page.items, page.cursor)


def _check_draft(change: ReviewChange, key: str, target: str) -> None:
    """Check that a change has the requested variant, and that this variant has a draft of the requested target.

    Raises:
        ApiError: There is no such variant or draft.
    """
    variants = [variant for variant in change.variants if key in ("", variant.key)]
    if not variants:
        keys = describe_choice([variant.key for variant in change.variants])
        raise ApiError("InvalidParameter", f"variant: must be {keys}, but is {quote_value(key[:40])}")
    if target and not any(member.target == target for variant in variants for member in variant.members):
        raise create_missing_error("target", target)


def _search(request: ApiRequest) -> CommandResult:
    groups = dict(search(request.index, request.query["q"]))
    page = read_page([(kind, found) for kind, items in groups.items() for found in items], request)
    results = [build_result(kind, found) for kind, found in page.items]
    items = [
        FoundObject.model_validate(
            {"type": result.kind, "title": result.title, "page": result.url, "detail": result.detail}
        )
        for result in results
    ]
    counts = {kind: len(found) for kind, found in groups.items()}
    return build_search_result(request.index, items, counts, page.cursor)


DETAIL_ENDPOINTS = (
    Endpoint(
        "/changes/{key}/diff", "The differences of one draft of a variant", ChangeDiffResult, _get_diff,
        (
            Parameter("variant", "The key of the variant. The default is the variant with the most targets."),
            Parameter("target", "The target of the draft. The default is the first target of the variant."),
        ),
        is_list=True,
        refusals={
            "409": "The draft has changed since the last pass.",
            "410": "The change is not open any more, or the cursor is not valid any more.",
        },
    ),
    Endpoint(
        "/history", "The recorded revisions of a package, the newest first", PackageHistoryResult, _get_history,
        (TARGET_PARAMETER, PACKAGE_PARAMETER), is_list=True,
    ),
    Endpoint(
        "/search", "Search changes, resources, targets, packages, config objects and finding codes by name",
        SearchResult, _search,
        (Parameter("q", "Words that a name must contain, separated by spaces.", is_required=True),), is_list=True,
    ),
)  # fmt: skip
"""The endpoints about one package or one change, and the search."""
