"""`reconciler verify`: re-render published packages from their recorded inputs, and compare the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli.exit_codes import DIFFERENCES, ERROR_FINDING, SUCCESS
from reconciler.cli.options import output_option
from reconciler.cli.review_options import CommandSetup, TargetType, add_setup_options, offline_option, open_history
from reconciler.inspect import verify as inspect_verify
from reconciler.output.explain import verification

if TYPE_CHECKING:
    from reconciler.output.explain.verification import VerificationResult
    from reconciler.reconcile.remotes.targets import TargetReference

_DEFAULT_DIFF_LINES = 40
# The messages if there is no package to verify. The key is True if the option --draft is set.
_NO_PACKAGES_MESSAGES = {
    False: "the reconciler has published no package; to verify the drafts, use --draft",
    True: "the reconciler has drafted no package",
}


class RepositoryOrPackageType(TargetType):
    """Type of command-line arguments of the form REPOSITORY or REPOSITORY/PACKAGE."""

    allowed = "REPOSITORY or REPOSITORY/PACKAGE"


@click.command("verify")
@click.argument("targets", metavar="[REPOSITORY[/PACKAGE]]...", nargs=-1, type=RepositoryOrPackageType())
@click.option(
    "--at",
    metavar="COMMIT",
    default="",
    help="Verify the packages of this commit. HEAD is the HEAD of the current work tree.",
)
@click.option("--draft", "drafts", is_flag=True, help="Verify the drafts instead of the published packages.")
@click.option("--diff-lines", metavar="N", type=click.IntRange(0), default=_DEFAULT_DIFF_LINES, show_default=True,
              help="The maximum number of diff lines. 0 omits diffs.")  # fmt: skip
@offline_option
@add_setup_options
@output_option("text", "json")
def command(
    targets: tuple[TargetReference, ...],
    at: str,
    drafts: bool,
    diff_lines: int,
    offline: bool,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    output: str,
) -> int:
    """Re-render packages from the inputs in their status files, and compare the results. Nothing is pushed.

    Without arguments, the command verifies all published packages. The exit status is 0 if all packages are equal to
    their re-render. It is 2 if a package differs or contains local changes, and 1 if a package cannot be compared.
    """
    if at and (drafts or len({target.cluster for target in targets}) != 1):
        raise click.UsageError("--at requires exactly one REPOSITORY, and cannot be used with --draft")
    options = inspect_verify.VerifyOptions(targets, at, drafts, diff_lines)
    with open_history(CommandSetup(config, settings_file, fleet, cache, offline)) as past:
        result = inspect_verify.verify(options, past)
    if output == "json":
        click.echo(result.to_json())
    else:
        click.echo(verification.format_verification_text(result, _NO_PACKAGES_MESSAGES[drafts]), nl=False)
    return _exit_status(result)


def _exit_status(result: VerificationResult) -> int:
    verdicts = {package.rerender.verdict for package in result.items}
    if result.findings or "unknowable" in verdicts:
        return ERROR_FINDING
    has_differences = "differs" in verdicts or any(package.is_edited for package in result.items)
    return DIFFERENCES if has_differences else SUCCESS
