"""`reconciler adopt`: import an existing fleet, and compare the render of the new config with the existing content."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.adopt import units
from reconciler.bootstrap import adoption, fleet_import
from reconciler.cli.clusters_file import read_clusters_file
from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import DIFFERENCES, SUCCESS, CannotRunError
from reconciler.cli.options import cache_option, read_settings, set_up_logs, settings_option, show_progress
from reconciler.krm import json_pointer
from reconciler.output.adoption import formats as adoption_formats
from reconciler.redaction import has_credentials

if TYPE_CHECKING:
    from reconciler.output.adoption.result import SourceFormat


@click.command("adopt")
@click.argument("source", metavar="SOURCE[#BRANCH]")
@click.option(
    "--output",
    "-O",
    "out",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path),
    help="The output folder. The folder must not exist or must be empty.",
)
@click.option(
    "--from",
    "source_format",
    type=click.Choice(["folders", "argocd", "flux"]),
    help="The format of SOURCE. Default: detected from its objects.",
)
@click.option("--path", metavar="PATH", default="", help="The folder in SOURCE that contains the fleet.")
@click.option(
    "--layout",
    "layout_text",
    metavar="PATTERN",
    default="",
    help=(
        "The pattern of the package folders; with --from flux, the pattern of the cluster folders. Default:"
        " {cluster}/{package}, or clusters/{cluster} with --from flux. Other fields in braces, such as {region}, become"
        " labels of the clusters."
    ),
)
@click.option(
    "--fleet",
    metavar="URL",
    help=(
        "The repository for the branches clusters/NAME of the clusters. By default, the packages of the clusters stay"
        " in their folders and on their branch in SOURCE. SOURCE must then be a Git repository."
    ),
)
@click.option(
    "--clusters",
    "clusters_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A CSV file with the columns `name` and one per label, for labels that the layout does not contain.",
)
@click.option(
    "--ignore",
    metavar="POINTER",
    multiple=True,
    help="A field that is not compared, such as /metadata/labels/chart. You can repeat the option.",
)
@click.option(
    "--rendered",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help=(
        "With --from argocd or flux: the manifests of each package, as DIR/CLUSTER/PACKAGE.yaml. By default, the"
        " command renders each original object for the comparison, which is a weaker check."
    ),
)
@click.option(
    "--repo-url",
    metavar="URL",
    help="The URL of SOURCE in the imported objects. Set this option if SOURCE is a clone of the repository.",
)
@click.option("--only-equal", is_flag=True, help="Import only packages whose render equals the existing content.")
@click.option("--explain", is_flag=True, help="Print each decision of the import with its reason.")
@settings_option
@cache_option
@click.option(
    "-o", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="The output format."
)
def command(
    source: str,
    out: Path,
    source_format: SourceFormat | None,
    path: str,
    layout_text: str,
    fleet: str | None,
    clusters_file: Path | None,
    ignore: tuple[str, ...],
    rendered: Path | None,
    repo_url: str | None,
    only_equal: bool,
    explain: bool,
    settings_file: str | None,
    cache: str | None,
    form: str,
) -> int:
    """Import the fleet in SOURCE, a folder or Git repository, as a config with its packages.

    The command renders each package of the new config, and compares it with the existing content. It writes DIR, and
    never changes SOURCE or a cluster. DIR/ADOPT.md lists the results and everything that could not be imported.
    """
    with report_errors():
        _check_urls(source, fleet, repo_url)
        try:
            adoption.check_output_folder(out)
            settings = read_settings(settings_file, cache=cache)
            set_up_logs(settings, service=False, command_level="error")
            options = fleet_import.ImportOptions(
                source,
                out,
                source_format,
                path.strip("/"),
                layout_text,
                fleet,
                _read_labels(clusters_file),
                tuple(map(_parse_pointer, ignore)),
                rendered,
                repo_url or "",
                only_equal,
                explain,
            )
            with show_progress() as show:
                result = fleet_import.import_fleet(settings, options, show)
        except units.AdoptionError as error:
            raise CannotRunError(str(error)) from error
    click.echo(result.to_json() if form == "json" else adoption_formats.format_adoption_text(result))
    return SUCCESS if result.is_complete else DIFFERENCES


def _check_urls(*urls: str | None) -> None:
    for url in urls:
        if url is not None and has_credentials(url):
            raise CannotRunError(
                f"{url!r} must not contain a user name, password or token (CredentialInUrl): put credentials into a"
                " file that the setting `git.credentials` names"
            )


def _parse_pointer(text: str) -> tuple[str, ...]:
    try:
        return json_pointer.parse_pointer(text)
    except json_pointer.PointerError as error:
        raise CannotRunError(f"--ignore: {error}") from None


def _read_labels(file: Path | None) -> Mapping[str, Mapping[str, str]]:
    return {cluster.name: cluster.labels for cluster in read_clusters_file(file)} if file else {}
