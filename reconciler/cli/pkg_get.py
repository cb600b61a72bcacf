"""`reconciler pkg get`: copy a package from a repository to a new folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.bootstrap import package_services
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import CannotRunError
from reconciler.cli.options import cache_option, output_option, read_settings, set_up_logs, settings_option
from reconciler.cli.package_target import (
    find_skipped_paths,
    parse_upstream,
    print_fetching,
    print_report,
    strategy_option,
)
from reconciler.git import folder as git_folder
from reconciler.krm import numbers
from reconciler.krm.findings import select_errors
from reconciler.output import package_report
from reconciler.output.changes import package_changes
from reconciler.packages import package_context
from reconciler.packages.update import fetching

if TYPE_CHECKING:
    from reconciler.api.kpt import GitUpstream, UpdateStrategy
    from reconciler.bootstrap.package_services import PackageServices
    from reconciler.output.package_report import PackageReport
    from reconciler.packages.update.sides import UpdateResult


@click.command("get")
@click.argument("source", metavar="REPO[.git]/DIR[@REF]")
@click.argument("destination", metavar="[DEST]", required=False, type=click.Path(path_type=Path))
@click.option("--directory", metavar="DIR", help="The folder of the package in the repository, instead of /DIR.")
@click.option("--ref", metavar="REF", help="A branch, tag or commit, instead of @REF. Default: the default branch.")
@strategy_option
@click.option("--for-deployment", is_flag=True, help="Write the package context, which contains the package name.")
@settings_option
@cache_option
@output_option("text", "json")
def command(
    source: str,
    destination: Path | None,
    directory: str | None,
    ref: str | None,
    strategy: UpdateStrategy | None,
    for_deployment: bool,
    settings_file: str | None,
    cache: str | None,
    output: str,
) -> int:
    """Copy a package with its subpackages to DEST, which must not exist or must be empty.

    The default of DEST is a folder in the current directory with the name of the package. The command writes the
    upstream to the Kptfile. If the command fails, it does not change DEST.
    """
    with report_errors():
        settings = read_settings(settings_file, cache=cache)
        set_up_logs(settings, service=False)
        upstream = parse_upstream(source, directory, ref)
        folder = destination or Path(_get_package_name(upstream))
        git_folder.check_new_folder(folder)
        services = package_services.build_package_services(settings, folder, upstream.repo, on_fetch=print_fetching)
        result = _get_package(services, upstream, folder, strategy or "resource-merge", for_deployment)
        if not select_errors(result.findings):
            git_folder.write_new_package(folder, result.files)
    print_report(_build_report(result, folder), output)
    return exit_status_of(result.findings)


def _get_package_name(source: GitUpstream) -> str:
    name = source.directory.strip("/").rpartition("/")[2]
    return name or source.repo.rstrip("/").rpartition("/")[2].removesuffix(".git")


def _get_package(
    services: PackageServices, upstream: GitUpstream, folder: Path, strategy: UpdateStrategy, for_deployment: bool
) -> UpdateResult:
    name = folder.resolve().name
    if not name:
        raise CannotRunError(f"{folder} must have a name, because the package gets the name of its folder")
    with services.upstreams as upstreams:
        source = upstream.model_copy(update={"ref": upstream.ref or upstreams.find_default_branch(upstream.repo)})
        result = fetching.get_package(upstreams, source, name, services.merge, strategy)
        result = replace(result, findings=(*result.findings, *find_skipped_paths(upstreams)))
    if not for_deployment or select_errors(result.findings):
        return result
    files, findings = package_context.ensure_package_context_name(result.files, name, services.merge.profile)
    return replace(result, files=files, findings=(*result.findings, *findings))


def _build_report(result: UpdateResult, folder: Path) -> PackageReport:
    if select_errors(result.findings):
        return package_report.PackageReport(
            str(folder), "failed", f"{folder}: nothing is written", findings=result.findings
        )
    lock = package_changes.read_upstream_lock(result.files)
    ref, commit = lock.get("ref", ""), lock.get("commit", "")
    file_count = numbers.format_count(len(result.files), "file")
    headline = f"got {folder}: {file_count} of {lock.get('directory')} at {ref} ({commit[:12]})"
    return package_report.PackageReport(
        str(folder),
        "got",
        headline,
        after=result.files,
        findings=result.findings,
        upstream=lock,
        has_new_package=True,
    )
