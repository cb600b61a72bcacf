"""The steps of `reconciler adopt`: read the files to import, generate a config, render and compare it, and write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reconciler.adopt.argocd.applications import read_argocd
from reconciler.adopt.config_files import RESULT_PAGE, build_config_files, build_output_files
from reconciler.adopt.flux.reader import read_flux
from reconciler.adopt.generated import GeneratedConfig
from reconciler.adopt.grouping import generate_separately
from reconciler.adopt.importers import (
    Import,
    detect_format,
    import_folders,
    import_requests,
    list_clusters,
    select_rendered,
)
from reconciler.adopt.layout import DEFAULT_LAYOUT, FLUX_LAYOUT, parse_layout
from reconciler.adopt.results import Rendered, build_items, list_rendered, verify_units
from reconciler.adopt.secret_values import leave_out_secret_values
from reconciler.adopt.units import AdoptionError, Cluster, Unit
from reconciler.bootstrap.adoption import (
    CATALOG_FOLDER,
    AdoptionSource,
    SourceRepositories,
    read_source,
    render_config,
    write_output,
)
from reconciler.bootstrap.inputs import Progress
from reconciler.git import folder as git_folder
from reconciler.git.url import make_url_relative_to
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.adoption.formats import format_adoption_page
from reconciler.output.adoption.result import AdoptedUnit, AdoptionResult, SourceFormat, build_adoption_result
from reconciler.output.scaffold.documents import CONFIG_FOLDER, SETTINGS_FILE
from reconciler.settings import Settings
from reconciler.settings.repositories import describe_url_settings


@dataclass(frozen=True)
class ImportOptions:
    """The options of the command.

    Attributes:
        out: The output folder.
        source_format: None if the format is detected.
        layout: The pattern of folders, or "" for the default of the format.
        labels: Maps the name of each cluster to its labels.
        ignored: JSON pointers of fields that are not compared.
        rendered: The folder with the expected manifests of Applications.
        repo_url: The URL with which Applications name the imported repository, or "".
    """

    source: str
    out: Path
    source_format: SourceFormat | None
    path: str
    layout: str
    fleet: str | None
    labels: Mapping[str, Mapping[str, str]]
    ignored: tuple[tuple[str, ...], ...]
    rendered: Path | None
    repo_url: str
    only_equal: bool
    should_explain: bool


def import_fleet(settings: Settings, options: ImportOptions, report_progress: Progress) -> AdoptionResult:
    """Import a fleet, and write the output folder unless no package can be imported.

    Raises:
        AdoptionError: The options, or the repository or folder to import, cannot be used.
        GitError: A repository cannot be read or written.
        OSError: A file cannot be written.
    """
    read = read_source(settings, options.source, options.path)
    runner = _Runner(settings, options, SourceRepositories(settings, read, options.repo_url), report_progress)
    source_format = options.source_format or detect_format(read.files)
    if source_format == "folders":
        found = import_folders(read.files, parse_layout(options.layout or DEFAULT_LAYOUT), options.labels)
    else:
        found = runner.import_applications(read, source_format)
    if not found.fleet.units and not found.fleet.not_imported:
        raise AdoptionError(
            f"{options.source} contains nothing to import as {source_format}: check --path, --from and --layout"
        )
    locations = _choose_locations(read, options, found)
    return runner.write(found, runner.import_units(found), locations)


@dataclass(frozen=True)
class _Locations:
    """The locations of the packages of all clusters.

    Attributes:
        fleet_url: The value of the setting `fleet.url`.
        locate: Returns `spec.git` of the deployment Repository of a cluster.
    """

    fleet_url: str
    locate: Callable[[Cluster], Mapping[str, str]]


def _choose_locations(read: AdoptionSource, options: ImportOptions, found: Import) -> _Locations:
    """Return the locations of the packages after the import.

    If a fleet repository is given, the packages get new locations in it. Otherwise, the packages stay in the folders of
    the imported repository.

    Raises:
        AdoptionError: No fleet repository is given, and the packages cannot stay in the imported repository.
    """
    if options.fleet is not None:
        url = make_url_relative_to(options.out, options.fleet)
        return _Locations(url, lambda cluster: {"repo": url, "branch": f"clusters/{cluster.name}"})
    if found.format != "folders":
        raise AdoptionError("--fleet must name the repository for the branches of the clusters")
    if not read.branch:
        raise AdoptionError(
            "SOURCE is a plain folder: give the Git repository of the folder as SOURCE, or --fleet with the repository"
            " for the branches of the clusters"
        )
    if any(not cluster.directory for cluster in found.fleet.clusters):
        raise AdoptionError(
            "the layout does not end with {package}, so that the packages of a cluster are not in one folder: give"
            " --fleet with the repository for the branches of the clusters"
        )
    url, prefix = make_url_relative_to(options.out, read.url), f"{options.path}/" if options.path else ""
    return _Locations(
        url, lambda cluster: {"repo": url, "branch": read.branch, "directory": f"{prefix}{cluster.directory}"}
    )


@dataclass(frozen=True)
class _Imported:
    """The new config, and the result of the comparison for each unit (one package on one cluster)."""

    generated: GeneratedConfig
    clusters: tuple[Cluster, ...]
    results: tuple[AdoptedUnit, ...]


@dataclass(frozen=True)
class _Runner:
    """Generates a config for the imported packages, renders it, and compares the result with the existing content."""

    settings: Settings
    options: ImportOptions
    repositories: SourceRepositories
    report_progress: Progress

    def import_applications(self, read: AdoptionSource, source_format: SourceFormat) -> Import:
        """Read the objects of Argo CD or Flux, and return the packages to import with their expected content."""
        if source_format == "argocd":
            requests = read_argocd(read.files, self.repositories)
        else:
            layout = parse_layout(self.options.layout or FLUX_LAYOUT, ("cluster",))
            requests = read_flux(read.files, layout, self.repositories)
        checked = leave_out_secret_values(self.repositories.resolve_branches(requests))
        requests = checked.requests
        clusters = list_clusters(requests, self.options.labels)
        if self.options.rendered is not None:
            expected = select_rendered(requests, git_folder.read_package(self.options.rendered))
        elif requests.requests:
            separate = generate_separately(requests.requests, clusters)
            expected = list_rendered(separate, self._render(separate, clusters))
        else:
            expected = {}
        is_rendered = self.options.rendered is not None
        expected = {**expected, **checked.unverified}
        return import_requests(source_format, requests, clusters, expected, is_rendered=is_rendered)

    def import_units(self, found: Import) -> _Imported:
        """Import the units. A unit is one package on one cluster.

        With --only-equal, only units whose render equals their existing content are imported. If other units remain,
        the import is repeated without them.
        """
        units = found.fleet.units
        imported = self._import_once(found, units)
        left_out: list[AdoptedUnit] = []
        while self.options.only_equal and (others := [unit for unit in imported.results if unit.result != "Equal"]):
            left_out += (unit.model_copy(update={"is_written": False}) for unit in others)
            names = {(unit.cluster, unit.package) for unit in left_out}
            imported = self._import_once(found, [unit for unit in units if (unit.cluster, unit.package) not in names])
        return replace(imported, results=(*imported.results, *left_out))

    def _import_once(self, found: Import, units: Sequence[Unit]) -> _Imported:
        generated = found.generate(units, found.fleet.clusters)
        names = {name for package in generated.packages for name in package.clusters}
        clusters = tuple(cluster for cluster in found.fleet.clusters if cluster.name in names)
        rendered = self._render(generated, clusters) if units else Rendered()
        return _Imported(generated, clusters, tuple(verify_units(units, generated, rendered, self.options.ignored)))

    def _render(self, generated: GeneratedConfig, clusters: tuple[Cluster, ...]) -> Rendered:
        return render_config(self.settings, generated, clusters, self.repositories, self.report_progress)

    def write(self, found: Import, imported: _Imported, locations: _Locations) -> AdoptionResult:
        """Write the output folder, unless no package can be imported, and return the result."""
        generated, options = imported.generated, self.options
        config = build_config_files(generated, imported.clusters, f"./{CATALOG_FOLDER}", locations.locate)
        written = [RESULT_PAGE, CONFIG_FOLDER, SETTINGS_FILE, *([CATALOG_FOLDER] if generated.catalog else [])]
        items = build_items(
            imported.results,
            found.fleet.not_imported,
            generated.choices if options.should_explain else (),
            written if generated.packages else (),
        )
        result = build_adoption_result(
            items,
            source_format=found.format,
            folder=str(options.out),
            clusters=len(imported.clusters),
            packages=len(generated.packages),
            basis=found.basis,
        )
        if generated.packages:
            page = format_adoption_page(result)
            files = build_output_files(config, locations.fleet_url, describe_url_settings(), page)
            write_output(options.out, files, generated.catalog)
        return result
