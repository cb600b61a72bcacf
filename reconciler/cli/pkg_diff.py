"""`reconciler pkg diff`: compare a package with its upstream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.bootstrap import package_services
from reconciler.catalog.files import FileTree
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import DIFFERENCES, SUCCESS
from reconciler.cli.options import (
    cache_option,
    color_option,
    diff_lines_option,
    output_option,
    read_settings,
    set_up_logs,
    settings_option,
)
from reconciler.cli.package_target import (
    package_argument,
    parse_package_target,
    print_fetching,
    print_report,
    read_upstream_url,
)
from reconciler.git import folder as git_folder
from reconciler.krm.findings import Finding
from reconciler.output import package_report
from reconciler.output.changes import package_changes
from reconciler.packages.update import fetching, upstream_comparison

if TYPE_CHECKING:
    from reconciler.output.package_report import PackageReport
    from reconciler.packages.update.sides import UpdateResult
    from reconciler.packages.update.upstream_comparison import UpstreamComparison


@click.command("diff")
@package_argument
@click.option(
    "--against",
    metavar="REF|latest",
    help="The upstream ref to compare with, instead of @REF. `latest` is the current commit of the ref in the Kptfile."
    " Default: the commit that was merged last.",
)
@click.option(
    "--to",
    type=click.Choice(["upstream", "3way"]),
    default="upstream",
    show_default=True,
    help=(
        "upstream: show the changes from the upstream package to the local package. 3way: show the changes "
        "that an update would make in the local package. With 3way, the default of --against is `latest`."
    ),
)
@settings_option
@cache_option
@output_option("text", "json")
@diff_lines_option
@color_option
def command(
    target: str,
    against: str | None,
    to: str,
    settings_file: str | None,
    cache: str | None,
    output: str,
    diff_lines: int,
    color: str,
) -> int:
    """Show the differences between the package in DIR and its upstream, first by resource and then by line.

    Nothing is written. Text that tools add to a package is ignored, such as merge comments and the upstream in the
    Kptfile.
    """
    with report_errors():
        settings = read_settings(settings_file, cache=cache)
        set_up_logs(settings, service=False)
        folder, ref = parse_package_target(target, against)
        local = git_folder.read_package(folder)
        services = package_services.build_package_services(
            settings, folder, read_upstream_url(local), on_fetch=print_fetching
        )
        with services.upstreams as upstreams:
            if to == "3way":
                updated = fetching.update_from_upstream(
                    local, upstreams, services.merge, "" if ref == upstream_comparison.LATEST else ref
                )
                report = _report_update(folder, local, updated)
            else:
                report = _report_comparison(folder, upstream_comparison.compare_with_upstream(local, upstreams, ref))
    print_report(report, output, diff_lines, color)
    return exit_status_of(report.findings) or (DIFFERENCES if report.before != report.after else SUCCESS)


def _report_update(folder: Path, local: FileTree, updated: UpdateResult) -> PackageReport:
    headline = package_report.format_file_counts(f"an update of {folder}", local, updated.files)
    return package_report.PackageReport(
        str(folder),
        "same" if updated.files == local else "different",
        headline,
        local,
        updated.files,
        updated.conflicts,
        updated.findings,
        upstream=package_changes.read_upstream_lock(updated.files),
        previous_upstream=package_changes.read_upstream_lock(local),
    )


def _report_comparison(folder: Path, comparison: UpstreamComparison | tuple[Finding, ...]) -> PackageReport:
    if not isinstance(comparison, upstream_comparison.UpstreamComparison):
        return package_report.PackageReport(str(folder), "failed", f"{folder} cannot be compared", findings=comparison)
    package = comparison.upstream_package
    against = {"ref": package.ref, "commit": package.commit}
    version = f"upstream at {package.ref} ({package.commit[:12]})"
    upstream, local = comparison.upstream, comparison.local
    if upstream == local:
        return package_report.PackageReport(
            str(folder), "same", f"{folder} is equal to {version}", previous_upstream=against
        )
    headline = package_report.format_file_counts(f"{folder} compared with {version}", upstream, local)
    return package_report.PackageReport(str(folder), "different", headline, upstream, local, previous_upstream=against)
