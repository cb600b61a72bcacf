"""`reconciler pkg update`: a package brought to where its upstream stands (kpt.md 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import click

from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import DIFFERENCES, ERROR_FINDING, FINE, CannotRunError
from reconciler.cli.pkg_ending import left_out, output_option, strategy_option, tell, tell_fetching
from reconciler.cli.pkg_place import package_argument, split_place, upstream_address
from reconciler.cli.shared import cache_option, diff_lines_option, read_settings, set_up_logs, settings_option
from reconciler.gitio.package_folder import read_package, write_package
from reconciler.gitio.work_tree import uncommitted_files
from reconciler.krm.findings import errors
from reconciler.packages.kptfile import Strategy
from reconciler.packages.update import Updated, update_from_upstream
from reconciler.reporting.kptfile_changes import kptfile_lock
from reconciler.reporting.package_report import PackageReport, files_headline
from reconciler.settings import Settings
from reconciler.snapshot.files import FileTree
from reconciler.wiring import build_package_parts, conflict_policy, git_options

_NAMED_FILES = 5


@click.command("update")
@package_argument
@click.option("--ref", metavar="REF", help="A branch, tag or commit, in place of @REF; default: the one it follows.")
@strategy_option
@click.option(
    "--conflicts",
    type=click.Choice(["upstream", "local", "block"]),
    help="Who wins where both sides changed the same; block writes nothing. Default: merge.conflict_policy.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--allow-uncommitted", is_flag=True, help="Replace files that Git could not bring back, too.")
@settings_option
@cache_option
@output_option
@diff_lines_option
def command(
    place: str,
    ref: str | None,
    strategy: Strategy | None,
    conflicts: str | None,
    dry_run: bool,
    allow_uncommitted: bool,
    settings_file: str | None,
    cache: str | None,
    output: str,
    diff_lines: int,
) -> int:
    """Merge what upstream changed into the package in DIR, subpackages with upstreams of their own included.

    In a Git work tree, a file that is to change must be committed as it is: nothing is lost that way.
    """
    with told_plainly():
        settings = read_settings(settings_file, cache=cache)
        set_up_logs(settings, service=False)
        folder, wanted = split_place(place, ref)
        before = read_package(folder)
        policy = conflicts or conflict_policy(settings)
        updated = _update(settings, folder, before, policy, wanted, strategy)
        blocked = policy == "block" and bool(updated.conflicts)
        done = _Done(folder, before, updated, blocked=blocked, dry_run=dry_run)
        if done.writes:
            if not allow_uncommitted:
                _require_committed(settings, done)
            write_package(folder, before, updated.files)
    tell(done.report(), output, diff_lines if dry_run else 0)
    return done.status


@dataclass(frozen=True)
class _Done:
    """An update that was worked out."""

    folder: Path
    before: FileTree
    updated: Updated
    blocked: bool
    dry_run: bool

    @property
    def failed(self) -> bool:
        return bool(errors(self.updated.findings))

    @property
    def differs(self) -> bool:
        return self.updated.files != self.before

    @property
    def writes(self) -> bool:
        return not (self.failed or self.blocked or self.dry_run)

    @property
    def status(self) -> int:
        """The exit status (design 10.25)."""
        if self.blocked:
            return ERROR_FINDING
        return status_of(self.updated.findings) or (DIFFERENCES if self.dry_run and self.differs else FINE)

    def report(self) -> PackageReport:
        """Return what there is to tell."""
        outcome, headline = self._words()
        after = self.before if self.failed or self.blocked else self.updated.files
        about = {"from": kptfile_lock(self.before), "to": kptfile_lock(after)}
        return PackageReport(
            str(self.folder), outcome, headline, self.before, after, self.updated.conflicts,
            self.updated.findings, blocked=self.blocked, about=about,
        )  # fmt: skip

    def _words(self) -> tuple[str, str]:
        if self.failed:
            return "failed", f"{self.folder}: nothing is written"
        if self.blocked:
            return "blocked", f"{self.folder}: nothing is written, because both sides changed the same"
        if not self.differs:
            return "unchanged", f"{self.folder} stands where its upstream does"
        outcome, verb = ("planned", "would update") if self.dry_run else ("updated", "updated")
        return outcome, files_headline(f"{verb} {self.folder}", self.before, self.updated.files)


def _update(
    settings: Settings, folder: Path, before: FileTree, policy: str, ref: str, strategy: Strategy | None
) -> Updated:
    parts = build_package_parts(settings, folder, upstream_address(before), policy, tell_fetching)
    with parts.upstreams as upstreams:
        updated = update_from_upstream(before, upstreams, parts.merge, ref, strategy)
        return replace(updated, findings=(*updated.findings, *left_out(upstreams)))


def _require_committed(settings: Settings, done: _Done) -> None:
    after = done.updated.files
    at_risk = FileTree({path: file for path, file in done.before.items() if after.get(path) != file})
    lost = uncommitted_files(done.folder, at_risk, git_options(settings))
    if lost:
        more = f" and {len(lost) - _NAMED_FILES} more" if len(lost) > _NAMED_FILES else ""
        raise CannotRunError(
            f"{', '.join(lost[:_NAMED_FILES])}{more} must be committed before the update changes what Git could not"
            " bring back; or give --allow-uncommitted"
        )
