"""What is odd about PackageVariants and sets, though a pass does what they say."""

from __future__ import annotations

import pytest

from reconciler.controllers.package_variants.inputs import PackageVariantInputs
from reconciler.controllers.package_variants.lint import lint_variants
from reconciler.controllers.repositories import read_repositories
from tests.support.catalogs import catalog_of
from tests.unit.controllers.package_variants.room_world import REPOSITORIES, World, variant, variant_set

NORTH = "{repositorySelector: {matchLabels: {region: north}}}"
SITE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site-north, namespace: default}\n"
TEAM = "apiVersion: example.com/v1\nkind: Team\nmetadata: {name: red, labels: {size: big}}\n"


def lint(*documents: str, text: str = SITE) -> list[str]:
    """Return what is told of the Repositories, these documents in `variants.yaml`, and others elsewhere."""
    catalog = catalog_of(repositories=REPOSITORIES, variants="---\n".join(documents), others=text)
    findings = lint_variants(catalog, PackageVariantInputs(read_repositories(catalog)[0], World()))
    return [f"{finding.location.line} {finding.code}: {finding.message}" for finding in findings]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        pytest.param("{repositorySelector: {matchLabels: {region: noth}}}",
                     "repositorySelector matches no object: no Repository of namespace default has region=noth; there"
                     " are north, south; did you mean north?", id="a-value"),
        pytest.param("{repositorySelector: {matchLabels: {regio: north}}}",
                     "repositorySelector matches no object: no Repository of namespace default has a label regio; did"
                     " you mean region?", id="a-label"),
        pytest.param("{repositorySelector: {matchExpressions: [{key: region, operator: In, values: [a, b]}]}}",
                     "repositorySelector matches no object: no Repository of namespace default has region=a or"
                     " region=b; there are north, south", id="one-of-several-values"),
        pytest.param("{repositorySelector: {matchLabels: {region: north}, matchExpressions:"
                     " [{key: region, operator: NotIn, values: [north]}]}}",
                     "repositorySelector matches no object: no Repository of namespace default fulfills all requirements",
                     id="no-single-reason"),
        pytest.param("{objectSelector: {apiVersion: example.com/v1, kind: Team, name: rod}}",
                     "objectSelector matches no object: no Team of namespace default has the name rod; did you mean red?",
                     id="a-name"),
        pytest.param("{objectSelector: {apiVersion: example.com/v1, kind: Team,"
                     " matchExpressions: [{key: size, operator: DoesNotExist}]}}",
                     "objectSelector matches no object: every Team of namespace default has a label size",
                     id="what-all-have"),
    ],
)  # fmt: skip
def test_a_target_that_matches_nothing(target: str, why: str) -> None:
    # the selector stands where all of a target does, on the eighth line
    result = lint(variant_set("edge", f"[{NORTH}, {target}]"), text=TEAM)

    assert result == [f"8 SelectorMatchesNothing: spec.targets[1].{why}"]


def test_a_kind_that_nobody_knows_is_told_as_that_alone() -> None:
    assert lint(variant_set("edge", "[{objectSelector: {apiVersion: v9, kind: Nobody}}]")) == []


def test_a_target_that_repeats_another_one() -> None:
    (item,) = lint(variant_set("edge", "[{repositories: [{name: berlin}]}, {repositories: [{name: berlin}]}]"))

    assert item.startswith("8 TargetRepeated: spec.targets[1] requests only packages that spec.targets[0] requests")


def test_a_target_that_asks_for_more_as_well_repeats_none() -> None:
    # catalog and away are Repositories, too, and nobody else asks for them
    targets = "[{repositories: [{name: berlin}]}, {repositories: [{name: lisbon}]}, {repositorySelector: {}}]"

    assert lint(variant_set("edge", targets)) == []


@pytest.mark.parametrize(
    ("injector", "why"),
    [
        pytest.param("{kind: ConfigMap, name: site-nort}",
                     "no ConfigMap of namespace default has this name; did you mean site-north?", id="a-name"),
        pytest.param("{kind: Site, name: site-north}", "the object with this name is a ConfigMap, which the injector does not admit",
                     id="a-kind"),
        pytest.param("{name: nobody}", "no object of namespace default has this name", id="any-kind"),
    ],
)  # fmt: skip
def test_an_injector_that_names_nothing(injector: str, why: str) -> None:
    result = lint(variant("gateway", extra=f"injectors: [{{name: site-north}}, {injector}]"))

    name = injector.partition("name: ")[2].rstrip("}")
    assert result == [f'8 InjectorMatchesNothing: spec.injectors[1] names "{name}", but {why}']


def test_an_injector_of_a_set_is_told_once_for_all_that_have_it() -> None:
    by_region = "\"'site-' + repository.labels['region']\""
    injectors = f"[{{name: here}}, {{nameExpr: {by_region}}}]"
    target = f"{{repositories: [{{name: berlin}}, {{name: lisbon}}], template: {{injectors: {injectors}}}}}"
    here, south = lint(variant_set("edge", f"[{target}]"))

    makes = "8 InjectorMatchesNothing: spec.targets[0] generates an injector of"
    assert here.startswith(f'{makes} berlin/gateway, lisbon/gateway that names "here", but no object')
    assert south.startswith(f'{makes} lisbon/gateway that names "site-south", but no object')
    assert south.endswith("did you mean site-north?")


def test_nothing_is_odd_about_what_is_right() -> None:
    right = variant("gateway", extra="injectors: [{name: site-north}]")

    assert lint(right, variant_set("edge", f"[{NORTH}]")) == []
