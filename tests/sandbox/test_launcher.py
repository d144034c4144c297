"""The launcher, the process that forks it, and what happens when something cannot be done."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from covey.sandbox import launcher, probe, seccomp
from covey.sandbox.plan import Views
from covey.sandbox.policy import Kind, Mode, Network, Sockets, approved, unasked
from covey.sandbox.starter import STARTER, Starter
from tests.sandbox.conftest import ABLE, Place, needs_landlock, use
from tests.support.machine import TREE, has_pid, is_alive, pid_in, until

pytestmark = [pytest.mark.anyio, needs_landlock]


async def test_where_it_is_required_and_cannot_be_had_the_command_is_not_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, replace(ABLE, views=Views.NONE))
    policy = approved(place.facts())
    with pytest.raises(ValueError, match=r"^sandbox is required, and this system cannot: "):
        await place.run("echo done > done", policy, mode=Mode.REQUIRED)
    assert not (place.root / "done").exists()
    assert (await place.run("echo done > done", policy, mode=Mode.AUTO)).exit_code == 0


async def test_switched_off_a_command_may_do_what_the_user_may(place: Place) -> None:
    completed = await place.run(f"cat {place.outside}/secret.txt", unasked(place.facts()), mode=Mode.OFF)
    assert completed.output == "CANARY-OUTSIDE\n"


@pytest.mark.parametrize(
    "words",
    [
        ["landlock", "99", ""],
        ["nonsense"],
        ["seccomp", "00"],
        ["capabilities"],
        ["ro", "/nowhere", "namespaces", "x"],
    ],
)
def test_whatever_fails_the_command_is_not_started(words: list[str], tmp_path: Path) -> None:
    line = [*probe.program("launcher"), *words, "capabilities", "0", "--", "touch", str(tmp_path / "x")]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == launcher.FAILED, done.stderr
    assert done.stderr.startswith("covey: the sandbox could not be set up, so the command was not run: ")
    assert not (tmp_path / "x").exists()


async def test_started_by_itself_it_gives_the_same(place: Place) -> None:
    """The way that is taken with bubblewrap."""
    command = "cat a.txt; touch x; exit 3"
    forked = await place.run(command, unasked(place.facts()))
    wrapped = probe.wrap(["bash", "-c", command], unasked(place.facts()), place.env)
    done = subprocess.run(wrapped.line(), cwd=place.root, env=wrapped.env, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (forked.exit_code, forked.output) and forked.exit_code == 3


async def test_a_program_that_is_not_there(place: Place) -> None:
    completed = await place.run(["no-such-program"], unasked(place.facts()))
    assert completed.exit_code == 126 and "no-such-program" in completed.output


async def test_a_name_with_a_null_character_is_refused(place: Place) -> None:
    with pytest.raises(ValueError, match="null"):
        await place.run(["echo", "a\0b"], unasked(place.facts()))


async def test_a_command_line_as_long_as_the_system_takes(place: Place) -> None:
    words = ["x" * 100_000] * 10
    completed = await place.run(
        ["bash", "-c", 'echo "${#*}"; printf %s "$@" | wc -c', "-", *words], unasked(place.facts())
    )
    assert completed.output == "10\n1000000\n"


async def test_whatever_it_left_ends_with_it(place: Place, way: str) -> None:
    task = asyncio.create_task(place.run(TREE, approved(place.facts()), timeout_s=50))
    await until(lambda: has_pid(place.root / "pid"))
    await until((place.root / "ready").exists)
    task.cancel()
    await asyncio.wait([task])
    assert not is_alive(pid_in(place.root / "pid"))


async def test_it_ends_when_its_time_is_over(place: Place, way: str) -> None:
    completed = await place.run("echo begun; sleep 60", approved(place.facts()), timeout_s=2)
    assert completed.timed_out and completed.exit_code is None
    assert completed.output in ("begun\n", "")


async def test_many_at_once(place: Place) -> None:
    policy = unasked(place.facts())
    done = await asyncio.gather(*(place.run(f"echo {number}; exit {number}", policy) for number in range(40)))
    assert [(one.exit_code, one.output) for one in done] == [(number, f"{number}\n") for number in range(40)]


async def test_a_forker_that_was_killed_is_started_again(place: Place) -> None:
    await place.run(":", unasked(place.facts()))
    process = STARTER._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert (await place.run("echo again", unasked(place.facts()))).output == "again\n"


def test_the_forker_ends_with_whoever_started_it(tmp_path: Path) -> None:
    starter = Starter()
    with (tmp_path / "out").open("w") as file:
        child = starter.start(["/bin/true"], tmp_path, {}, ["capabilities", "0"], file.fileno())
    assert child.wait(30) == 0
    process, channel = starter._process, starter._channel
    assert process is not None and channel is not None
    channel.close()
    assert process.wait(30) == 0


async def test_no_descriptor_of_ours_is_inherited(place: Place) -> None:
    completed = await place.run("ls /proc/self/fd | tr '\\n' ' '", unasked(place.facts()))
    assert completed.output == "0 1 2 3 "  # 3 is the directory itself


@pytest.mark.parametrize("machine", [*seccomp.MACHINES])
@pytest.mark.parametrize("landlock", [1, 7])
def test_every_filter_can_be_assembled(machine: str, landlock: int) -> None:
    for kind in Kind:
        for network in Network:
            for sockets in Sockets:
                program = seccomp.program(machine, kind, network, sockets, landlock)
                assert len(program) % 8 == 0 and len(program) // 8 < 4096
                assert program[-8:] == bytes([6, 0, 0, 0, 0, 0, 0xFF, 0x7F])  # what is not named is allowed
