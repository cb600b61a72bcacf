"""Tokens from files: valid headers, refused tokens, and errors that never contain a token."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.forge.credentials import read_token_from
from reconciler.forge.errors import ForgeCredentialsError

SECRET = "pat-planted-5ecret"


def test_a_token_becomes_a_header(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"\n  {SECRET}\r\n")

    assert read_token_from(file)() == {"Authorization": f"Bearer {SECRET}"}
    assert read_token_from(file, "PRIVATE-TOKEN", "")() == {"PRIVATE-TOKEN": SECRET}


def test_a_file_that_changes_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    authorize = read_token_from(file)
    authorize()
    file.write_text("other")

    assert authorize() == {"Authorization": "Bearer other"}


def test_a_file_of_the_same_size_that_is_put_in_its_place_is_read_anew(tmp_path: Path) -> None:
    file, following = tmp_path / "token", tmp_path / "next"
    file.write_text("one")
    authorize = read_token_from(file)
    authorize()
    following.write_text("two")
    os.utime(following, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    following.replace(file)

    assert authorize() == {"Authorization": "Bearer two"}


def test_a_file_that_stays_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(SECRET)
    authorize = read_token_from(file)
    authorize()
    monkeypatch.setattr(Path, "read_text", lambda *_: pytest.fail("read again"))

    assert authorize() == {"Authorization": f"Bearer {SECRET}"}


def test_a_file_that_goes_is_missed(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(SECRET)
    authorize = read_token_from(file)
    authorize()
    file.unlink()
    with pytest.raises(ForgeCredentialsError, match="No such file"):
        authorize()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b" \n\t", "is empty", id="blank"),
        pytest.param(f"{SECRET} {SECRET}".encode(), "must contain one token", id="two-words"),
        pytest.param(f"{SECRET}\n{SECRET}".encode(), "must contain one token", id="two-lines"),
        pytest.param(f"{SECRET}\0".encode(), "must contain one token", id="control-character"),
        pytest.param(f"{SECRET}é".encode(), "must contain one token", id="not-ascii"),
        pytest.param(SECRET.encode() + b"\xff", "is not UTF-8", id="not-text"),
        pytest.param(SECRET.encode() * 2000, "larger than 16384 bytes", id="large"),
    ],
)
def test_an_invalid_token_is_refused_and_not_in_the_error(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(ForgeCredentialsError) as refused:
        read_token_from(file)()

    assert words in refused.value.message
    assert str(file) in refused.value.message
    assert SECRET not in repr(refused.value)
    assert refused.value.__cause__ is None or SECRET not in repr(refused.value.__cause__)


@pytest.mark.parametrize(("make", "words"), [("absent", "No such file"), ("folder", "Is a directory")])
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, make: str, words: str) -> None:
    place = tmp_path / "token"
    if make == "folder":
        place.mkdir()
    with pytest.raises(ForgeCredentialsError, match=f"{place}: {words}"):
        read_token_from(place)()


def test_the_representation_of_credentials_does_not_contain_the_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(SECRET)
    authorize = read_token_from(file)
    authorize()

    assert SECRET not in repr(authorize)
