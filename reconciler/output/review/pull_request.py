"""Builds the title and body of the pull request of a draft: blocking reasons and conflicts first, then each package.

The body has a generated block between two markers. The first marker contains a digest of the content. The block is
replaced only if this digest changes, and text around the block is always kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from reconciler.krm.json_text import compute_digest
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.plan.overview import build_comparison_key
from reconciler.output.review.formats import (
    format_content_lines,
    format_draft_lines,
    format_package_conflicts,
    format_package_gates,
    format_package_title,
)
from reconciler.output.review.models import DraftEntry, DraftPackageEntry
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails, build_draft_entry
from reconciler.output.status.package_sections import (
    format_conflict_summary,
    format_recorded_owner,
    read_inputs,
    read_text,
    read_upstream,
)
from reconciler.output.text import format_code, shorten, to_one_line
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.target_plan import list_pushes
from reconciler.planning.lifecycle.open_drafts import BlockingReason

TITLE_WIDTH = 120
VERDICT_WIDTH = 140
# Leave space for text that people add, because GitHub accepts 65,536 characters.
_MAX_PACKAGE_CHARACTERS = 50_000
_MAX_LIST_CHARACTERS = 40_000
# If the list of blocking reasons and conflicts has more characters than this number, less space remains for the
# packages.
_LIST_ALLOWANCE = 10_000
_MAX_PACKAGES = 30
_MAX_LINES = 20
_MAX_LINE_CHARACTERS = 400
_MAX_CLUSTERS = 5
_DIGEST_CHARACTERS = 12
_END = "<!-- reconciler:end -->"
_BLOCK = re.compile(r"<!-- reconciler:begin ([0-9a-f]{12}) -->.*?" + re.escape(_END), re.DOTALL)
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
CommitPageUrl = Callable[[str, str], str]
"""Returns the URL of a web page from repository URL and commit ID. Returns "" if there is no such page."""


@dataclass(frozen=True)
class PullRequestText:
    """The title and body of a pull request.

    Attributes:
        change_digest: The digest of the change. Drafts with equal changes have equal values of `change_digest`.
        blocking_reasons: The reasons that block publication, without conflicts.
        sections: The sections of the body after the first section.
        content_digest: The digest of the important content: the title, the change, its causes, and the items to check
            before the merge. The forge receives a new body only if `content_digest` changes.
        conflicts: The conflicts that block publication until a reviewer accepts them.
    """

    title: str
    change_digest: str
    blocking_reasons: tuple[BlockingReason, ...]
    sections: tuple[str, ...]
    content_digest: str
    conflicts: tuple[BlockingReason, ...] = ()

    def can_publish(self, *, has_accepted_conflicts: bool = False) -> bool:
        """Return whether nothing blocks publication."""
        return not self._list_reasons(has_accepted_conflicts)

    def format_verdict(self, *, has_accepted_conflicts: bool = False) -> str:
        """Return the first blocking reason and the number of the other reasons, or that nothing blocks publication."""
        reasons = self._list_reasons(has_accepted_conflicts)
        if not reasons:
            acceptance = ": a reviewer accepted the conflicts" if self.conflicts else ""
            return f"nothing blocks publication{acceptance}"
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        first = to_one_line(f"{reasons[0].reason}: {reasons[0].message}")
        return shorten(first, VERDICT_WIDTH - len(more)) + more

    def _list_reasons(self, has_accepted_conflicts: bool) -> tuple[BlockingReason, ...]:
        return self.blocking_reasons if has_accepted_conflicts else (*self.conflicts, *self.blocking_reasons)

    def format_body(self, other_clusters: Sequence[str]) -> str:
        """Return the part of the pull request body that the reconciler generates.

        Args:
            other_clusters: The names of other clusters whose draft has an equal change.
        """
        content = "\n\n".join([_format_equal_changes(self.change_digest, sorted(other_clusters)), *self.sections])
        return f"<!-- reconciler:begin {self.content_digest} -->\n{content}\n{_END}"


def build_pull_request_text(
    draft: DraftDetails, extra_reasons: Iterable[BlockingReason], get_commit_url: CommitPageUrl, label: str = ""
) -> PullRequestText:
    """Return the text of the pull request for a draft with all its packages.

    Args:
        extra_reasons: The reasons that block publication, in addition to the reasons of the draft.
        get_commit_url: Returns the URL of the page of a commit. The repository URL "" selects the config repository.
        label: The label with which a reviewer accepts conflicts. "" if the forge does not support labels.
    """
    entry = build_draft_entry(draft)
    title, change_digest = _format_title(entry), _compute_change_digest(draft, entry)
    reasons = (*draft.draft.list_refusals(), *extra_reasons)
    unaccepted = draft.draft.list_unaccepted_conflicts()
    conflicts = tuple(_add_label_step(reason, label) if label else reason for reason in unaccepted)
    obstacles = [*_list_obstacles(entry), *(f"{reason.reason}: {reason.message}" for reason in extra_reasons)]
    lines = ["**Check before merging**", "", *_format_items(obstacles), *_format_acceptance(conflicts, label)]
    obstacle_section = "\n".join(lines) if obstacles else ""
    packages = _format_packages(draft, entry, get_commit_url, len(obstacle_section))
    sections = tuple(filter(None, (obstacle_section, *packages, _format_closing(entry))))
    causes = [package.causes for package in draft.packages]
    content_digest = _shorten_digest(compute_digest([title, change_digest, obstacles, causes]))
    return PullRequestText(title, change_digest, reasons, sections, content_digest, conflicts)


def _add_label_step(conflicts: BlockingReason, label: str) -> BlockingReason:
    """Return a blocking reason with the next step for reviewers: review the conflicts, and set the label."""
    summary = conflicts.message.partition(";")[0]
    return BlockingReason(conflicts.reason, f"{summary}; review the conflicts and set the label {label}")


def _format_acceptance(conflicts: Sequence[BlockingReason], label: str) -> tuple[str, ...]:
    if not conflicts or not label:
        return ()
    text = (
        f"The check `reconciler` fails until a reviewer accepts the conflicts with the label `{label}` on this pull"
        " request. The label is valid for the current head only. A push removes the label, and a reviewer must"
        " set the label again."
    )
    return ("", text)


def _format_items(lines: Sequence[str]) -> list[str]:
    """Return the list items that the body can contain. If items are omitted, the last item has their number."""
    items = [_format_item(line) for line in lines]
    sizes = accumulate(len(item) + 1 for item in items)
    item_count = sum(size <= _MAX_LIST_CHARACTERS for size in sizes)
    if item_count == len(items):
        return items
    return [
        *items[:item_count],
        f"- and {len(items) - item_count} more; the status files on the branch list every conflict",
    ]


def _compute_change_digest(details: DraftDetails, draft: DraftEntry) -> str:
    conflicts = {package.package: format_package_conflicts(package) for package in draft.packages}
    packages = [_build_package_key(package, conflicts[package.package.package]) for package in details.packages]
    return _shorten_digest(compute_digest([packages, list(details.extra_paths)]))


def _build_package_key(details: DraftPackageDetails, conflicts: Sequence[str]) -> str:
    package = details.package
    gates = [[gate.reason, gate.message] for gate in (*package.unmet_gates, *package.errors)]
    content = [
        package.is_removed,
        read_text(package.status, "task"),
        *details.changes.comparison_key,
        gates,
        conflicts,
    ]
    content += [details.templates] if details.templates else []
    return build_comparison_key(content, format_recorded_owner(package.status).rpartition("/")[2])


def _format_title(draft: DraftEntry) -> str:
    if len(draft.packages) == 1:
        (package,) = draft.packages
        result = "remove the package" if package.action == "removed" else package.action or "local changes"
        title = f"{draft.target}/{package.package}: {result}"
    else:
        verb = "remove " if draft.is_removal else ""
        names = ", ".join(package.package for package in draft.packages)
        title = f"{draft.target}: {verb}{format_count(len(draft.packages), 'package')} ({names})"
    chosen = (conflict.chosen for package in draft.packages for conflict in package.conflicts)
    conflicts = f"; {summary}" if (summary := format_conflict_summary(chosen)) else ""
    return shorten(to_one_line(title), TITLE_WIDTH - len(conflicts)) + conflicts


def _format_equal_changes(change_digest: str, other_clusters: Sequence[str]) -> str:
    if not other_clusters:
        return f"Change `{change_digest}`."
    more = f" and {len(other_clusters) - _MAX_CLUSTERS} more" if len(other_clusters) > _MAX_CLUSTERS else ""
    names = ", ".join(format_code(to_one_line(name)) for name in other_clusters[:_MAX_CLUSTERS])
    return f"Same change as {format_count(len(other_clusters), 'other')}, `{change_digest}`: {names}{more}."


def _list_obstacles(draft: DraftEntry) -> Iterator[str]:
    for package in draft.packages:
        yield from (f"{package.package}: {line}" for line in format_package_conflicts(package))
    for package in draft.packages:
        yield from format_package_gates(draft, package)
    yield from format_draft_lines(draft)


def _format_packages(
    details: DraftDetails, draft: DraftEntry, get_commit_url: CommitPageUrl, used: int
) -> Iterator[str]:
    entries = {package.package: package for package in draft.packages}
    count, length = 0, max(0, used - _LIST_ALLOWANCE)
    for package in details.packages[:_MAX_PACKAGES]:
        section = _format_package(entries[package.package.package], package, get_commit_url)
        length += len(section)
        if length > _MAX_PACKAGE_CHARACTERS:
            break
        count += 1
        yield section
    if rest := len(details.packages) - count:
        yield f"And {format_count(rest, 'more package')}; `reconciler show` lists all packages."


def _format_package(entry: DraftPackageEntry, package: DraftPackageDetails, get_commit_url: CommitPageUrl) -> str:
    assert entry.content, "the details of a pull request contain all packages of the draft"
    effects = (f"templates: {line}" for line in entry.content.template_effects)
    lines = [*effects, *format_content_lines(entry.content, _MAX_LINES)]
    title = f"### {format_code(to_one_line(format_package_title(entry)))}"
    return "\n".join([title, "", *map(_format_item, lines), *_format_links(package, get_commit_url)])


def _format_links(package: DraftPackageDetails, get_commit_url: CommitPageUrl) -> Iterator[str]:
    status = package.package.status
    upstream = read_upstream(status, "to")
    commits = (
        ("config", "", read_text(read_inputs(status), "config")),
        ("upstream", read_text(upstream, "repo"), read_text(upstream, "commit")),
    )
    # Link only valid commit IDs, because anyone can edit a status file.
    urls = [(name, get_commit_url(repo, commit)) for name, repo, commit in commits if _COMMIT.fullmatch(commit)]
    if links := [f"[{name}]({url})" for name, url in urls if url]:
        yield f"- {', '.join(links)}"


def _format_item(line: str) -> str:
    # Format user input as code, so that user input cannot mention a person or end the generated block.
    return f"- {format_code(shorten(to_one_line(line), _MAX_LINE_CHARACTERS).replace('<!--', '<! --'))}"


def _format_closing(draft: DraftEntry) -> str:
    branch = format_code(to_one_line(draft.branch))
    purpose = "delete these packages" if draft.is_removal else "publish this draft"
    return (
        f"Merge this pull request to {purpose}. Close this pull request to decline the draft. The draft is proposed"
        f" again only after its content changed. Commits that you push to {branch} are kept when the draft is updated."
    )


def format_announcement(plan: TargetPlan) -> tuple[str, str]:
    """Return title and body of a pull request that a push opens. The texts come from the commit messages."""
    messages = [commit.message for push in list_pushes(plan) for commit in push.commits]
    titles = [message.partition("\n")[0] for message in messages]
    title = titles[0] if len(titles) == 1 else f"{plan.target.name}: {format_count(len(titles), 'package')}"
    # Remove the last paragraph, because it contains the trailers for tools.
    bodies = [message.rstrip().rpartition("\n\n")[0] for message in messages]
    lines = [line.removeprefix("- ") for body in bodies for line in body.splitlines() if line.strip()]
    return shorten(to_one_line(title), TITLE_WIDTH), "\n".join(map(_format_item, lines))


def has_generated_block(body: str) -> bool:
    """Return whether a body contains a generated block."""
    return _BLOCK.search(body) is not None


def replace_generated_block(current_body: str, new_body: str) -> str | None:
    """Replace the generated block of a body by the generated block of a new body. Keep the text around the block.

    Returns:
        None if the block is up to date, or if a person removed the block.
    """
    current, new = _BLOCK.search(current_body), _BLOCK.search(new_body)
    if current is None or new is None or current.group(1) == new.group(1):
        return None
    return current_body[: current.start()] + new.group() + current_body[current.end() :]


def _shorten_digest(digest: str) -> str:
    return digest.removeprefix("sha256:")[:_DIGEST_CHARACTERS]
