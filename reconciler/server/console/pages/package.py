"""One package of a target: its published resources, the provenance of its values, and its revisions."""

from __future__ import annotations

from reconciler.git.errors import GitError
from reconciler.inspect.package_content import PackageMissingError, PublishedPackage
from reconciler.lazy_dataclasses import replace
from reconciler.output.report.explanations import build_explanation
from reconciler.output.report.model import ReportTarget
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.reconcile.remotes.targets import UnknownTargetError
from reconciler.review.permissions import PackageScope
from reconciler.review.restricted_index import hide_publication_names, list_hidden_names
from reconciler.review.review_requests import ReviewRequestError
from reconciler.server.console.failed_parts import report_failed_part
from reconciler.server.console.forms import Form
from reconciler.server.console.listing import is_number, read_choice, read_text
from reconciler.server.console.page import PageContent, PageRequest, Redirect
from reconciler.server.console.pages.missing import build_missing_page, build_refusal_page
from reconciler.server.console.pages.value import MAX_CHARACTERS, build_value_page
from reconciler.server.console.shown_resources import list_shown_resources
from reconciler.server.console.topics import build_package_topic, list_package_findings
from reconciler.server.console.urls import build_package_url

_NOT_RESTORED = "The revision cannot be restored"
_VIEWS = ("resources", "fields", "values", "history", "files")


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    name, package = page.request.path_params["target"], page.request.path_params["package"]
    target = page.index.by_target.get(name)
    row = target.by_package.get(package) if target else None
    if target is None or row is None:
        return build_missing_page("package", f"{name}/{package}")
    query = page.request.query_params
    resource, pointer = (read_text(query, parameter, MAX_CHARACTERS) for parameter in ("resource", "pointer"))
    if resource and pointer:
        return build_value_page(page, target, row, resource, pointer)
    view = read_choice(query, "view", _VIEWS, "resources")
    content, error = _read(page, name, package, should_read_configs=view == "history")
    explanation = build_explanation(ReportTarget(name, package), content.status)
    tree = read_text(query, "tree", MAX_CHARACTERS)
    return PageContent(
        "package.html",
        {
            "target": target,
            "row": row,
            "content": content,
            "error": error,
            "explanation": explanation,
            "resources": list_shown_resources(content.resources, explanation.values, tree)
            if view == "resources"
            else (),
            "view": view,
            "views": _VIEWS,
            "findings": list_package_findings(page.index, name, package),
        },
        topics=(build_package_topic(name, package),),
    )


def _read(page: PageRequest, target: str, package: str, *, should_read_configs: bool) -> tuple[PublishedPackage, str]:
    """Return the content of a package, or the reason why it cannot be read."""
    try:
        with repository_boundary(f"the package {target}/{package}"):
            content = page.context.packages.read(target, package, should_read_configs=should_read_configs)
        hidden = list_hidden_names(page.whole_index, page.index)
        publications = tuple(hide_publication_names(publication, hidden) for publication in content.publications)
        return replace(content, publications=publications), ""
    except PackageMissingError as error:
        return PublishedPackage(), str(error)
    except GitError as error:
        return PublishedPackage(), report_failed_part(error)


def restore(page: PageRequest, form: Form) -> PageContent | Redirect:
    """Create a draft with the content of an earlier revision."""
    context, session = page.context, page.session
    name, package, number = form.get("target"), form.get("package"), form.get("revision")
    entry = page.whole_index.by_target.get(name)
    row = entry.by_package.get(package) if entry else None
    scope = PackageScope(entry.labels, package, row.tenant) if entry and row else None
    if scope is None or not session.permissions.can_read(scope):
        return build_missing_page("package", f"{name}/{package}")
    if context.state.is_read_only:
        return build_refusal_page(
            _NOT_RESTORED,
            "This process is a read-only standby. Restore the revision in the console of the daemon that runs without"
            " --read-only.",
        )
    # Check the permission for a low risk, because the draft publishes nothing. The approval checks the risk of the
    # content.
    if refusal := session.permissions.find_refusal(scope, "low"):
        return build_refusal_page(_NOT_RESTORED, refusal.message)
    try:
        with repository_boundary(f"restoring {name}/{package}"):
            context.restorer.restore(name, package, int(number) if is_number(number) else 0, session.person)
    except (ReviewRequestError, UnknownTargetError) as error:
        return build_refusal_page(_NOT_RESTORED, str(error))
    except GitError as error:
        log_if_internal(error)
        return build_refusal_page(_NOT_RESTORED, error.full_message)
    return Redirect(build_package_url(name, package, restored=number))
