"""Routes about the files of a workspace."""

from __future__ import annotations

from covey.protocol.files import FileContent, FoundFiles
from covey.server.endpoint import Call, Endpoint

FILES_MAX = 200


async def find_files(call: Call, _body: None) -> FoundFiles:
    workspace = await call.workspace()
    return await workspace.files.find(call.query.get("q", ""), call.count("limit", at_most=FILES_MAX))


async def read_file(call: Call, _body: None) -> FileContent:
    workspace = await call.workspace()
    return await workspace.files.content(call.query.get("path", ""))


FILES = "/v1/workspaces/{id}/files"

ENDPOINTS = (
    Endpoint("GET", FILES, find_files, "Files that are not ignored, found by a few letters.", answer=FoundFiles),
    Endpoint("GET", FILES + "/content", read_file, "A text file of the workspace.", answer=FileContent),
)
