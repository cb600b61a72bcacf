"""Tests of starlark: supported features, refused features, and limits of run time."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

from reconciler.packages.functions import starlark_script
from reconciler.packages.functions.function import FunctionContext
from reconciler.packages.functions.limits import FunctionBudget
from reconciler.packages.functions.starlark import run_starlark
from tests.unit.packages.builders import build_config, format_items, list_messages, parse_items, run_function

RESOURCES = """\
# a header
apiVersion: v1
kind: ConfigMap
metadata: # kpt-merge: /a
  name: a
data:
  k: "1" # one
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: b
"""


def build_script(source: str, **params: str) -> dict[str, object]:
    return build_config("StarlarkRun", {"source": dedent(source), "params": params})


def test_edits_keep_comments() -> None:
    source = """
        for r in ctx.resource_list["items"]:
            if r["kind"] == "ConfigMap":
                r["data"]["k"] = "2"
                r["data"]["new"] = {"b": 1, "a": [True, None]}
        """

    output = run_function(run_starlark, RESOURCES, build_script(source))

    added = "  new:\n    a:\n    - true\n    - null\n    b: 1\n"
    assert format_items(output.items[:1]) == RESOURCES.partition("---")[0].replace('"1" # one\n', '"2" # one\n' + added)
    assert output.items[1].data is not None
    assert output.items[1].document is output.items[1].base


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param('x = ctx.resource_list["functionConfig"]["params"]["p"]', "v", id="params"),
        pytest.param(
            'load("krmfn.star", "krmfn")\nx = krmfn.match_gvk(items[1], "apps/v1", "Deployment")', True, id="gvk"
        ),
        pytest.param(
            'load("krmfn.star", "krmfn")\nx = krmfn.match_gvk(items[1], "v1", "Deployment")', False, id="gvk-full"
        ),
        pytest.param('load("krmfn.star", "krmfn")\nx = krmfn.match_name(items[0], "a")', True, id="match-name"),
        pytest.param(
            'load("krmfn.star", "krmfn")\nx = krmfn.match_namespace(items[0], "n")', False, id="match-namespace"
        ),
        pytest.param('load("encoding/json.star", "json")\nx = json.decode("[1, {}]")', [1, {}], id="json-decode"),
        pytest.param(
            'load("encoding/json.star", "json")\nx = json.encode({"b": 1, "a": [2]})', '{"a":[2],"b":1}', id="json"
        ),
        pytest.param('load("encoding/yaml.star", "yaml")\nx = yaml.loads("a: [1]")', {"a": [1]}, id="yaml-loads"),
        pytest.param(
            'load("encoding/yaml.star", "yaml")\nx = yaml.dumps({"b": 1, "a": 2})', "a: 2\nb: 1\n", id="yaml-dumps"
        ),
        pytest.param('load("encoding/base64.star", "base64")\nx = base64.encode("hi?")', "aGk/", id="base64"),
        pytest.param(
            'load("encoding/base64.star", "base64")\nx = base64.decode("aGk_", "url")', "hi?", id="base64-url"
        ),
        pytest.param('load("re.star", "re")\nx = re.findall("a.", "abac")', ["ab", "ac"], id="re-findall"),
        pytest.param('load("re.star", "re")\nx = re.compile("(a)(b)").sub("$2${1}", "ab ab")', "ba ba", id="re-sub"),
        pytest.param('load("re.star", "re")\nx = re.match("(a)(c)?", "a")', [["a", "a", ""]], id="re-match"),
        pytest.param(
            'load("math.star", "math")\nx = [math.ceil(1.2), math.pow(2, 3), math.pi > 3]', [2, 8.0, True], id="math"
        ),
        pytest.param(
            'load("encoding/csv.star", "csv")\nx = csv.read_all("a,b\\n\\n#c\\n1,\\"2,3\\"\\n", comment="#")',
            [["a", "b"], ["1", "2,3"]],
            id="csv-read",
        ),
        pytest.param(
            'load("encoding/csv.star", "csv")\nx = csv.read_all("a;b\\n1;2\\n3;4\\n", comma=";", skip=1, limit=1)',
            [["1", "2"]],
            id="csv-skip-and-limit",
        ),
        pytest.param(
            'load("encoding/csv.star", "csv")\nx = csv.write_all([["a", 1], ["b,c", True]])',
            'a,1\n"b,c",True\n',
            id="csv-write",
        ),
        pytest.param(
            'load("hash.star", "hash")\nx = [hash.md5("a")[:6], hash.sha1("a")[:6], hash.sha256("a")[:6]]',
            ["0cc175", "86f7e4", "ca9781"],
            id="hash",
        ),
        pytest.param(
            'load("time.star", "time")\nt = time.parse_time("2024-02-29T01:02:03.5+01:00")\n'
            "x = [t.year, t.month, t.day, t.hour, t.nanosecond, t.unix]",
            [2024, 2, 29, 0, 500_000_000, 1709164923],
            id="time-parse",
        ),
        pytest.param(
            'load("time.star", "time")\nx = time.time(2024, 2, 3, 4, 5, 6).format("Mon, 2 Jan 2006 03:04:05 PM MST")',
            "Sat, 3 Feb 2024 04:05:06 AM UTC",
            id="time-format",
        ),
        pytest.param(
            'load("time.star", "time")\nx = time.from_timestamp(0).format("2006-01-02T15:04:05Z07:00 _2 1")',
            "1970-01-01T00:00:00Z  1 1",
            id="time-from-timestamp",
        ),
        pytest.param(
            'load("time.star", "time")\nx = time.parse_time("3 Feb 2024 16:05", format="2 Jan 2006 15:04").unix',
            1706976300,
            id="time-parse-layout",
        ),
        pytest.param(
            'load("time.star", "time")\n'
            'x = time.parse_time("Feb 3 2024 12:05 AM -01:00", format="Jan 2 2006 03:04 PM -07:00").format("15 3 PM")',
            "01 1 AM",
            id="time-zone-and-half-days",
        ),
        pytest.param(
            'load("time.star", "time")\nd = time.parse_duration("-1h30m")\nx = [d.hours, d.minutes, d.milliseconds]',
            [-1.5, -90.0, -5_400_000],
            id="duration",
        ),
        pytest.param(
            'load("http.star", "http")\nload("zipfile.star", "ZipFile")\nx = 1', 1, id="loading-alone-does-no-harm"
        ),
        pytest.param("x = sorted(set([2, 1, 2]))", [1, 2], id="set"),
        pytest.param("def f(n):\n  return 1 if n == 0 else n * f(n - 1)\nx = f(5)", 120, id="recursion"),
    ],
)
def test_supported_features(source: str, expected: object) -> None:
    text = f'{source}\nitems[0]["x"] = x\n'
    loads = [line for line in text.splitlines() if line.startswith("load(")]
    rest = [line for line in text.splitlines() if not line.startswith("load(")]
    whole = "\n".join([*loads, 'items = ctx.resource_list["items"]', *rest])

    output = run_function(run_starlark, RESOURCES, build_script(whole, p="v"))

    assert list_messages(output) == []
    assert output.items[0].data["x"] == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param('fail("no")', "fail: no", id="fail"),
        pytest.param("def f(:", "config:1", id="syntax"),
        pytest.param("x = {}['a']", "config:1", id="missing-key"),
        pytest.param(
            'load("http.star", "http")\nhttp.get("http://x")',
            "http.star cannot be used: network access is not",
            id="network",
        ),
        pytest.param(
            'load("html.star", "html")\nhtml("<p>")',
            "html.star cannot be used: parsing HTML is not supported",
            id="html",
        ),
        pytest.param('load("time.star", "time")\ntime.now()', "the same answer whenever it runs", id="clock"),
        pytest.param(
            'load("time.star", "time")\ntime.time(2024, location="Europe/Paris")', "must be UTC", id="time-zone"
        ),
        pytest.param('load("time.star", "time")\ntime.parse_time("noon")', "is not a timestamp", id="no-time"),
        pytest.param(
            'load("time.star", "time")\ntime.parse_time("x", format="2006")',
            "must be a time in the layout 2006",
            id="no-match",
        ),
        pytest.param('load("time.star", "time")\ntime.parse_duration("1x")', "is not a duration", id="no-duration"),
        pytest.param(
            'load("encoding/csv.star", "csv")\ncsv.read_all("a,b\\nc\\n")', "must have 2 fields, but h", id="csv-fields"
        ),
        pytest.param(
            'load("encoding/csv.star", "csv")\ncsv.read_all("\\"a\\"b")', "the text must be CSV", id="csv-quotes"
        ),
        pytest.param('load("os.star", "os")', "is an unknown module", id="unknown-module"),
        pytest.param('load("/etc/passwd", "x")', "is an unknown module", id="a-file"),
        pytest.param(
            "def f():\n  for i in range(1000000000):\n    pass\nf()", "more than 10,000,000 steps", id="endless-loop"
        ),
        pytest.param("def f():\n  f()\nf()", "config:", id="endless-recursion"),
        pytest.param("x = list(range(1000000000))", "the interpreter failed", id="more-than-the-interpreter-holds"),
        pytest.param('load("re.star", "re")\nre.findall("(", "a")', "regular expression", id="bad-regex"),
        pytest.param('ctx.resource_list["items"] = 3', "items are mappings", id="no-list"),
        pytest.param('ctx.resource_list["items"].append(lambda: 1)', "serialize", id="no-data"),
        pytest.param('ctx.resource_list["items"][0]["x"] = {1: 2}', "keys of returned mappings", id="number-as-key"),
        pytest.param(
            "def f():\n  x = []\n  for i in range(500):\n    x = [x]\n  return x\n"
            'ctx.resource_list["items"][0]["x"] = f()',
            "must not be nested more than 100 levels deep",
            id="deep-data",
        ),
        pytest.param('ctx.resource_list["items"][0]["x"] = ctx.resource_list', "Cycle", id="cycle"),
        pytest.param("x = " + "[" * 20000, "more than 500 parts", id="deep-script"),
    ],
)
def test_failures(source: str, message: str) -> None:
    output = run_function(run_starlark, RESOURCES, build_script(source))

    assert output.has_failed
    assert [severity for severity, _ in list_messages(output)] == ["error"]
    assert message in list_messages(output)[0][1]
    assert "\n" not in list_messages(output)[0][1]


@pytest.mark.parametrize(
    "configuration",
    [
        pytest.param(None, id="none"),
        pytest.param(build_config("StarlarkRun", {}), id="no-source"),
        pytest.param(build_config("ConfigMap", {"other": "x"}), id="config-map-without-source"),
        pytest.param(build_config("Other", {"source": "x = 1"}), id="other-kind"),
    ],
)
def test_missing_source_is_an_error(configuration: dict[str, object] | None) -> None:
    assert run_function(run_starlark, RESOURCES, configuration).has_failed


def test_config_map_source_and_printed_text() -> None:
    output = run_function(run_starlark, RESOURCES, build_config("ConfigMap", {"source": 'print("a", [1], sep="-")'}))

    assert (output.has_failed, output.log) == (False, "a-[1]")


def test_printed_text_is_truncated() -> None:
    output = run_function(
        run_starlark, RESOURCES, build_script('for i in range(3):\n  print("abcd" * 1000 + str(i))\nprint("x" * 9000)')
    )

    assert (len(output.log), output.log[4000:4006], output.log[-1]) == (10_000, "0\nabcd", "d")


def test_results_of_the_script() -> None:
    result = '{"message": "m", "severity": "warning", "field": {"path": "spec.x"}}'

    output = run_function(run_starlark, RESOURCES, build_script(f'ctx.resource_list["results"] = [{result}]'))

    assert [(r.severity, r.message, r.field) for r in output.results] == [("warning", "m", "spec.x")]


_NUMBERS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {number: 1, size: 2.5, text: "1", flag: true, none: null, list: [1]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
"""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x = 1", id="nothing"),
        pytest.param('items[1]["data"] = {"a": "b"}', id="one item"),
        pytest.param('items[0]["data"]["list"] = [1, 2.5, True, None]', id="types"),
        pytest.param('items[0]["data"]["number"] = 1.0', id="equal number of another type"),
        pytest.param("items.pop(0)", id="removed item"),
        pytest.param("items.insert(0, items.pop(1))", id="other order"),
        pytest.param("items.append(items[0])", id="repeated item"),
        pytest.param('items.append({"apiVersion": "v1", "kind": "A", "metadata": {"name": "b"}})', id="new item"),
        pytest.param("items.append(3)", id="item that is no mapping"),
        pytest.param('items[0] = {1: "a"}', id="number as key"),
        pytest.param('items[0]["data"] = len', id="value that is no data"),
        pytest.param('ctx.resource_list["items"] = tuple(items)', id="tuple"),
        pytest.param('ctx.resource_list.pop("items")', id="no items"),
        pytest.param('items[0]["data"]["long"] = 12345678901234567891', id="long number"),
        pytest.param("def type(x):\n    return 1", id="replaced built-in name"),
        pytest.param('ctx.resource_list["results"] = [{"message": "m", "tags": {"b": "1", "a": "2"}}]', id="results"),
    ],
)
def test_omitted_items_do_not_change_the_output(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The items, results and costs of a script are equal with and without the omission of unchanged items."""
    script = build_script(f'items = ctx.resource_list["items"]\n{source}')

    def run() -> tuple[object, ...]:
        budget = FunctionBudget()
        output = run_starlark(parse_items(_NUMBERS), script, FunctionContext(budget=budget))
        data = [(item.id, item.path, item.index, repr(item.data)) for item in output.items]
        return data, output.results, output.has_failed, output.log, budget.remaining_bytes

    result = run()
    monkeypatch.setattr(starlark_script, "_SELECTION", "(_resource_list, None)")
    starlark_script._parse_script.cache_clear()
    try:
        assert result == run()
    finally:
        starlark_script._parse_script.cache_clear()


def test_answer_contains_only_changed_items() -> None:
    """An item is omitted if it is equal to the item with the same index in the request."""
    items = [{"name": "a"}, {"name": "b"}, {"name": "c"}]
    source = 'ctx.resource_list["items"][1]["name"] = "x"\nctx.resource_list["items"].append({"name": "d"})'
    request = {"name": "script", "source": source, "resourceList": {"items": items}}

    answer = json.loads(starlark_script.evaluate_script(json.dumps(request).encode()))

    assert (answer["items"], answer["order"]) == ([{"name": "x"}, {"name": "d"}], [0, None, 2, None])
    restored = starlark_script.restore_items(answer, items)
    assert [item["name"] for item in restored["items"]] == ["a", "x", "c", "d"]
