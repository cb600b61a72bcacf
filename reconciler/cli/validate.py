"""`reconciler validate`: every finding in the config repository."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from reconciler import __version__
from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import ERROR_FINDING
from reconciler.cli.shared import (
    cache_option,
    config_argument,
    config_of,
    fleet_option,
    progress,
    read_settings,
    set_up_logs,
    settings_option,
)
from reconciler.daemon.codes import ALL_CODES
from reconciler.daemon.validate import Judge, validate, validate_rendered
from reconciler.krm.findings import Finding, Severity
from reconciler.krm.schema.api_removals import read_release
from reconciler.reporting.code_quality import code_quality
from reconciler.reporting.located import Located, Places, locate, located_data, located_lines
from reconciler.reporting.sarif import sarif
from reconciler.wiring import build_parts, build_schemas, config_place

_FORMS = ["text", "json", "sarif", "gitlab"]


@click.command("validate")
@config_argument
@settings_option
@fleet_option
@cache_option
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info"]),
    default="error",
    show_default=True,
    help="The least severity that makes the exit status 1.",
)
@click.option("--rendered", is_flag=True, help="Render every package, and hold it against what its cluster takes.")
@click.option("--schemas", metavar="DIR", help="With --rendered: schemas of kinds, as kubeconform lays them out.")
@click.option(
    "--kubernetes-version", metavar="VERSION", help="With --rendered: of clusters that do not say theirs, as 1.31."
)
@click.option("-o", "--output", type=click.Choice(_FORMS), default="text", help="How to tell them.")
def command(
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    fail_on: str,
    rendered: bool,
    schemas: str | None,
    kubernetes_version: str | None,
    output: str,
) -> int:
    """List what is wrong, or worth knowing, in CONFIG: with file, line, field, value and what is allowed."""
    with told_plainly():
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache)
        set_up_logs(settings, service=False)
        judge = _judge(schemas, kubernetes_version, rendered=rendered)
        place = config_place(settings, config_of(settings), settings_file)
        with progress() as show:
            parts = build_parts(settings, config_of(settings), missing_is_empty=rendered, progress=show)
            with parts.remotes as remotes:
                validated = (
                    validate_rendered(parts.source, remotes, parts.tools, judge)
                    if judge
                    else validate(parts.source, remotes, parts.tools)
                )
    places = Places(validated.objects.values(), validated.makers)
    findings = locate(validated.findings, places, place.root, place.settings)
    click.echo(_told(findings, output, "validate-rendered" if rendered else "validate"))
    return _status(validated.findings, Severity(fail_on))


def _judge(schemas: str | None, version: str | None, *, rendered: bool) -> Judge | None:
    """Return by what rendered packages are judged; None where they are not asked for."""
    if not rendered:
        if schemas or version:
            raise click.UsageError("--schemas and --kubernetes-version are about rendered packages: add --rendered")
        return None
    release = read_release(version) if version else None
    if version and not release:
        raise click.UsageError(f'--kubernetes-version must be a version of Kubernetes, as 1.31, not "{version}"')
    return Judge(build_schemas(schemas), release)


def _told(found: Sequence[Located], output: str, category: str) -> str:
    match output:
        case "sarif":
            return json.dumps(sarif(found, __version__, ALL_CODES, category), indent=2)
        case "gitlab":
            return json.dumps(code_quality(found), indent=2)
        case "json":
            return json.dumps(located_data(found), indent=2)
        case _:
            return "\n".join(located_lines(found)) or "no findings"


def _status(findings: Sequence[Finding], least: Severity) -> int:
    severities = list(Severity)
    counting = severities[: severities.index(least) + 1]
    return ERROR_FINDING if any(one.severity in counting for one in findings) else status_of(findings)
