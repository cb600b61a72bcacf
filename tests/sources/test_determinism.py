"""Tests with the program helm: charts whose output depends on a clock, on randomness or on the order of maps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.files import FileTree
from reconciler.krm.yaml import parse_yaml
from reconciler.lazy_dataclasses import replace
from reconciler.packages.charts.request import RenderedSource
from tests.support.charts import REQUEST, build_chart, build_engine, read_folder
from tests.support.programs import chart_folder, find_program

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"


def render(tmp_path: Path, chart: FileTree, **options: Any) -> RenderedSource:
    return build_engine(find_program("helm"), tmp_path / "renders").render(chart, replace(REQUEST, **options))


def list_errors(source: RenderedSource) -> list[str]:
    errors = [finding for finding in source.findings if finding.severity == "error"]
    assert {finding.code for finding in errors} <= {"NondeterministicChart"}
    return [finding.message.removeprefix("chart web 1.2.3: ") for finding in errors]


def build_config_map(line: str, **files: str) -> FileTree:
    return build_chart({"a.yaml": f"{HEAD}data:\n  key: {line}\n"}, **files)


def build_config_maps(lines: Mapping[str, str], **files: str) -> FileTree:
    head = HEAD.removesuffix("a\n")
    return build_chart(
        {f"{name}.yaml": f"{head}{name}\ndata:\n  key: {line}\n" for name, line in lines.items()}, **files
    )


STEP = ", and can change with each render. Next step: set values that avoid this call, or set `onNondeterminism: fixed`"
FIELD = "/data/key of ConfigMap/a depends on"
CHANGING_LINES = {
    "now": "{{ now | quote }}",
    "year": '{{ now | date "2006" | quote }}',
    "date-of-now": '{{ date "2006-01" now | quote }}',
    "field-of-now": "{{ now.Unix }}",
    "text": "{{ randAlphaNum 5 | quote }}",
    "text-after-a-pipe": "{{ 5 | randNumeric | quote }}",
    "encoded-text": "{{ randAscii 5 | b64enc }}",
    "bytes": "{{ randBytes 5 }}",
    "uuid": "{{ uuidv4 | upper }}",
    "argument": '{{ list uuidv4 | join "-" }}',
    "shuffle": "{{ shuffle .Release.Namespace }}",
    "number": "{{ randInt 0 1000000 }}",
    "number-as-an-argument": "{{ len (until (randInt 1 9)) }}",
    "hash": "{{ randAlpha 9 | sha256sum | trunc 7 | quote }}",
    "map-order": '{{ keys (dict "a" 1 "b" 2) | first }}',
}


def test_fields_that_change(tmp_path: Path) -> None:
    functions = {"now": "year date-of-now field-of-now now", "randAlphaNum": "text", "randNumeric": "text-after-a-pipe",
                 "randAscii": "encoded-text", "randBytes": "bytes", "uuidv4": "uuid argument", "shuffle": "shuffle",
                 "randInt": "number number-as-an-argument", "randAlpha": "hash",
                 "the map order of keys": "map-order"}  # fmt: skip
    expected = [
        f"/data/key of ConfigMap/{name} depends on {function} (templates/{name}.yaml:6){STEP}"
        for function, names in functions.items()
        for name in names.split()
    ]

    assert sorted(list_errors(render(tmp_path, build_config_maps(CHANGING_LINES)))) == sorted(expected)


@pytest.mark.slow
def test_preview_is_equal_in_each_render(tmp_path: Path) -> None:
    """A preview has placeholders also for keys and certificates, because its values are only compared."""
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: {{ randAlphaNum 9 }}}\n"
    lines = {
        **CHANGING_LINES,
        "certificate": '{{ (genCA "a" 9).Cert | b64enc }}',
        "hash": "{{ randAlpha 9 | sha256sum }}",
    }
    chart = build_chart({"secret.yaml": secret}).with_files(dict(build_config_maps(lines)))

    first, second = (render(tmp_path / folder, chart, is_preview=True) for folder in ("1", "2"))

    assert list_errors(first) == []
    assert first.files.id == second.files.id
    assert len(first.files) == len(lines) + 1


@pytest.mark.slow
def test_fixed_output_is_equal_in_each_render(tmp_path: Path) -> None:
    chart = build_config_maps(CHANGING_LINES)

    first, second = (render(tmp_path / name, chart, on_nondeterminism="fixed") for name in "ab")

    assert list_errors(first) == []
    assert first == second


@pytest.mark.slow
def test_fields_that_do_not_change(tmp_path: Path) -> None:
    lines = {
        "not-called": "{{ if false }}{{ now }}{{ end }}x",
        "sorted-keys": '{{ keys (dict "a" 1 "b" 2) | sortAlpha | first }}',
        "length": "{{ len (randAlpha 5 | trunc 3) }}",
        "one-value": '{{ values (dict "a" 1) | first }}',
        "text-with-a-call": '{{ "{{ now }}" | quote }}',
        "value-with-a-call": "{{ .Values.text | quote }}",
        "default-value-with-a-call": "{{ .Values.default | quote }}",
        "file-with-a-call": '{{ .Files.Get "a.txt" | quote }}',
        "date-of-a-date": '{{ date "2006" (toDate "2006" "1999") | quote }}',
        "lookup": '{{ lookup "v1" "Secret" "a" "b" | default "x" | toString | quote }}',
    }
    text = "{{ now }} {{ keys .x }} {{ randInt 1 2 }} {{ randAlphaNum 5 | quote }}"
    chart = build_config_maps(lines, values_yaml=f"default: '{text}'\n", **{"a.txt": text})

    source = render(tmp_path, chart, values='{"text":"{{ now }} {{ keys .x }} {{ randInt 1 2 }} {{ uuidv4 }}"}')

    assert list_errors(source) == []
    assert len(source.files) == len(lines)
    assert not [path for path, file in source.files.items() if b"aqz" in file.data]


# Five renders of a small map often have the same order.
MAP_ENTRIES = " ".join(f'"k{number}" {number}' for number in range(30))


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(
    ("line", "place"),
    [
        pytest.param("{{ tpl .Values.text . }}", "randAlphaNum (values/text)", id="value"),
        pytest.param("{{ tpl .Values.default . }}", "randAlpha (values.yaml:2)", id="default-value"),
        pytest.param('{{ tpl (.Files.Get "a.txt") . }}', "randNumeric (a.txt:1)", id="file"),
        pytest.param('{{ include "sub" . }}', "randAscii (charts/sub/templates/_a.tpl:1)", id="subchart"),
        pytest.param('{{ tpl "{{ uuidv4 }}" . }}', "uuidv4 (templates/a.yaml:6)", id="string"),
        pytest.param(
            f'{{{{ values (dict {MAP_ENTRIES}) | join "" | quote }}}}',
            "the map order of values (templates/a.yaml:6)",
            id="values",
        ),
    ],
)
def test_place_of_the_call(tmp_path: Path, line: str, place: str) -> None:
    chart = build_config_map(
        line,
        values_yaml='a: 1\ndefault: "{{ randAlpha 5 }}"\n',
        **{
            "a.txt": "{{ randNumeric 9 | quote }}",
            "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
            "charts/sub/templates/_a.tpl": '{{ define "sub" }}{{ randAscii 9 | b64enc }}{{ end }}',
        },
    )

    (error,) = list_errors(render(tmp_path, chart, values='{"text":"{{ randAlphaNum 5 }}"}'))

    assert error.startswith(f"{FIELD} {place}, and can change with each render. Next step: set values")


@pytest.mark.slow
def test_fixed_values(tmp_path: Path) -> None:
    lines = {
        "date": '{{ now | date "2006-01-02T15:04:05Z07:00" | quote }}',
        "text": "{{ randAlphaNum 12 | quote }}",
        "digits": "{{ 6 | randNumeric | quote }}",
        "bytes": "{{ randBytes 6 }}",
        "uuid": "{{ uuidv4 }}",
        "number": "{{ randInt 3 9 }}",
        "keys": '{{ keys (dict "b" 1 "a" 2) | join "," }}',
        "ago": "{{ ago now }}",
    }
    data = "".join(f"  {name}: {line}\n" for name, line in lines.items())
    chart = build_chart({"a.yaml": f"{HEAD}data:\n{data}"})

    rendered = [
        render(tmp_path / name, chart, on_nondeterminism="fixed", identity=name).files["configmap-a.yaml"].data.decode()
        for name in ("berlin/web", "paris/web")
    ]

    first, second = (parse_yaml(text).documents[0].data["data"] for text in rendered)
    assert {name: first[name] for name in ("date", "number", "keys", "ago")} == {
        "date": "2000-01-01T00:00:00Z", "number": 3, "keys": "a,b", "ago": "0s",
    }  # fmt: skip
    assert re.fullmatch("[A-Za-z0-9]{12}", first["text"])
    assert re.fullmatch("[0-9]{6}", first["digits"])
    assert re.fullmatch("[A-Za-z0-9+/]{8}", first["bytes"])
    assert re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}", first["uuid"])
    assert {name for name in lines if first[name] != second[name]} == {"text", "digits", "bytes", "uuid"}


@pytest.mark.slow
def test_secrets_have_no_fixed_values(tmp_path: Path) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {password: {{ randAlphaNum 9 | b64enc }}}\n"
    chart = build_config_maps(
        {
            "key": '{{ genPrivateKey "ecdsa" | b64enc }}',
            "ca": '{{ (genCA "x" 1).Cert | b64enc }}',
            "password": '{{ htpasswd "a" "b" | quote }}',
        },
        **{"templates/secret.yaml": secret},
    )
    fields = [
        "/data/key of ConfigMap/ca depends on genCA (templates/ca.yaml:6)",
        "/data/key of ConfigMap/key depends on genPrivateKey (templates/key.yaml:6)",
        "/data/key of ConfigMap/password depends on htpasswd (templates/password.yaml:6)",
        "/data/password of Secret/s depends on randAlphaNum (templates/secret.yaml:4)",
    ]
    step = "Next step: set values that avoid this call, for example the name of an existing Secret"
    reason = (
        "`onNondeterminism: fixed` does not apply to this field, because a fixed value of a Secret, key or certificate is"
        " not secret"
    )
    fields = [f"{field}, and can change with each render. " for field in fields]

    assert list_errors(render(tmp_path, chart)) == [f"{field}{step}" for field in fields]
    assert list_errors(render(tmp_path, chart, on_nondeterminism="fixed")) == [
        f"{field}{reason}. {step}" for field in fields
    ]


@pytest.mark.slow
def test_comments_and_key_order_are_written_again(tmp_path: Path) -> None:
    labels = '{{ range $k := keys (dict "a" 1 "b" 2 "c" 3 "d" 4) }}    {{ $k }}: x\n{{ end }}'
    chart = build_chart({"a.yaml": f"# {{{{ now }}}}\n{HEAD}  labels:\n{labels}"})

    sources = [render(tmp_path / name, chart) for name in "ab"]

    (files,) = {source.files for source in sources}
    assert files["configmap-a.yaml"].data.decode() == (
        f"{HEAD}  labels:\n    a: x\n    b: x\n    c: x\n    d: x\n  namespace: shop\n".replace(
            "name: a\n", "name: a\n  namespace: shop\n", 1
        ).removesuffix("  namespace: shop\n")
    )
    assert [finding.code for finding in sources[0].findings] == ["RenderedTextNormalized"]


def test_resource_that_is_not_always_rendered(tmp_path: Path) -> None:
    chart = build_chart({"a.yaml": f'{{{{ if hasPrefix "a" (randAlpha 5) }}}}\n{HEAD}{{{{ end }}}}'})

    (error,) = list_errors(render(tmp_path, chart))

    assert error == f"ConfigMap/a depends on randAlpha (templates/a.yaml:1){STEP}"


@pytest.mark.slow
def test_chart_that_needs_the_result_of_a_function(tmp_path: Path) -> None:
    chart = build_config_map('{{ (genSignedCert "x" nil nil 1 (genCA "y" 1)).Cert | b64enc | fail }}')
    passing = build_config_map('{{ if ne (randNumeric 3 | len) 3 }}{{ fail "too long" }}{{ end }}')

    assert render(tmp_path, chart).findings[0].code == "ChartRenderFailed"
    (error,) = list_errors(render(tmp_path, passing))
    assert error == (
        "the reconciler cannot check whether all renders have the same output, because the chart fails without the results"
        ' of randNumeric (templates/a.yaml:6). Next step: set values that avoid these calls. The error was: "execution'
        ' error at (templates/a.yaml:6:51): too long"'
    )


def test_lookup_is_reported(tmp_path: Path) -> None:
    source = render(tmp_path, build_config_map('{{ lookup "v1" "Pod" "" "" | toString | quote }}'))

    assert [(finding.code, finding.message) for finding in source.findings] == [
        (
            "LookupReturnsNothing",
            "chart web 1.2.3: lookup (templates/a.yaml:6) returns nothing, because no cluster is read during a render. Next step: if the chart needs a result, set it as a value",
        )
    ]


@pytest.mark.slow
def test_left_out_hooks_do_not_count(tmp_path: Path) -> None:
    chart = read_folder(chart_folder("podinfo"))

    accepted, refused = render(tmp_path, chart), render(tmp_path, chart, skip_tests=False)

    assert [finding.message for finding in accepted.findings] == [
        (
            "Pod in templates/tests/jwt.yaml of chart podinfo 6.1.3 is not part of the package, because it is a Helm hook"
            " (test-success)"
        )
    ]
    assert len(accepted.files) == 3
    assert [finding.message for finding in refused.findings] == [
        (
            f"chart podinfo 6.1.3: /metadata/name of Pod in templates/tests/jwt.yaml depends on randAlphaNum"
            f" (templates/tests/jwt.yaml:4){STEP}"
        )
    ]


@pytest.mark.parametrize("policy", ["refuse", "fixed"])
def test_metrics_server_with_a_generated_certificate(tmp_path: Path, policy: str) -> None:
    chart = read_folder(chart_folder("metrics-server"))

    source = render(tmp_path, chart, values='{"tls":{"type":"helm"}}', on_nondeterminism=policy)

    assert [(finding.location.object, finding.location.pointer) for finding in source.findings] == [
        ("Secret/_cluster/web-metrics-server", "/data/tls.crt"),
        ("Secret/_cluster/web-metrics-server", "/data/tls.key"),
        ("APIService/_cluster/v1beta1.metrics.k8s.io", "/spec/caBundle"),
    ]
    assert all("depends on genSelfSignedCert (templates/apiservice.yaml:12)" in f.message for f in source.findings)
