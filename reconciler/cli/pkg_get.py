"""`reconciler pkg get`: a new package from a repository (kpt.md 4)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import CannotRunError
from reconciler.cli.pkg_ending import left_out, output_option, strategy_option, tell, tell_fetching
from reconciler.cli.pkg_place import read_source
from reconciler.cli.shared import cache_option, read_settings, set_up_logs, settings_option
from reconciler.gitio.package_folder import check_new_folder, write_new_package
from reconciler.krm.findings import errors
from reconciler.packages.context import ensure_name
from reconciler.packages.kptfile import GitUpstream, Strategy
from reconciler.packages.update import Updated, get_package
from reconciler.reporting.kptfile_changes import kptfile_lock
from reconciler.reporting.package_report import PackageReport
from reconciler.reporting.values import count
from reconciler.wiring import PackageParts, build_package_parts


@click.command("get")
@click.argument("source", metavar="REPO[.git]/DIR[@REF]")
@click.argument("destination", metavar="[DEST]", required=False, type=click.Path(path_type=Path))
@click.option("--directory", metavar="DIR", help="The package's folder in the repository, in place of /DIR.")
@click.option("--ref", metavar="REF", help="A branch, tag or commit, in place of @REF; default: the default branch.")
@strategy_option
@click.option("--for-deployment", is_flag=True, help="Write the package context, which names the package.")
@settings_option
@cache_option
@output_option
def command(
    source: str,
    destination: Path | None,
    directory: str | None,
    ref: str | None,
    strategy: Strategy | None,
    for_deployment: bool,
    settings_file: str | None,
    cache: str | None,
    output: str,
) -> int:
    """Copy a package, with its subpackages, to DEST: absent or empty; default: a folder of the package's name here.

    Its Kptfile says where it came from. After a failure DEST is as it was.
    """
    with told_plainly():
        settings = read_settings(settings_file, cache=cache)
        set_up_logs(settings, service=False)
        wanted = read_source(source, directory, ref)
        folder = destination or Path(_name_of(wanted))
        check_new_folder(folder)
        parts = build_package_parts(settings, folder, wanted.repo, fetching=tell_fetching)
        got = _get(parts, wanted, folder, strategy or "resource-merge", for_deployment)
        if not errors(got.findings):
            write_new_package(folder, got.files)
    tell(_report(got, folder), output)
    return status_of(got.findings)


def _name_of(source: GitUpstream) -> str:
    name = source.directory.strip("/").rpartition("/")[2]
    return name or source.repo.rstrip("/").rpartition("/")[2].removesuffix(".git")


def _get(parts: PackageParts, wanted: GitUpstream, folder: Path, strategy: Strategy, for_deployment: bool) -> Updated:
    name = folder.resolve().name
    if not name:
        raise CannotRunError(f"{folder} must have a name, which the package gets")
    with parts.upstreams as upstreams:
        source = wanted.model_copy(update={"ref": wanted.ref or upstreams.default_branch(wanted.repo)})
        got = get_package(upstreams, source, name, parts.merge, strategy)
        got = replace(got, findings=(*got.findings, *left_out(upstreams)))
    if not for_deployment or errors(got.findings):
        return got
    files, findings = ensure_name(got.files, name, parts.merge.profile)
    return replace(got, files=files, findings=(*got.findings, *findings))


def _report(got: Updated, folder: Path) -> PackageReport:
    if errors(got.findings):
        return PackageReport(str(folder), "failed", f"{folder}: nothing is written", findings=got.findings)
    lock = kptfile_lock(got.files)
    ref, commit = lock.get("ref", ""), lock.get("commit", "")
    headline = f"got {folder}: {count(len(got.files), 'file')} of {lock.get('directory')} at {ref} ({commit[:12]})"
    about = {"upstream": lock, "files": list(got.files)}
    return PackageReport(str(folder), "got", headline, findings=got.findings, about=about)
