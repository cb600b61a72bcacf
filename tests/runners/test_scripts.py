"""Scripts in their own process: they can be stopped, and neither they nor their end affect other work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from reconciler.packages.functions.function import FunctionContext, FunctionOutput, InterruptedFunctionError
from reconciler.packages.functions.limits import FunctionBudget, FunctionLimits, LimitError
from reconciler.packages.functions.starlark import create_starlark_function, run_starlark
from reconciler.runners.interrupted_calls import InterruptedCalls
from reconciler.runners.scripts import BackoffScriptRunner, ScriptProcess
from tests.unit.packages.builders import build_config, format_items, list_messages, parse_items

RESOURCES = "apiVersion: v1\nkind: ConfigMap\nmetadata: # here\n  name: a\ndata:\n  k: '1' # one\n"
MIB = 1024 * 1024
LIMITS = FunctionLimits(cpu_seconds=1, memory_bytes=200 * MIB)
RETURN = 'ctx.resource_list["items"][0]["data"]["k"] = str(x)'


@pytest.fixture
def process() -> Iterator[ScriptProcess]:
    script_process = ScriptProcess(60)
    yield script_process
    script_process.end()


def call(process: Any, source: str, limits: FunctionLimits = LIMITS) -> FunctionOutput:
    configuration = build_config("StarlarkRun", {"source": dedent(source)})
    return create_starlark_function(process)(
        parse_items(RESOURCES), configuration, FunctionContext("safe", (9, 9, 9), "", FunctionBudget(limits))
    )


def evaluate(process: ScriptProcess, source: str, limits: FunctionLimits = LIMITS) -> dict[str, Any]:
    request = {"name": "s", "source": dedent(source), "resourceList": {"items": []}}
    answer: dict[str, Any] = json.loads(process(json.dumps(request).encode(), limits, 10 * MIB))
    return answer


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "source",
    [
        pytest.param(f"x = 2\n{RETURN}", id="edit"),
        pytest.param('ctx.resource_list["items"] = []', id="delete"),
        pytest.param('fail("no")', id="fail"),
        pytest.param("x = 1 +", id="no-starlark"),
        pytest.param('ctx.resource_list["items"][0]["data"][1] = 2', id="key-that-is-no-string"),
        pytest.param('ctx.resource_list["items"][0]["data"]["k"] = float("nan")', id="nan"),
        pytest.param('ctx.resource_list["items"][0]["data"]["k"] = [1.0, 1, True, None, "ä\\U0001F600", 1 << 70]',
                     id="values"),
        pytest.param('ctx.resource_list = 3', id="no-list"),
        pytest.param('ctx.resource_list["results"] = [{"message": "m", "severity": "warning"}]', id="results"),
        pytest.param('load("re.star", "re")\nx = re.findall("o", "foo")\n' + RETURN, id="module"),
        pytest.param('print("a")\nprint("b")', id="log"),
        pytest.param("def f(n):\n    return f(n)\nf(1)", id="recursion"),
        pytest.param("def f():\n    for x in range(100000000):\n        pass\nf()", id="too-many-steps"),
    ],
)  # fmt: skip
def test_a_script_in_a_process_does_what_it_does_in_this_one(process: ScriptProcess, source: str) -> None:
    here = run_starlark(
        parse_items(RESOURCES), build_config("StarlarkRun", {"source": source}), FunctionContext("safe", (9, 9, 9))
    )
    there = call(process, source)

    assert format_items(there.items) == format_items(here.items)
    assert (list_messages(there), there.has_failed, there.log) == (list_messages(here), here.has_failed, here.log)


SLOW = 'x = "a" * 100000000\nfor n in range(100000):\n    x.count("b" + str(n))'


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(
    ("source", "setting"),
    [
        pytest.param(SLOW, "limits.functions.cpu_seconds", id="slow-built-in-calls"),
        pytest.param(
            "x = [1]\nfor n in range(1000):\n    x = x + x", "limits.functions.memory_bytes", id="list-that-doubles"
        ),
        pytest.param('x = "a" * (1 << 30)', "limits.functions.memory_bytes", id="long-string"),
        pytest.param(
            'load("re.star", "re")\nx = re.sub("a", "b" * 10000000, "a" * 100)',
            "limits.functions.memory_bytes",
            id="substitution-that-multiplies",
        ),
        pytest.param(
            'x = []\nfor n in range(40):\n    x = [x, x]\nctx.resource_list["items"][0]["data"]["x"] = x',
            "limits.functions.",
            id="shared-values-that-multiply-when-they-are-returned",
        ),
        pytest.param(
            'ctx.resource_list["items"][0]["data"]["x"] = "a" * 30000000',
            "limits.functions.output_bytes",
            id="large-output",
        ),
    ],
)
def test_a_script_that_exceeds_a_limit_fails_and_the_next_one_runs(
    process: ScriptProcess, source: str, setting: str
) -> None:
    start = time.monotonic()

    first, second = call(process, source), call(process, source)
    after = call(process, f"x = 2\n{RETURN}")

    assert first.has_failed
    assert setting in list_messages(first)[0][1]
    assert list_messages(first) == list_messages(second)
    assert not after.has_failed
    assert "k: '2' # one" in format_items(after.items)
    assert time.monotonic() - start < 60


def _nested(depth: int) -> str:
    return f"""
        load("encoding/json.star", "json")
        def nested():
            x = []
            for _ in range({depth}):
                x = [x]
            return x
        text = json.encode(nested())
        """


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(
    ("source", "error"),
    [
        pytest.param(_nested(500), "", id="json.encode-of-500-lists"),
        pytest.param(_nested(5_000), "Maximum depth of 1000 exceeded", id="json.encode-of-5000-lists"),
        pytest.param(
            'load("encoding/json.star", "json")\njson.decode("[" * 100000)', "RecursionError", id="json.decode-of-lists"
        ),
        pytest.param('load("encoding/json.star", "json")\njson.decode("9" * 5000)', "ValueError", id="huge-integer"),
        pytest.param('load("encoding/json.star", "json")\nx = []\nx.append(x)\njson.encode(x)', "Cycle", id="cycle"),
        pytest.param("x = '\ud800'", "surrogates not allowed", id="lone-surrogate"),
    ],
)
def test_a_value_that_cannot_be_converted_is_an_error_of_the_script_and_the_process_stays(
    process: ScriptProcess, source: str, error: str
) -> None:
    evaluate(process, "x = 1")
    before = process.process_id

    answer = evaluate(process, source)

    assert error in answer.get("error", "")
    assert bool(error) == ("error" in answer)
    assert process.process_id == before


def test_calls_use_one_process(process: ScriptProcess) -> None:
    assert not call(process, "x = 1").has_failed
    number = process.process_id

    assert not call(process, "x = 2").has_failed
    assert process.process_id == number


@pytest.mark.slow
def test_the_time_of_earlier_calls_does_not_count(process: ScriptProcess) -> None:
    busy = "def f():\n    for n in range(1500000):\n        pass\nf()"
    first = evaluate(process, busy)
    number = process.process_id

    answers = [evaluate(process, busy) for _ in range(40)]

    assert {"error"}.isdisjoint({*first, *(key for answer in answers for key in answer)})
    assert process.process_id == number


def test_a_process_that_was_killed_between_calls_is_replaced(process: ScriptProcess) -> None:
    call(process, "x = 1")
    assert process.process_id is not None
    os.kill(process.process_id, signal.SIGKILL)
    os.waitid(os.P_PID, process.process_id, os.WEXITED | os.WNOWAIT)

    assert not call(process, "x = 1").has_failed


def kill_when_it_runs(process: ScriptProcess) -> None:
    number = None
    while number is None:
        number = process.process_id
    os.kill(number, signal.SIGKILL)


def test_a_process_that_is_killed_during_a_call_is_an_environment_failure(process: ScriptProcess) -> None:
    killer = threading.Thread(target=kill_when_it_runs, args=(process,))
    killer.start()

    with pytest.raises(InterruptedFunctionError, match=r"was killed by SIGKILL|does not start"):
        evaluate(process, SLOW, FunctionLimits(cpu_seconds=100))
    killer.join()

    assert evaluate(process, "x = 1") == {"items": [], "results": None, "log": ""}


@pytest.mark.slow
def test_a_call_that_takes_too_long_by_the_clock_is_an_event_of_the_environment() -> None:
    process = ScriptProcess(1)

    with pytest.raises(InterruptedFunctionError, match="within 1 seconds"):
        evaluate(process, SLOW, FunctionLimits(cpu_seconds=100, memory_bytes=1 << 30))

    assert process.process_id is None


class Never:
    """A limit without retries."""

    def is_waiting(self, key: str) -> bool:
        return True

    def record_failure(self, key: str, min_seconds: float = 0.0) -> None:
        return

    def record_success(self, key: str) -> None:
        return


@pytest.mark.slow
def test_only_a_call_that_the_environment_ended_has_a_back_off() -> None:
    process = ScriptProcess(1)
    scripts = BackoffScriptRunner(process, InterruptedCalls(Never()))
    limits = FunctionLimits(cpu_seconds=100, memory_bytes=1 << 30)
    for _ in range(2):
        with pytest.raises(InterruptedFunctionError, match="within 1 seconds"):
            call(scripts, SLOW, limits)

    assert process.process_id is None
    assert not call(scripts, "x = 1", limits).has_failed
    process.end()


def test_the_process_has_an_empty_environment_and_no_descriptors_but_its_pipes(
    process: ScriptProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", "secret")
    call(process, "x = 1")

    folder = Path(f"/proc/{process.process_id}")
    if not folder.exists():
        pytest.skip("there is no /proc")
    assert b"secret" not in (folder / "environ").read_bytes()
    targets = [str(path.readlink()) for path in (folder / "fd").iterdir()]
    assert len(targets) == 4
    assert sorted({target.partition(":")[0] for target in targets}) == ["/dev/null", "pipe"]


def test_the_process_ends_when_its_parent_is_killed_during_a_call() -> None:
    program = f"""
        import json
        from reconciler.packages.functions.limits import FunctionLimits
        from reconciler.runners.scripts import ScriptProcess
        process = ScriptProcess(60)
        def ask(source):
            request = {{"name": "s", "source": source, "resourceList": {{"items": []}}}}
            return process(json.dumps(request).encode(), FunctionLimits(cpu_seconds=100, memory_bytes=1 << 30), 1000)
        ask("x = 1")
        print(process.process_id, flush=True)
        ask({SLOW!r})
    """
    parent = subprocess.Popen([sys.executable, "-c", dedent(program)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    number = int(parent.stdout.readline())

    parent.kill()
    parent.wait()
    parent.stdout.close()

    deadline = time.monotonic() + 20
    while is_running(number) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(number)


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except FileNotFoundError:
        return False


def test_a_process_that_cannot_start_is_an_event_of_the_environment(
    process: ScriptProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with pytest.raises(InterruptedFunctionError, match="cannot be started"):
        evaluate(process, "x = 1")

    monkeypatch.undo()
    assert evaluate(process, "x = 1")["log"] == ""


def test_calls_of_many_threads_wait_for_each_other(process: ScriptProcess) -> None:
    answers: list[str] = []

    def work(number: int) -> None:
        answers.append(evaluate(process, f"print({number})")["log"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == [str(number) for number in range(8)]


def test_an_answer_that_is_too_large_is_not_read(process: ScriptProcess) -> None:
    request = json.dumps({"name": "s", "source": 'print("a" * 9000)', "resourceList": {"items": []}}).encode()

    with pytest.raises(LimitError, match="must not return more than 1,000"):
        process(request, LIMITS, 1_000)

    assert evaluate(process, "x = 1")["log"] == ""
