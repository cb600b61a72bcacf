"""`reconciler validate`: list all findings in the config."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from reconciler import __version__
from reconciler.bootstrap.config_location import locate_config
from reconciler.bootstrap.schema_folder import build_schemas
from reconciler.bootstrap.services import build_services
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import ERROR_FINDING
from reconciler.cli.options import (
    cache_option,
    config_argument,
    fleet_option,
    read_settings,
    require_config_url,
    set_up_logs,
    settings_option,
    show_progress,
)
from reconciler.inspect.validate import ConformanceOptions, validate, validate_rendered
from reconciler.krm.findings import Finding, Severity
from reconciler.krm.schema.kubernetes_apis import parse_kubernetes_release
from reconciler.output.findings.code_scanning import (
    FindingLocator,
    LocatedFinding,
    build_code_quality_report,
    build_sarif_log,
    build_validation_result,
    format_validation_text,
    locate_findings,
)
from reconciler.reconcile.codes import ALL_CODES

_FORMATS = ["text", "json", "sarif", "gitlab"]


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
    help="The lowest severity that sets the exit status to 1.",
)
@click.option("--rendered", is_flag=True, help="Render every package, and check it against the APIs of its cluster.")
@click.option("--schemas", metavar="DIR", help="With --rendered: a folder of Kubernetes schemas, as for kubeconform.")
@click.option(
    "--kubernetes-version",
    metavar="VERSION",
    help="With --rendered: the version of clusters without the annotation reconciler.dev/kubernetes-version.",
)
@click.option("-o", "--output", type=click.Choice(_FORMATS), default="text", help="The output format.")
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
    """List the findings in CONFIG, with the file, line, field, value and allowed values."""
    with report_errors():
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache)
        set_up_logs(settings, service=False)
        options = _build_conformance_options(schemas, kubernetes_version, is_rendered=rendered)
        location = locate_config(settings, require_config_url(settings), settings_file)
        with show_progress() as show:
            services = build_services(
                settings, require_config_url(settings), should_treat_missing_as_empty=rendered, report_progress=show
            )
            with services.remotes as remotes:
                validated = (
                    validate_rendered(services.source, remotes, services.pass_services, options)
                    if options
                    else validate(services.source, remotes, services.pass_services)
                )
    locator = FindingLocator(validated.objects.values(), validated.owner_sets)
    findings = locate_findings(validated.findings, locator, location.root, location.settings)
    click.echo(_format_findings(findings, validated.config, output, "validate-rendered" if rendered else "validate"))
    return _exit_status(validated.findings, Severity(fail_on))


def _build_conformance_options(
    schemas: str | None, version: str | None, *, is_rendered: bool
) -> ConformanceOptions | None:
    """Return the options for the check of rendered packages. Return None if --rendered is not set."""
    if not is_rendered:
        if schemas or version:
            raise click.UsageError("--schemas and --kubernetes-version require --rendered")
        return None
    release = parse_kubernetes_release(version) if version else None
    if version and not release:
        raise click.UsageError(f'--kubernetes-version must be a Kubernetes version such as 1.31, not "{version}"')
    return ConformanceOptions(build_schemas(schemas), release)


def _format_findings(findings: Sequence[LocatedFinding], config: str, output: str, category: str) -> str:
    match output:
        case "sarif":
            return json.dumps(build_sarif_log(findings, __version__, ALL_CODES, category), indent=2)
        case "gitlab":
            return json.dumps(build_code_quality_report(findings), indent=2)
        case "json":
            return build_validation_result(findings, config).to_json()
        case _:
            return format_validation_text(build_validation_result(findings, config))


def _exit_status(findings: Sequence[Finding], lowest: Severity) -> int:
    severities = list(Severity)
    failing = severities[: severities.index(lowest) + 1]
    return ERROR_FINDING if any(finding.severity in failing for finding in findings) else exit_status_of(findings)
