"""A browser, a server and a fake model for each test. Every test fails on an error of the page, or a request elsewhere.

Only `make test-web` collects these: they need a browser. `COVEY_CHROMIUM` names one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

IS_WANTED = os.environ.get("COVEY_TEST_WEB") == "1"
collect_ignore_glob = [] if IS_WANTED else ["test_*.py"]

if IS_WANTED:
    from playwright.sync_api import Browser, sync_playwright

    from tests.support.fake_model import FakeModel
    from tests.web.pages import Site, Tab, serving_pages

ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-smooth-scrolling"),
    # A name for nginx, whose certificate nobody signed: a worker's requests heed no setting of the page's.
    *("--host-resolver-rules=MAP covey.test 127.0.0.1", "--ignore-certificate-errors"),
)


def chromium() -> str:
    found = os.environ.get("COVEY_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "there is no chromium: install it, or name one in COVEY_CHROMIUM"
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as fake:
        yield fake


@pytest.fixture
def site(tmp_path: Path, model: FakeModel, browser: Browser) -> Iterator[Site]:
    with serving_pages(tmp_path, model, browser) as started:
        yield started


@pytest.fixture
def tab(site: Site) -> Tab:
    """A desktop tab that has been let in and shows a new session."""
    return site.let_in()


@pytest.fixture(params=[(1280, False), (390, True)], ids=["desktop", "phone"])
def sized(site: Site, request: pytest.FixtureRequest) -> Tab:
    width, is_phone = request.param
    return site.let_in(width=width, height=800, is_phone=is_phone)


@pytest.fixture(params=[False, True], ids=["on", "restarted"])
def midway(site: Site, request: pytest.FixtureRequest) -> Callable[[], bool]:
    """Called in the middle of a test, which runs twice: the second time the server is restarted there. Gives which it is."""

    def midway() -> bool:
        if request.param:
            site.restart()
        return bool(request.param)

    return midway


OpenTab = Callable[..., Any]
