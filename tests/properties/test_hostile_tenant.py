"""Added or changed files of a tenant never change the packages of other tenants and of the platform team.

A hostile tenant may use everything except the kinds of the platform team. Its files are random changes of the objects
that the other packages use. The test plans the fleet with and without these files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reconciler.krm.yaml import parse_yaml
from reconciler.tenancy.config_rules import PLATFORM_KINDS
from tests.support.components import component_world
from tests.support.git_repositories import commit_files, git, make_bare
from tests.support.policies import placement_world, policy_world
from tests.support.presets import preset_world
from tests.support.templates import template_world
from tests.support.world import PassResult, World, format_outcome, small_world

Object = dict[str, Any]

# The fleets, each with a file whose deletion removes a package or a placed resource.
FLEETS: Mapping[Callable[..., World], str] = {
    small_world: "metrics.yaml",
    policy_world: "metrics.yaml",
    placement_world: "placed/banner.yaml",
    preset_world: "presets/metrics.yaml",
    component_world: "shop/feed-production.yaml",
    template_world: "metrics.yaml",
}
HOSTILE_FOLDER, OTHER_FOLDER = "teams/hostile", "teams/shop"
NAMES = (
    "",
    "berlin",
    "metrics",
    "gateway",
    "web-berlin",
    "site",
    "limits",
    "shop",
    "staging",
    "logs",
    "*",
    "../x",
    "/",
)
VALUES = st.sampled_from(
    [*NAMES, "orphan", "adoptExisting", "v9", "main", True, 0, -1, None, [], {}, "BERLIN", "metrıcs"]
)
ANNOTATIONS = st.sampled_from(
    [
        {},
        {"reconciler.dev/export": "true"},
        {"reconciler.dev/approve": "true", "reconciler.dev/ack-deletions": "*"},
        {"config.kubernetes.io/local-config": "true"},
        {"kubeadmiral.io/clusters": "*"},
        {"reconciler.dev/clusters": "*"},
    ]
)


def create_tenant(name: str, packages: str = "**") -> str:
    """Return a Tenant that may use everything, except for the packages that `packages` does not match."""
    everything = (
        f"{{kinds: ['**'], namespaces: ['**'], upstreams: ['**'], packages: ['{packages}'], targets: {{selector: {{}}}},"
        " clusterScopedResources: ['**'], functions: {images: ['**'], exec: ['**'], starlark: true}}"
    )
    return (
        f"apiVersion: reconciler.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\n"
        f"spec: {{directories: ['teams/{name}/**'], allow: {everything}}}\n"
    )


class GitWorld(World):
    """A test fleet whose config is a branch. The history shows that the hostile files are newer than the other files."""

    @property
    def source(self) -> str:
        return str(self.folder / "config.git")

    def commit_config(self, files: Mapping[str, str | None]) -> str:
        """Commit files of the config. None removes a file. Return the commit."""
        data = {path: None if text is None else text.encode() for path, text in files.items()}
        return commit_files(self.folder / "config.git", "refs/heads/main", data, "by hand", 1_200_000_000)


class TenantFleet:
    """A fleet whose packages belong to the platform team or to the tenant shop, with a pending change and deletion."""

    def __init__(self, folder: Path, make: Callable[..., World], owner: str) -> None:
        new_world = make(folder, guards={"max_delete_percent": 100})
        self.world = GitWorld(folder, **new_world._settings)
        files = {path.relative_to(self.world.config).as_posix(): path for path in self.world.config.rglob("*.yaml")}
        self.objects = [read_object(path) for path in files.values()]
        deleted = FLEETS[make]
        if owner:
            moved = [name for name, path in files.items() if not is_platform_object(read_object(path))]
            self.world.write({f"{OTHER_FOLDER}/{name}": files[name].read_text() for name in moved})
            self.world.write(dict.fromkeys(moved))
            deleted = f"{OTHER_FOLDER}/{deleted}"
        self.world.write({"tenants/hostile.yaml": create_tenant("hostile"), "tenants/shop.yaml": create_tenant("shop")})
        make_bare(folder / "config.git")
        self.config_head = self.world.commit_config(read_files(self.world.config))
        self.world.sync()
        self.world.sync_until_unchanged()
        # A tenant may take over a package that its owner deletes. Therefore, the hostile tenant may not use any package
        # of the fleet while a deletion is pending.
        deletion = {deleted: None, "tenants/hostile.yaml": create_tenant("hostile", "hostile/**")}
        self.variants: Mapping[bool, Mapping[str, str | None]] = {False: {}, True: deletion}
        # Render all packages in each plan, so that the test compares their content.
        self.world = self.world.with_settings(limits={"functions": {"cpu_seconds": 11}})
        self.expected = {has_deletion: self.plan_with({}, has_deletion) for has_deletion in self.variants}

    def plan_with(self, files: Mapping[str, str], has_deletion: bool) -> dict[str, tuple[object, ...]]:
        """Return the description of the packages with more files of the hostile tenant."""
        paths = {f"{HOSTILE_FOLDER}/{name}": text for name, text in files.items()}
        self.world.commit_config({**self.variants[has_deletion], **paths})
        try:
            return describe_packages(self.world.plan())
        finally:
            git(self.world.folder / "config.git", "update-ref", "refs/heads/main", self.config_head)


def read_files(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def read_object(path: Path) -> Object:
    (document,) = parse_yaml(path.read_bytes()).documents
    assert isinstance(document.data, dict)
    return document.data


def is_platform_object(data: Object) -> bool:
    return (data["apiVersion"].rpartition("/")[0], data["kind"]) in PLATFORM_KINDS


def describe_packages(result: PassResult) -> dict[str, tuple[object, ...]]:
    """Return the outcomes, the content and the owner of each package. Requests of the hostile tenant are omitted."""
    packages: dict[str, tuple[object, ...]] = {}
    for plan in result.report.plan.targets:
        for package, record in plan.next_state.packages.items():
            removals = [*(removal.kind for removal in plan.removals if removal.package == package)]
            removals += [held.finding.code for held in plan.held if held.package == package]
            outcomes = [
                format_outcome(outcome)
                for outcome in plan.outcomes
                if outcome.variant.target.package == package and outcome.variant.tenant != "hostile"
            ]
            packages[f"{plan.target.name}/{package}"] = (
                *removals, *outcomes, record.desired_tree, record.owner.key.reference, [*record.config_sources],
            )  # fmt: skip
    return packages


@st.composite
def hostile_objects(draw: st.DrawFn, objects: tuple[str, ...]) -> Object:
    """Return a changed copy of an object of the fleet."""
    data: Object = json.loads(draw(st.sampled_from(objects)))
    metadata = data["metadata"]
    metadata["name"] = draw(
        st.sampled_from([metadata["name"], *NAMES, metadata["name"].upper(), f"a-{metadata['name']}"])
    )
    namespace = draw(st.sampled_from(["keep", "omit", "aa", "zz", "default", "shop", "_cluster"]))
    if namespace == "omit":
        metadata.pop("namespace", None)
    elif namespace != "keep":
        metadata["namespace"] = namespace
    if annotations := draw(ANNOTATIONS):
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    if draw(st.booleans()):
        data["kind"] = draw(
            st.sampled_from([data["kind"], f"{data['kind']}s", "PackageVariant", "ConfigMap", "Namespace"])
        )
    for _ in range(draw(st.integers(0, 3))):
        paths = [path for path in list_paths(data) if path[0] not in ("apiVersion", "kind")]
        set_value(data, draw(st.sampled_from(paths)), draw(VALUES))
    return draw(st.sampled_from([data, {"apiVersion": "v1", "kind": "List", "items": [data]}]))


def list_paths(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        yield (*path, key)
        yield from list_paths(item, (*path, key))


def set_value(data: Any, path: tuple[str | int, ...], value: object) -> None:
    for step in path[:-1]:
        data = data[step]
    data[path[-1]] = deepcopy(value)


RAW_FILES = st.sampled_from(
    [
        ("broken.yaml", "a: [\n"),
        ("sub/.krmignore", "**\n../**\n"),
        (".krmignore", "*\n/../../**\n"),
        ("Kptfile", "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: a}\n"),
        ("nameless.yaml", "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVariant\nmetadata: {}\n"),
        ("repeated.yaml", "kind: Repository\nkind: Repository\n"),
    ]
)


@st.composite
def hostile_files(draw: st.DrawFn, objects: tuple[str, ...]) -> dict[str, str]:
    """Return one to four files of the hostile tenant."""
    files = {
        f"{draw(st.sampled_from(['0', 'zz', 'sub/a', 'ａ']))}.yaml": json.dumps(draw(hostile_objects(objects)))
        for _ in range(draw(st.integers(1, 3)))
    }
    return files | dict([draw(RAW_FILES)] if draw(st.booleans()) else [])


@pytest.fixture(scope="module")
def get_fleet(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[..., World], str], TenantFleet]:
    """Return a function that creates each fleet once."""

    @cache
    def get(make: Callable[..., World], owner: str) -> TenantFleet:
        return TenantFleet(tmp_path_factory.mktemp("fleet") / "world", make, owner)

    return get


def check_examples(fleet: TenantFleet, max_examples: int) -> None:
    objects = tuple(json.dumps(data) for data in fleet.objects)

    @settings(
        max_examples=max_examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(hostile_files(objects), st.booleans())
    def check(files: dict[str, str], has_deletion: bool) -> None:
        expected, actual = fleet.expected[has_deletion], fleet.plan_with(files, has_deletion)
        assert {package: actual.get(package) for package in expected} == expected

    check()


@pytest.mark.parametrize("owner", ["", "shop"], ids=["platform", "tenant"])
@pytest.mark.parametrize(
    "make",
    [small_world, *(pytest.param(make, marks=pytest.mark.slow) for make in FLEETS if make is not small_world)],
    ids=lambda make: make.__name__,
)
def test_files_of_a_tenant_never_change_other_packages(
    get_fleet: Callable[[Callable[..., World], str], TenantFleet], make: Callable[..., World], owner: str
) -> None:
    fleet = get_fleet(make, owner)

    assert fleet.expected[False] != fleet.expected[True]
    check_examples(fleet, 10 if make is small_world else 30)
