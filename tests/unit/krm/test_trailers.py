"""Tests of trailers: they are lines of the last paragraph of a message."""

import pytest

from reconciler.krm.git_formats import list_trailers, parse_trailers


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("s\n\nA: 1\nB-C: x: y\n", {"A": "1", "B-C": "x: y"}, id="the-last-paragraph"),
        pytest.param("s\n\nA: 1\n\nB: 2", {"B": "2"}, id="an-earlier-paragraph-is-text"),
        pytest.param("A: 1\nB: 2", {}, id="a-subject-is-none"),
        pytest.param("s\n\nA: 1\nA: 2", {"A": "2"}, id="the-last-of-a-name"),
        pytest.param("s\n\nsome words\nA: 1", {"A": "1"}, id="beside-words"),
        pytest.param("s\n\nA:1\n-B: 2\n", {}, id="not-quite"),
        pytest.param(
            "s\n\nA: 1\n-----BEGIN PGP SIGNATURE-----\n\nB: 2\n-----END PGP SIGNATURE-----\n", {"A": "1"}, id="signed"
        ),
        pytest.param("", {}, id="empty"),
    ],
)
def test_parse_trailers(message: str, expected: dict[str, str]) -> None:
    assert parse_trailers(message) == expected


def test_a_repeated_trailer_has_all_its_values_in_order() -> None:
    message = "approve\n\nReconciler-Package: in-the-reason\n\nReconciler-Package: b\nReconciler-Package: a\n"

    assert list_trailers(message) == [("Reconciler-Package", "b"), ("Reconciler-Package", "a")]
    assert parse_trailers(message) == {"Reconciler-Package": "a"}
