"""The embedded model as it is: real weights, real computation. Only where covey[local] and weights are installed."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from covey.config import local_model
from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import Stopped, UsageReported
from covey.models import embedded_child
from covey.models.base import ModelFailed
from covey.models.embedded import Embedded
from tests.models.asking import answer, request, text

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not local_model.is_installed(), reason="covey[local] or its weights are not installed"),
]

QUIET_TICKS = 3
"""Of 10 ms: what looking, and falling asleep, may cost."""


SHORT = request("Say yes.", max_tokens=4)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def client() -> AsyncIterator[Embedded]:
    client = Embedded("local", local_model.PROVIDER)
    yield client
    await client.aclose()
    await embedded_child.end_all()


def cpu_ticks(pid: int) -> int | None:
    """What the process has computed so far; None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[11]) + int(fields[12])


async def ticks_between_one_and_two_seconds_after(asking: asyncio.Task[object], pid: int) -> int:
    asking.cancel()
    began = time.monotonic()
    await asyncio.wait([asking])
    await asyncio.sleep(began + 1.0 - time.monotonic())  # the promise is about a second, so a second must pass
    before = cpu_ticks(pid)
    await asyncio.sleep(1.0)
    after = cpu_ticks(pid)
    return 0 if before is None or after is None else after - before


async def computing(client: Embedded) -> int:
    """Wait until its process computes; gives the pid."""
    deadline = time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline
        pid = client._child.pid if client._child else None
        before = cpu_ticks(pid) if pid else None
        await asyncio.sleep(0.2)
        address = client._child._address if client._child else None
        if pid and address and before is not None and (cpu_ticks(pid) or 0) - before > 2 * QUIET_TICKS:
            return pid


async def test_a_real_answer(client: Embedded) -> None:
    facts = await answer(client, request("What is the capital of France?", max_tokens=50))
    assert "Paris" in text(facts)
    (usage,) = [fact for fact in facts if isinstance(fact, UsageReported)]
    assert 0 < usage.prompt_tokens < 200
    assert isinstance(facts[-1], Stopped)


async def test_a_cancel_in_the_middle_of_an_answer_stops_the_computation_within_a_second(client: Embedded) -> None:
    await answer(client, SHORT)
    asking: asyncio.Task[object] = asyncio.create_task(
        answer(client, request("Write a very long story.", max_tokens=2000))
    )
    pid = await computing(client)
    assert await ticks_between_one_and_two_seconds_after(asking, pid) <= QUIET_TICKS


async def test_a_cancel_in_the_middle_of_a_long_prompt_stops_the_computation_within_a_second(client: Embedded) -> None:
    await answer(client, SHORT)
    asking: asyncio.Task[object] = asyncio.create_task(answer(client, "fox word " * 1500))
    pid = await computing(client)
    assert await ticks_between_one_and_two_seconds_after(asking, pid) <= QUIET_TICKS
    assert text(await answer(client, SHORT))


async def test_a_prompt_that_does_not_fit_is_an_overflow(client: Embedded) -> None:
    with pytest.raises(ModelFailed) as failed:
        await answer(client, "fox word " * 6000)
    assert failed.value.overflow


async def test_a_stranger_without_the_key_is_refused(client: Embedded) -> None:
    await answer(client, SHORT)
    assert client._child and client._child._address
    url = client._child._address.base_url
    async with httpx2.AsyncClient(trust_env=False) as stranger:
        for path in ("/chat/completions", "/completions"):
            assert (await stranger.post(url + path, json={"messages": []})).status_code == 401
        assert (await stranger.get(url.removesuffix("/v1") + "/slots")).status_code == 401


async def test_damaged_weights_are_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = local_model.find_weights()
    assert found
    damaged = tmp_path / "damaged.gguf"
    shutil.copy(found, damaged)
    with damaged.open("r+b") as file:
        file.seek(5000)
        file.write(os.urandom(16))
    monkeypatch.setattr(local_model, "find_weights", lambda: damaged)
    client = Embedded("local", local_model.PROVIDER)
    with pytest.raises(ModelFailed, match="is damaged"):
        await answer(client, "hello")
    await client.aclose()
    await embedded_child.end_all()


async def test_a_file_that_is_no_model_is_reported_and_not_fatal(tmp_path: Path) -> None:
    file = tmp_path / "no-model.gguf"
    file.write_bytes(b"GGUF" + os.urandom(4096))
    client = Embedded("local", ProviderSettings(type="embedded", model_file=str(file)))
    with pytest.raises(ModelFailed, match=r"^local: "):
        await answer(client, "hello")
    await client.aclose()
    await embedded_child.end_all()
