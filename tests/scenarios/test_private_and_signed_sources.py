"""Tests of packages from private registries, of signed packages, and of hostile archives and registries."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.scenarios.test_artifacts import describe_repository, request
from tests.sources.test_signatures import make_layer, push_signatures, write_key
from tests.support.archives import make_entry, pack, pack_files
from tests.support.artifact_servers import Answer, RegistryServer, serve
from tests.support.world import World, package, small_world

pytestmark = pytest.mark.second_pass

USER, PASSWORD = "reader", "password-of-the-reader"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    return tmp_path / "secrets"


@pytest.fixture
def make_world(tmp_path: Path, secrets: Path, registry: RegistryServer) -> Callable[..., World]:
    """Return a function that creates a world with the package web of the registry. `fields` are those of `oci`."""

    def make(fields: str = "", **sources: object) -> World:
        world = small_world(tmp_path, sources={"poll_seconds": 0, "secrets_directory": str(secrets), **sources})
        location = f"registry: {registry.host}/team, insecure: true"
        world.write(
            {
                "oci.yaml": describe_repository("oci", f"{{{location}{fields}}}"),
                "web.yaml": request("package: web, tag: v1", helm=""),
            }
        )
        return world

    return make


def publish(world: World) -> None:
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()


@pytest.mark.slow
def test_signed_package(make_world: Callable[..., World], secrets: Path, registry: RegistryServer) -> None:
    """A valid signature, none, one by another key, and a valid one for another digest."""
    key, other_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    write_key(secrets, key)
    first = registry.push("team/web", "v1", pack_files(package("web")))
    push_signatures(registry, first, make_layer(registry, key, first), name="team/web")
    world = make_world(", verify: {provider: cosign, secretRef: {name: keys}}")
    publish(world)
    published = world.text("clusters/berlin", "web/deployment.yaml")

    second = registry.push("team/web", "v1", pack_files(package("web", image="2.0")))
    for layers, code in (
        (None, "SignatureMissing"),
        ([make_layer(registry, other_key, second)], "SignatureInvalid"),
        ([make_layer(registry, key, first)], "SignatureInvalid"),
    ):
        if layers:
            push_signatures(registry, second, *layers, name="team/web")
        world.now += 600
        result = world.sync()
        assert code in result.codes
        assert result.changed_branches == set()
    assert world.text("clusters/berlin", "web/deployment.yaml") == published

    push_signatures(registry, second, make_layer(registry, key, second), name="team/web")
    world.now += 600
    assert world.sync().outcomes["berlin/web"] == "draft"
    assert "image: example.com/web:2.0" in world.text("drafts/berlin", "web/deployment.yaml")


def test_private_registry(
    make_world: Callable[..., World], tmp_path: Path, registry: RegistryServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without credentials, the package is stalled. Afterwards, another host that stores blobs receives none."""
    registry.scheme, registry.login = "bearer", (USER, PASSWORD)
    archive = pack_files(package("web"))
    registry.push("team/web", "v1", archive)
    file = tmp_path / "credentials"
    file.write_text("")
    world = make_world(credentials_file=str(file))

    assert "SourceUnauthorized" in world.sync().codes

    file.write_text(f"http://{USER}:{PASSWORD}@{registry.host}\n")
    other = RegistryServer()
    with serve(other):
        other.overrides["/storage"] = Answer(body=archive)
        registry.overrides["/blobs/"] = Answer(307, {"Location": f"{other.url}/storage"})
        world.now += 600
        result = world.sync()
    assert result.outcomes["berlin/web"] == "draft"
    assert ["authorization" in request.headers for request in other.requests] == [False]
    assert PASSWORD not in capfd.readouterr().err + "".join(finding.message for finding in result.findings)


HOSTILE = {
    "parent": (pack([make_entry("../x", b"a: 1")]), "ArchiveInvalid"),
    "case-twins": (pack_files({"a/x.yaml": "", "A/x.yaml": ""}), "ArchiveInvalid"),
    "device": (pack([make_entry("a", type=tarfile.CHRTYPE)]), "ArchiveInvalid"),
    "truncated": (pack_files(package("web"))[:-9], "ArchiveInvalid"),
    "zeros": (pack([make_entry("zeros", bytes(5_000_000))]), "SourceTooLarge"),
    "files": (pack_files({f"{number}.yaml": "" for number in range(200)}), "SourceTooLarge"),
}


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(("archive", "code"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_archive_blocks_only_its_package(
    archive: bytes, code: str, make_world: Callable[..., World], registry: RegistryServer
) -> None:
    world = make_world(limits={"files": 100})
    registry.push("team/web", "v1", pack_files(package("web")))
    registry.push("team/db", "v1", pack_files(package("db")))
    publish(world)
    registry.push("team/web", "v1", archive)
    world.write({"db.yaml": request("package: db, tag: v1", "lisbon", helm="").replace("package: web", "package: db")})

    result = world.sync()

    assert code in result.codes
    assert result.changed_branches == {"drafts/lisbon"}


def test_links_of_an_archive_are_left_out(make_world: Callable[..., World], registry: RegistryServer) -> None:
    entries = [make_entry(path, text.encode()) for path, text in package("web").items()]
    link = make_entry("link.yaml", type=tarfile.SYMTYPE, linkname="/etc/passwd")
    registry.push("team/web", "v1", pack([*entries, link]))
    world = make_world()

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft"
    assert "LinkSkipped" in result.codes
    assert world.tree("drafts/berlin", "web/link.yaml") is None
    assert world.tree("drafts/berlin", "web/Kptfile")
