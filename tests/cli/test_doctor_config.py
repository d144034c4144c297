"""What `covey doctor` says of a configuration with which no prompt can be taken: it is no problem of the store."""

from __future__ import annotations

import json

import pytest

from covey.cli import exits
from tests.cli.conftest import Home


@pytest.mark.parametrize(
    "wrong",
    [
        '[models]\nlarge = "nope/x"\n',
        "nope = 1\n",
        '[models]\nlarge = "groq/nope"\n[providers.mine]\ntype = "scripted"\nmodels = [{ id = "a" }]\n',
    ],
)
def test_the_store_and_the_configuration_have_a_verdict_each(own_home: Home, wrong: str) -> None:
    own_home.covey("run", "hello")
    own_home.covey("stop")
    well = own_home.covey("doctor")
    assert well.returncode == exits.OK
    assert "The store has no problems.\nThe configuration has no problems.\n" in well.stdout
    own_home.config.write_text(wrong)
    done = own_home.covey("doctor")
    assert done.returncode == exits.FAILED
    assert "The store has no problems.\n" in done.stdout and "The configuration has" not in done.stdout
    assert "no prompt is accepted until this is fixed" in done.stderr and "nope" in done.stderr
    found = json.loads(own_home.covey("doctor", "--json").stdout)
    assert found["healthy"] is True and "nope" in found["config"]
    checked = own_home.covey("config", "check")
    assert checked.returncode == exits.FAILED and found["config"] in checked.stderr, "both say the same"


def test_what_config_check_warns_of_is_told_here_too(own_home: Home) -> None:
    own_home.covey("run", "hello")
    own_home.covey("stop")
    own_home.config.write_text(own_home.config.read_text() + '\n[permissions]\ndeny = ["bsh:rm *"]\n')
    done = own_home.covey("doctor")
    assert done.returncode == exits.OK, "prompts are taken all the same"
    assert "The configuration has no problems." not in done.stdout
    assert "permissions.deny: 'bsh:rm *' never applies" in done.stderr
    (warning,) = json.loads(own_home.covey("doctor", "--json").stdout)["config_warnings"]
    assert "'bsh:rm *' never applies" in warning


def test_a_model_that_is_configured_in_vain_is_named_where_models_are_listed(own_home: Home) -> None:
    own_home.config.write_text(own_home.config.read_text().replace("scripted/default", "nope/x"))
    done = own_home.covey("models")
    assert 'A prompt goes nowhere: models.large: no model is known as "nope/x"' in done.stderr
    assert "covey login" not in done.stderr
