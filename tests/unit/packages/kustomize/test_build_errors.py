"""Tests of the messages about failed builds: they contain neither secrets nor temporary paths."""

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.packages.kustomize.build_errors import convert_build_error

FILES = FileTree(
    {
        "kustomization.yaml": File(b"secretGenerator:\n  - {name: db, literals: [password=hunter22, pin]}\n"),
        "secret.yaml": File(b"apiVersion: v1\nkind: Secret\nstringData: {token: open-sesame}\n"),
    }
)


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        pytest.param("Error: no such field x\n", "no such field x", id="kustomize"),
        pytest.param("# Warning: 'bases' is deprecated.\nerror: no field\n", "no field", id="warning-before-error"),
        pytest.param(
            'E1126 08:05:36.260296    5322 run.go:72] "command failed" err="resource \\"x\\" is absent"\n',
            'resource "x" is absent',
            id="log-entry",
        ),
        pytest.param(
            'E1126 08:12:28.315715 7110 run.go:72] "command failed" err=<\n\ttrouble with config: `\n\tkind: A\n >\n',
            "trouble with config: ` kind: A",
            id="log-entry-with-lines",
        ),
        pytest.param(
            "Error: open /dev/shm/reconciler-source-abc/work/source/base/x.yaml: no such file, '/tmp/r/work'\n",
            "open base/x.yaml: no such file, ''",
            id="temporary-folder",
        ),
        pytest.param("Error: invalid literal source password=hunter22\n", "invalid literal source *****", id="literal"),
        pytest.param("Error: cannot decode open-sesame\n", "cannot decode *****", id="value-of-a-secret"),
        pytest.param("Error: pin\n", "pin", id="short-texts-are-no-secrets"),
        pytest.param("\n", "", id="no-output"),
        pytest.param("Error: " + "x" * 2000, "x" * 1200 + "…", id="long-output"),
    ],
)
def test_message(stderr: str, message: str) -> None:
    finding = convert_build_error(stderr, "the overlay prod", FILES)

    assert finding.code == "KustomizeFailed"
    report = f'Kustomize reports: "{message}"' if message else "Kustomize gives no reason"
    assert finding.message == f"the overlay prod cannot be built. {report}"
