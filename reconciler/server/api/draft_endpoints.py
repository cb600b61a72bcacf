"""The endpoint of the API with the results of the commands `drafts` and `show`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from reconciler.git.errors import GitError
from reconciler.inspect.draft_list import DraftSelection, ReadDrafts
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.envelope import CommandResult
from reconciler.output.fleet.model import DraftMember, FleetIndex, TargetEntry
from reconciler.output.fleet.results import create_api_metadata
from reconciler.output.review.formats import format_draft_list_text, format_draft_markdown, format_draft_text
from reconciler.output.review.models import DraftListResult, DraftListSummary
from reconciler.output.review.open_drafts import build_draft_list_result
from reconciler.output.text_result import TextResult, TextSummary
from reconciler.reconcile.failures import repository_boundary
from reconciler.review.drafts import list_target_errors
from reconciler.review.restricted_drafts import hide_names_in_draft
from reconciler.review.restricted_index import hide_names
from reconciler.server.api.endpoint import (
    ApiRequest,
    Endpoint,
    Parameter,
    create_missing_error,
    create_unreadable_error,
    find_row,
    read_number,
    read_selector,
)
from reconciler.server.api.paging import Page, read_page
from reconciler.server.api.problems import ApiError
from reconciler.server.console.filters import select_targets

_MAX_DIFF_LINES = 10_000


@dataclass(frozen=True)
class _Branch:
    """A draft branch of a target in the index, with the drafts of its packages."""

    target: str
    name: str
    members: tuple[DraftMember, ...]

    @property
    def is_proposed(self) -> bool:
        return self.members[0].lifecycle == "Proposed"


def _list_drafts(request: ApiRequest) -> CommandResult:
    targets = _select_targets(request)
    package = request.query.get("package", "")
    branches = [branch for target in targets for branch in _list_branches(target, package)]
    page = read_page(branches, request)
    failed = {target.name: target.read_error for target in targets if target.read_error}
    found = _read_drafts(request, page.items, package, {} if request.query.get("cursor") else failed)
    lines = read_number(request.query, "diffLines", _MAX_DIFF_LINES)
    result = _build_result(request, branches, page, found, lines, len(failed))
    output = request.query.get("output", "json")
    return result if output == "json" else _format_result(request, result, output)


def _select_targets(request: ApiRequest) -> list[TargetEntry]:
    names, package = request.query.getlist("target"), request.query.get("package", "")
    selector = read_selector(request.query, "labels")
    if names and selector:
        raise ApiError("InvalidParameter", "labels: must not be set together with the parameter `target`")
    if package and len(names) != 1:
        raise ApiError("InvalidParameter", "package: requires exactly one parameter `target`")
    for name in names:
        if name not in request.index.by_target:
            raise create_missing_error("target", name)
    if package:
        find_row(request.index, names[0], package)
    selected = select_targets(request.index, selector) if selector else {*names}
    return [target for target in request.index.targets if target.name in selected or not (names or selector)]


def _list_branches(target: TargetEntry, package: str) -> Iterator[_Branch]:
    """Yield the draft branches of a target, sorted by name. If `package` is set, skip branches without it."""
    members: dict[str, list[DraftMember]] = {}
    for draft in target.drafts:
        members.setdefault(draft.member.branch, []).append(draft.member)
    for name, drafts in sorted(members.items()):
        if not package or any(member.package == package for member in drafts):
            yield _Branch(target.name, name, tuple(drafts))


def _read_drafts(
    request: ApiRequest, branches: Iterable[_Branch], package: str, failed: Mapping[str, str]
) -> ReadDrafts:
    groups: dict[str, list[_Branch]] = {}
    for branch in branches:
        groups.setdefault(branch.target, []).append(branch)
    has_content = request.query.get("content") == "true"
    selections = {
        target: _build_selection(request.index, target, found, package, has_content=has_content)
        for target, found in groups.items()
    }
    try:
        with repository_boundary("the open drafts"):
            return request.context.drafts.read(selections, failed)
    except GitError as error:
        raise create_unreadable_error(request, error) from None


def _build_selection(
    index: FleetIndex, target: str, branches: Iterable[_Branch], package: str, *, has_content: bool
) -> DraftSelection:
    packages = index.by_target[target].by_package.keys()
    shown: Set[str] = {package} if package else packages
    return DraftSelection({branch.name for branch in branches}, packages, shown if has_content else frozenset())


def _build_result(
    request: ApiRequest, branches: list[_Branch], page: Page[_Branch], found: ReadDrafts, lines: int, failures: int
) -> DraftListResult:
    hidden = request.hidden_names
    failed = [replace(target, error=hide_names(target.error, hidden)) for target in found.failed_targets]
    result = build_draft_list_result(found.drafts, "", list_target_errors(failed), lines)
    proposed = sum(branch.is_proposed for branch in branches)
    return result.model_copy(
        update={
            "metadata": create_api_metadata(request.index),
            "items": tuple(hide_names_in_draft(draft, hidden) for draft in result.items),
            "summary": DraftListSummary(drafts=len(branches), proposed=proposed, unreadable_targets=failures),
            "next": page.cursor,
        }
    )


def _format_result(request: ApiRequest, result: DraftListResult, output: str) -> TextResult:
    now = int(request.context.clock())
    if request.query.get("content") != "true":
        texts = [format_draft_list_text(result, now)]
    elif output == "markdown":
        texts = [format_draft_markdown(draft, now) for draft in result.items]
    else:
        has_color = request.query.get("color") == "true"
        texts = [format_draft_text(draft, now, has_color=has_color) for draft in result.items]
    return TextResult(
        metadata=result.metadata,
        items=tuple(texts),
        findings=result.findings,
        summary=TextSummary(exit_status=1 if result.findings else 0),
        next=result.next,
    )


DRAFT_ENDPOINTS = (
    Endpoint(
        "/drafts", "The open drafts, as in the output of `drafts` and `show`", DraftListResult, _list_drafts,
        (
            Parameter("target", "The name of a target. It can be repeated.", is_repeatable=True),
            Parameter("labels", "A label selector for targets."),
            Parameter("package", "Only drafts of this package of one target."),
            Parameter("content", "Whether the result contains the changes, as in `show`.", ("true", "false")),
            Parameter(
                "diffLines", f"The maximum number of diff lines per file, up to {_MAX_DIFF_LINES}. 0 omits diffs."
            ),
            Parameter(
                "output", "The form of the result: data, or the text of the command.", ("json", "text", "markdown")
            ),
            Parameter("color", "Whether diffs in the text are colored.", ("true", "false")),
        ),
        is_list=True, text_result=TextResult,
    ),
)  # fmt: skip
"""The endpoints about open drafts."""
