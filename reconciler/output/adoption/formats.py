"""The text of `reconciler adopt`, and the page `ADOPT.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.krm.numbers import format_count
from reconciler.output.adoption.result import AdoptedUnit, AdoptionResult, ChoiceEntry, NotImportedEntry, WrittenPath
from reconciler.output.text import format_code, to_one_line

_BASES = {
    "files": "the files of the source",
    "rendered": "the manifests of --rendered",
    "original": "a render of the original objects by the same engine (a weaker check than --rendered)",
}
_MAX_LISTED = 20


def format_adoption_text(result: AdoptionResult) -> str:
    """Return the totals, the packages without the result `Equal`, and the parts that were not imported."""
    different = [unit for unit in result.units if unit.result != "Equal"]
    choices = [item for item in result.items if isinstance(item, ChoiceEntry)]
    sections = [
        [f"{format_totals(result)} Expected content: {_BASES[result.summary.basis]}."],
        [line for unit in different[:_MAX_LISTED] for line in _format_unit(unit)],
        [f"… and {len(different) - _MAX_LISTED} more, see ADOPT.md"] if len(different) > _MAX_LISTED else [],
        [f"not imported: {_format_entry(entry)}" for entry in result.not_imported[:_MAX_LISTED]],
        [f"… and {len(result.not_imported) - _MAX_LISTED} more, see ADOPT.md"]
        if len(result.not_imported) > _MAX_LISTED
        else [],
        [f"{item.package}: {item.subject}: {item.reason}" for item in choices],
        [_format_written(result)],
    ]
    return "\n".join("\n".join(section) for section in sections if section)


def format_totals(result: AdoptionResult) -> str:
    """Return the numbers of the import in one sentence."""
    summary = result.summary
    return (
        f"Adopt: {format_count(len(result.units), 'package')} on {format_count(summary.clusters, 'cluster')}:"
        f" {summary.equal} Equal, {summary.different} Different, {summary.not_verified} NotVerified;"
        f" {summary.not_imported} not imported."
    )


def _format_unit(unit: AdoptedUnit) -> Iterator[str]:
    reason = f": {unit.reason}" if unit.reason else ""
    yield f"{unit.result}: {unit.cluster}/{unit.package}{reason}"
    yield from (f"  {difference}" for difference in unit.differences)


def _format_entry(entry: NotImportedEntry) -> str:
    position = f":{entry.line}" if entry.line else ""
    field = f" {entry.field}:" if entry.field else ""
    return f"{entry.file}{position}:{field} {entry.reason}. {entry.suggestion}"


def _format_written(result: AdoptionResult) -> str:
    paths = [item.path for item in result.items if isinstance(item, WrittenPath)]
    if not paths:
        return "Nothing was written, because no package can be imported."
    return (
        f"Wrote {', '.join(paths)} to {result.summary.folder}. Next: read ADOPT.md there, then run `reconciler plan`."
    )


def format_adoption_page(result: AdoptionResult) -> str:
    """Return the page `ADOPT.md`: totals, the result of each package, and everything that was not imported."""
    rows = [(unit.cluster, unit.package, unit.owner, unit.result, _describe(unit)) for unit in result.units]
    sections = [
        "# Result of the import",
        format_totals(result),
        f"Expected content: {_BASES[result.summary.basis]}.",
        "## Packages",
        *_format_table(("cluster", "package", "object", "result", "differences"), rows),
        "## Not imported",
        *(_format_list(result.not_imported) or ["Everything was imported."]),
        "## Next steps",
        _NEXT_STEPS,
    ]
    return "\n\n".join(sections) + "\n"


_NEXT_STEPS = """\
1. Run `reconciler plan` in this folder. For packages that are `Equal`, the plan shows no change of a resource file.
2. If the config contains the catalog `./catalog.git`, push this repository to your Git server, and change its URL.
3. Run `reconciler sync`, review the drafts, and publish them. The first drafts add a Kptfile, a package context and a
   status file to each package.
4. Configure Argo CD or Flux to apply the target branches, then delete the old source."""


def _describe(unit: AdoptedUnit) -> str:
    return "; ".join([unit.reason, *unit.differences] if unit.reason else unit.differences)


def _format_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    lines += [f"| {' | '.join(_format_cell(cell) for cell in row)} |" for row in rows]
    yield "\n".join(lines)


def _format_cell(text: str) -> str:
    return to_one_line(text).replace("|", "\\|")


def _format_list(entries: Iterable[NotImportedEntry]) -> list[str]:
    lines = []
    for entry in entries:
        position = f"{entry.file}:{entry.line}" if entry.line else entry.file
        field = f" {format_code(entry.field)}" if entry.field else ""
        lines.append(f"- {format_code(position)}{field}: {to_one_line(entry.reason)}. {to_one_line(entry.suggestion)}")
    return ["\n".join(lines)] if lines else []
