"""The demo prints only its result: no warning is the first line that a new user reads."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.console import find_value

PROJECT = Path(__file__).resolve().parents[2]


def test_demo_writes_nothing_to_standard_error(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(PROJECT), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    command = [sys.executable, "-m", "reconciler", "demo", "demo"]
    result = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True, check=True)

    assert result.stdout.startswith("Created a demo platform")
    assert result.stderr == ""


@contextmanager
def start_process(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Start a process, and kill it at the end if it still runs."""
    with subprocess.Popen(command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds. The time limit of the test ends a wait that takes too long."""
    while not condition():
        time.sleep(0.1)


def find_link(text: str, title: str) -> str:
    match = re.search(rf'href="([^"]+)">{re.escape(title)}<', text)
    assert match
    return match[1]


@pytest.mark.slow
def test_the_demo_serves_the_console_in_which_a_draft_is_approved(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(PROJECT), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    command = [sys.executable, "-m", "reconciler", "demo", "demo", "--serve"]
    with start_process(command, tmp_path, environment) as process:
        assert process.stdout is not None
        url = next(line for line in process.stdout if "The console runs at" in line).split()[-1]
        with httpx.Client(base_url=url, headers={"Sec-Fetch-Site": "same-origin"}, timeout=60) as browser:
            wait_until(lambda: "install gateway v1" in browser.get("/changes").text)
            page = browser.get(find_link(browser.get("/changes?q=gateway").text, "install gateway v1")).text
            fields = {"csrf": find_value(page, "csrf"), "change": find_value(page, "change"), "verb": "approve"}
            confirmation = browser.post("/changes/confirm", data=fields)
            path = confirmation.headers["location"]
            form = browser.get(path).text
            fields = {"csrf": find_value(form, "csrf"), "key": find_value(form, "key"), "reason": "a first look"}
            job = browser.post(f"{path}/submit", data=fields).headers["location"]
            wait_until(lambda: "4 done" in browser.get(job).text)
            wait_until(lambda: "install gateway v1" not in browser.get("/changes").text)
        process.send_signal(signal.SIGTERM)

        assert process.wait(60) == 0
