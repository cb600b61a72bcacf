"""The effects of changed HelmReleases in a draft, i.e. changes of the resources that Flux creates.

The page of a change loads these effects with a separate request.
"""

from __future__ import annotations

import json

from reconciler.inspect.release_effects import DraftReleaseEffects
from reconciler.output.fleet.model import ChangeVariant, DraftMember, VariantContent
from reconciler.packages.charts.helm_release import HELM_RELEASE_KIND
from reconciler.review.restricted_index import HIDDEN_TEXT, list_hidden_names
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.pages.missing import build_missing_page
from reconciler.server.console.selected_drafts import select_member, select_variant


def has_releases(content: VariantContent) -> bool:
    """Return whether a draft changes a HelmRelease."""
    return any(change.key.kind == HELM_RELEASE_KIND for change in content.changes.objects)


def build_page(page: PageRequest) -> PageContent:
    """Build the page. The charts of the release are rendered if the effects are not cached."""
    key, query = page.request.path_params["key"], page.request.query_params
    change = page.index.by_change.get(key)
    if change is None:
        return build_missing_page("change", key)
    variant = select_variant(change, query.get("variant", ""), query.get("target", ""))
    member = select_member(variant, query.get("target", ""))
    releases = _read(page, variant, member)
    is_hidden = releases is not None and releases.error == HIDDEN_TEXT
    values = {"change": change, "first": member, "releases": releases, "is_hidden": is_hidden}
    return PageContent("release_effects.html", values)


def _read(page: PageRequest, variant: ChangeVariant, member: DraftMember) -> DraftReleaseEffects | None:
    """Return the effects of a draft, or the reason why the person may not read them. None if there are no releases."""
    if not has_releases(variant.content):
        return None
    releases = page.context.effects.read(member, page.index.config)
    if list_hidden_names(page.whole_index, page.index).occur_in(f"{releases.error} {json.dumps(releases.effects)}"):
        return DraftReleaseEffects(releases.command, error=HIDDEN_TEXT)
    return releases
