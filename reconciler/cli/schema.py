"""`reconciler schema`: JSON Schemas of every kind, for editors and for checks before a commit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import CannotRunError
from reconciler.cli.shared import cache_option, config_of, progress, read_settings, set_up_logs, settings_option
from reconciler.krm.findings import Finding
from reconciler.reporting.findings import finding_lines
from reconciler.reporting.schemas import (
    ALL,
    INDEX,
    KINDS,
    SETTINGS,
    Kind,
    component_kind,
    index_schema,
    kind_lines,
    kinds_data,
    schema_files,
    schema_named,
    schema_text,
)
from reconciler.rules.fields import meant
from reconciler.settings import schema_text as settings_schema
from reconciler.wiring import build_parts


@click.command("schema")
@click.argument("kind", metavar="[KIND]", required=False)
@click.option(
    "--output", "-O", "out", metavar="DIR", type=click.Path(path_type=Path), help="Write all of them to this folder."
)
@click.option("--config", metavar="CONFIG", help="Also the kinds that this config's ComponentTypes make.")
@settings_option
@cache_option
@click.option("-o", "form", type=click.Choice(["text", "json"]), default="text", help="How to list the kinds.")
def command(
    kind: str | None, out: Path | None, config: str | None, settings_file: str | None, cache: str | None, form: str
) -> int:
    """List the kinds that a config may hold, print the JSON Schema of one, or write all of them to a folder.

    KIND is the name of a kind, `settings` for the settings file, or `all` for one schema that picks by apiVersion and
    kind. docs/schema.md tells how editors come to know them.
    """
    with told_plainly():
        made, findings = _made(config, settings_file, cache) if config else ((), ())
        kinds = (*KINDS, *made)
        if kind and out:
            raise click.UsageError("give either KIND or --output: a folder holds all of them")
        if out:
            _write(out, schema_files(kinds, _settings()))
        else:
            click.echo(_printed(kind, kinds) if kind else _listed(kinds, form), nl=False)
    for line in finding_lines(findings):
        click.echo(line, err=True)
    return status_of(findings)


def _made(config: str, settings_file: str | None, cache: str | None) -> tuple[tuple[Kind, ...], tuple[Finding, ...]]:
    """Return the kinds that component types make, and why some make none."""
    with progress() as show:
        settings = read_settings(settings_file, config=config, cache=cache)
        set_up_logs(settings, service=False)
        parts = build_parts(settings, config_of(settings), progress=show)
        with parts.remotes:
            catalog = parts.tools.read_catalog(parts.source.read())
            made, findings = parts.tools.made_kinds(catalog)
    unreadable = tuple(one.finding for one in catalog.unreadable)
    return tuple(component_kind(one.name, one.component_type, one.schema) for one in made), (*unreadable, *findings)


def _listed(kinds: Sequence[Kind], form: str) -> str:
    if form == "json":
        return json.dumps(kinds_data(kinds), indent=2) + "\n"
    return "\n".join(kind_lines(kinds)) + "\n"


def _printed(name: str, kinds: Sequence[Kind]) -> str:
    if name == ALL:
        return schema_text(index_schema(kinds))
    if name == SETTINGS:
        return settings_schema()
    found = schema_named(name, kinds)
    if found is None:
        known = [*(one.name for one in kinds), ALL, SETTINGS]
        raise CannotRunError(f"KIND must be one of {', '.join(known)}, not {name!r}{meant(name, known)}")
    return schema_text(found)


def _settings() -> Mapping[str, Any]:
    schema: dict[str, Any] = json.loads(settings_schema())
    return schema


def _write(out: Path, files: Mapping[str, str]) -> None:
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / INDEX).is_file())):
        raise CannotRunError(f"{out} must be absent, empty, or a folder of schemas, with its {INDEX}")
    for path, text in files.items():
        place = out / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    click.echo(f"wrote {len(files)} schemas to {out}; {out / INDEX} picks among them by apiVersion and kind")
