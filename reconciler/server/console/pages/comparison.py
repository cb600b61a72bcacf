"""The comparison of two targets: their packages side by side, and the values of one package on both targets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from reconciler.git.errors import GitError
from reconciler.inspect.package_content import PackageMissingError
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import PackageRow, TargetEntry
from reconciler.output.fleet.resource_diffs import ResourceDiff
from reconciler.reconcile.failures import repository_boundary
from reconciler.server.console.failed_parts import report_failed_part
from reconciler.server.console.listing import list_page, read_choice, read_text
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.shown_diffs import MAX_RESOURCE_LINES, find_hidden
from reconciler.server.console.topics import build_package_topic, build_target_topic

VIEWS = ("unified", "split")
_MAX_SUGGESTIONS = 10


@dataclass(frozen=True)
class PackagePair:
    """A package on two targets. `left` or `right` is None if the target does not have the package.

    Attributes:
        column: The name of the package, with `*` instead of the name of its target.
    """

    column: str
    left: PackageRow | None
    right: PackageRow | None

    @property
    def differences(self) -> tuple[str, ...]:
        """Phrases for the differences between the two packages. The contents of the packages are not compared."""
        if self.left is None or self.right is None:
            return tuple(f"only on {row.target}" for row in (self.left, self.right) if row)
        found = {
            "different upstream": self.left.upstream != self.right.upstream,
            "different state": self.left.state != self.right.state,
            "different local changes": self.left.is_edited or self.right.is_edited,
        }
        return tuple(phrase for phrase, is_different in found.items() if is_different)


def build_comparison_page(page: PageRequest, left: TargetEntry) -> PageContent:
    """Build the page that compares a target with the target in the query parameter `compare`.

    The query parameter `package` selects a package, whose values are compared.
    """
    query = page.request.query_params
    name = read_text(query, "compare")
    right = page.index.by_target.get(name)
    if right is None:
        suggestions = [target.name for target in page.index.targets if name.lower() in target.name.lower()]
        values = {"target": left, "name": name, "suggestions": suggestions[:_MAX_SUGGESTIONS]}
        return PageContent("comparison_choice.html", values, is_from_index=True)
    pairs = compare_targets(left, right)
    column = read_text(query, "package")
    # If several pairs have this column, use the first. Pairs with a package on both targets come before other pairs.
    pair = next((pair for pair in pairs if pair.column == column), None)
    if pair and pair.left and pair.right:
        return _build_values_page(page, pair.left, pair.right)
    shown = [pair for pair in pairs if pair.differences or query.get("only") != "different"]
    return PageContent(
        "comparison.html",
        {
            "left": left,
            "right": right,
            "listing": list_page(shown, query),
            "total": len(pairs),
            "different_count": sum(bool(pair.differences) for pair in pairs),
        },
        is_from_index=True,
        topics=(build_target_topic(left.name), build_target_topic(right.name)),
    )


def compare_targets(left: TargetEntry, right: TargetEntry) -> Sequence[PackagePair]:
    """Return the packages of two targets as sorted pairs. The names of a pair differ only in the name of the target."""
    sides: dict[str, tuple[list[PackageRow], list[PackageRow]]] = {}
    for number, target in enumerate((left, right)):
        for row in target.packages:
            sides.setdefault(row.column, ([], []))[number].append(row)
    return [PackagePair(column, *pair) for column in sorted(sides) for pair in zip_longest(*sides[column])]


def _build_values_page(page: PageRequest, left: PackageRow, right: PackageRow) -> PageContent:
    query = page.request.query_params
    diffs, error = _compare(page, left, right)
    effects = [diff for diff in diffs if not diff.is_noise]
    hidden = find_hidden(effects, read_text(query, "resource"))
    return PageContent(
        "compared_package.html",
        {
            "left": left,
            "right": right,
            "diffs": list(zip(effects, hidden, strict=True)),
            "noise": [diff for diff in diffs if diff.is_noise],
            "error": error,
            "view": read_choice(query, "view", VIEWS, "split"),
            "views": VIEWS,
            "max_resource_lines": MAX_RESOURCE_LINES,
        },
        topics=tuple(build_package_topic(row.target, row.package) for row in (left, right)),
    )


def _compare(page: PageRequest, left: PackageRow, right: PackageRow) -> tuple[Sequence[ResourceDiff], str]:
    """Return the differences between two packages, or the reason why they cannot be read."""
    try:
        with repository_boundary(f"the packages {left.target}/{left.package} and {right.target}/{right.package}"):
            return page.context.packages.compare((left.target, left.package), (right.target, right.package)), ""
    except PackageMissingError as error:
        return (), str(error)
    except GitError as error:
        return (), report_failed_part(error)
