"""Tools that tests make up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Tool, ToolContext, ToolOutput, built_in, parameters

P = TypeVar("P", bound=msgspec.Struct)


class FakeTool(Generic[P]):
    """A tool of a test, which may keep what happened to it; `value` is what the engine gets."""

    name: ClassVar[str]
    effect: ClassVar[Effect]
    independent: ClassVar[bool] = False
    params: type[P]

    def intent(self, params: P, context: ToolContext) -> Intent:
        raise NotImplementedError

    def preview(self, params: P, context: ToolContext) -> dict[str, Any]:
        return parameters(params, context)

    async def run(self, params: P, context: ToolContext) -> ToolOutput:
        raise NotImplementedError

    @property
    def value(self) -> Tool[P]:
        tool = built_in(
            self.name,
            self.effect,
            self.params,
            intent=self.intent,
            preview=lambda params, context: self.preview(params, context),
            run=self.run,
            independent=self.independent,
        )
        return replace(tool, description=lambda: f"The tool {self.name} of a test.")
