"""One root of errors: whoever uses Covey from Python needs one `except`."""

from __future__ import annotations

import pytest

from covey.client.errors import BadAnswer, ConnectionLost, ServerUnreachable, SocketGone
from covey.config.schema import ConfigError
from covey.protocol.errors import BY_STATUS, CoveyError
from covey.protocol.paths import Address, BadAddress, UnsafeDirectory
from covey.server.listener import CannotServe

OURS = [
    *BY_STATUS.values(), ConfigError, CannotServe, BadAddress, UnsafeDirectory,
    ServerUnreachable, ConnectionLost, BadAnswer, SocketGone,
]  # fmt: skip


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_every_error_that_users_see_has_one_root_a_message_and_a_code(kind: type[CoveyError]) -> None:
    error = kind("what to do")
    assert isinstance(error, CoveyError)
    assert (str(error), error.message) == ("what to do", "what to do")
    assert error.code not in ("", CoveyError.code)


def test_a_wrong_address_is_still_a_wrong_value() -> None:
    with pytest.raises(ValueError, match="is not an address") as caught:
        Address.parse("nowhere")
    assert isinstance(caught.value, CoveyError)
