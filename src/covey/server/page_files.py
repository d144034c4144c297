"""The files of the page, from memory: one hash of all of them is in their path, so old and new never mix."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from covey.server import page_scripts

DIRECTORY = Path(__file__).resolve().parent.parent / "web"

STRIPPED = {".js": page_scripts.without_comments, ".css": page_scripts.tight_style}
"""What is sent without what only those who read the files need."""
STYLES = ("style.css", "content.css", "icons.css")
"""Sent as one, in this order: together they are smaller, and a browser asks once."""
TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".mjs": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".webmanifest": b"application/manifest+json",
}
"""What is served. Other files in the directory, such as licences, are not."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types covey",
    )
)
"""Nothing that a model writes can run or call home; the one policy, `covey`, allows one constant: the worker."""
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
FOR_EVER = b"public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class PageFile:
    content_type: bytes
    data: bytes
    packed: bytes
    """The same by gzip: every browser takes it."""
    cache: bytes


@dataclass(frozen=True, slots=True)
class PageFiles:
    hash: str
    index: PageFile
    files: dict[str, PageFile]
    """By their path in the directory."""


@cache
def page_hash() -> str:
    """Of the files as they are written, and of what sends them: cheap, as every client may ask for it."""
    digest = hashlib.sha256(Path(page_scripts.__file__).read_bytes())
    for name, data in _written().items():
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:16]


@cache
def page_files() -> PageFiles:
    """Made once, when the first page asks."""
    written, hashed = _written(), page_hash()
    files = {name: _file(Path(name).suffix, _sent(name, data), FOR_EVER) for name, data in written.items()}
    index = _index(written["index.html"].decode(), hashed, written)
    return PageFiles(hashed, _file(".html", index.encode(), b"no-cache"), files)


@cache
def _written() -> dict[str, bytes]:
    """The files as they are in the directory, read once, so that an upgrade under a running server changes nothing."""
    found = {
        path.relative_to(DIRECTORY).as_posix(): path.read_bytes()
        for path in sorted(DIRECTORY.rglob("*"))
        if path.suffix in TYPES
    }
    styles = b"\n".join(found.pop(name) for name in STYLES)
    return found | {STYLES[0]: styles}


def _sent(name: str, data: bytes) -> bytes:
    strip = STRIPPED.get(Path(name).suffix)
    return strip(data.decode()).encode() if strip else data


def _file(suffix: str, data: bytes, cache: bytes) -> PageFile:
    return PageFile(TYPES[suffix], data, gzip.compress(data, 9, mtime=0), cache)


def _index(text: str, hashed: str, names: dict[str, bytes]) -> str:
    """All modules are loaded at once and none later: an upgrade cannot break a page that is open."""
    modules = [name for name in names if name.startswith(("js/", "vendor/"))]
    links = "\n".join(f'<link rel="modulepreload" href="web/HASH/{name}">' for name in modules)
    return text.replace("<!-- modules -->", links).replace("HASH", hashed)
