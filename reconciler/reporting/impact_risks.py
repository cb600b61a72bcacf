"""The risks of an impact as rows: what may be lost, what fails, what people have done in vain, what stands still."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.krm.findings import Finding
from reconciler.reporting.cluster_names import Clusters, some
from reconciler.reporting.consequences import LEVELS, Consequence, Level
from reconciler.reporting.findings import finding_lines
from reconciler.reporting.impact import Affected, Group, ImpactReview
from reconciler.reporting.values import count, one_line

_NAMED = 3
_LEVEL_WORDS: dict[Level, str] = {
    "destroys": "may destroy",
    "recreates": "needs recreation",
    "stops": "stops pods",
    "restarts": "restarts pods",
}


@dataclass(frozen=True)
class Risk:
    """One row: what is at risk, where, and why."""

    kind: str
    where: str
    what: str

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return dict(vars(self))


def risks(seen: ImpactReview) -> tuple[Risk, ...]:
    """Return every risk, the worst kind first."""
    groups = [(where_words(group, seen.clusters), group[0]) for group in seen.groups]
    return (
        *(Risk("removes", where, _leaves(one)) for where, one in groups if one.how == "removed"),
        *(risk for where, one in groups for risk in _dropped(where, one)),
        *(risk for where, one in groups for risk in _consequent(where, one, "destroys")),
        *(Risk("conflict", where, line) for where, one in groups for line in one.conflicts),
        *(Risk("holds up", where, one_line(one.trouble)) for where, one in groups if one.how == "heldUp"),
        *(Risk("new error", "config", line) for line in finding_lines(_of_the_config(seen))),
        *(risk for level in LEVELS[1:] for where, one in groups for risk in _consequent(where, one, level)),
        *(Risk(_LEVEL_WORDS["restarts"], where, line) for where, one in groups for line in _by_templates(one)),
    )


def _of_the_config(seen: ImpactReview) -> Iterator[Finding]:
    # what is wrong in a package holds it up, and is told so
    return (one for one in seen.errors if not one.where.package)


def where_words(group: Group, clusters: Clusters) -> str:
    """Return which packages a group is about: `gateway on all 40 clusters with region=eu`."""
    if len(group) == 1:
        return one_line(group[0].place)
    packages = list(dict.fromkeys(one.effect.package or one.owner for one in group))
    # a Plugin is named after its cluster
    alike = {each.effect.package.replace(each.cluster, "*") for each in group if each.cluster}
    packages = sorted(alike) if len(alike) == 1 and len(packages) > 1 else packages
    names = {one.cluster for one in group if one.cluster}
    what = one_line(packages[0]) if len(packages) == 1 else f"{count(len(group), 'package')} ({some(packages, _NAMED)})"
    return f"{what} on {clusters.words(names)}" if names else what


def _leaves(one: Affected) -> str:
    return one_line(f"the package is put up for removal: {one.effect.after.message}")


def _dropped(where: str, one: Affected) -> Iterator[Risk]:
    objects = one.changes.objects if one.changes and one.how != "removed" else ()
    names = [each.name for each in objects if each.how == "removed" and not each.is_local]
    if names:
        yield Risk("removes", where, some(names, _NAMED * 2))


def _consequent(where: str, one: Affected, level: Level) -> Iterator[Risk]:
    found: dict[str, list[Consequence]] = {}
    for each in one.consequences:
        if each.level == level:
            found.setdefault(each.why, []).append(each)
    for why, same in found.items():
        yield Risk(_LEVEL_WORDS[level], where, f"{some([each.resource for each in same], _NAMED)}: {one_line(why)}")


def _by_templates(one: Affected) -> Iterator[str]:
    """Yield what templates do to pods; children that keep theirs are no risk."""
    if one.draft:
        changes = one.draft.draft.rendered.template_changes
        risky = sum(each.rolls is not False or each.moved_from is not None for each in changes)
        # they stand in the order of risk
        yield from one.draft.templates[:risky]
