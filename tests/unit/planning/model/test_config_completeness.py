"""Tests of the completeness of a config: for which packages a missing object is evidence of its deletion."""

from collections.abc import Mapping

import pytest

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.planning.model.config_completeness import build_config_completeness
from reconciler.planning.model.state import PackageRecord
from reconciler.tenancy.config_rules import TenancyOptions, apply_config_rules
from tests.unit.planning.builders import build_record

BROKEN = "a: [\n"
NAMELESS = "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {}\n"


def build_tenant(name: str, directory: str) -> str:
    return (
        f"apiVersion: reconciler.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\n"
        f"spec: {{directories: ['{directory}']}}\n"
    )


TENANTS = {
    "tenants/payments.yaml": build_tenant("payments", "teams/payments/**"),
    "tenants/shop.yaml": build_tenant("shop", "teams/shop/**"),
    "tenants/metrics.yaml": build_tenant("metrics", "teams/*/metrics.yaml"),
}


def read(files: Mapping[str, str], unreadable: Mapping[str, str] | None = None) -> Catalog:
    tree = FileTree({path: File(text.encode()) for path, text in {**TENANTS, **files}.items()})
    return apply_config_rules(read_catalog(tree, unreadable_paths=unreadable), TenancyOptions())


def build_package(*paths: str, tenant: str = "") -> PackageRecord:
    """Return the record of a package whose objects were in the files `paths`."""
    trace = {"tenant": f"{tenant} sha256:1"} if tenant else {}
    return build_record(config_sources=dict.fromkeys(paths, ("ConfigMap/a",)), trace=trace)


PACKAGES = {
    "platform": build_package("config/platform/a.yaml"),
    "payments": build_package("config/teams/payments/a.yaml", tenant="payments"),
    "shop": build_package("config/teams/shop/a.yaml", "config/platform/clusters.yaml", tenant="shop"),
    "moved": build_package("config/old/payments/a.yaml", tenant="payments"),
    "deleted-tenant": build_package("config/teams/old/a.yaml", tenant="old"),
    "outside": build_package("other/a.yaml"),
    "without-files": build_package(),
}


@pytest.mark.parametrize(
    ("files", "unreadable", "held"),
    [
        pytest.param({}, {}, "", id="complete"),
        pytest.param(
            {"teams/payments/b.yaml": BROKEN}, {}, "payments moved deleted-tenant outside without-files", id="file"
        ),
        pytest.param(
            {"teams/payments/b.yaml": NAMELESS}, {}, "payments moved deleted-tenant outside without-files", id="no-name"
        ),
        pytest.param(
            {}, {"teams/shop/b.yaml": "too large"}, "shop deleted-tenant outside without-files", id="file-not-read"
        ),
        # Another Tenant may own a file in the folder.
        pytest.param({}, {"teams/payments/": "not listed"}, "all", id="folder-of-several-tenants"),
        pytest.param({}, {"teams/": "not listed"}, "all", id="folder-above-tenants"),
        pytest.param({}, {"./": "not listed"}, "all", id="root-folder"),
        pytest.param({"teams/payments/metrics.yaml": BROKEN}, {}, "all", id="file-of-several-tenants"),
        pytest.param({"platform/b.yaml": BROKEN}, {}, "all", id="platform"),
        pytest.param({"tenants/b.yaml": BROKEN}, {}, "all", id="unreadable-tenant"),
        pytest.param(
            {"tenants/b.yaml": build_tenant("Invalid", "teams/b/**"), "teams/b/c.yaml": BROKEN}, {}, "all", id="invalid"
        ),
    ],
)
def test_unreadable_file_holds_the_packages_of_its_tenant(
    files: dict[str, str], unreadable: dict[str, str], held: str
) -> None:
    completeness = build_config_completeness(read(files, unreadable), "config")

    actual = {name for name, record in PACKAGES.items() if not completeness.includes(record)}

    assert actual == set(PACKAGES if held == "all" else held.split())


def test_unreadable_folder_of_one_tenant_holds_its_packages() -> None:
    catalog = read({"tenants/metrics.yaml": "{}\n"}, {"teams/payments/": "not listed"})

    assert catalog.uncertain_tenants == {"payments"}


def test_error_about_the_whole_config_holds_all_packages() -> None:
    catalog = read({})
    (finding,) = read({"platform/b.yaml": BROKEN}).unreadable

    whole = type(catalog)(catalog.objects, tenants=catalog.tenants, unproven_deletions=(finding.finding,))

    assert whole.uncertain_tenants == {""}


@pytest.mark.parametrize(("reference", "is_complete"), [("[]", True), ("[shop.api]", False), ("['*.api']", False)])
def test_view_of_a_tenant_is_incomplete_if_it_may_use_objects_in_an_unreadable_file(
    reference: str, is_complete: bool
) -> None:
    reader = build_tenant("payments", "teams/payments/**").replace("]}", f"], allow: {{reference: {reference}}}}}")
    catalog = read({"tenants/payments.yaml": reader, "teams/shop/b.yaml": BROKEN})

    assert catalog.select_visible("payments").is_complete is is_complete
    assert catalog.select_visible("").is_complete
    assert not catalog.select_visible("shop").is_complete
