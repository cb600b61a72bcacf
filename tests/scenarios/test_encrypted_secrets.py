"""Tests of SOPS documents and SealedSecrets through whole passes. SOPS decrypts the results."""

import json
import os
from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.command_line import run_in
from tests.support.policies import ATTACHED, patch, policy
from tests.support.sops import MAC_ONLY, SECRET, SECRET_FIELDS, SopsKey, make_sops_key
from tests.support.world import World, catalog, config_map, package, repository, variant

pytestmark = pytest.mark.second_pass

FILE = "web/secret.yaml"
KPTFILE = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: web
pipeline:
  mutators:
    - image: set-labels:v0.2
      configMap: {team: platform}
    - image: set-namespace:v0.4
      configMap: {namespace: store}
"""


@pytest.fixture
def key(tmp_path: Path) -> SopsKey:
    folder = tmp_path / "sops"
    folder.mkdir()
    return make_sops_key(folder)


def create_world(folder: Path, secret: str, extra: str = "", **files: str) -> World:
    """Return a fleet with the package `web` on Berlin, which contains a Secret and a function pipeline."""
    world = World.create(folder / "world")
    world.release("web", "v1", {**package("web", secret=secret), "Kptfile": KPTFILE})
    world.write(
        {
            "catalog.yaml": catalog(),
            "berlin.yaml": repository("berlin"),
            "web.yaml": variant("web", "berlin", "web", extra=extra),
            **{f"{name}.yaml": content for name, content in files.items()},
        }
    )
    return world


def release(world: World, version: str, secret: str, extra: str = "") -> None:
    world.release("web", version, {**package("web", secret=secret), "Kptfile": KPTFILE})
    world.write({"web.yaml": variant("web", "berlin", "web", version, extra=extra)})


def publish(world: World) -> None:
    world.merge("berlin", "squash")
    world.sync_until_unchanged()


LABEL_POLICY = policy("label", [patch("/metadata/labels/tier", "backend")])
SELECTED = {"resourceSelectors": [{"kind": "Secret"}]}


def test_document_passes_through_functions_unchanged(tmp_path: Path, key: SopsKey) -> None:
    encrypted = key.encrypt(SECRET, *SECRET_FIELDS)
    world = create_world(tmp_path, encrypted)

    result = world.sync()

    assert world.text("drafts/berlin", FILE) == encrypted
    assert "password: hunter2-hunter2" in key.decrypt(world.text("drafts/berlin", FILE))
    assert "namespace: store" in world.text("drafts/berlin", "web/deployment.yaml")
    [withheld] = [finding for finding in result.findings if finding.code == "SopsWithheld"]
    assert (withheld.severity, withheld.location.object) == ("info", "Secret/shop/db")
    assert "set-labels:v0.2, set-namespace:v0.4" in withheld.message
    assert result.codes == {"SopsWithheld"}
    assert world.sync().is_unchanged


@pytest.mark.parametrize("is_mac_only", [False, True], ids=["whole-mac", "mac-only-encrypted"])
def test_policy_is_applied_only_if_the_mac_permits_it(tmp_path: Path, key: SopsKey, is_mac_only: bool) -> None:
    secret = SECRET.replace("    app: shop\n", f"    app: shop\n    {ATTACHED}: label\n")
    encrypted = key.encrypt(secret, *SECRET_FIELDS, *([MAC_ONLY] if is_mac_only else []))
    world = create_world(tmp_path, encrypted, policy=LABEL_POLICY)

    result = world.sync()

    if not is_mac_only:
        assert result.outcomes == {"berlin/web": "SopsMacBroken SopsWithheld"}
        [broken] = [finding for finding in result.findings if finding.code == "SopsMacBroken"]
        assert broken.location.object == "Secret/shop/db"
        assert "ClusterOverridePolicy/label" in broken.message
        assert "--mac-only-encrypted" in broken.message
        assert not world.head("drafts/berlin")
        return
    text = world.text("drafts/berlin", FILE)
    assert "tier: backend" in text
    assert ATTACHED not in text
    decrypted = key.decrypt(text)
    assert "password: hunter2-hunter2" in decrypted
    assert "tier: backend" in decrypted
    assert world.sync().is_unchanged


def test_policy_for_an_encrypted_value_is_refused(tmp_path: Path, key: SopsKey) -> None:
    secret = SECRET.replace("    app: shop\n", f"    app: shop\n    {ATTACHED}: label\n")
    world = create_world(
        tmp_path,
        key.encrypt(secret, *SECRET_FIELDS, MAC_ONLY),
        policy=policy("label", [patch("/stringData/password", "plaintext-value")]),
    )

    result = world.sync()

    assert result.outcomes == {"berlin/web": "SopsMacBroken SopsWithheld"}
    assert all("plaintext-value" not in finding.message for finding in result.findings)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("conflict_policy", ["local", "upstream", "block"])
def test_rotation_on_both_sides_is_a_conflict_about_the_file(
    tmp_path: Path, key: SopsKey, conflict_policy: str
) -> None:
    extra = f"conflictPolicy: {conflict_policy}"
    first = key.encrypt(SECRET, *SECRET_FIELDS)
    world = create_world(tmp_path, first, extra)
    world.sync()
    publish(world)
    local, upstream = key.rotate(first), key.rotate(first)
    world.commit("clusters/berlin", {FILE: local})
    world.sync_until_unchanged()
    release(world, "v2", upstream, extra)

    result = world.sync()

    if conflict_policy == "block":
        assert result.outcomes == {"berlin/web": "MergeConflict"}
        return
    text = world.text("drafts/berlin", FILE)
    assert text == (local if conflict_policy == "local" else upstream)
    assert "password: hunter2-hunter2" in key.decrypt(text)
    [conflict] = world.package_status("drafts/berlin", "web")["conflicts"]
    assert (conflict["kind"], conflict["file"], conflict["chosen"]) == ("file", "secret.yaml", conflict_policy)
    assert "ENC[" not in world.text("drafts/berlin", ".reconciler/web.yaml")
    assert world.sync().is_unchanged


def test_changes_of_one_side_replace_the_file(tmp_path: Path, key: SopsKey) -> None:
    first = key.encrypt(SECRET, *SECRET_FIELDS)
    world = create_world(tmp_path, first)
    world.sync()
    publish(world)
    upstream = key.rotate(first)
    release(world, "v2", upstream)
    world.sync()

    assert world.text("drafts/berlin", FILE) == upstream

    publish(world)
    local = key.encrypt(SECRET.replace("admin", "root"), *SECRET_FIELDS)
    world.commit("clusters/berlin", {FILE: local})
    release(world, "v3", upstream)

    assert world.sync().codes == {"SopsWithheld"}
    assert world.text("clusters/berlin", FILE) == local


def test_plaintext_edit_is_suspect_and_missing_encryption_blocks(tmp_path: Path, key: SopsKey) -> None:
    encrypted = key.encrypt(SECRET, *SECRET_FIELDS)
    world = create_world(tmp_path, encrypted)
    world.sync()
    publish(world)
    edited = encrypted.replace("app: shop", "app: store")
    assert "MAC mismatch" in key.decrypt(edited)
    world.commit("clusters/berlin", {FILE: edited})

    result = world.sync()

    [suspect] = [finding for finding in result.findings if finding.code == "SopsMacSuspect"]
    assert (suspect.severity, suspect.location.pointer) == ("warning", "/metadata/labels/app")
    assert world.text("clusters/berlin", FILE) == edited

    lines = [
        "  password: hunter2-hunter2" if line.startswith("    password:") else line for line in encrypted.splitlines()
    ]
    world.commit("clusters/berlin", {FILE: "\n".join(lines).replace("\n  password", "\n    password") + "\n"})
    result = world.sync()

    [plaintext] = [finding for finding in result.findings if finding.code == "PlaintextSecret"]
    assert (plaintext.severity, plaintext.location.pointer) == ("error", "/stringData/password")
    assert all("hunter2" not in finding.message for finding in result.findings)


SEALED = """\
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata:
  name: db
  namespace: shop
spec:
  encryptedData:
    password: AgBy3i4OJSWK
"""
EXTERNAL = f"""\
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata:
  name: api
  namespace: shop
  labels: {{{ATTACHED}: label}}
spec:
  refreshInterval: 1h
"""


@pytest.mark.parametrize(
    ("annotations", "is_bound"),
    [
        ("", True),
        ("  annotations: {sealedsecrets.bitnami.com/cluster-wide: 'true'}\n", False),
        ("  annotations: {sealedsecrets.bitnami.com/namespace-wide: 'true'}\n", True),
    ],
    ids=["strict", "cluster-wide", "namespace-wide"],
)
def test_sealed_secret_in_another_namespace(tmp_path: Path, annotations: str, is_bound: bool) -> None:
    sealed = SEALED.replace("spec:\n", f"{annotations}spec:\n", 1)
    refresh = policy("label", [patch("/spec/refreshInterval", "5m")])
    world = create_world(tmp_path, sealed + "---\n" + EXTERNAL, policy=refresh)

    result = world.sync()

    assert ("SealedSecretScope" in result.codes) is is_bound
    text = world.text("drafts/berlin", FILE)
    assert text.count("namespace: store") == 2
    assert "refreshInterval: 5m" in text
    assert world.sync().is_unchanged


def test_sealed_values_are_merged_by_key_and_hidden(tmp_path: Path) -> None:
    world = create_world(tmp_path, SEALED)
    world.sync()
    publish(world)
    world.edit("clusters/berlin", FILE, "AgBy3i4OJSWK", "AgLocalValue")
    world.sync_until_unchanged()
    release(world, "v2", SEALED.replace("AgBy3i4OJSWK", "AgUpstream") + "    user: AgNewUser\n")

    world.sync()

    assert "password: AgLocalValue\n    user: AgNewUser" in world.text("drafts/berlin", FILE)
    [conflict] = world.package_status("drafts/berlin", "web")["conflicts"]
    assert conflict["pointer"] == "/spec/encryptedData/password"
    status = world.text("drafts/berlin", ".reconciler/web.yaml")
    assert not any(value in status for value in ("AgBy3i4OJSWK", "AgLocalValue", "AgUpstream"))


@pytest.mark.slow
@pytest.mark.parametrize("rules", [SECRET_FIELDS, ()], ids=["secret-fields", "all-fields"])
def test_output_names_changed_fields_without_values(tmp_path: Path, key: SopsKey, rules: tuple[str, ...]) -> None:
    first = key.encrypt(SECRET, *rules)
    world = create_world(tmp_path, first)
    world.sync()
    publish(world)
    release(world, "v2", key.encrypt(SECRET.replace("hunter2-hunter2", "hunter3"), *rules))

    texts = [
        run_command(world, "plan", world.source, "-o", "text"),
        run_command(world, "plan", world.source, "-o", "json"),
    ]
    world.sync()
    place = ("--config", world.source)
    texts += [run_command(world, "show", "berlin/web", *place), run_command(world, "report", world.source)]
    texts += [run_command(world, "explain", "berlin/web", *target, *place) for target in EXPLAINED]

    assert "password: ENC[…]" in texts[0]
    assert "ENC[…]" in texts[-1] or not rules
    assert not [text for text in texts if "AES256_GCM" in text]


EXPLAINED = ((), ("Secret/db",), ("Secret/db", "/stringData"), ("Secret/db", "/stringData/password"))


def run_command(world: World, *arguments: str) -> str:
    options = ("--fleet", str(world.fleet), "--cache", str(world.folder / "cache"))
    result = run_in(world.folder, {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, *arguments, *options)
    return result.stdout + result.stderr


def test_config_map_with_a_field_named_sops_is_an_ordinary_resource(tmp_path: Path) -> None:
    world = create_world(tmp_path, config_map("tool", sops="enabled"))
    assert world.sync().codes == set()
    assert "team: platform" in world.text("drafts/berlin", FILE)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_policy_still_applies_after_a_rotation_on_the_branch(tmp_path: Path, key: SopsKey, suffix: str) -> None:
    secret = SECRET.replace("    app: shop\n", f"    app: shop\n    {ATTACHED}: label\n")
    if suffix == "json":
        secret = json.dumps(parse_yaml(secret.encode()).documents[0].data)
    world = create_world(tmp_path, SECRET, policy=LABEL_POLICY)
    encrypted = key.encrypt(secret, *SECRET_FIELDS, MAC_ONLY, suffix=f".{suffix}")
    world.release("web", "v1", {"Kptfile": KPTFILE, f"secret.{suffix}": encrypted})
    path = f"web/secret.{suffix}"
    world.sync()
    publish(world)
    rotated = key.rotate(world.text("clusters/berlin", path).rstrip("\n"), suffix=f".{suffix}")
    world.commit("clusters/berlin", {path: rotated})

    result = world.sync()

    assert (result.outcomes, result.codes) == ({"berlin/web": "published with edits"}, {"SopsWithheld"})
    assert world.text("clusters/berlin", path) == rotated
    world.write({"policy.yaml": policy("label", [patch("/metadata/labels/tier", "frontend")])})
    world.sync()
    text = world.text("drafts/berlin", path)
    assert "frontend" in key.decrypt(text.rstrip("\n"), suffix=f".{suffix}")
    assert key.decrypt(text.rstrip("\n"), suffix=f".{suffix}").count("hunter2-hunter2") == 1
    assert "conflicts" not in world.package_status("drafts/berlin", "web")
    assert world.sync().is_unchanged


def test_documents_with_one_mac_are_not_placed_separately(tmp_path: Path, key: SopsKey) -> None:
    placed = SECRET.replace("  labels:\n", "  annotations: {reconciler.dev/clusters: berlin}\n  labels:\n")
    other = placed.replace("name: db", "name: cache")
    world = World.create(tmp_path / "world")
    together = key.encrypt(f"{placed}---\n{other}", *SECRET_FIELDS)
    world.write({"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "secrets.yaml": together})

    result = world.sync()

    broken = sorted(finding.location.object for finding in result.findings if finding.code == "SopsMacBroken")
    assert broken == ["Secret/shop/cache", "Secret/shop/db"]
    assert not world.head("drafts/berlin")

    documents = [key.encrypt(text, *SECRET_FIELDS) for text in (placed, other)]
    world.write({"secrets.yaml": "---\n".join(documents)})
    assert world.sync().codes == set()
    contents = [text for path, text in world.files(world.fleet, "drafts/berlin").items() if "secret" in path]
    assert ["hunter2-hunter2" in key.decrypt(text) for text in contents] == [True, True]


def test_encrypted_values_are_not_injected(tmp_path: Path, key: SopsKey) -> None:
    world = create_world(
        tmp_path,
        config_map("site", "required", region="none"),
        extra="injectors: [{name: berlin-site}]",
        site=key.encrypt(config_map("berlin-site", region="north"), "--encrypted-regex", "^data$"),
    )
    world.sync()
    assert "region: none" in world.text("drafts/berlin", FILE)
    assert "encrypted with SOPS" in world.text("drafts/berlin", "web/Kptfile")
