"""`reconciler pkg render`: run the functions of a package in a local folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.bootstrap import package_services
from reconciler.catalog.files import FileTree
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import ERROR_FINDING, CannotRunError
from reconciler.cli.options import output_option, read_settings, set_up_logs, settings_option
from reconciler.cli.package_target import folder_argument, print_report
from reconciler.git import folder as git_folder
from reconciler.krm import yaml
from reconciler.output import package_report
from reconciler.packages import pipeline
from reconciler.packages.functions import function as functions_function

if TYPE_CHECKING:
    from reconciler.output.package_report import PackageReport
    from reconciler.packages.pipeline import RenderResult

RESULTS_FILE = "results.yaml"


@click.command("render")
@folder_argument
@click.option(
    "--results-dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help=f"Also write the results of the functions to DIR/{RESULTS_FILE}.",
)
@settings_option
@output_option("text", "json")
def command(folder: Path, results_dir: Path | None, settings_file: str | None, output: str) -> int:
    """Run the functions of the package in DIR and of its subpackages, and write the changed resources.

    If a function fails, nothing is written, unless the package has the annotation kpt.dev/save-on-render-failure. A
    function that runs a command or a container is allowed only if the settings contain the command or image.
    """
    with report_errors():
        settings = read_settings(settings_file)
        set_up_logs(settings, service=False)
        before = git_folder.read_package(folder)
        services = package_services.build_package_services(settings, folder, "")
        try:
            result = pipeline.render_pipelines(before, services.functions, settings.merge.profile, is_manual=True)
        except functions_function.InterruptedFunctionError as error:
            raise CannotRunError(f"{error} (next step: retry); nothing is written") from error
        if results_dir:
            results_dir.mkdir(parents=True, exist_ok=True)
            (results_dir / RESULTS_FILE).write_text(yaml.emit(package_report.build_function_results(result.steps)))
        git_folder.write_package(folder, before, result.files)
    print_report(_build_report(folder, before, result), output)
    return ERROR_FINDING if result.failure else exit_status_of(result.findings)


def _build_report(folder: Path, before: FileTree, result: RenderResult) -> PackageReport:
    failure, files = result.failure, result.files
    if failure is None:
        headline = package_report.format_file_counts(f"rendered {folder}", before, files)
        return package_report.PackageReport(
            str(folder), "rendered", headline, before, files, findings=result.findings, steps=result.steps
        )
    function = f"{failure.function}: " if failure.function else ""
    package = f" in {failure.package}" if failure.package else ""
    saved = (
        package_report.format_file_counts("the earlier changes were saved", before, files)
        if files != before
        else "nothing is written"
    )
    return package_report.PackageReport(
        str(folder), "failed", f"{folder}: {function}{failure.message}{package}; {saved}", before, files,
        findings=result.findings, steps=result.steps,
        failure=package_report.PackageFailure(
            kind=failure.kind, package=failure.package or ".", function=failure.function, message=failure.message
        ),
    )  # fmt: skip
