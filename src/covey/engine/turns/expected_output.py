"""What a run with a schema has to end with: JSON that fits it. One answer that does not fit is asked for again."""

from __future__ import annotations

from typing import Any

import msgspec

from covey.lifecycle.output_check import DoesNotFit, TooCostly, fitting_output
from covey.protocol.messages import Message
from covey.tools.threads import in_thread

INSTRUCTION = """

The answer that ends your turn is read by a program. It must be one JSON value that fits the JSON Schema below, and
nothing else: no words before or after it, no code fence. Use your tools as usual until then.

"""


class ExpectedOutput:
    """The output of one run. A run without a schema expects nothing, and every answer will do."""

    def __init__(self, schema: dict[str, Any] | None) -> None:
        self.schema = schema
        self.value: Any = None
        """What the last answer that fitted says."""
        self.problem = ""
        """In what the last answer that was checked does not fit."""
        self._may_ask_again = True

    @property
    def instruction(self) -> str:
        """What is added to the system prompt."""
        if self.schema is None:
            return ""
        return INSTRUCTION + msgspec.json.encode(self.schema).decode()

    @property
    def remark(self) -> str:
        """What is added to the error of a turn that has no step left for another answer."""
        return f"; the answer does not fit the schema: {self.problem}" if self.problem else ""

    async def is_given(self, answer: Message) -> bool:
        """Whether the turn may end with this answer; False: ask again. Raises DoesNotFit if that was done before."""
        schema, text = self.schema, answer.text
        if schema is None:
            return True
        try:
            # Bounded, but not short enough for the loop.
            self.value = await in_thread(lambda: fitting_output(text, schema))
            self.problem = ""
        except DoesNotFit as error:
            self.problem = str(error)
            if isinstance(error, TooCostly) or not self._may_ask_again:
                raise DoesNotFit(f"the answer does not fit the schema: {error}") from None
            self._may_ask_again = False
        return not self.problem
