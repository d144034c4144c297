"""Other programs beside Covey, in one run and with the same model on loopback: how long until they say something.

Only what is installed is measured; `make bench-peers` installs what it can into a directory of its own. Each program
gets a home of its own, one round to get its first start over with, and then the same in turn with the others. What is
asked is the first word of the answer, since some print a banner first, and all of it, until the program has ended.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.processes import COVEY, fast_model, scratch, write_config
from bench.report import Figure
from bench.rig import Options

WORD = b"~word"
PROMPT = "@bench chunks=20@"
RUN_S = 120.0
"""A program that takes longer has failed."""


@dataclass(frozen=True)
class Command:
    """How one prompt is put to a program."""

    words: Sequence[str]
    env: dict[str, str]


@dataclass(frozen=True)
class Peer:
    name: str
    program: Sequence[str]
    prompt: Callable[[Path, str], Command]
    """From a home and the model's address."""
    after: Callable[[Path], None] = lambda home: None
    """What brings it back to a cold start."""
    is_warm: bool = False
    """Another prompt comes right before the one that is measured."""

    @property
    def is_here(self) -> bool:
        return shutil.which(self.program[0]) is not None


def _covey(home: Path, url: str) -> Command:
    (home / "covey").mkdir()
    write_config(home / "covey" / "config.toml", url)
    return Command([*COVEY, "run", "-q", PROMPT], _covey_home(home))


def _covey_home(home: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home / "data")}


def _stop_covey(home: Path) -> None:
    env = os.environ | {"HOME": str(home)} | _covey_home(home)
    subprocess.run([*COVEY, "stop"], env=env, capture_output=True, check=False)


def _llm(home: Path, url: str) -> Command:
    (home / "extra-openai-models.yaml").write_text(
        f"- model_id: fast\n  model_name: fast\n  api_base: {url}\n  api_key_name: fast\n"
    )
    return Command(["llm", "prompt", "--no-log", "-m", "fast", "--key", "x", PROMPT], {"LLM_USER_PATH": str(home)})


def _aider(home: Path, url: str) -> Command:
    quiet = ["--no-git", "--yes-always", "--no-check-update", "--no-show-model-warnings", "--analytics-disable"]
    quiet += ["--no-pretty", "--no-show-release-notes", "--no-detect-urls", "--map-tokens", "0"]
    model = ["--model", "openai/fast", "--openai-api-base", url, "--openai-api-key", "x"]
    return Command(["aider", *quiet, *model, "--message", PROMPT], {"LITELLM_LOCAL_MODEL_COST_MAP": "True"})


def _opencode(home: Path, url: str) -> Command:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": "x"},
        "models": {"fast": {"name": "fast"}},
    }
    config = {"provider": {"bench": provider}, "autoupdate": False, "share": "disabled", "small_model": "bench/fast"}
    path = home / "opencode.json"
    path.write_text(json.dumps(config))
    env = {"OPENCODE_CONFIG": str(path), "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return Command(["opencode", "run", "-m", "bench/fast", PROMPT], env)


PEERS = (
    Peer("covey, no server yet", COVEY, _covey, _stop_covey),
    Peer("covey, server running", COVEY, _covey, is_warm=True),
    Peer("llm", ("llm",), _llm),
    Peer("aider", ("aider",), _aider),
    Peer("opencode", ("opencode",), _opencode),
)


@dataclass
class Rounds:
    """What one program took, round after round."""

    peer: Peer
    home: Path
    command: Command
    best: dict[str, float]

    @classmethod
    def of(cls, peer: Peer, place: Path, url: str) -> Rounds:
        home = place / peer.name.replace(", ", "-").replace(" ", "-")
        (home / "project").mkdir(parents=True)
        return cls(peer, home, peer.prompt(home, url), {})

    def go(self, *, counts: bool) -> bool:
        """One round; False if it failed, which is said."""
        env = os.environ | {"HOME": str(self.home), "NO_COLOR": "1", **self.command.env}
        try:
            taken = _times(self.peer, self.command.words, env, self.home / "project")
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"  {self.peer.name} is not measured: {error}")
            return False
        finally:
            self.peer.after(self.home)
        for name, seconds in taken.items() if counts else ():
            self.best[name] = min(seconds * 1e3, self.best.get(name, float("inf")))
        return True


def measure(options: Options) -> Iterator[Figure]:
    """One round of each in turn, so that the neighbours of this machine disturb all of them alike."""
    with scratch() as place, fast_model(place) as model:
        for peer in PEERS:
            if not peer.is_here:
                print(f"  {peer.name} is not installed here, and not measured (`make bench-peers` installs it)")
        rounds = [Rounds.of(peer, place, f"http://127.0.0.1:{model.port}/v1") for peer in PEERS if peer.is_here]
        for number in range(options.size(7, 3) + 1):
            rounds = [each for each in rounds if each.go(counts=number > 0)]
        for each in rounds:
            _stop_covey(each.home)
    for each in rounds:
        for name, best in each.best.items():
            beside = f"{best / rounds[0].best[name]:.1f} x {rounds[0].peer.name}"
            yield Figure(f"{each.peer.name}: {name}", best, "ms", note=beside)


def _times(peer: Peer, prompt: Sequence[str], env: dict[str, str], project: Path) -> dict[str, float]:
    version = _whole([*peer.program, "--version"], env, project)
    shown = _whole([*peer.program, "--help"], env, project)
    if peer.is_warm:
        _answer(prompt, env, project)
    first, whole = _answer(prompt, env, project)
    return {"--version": version, "--help": shown, "first word of the answer": first, "a whole run": whole}


def _whole(command: Sequence[str], env: dict[str, str], cwd: Path) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_S)
    if done.returncode:
        raise RuntimeError(f"`{command[-1]}` failed: {done.stderr.decode(errors='replace')[-300:]}")
    return time.perf_counter() - start


def _answer(command: Sequence[str], env: dict[str, str], cwd: Path) -> tuple[float, float]:
    """Until the first word of the model was printed, and until the program has ended."""
    start, first, seen = time.perf_counter(), 0.0, b""
    with subprocess.Popen(
        command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    ) as process:
        assert process.stdout
        while data := process.stdout.read(65536):
            seen += data
            if not first and WORD in seen:
                first = time.perf_counter() - start
    whole = time.perf_counter() - start
    if process.returncode or not first:
        raise RuntimeError(f"a prompt failed ({process.returncode}): {seen.decode(errors='replace')[-400:]}")
    return first, whole
