"""The words of a draft's pull request: conflicts first, then what changes and why, and how to come to the same.

They stand between two marks; what people write around them stays. The first mark bears a digest of title and words:
as long as it says what we would say, nothing is written, whatever people made of the title.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from reconciler.krm.digest import digest
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.open_drafts import Reason
from reconciler.planning.plan import grows
from reconciler.reporting.conflicts import conflict_summary
from reconciler.reporting.markdown import code
from reconciler.reporting.open_drafts import (
    PackageSheet,
    Sheet,
    draft_lines,
    package_conflicts,
    package_gates,
    package_title,
    reproduce_lines,
)
from reconciler.reporting.overrides import override_lines
from reconciler.reporting.package_status import inputs, owner_of, task_words, text, upstream
from reconciler.reporting.review import sameness
from reconciler.reporting.templates import child_lines
from reconciler.reporting.values import count, one_line, shorten

TITLE_WIDTH = 120
VERDICT_WIDTH = 140
# below what GitHub takes, 65,536 characters, with room for what people add
_LONGEST = 50_000
# characters that the list of conflicts and gates may have, and how many of them do not count against the packages
_LONGEST_LIST = 40_000
_LIST_ALLOWANCE = 10_000
_DETAILED = 30
_LINES = 20
_WIDTH = 400
_NAMED = 5
_DIGITS = 12
_END = "<!-- reconciler:end -->"
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
# the address of a commit's page, by the address of its repository
Page = Callable[[str, str], str]
_BLOCK = re.compile(r"<!-- reconciler:begin ([0-9a-f]{12}) -->.*?" + re.escape(_END), re.DOTALL)


@dataclass(frozen=True)
class RequestWords:
    """What a pull request says: `change` is a digest of what its draft changes, `faults` are in the way of publishing.

    `conflicts` are in the way as well, until a reviewer accepts them. `parts` are the sections of the body but for the
    first. `essence` is a digest of the content: the body is only replaced when it differs. The merge of other clusters,
    or an unrelated change of the cluster branch, does not change it.
    """

    title: str
    change: str
    faults: tuple[Reason, ...]
    parts: tuple[str, ...]
    essence: str
    conflicts: tuple[Reason, ...] = ()

    def passes(self, *, accepted: bool = False) -> bool:
        """Return whether nothing is in the way of publishing; `accepted`: a reviewer accepted the conflicts."""
        return not self._in_the_way(accepted)

    def verdict(self, *, accepted: bool = False) -> str:
        """Return what keeps the draft from being published, or that nothing does, in one line."""
        faults = self._in_the_way(accepted)
        if not faults:
            if self.conflicts:
                return "nothing is in the way of publishing: a reviewer accepted the conflicts"
            return "nothing is in the way of publishing"
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        first = one_line(f"{faults[0].reason}: {faults[0].message}")
        return shorten(first, VERDICT_WIDTH - len(more)) + more

    def _in_the_way(self, accepted: bool) -> tuple[Reason, ...]:
        return self.faults if accepted else (*self.conflicts, *self.faults)

    def body(self, others: Sequence[str]) -> str:
        """Return the body with its marks; `others` are the other clusters whose drafts change the same."""
        words = "\n\n".join([_sameness(self.change, sorted(others)), *self.parts])
        return f"<!-- reconciler:begin {self.essence} -->\n{words}\n{_END}"


def request_words(sheet: Sheet, more_faults: Iterable[Reason], page: Page, label: str = "") -> RequestWords:
    """Return what is said of a draft, of which all contents are shown; `more_faults` are known of it besides.

    `page` gives the address of a commit's page, "" where it has none; the config's repository is called "". `label` is
    the one with which a reviewer accepts conflicts, "" where the forge cannot be asked for labels.
    """
    title, change = _title(sheet), _change_digest(sheet)
    faults = (*sheet.draft.refusals(), *more_faults)
    conflicts = tuple(_to_be_labelled(one, label) if label else one for one in sheet.draft.open_conflicts())
    obstacles = [*_obstacles(sheet), *(f"{one.reason}: {one.message}" for one in more_faults)]
    listed = "\n".join(["**In the way**", "", *_items(obstacles), *_acceptance(conflicts, label)]) if obstacles else ""
    parts = tuple(filter(None, (listed, *_packages(sheet, page, len(listed)), _closing(sheet))))
    causes = [one.causes for one in sheet.contents]
    return RequestWords(title, change, faults, parts, _short(digest([title, change, obstacles, causes])), conflicts)


def _to_be_labelled(conflicts: Reason, label: str) -> Reason:
    """Return why a draft with conflicts is not to be merged, for reviewers of its pull request."""
    what = conflicts.message.partition(";")[0]
    return Reason(conflicts.reason, f"{what}; review them and set the label {label}")


def _acceptance(conflicts: Sequence[Reason], label: str) -> tuple[str, ...]:
    if not conflicts or not label:
        return ()
    sentence = (
        f"The check `reconciler` fails until a reviewer sets the label `{label}` on this pull request, which accepts"
        " the conflicts. The label counts for the head that it was set on: after a push it is removed, and must be set"
        " again."
    )
    return ("", sentence)


def _items(lines: Sequence[str]) -> list[str]:
    """Return lines as items, as many as fit into a body, and one that counts the rest."""
    items = [_item(line) for line in lines]
    sizes = accumulate(len(item) + 1 for item in items)
    shown = sum(size <= _LONGEST_LIST for size in sizes)
    if shown == len(items):
        return items
    return [*items[:shown], f"- … and {len(items) - shown} more; the status files on the branch list every conflict"]


def _change_digest(sheet: Sheet) -> str:
    told = [_same(one) for one in sheet.contents]
    return _short(digest([told, list(sheet.beside)]))


def _same(one: PackageSheet) -> str:
    package = one.package
    gates = [[gate.reason, gate.message] for gate in (*package.unmet, *package.faults)]
    what = [package.removed, text(package.status, "task"), *one.changes.sameness, gates, package_conflicts(package)]
    what += [one.templates] if one.templates else []
    return sameness(what, owner_of(package.status).rpartition("/")[2])


def _title(sheet: Sheet) -> str:
    packages = sheet.draft.packages
    name = sheet.draft.destination.name
    if len(packages) == 1:
        (one,) = packages
        what = "remove it" if one.removed else task_words(one.status) or "as people made it"
        title = f"{name}/{one.package}: {what}"
    else:
        verb = "remove " if sheet.draft.is_removal else ""
        named = ", ".join(one.package for one in packages)
        title = f"{name}: {verb}{count(len(packages), 'package')} ({named})"
    chosen = (str(conflict.get("chosen")) for one in packages for conflict in one.conflicts)
    conflicts = f"; {summary}" if (summary := conflict_summary(chosen)) else ""
    return shorten(one_line(title), TITLE_WIDTH - len(conflicts)) + conflicts


def _sameness(change: str, others: Sequence[str]) -> str:
    if not others:
        return f"Change `{change}`."
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    named = ", ".join(code(one_line(name)) for name in others[:_NAMED])
    return f"Same change as {count(len(others), 'other')}, `{change}`: {named}{more}."


def _obstacles(sheet: Sheet) -> Iterator[str]:
    for one in sheet.draft.packages:
        yield from (f"{one.package}: {line}" for line in package_conflicts(one))
    for one in sheet.draft.packages:
        yield from package_gates(sheet.draft, one)
    yield from draft_lines(sheet)


def _packages(sheet: Sheet, page: Page, taken: int) -> Iterator[str]:
    shown, length = 0, max(0, taken - _LIST_ALLOWANCE)
    for one in sheet.contents[:_DETAILED]:
        part = _package(sheet, one, page)
        length += len(part)
        if length > _LONGEST:
            break
        shown += 1
        yield part
    if left := len(sheet.contents) - shown:
        yield f"And {count(left, 'more package')}; `reconciler show` lists them all."


def _package(sheet: Sheet, one: PackageSheet, page: Page) -> str:
    overridden = override_lines(one.package.status.get("overrides"), _LINES)
    told = [*(f"templates: {line}" for line in one.templates)]
    told += [*one.changes.summary_lines(_LINES), *one.changes.file_lines(_LINES)]
    told += [f"child: {line}" for line in child_lines(one.package.status.get("templates"), _LINES)]
    told += [*(f"overridden: {line}" for line in overridden), *(f"why: {why}" for why in one.causes)]
    told += [f"reproduce: {line}" for line in reproduce_lines(sheet, one)]
    title = f"### {code(one_line(package_title(one.package)))}"
    return "\n".join([title, "", *map(_item, told), *_links(one, page)])


def _links(one: PackageSheet, page: Page) -> Iterator[str]:
    source = upstream(one.package.status, "to")
    asked = (("", text(inputs(one.package.status), "config")), (text(source, "repo"), text(source, "commit")))
    commits = [(name, repo, commit) for name, (repo, commit) in zip(("config", "upstream"), asked, strict=True)]
    # a status file is open to everybody's edits, and must not put an address of theirs into our words
    pages = [(name, page(repo, commit)) for name, repo, commit in commits if _COMMIT.fullmatch(commit)]
    if links := [f"[{name}]({url})" for name, url in pages if url]:
        yield f"- {', '.join(links)}"


def _item(line: str) -> str:
    # whatever people wrote stands as code, where it names nobody, and must not end our part of the body
    return f"- {code(shorten(one_line(line), _WIDTH).replace('<!--', '<! --'))}"


def _closing(sheet: Sheet) -> str:
    branch = code(one_line(sheet.draft.branch))
    what = "removes these packages" if sheet.draft.is_removal else "publishes this"
    return (
        f"Merging {what}; closing declines it, and it comes back only when it would be another. "
        f"What you commit to {branch} is kept through updates."
    )


def announcement(plan: DestinationPlan) -> tuple[str, str]:
    """Return title and body of a request that is opened by the push of its commits: what these say themselves."""
    messages = [step.message for grow in grows(plan) for step in grow.steps]
    subjects = [message.partition("\n")[0] for message in messages]
    name = plan.destination.name
    title = subjects[0] if len(subjects) == 1 else f"{name}: {count(len(subjects), 'package')}"
    # the last paragraph is for tools
    told = [message.rstrip().rpartition("\n\n")[0] for message in messages]
    lines = [line.removeprefix("- ") for one in told for line in one.splitlines() if line.strip()]
    return shorten(one_line(title), TITLE_WIDTH), "\n".join(map(_item, lines))


def is_ours(body: str) -> bool:
    """Return whether a body holds words of ours."""
    return _BLOCK.search(body) is not None


def body_with(standing: str, body: str) -> str | None:
    """Return a standing body with our words in it as they are to be; None when they already are, or were taken out.

    What stands around them is people's, and stays.
    """
    found, new = _BLOCK.search(standing), _BLOCK.search(body)
    if found is None or new is None or found.group(1) == new.group(1):
        return None
    return standing[: found.start()] + new.group() + standing[found.end() :]


def _short(name: str) -> str:
    return name.removeprefix("sha256:")[:_DIGITS]
