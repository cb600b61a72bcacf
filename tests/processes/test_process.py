"""A process receives its input, has limits, and ends together with its child processes."""

from __future__ import annotations

import selectors
import sys
import time
from pathlib import Path

import pytest

from reconciler.processes.process import (
    ProcessCanceledError,
    ProcessLimits,
    ProcessResult,
    ProcessSpec,
    ProcessTimeoutError,
    run_process,
)

MEGABYTE = 1_000_000


def run(source: str, stdin: bytes = b"", seconds: float = 20, output_bytes: int = 3 * MEGABYTE) -> ProcessResult:
    return run_process(ProcessSpec([sys.executable, "-c", source]), stdin, ProcessLimits(seconds, 0, output_bytes))


def test_input_and_output_of_a_process() -> None:
    text = b"x" * (2 * MEGABYTE)

    ended = run("import sys; sys.stdout.write(sys.stdin.read()); sys.stderr.write('words'); sys.exit(3)", text)

    assert ended == ProcessResult(3, text, "words")


def test_one_that_does_not_listen() -> None:
    assert run("print(1)", b"x" * MEGABYTE).output == b"1\n"


def test_output_that_a_process_writes_before_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start, end = tmp_path / "start", tmp_path / "end"

    class SlowSelector(selectors.DefaultSelector):
        """Reports no pipe the first time, and returns only after the process has written its output and ended."""

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if start.exists():
                return super().select(timeout)
            start.touch()
            while not end.exists():
                time.sleep(0.01)
            time.sleep(0.2)
            return []

    monkeypatch.setattr(selectors, "DefaultSelector", SlowSelector)
    source = f"""
import os, pathlib, time
while not pathlib.Path({str(start)!r}).exists():
    time.sleep(0.01)
os.write(1, b"last")
pathlib.Path({str(end)!r}).touch()
os._exit(0)
"""

    assert run(source).output == b"last"


def test_words_are_bounded() -> None:
    ended = run("import sys; sys.stderr.write('x' * 10**7); print(1)")

    assert (ended.output, len(ended.stderr)) == (b"1\n", 16_384)


def test_a_flood_is_ended() -> None:
    ended = run("while True: print('x' * 100_000)", output_bytes=MEGABYTE)

    assert ended.is_too_large
    assert ended.output == b""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("import time; time.sleep(60)", id="asleep"),
        pytest.param("while True: pass", id="busy"),
        pytest.param("import os, time; os.close(1); os.close(2); time.sleep(60)", id="silent-for-good"),
        pytest.param("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)", id="deaf"),
    ],
)
def test_one_that_takes_too_long(source: str) -> None:
    with pytest.raises(ProcessTimeoutError):
        run(source, seconds=0.5)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("import time; time.sleep(60)", id="open-pipes"),
        pytest.param("import os, time; os.close(1); os.close(2); time.sleep(60)", id="closed-pipes"),
    ],
)
def test_a_canceled_process_is_killed_before_its_time_limit(source: str) -> None:
    spec = ProcessSpec((sys.executable, "-c", source))
    limits = ProcessLimits(seconds=50, memory_bytes=0, output_bytes=MEGABYTE)
    checks = iter([False, False, True])

    with pytest.raises(ProcessCanceledError):
        run_process(spec, b"", limits, lambda: next(checks))


@pytest.mark.parametrize(
    "ending", [pytest.param("", id="one-that-ends"), pytest.param("time.sleep(60)", id="one-that-takes-too-long")]
)
def test_its_children_end_with_it(tmp_path: Path, ending: str) -> None:
    note = tmp_path / "child"
    source = f"""
import os, time
child = os.fork()
if child == 0:
    time.sleep(60)
open({str(note)!r}, "w").write(str(child))
{ending}
"""
    if ending:
        with pytest.raises(ProcessTimeoutError):
            run(source, seconds=1)
    else:
        run(source)

    assert is_gone(int(note.read_text()))


def is_gone(pid: int) -> bool:
    """Return whether a process has ended. A zombie process counts as ended."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_child_in_another_process_group_causes_no_delay() -> None:
    began = time.monotonic()

    ended = run("import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(10)\nelse:\n    print(1)")

    assert ended.output == b"1\n"
    assert time.monotonic() - began < 5


def test_a_signal_is_reported() -> None:
    assert run("import os; os.kill(os.getpid(), 9)").exit_code == -9


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    before = len([*Path("/proc/self/fd").iterdir()])

    with pytest.raises(FileNotFoundError):
        run_process(ProcessSpec([str(tmp_path / "absent")]), b"", ProcessLimits(1, 0, 1))

    assert len([*Path("/proc/self/fd").iterdir()]) == before
