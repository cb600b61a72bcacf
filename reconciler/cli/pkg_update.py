"""`reconciler pkg update`: merge upstream changes into a package in a local folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.bootstrap import engine, options, package_services
from reconciler.catalog.files import FileTree
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import DIFFERENCES, ERROR_FINDING, SUCCESS, CannotRunError
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
    find_skipped_paths,
    package_argument,
    parse_package_target,
    print_fetching,
    print_report,
    read_upstream_url,
    strategy_option,
)
from reconciler.git import folder as git_folder
from reconciler.git import local_repository
from reconciler.krm.findings import select_errors
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output import package_report
from reconciler.output.changes import package_changes
from reconciler.packages.update import fetching

if TYPE_CHECKING:
    from reconciler.settings import Settings

if TYPE_CHECKING:
    from reconciler.api.kpt import UpdateStrategy
    from reconciler.output.package_report import PackageOutcome, PackageReport
    from reconciler.packages.update.sides import UpdateResult

_MAX_LISTED_FILES = 5


@click.command("update")
@package_argument
@click.option("--ref", metavar="REF", help="A branch, tag or commit, instead of @REF. Default: the ref in the Kptfile.")
@strategy_option
@click.option(
    "--conflicts",
    type=click.Choice(["upstream", "local", "block"]),
    help="The side whose value is used after a conflict. With block, a conflict prevents the update. Default: the"
    " setting `merge.conflict_policy`.",
)
@click.option("--dry-run", is_flag=True, help="Show the changes without writing them.")
@click.option(
    "--allow-uncommitted", is_flag=True, help="Also change files with uncommitted content, which Git cannot restore."
)
@settings_option
@cache_option
@output_option("text", "json")
@diff_lines_option
@color_option
def command(
    target: str,
    ref: str | None,
    strategy: UpdateStrategy | None,
    conflicts: str | None,
    dry_run: bool,
    allow_uncommitted: bool,
    settings_file: str | None,
    cache: str | None,
    output: str,
    diff_lines: int,
    color: str,
) -> int:
    """Merge upstream changes into the package in DIR, and into its subpackages that have their own upstream.

    If DIR is in a Git work tree, all files that the command changes must be committed, so that Git can restore them.
    """
    with report_errors():
        settings = read_settings(settings_file, cache=cache)
        set_up_logs(settings, service=False)
        folder, target_ref = parse_package_target(target, ref)
        before = git_folder.read_package(folder)
        policy = conflicts or engine.get_conflict_policy(settings)
        updated = _update(settings, folder, before, policy, target_ref, strategy)
        is_blocked = policy == "block" and bool(updated.conflicts)
        update = _PackageUpdate(folder, before, updated, is_blocked=is_blocked, is_dry_run=dry_run)
        if update.should_write:
            if not allow_uncommitted:
                _require_committed(settings, update)
            git_folder.write_package(folder, before, updated.files)
    print_report(update.build_report(), output, diff_lines if dry_run else 0, color)
    return update.exit_status


@dataclass(frozen=True)
class _PackageUpdate:
    """The result of an update, before it is written to the folder."""

    folder: Path
    before: FileTree
    updated: UpdateResult
    is_blocked: bool
    is_dry_run: bool

    @property
    def has_failed(self) -> bool:
        return bool(select_errors(self.updated.findings))

    @property
    def has_changes(self) -> bool:
        return self.updated.files != self.before

    @property
    def should_write(self) -> bool:
        return not (self.has_failed or self.is_blocked or self.is_dry_run)

    @property
    def exit_status(self) -> int:
        if self.is_blocked:
            return ERROR_FINDING
        has_differences = self.is_dry_run and self.has_changes
        return exit_status_of(self.updated.findings) or (DIFFERENCES if has_differences else SUCCESS)

    def build_report(self) -> PackageReport:
        outcome, headline = self._describe_outcome()
        after = self.before if self.has_failed or self.is_blocked else self.updated.files
        return package_report.PackageReport(
            str(self.folder),
            outcome,
            headline,
            self.before,
            after,
            self.updated.conflicts,
            self.updated.findings,
            is_blocked=self.is_blocked,
            upstream=package_changes.read_upstream_lock(after),
            previous_upstream=package_changes.read_upstream_lock(self.before),
        )

    def _describe_outcome(self) -> tuple[PackageOutcome, str]:
        if self.has_failed:
            return "failed", f"{self.folder}: nothing is written"
        if self.is_blocked:
            return "blocked", f"{self.folder}: nothing is written, because there are conflicts"
        if not self.has_changes:
            return "unchanged", f"{self.folder} is up to date with its upstream"
        verb = "would update" if self.is_dry_run else "updated"
        headline = package_report.format_file_counts(f"{verb} {self.folder}", self.before, self.updated.files)
        return "planned" if self.is_dry_run else "updated", headline


def _update(
    settings: Settings, folder: Path, before: FileTree, policy: str, ref: str, strategy: UpdateStrategy | None
) -> UpdateResult:
    services = package_services.build_package_services(
        settings, folder, read_upstream_url(before), policy, print_fetching
    )
    with services.upstreams as upstreams:
        updated = fetching.update_from_upstream(before, upstreams, services.merge, ref, strategy)
        return replace(updated, findings=(*updated.findings, *find_skipped_paths(upstreams)))


def _require_committed(settings: Settings, update: _PackageUpdate) -> None:
    after = update.updated.files
    changed_files = FileTree({path: file for path, file in update.before.items() if after.get(path) != file})
    uncommitted = local_repository.find_uncommitted_files(
        update.folder, changed_files, options.build_git_options(settings)
    )
    if uncommitted:
        unlisted_count = len(uncommitted) - _MAX_LISTED_FILES
        suffix = f" and {unlisted_count} more" if unlisted_count > 0 else ""
        raise CannotRunError(
            f"{', '.join(uncommitted[:_MAX_LISTED_FILES])}{suffix} must be committed before the update, because Git"
            " cannot restore uncommitted content; commit the files, or use --allow-uncommitted"
        )
