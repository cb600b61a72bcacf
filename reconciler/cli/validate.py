"""`reconciler validate`: list all findings in the config."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from reconciler import __version__
from reconciler.bootstrap import config_location, schema_folder
from reconciler.bootstrap import services as bootstrap_services
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import ERROR_FINDING, CannotRunError
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
from reconciler.inspect import validate as inspect_validate
from reconciler.krm import field_text, schema
from reconciler.krm.findings import Finding, Severity
from reconciler.output.findings import code_scanning
from reconciler.reconcile import codes

if TYPE_CHECKING:
    from reconciler.inspect.validate import ConformanceOptions, ValidatedConfig
    from reconciler.output.findings.code_scanning import LocatedFinding
    from reconciler.settings import Settings

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
@click.option(
    "--rendered", is_flag=True, help="Render every package, and check the resources against the APIs of the cluster."
)
@click.option(
    "--schemas", metavar="DIR", help="With --rendered: a folder of Kubernetes schemas in the layout of kubeconform."
)
@click.option(
    "--kubernetes-version",
    metavar="VERSION",
    help=(
        "With --rendered: the Kubernetes version of clusters that do not have the annotation "
        "reconciler.dev/kubernetes-version."
    ),
)
@click.option("--tenant", metavar="NAME", help="List only the findings about the files and packages of this tenant.")
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
    tenant: str | None,
    output: str,
) -> int:
    """List the findings in CONFIG, with the file, line, field, value and allowed values."""
    with report_errors():
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache)
        set_up_logs(settings, service=False)
        options = _build_conformance_options(schemas, kubernetes_version, is_rendered=rendered)
        validated, findings = validate_config(settings, settings_file, options, tenant)
    click.echo(_format_findings(findings, validated.config, output, "validate-rendered" if rendered else "validate"))
    return _exit_status(validated.findings, Severity(fail_on))


def validate_config(
    settings: Settings,
    settings_file: str | None,
    options: ConformanceOptions | None = None,
    tenant: str | None = None,
) -> tuple[ValidatedConfig, Sequence[LocatedFinding]]:
    """Validate the config of the settings. Return the config, and its findings with their lines in the repository.

    Args:
        options: The options for the check of rendered packages. None means that no package is rendered.
        tenant: The tenant whose findings are returned. None means all findings.

    Raises:
        CannotRunError: The config has no valid Tenant with this name.
    """
    config = require_config_url(settings)
    location = config_location.locate_config(settings, config, settings_file)
    with show_progress() as show:
        services = bootstrap_services.build_services(
            settings, config, should_treat_missing_as_empty=options is not None, report_progress=show
        )
        with services.remotes as remotes:
            validated = (
                inspect_validate.validate_rendered(services.source, remotes, services.pass_services, options)
                if options
                else inspect_validate.validate(services.source, remotes, services.pass_services)
            )
    if tenant:
        if tenant not in (tenants := validated.plan.tenants.by_name):
            raise CannotRunError(
                f'--tenant: the config has no valid Tenant "{tenant}"; existing tenants:'
                f" {field_text.quote_list(tenants) or 'none'}"
            )
        validated = validated.select_tenant(tenant)
    locator = code_scanning.FindingLocator(validated.objects.values(), validated.owner_sets)
    findings = code_scanning.locate_findings(validated.findings, locator, location.root, location.settings)
    return validated, findings


def _build_conformance_options(
    schemas: str | None, version: str | None, *, is_rendered: bool
) -> ConformanceOptions | None:
    """Return the options for the check of rendered packages. Return None if --rendered is not set."""
    if not is_rendered:
        if schemas or version:
            raise click.UsageError("--schemas and --kubernetes-version require --rendered")
        return None
    release = schema.kubernetes_apis.parse_kubernetes_release(version) if version else None
    if version and not release:
        raise click.UsageError(f'--kubernetes-version must be a Kubernetes version such as "1.31", but is "{version}"')
    return inspect_validate.ConformanceOptions(schema_folder.build_schemas(schemas), release)


def _format_findings(findings: Sequence[LocatedFinding], config: str, output: str, category: str) -> str:
    match output:
        case "sarif":
            return json.dumps(code_scanning.build_sarif_log(findings, __version__, codes.ALL_CODES, category), indent=2)
        case "gitlab":
            return json.dumps(code_scanning.build_code_quality_report(findings), indent=2)
        case "json":
            return code_scanning.build_validation_result(findings, config).to_json()
        case _:
            return code_scanning.format_validation_text(code_scanning.build_validation_result(findings, config))


def _exit_status(findings: Sequence[Finding], lowest: Severity) -> int:
    severities = list(Severity)
    failing = severities[: severities.index(lowest) + 1]
    return ERROR_FINDING if any(finding.severity in failing for finding in findings) else exit_status_of(findings)
