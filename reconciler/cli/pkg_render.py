"""`reconciler pkg render`: a package's own functions, run in its folder (kpt.md 11)."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import ERROR_FINDING, CannotRunError
from reconciler.cli.pkg_ending import output_option, tell
from reconciler.cli.pkg_place import folder_argument
from reconciler.cli.shared import read_settings, set_up_logs, settings_option
from reconciler.gitio.package_folder import read_package, write_package
from reconciler.krm.yaml import emit
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.pipeline import RenderResult, render
from reconciler.reporting.package_report import PackageReport, files_headline, results_data
from reconciler.snapshot.files import FileTree
from reconciler.wiring import build_package_parts

RESULTS_FILE = "results.yaml"


@click.command("render")
@folder_argument
@click.option(
    "--results-dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help=f"Also write what the functions said to DIR/{RESULTS_FILE}.",
)
@settings_option
@output_option
def command(folder: Path, results_dir: Path | None, settings_file: str | None, output: str) -> int:
    """Run the functions of the package in DIR and of its subpackages, and write the documents that they changed.

    When one fails nothing is written, unless the package is annotated kpt.dev/save-on-render-failure. Commands and
    containers run only where the settings list them.
    """
    with told_plainly():
        settings = read_settings(settings_file)
        set_up_logs(settings, service=False)
        before = read_package(folder)
        parts = build_package_parts(settings, folder, "")
        try:
            result = render(before, parts.functions, settings.merge.profile, by_hand=True)
        except InterruptedFunctionError as error:
            raise CannotRunError(f"{error} (next step: retry); nothing is written") from error
        if results_dir:
            results_dir.mkdir(parents=True, exist_ok=True)
            (results_dir / RESULTS_FILE).write_text(emit(results_data(result.steps)))
        write_package(folder, before, result.files)
    tell(_report(folder, before, result), output)
    return ERROR_FINDING if result.failure else status_of(result.findings)


def _report(folder: Path, before: FileTree, result: RenderResult) -> PackageReport:
    failure, files = result.failure, result.files
    if failure is None:
        headline = files_headline(f"rendered {folder}", before, files)
        return PackageReport(
            str(folder), "rendered", headline, before, files, findings=result.findings, steps=result.steps
        )
    what = f"{failure.function}: " if failure.function else ""
    where = f" in {failure.package}" if failure.package else ""
    kept = files_headline("what was done before was saved", before, files) if files != before else "nothing is written"
    about = {"failure": {**vars(failure), "package": failure.package or "."}}
    return PackageReport(
        str(folder), "failed", f"{folder}: {what}{failure.message}{where}: {kept}", before, files,
        findings=result.findings, steps=result.steps, about=about,
    )  # fmt: skip
