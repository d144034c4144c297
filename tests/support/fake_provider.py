"""A provider that only knows keys: it says whether one is good, and gives one for an OAuth code, as OpenRouter does."""

from __future__ import annotations

import hashlib
import json
import threading
from base64 import urlsafe_b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class FakeProvider:
    """On a thread of its own. Keys that begin with `sk-good` are good."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        """Method with path, and the key that came along."""
        self.challenges: dict[str, str] = {}
        """By code: the challenge with which it was asked for."""
        self.status = 0
        """If it is not 0: how every question is answered."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, method: str, path: str, key: str, body: bytes) -> tuple[int, Any]:
        self.asked.append((f"{method} {path}", key))
        if self.status:
            return self.status, {"error": {"message": f"no {key} today"}}
        if method == "POST" and path.endswith("/auth/keys"):
            return self._exchange(json.loads(body))
        if not key.startswith("sk-good"):
            return 401, {"error": {"message": f"Incorrect API key provided: {key}"}}
        return 200, {"data": [{"id": "a-model"}]}

    def _exchange(self, wanted: dict[str, str]) -> tuple[int, Any]:
        digest = hashlib.sha256(wanted["code_verifier"].encode()).digest()
        challenge = urlsafe_b64encode(digest).rstrip(b"=").decode()
        if wanted["code_challenge_method"] != "S256" or self.challenges.get(wanted["code"]) != challenge:
            return 403, {"error": {"message": f"Invalid code {wanted['code']} or {wanted['code_verifier']}"}}
        return 200, {"key": "sk-good-of-openrouter", "user_id": "ann"}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(provider: FakeProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            key = self.headers.get("authorization", "").removeprefix("Bearer ")
            status, value = provider.answer(self.command, self.path, key, body)
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _serve

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
