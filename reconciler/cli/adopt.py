"""`reconciler adopt`: import an existing fleet, and compare the render of the new config with the existing content."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.adopt import config_files, folders, layout, results, units
from reconciler.bootstrap import adoption
from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import DIFFERENCES, SUCCESS, CannotRunError
from reconciler.cli.options import (
    cache_option,
    make_url_relative_to,
    read_settings,
    set_up_logs,
    settings_option,
    show_progress,
)
from reconciler.krm import json_pointer
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.adoption import formats as adoption_formats
from reconciler.output.adoption import result as adoption_result
from reconciler.output.scaffold import entries as scaffold_entries
from reconciler.redaction import has_credentials

if TYPE_CHECKING:
    from reconciler.adopt.generated import GeneratedConfig
    from reconciler.adopt.units import Choice, Cluster, NotImported, Unit
    from reconciler.bootstrap.adoption import AdoptionSource
    from reconciler.output.adoption.result import AdoptedUnit, AdoptionResult
    from reconciler.settings import Settings


@click.command("adopt")
@click.argument("source", metavar="SOURCE[#BRANCH]")
@click.option(
    "--output",
    "-O",
    "out",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path),
    help="The output folder, which must not exist or must be empty.",
)
@click.option("--path", metavar="PATH", default="", help="The folder in SOURCE that contains the fleet.")
@click.option(
    "--layout",
    "layout_text",
    metavar="PATTERN",
    default="{cluster}/{package}",
    show_default=True,
    help="The folders of packages. Other fields in braces, such as {region}, become labels of the clusters.",
)
@click.option(
    "--fleet",
    metavar="URL",
    help=(
        "The repository in which each cluster has the branch clusters/NAME. By default, the clusters stay on the"
        " branch and in the folders of SOURCE, which must then be a Git repository."
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
@click.option("--only-equal", is_flag=True, help="Import only packages whose render equals the existing content.")
@click.option("--explain", is_flag=True, help="Print the reason of each choice.")
@settings_option
@cache_option
@click.option(
    "-o", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="The output format."
)
def command(
    source: str,
    out: Path,
    path: str,
    layout_text: str,
    fleet: str | None,
    clusters_file: Path | None,
    ignore: tuple[str, ...],
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
        try:
            _check_urls(source, fleet)
            adoption.check_output_folder(out)
            settings = read_settings(settings_file, cache=cache)
            set_up_logs(settings, service=False, command_level="error")
            read = adoption.read_source(settings, source, path.strip("/"))
            found = layout.read_fleet(read.files, layout.parse_layout(layout_text), _read_labels(clusters_file))
            found.check_limits()
            locations = _choose_locations(read, path.strip("/"), fleet, found, out)
            ignored = tuple(map(_parse_pointer, ignore))
        except units.AdoptionError as error:
            raise CannotRunError(str(error)) from error
        selected = folders.select_units(found)
        run = _Import(settings, found.clusters, ignored, folders.generate_from_folders)
        imported = run.import_units(selected.units, only_equal=only_equal)
        not_imported = (*found.not_imported, *selected.not_imported)
        result = _write(out, imported, not_imported, locations, should_explain=explain)
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
        raise units.AdoptionError(f"--ignore: {error}") from None


def _read_labels(file: Path | None) -> Mapping[str, Mapping[str, str]]:
    if file is None:
        return {}
    try:
        clusters = scaffold_entries.parse_clusters_file(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CannotRunError(f"--clusters: {file}: {error}") from None
    return {cluster.name: cluster.labels for cluster in clusters}


@dataclass(frozen=True)
class _Locations:
    """The places of the packages of all clusters.

    Attributes:
        fleet_url: The value of the setting `fleet.url`.
        locate: Returns `spec.git` of the deployment Repository of a cluster.
    """

    fleet_url: str
    locate: Callable[[Cluster], Mapping[str, str]]


def _choose_locations(read: AdoptionSource, path: str, fleet: str | None, found: units.Fleet, out: Path) -> _Locations:
    """Return the locations in the fleet repository, or the present locations in the source.

    Raises:
        AdoptionError: The packages cannot stay where they are, and no fleet repository is given.
    """
    if fleet is not None:
        url = make_url_relative_to(out, fleet)
        return _Locations(url, lambda cluster: {"repo": url, "branch": f"clusters/{cluster.name}"})
    if not read.branch:
        raise units.AdoptionError(
            "SOURCE is a plain folder: give the Git repository of the folder as SOURCE, or --fleet with the repository"
            " for the branches of the clusters"
        )
    if any(not cluster.directory for cluster in found.clusters):
        raise units.AdoptionError(
            "the layout does not end with {package}, so that the packages of a cluster are not in one folder: give"
            " --fleet with the repository for the branches of the clusters"
        )
    url, prefix = make_url_relative_to(out, read.url), f"{path}/" if path else ""
    return _Locations(
        url, lambda cluster: {"repo": url, "branch": read.branch, "directory": f"{prefix}{cluster.directory}"}
    )


@dataclass(frozen=True)
class _Imported:
    """The packages of the new config, with the results of all units."""

    generated: GeneratedConfig
    clusters: tuple[Cluster, ...]
    results: tuple[AdoptedUnit, ...]


@dataclass(frozen=True)
class _Import:
    """An import: generates a config for units, renders it, and compares the result."""

    settings: Settings
    clusters: tuple[Cluster, ...]
    ignored: tuple[tuple[str, ...], ...]
    generate: Callable[[Sequence[Unit], Sequence[Cluster]], GeneratedConfig]

    def import_units(self, found: Sequence[Unit], *, only_equal: bool) -> _Imported:
        """Import the units. With `only_equal`, repeat the import without the other units until all units are equal."""
        imported = self._import_once(found)
        left_out: list[AdoptedUnit] = []
        while only_equal and (others := [unit for unit in imported.results if unit.result != "Equal"]):
            left_out += (unit.model_copy(update={"is_written": False}) for unit in others)
            names = {(unit.cluster, unit.package) for unit in left_out}
            imported = self._import_once([unit for unit in found if (unit.cluster, unit.package) not in names])
        return replace(imported, results=(*imported.results, *left_out))

    def _import_once(self, found: Sequence[Unit]) -> _Imported:
        generated = self.generate(found, self.clusters)
        names = {name for package in generated.packages for name in package.clusters}
        clusters = tuple(cluster for cluster in self.clusters if cluster.name in names)
        with show_progress() as show:
            rendered = adoption.render_config(self.settings, generated, clusters, show) if found else None
        packages = rendered.packages if rendered else {}
        return _Imported(generated, clusters, tuple(results.verify_units(found, generated, packages, self.ignored)))


def _write(
    out: Path,
    imported: _Imported,
    not_imported: Sequence[NotImported],
    locations: _Locations,
    *,
    should_explain: bool,
) -> AdoptionResult:
    """Write the output folder, unless no package can be imported, and return the result."""
    # Import the settings here, because `--help` would otherwise import pydantic.
    from reconciler.settings.repositories import describe_url_settings

    generated, catalog_url = imported.generated, f"./{adoption.CATALOG_FOLDER}"
    config = config_files.build_config_files(generated, imported.clusters, catalog_url, locations.locate)
    written = ["ADOPT.md", "config", "reconciler.yaml", *([adoption.CATALOG_FOLDER] if generated.catalog else [])]
    choices: Sequence[Choice] = generated.choices if should_explain else ()
    result = adoption_result.build_adoption_result(
        results.build_items(
            imported.results, (*not_imported, *generated.not_imported), choices, written if generated.packages else ()
        ),
        source_format="folders",
        folder=str(out),
        clusters=len(imported.clusters),
        packages=len(generated.packages),
        basis="files",
    )
    if generated.packages:
        page = adoption_formats.format_adoption_page(result)
        files = config_files.build_output_files(config, locations.fleet_url, describe_url_settings(), page)
        adoption.write_output(out, files, generated.catalog)
    return result
