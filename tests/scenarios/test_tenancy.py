"""Tests of tenancy: teams may use only what their Tenant allows, and never change the packages of other teams."""

from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from reconciler.notifications.pass_observer import PassObserver
from reconciler.planning.model.shard import Shard
from tests.support.command_line import run_in
from tests.support.git_repositories import commit_files, git, make_bare
from tests.support.policies import placements_published, policy, propagation, replicas, resource
from tests.support.prepared_worlds import begin, berlin_published
from tests.support.templates import template_world
from tests.support.world import PassResult, World, catalog, config_map, package, repository, small_world, variant

ALLOWED = {
    "upstreams": "['**/catalog']",
    "targets": "{selector: {matchLabels: {region: north}}}",
    "kinds": "['PackageVariant.config.porch.kpt.dev', 'PackageVariantSet.config.porch.kpt.dev', ConfigMap]",
    "packages": "['payments/**', 'payments-*']",
    "namespaces": "[default, 'payments*']",
    "clusterScopedResources": "[]",
    "functions": "{images: ['*set-labels*'], starlark: false}",
    "reference": "[other.shared]",
}
REQUEST = variant("pay", "berlin", "payments/api", upstream="metrics")


def tenant(name: str = "payments", directories: str = "['teams/payments/**']", limits: str = "{}", **allow: str) -> str:
    """Return a Tenant that may use all packages of the catalog on clusters in the north, with changed rights."""
    rights = "".join(f"    {field}: {value}\n" for field, value in {**ALLOWED, **allow}.items())
    return (
        f"apiVersion: reconciler.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\n"
        f"spec:\n  directories: {directories}\n  limits: {limits}\n  allow:\n{rights}"
    )


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return the small world with the tenant payments, which has no objects yet."""
    world = small_world(tmp_path)
    world.write({"tenants/payments.yaml": tenant()})
    return world


def list_messages(result: PassResult, code: str = "TenantForbidden") -> list[str]:
    return [finding.message for finding in result.findings if finding.code == code]


def test_allowed_package_gets_a_draft(world: World) -> None:
    world.write({"teams/payments/api.yaml": REQUEST})

    result = world.sync()

    assert list_messages(result) == []
    assert result.outcomes["berlin/payments/api"] == "draft"
    assert world.sync_until_unchanged().report.render_count == 0


@pytest.mark.parametrize(
    ("rights", "value", "field"),
    [
        ({"kinds": "[ConfigMap]"}, "PackageVariant.config.porch.kpt.dev", "kinds"),
        ({"namespaces": "[payments]"}, "default", "namespaces"),
        ({"packages": "[other/**]"}, "payments/api", "packages"),
        ({"upstreams": "[git.example.com/**]"}, "catalog", "upstreams"),
        ({"targets": "{selector: {matchLabels: {region: south}}}"}, "berlin", "targets"),
    ],
)
def test_request_without_the_right_is_refused(world: World, rights: dict[str, str], value: str, field: str) -> None:
    world.write({"tenants/payments.yaml": tenant(**rights), "teams/payments/api.yaml": REQUEST})

    result = world.sync()

    (message,) = list_messages(result)
    assert value in message
    assert f"spec.allow.{field} at tenants/payments.yaml:1" in message
    assert result.outcomes.get("berlin/payments/api") != "draft"


@pytest.mark.parametrize("kind", ["PackageVariant", "PackageVariantSet"])
def test_findings_contain_no_revisions_of_a_forbidden_upstream(world: World, kind: str) -> None:
    text = (
        variant("pay", "berlin", "payments/api", "v9", upstream="metrics")
        if kind == "PackageVariant"
        else (
            "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata: {name: pay}\nspec:\n"
            "  upstream: {repo: catalog, package: metrics, revision: v9}\n  targets:\n"
            "  - repositories: [{name: berlin, packageNames: [payments/api]}]\n"
        )
    )
    world.write({"tenants/payments.yaml": tenant(upstreams="[git.example.com/**]"), "teams/payments/api.yaml": text})

    result = world.sync()

    assert sum("spec.allow.upstreams" in finding.message for finding in result.findings) == 1
    assert "UpstreamNotFound" not in result.codes
    assert "existing revisions" not in world.text("reconciler/status", f"objects/default/{kind}/pay.yaml")


def test_published_package_stays_when_the_right_is_withdrawn(world: World) -> None:
    world.write({"teams/payments/api.yaml": REQUEST})
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    published = world.head("clusters/berlin")
    world.write({"tenants/payments.yaml": tenant(packages="[other/**]")})

    result = world.sync_until_unchanged()

    assert len(list_messages(result)) == 1
    assert world.head("clusters/berlin") == published
    assert "refs/heads/drafts/berlin" not in result.after


@pytest.mark.parametrize("content", [repository("berlin", branch="stolen"), repository("new"), tenant("mine")])
def test_tenant_may_not_define_kinds_of_the_platform(world: World, content: str) -> None:
    undisturbed = world.plan()
    world.write({"teams/payments/repository.yaml": content, "tenants/payments.yaml": tenant(kinds="['**']")})

    result = world.sync()

    assert list_messages(result) or list_messages(result, "TenantInvalid")
    assert result.outcomes == undisturbed.outcomes
    assert "refs/heads/stolen" not in result.after


def test_selector_skips_targets_that_are_not_allowed(world: World) -> None:
    world.write(
        {
            "teams/payments/set.yaml": (
                "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata: {name: pay}\nspec:\n"
                "  upstream: {repo: catalog, package: metrics, revision: v1}\n  targets:\n"
                "  - repositorySelector: {matchExpressions: [{key: region, operator: Exists}]}\n"
                "    template: {downstream: {package: payments/api}}\n"
            )
        }
    )

    result = world.sync()

    names = {name for name in result.outcomes if name.endswith("payments/api")}
    assert names == {"berlin/payments/api", "catalog/payments/api"}
    (message,) = list_messages(result, "TargetsNotAllowed")
    assert "lisbon" in message
    assert list_messages(result) == []


def test_set_with_named_targets_reports_an_error(world: World) -> None:
    world.write(
        {
            "teams/payments/set.yaml": (
                "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata: {name: pay}\nspec:\n"
                "  upstream: {repo: catalog, package: metrics, revision: v1}\n  targets:\n"
                "  - repositories: [{name: lisbon, packageNames: [payments/api]}]\n"
            )
        }
    )

    assert len(list_messages(world.sync())) == 1


@pytest.mark.parametrize(("owner", "is_allowed"), [("payments", True), ("other", False), ("", True)])
def test_credentials_of_another_tenant(world: World, owner: str, is_allowed: bool) -> None:
    (world.folder / "token").write_text("secret-token")
    entry = {"url": "*", "tenant": owner, "read": {"token_file": str(world.folder / "token")}}
    write = {"write": {"token_file": str(world.folder / "token")}}
    world = world.with_settings(git={"credentials": [{**entry, **write}]})
    world.write({"teams/payments/api.yaml": REQUEST})

    messages = list_messages(world.plan())

    assert [f"belong to tenant {owner}" in message for message in messages] == ([] if is_allowed else [True])


SEVERAL = """apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {name: pay}
spec:
  sources:
    - {name: base, repo: catalog, package: metrics, revision: v1}
    - {name: extras, repo: private, package: extras, revision: REVISION, directory: extras}
  downstream: {repo: berlin, package: payments/api}
"""


@pytest.mark.parametrize("revision", ["v1", "v9"])
def test_one_forbidden_source_blocks_the_package(world: World, revision: str) -> None:
    """A tenant must have the right for each source. The findings contain no revisions of a forbidden source."""
    private = world.folder / "private.git"
    make_bare(private)
    commit = commit_files(private, "refs/heads/main", {"extras/a.yaml": config_map("a").encode()}, "a", 1_000_000_000)
    git(private, "update-ref", "refs/tags/extras/v1", commit)
    world.write(
        {
            "private.yaml": catalog("private"),
            "teams/payments/api.yaml": SEVERAL.replace("REVISION", revision),
        }
    )

    result = world.sync()

    (message,) = list_messages(result)
    assert "private" in message
    assert "spec.allow.upstreams at tenants/payments.yaml:1" in message
    assert "UpstreamNotFound" not in result.codes
    assert not world.paths(world.fleet, "drafts/berlin", "payments")
    world.write({"tenants/payments.yaml": tenant(upstreams="['**/catalog', '**/private']")})
    world.sync()
    assert bool(world.paths(world.fleet, "drafts/berlin", "payments")) == (revision == "v1")


class TestRenderedPackages:
    @pytest.mark.parametrize(
        ("resource", "value"),
        [
            ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}", "kube-system"),
            ("{apiVersion: v1, kind: Namespace, metadata: {name: payments}}", "Namespace"),
            (
                "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: admin}}",
                "ClusterRole.rbac.authorization.k8s.io",
            ),
            ("{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}", "Widget.example.com"),
        ],
    )
    def test_forbidden_resource_blocks_the_package(self, world: World, resource: str, value: str) -> None:
        world.release("metrics", "v2", package("metrics", extra=resource + "\n"))
        world.write({"teams/payments/api.yaml": variant("pay", "berlin", "payments/api", "v2", upstream="metrics")})

        result = world.sync()

        (message,) = list_messages(result)
        assert value in message
        assert result.outcomes["berlin/payments/api"] != "draft"

    @pytest.mark.parametrize(
        ("function", "value"),
        [("image: starlark:v0.4", "starlark"), ("image: search-replace:v0.2", "search-replace"), ("exec: rm", "rm")],
    )
    def test_forbidden_function_blocks_the_package(self, world: World, function: str, value: str) -> None:
        pipeline = f"pipeline:\n  mutators:\n    - {function}\n"
        files = package("metrics")
        world.release("metrics", "v2", {**files, "Kptfile": files["Kptfile"] + pipeline})
        world.write({"teams/payments/api.yaml": variant("pay", "berlin", "payments/api", "v2", upstream="metrics")})

        result = world.sync()

        (message,) = list_messages(result)
        assert value in message
        assert result.outcomes["berlin/payments/api"] != "draft"


class TestReferences:
    INJECTOR = "injectors: [{kind: ConfigMap, name: shared}]\n"

    def request(self) -> str:
        return variant("pay", "berlin", "payments/api", upstream="gateway", extra=self.INJECTOR)

    @pytest.mark.parametrize(
        ("export", "reference", "is_visible"),
        [("true", "[other.shared]", True), ("false", "[other.shared]", False), ("true", "[]", False)],
    )
    def test_objects_of_other_tenants_must_be_exported_and_listed(
        self, world: World, export: str, reference: str, is_visible: bool
    ) -> None:
        shared = config_map("shared", api="other").replace(
            "metadata:", f"metadata:\n  annotations: {{reconciler.dev/export: '{export}'}}", 1
        )
        world.write(
            {
                "tenants/payments.yaml": tenant(reference=reference),
                "tenants/other.yaml": tenant("other", "['teams/other/**']"),
                "teams/other/shared.yaml": shared,
                "teams/payments/api.yaml": self.request(),
            }
        )

        world.sync()

        assert ("api: other" in world.text("drafts/berlin", "payments/api/endpoints.yaml")) is is_visible
        assert world.sync_until_unchanged().report.render_count == 0

    def test_object_of_the_platform_is_visible(self, world: World) -> None:
        world.write({"shared.yaml": config_map("shared", api="platform"), "teams/payments/api.yaml": self.request()})

        world.sync()

        assert "api: platform" in world.text("drafts/berlin", "payments/api/endpoints.yaml")


class TestLimits:
    def test_new_package_above_the_limit_is_refused(self, world: World) -> None:
        world.write({"tenants/payments.yaml": tenant(limits="{packages: 1}"), "teams/payments/api.yaml": REQUEST})
        world.sync()
        world.write({"teams/payments/a.yaml": variant("a", "berlin", "payments/a", upstream="metrics")})

        result = world.sync()

        assert len(list_messages(result, "TenantLimitExceeded")) == 1
        assert result.outcomes["berlin/payments/api"] == "drafted"
        assert "berlin/payments/a" not in result.outcomes


class TestInvalidTenants:
    def test_overlapping_directories_are_an_error(self, world: World) -> None:
        world.write({"tenants/other.yaml": tenant("other", "['teams/**']"), "teams/payments/api.yaml": REQUEST})

        result = world.sync()

        assert len(list_messages(result, "TenantInvalid")) == 1
        assert result.outcomes.get("berlin/payments/api") != "draft"

    def test_files_of_an_invalid_tenant_get_no_rights(self, world: World) -> None:
        world.write({"tenants/payments.yaml": tenant().replace("kinds:", "kindz:"), "teams/payments/api.yaml": REQUEST})

        result = world.sync()

        (message,) = list_messages(result, "TenantInvalid")
        assert "kindz" in message
        assert "kinds" in message
        assert result.outcomes.get("berlin/payments/api") != "draft"

    def test_deny_refuses_files_outside_of_all_tenants(self, world: World) -> None:
        world = world.with_settings(tenancy={"default": "deny"})

        result = world.sync()

        assert len(list_messages(result)) > 0
        assert "draft" not in result.outcomes.values()


POLICY = "apiVersion: core.kubeadmiral.io/v1alpha1\nkind: %s\nmetadata: {name: p%s}\nspec:\n"
RULE = "  overrideRules: [{overriders: {labels: [{operator: addIfAbsent, value: {stolen: '1'}}]}}]\n"
HOSTILE = {
    "repository-of-a-cluster": repository("berlin", branch="main"),
    "repository-with-the-same-branch": repository("other", branch="clusters/berlin"),
    "cluster": "apiVersion: greenhouse.sap/v1alpha1\nkind: Cluster\nmetadata: {name: berlin, namespace: x}\nspec: {}\n",
    "copy-of-an-owner": variant("metrics-berlin", "berlin", "metrics", "v9"),
    "copy-of-an-injected-object": config_map("region-north", api="stolen"),
    "path-of-a-package": variant("a", "berlin", "metrics", upstream="gateway"),
    "path-inside-of-a-package": variant("a", "berlin", "metrics/inner", upstream="gateway"),
    "path-outside-of-the-target": variant("a", "berlin", "../metrics", upstream="gateway"),
    "set-for-all-targets": (
        "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata: {name: a}\nspec:\n"
        "  upstream: {repo: catalog, package: metrics, revision: v1}\n  targets:\n"
        "  - repositorySelector: {}\n    template: {downstream: {package: metrics}}\n"
    ),
    "policy-for-all-resources": POLICY % ("ClusterOverridePolicy", "")
    + "  resourceSelectors: [{kind: Deployment}]\n"
    + RULE,
    "merge-rule": (
        "apiVersion: reconciler.dev/v1alpha1\nkind: TemplateMergeRule\nmetadata: {name: a}\nspec:\n"
        "  parent: {kind: Deployment, apiGroup: apps, path: spec.template}\n"
        "  child: {kind: ConfigMap, path: data.template, parentLabel: app}\n  properties: [spec]\n"
    ),
    "custom-resource-definition": (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {}\n"
    ),
    "tenant-with-all-rights": tenant("evil", "['**']"),
    "copy-of-the-tenant": tenant("payments", "['**']"),
    "invalid-yaml": "a: [\n",
    "object-without-a-name": "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {}\n",
    "many-anchors": "a: &a [1]\n" + "".join(f"b{number}: *a\n" for number in range(5_000)),
}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_files_of_a_tenant_never_change_other_packages(tmp_path: Path, content: str) -> None:
    world = begin(tmp_path, berlin_published)
    everything = tenant(
        kinds="['**']", namespaces="['**']", upstreams="['**']", packages="[payments/**]", targets="{selector: {}}"
    )
    world.write({"tenants/payments.yaml": everything, "teams/payments/empty.yaml": "{}\n"})
    world.sync_until_unchanged()
    undisturbed = world.plan()
    world.write({"teams/payments/hostile.yaml": content})

    result = world.sync()

    assert result.changed_branches == set()
    assert undisturbed.outcomes.items() <= result.outcomes.items()
    # The packages of the platform can still change, and the platform team can delete them.
    world.write({"regions/north.yaml": config_map("region-north", api="new"), "metrics.yaml": None})
    result = world.sync()
    assert "api: new" in world.text("drafts/berlin", "gateway/endpoints.yaml")
    assert "refs/heads/removals/berlin" in result.after


def test_package_of_another_owner_cannot_be_taken(world: World) -> None:
    """A tenant requests the path of a package of the platform. The owner keeps the package."""
    world.sync()
    world.write(
        {
            "tenants/payments.yaml": tenant(packages="['**']"),
            "teams/payments/a.yaml": variant("a-first", "berlin", "metrics", upstream="gateway"),
        }
    )

    result = world.sync()

    assert "DownstreamConflict" in result.codes
    assert result.changed_branches == set()


SHOP = {
    "tenants/shop.yaml": tenant("shop", "['teams/shop/**']", packages="['shop/**']"),
    "teams/shop/api.yaml": variant("shop", "berlin", "shop/api", upstream="metrics"),
}
BROKEN = "a: [\n"
BROKEN_SHOP = {"teams/shop/api.yaml": BROKEN}


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    ("files", "is_held"),
    [
        ({"teams/shop/broken.yaml": BROKEN}, False),
        ({"teams/payments/broken.yaml": BROKEN}, True),
        ({"platform.yaml": BROKEN}, True),
        ({"tenants/shop.yaml": BROKEN}, True),
        # The tenant moves to another folder, and the moved file is unreadable.
        (
            {
                "tenants/payments.yaml": tenant(directories="['teams/pay/**']"),
                "teams/pay/api.yaml": BROKEN,
            },
            True,
        ),
    ],
    ids=["another-tenant", "the-same-tenant", "platform", "unreadable-tenant", "moved-folder"],
)
def test_unreadable_file_holds_only_the_deletions_of_its_tenant(
    world: World, files: dict[str, str], is_held: bool
) -> None:
    world.write({**SHOP, "teams/payments/api.yaml": REQUEST})
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    world.write({**files, "teams/payments/api.yaml": None})

    result = world.sync()

    assert ("refs/heads/removals/berlin" in result.after) is not is_held
    assert ("DeletionHeld" in result.codes) is is_held


def test_unreadable_file_keeps_only_the_status_of_its_tenant(world: World) -> None:
    unused = policy("unused", [replicas(3)], "default")
    world.write({**SHOP, "teams/payments/api.yaml": REQUEST, "tenants/payments.yaml": tenant(kinds="['**']")})
    world.sync()
    assert world.status("PackageVariant", "pay")["tenant"] == "payments"

    world.write({"teams/payments/api.yaml": None, "teams/payments/policy.yaml": unused, **BROKEN_SHOP})
    result = world.sync()

    paths = world.paths(world.fleet, "reconciler/status")
    assert "objects/default/PackageVariant/pay.yaml" not in paths
    assert "objects/default/PackageVariant/shop.yaml" in paths
    # No package that cannot be read may use the policy.
    assert "PolicyUnused" in result.codes
    assert world.sync_until_unchanged().report.render_count == 0
    # An unreadable file of the platform team can contain any object.
    world.write({"platform.yaml": BROKEN, "teams/payments/policy.yaml": None})
    assert "PolicyUnused" not in world.sync().codes
    assert "objects/default/OverridePolicy/unused.yaml" in world.paths(world.fleet, "reconciler/status")


class TestPlacedResources:
    EVERYTHING = tenant(
        kinds="['**']",
        namespaces="['**']",
        packages="['**']",
        targets="{selector: {}}",
        clusterScopedResources="['**']",
    )

    @pytest.fixture
    def placed(self, tmp_path: Path) -> World:
        """Return a fleet with published resources of the platform team, and a tenant that may place resources."""
        world = begin(tmp_path, placements_published)
        world.write({"tenants/payments.yaml": self.EVERYTHING})
        world.sync_until_unchanged()
        return world

    def test_resource_does_not_change_the_package_of_another_owner(self, placed: World) -> None:
        placed.write({"teams/payments/a.yaml": resource("ConfigMap", "a", on="*", text="stolen")})

        result = placed.sync()

        assert result.changed_branches == set()
        (message,) = list_messages(result, "ClaimConflict")
        assert "belongs to the platform team" in message

    def test_tenant_places_resources_in_its_own_namespace(self, placed: World) -> None:
        placed.write(
            {"teams/payments/a.yaml": resource("ConfigMap", "a", namespace="payments", on="berlin", text="own")}
        )

        placed.sync()

        assert "own" in placed.text("drafts/berlin", "resources/payments/configmap-a.yaml")

    def test_recorded_tenant_keeps_its_namespace(self, placed: World) -> None:
        own = resource("ConfigMap", "a", namespace="payments", on="berlin", text="own")
        placed.write({"teams/payments/a.yaml": own})
        placed.sync()
        before = placed.head("drafts/berlin")
        placed.write(
            {
                "tenants/shop.yaml": tenant("shop", "['teams/shop/**']", namespaces="[payments]"),
                "teams/shop/b.yaml": resource("ConfigMap", "b", namespace="payments", on="berlin", text="other"),
                "c.yaml": resource("ConfigMap", "c", namespace="payments", on="berlin", text="other"),
            }
        )

        result = placed.sync()

        assert placed.head("drafts/berlin") == before
        assert len(list_messages(result, "ClaimConflict")) == 2

    def test_policy_does_not_place_the_resources_of_another_owner(self, placed: World) -> None:
        placed.write({"a.yaml": resource("ConfigMap", "a", by="new", text="secret")})
        placed.sync_until_unchanged()
        placed.write({"teams/payments/new.yaml": propagation("new", {"clusterSelector": {"region": "south"}})})

        result = placed.sync()

        assert result.changed_branches == set()
        assert "PropagationPolicyNotFound" in result.codes


class TestFilters:
    """Each tenant gets its own findings, status and notifications."""

    @pytest.fixture
    def teams(self, world: World) -> World:
        """Return a fleet with one correct and one refused package of each of two tenants."""
        refused = variant("refused", "berlin", "other/api", upstream="metrics")
        world.write({**SHOP, "teams/payments/api.yaml": REQUEST, "teams/payments/refused.yaml": refused})
        world.write({"teams/shop/broken.yaml": BROKEN, "platform.yaml": variant("wrong", "nowhere", "metrics")})
        return world

    def test_status_of_a_tenant_contains_only_its_own_entries(self, teams: World) -> None:
        result = teams.sync()

        texts = {name: teams.text("reconciler/status", f"tenants/{name}.yaml") for name in ("payments", "shop")}
        data = {name: parse_yaml(text).documents[0].data for name, text in texts.items()}
        assert data["payments"]["totals"] | {"packages": 1, "drafted": 1, "stalled": 1} == data["payments"]["totals"]
        assert data["shop"]["totals"] | {"packages": 1, "drafted": 1, "stalled": 0} == data["shop"]["totals"]
        assert {finding["code"] for finding in data["payments"]["findings"]} == {"TenantForbidden"}
        assert {finding["file"] for finding in data["shop"]["findings"]} == {"teams/shop/broken.yaml"}
        assert "shop" not in texts["payments"]
        assert "nowhere" not in texts["payments"] + texts["shop"]
        assert result.codes > {"TenantForbidden"}
        assert teams.sync().is_unchanged

    def test_status_of_a_deleted_tenant_is_deleted(self, teams: World) -> None:
        teams.sync()
        teams.write({"tenants/shop.yaml": None, "teams/shop/api.yaml": None, "platform.yaml": BROKEN})

        teams.sync()

        assert teams.paths(teams.fleet, "reconciler/status", "tenants") == ["payments.yaml"]

    def test_notifications_contain_the_tenant(self, teams: World) -> None:
        teams.sync()

        observation = PassObserver(Shard()).observe(teams.sync().report, {})

        tenants = {
            (condition.event.value, item.package or condition.data.get("file") or condition.subject, item.tenant)
            for condition in observation.conditions
            for item in condition.items
        }
        assert tenants >= {
            ("drafts_waiting", "payments/api", "payments"),
            ("drafts_waiting", "shop/api", "shop"),
            ("drafts_waiting", "metrics", ""),
            ("package_blocked", "teams/shop/broken.yaml", "shop"),
            ("package_blocked", "teams/payments/refused.yaml", "payments"),
        }

    @pytest.mark.parametrize(
        ("tenant_name", "code", "is_broken_listed", "is_refused_listed"),
        [("payments", 1, False, True), ("shop", 1, True, False), ("metrics", 3, False, False)],
    )
    def test_validate_lists_only_the_findings_of_a_tenant(
        self, teams: World, tenant_name: str, code: int, is_broken_listed: bool, is_refused_listed: bool
    ) -> None:
        options = ["--fleet", str(teams.fleet), "--cache", str(teams.folder / "cache"), "--tenant", tenant_name]

        result = run_in(teams.folder, {}, "validate", teams.source, *options)

        assert result.returncode == code
        assert ("teams/shop/broken.yaml" in result.stdout) is is_broken_listed
        assert ("TenantForbidden" in result.stdout) is is_refused_listed
        assert "nowhere" not in result.stdout
        assert ('existing tenants: "payments", "shop"' in result.stderr) is (code == 3)

    @pytest.mark.parametrize(
        ("tenant_name", "code", "text"),
        [("shop", 1, "broken.yaml"), ("metrics", 3, 'existing tenants: "payments", "shop"')],
    )
    def test_status_command_shows_one_tenant(self, teams: World, tenant_name: str, code: int, text: str) -> None:
        teams.sync()
        options = ["--fleet", str(teams.fleet), "--cache", str(teams.folder / "cache"), "--tenant", tenant_name]

        result = run_in(teams.folder, {}, "status", *options)

        assert result.returncode == code
        assert text in result.stdout + result.stderr
        assert "payments/" not in result.stdout


def test_templates_are_merged_only_between_packages_of_one_tenant(tmp_path: Path) -> None:
    """A tenant deploys copies of the Kafka and of a node pool of the platform team on the same cluster."""
    world = template_world(tmp_path / "world")
    world.write({"tenants/payments.yaml": TestPlacedResources.EVERYTHING})
    world.sync_until_unchanged()
    before = world.head("drafts/berlin")
    trees = {name: world.tree("drafts/lisbon", name) for name in ("kafka", "readers")}
    copies = {name: variant(f"a-{name}", "lisbon", f"payments/{name}", upstream=name) for name in trees}
    world.write({f"teams/payments/{name}.yaml": text for name, text in copies.items()})
    # The changed setting causes a render of all packages.
    world = world.with_settings(limits={"functions": {"cpu_seconds": 11}})

    result = world.sync()

    assert "DuplicateObject" not in result.codes
    assert world.head("drafts/berlin") == before
    assert {name: world.tree("drafts/lisbon", name) for name in trees} == trees
    assert result.outcomes["lisbon/payments/kafka"] == "draft"
    assert world.sync_until_unchanged().report.render_count == 0


SHARED_POLICY = policy("shared", [replicas(3)], "default")
BOTH_TENANTS = {
    "tenants/a.yaml": tenant("a", "['teams/a/**']", kinds="['**']"),
    "tenants/b.yaml": tenant("b", "['teams/b/**']", kinds="['**']"),
}


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_recorded_file_decides_in_a_folder_without_history(tmp_path: Path, first: str, second: str) -> None:
    """Two tenants define one policy, which owns no package. The status branch contains the file of the first tenant."""
    world = small_world(tmp_path)
    world.write({**BOTH_TENANTS, f"teams/{first}/policy.yaml": SHARED_POLICY})
    world.sync()
    assert world.status("OverridePolicy", "shared")["source"] == {"file": f"teams/{first}/policy.yaml"}
    world.write({f"teams/{second}/policy.yaml": SHARED_POLICY})

    for _ in range(2):
        result = world.sync()
        rejected = [finding.location.file for finding in result.findings if finding.code == "ClaimConflict"]
        assert rejected == [f"teams/{second}/policy.yaml"]
    # To hand over the policy, the first definition is deleted.
    world.write({f"teams/{first}/policy.yaml": None})
    assert "ClaimConflict" not in world.sync().codes
    assert world.status("OverridePolicy", "shared")["source"] == {"file": f"teams/{second}/policy.yaml"}


def test_no_definition_applies_without_a_record(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.write({**BOTH_TENANTS, **{f"teams/{name}/policy.yaml": SHARED_POLICY for name in "ab"}})

    result = world.sync()

    assert "ClaimConflict" not in result.codes
    assert "DuplicateObject" in result.codes
