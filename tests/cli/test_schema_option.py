"""`covey run --schema`: the JSON that fits on stdout, and nothing else; or an error that says what does not fit."""

from __future__ import annotations

import json

import pytest

from covey.cli import exits
from covey.cli.prompt_input import read_schema
from tests.cli.conftest import Home

SCHEMA = '{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}'
"""What the second answer of the scripted model fits; the first one only repeats the prompt."""
OTHER = '{"type": "array"}'


def test_only_what_fits_is_printed(home: Home) -> None:
    (home.project / "schema.json").write_text(SCHEMA)
    done = home.covey("run", "--schema", "schema.json", "count")
    assert (done.returncode, done.stdout) == (0, '{"n":1}\n'), done.stderr
    assert "does not fit the schema: it is not JSON" in done.stderr
    result = json.loads(home.covey("run", "--json", "--schema", SCHEMA, "count").stdout)
    assert (result["output"], result["exit_code"]) == ({"n": 1}, 0)
    lines = home.covey("run", "--stream-json", "--schema", SCHEMA, "count").stdout.splitlines()
    last = json.loads(lines[-1])
    assert (last["type"], last["payload"]["payload"]["output"]) == ("run_complete", {"n": 1})


def test_what_never_fits_fails_with_its_reason(home: Home) -> None:
    done = home.covey("run", "--json", "--schema", OTHER, "count")
    result = json.loads(done.stdout)
    assert (done.returncode, result["exit_code"], result["output"]) == (exits.FAILED, exits.FAILED, None)
    assert result["error"].startswith("the answer does not fit the schema: $ must be a list")
    plain = home.covey("run", "--schema", OTHER, "count")
    assert (plain.returncode, plain.stdout) == (exits.FAILED, "")
    refused = home.covey("run", "--schema", '{"pattern": "x"}', "count")
    assert refused.returncode == exits.USAGE
    assert "--schema cannot be used: the keyword 'pattern'" in refused.stderr
    as_json = home.covey("run", "--json", "--schema", '{"pattern": "x"}', "count")
    assert json.loads(as_json.stdout)["exit_code"] == as_json.returncode == exits.USAGE


@pytest.mark.parametrize("text", ["{", "[]", "no such file", '{"a": NaN}'])
def test_what_is_no_schema_is_wrong_usage(text: str) -> None:
    with pytest.raises(exits.UsageError):
        read_schema(text)
