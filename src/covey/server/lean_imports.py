"""uvicorn without its command line, which nobody needs here: a tenth of the memory of an idle server."""

from __future__ import annotations

import importlib.util
import sys


def leave_out_command_line() -> None:
    """Import uvicorn without the line of `uvicorn/__init__.py` that imports click and multiprocessing.

    For a process that is a server and nothing else: `uvicorn.run` and `uvicorn.main` are not there. Does nothing if it
    was imported before.
    """
    spec = importlib.util.find_spec("uvicorn") if "uvicorn" not in sys.modules else None
    if spec is None:
        return
    package = sys.modules["uvicorn"] = importlib.util.module_from_spec(spec)
    from uvicorn.config import Config
    from uvicorn.server import Server

    vars(package).update(Config=Config, Server=Server)  # its own modules use these
