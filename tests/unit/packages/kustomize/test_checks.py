"""Tests of the checks before a build: an overlay refers only to files of its package and starts no function."""

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.packages.charts.request import ChartRequest
from reconciler.packages.kustomize.checks import check_overlay
from reconciler.packages.kustomize.request import KustomizeRequest

RESOURCE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
BUILTIN = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: x}\n"
PROGRAM = "apiVersion: example.com/v1\nkind: Generate\nmetadata: {name: x}\n"
ANNOTATED = (
    "apiVersion: builtin\nkind: X\nmetadata: {annotations: {config.kubernetes.io/function: 'exec: {path: ./x}'}}\n"
)


def check(path: str = "prod", **files: str) -> list[str]:
    """Return the codes and messages about an overlay. `_` in a name stands for `/`, and the extension is `.yaml`."""
    names = {name: "/".join(name.split("_")) for name in files}
    texts = {f"{names[name]}.yaml": text for name, text in files.items()}
    tree = FileTree({name: File(text.encode()) for name, text in texts.items()})
    return [f"{finding.code} {finding.message}" for finding in check_overlay(tree, KustomizeRequest(path))]


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"prod_kustomization": "resources: [x.yaml]", "prod_x": RESOURCE}, id="file"),
        pytest.param({"prod_kustomization": "resources: [../base]", "base_kustomization": ""}, id="base-beside"),
        pytest.param(
            {"prod_kustomization": "resources: [../base]", "base_kustomization": "components: [../prod]"}, id="cycle"
        ),
        pytest.param(
            {
                "prod_kustomization": (
                    "configMapGenerator: [{name: a, literals: ['url=https://example.com']}]\n"
                    "commonAnnotations: {docs: 'https://example.com/'}\n"
                    "generatorOptions: {annotations: {docs: 'https://example.com'}}\n"
                    "images: [{name: 'example.com:5000/a', newName: 'example.com:5000/b'}]\n"
                    'patches: [{patch: \'[{"op": "add", "path": "/x", "value": "http://a"}]\'}]\n'
                )
            },
            id="urls-in-data",
        ),
        pytest.param({"prod_kustomization": "transformers: [t.yaml]", "prod_t": BUILTIN}, id="built-in-transformer"),
    ],
)
def test_accepted(files: dict[str, str]) -> None:
    assert check(**files) == []


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        pytest.param("resources: ['https://example.com/x.yaml']", "resources[0]", id="resource"),
        pytest.param("RESOURCES: ['HTTPS://example.com/x.yaml']", "RESOURCES[0]", id="upper-case"),
        pytest.param("bases: ['github.com/example/repo//base?ref=v1']", "bases[0]", id="base"),
        pytest.param("resources: ['git@example.com:a/b.git']", "resources[0]", id="ssh"),
        pytest.param("resources: ['git::https://example.com/a']", "resources[0]", id="forced-git"),
        pytest.param("resources: ['file:///etc']", "resources[0]", id="file-url"),
        pytest.param("resources: ['gitlab.example.com/a/b.git']", "resources[0]", id="url-without-scheme"),
        pytest.param("components: ['ssh://git@example.com/a']", "components[0]", id="component"),
        pytest.param("crds: ['https://example.com/crd.yaml']", "crds[0]", id="crd"),
        pytest.param("configurations: ['https://example.com/c.yaml']", "configurations[0]", id="configuration"),
        pytest.param("openapi: {path: 'https://example.com/s.json'}", "openapi.path", id="openapi"),
        pytest.param("patches: [{path: 'https://example.com/p.yaml'}]", "patches[0].path", id="patch"),
        pytest.param("replacements: [{path: 'https://example.com/r'}]", "replacements[0].path", id="replacement"),
        pytest.param(
            "configMapGenerator: [{files: ['a=https://example.com/a']}]",
            "configMapGenerator[0].files[0]",
            id="generator",
        ),
        pytest.param("transformers: ['https://example.com/t.yaml']", "transformers[0]", id="transformer"),
    ],
)
def test_url_is_refused(fields: str, place: str) -> None:
    (finding,) = check(prod_kustomization=f"# A comment.\n{fields}\n")

    assert finding.startswith(f"RemoteBaseRefused prod/kustomization.yaml:2: {place} refers to the URL ")
    assert finding.endswith(". Next step: copy the files into the upstream package")


def test_url_in_a_base_is_refused_also_if_a_local_folder_has_its_name() -> None:
    files = {"prod_kustomization": "resources: [../base]", "base_kustomization": "resources: [github.com/a/b]"}
    tree = FileTree({f"{name.replace('_', '/')}.yaml": File(text.encode()) for name, text in files.items()})
    tree = tree.with_files({"base/github.com/a/b/kustomization.yaml": b""})

    (finding,) = check_overlay(tree, KustomizeRequest("prod"))

    assert finding.code == "RemoteBaseRefused"
    assert finding.message.startswith("base/kustomization.yaml:1: resources[0]")


def test_credentials_of_a_url_are_not_in_the_message() -> None:
    (finding,) = check(prod_kustomization="resources: ['https://user:hunter22@example.com/x']")

    assert "hunter22" not in finding


@pytest.mark.parametrize(
    "field", [pytest.param(field, id=field) for field in ("generators", "transformers", "validators")]
)
@pytest.mark.parametrize(
    "content", [pytest.param(PROGRAM, id="program"), pytest.param(ANNOTATED, id="function-annotation")]
)
def test_function_is_refused(field: str, content: str) -> None:
    inline = f"{field}:\n  - |\n" + "".join(f"    {line}\n" for line in content.splitlines())
    in_folder = {"f_kustomization": "resources: [x.yaml]", "f_x": content}
    findings = {
        "inline": check(prod_kustomization=inline),
        "file": check(prod_kustomization=f"{field}: [f.yaml]", prod_f=content),
        "folder": check(prod_kustomization=f"{field}: [../f]", **in_folder),
    }

    for place, (finding,) in findings.items():
        assert finding.startswith("KustomizeFailed "), place
        assert "is not a built-in function of Kustomize" in finding, place


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        pytest.param(
            "resources: [../../other]",
            'PathInvalid prod/kustomization.yaml:1: resources[0] refers to "../../other", which is outside of the upstream package',
            id="outside",
        ),
        pytest.param(
            "resources: [/etc]",
            'PathInvalid prod/kustomization.yaml:1: resources[0] refers to "/etc", which is outside of the upstream package',
            id="absolute",
        ),
        pytest.param(
            "resources: [absent.yaml]",
            'KustomizeFailed prod/kustomization.yaml:1: resources[0] refers to "absent.yaml", which is neither a file of the upstream '
            "package nor a folder with a kustomization.yaml",
            id="absent",
        ),
        pytest.param(
            "helmCharts: [{name: web}]",
            "KustomizeFailed prod/kustomization.yaml:1: helmCharts must not be set, because charts of an overlay "
            'are not rendered. Next step: set spec.kustomize.helmCharts to "render", or use the chart as the upstream of '
            "its own PackageVariant, with spec.helm",
            id="chart",
        ),
        pytest.param(
            "resources: [",
            "KustomizeFailed prod/kustomization.yaml cannot be parsed: line 2, column 1: the text is not",
            id="yaml",
        ),
    ],
)
def test_invalid_overlay(fields: str, finding: str) -> None:
    (found,) = check(prod_kustomization=fields)

    assert found.startswith(finding)


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        pytest.param(
            "helmGlobals: {configHome: /etc}\nhelmCharts: [{name: web, version: 1.0.0, repo: 'https://example.com'}]",
            "KustomizeFailed prod/kustomization.yaml:1: helmGlobals must not set configHome, which is not supported",
            id="configHome",
        ),
        pytest.param(
            "helmGlobals: {chartHome: ../../x}\nhelmCharts: [{name: web}]",
            'PathInvalid prod/kustomization.yaml:2: helmCharts[0].name refers to the chart folder "../../x/web", ',
            id="chartHome",
        ),
        pytest.param(
            "HelmCharts: [{Name: web, Version: 1.0.0, Repo: 'https://example.com'}]",
            'DependencyRepositoryMissing prod/kustomization.yaml:1: HelmCharts[0] requires version "1.0.0" of the chart "web", '
            "but the upstream package does not contain it, and no Repository has the URL https://example.com",
            id="other-case",
        ),
        pytest.param(
            "helmCharts: {name: web}", "KustomizeFailed prod/kustomization.yaml:1: helmCharts must be a list", id="map"
        ),
        pytest.param(
            "helmChartInflationGenerator: [{chartName: web}]",
            "KustomizeFailed prod/kustomization.yaml:1: helmChartInflationGenerator uses HelmChartInflationGenerator,",
            id="old-field",
        ),
        pytest.param(
            "generators: ['{apiVersion: builtin, kind: HelmChartInflationGenerator, name: web}\n\n']",
            "KustomizeFailed prod/kustomization.yaml:1: generators[0] uses HelmChartInflationGenerator, which",
            id="generator",
        ),
    ],
)
def test_invalid_charts(fields: str, finding: str) -> None:
    tree = FileTree({"prod/kustomization.yaml": File(fields.encode())})
    found, *_ = check_overlay(tree, KustomizeRequest("prod", charts=ChartRequest("", "", "1.34.0")))

    assert f"{found.code} {found.message}".startswith(finding)


def test_chart_in_the_package_is_accepted() -> None:
    files = {"prod/kustomization.yaml": "helmCharts: [{name: web}]", "prod/charts/web/Chart.yaml": "name: web"}
    tree = FileTree({path: File(text.encode()) for path, text in files.items()})
    assert check_overlay(tree, KustomizeRequest("prod", charts=ChartRequest("", "", "1.34.0"))) == ()


def test_missing_overlay_lists_the_folders_with_overlays() -> None:
    (finding,) = check("absent", prod_kustomization="", base_kustomization="")

    assert finding.endswith(
        'folder "absent" of the upstream package has no kustomization.yaml; folders with this file: base, prod'
    )
