"""No value of a Secret is in the index of the fleet or in the cache, wherever the package or a person writes the value."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from reconciler.output.fleet.model import FleetIndex
from tests.support.collected_texts import collect_texts
from tests.support.policies import publish
from tests.support.prepared_worlds import begin
from tests.support.presets import presets_published
from tests.support.sops import ciphertext
from tests.support.world import World, package, repository, variant

CANARY = "canary-in-plain-sight"
ENCODED = b64encode(CANARY.encode()).decode()
CIPHERTEXT = ciphertext(CANARY)


def secret(value: str, name: str = "login", fields: str = "") -> str:
    encoded = b64encode(value.encode()).decode()
    return (
        f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\n{fields}"
        f"data:\n  key: {encoded}\nstringData:\n  password: {value}\n"
    )


def sealed_secret(value: str) -> str:
    return (
        "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata:\n  name: sealed\n"
        f"spec:\n  encryptedData:\n    key: {value}\n"
    )


def encrypted(value: str) -> str:
    return f"{secret('x', 'encrypted').replace('password: x', f'password: {ciphertext(value)}')}sops:\n  mac: {ciphertext('m')}\n"


def nested(value: str) -> str:
    """Return a ConfigMap with a Secret as text, and a List with a Secret."""
    inner = secret(value, "inner").replace("\n", "\n    ")
    listed = secret(value, "listed").replace("\n", "\n  ")
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: nested\ndata:\n  manifest: |\n    {inner.rstrip()}\n"
        f"---\napiVersion: v1\nkind: List\nmetadata:\n  name: list\nitems:\n- {listed.rstrip()}\n"
    )


def files(value: str) -> dict[str, str]:
    """Return a package with a value in each kind of object for secrets."""
    applied = f'  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: \'{{"password": "{value}"}}\'\n'
    return package(
        "login", secret=secret(value), applied=secret(value, "applied", applied), sealed=sealed_secret(value),
        encrypted=encrypted(value), nested=nested(value),
    )  # fmt: skip


def build_world(folder: Path, value: str) -> World:
    world = World.create(folder)
    world.release("login", "v1", files(value))
    world.write({
        "catalog.yaml": repository("catalog", "./catalog.git", branch="main").replace(
            "deployment: true", "deployment: false"
        ),
        "berlin.yaml": repository("berlin"), "login.yaml": variant("login", "berlin", "login"),
    })  # fmt: skip
    return world


def assert_hidden(world: World, index: FleetIndex, *values: str) -> None:
    """Check that neither the index nor its file in the cache contains one of the values."""
    (file,) = world.folder.glob("cache/console_index*")
    for text in ("\n".join(collect_texts(index)), file.read_bytes().decode(errors="replace")):
        assert "login" in text or "logs" in text
        assert not [value for value in values if value in text]


def update(world: World) -> FleetIndex:
    return world.create_indexer().update(world.observe_pass(), lambda done, total: None)


ALL_FORMS = (CANARY, ENCODED, CIPHERTEXT)


def test_new_secrets_are_hidden(tmp_path: Path) -> None:
    world = build_world(tmp_path / "world", CANARY)
    index = update(world)

    assert index.changes
    assert_hidden(world, index, *ALL_FORMS)


@pytest.mark.parametrize(("old", "new"), [(CANARY, "other-value"), ("other-value", CANARY)], ids=["old", "new"])
def test_changed_secrets_are_hidden(tmp_path: Path, old: str, new: str) -> None:
    world = build_world(tmp_path / "world", old)
    world.sync()
    world.merge("berlin")
    world.release("login", "v2", files(new))
    world.write({"login.yaml": variant("login", "berlin", "login", "v2")})
    index = update(world)

    (change,) = index.changes
    assert len(change.variants[0].content.changes.objects) >= 5
    assert_hidden(world, index, *ALL_FORMS)


def test_conflict_about_a_secret_is_hidden(tmp_path: Path) -> None:
    world = build_world(tmp_path / "world", "first-value")
    world.sync()
    world.merge("berlin")
    world.edit("clusters/berlin", "login/secret.yaml", "password: first-value", f"password: {CANARY}")
    world.release("login", "v2", files("other-value"))
    world.write({"login.yaml": variant("login", "berlin", "login", "v2")})
    index = update(world)

    (change,) = index.changes
    assert change.conflict_count
    assert_hidden(world, index, *ALL_FORMS, "other-value")


def test_removed_secrets_are_hidden(tmp_path: Path) -> None:
    world = build_world(tmp_path / "world", CANARY)
    world.write({"login.yaml": variant("login", "berlin", "login", extra="deletionPolicy: delete")})
    world.sync()
    world.merge("berlin")
    world.sync_until_unchanged()
    world.write({"login.yaml": None, "other.yaml": variant("other", "berlin", "other", upstream="login")})
    index = update(world)

    assert "delete login" in [change.title for change in index.changes]
    assert_hidden(world, index, *ALL_FORMS)


def test_secret_that_a_person_writes_to_a_draft_is_hidden(tmp_path: Path) -> None:
    world = build_world(tmp_path / "world", "first-value")
    world.sync()
    world.edit("drafts/berlin", "login/secret.yaml", "password: first-value", f"password: {CANARY}")

    assert_hidden(world, update(world), *ALL_FORMS)


def test_secret_option_that_a_person_writes_to_a_plugin_is_hidden(tmp_path: Path) -> None:
    world = begin(tmp_path, presets_published)
    path = "plugins/logs-oslo/plugin.yaml"
    text = world.text("clusters/oslo", path)
    start = text.index("name: token")
    world.commit("clusters/oslo", {path: text[:start] + f"name: token\n    value: {CANARY}\n"})
    publish(world)
    world.write({"presets/logs.yaml": (world.config / "presets/logs.yaml").read_text().replace("128", "256")})
    index = update(world)

    assert [change.title for change in index.changes] == ["re-render plugins/logs-*"]
    assert_hidden(world, index, CANARY)
