"""Tests of upstream folders without a Kptfile: their files are copied byte for byte, and the package gets a Kptfile."""

from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.world import World, small_world, variant

pytestmark = pytest.mark.second_pass

MANIFEST = """# The settings of the shop.
apiVersion: v1
kind: ConfigMap
metadata:
    name:   settings   # unusual indentation
    namespace: shop
data:
    size:  "1"   # quoted
    color: red
"""
REQUEST = variant("shop", "berlin", "shop", upstream="plain")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = small_world(tmp_path)
    world.release("plain", "v1", {"settings.yaml": MANIFEST, "docs/readme.md": "text\n"})
    world.write({"shop.yaml": REQUEST})
    return world


def test_folder_becomes_a_package_with_equal_files_and_a_kptfile(world: World) -> None:
    result = world.sync()

    assert result.outcomes["berlin/shop"] == "draft"
    assert world.text("drafts/berlin", "shop/settings.yaml") == MANIFEST
    assert world.text("drafts/berlin", "shop/docs/readme.md") == "text\n"
    kptfile = parse_yaml(world.text("drafts/berlin", "shop/Kptfile")).documents[0].data
    assert kptfile["upstream"]["git"]["ref"] == "plain/v1"
    assert kptfile["upstreamLock"]["git"]["directory"] == "plain"
    assert world.sync_until_unchanged().report.render_count == 0


def test_local_change_and_comments_survive_an_update(world: World) -> None:
    world.sync()
    world.merge("berlin", delete=True)
    world.sync()
    world.edit("clusters/berlin", "shop/settings.yaml", "color: red", "color: blue # agreed")
    world.release("plain", "v2", {"settings.yaml": MANIFEST.replace('"1"', '"2"')})
    world.write({"shop.yaml": REQUEST.replace("revision: v1", "revision: v2")})

    world.sync()

    expected = MANIFEST.replace('"1"', '"2"').replace("color: red", "color: blue # agreed")
    assert world.text("drafts/berlin", "shop/settings.yaml") == expected
    assert "shop/docs/readme.md" not in world.paths(world.fleet, "drafts/berlin")
    assert world.sync_until_unchanged().report.render_count == 0


def test_existing_folder_without_a_kptfile_is_adopted_without_a_change_of_its_resources(world: World) -> None:
    changed = MANIFEST.replace("color: red", "color: blue")
    world.commit("clusters/berlin", {"shop/settings.yaml": changed, "shop/docs/readme.md": "text\n"})
    world.write({"shop.yaml": f"{REQUEST}  adoptionPolicy: adoptExisting\n"})

    result = world.sync()

    assert result.outcomes["berlin/shop"] == "draft"
    changed_paths = {
        path
        for path in world.paths(world.fleet, "drafts/berlin", "shop")
        if world.files(world.fleet, "drafts/berlin", "shop")[path]
        != world.files(world.fleet, "clusters/berlin", "shop").get(path)
    }
    assert changed_paths == {"Kptfile", "package-context.yaml"}
    assert world.sync_until_unchanged().report.render_count == 0


@pytest.mark.parametrize(
    ("files", "code"),
    [
        pytest.param({"readme.md": "text"}, "UpstreamEmpty", id="no-resource"),
        pytest.param({"a.yaml": MANIFEST, "sub/Chart.yaml": "name: a"}, "SourceKindAmbiguous", id="nested-chart"),
    ],
)
def test_folder_without_a_kind_stalls_the_package(world: World, files: dict[str, str], code: str) -> None:
    world.release("plain", "v1", files)

    result = world.sync()

    assert code in result.codes
    assert "berlin/shop" not in result.outcomes
    assert world.reason("shop", "Stalled") == code


def test_requested_kind_allows_nested_markers(world: World) -> None:
    world.release("plain", "v1", {"a.yaml": MANIFEST, "sub/Chart.yaml": "name: a\n"})
    world.write({"shop.yaml": REQUEST.replace("revision: v1", "revision: v1, kind: manifests")})

    world.sync()

    assert world.text("drafts/berlin", "shop/sub/Chart.yaml") == "name: a\n"


def test_plaintext_secret_is_refused_unless_an_annotation_allows_it(world: World) -> None:
    secret = (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: shop\nstringData:\n  password: hunter2-pw\n"
    )
    world.release("plain", "v1", {"settings.yaml": MANIFEST, "secret.yaml": secret})

    result = world.sync()

    assert result.outcomes["berlin/shop"] == "PlaintextSecret"
    [finding] = [finding for finding in result.findings if finding.code == "PlaintextSecret"]
    assert "Secret/shop/db in the upstream contains a plaintext secret at /stringData" in finding.message
    assert "hunter2" not in finding.message

    annotation = "metadata:\n  annotations: {reconciler.dev/allow-plaintext-secrets: Secret/db}\n"
    world.write({"shop.yaml": REQUEST.replace("metadata:\n", annotation)})
    result = world.sync()

    assert (result.outcomes["berlin/shop"], result.codes) == ("draft", {"SecretInBranch"})
    world.write({"shop.yaml": REQUEST})
    assert world.sync().outcomes["berlin/shop"] == "PlaintextSecret"
