"""Prompts of MCP servers as commands: `/mcp__server__prompt arguments`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from covey.engine.extensions.mcp import McpHost
from covey.engine.extensions.mcp_definitions import cleaned, model_names
from covey.engine.extensions.mcp_pins import PinnedPrompt
from covey.engine.extensions.mcp_server import McpServer
from covey.protocol.custom import CustomCommand, ExpandedCommand
from covey.tools.mcp.results import marked, resource_words


class McpPrompts:
    """What a person can ask for, and what it says."""

    def __init__(self, host: McpHost) -> None:
        self._host = host

    def all(self) -> list[tuple[str, McpServer, PinnedPrompt]]:
        """Each prompt, with the name of its command."""
        found = []
        for server in self._host.servers.values():
            prompts = {prompt.name: prompt for prompt in server.prompts}
            names = model_names(server.name, prompts)
            found += [(names[name], server, prompt) for name, prompt in prompts.items()]
        return found

    def commands(self) -> list[CustomCommand]:
        return [
            CustomCommand(
                name=name,
                kind="mcp_prompt",
                source=server.name,
                description=prompt.description,
                argument_hint=" ".join(f"<{each}>" if needed else f"[{each}]" for each, needed in prompt.arguments),
            )
            for name, server, prompt in self.all()
        ]

    async def expand(self, name: str, arguments: str) -> ExpandedCommand | None:
        """What a prompt says; None: there is none of this name. Raises ToolFailed."""
        for known, server, prompt in self.all():
            if known == name:
                text = await said(server, prompt.name, given(prompt, arguments))
                return ExpandedCommand(name=name, kind="mcp_prompt", text=text)
        return None


def given(prompt: PinnedPrompt, arguments: str) -> dict[str, str]:
    """Words in the order of the prompt's arguments; the last one gets all that is left."""
    try:
        words = shlex.split(arguments)
    except ValueError:
        words = arguments.split()
    names = [name for name, _ in prompt.arguments]
    if len(words) > len(names) > 0:
        words = [*words[: len(names) - 1], " ".join(words[len(names) - 1 :])]
    return dict(zip(names, words, strict=False))


async def said(server: McpServer, name: str, arguments: dict[str, str]) -> str:
    """The messages of a prompt as one text, marked as the server's words."""
    result = await server.prompt(name, arguments)
    messages = result.get("messages")
    texts = [_text(each) for each in (messages if isinstance(messages, list) else ()) if isinstance(each, dict)]
    return marked(server.name, cleaned("\n\n".join(filter(None, texts))))


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    blocks: Sequence[Any] = content if isinstance(content, list) else [content]
    words = []
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "text":
            words.append(str(block.get("text", "")))
        elif isinstance(block, dict) and isinstance(resource := block.get("resource"), dict):
            words.append(resource_words(resource))
    text = "\n".join(words)
    return f"(as the assistant) {text}" if message.get("role") == "assistant" and text else text
