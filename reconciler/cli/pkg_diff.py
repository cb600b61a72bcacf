"""`reconciler pkg diff`: a package and its upstream, compared (kpt.md 5.2)."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import DIFFERENCES, FINE
from reconciler.cli.pkg_ending import output_option, tell, tell_fetching
from reconciler.cli.pkg_place import package_argument, split_place, upstream_address
from reconciler.cli.shared import cache_option, diff_lines_option, read_settings, set_up_logs, settings_option
from reconciler.gitio.package_folder import read_package
from reconciler.krm.findings import Finding
from reconciler.packages.update import Updated, update_from_upstream
from reconciler.packages.update.comparison import LATEST, Comparison, compare_with_upstream
from reconciler.reporting.kptfile_changes import kptfile_lock
from reconciler.reporting.package_report import PackageReport, files_headline
from reconciler.snapshot.files import FileTree
from reconciler.wiring import build_package_parts


@click.command("diff")
@package_argument
@click.option(
    "--against",
    metavar="REF|latest",
    help="Another ref of the upstream, in place of @REF, or where the one that is followed stands now;"
    " default: what was merged last.",
)
@click.option(
    "--to",
    type=click.Choice(["upstream", "3way"]),
    default="upstream",
    show_default=True,
    help="upstream: from upstream's package to the local one. 3way: from the local one to what an update would make"
    " of it; then the default is latest.",
)
@settings_option
@cache_option
@output_option
@diff_lines_option
def command(
    place: str,
    against: str | None,
    to: str,
    settings_file: str | None,
    cache: str | None,
    output: str,
    diff_lines: int,
) -> int:
    """Show how the package in DIR differs from its upstream: by resources, then by lines. Nothing is written.

    What tools write into a package that comes, such as merge comments and the upstream itself, is no difference.
    """
    with told_plainly():
        settings = read_settings(settings_file, cache=cache)
        set_up_logs(settings, service=False)
        folder, ref = split_place(place, against)
        local = read_package(folder)
        parts = build_package_parts(settings, folder, upstream_address(local), fetching=tell_fetching)
        with parts.upstreams as upstreams:
            if to == "3way":
                updated = update_from_upstream(local, upstreams, parts.merge, "" if ref == LATEST else ref)
                report = _merged(folder, local, updated)
            else:
                report = _compared(folder, compare_with_upstream(local, upstreams, ref))
    tell(report, output, diff_lines)
    return status_of(report.findings) or (DIFFERENCES if report.before != report.after else FINE)


def _merged(folder: Path, local: FileTree, updated: Updated) -> PackageReport:
    headline = files_headline(f"an update of {folder}", local, updated.files)
    outcome = "same" if updated.files == local else "different"
    about = {"from": kptfile_lock(local), "to": kptfile_lock(updated.files)}
    return PackageReport(
        str(folder), outcome, headline, local, updated.files, updated.conflicts, updated.findings, about=about
    )


def _compared(folder: Path, found: Comparison | tuple[Finding, ...]) -> PackageReport:
    if not isinstance(found, Comparison):
        return PackageReport(str(folder), "failed", f"{folder} cannot be compared", findings=found)
    at = f"upstream at {found.against.ref} ({found.against.commit[:12]})"
    if found.upstream == found.local:
        return PackageReport(str(folder), "same", f"{folder} is as {at}", about=_about(found))
    headline = files_headline(f"{folder} against {at}", found.upstream, found.local)
    return PackageReport(str(folder), "different", headline, found.upstream, found.local, about=_about(found))


def _about(found: Comparison) -> dict[str, object]:
    return {"against": {"ref": found.against.ref, "commit": found.against.commit}}
