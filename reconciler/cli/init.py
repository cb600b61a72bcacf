"""`reconciler init`: create a new config from options or questions."""

from __future__ import annotations

import posixpath
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from reconciler.bootstrap import repository_type
from reconciler.catalog import files as catalog_files
from reconciler.cli.clusters_file import read_clusters_file
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import DIFFERENCES, CannotRunError
from reconciler.cli.options import output_option, read_settings, set_up_logs
from reconciler.git import folder as git_folder
from reconciler.git import local_repository
from reconciler.git import url as git_url
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.findings import code_scanning
from reconciler.output.plan import overview
from reconciler.output.scaffold import documents as scaffold_documents
from reconciler.output.scaffold import entries as scaffold_entries
from reconciler.output.scaffold import files as scaffold_files
from reconciler.output.scaffold import result as scaffold_result

if TYPE_CHECKING:
    from reconciler.catalog.files import FileTree
    from reconciler.output.plan.models import PlanResult
    from reconciler.output.scaffold.entries import CatalogEntry, Scaffold
    from reconciler.output.scaffold.result import ScaffoldResult

_Input = TypeVar("_Input")
_Value = TypeVar("_Value")
# The reconciler writes the branches with these prefixes, so that they must not contain a config.
_RESERVED_BRANCHES = ("clusters/", "drafts/", "proposed/", "reconciler/")
_REQUIRED = "--catalog, --fleet, and --cluster or --clusters"


@click.command("init")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--catalog",
    "catalogs",
    metavar="NAME=URL[#BRANCH]",
    multiple=True,
    help=(
        "A repository with packages. NAME:TYPE=URL sets the type git, helm or oci; otherwise, the type is detected"
        " from the URL. You can repeat the option."
    ),
)
@click.option("--fleet", metavar="URL", help="The repository with the branches of the clusters.")
@click.option(
    "--cluster",
    "clusters",
    metavar="NAME[,KEY=VALUE...]",
    multiple=True,
    help="A cluster with its labels. You can repeat the option.",
)
@click.option(
    "--clusters",
    "clusters_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A CSV file with the columns `name` and one per label, or a list of names, one per line.",
)
@click.option(
    "--package",
    "packages",
    metavar="CATALOG/PACKAGE[@REV]",
    multiple=True,
    help="A package of a catalog, or a chart with its version, for the clusters. You can repeat the option.",
)
@click.option(
    "--selector",
    metavar="KEY=VALUE",
    multiple=True,
    help="Only clusters with this label receive the packages. You can repeat the option.",
)
@click.option("--yes", is_flag=True, help="Ask no questions.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@output_option("text", "json")
def command(
    folder: Path,
    catalogs: tuple[str, ...],
    fleet: str | None,
    clusters: tuple[str, ...],
    clusters_file: Path | None,
    packages: tuple[str, ...],
    selector: tuple[str, ...],
    yes: bool,
    force: bool,
    output: str,
) -> int:
    """Create a config in DIR (default: the current folder), and run `validate` and `plan`.

    On a terminal, the command asks for each missing value, and prints the command line with all values.
    """
    options = _Options(folder, catalogs, fleet or "", clusters, clusters_file, packages, selector)
    with report_errors():
        _check_folder(folder)
        if not yes and sys.stdin.isatty() and sys.stdout.isatty():
            _check_given(options)
            options = _ask_for_missing(options)
            click.echo(f"\nThe same command without questions:\n\n  {options.command_line}\n")
        elif not yes or not options.is_complete:
            raise CannotRunError(f"init requires {_REQUIRED}. Without a terminal, it also requires --yes")
        # Import the settings here, because `--help` would otherwise import pydantic.
        from reconciler.settings.repositories import describe_url_settings

        scaffold = _build_scaffold(options)
        files = scaffold_files.build_files(scaffold, describe_url_settings())
        _write(folder, files, has_force=force)
        result, plan = _check_config(folder, files, scaffold)
    click.echo(result.to_json() if output == "json" else scaffold_result.format_scaffold_text(result, plan))
    return exit_status_of(entry.to_finding() for entry in plan.findings) or (DIFFERENCES if plan.has_changes else 0)


@dataclass(frozen=True)
class _Options:
    """The values of the options, as they are written on the command line."""

    folder: Path
    catalogs: tuple[str, ...]
    fleet: str
    clusters: tuple[str, ...]
    clusters_file: Path | None
    packages: tuple[str, ...]
    selector: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        return bool(self.catalogs and self.fleet and (self.clusters or self.clusters_file))

    @property
    def command_line(self) -> str:
        pairs = [
            *(("--catalog", text) for text in self.catalogs),
            ("--fleet", self.fleet),
            *(("--cluster", text) for text in self.clusters),
            *([("--clusters", str(self.clusters_file))] if self.clusters_file else []),
            *(("--package", text) for text in self.packages),
            *(("--selector", text) for text in self.selector),
        ]
        words = [word for pair in pairs for word in pair]
        return shlex.join(["reconciler", "init", str(self.folder), *words, "--yes"])


def _check_folder(folder: Path) -> None:
    branch = local_repository.find_checked_out_branch(folder)
    if branch.startswith(_RESERVED_BRANCHES):
        raise CannotRunError(
            f"{folder} must not be in a work tree of the branch {branch!r}, which the reconciler writes: choose a"
            " folder in the repository of the config"
        )


def _check_given(options: _Options) -> None:
    """Check the options of the command line before the first question."""
    for text in options.catalogs:
        _read("--catalog", scaffold_entries.parse_catalog, text)
    if options.fleet:
        _read("--fleet", scaffold_entries.check_url, options.fleet)


def _ask_for_missing(options: _Options) -> _Options:
    if not options.catalogs:
        name = _ask("Name of the catalog", "catalog", str)
        url = _ask("URL or path of the catalog", None, lambda text: scaffold_entries.parse_catalog(f"{name}={text}"))
        options = replace(options, catalogs=(f"{name}={url}",))
    if not options.fleet:
        catalog = scaffold_entries.parse_catalog(options.catalogs[0])
        fleet = "fleet.git" if catalog.type == "oci" else posixpath.join(posixpath.dirname(catalog.url), "fleet.git")
        question = "Repository with the branches of the clusters"
        options = replace(options, fleet=_ask(question, fleet, scaffold_entries.check_url))
    if not options.clusters and not options.clusters_file:
        question = "Clusters with labels, separated by spaces, such as berlin,region=eu"
        clusters = _ask(question, "cluster-1", lambda text: [*map(scaffold_entries.parse_cluster, text.split())])
        options = replace(options, clusters=tuple(clusters.split()))
    if not options.packages:
        name = scaffold_entries.parse_catalog(options.catalogs[0]).name
        question = f"Package for all clusters, such as {name}/gateway@v1 (empty: no package)"
        package = _ask(question, "", lambda text: text and scaffold_entries.parse_package(text))
        options = replace(options, packages=(package,) if package else ())
    return options


def _ask(question: str, default: str | None, parse: Callable[[str], object]) -> str:
    """Ask until `parse` accepts the answer, and return the answer."""

    def convert(answer: str) -> str:
        try:
            parse(answer.strip())
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        return answer.strip()

    answer: str = click.prompt(question, default=default, value_proc=convert, show_default=bool(default))
    return answer


def _build_scaffold(options: _Options) -> Scaffold:
    catalogs = [_read("--catalog", scaffold_entries.parse_catalog, text) for text in options.catalogs]
    clusters = [_read("--cluster", scaffold_entries.parse_cluster, text) for text in options.clusters]
    if options.clusters_file:
        clusters += read_clusters_file(options.clusters_file)
    scaffold = scaffold_entries.Scaffold(
        tuple(_complete_catalog(catalog, options.folder) for catalog in catalogs),
        git_url.make_url_relative_to(options.folder, _read("--fleet", scaffold_entries.check_url, options.fleet)),
        tuple(clusters),
        tuple(_read("--package", scaffold_entries.parse_package, text) for text in options.packages),
        dict(_read("--selector", scaffold_entries.parse_label, text) for text in options.selector),
    )
    _read("init", scaffold_entries.check_scaffold, scaffold)
    return scaffold


def _read(option: str, parse: Callable[[_Input], _Value], value: _Input) -> _Value:
    try:
        return parse(value)
    except ValueError as error:
        raise CannotRunError(f"{option}: {error}") from None


def _complete_catalog(catalog: CatalogEntry, folder: Path) -> CatalogEntry:
    """Return a catalog with its type, and with the path of a local repository relative to the parent of the config."""
    kind = catalog.type or ("git" if catalog.branch else repository_type.detect_repository_type(catalog.url))
    url = git_url.make_url_relative_to(folder, catalog.url) if kind == "git" else catalog.url
    return replace(catalog, type=kind, url=url)


def _write(folder: Path, files: FileTree, *, has_force: bool) -> None:
    """Write all files, or none of them."""
    existing = [path for path in files if (folder / path).exists() or (folder / path).is_symlink()]
    if existing and not has_force:
        raise CannotRunError(
            f"nothing was written, because these files exist in {folder}: {', '.join(existing)}; use --force to replace"
            " them"
        )
    if not folder.exists():
        git_folder.write_new_package(folder, files)
        return
    # Omit symbolic links, so that they are not replaced. `write_package` refuses to replace files that are not in
    # `replaced`.
    replaced = {path: (folder / path).read_bytes() for path in existing if not (folder / path).is_symlink()}
    git_folder.write_package(folder, catalog_files.FileTree().with_files(replaced), files)


def _check_config(folder: Path, files: FileTree, scaffold: Scaffold) -> tuple[ScaffoldResult, PlanResult]:
    """Validate and plan the new config."""
    # Import the commands here, because `--help` would otherwise import their modules.
    from reconciler.cli.plan import run_new_plan
    from reconciler.cli.validate import validate_config

    settings_file = str(folder / scaffold_documents.SETTINGS_FILE)
    fleet = scaffold.fleet_url
    if fleet.startswith(("./", "../")):
        fleet = str((folder / fleet).resolve())
    settings = read_settings(settings_file, config=str(folder / scaffold_documents.CONFIG_FOLDER), fleet=fleet)
    set_up_logs(settings, service=False, command_level="error")
    validated, located = validate_config(settings, settings_file)
    validation = code_scanning.build_validation_result(located, validated.config)
    plan = overview.build_plan_result(run_new_plan(settings), 0)
    return scaffold_result.build_scaffold_result(str(folder), files, validation.findings, plan), plan
