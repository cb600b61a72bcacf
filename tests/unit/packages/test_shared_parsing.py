"""Parses and edits that clusters share: results do not depend on masked names, and equal work is done once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from reconciler.krm.yaml import Document, YamlFile
from reconciler.krm.yaml import compose as composition
from reconciler.packages import parsing
from reconciler.packages.parsing import edit_content_masked, edit_document, masked_names, parse_cached

_TEXT = """# Names of {name}
apiVersion: v1
kind: ConfigMap
metadata: {{name: '{name}'}}
data:
  key: value # kpt-set: {name}
"""
_CLUSTERS = [f"edge-{number:02}" for number in range(10)]


@pytest.fixture(autouse=True)
def _empty_caches() -> Iterator[None]:
    caches = (
        parsing.parse_cached,
        parsing._edit_cached,
        parsing._edit_masked_text,
        parsing._edit_masked_content,
        composition._compose_cached,
    )
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def _read(content: bytes) -> Document:
    parsed = parse_cached(content)
    assert isinstance(parsed, YamlFile)
    return parsed.documents[0]


def _edit_twice(cluster: str) -> Document:
    document = _read(_TEXT.format(name=cluster).encode())
    edited = edit_document(document, {**document.data, "data": {"key": "value", "cluster": cluster}})
    again = _read(edited.text.encode())
    return edit_document(again, {**again.data, "data": {"cluster": f"web-{cluster}", "list": [cluster]}})


def test_masked_names_do_not_change_results() -> None:
    """The text, the data and the positions of an edited document are equal with and without masked names."""
    for cluster in _CLUSTERS:
        with masked_names(cluster):
            masked = _edit_twice(cluster)
        parse_cached.cache_clear()
        parsing._edit_cached.cache_clear()
        plain = _edit_twice(cluster)
        assert (masked.text, masked.data) == (plain.text, plain.data)
        assert masked.find_line_and_column(("data", "list", 0)) == plain.find_line_and_column(("data", "list", 0))
        assert masked.comments() == plain.comments()


def test_clusters_share_parses() -> None:
    """Ten clusters need as many parses as one cluster."""
    parses = []
    for cluster in _CLUSTERS:
        with masked_names(cluster):
            _edit_twice(cluster)
        parses.append(composition._compose_cached.cache_info().misses)
    assert parses == [parses[0]] * len(_CLUSTERS)


def test_invalid_text_with_a_name() -> None:
    """A parse error contains the name itself."""
    with masked_names("edge-04"):
        failure = parse_cached(b"edge-04: 1\nedge-04: 2\n")
    assert isinstance(failure, parsing.ParseFailure)
    assert '"edge-04"' in failure.message


def test_invalid_encoding_with_a_name() -> None:
    """Bytes that are not UTF-8 are an error."""
    with masked_names("edge-04"):
        assert isinstance(parse_cached(b"a: edge-04 \xff\n"), parsing.ParseFailure)


def test_equal_data_keeps_the_document() -> None:
    """An edit without a change returns the same document."""
    with masked_names("edge-04"):
        document = _read(b"a: edge-04\nb: [1]\n")
        assert edit_document(document, {"a": "edge-04", "b": [1]}) is document


def _append_names(calls: list[tuple[str, ...]], content: bytes, names: tuple[str, ...]) -> bytes:
    calls.append(names)
    return content + "".join(f"z: web-{name}\n" for name in names).encode()


def test_clusters_share_content_edits() -> None:
    """An edit that copies names is computed once for all clusters, and the result contains the name of each cluster."""
    calls: list[tuple[str, ...]] = []
    for cluster in _CLUSTERS:
        with masked_names(cluster):
            edited = edit_content_masked(b"a: 1\n", (cluster,), "append", partial(_append_names, calls))
        assert edited == f"a: 1\nz: web-{cluster}\n".encode()
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("name", "content", "texts", "key"),
    [
        pytest.param("edge-04", b"a: edge-04\n", ("edge-04",), "append", id="content with a name"),
        pytest.param("edge-04", b"a: zqx0qqq\n", ("edge-04",), "append", id="content with a placeholder"),
        pytest.param("edge-04", b"a: 1\n", ("edge-04",), "append edge-04", id="key with a name"),
        pytest.param("edge-04", b"a: 1\n", ("web",), "append", id="texts without a name"),
        pytest.param("edge-04", b"a: 1\n", ("edge-04", "*"), "append", id="text without a mask"),
        pytest.param("1e10000", b"a: 1\n", ("1e10000",), "replace", id="value that is a number with the name"),
    ],
)
def test_content_edits_that_are_not_shared(name: str, content: bytes, texts: tuple[str, ...], key: str) -> None:
    """An edit is not shared if its result could depend on the characters of a name."""

    def replace(content: bytes, names: tuple[str, ...]) -> bytes:
        return f"a: {names[0]}\n".encode()

    with masked_names(name):
        assert edit_content_masked(content, texts, key, replace) is None


def test_failed_content_edit() -> None:
    """A failed edit has no shared result, so that its finding contains the name itself."""
    with masked_names("edge-04"):
        assert edit_content_masked(b"a: 1\n", ("edge-04",), "fail", lambda content, names: None) is None
