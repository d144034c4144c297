"""What the errors of providers say, and what they mean."""

from __future__ import annotations

import json

import pytest

from covey.models.trouble import NOT_AN_API, Trouble, error_text_of_body, judge, reported

TOO_LONG = [
    '{"error": {"message": "This model\'s maximum context length is 128000 tokens. However, your messages resulted in '
    '130001 tokens. Please reduce the length of the messages.", "code": "context_length_exceeded"}}',
    '{"error": {"message": "Your input exceeds the context window of this model. Please adjust your input and try '
    'again.", "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}}',
    '{"object": "error", "message": "This model\'s maximum context length is 4096 tokens. However, you requested 5000 '
    'tokens in the messages, Please reduce the length of the messages.", "type": "BadRequestError", "code": 400}',
    '{"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it", '
    '"type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 4096}}',
    '{"error": "input length exceeds maximum context length"}',
    '{"error": {"message": "the input length exceeds the context length"}}',
    '{"error": {"message": "This endpoint\'s maximum context length is 32768 tokens. However, you requested about '
    '40000 tokens (39000 of text input, 1000 in the output). Please reduce the length of either one.", "code": 400}}',
    '{"error": {"message": "Please reduce the length of the messages or completion.", '
    '"type": "invalid_request_error", "code": "context_length_exceeded"}}',
    '{"error": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with '
    'context length of only 4096 tokens, which is not enough."}',
    '{"error": {"code": 400, "message": "request (4390 tokens) exceeds the available context size (4096 tokens)"}}',
    '{"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}',
    '{"error": "Requested tokens (2285) exceed context window of 2048"}',
    '{"error": "The number of tokens to keep from the initial prompt is greater than the context length."}',
    '{"error": "Reached context length of 32000 tokens with model (arch: gpt-oss)"}',
    '{"object": "error", "message": "max_tokens must be at least 1, got -186.", "code": 400}',
    '{"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 209652 tokens > '
    '200000 maximum"}}',
    '{"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed '
    '(1048576).", "status": "INVALID_ARGUMENT"}}',
]


@pytest.mark.parametrize("body", TOO_LONG)
@pytest.mark.parametrize("status", [0, 400, 500])
def test_a_conversation_that_is_too_long_is_recognised_however_it_is_said(status: int, body: str) -> None:
    assert judge(status, body.encode()) is Trouble.OVERFLOW


@pytest.mark.parametrize(
    ("status", "body", "meant"),
    [
        (401, "", Trouble.AUTH),
        (403, '{"error": {"message": "no access"}}', Trouble.AUTH),
        (403, '{"error": {"message": "x requires moderation", "metadata": {"flagged_input": "y"}}}', Trouble.REFUSED),
        (403, '{"error": {"code": "unsupported_country_region_territory"}}', Trouble.REFUSED),
        (402, '{"error": {"message": "Insufficient Balance"}}', Trouble.SPENT),
        (429, '{"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}', Trouble.SPENT),
        (429, '{"error": {"message": "Rate limit reached"}}', Trouble.BUSY),
        (408, "", Trouble.BUSY),
        (500, "", Trouble.BUSY),
        (503, "<html>", Trouble.BUSY),
        (529, '{"error": {"type": "overloaded_error", "message": "Overloaded"}}', Trouble.BUSY),
        (413, "", Trouble.OVERFLOW),
        (400, '{"error": {"message": "max_tokens must be positive"}}', Trouble.REFUSED),
        (400, '{"error": {"message": "The context of this request is invalid"}}', Trouble.REFUSED),
        (404, '{"error": {"message": "The model `big` does not exist"}}', Trouble.REFUSED),
        (301, "", Trouble.REFUSED),
        (422, '{"detail": [{"msg": "field required"}]}', Trouble.REFUSED),
    ],
)
def test_what_an_error_means(status: int, body: str, meant: Trouble) -> None:
    assert judge(status, body.encode()) is meant


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        ({"code": 502, "message": "Provider returned error"}, Trouble.BUSY),
        ({"code": "502", "message": "Provider returned error"}, Trouble.BUSY),
        ({"code": "invalid_prompt", "message": "no"}, Trouble.REFUSED),
        ({"code": "context_length_exceeded", "message": "no"}, Trouble.OVERFLOW),
        ("boom", Trouble.REFUSED),
    ],
)
def test_errors_inside_an_answer_are_judged_by_their_code(error: object, meant: Trouble) -> None:
    assert reported(error).trouble is meant


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"error": {"message": "no such model", "type": "x"}}', "no such model"),
        ('{"error": "no such model"}', "no such model"),
        ('{"message": "no such model"}', "no such model"),
        ('{"detail": "no such model"}', "no such model"),
        ('{"detail": [{"loc": ["body"], "msg": "field required"}]}', "field required"),
        ('[{"error": {"code": 400, "message": "no such model"}}]', "no such model"),
        ('{"errors": [{"message": "no such model"}]}', "no such model"),
        ('{"error": {"message": "Provider error", "metadata": {"raw": "too busy"}}}', "Provider error: too busy"),
        ('{"error": {"message": "Oh", "metadata": {"raw": "{\\"error\\": \\"busy\\"}"}}}', "Oh: busy"),
        ("no such model\n", "no such model"),
        ("x" * 500, "x" * 200 + "…"),
        (json.dumps({"error": "x" * 5000}), "x" * 1000),
        ('{"error": {}}', ""),
        ("{}", ""),
        ("", ""),
        ("<html><body>502</body></html>", NOT_AN_API),
        ("\n<!DOCTYPE html>", NOT_AN_API),
    ],
)
def test_bodies_of_errors(body: str, message: str) -> None:
    assert error_text_of_body(body.encode()) == message
