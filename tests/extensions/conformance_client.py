"""Our MCP client as the official conformance suite drives it: the URL is the last argument, the scenario a variable.

It does what a user's session would: opens, lists, calls every tool once with plausible arguments, and answers questions
with what their fields suggest.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any
from urllib.parse import urlsplit

import httpx2

from covey.credentials.mcp_login import ClientIdentity, machine_login, mcp_login
from covey.credentials.mcp_tokens import McpGrant, challenge_words, united
from covey.engine.extensions.elicitation import answer_of, fields_of, questions_of
from covey.engine.extensions.mcp_definitions import usable_tools
from covey.engine.extensions.mcp_skills import WrongSkill, usable_skills, verified
from covey.tools.mcp.client import Listed, McpClient
from covey.tools.mcp.connection import unknown_method
from covey.tools.mcp.http import HttpMcpTransport
from covey.tools.mcp.words import McpError

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
CLIENT_IDS = {"auth/basic-cimd": "https://conformance-test.local/client-metadata.json"}
"""What a user's entry would name: a URL that describes the client, where the suite expects its own."""
IDENTITY = ClientIdentity(CONTEXT.get("client_id", CLIENT_IDS.get(SCENARIO, "")), CONTEXT.get("client_secret", ""))


def value_for(field: dict[str, Any], number: int) -> Any:
    if "default" in field:
        return field["default"]
    if enum := field.get("enum"):
        return enum[0]
    kinds: dict[str, Any] = {"number": number + 2, "integer": number + 2, "boolean": True, "array": [], "object": {}}
    kind = field.get("type")
    return kinds.get(kind if isinstance(kind, str) else "", "text")


def arguments_for(tool: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """What is called `schema` is the one of the first tool, as it came."""
    properties = tool.get("inputSchema", {}).get("properties", {})
    if "schema" in properties:
        return {"schema": first["inputSchema"]}
    return {name: value_for(field, number) for number, (name, field) in enumerate(properties.items())}


async def asked(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "roots/list":
        return {"roots": []}
    if method != "elicitation/create":
        raise unknown_method(method)
    questions_of("conformance", params)
    words = []
    for field in fields_of(params).values():
        default = field.get("default", "")
        words.append(", ".join(default) if isinstance(default, list) else _word(default))
    return answer_of(params, words)


def _word(default: Any) -> str:
    return ("yes" if default else "no") if isinstance(default, bool) else str(default)


class Browser:
    """Logs in as a user would, by following where the page of the authorization server leads. A few times at most."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._grant: McpGrant | None = None
        self._logins = 0

    async def token(self) -> str:
        return self._grant.access_token if self._grant else ""

    async def renewed(self, refused: str, challenge: str) -> str:
        if refused != await self.token():
            return await self.token()
        self._logins += 1
        if self._logins > 3:
            return ""
        scope = challenge_words(challenge).get("scope", "")
        self._grant = await self._logged_in(united(self._grant.scope, scope) if self._grant else "")
        return self._grant.access_token

    async def _logged_in(self, further: str) -> McpGrant:
        if "client-credentials" in SCENARIO:
            return await machine_login(self._url, {}, IDENTITY, further)
        async with mcp_login(self._url, {}, IDENTITY, further) as login, httpx2.AsyncClient() as browser:
            page = await browser.get(login.address)
            target = urlsplit(page.headers["location"])
            login.take(f"{target.path}?{target.query}")
            return await login.grant()


async def main(url: str) -> None:
    client = McpClient(HttpMcpTransport(url, {}, Browser(url)), asked, lambda what: None)
    try:
        facts = await client.open(20)
        wanted = CONTEXT.get("toolCalls")
        listed = (await client.list("tools", 20)).items if "tools" in facts.capabilities or wanted else []
        usable, _ = usable_tools(listed)
        found = [tool for tool in listed if tool.get("name") in usable or "$ref" in str(tool)]
        calls = [(each["name"], each.get("arguments", {})) for each in wanted or ()]
        for name, arguments in calls or [(tool["name"], arguments_for(tool, found[0])) for tool in found]:
            try:
                await client.call(name, arguments, idle_s=20, total_s=25, on_progress=lambda params: None)
            except McpError as error:
                print(f"{name}: {error}", file=sys.stderr)
        await load_skills(client)
        await read_first(client, "resources", "uri", "resources/read")
        await read_first(client, "prompts", "name", "prompts/get")
    finally:
        await client.close()


async def load_skills(client: McpClient) -> None:
    """As a model that wants each skill, and all its files, would have it; in one scenario nobody wants any."""
    found = (await client.list("skills", 20)).items if client.facts.has("skills") else []
    skills, left_out = usable_skills(found)
    print(f"skills: {sorted(skills)}, left out: {left_out}", file=sys.stderr)
    for skill in skills.values() if "no-prefetch" not in SCENARIO else ():
        try:
            for path in ("", *skill.further):
                file = skill.file(path)
                verified(skill, file, await client.request("resources/read", {"uri": file.uri}, idle_s=20))
        except WrongSkill as wrong:
            print(wrong, file=sys.stderr)


async def read_first(client: McpClient, what: Listed, key: str, method: str) -> None:
    if what in client.facts.capabilities and (items := (await client.list(what, 20)).items):
        await client.request(method, {key: items[0][key]}, idle_s=20)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
