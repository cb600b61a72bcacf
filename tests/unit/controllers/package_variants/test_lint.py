"""Tests of the lint warnings about PackageVariants and PackageVariantSets."""

from __future__ import annotations

import pytest

from reconciler.controllers.package_variants.inputs import PackageVariantInputs
from reconciler.controllers.package_variants.lint import lint_variants
from reconciler.controllers.repositories import read_repositories
from tests.support.catalogs import catalog_of
from tests.unit.controllers.package_variants.controller_world import (
    REPOSITORIES,
    FakeUpstreams,
    build_variant,
    build_variant_set,
)

NORTH = "{repositorySelector: {matchLabels: {region: north}}}"
SITE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site-north, namespace: default}\n"
TEAM = "apiVersion: example.com/v1\nkind: Team\nmetadata: {name: red, labels: {size: big}}\n"


def lint(*documents: str, text: str = SITE) -> list[str]:
    """Return the lint findings of the Repositories, these documents in `variants.yaml`, and `text` in another file."""
    catalog = catalog_of(repositories=REPOSITORIES, variants="---\n".join(documents), others=text)
    findings = lint_variants(catalog, PackageVariantInputs(read_repositories(catalog)[0], FakeUpstreams()))
    return [f"{finding.location.line} {finding.code}: {finding.message}" for finding in findings]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        pytest.param("{repositorySelector: {matchLabels: {region: noth}}}",
                     "repositorySelector matches no object, because no Repository in namespace \"default\" has the label \"region=noth\"; existing values: \"north\", \"south\"; did you mean \"north\"?", id="a-value"),
        pytest.param("{repositorySelector: {matchLabels: {regio: north}}}",
                     "repositorySelector matches no object, because no Repository in namespace \"default\" has the label \"regio\"; did you mean \"region\"?", id="a-label"),
        pytest.param("{repositorySelector: {matchExpressions: [{key: region, operator: In, values: [a, b]}]}}",
                     "repositorySelector matches no object, because no Repository in namespace \"default\" has the label \"region=a\" or \"region=b\"; existing values: \"north\", \"south\"", id="one-of-several-values"),
        pytest.param("{repositorySelector: {matchLabels: {region: north}, matchExpressions:"
                     " [{key: region, operator: NotIn, values: [north]}]}}",
                     "repositorySelector matches no object, because no Repository in namespace \"default\" fulfills all requirements",
                     id="no-single-reason"),
        pytest.param("{objectSelector: {apiVersion: example.com/v1, kind: Team, name: rod}}",
                     "objectSelector matches no object, because no Team in namespace \"default\" has the name \"rod\"; did you mean \"red\"?",
                     id="a-name"),
        pytest.param("{objectSelector: {apiVersion: example.com/v1, kind: Team,"
                     " matchExpressions: [{key: size, operator: DoesNotExist}]}}",
                     "objectSelector matches no object, because every Team in namespace \"default\" has the label \"size\"",
                     id="what-all-have"),
    ],
)  # fmt: skip
def test_target_without_match_is_reported(target: str, why: str) -> None:
    # All targets are on the eighth line, and the selector too.
    result = lint(build_variant_set("edge", f"[{NORTH}, {target}]"), text=TEAM)

    assert result == [f"8 SelectorMatchesNothing: spec.targets[1].{why}"]


def test_unknown_kind_is_not_reported_as_a_target_without_match() -> None:
    assert lint(build_variant_set("edge", "[{objectSelector: {apiVersion: v9, kind: Nobody}}]")) == []


def test_repeated_target_is_reported() -> None:
    (item,) = lint(build_variant_set("edge", "[{repositories: [{name: berlin}]}, {repositories: [{name: berlin}]}]"))

    assert item.startswith("8 TargetRepeated: all packages of spec.targets[1] are also requested by spec.targets[0]")


def test_target_that_requests_more_packages_is_not_repeated() -> None:
    # The selector also selects catalog and away, which no other target requests.
    targets = "[{repositories: [{name: berlin}]}, {repositories: [{name: lisbon}]}, {repositorySelector: {}}]"

    assert lint(build_variant_set("edge", targets)) == []


@pytest.mark.parametrize(
    ("injector", "why"),
    [
        pytest.param("{kind: ConfigMap, name: site-nort}",
                     "no ConfigMap in namespace \"default\" has this name; did you mean \"site-north\"?", id="a-name"),
        pytest.param("{kind: Site, name: site-north}", "the object with this name (ConfigMap) cannot be"
                     " injected, because the injector has a different group, version or kind",
                     id="a-kind"),
        pytest.param("{name: nobody}", "no object in namespace \"default\" has this name", id="any-kind"),
    ],
)  # fmt: skip
def test_injector_without_match_is_reported(injector: str, why: str) -> None:
    result = lint(build_variant("gateway", extra=f"injectors: [{{name: site-north}}, {injector}]"))

    name = injector.partition("name: ")[2].rstrip("}")
    assert result == [f'8 InjectorMatchesNothing: spec.injectors[1] refers to "{name}", but {why}']


def test_injector_of_a_set_is_reported_once_for_all_its_variants() -> None:
    by_region = "\"'site-' + repository.labels['region']\""
    injectors = f"[{{name: here}}, {{nameExpr: {by_region}}}]"
    target = f"{{repositories: [{{name: berlin}}, {{name: lisbon}}], template: {{injectors: {injectors}}}}}"
    here, south = lint(build_variant_set("edge", f"[{target}]"))

    makes = "8 InjectorMatchesNothing: spec.targets[0] generates an injector (for"
    assert here.startswith(f'{makes} berlin/gateway, lisbon/gateway) that refers to "here", but no object')
    assert south.startswith(f'{makes} lisbon/gateway) that refers to "site-south", but no object')
    assert south.endswith('did you mean "site-north"?')


def test_valid_variant_and_set_have_no_findings() -> None:
    right = build_variant("gateway", extra="injectors: [{name: site-north}]")

    assert lint(right, build_variant_set("edge", f"[{NORTH}]")) == []
