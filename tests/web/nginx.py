"""A real nginx in front of the server, as docs/PAGE.md tells one to set it up: under a path, and with TLS at a name."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.server import until

NAME = "covey.test"
"""What the browser is told to find on this machine (`conftest.ARGUMENTS`), and the server to accept."""
PREFIX = "/tools/covey/"
TEMPLATE = """
daemon off; pid {place}/nginx.pid; error_log {place}/error.log; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log {place}/access.log;
  client_body_temp_path {place}/body; proxy_temp_path {place}/proxy; fastcgi_temp_path {place}/fastcgi;
  uwsgi_temp_path {place}/uwsgi; scgi_temp_path {place}/scgi;
  proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_buffering off; client_max_body_size 32m;
  server {{
    listen 127.0.0.1:{plain};
    location {prefix} {{ proxy_pass http://127.0.0.1:{target}/; }}
  }}
  server {{
    listen 127.0.0.1:{tls} ssl; server_name {name};
    ssl_certificate {place}/cert.pem; ssl_certificate_key {place}/key.pem;
    location / {{ proxy_pass http://127.0.0.1:{target}; }}
  }}
}}
"""


@dataclass(frozen=True)
class Nginx:
    under_a_path: str
    with_tls: str
    place: Path

    def asked(self) -> str:
        return (self.place / "access.log").read_text("utf-8")


@contextmanager
def nginx(place: Path, target: int) -> Iterator[Nginx]:
    place.mkdir()
    plain, tls = _free_port(), _free_port()
    _make_certificate(place)
    config = place / "nginx.conf"
    config.write_text(TEMPLATE.format(place=place, plain=plain, tls=tls, target=target, name=NAME, prefix=PREFIX))
    program = os.environ.get("COVEY_NGINX") or shutil.which("nginx") or "/usr/sbin/nginx"
    command = [program, "-p", str(place), "-e", str(place / "error.log"), "-c", str(config)]
    with subprocess.Popen(command) as process:
        try:
            until(lambda: _answers(tls))
            yield Nginx(f"http://127.0.0.1:{plain}{PREFIX}", f"https://{NAME}:{tls}/", place)
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _make_certificate(place: Path) -> None:
    command = [
        os.environ.get("COVEY_OPENSSL") or "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={NAME}",
    ]
    command += ["-keyout", str(place / "key.pem"), "-out", str(place / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
