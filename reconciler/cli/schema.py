"""`reconciler schema`: print the JSON Schemas of all kinds, for editors and pre-commit checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler import settings as reconciler_settings
from reconciler.bootstrap import services as bootstrap_services
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import CannotRunError
from reconciler.cli.options import (
    cache_option,
    read_settings,
    require_config_url,
    set_up_logs,
    settings_option,
    show_progress,
)
from reconciler.krm import field_text
from reconciler.krm.findings import Finding
from reconciler.output.findings import formats
from reconciler.output.schemas import json_schemas
from reconciler.output.schemas import results as schemas_results

if TYPE_CHECKING:
    from reconciler.output.schemas.json_schemas import Kind


@click.command("schema")
@click.argument("kind", metavar="[KIND]", required=False)
@click.option(
    "--output", "-O", "out", metavar="DIR", type=click.Path(path_type=Path), help="Write all schemas to this folder."
)
@click.option(
    "--config", metavar="CONFIG", help="Also include the kinds that the ComponentTypes of this config generate."
)
@settings_option
@cache_option
@click.option("-o", "form", type=click.Choice(["text", "json"]), default="text", help="The output format of the list.")
def command(
    kind: str | None, out: Path | None, config: str | None, settings_file: str | None, cache: str | None, form: str
) -> int:
    """List the kinds that a config can contain, print the JSON Schema of one kind, or write all schemas to a folder.

    KIND is the name of a kind, the name of a result that -o json prints, `settings` for the settings file, or `all` for
    one schema of all kinds in a config. The schema `all` selects the schema of a kind by apiVersion and kind. See
    docs/how-to/use-schemas-in-an-editor.md for editors.
    """
    with report_errors():
        generated, findings = _read_generated_kinds(config, settings_file, cache) if config else ((), ())
        kinds, results = (*json_schemas.KINDS, *generated), schemas_results.list_result_kinds()
        if kind and out:
            raise click.UsageError("use either KIND or --output; the folder contains the schemas of all kinds")
        if out:
            result_files = json_schemas.build_schema_files(results, _load_settings_schema())
            _write_schemas(out, result_files | json_schemas.build_schema_files(kinds, _load_settings_schema()))
        elif kind:
            click.echo(_format_schema(kind, kinds, results), nl=False)
        elif form == "json":
            click.echo(schemas_results.build_kind_list_result((*kinds, *results), findings).to_json())
            return exit_status_of(findings)
        else:
            click.echo("\n".join(json_schemas.format_kind_lines((*kinds, *results))))
    for line in formats.format_findings(findings):
        click.echo(line, err=True)
    return exit_status_of(findings)


def _read_generated_kinds(
    config: str, settings_file: str | None, cache: str | None
) -> tuple[tuple[Kind, ...], tuple[Finding, ...]]:
    """Return the kinds that ComponentTypes generate, and findings for ComponentTypes that do not define a kind."""
    with show_progress() as show:
        settings = read_settings(settings_file, config=config, cache=cache)
        set_up_logs(settings, service=False)
        services = bootstrap_services.build_services(settings, require_config_url(settings), report_progress=show)
        with services.remotes:
            catalog = services.pass_services.read_catalog(services.source.read())
            generated, findings = services.pass_services.list_generated_kinds(catalog)
    unreadable = tuple(file.finding for file in catalog.unreadable)
    kinds = tuple(json_schemas.build_component_kind(kind.name, kind.component_type, kind.schema) for kind in generated)
    return kinds, (*unreadable, *findings)


def _format_schema(name: str, kinds: Sequence[Kind], results: Sequence[Kind]) -> str:
    if name == json_schemas.ALL:
        return json_schemas.format_schema(json_schemas.build_index_schema(kinds))
    if name == json_schemas.SETTINGS:
        return reconciler_settings.build_schema_text()
    schema = json_schemas.find_schema(name, (*kinds, *results))
    if schema is None:
        names = [*(kind.name for kind in (*kinds, *results)), json_schemas.ALL, json_schemas.SETTINGS]
        raise CannotRunError(
            f"KIND must be {field_text.describe_choice(names)}, but is"
            f" {field_text.quote_value(name)}{field_text.suggest_name(name, names)}"
        )
    return json_schemas.format_schema(schema)


def _load_settings_schema() -> Mapping[str, Any]:
    schema: dict[str, Any] = json.loads(reconciler_settings.build_schema_text())
    return schema


def _write_schemas(out: Path, files: Mapping[str, str]) -> None:
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / json_schemas.INDEX).is_file())):
        raise CannotRunError(
            f"{out} must not exist, must be an empty folder, or must be a folder of schemas that contains "
            f"{json_schemas.INDEX}"
        )
    for path, text in files.items():
        file = out / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    click.echo(
        f"wrote {len(files)} schemas to {out}; {out / json_schemas.INDEX} selects a schema by apiVersion and kind"
    )
