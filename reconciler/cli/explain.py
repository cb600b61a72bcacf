"""`reconciler explain`: show the provenance of the values in one package. The layers of a value are shown in order."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Protocol

import click

from reconciler.bootstrap import services as bootstrap_services
from reconciler.cli import service_results
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS, CannotRunError
from reconciler.cli.options import output_option, require_config_url, show_progress
from reconciler.cli.review_options import (
    CommandSetup,
    ServerOptions,
    TargetType,
    add_read_server_options,
    add_setup_options,
    offline_option,
    open_history,
)
from reconciler.inspect import explain as inspect_explain
from reconciler.inspect import local_commits
from reconciler.krm import field_text
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.explain import ablation, builder, chart_values, formats, model
from reconciler.output.explain import result as explain_result
from reconciler.reconcile import snapshot as reconcile_snapshot
from reconciler.reconcile.remotes import targets

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.inspect.local_commits import LocalCommits
    from reconciler.output.explain.model import PackageExplanation
    from reconciler.planning.attribution.re_render import ReRenderedPackage
    from reconciler.planning.attribution.removable_layers import EditOrigin, RemovableLayer
    from reconciler.reconcile.remotes.targets import TargetReference


class _Explainer(Protocol):
    """An object that renders one package, either for the current config or for an earlier commit."""

    def render(self, removed_layer: RemovableLayer | None = None) -> ReRenderedPackage:
        """Render the package, and keep the result of each stage of the render.

        If `removed_layer` is not None, the render omits this layer.
        """
        ...

    def open_commits(self, origin: EditOrigin) -> LocalCommits | None:
        """Return the commits of people on the branch with a local change. Return None if this branch does not exist."""
        ...


class PackageType(TargetType):
    """Type of command-line arguments of the form REPOSITORY/PACKAGE."""

    allowed = "REPOSITORY/PACKAGE"

    def convert(
        self, value: str | TargetReference, param: click.Parameter | None, ctx: click.Context | None
    ) -> TargetReference:
        """Parse the argument. Fail with a usage error if it does not contain a package."""
        target = super().convert(value, param, ctx)
        if not target.package:
            self.fail(f"must be {self.allowed}, but is {field_text.quote_value(str(target))}", param, ctx)
        return target


@click.command("explain")
@click.argument("target", metavar="REPOSITORY/PACKAGE", type=PackageType())
@click.argument("resource", metavar="[RESOURCE", required=False, default="")
@click.argument("pointer", metavar="[POINTER]]", required=False, default="")
@offline_option
@click.option(
    "--values",
    "values_path",
    metavar="[PATH]",
    is_flag=False,
    flag_value="",
    default=None,
    help="Show the layers of the values of the chart: of all values, or of the values at PATH.",
)
@click.option(
    "--source",
    "source_name",
    metavar="NAME",
    default="",
    help="With --values, show only the values of the chart of this source in spec.sources.",
)
@click.option("--at", metavar="COMMIT", default="", help="Explain the package at this commit of its repository.")
@add_setup_options
@add_read_server_options
@output_option("text", "json")
def command(
    target: TargetReference,
    resource: str,
    pointer: str,
    values_path: str | None,
    source_name: str,
    at: str,
    offline: bool,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    server: str | None,
    token_file: Path | None,
    output: str,
) -> int:
    """Show the provenance of the values in a package: the layers of each value in order. The last layer wins.

    RESOURCE is Kind/name or Kind/namespace/name. POINTER is a JSON pointer in the resource, or the name of an option of
    a Plugin. With --at, the command re-renders the package of an earlier commit with the config of that commit. Nothing
    is pushed.

    With --values, the command shows the values of the charts of the package, from the defaults of the chart to the
    parameters of the PackageVariant. PATH is a path such as image.tag, or a JSON pointer. If several charts have a
    value at PATH, --source selects one of them.
    """
    if source_name and values_path is None:
        raise click.UsageError("--source must be used with --values")
    if values_path is not None and resource:
        raise click.UsageError("--values must be used without RESOURCE")
    setup = CommandSetup(config, settings_file, fleet, cache, offline)
    service = ServerOptions(server, token_file)
    selection = _Selection(resource, pointer, values_path, source_name)
    if service.check(setup):
        return _print_from_service(service, target, selection, at, output)
    try:
        explanation = _explain_package(target, at, setup, selection)
    except (targets.UnknownTargetError, model.ValueNotFoundError) as error:
        raise CannotRunError(str(error)) from error
    result = explain_result.build_explanation_result(explanation)
    if output == "json":
        click.echo(result.to_json())
    else:
        click.echo(formats.format_explanation(result), nl=False)
    # If the package at the commit of `--at` could not be re-rendered, return a failure, although there is no finding.
    is_missing = bool(at) and explanation.package.rendered is None
    return exit_status_of(explanation.package.findings) or (ERROR_FINDING if is_missing else SUCCESS)


def _print_from_service(
    service: ServerOptions, target: TargetReference, selection: _Selection, at: str, output: str
) -> int:
    """Print the explanation of a service, and return the exit status."""
    query = {
        "target": target.cluster, "package": target.package, "resource": selection.resource,
        "pointer": selection.pointer, "at": at, "path": selection.values_path or "", "source": selection.source_name,
        "values": "" if selection.values_path is None else "charts",
    }  # fmt: skip
    found = service_results.request_output(service, "/explain", query, output)
    click.echo(found.text, nl=output == "json")
    is_missing = bool(at) and output == "json" and not json.loads(found.text)["summary"]["isRendered"]
    return found.exit_status or (ERROR_FINDING if is_missing else SUCCESS)


@dataclass(frozen=True)
class _Selection:
    """The values of a package that are explained: either values in resources, or values of charts.

    Attributes:
        resource: A resource, or "" for all resources.
        pointer: The path of one value in the resource, or "" for all its values.
        values_path: None to explain resources. To explain chart values: the path of one value, or "" for all values.
        source_name: The source whose chart values are explained. "" selects the chart values of all sources.
    """

    resource: str
    pointer: str
    values_path: str | None
    source_name: str

    def explain(self, explainer: _Explainer, max_renders: int) -> PackageExplanation:
        """Return the explanation of the selected values.

        Args:
            max_renders: The maximum number of renders for one field. These renders find the chart values that affect
                the field. 0 disables this search.
        """
        if self.values_path is not None:
            return chart_values.explain_chart_values(explainer.render(), self.values_path, self.source_name)
        explanation = builder.explain(explainer.render(), self.resource, self.pointer)
        if not self.pointer:
            return explanation
        explanation = local_commits.add_local_commits(explanation, explainer.open_commits)
        explanation = ablation.add_ablations(explanation, partial(_explain_without, explainer))
        return chart_values.add_field_dependencies(explanation, max_renders) if max_renders else explanation


def _explain_package(
    target: TargetReference, at: str, setup: CommandSetup, selection: _Selection
) -> PackageExplanation:
    if at:
        with open_history(setup) as past:
            explainer: _Explainer = inspect_explain.open_past_explainer(target, at, past)
            return selection.explain(explainer, setup.read().sources.helm.explain_renders)
    with report_errors(), show_progress() as show:
        settings = setup.read()
        services = bootstrap_services.build_services(
            settings,
            require_config_url(settings),
            should_treat_missing_as_empty=True,
            can_fetch=not setup.offline,
            report_progress=show,
        )
        with services.remotes as remotes:
            snapshot = reconcile_snapshot.take_snapshot(services.source, remotes, services.pass_services)
            explainer = inspect_explain.PackageExplainer(target, snapshot, remotes, services.pass_services)
            return selection.explain(explainer, settings.sources.helm.explain_renders)


def _explain_without(explainer: _Explainer, layer: RemovableLayer) -> ReRenderedPackage | str:
    try:
        return explainer.render(layer)
    except targets.UnknownTargetError:
        return "no object would request the package"
