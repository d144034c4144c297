"""What of a prompt does not do what it seems to be meant for is said; nothing is kept from being sent."""

from __future__ import annotations

from pathlib import Path

from covey.cli.prompt_doubts import asked_for, missing, unknown_command, unseen_pictures
from covey.protocol.messages import Attachment
from covey.protocol.requests import ConfigView, ModelInfo, Options, ProviderInfo, SelectedModel
from tests.cli.conftest import Home

PICTURE = Attachment(file_path="/x/a.png", file_name="a.png", mime_type="image/png", content=b"x")


def config(*, sees: bool) -> ConfigView:
    model = ModelInfo(id="big", name="Big", context_window=0, default_max_tokens=0, supports_attachments=sees)
    provider = ProviderInfo(id="desk", name="Desk", type="openai-compatible", base_url="", models=(model,))
    large = SelectedModel(model="big", provider="desk")
    return ConfigView(models={"large": large}, providers={"desk": provider}, options=Options(data_directory=""))


def test_a_file_that_is_not_there_is_named_and_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "there.py").touch()
    assert missing("see @gone.py, @src/gone.toml:3-4 and @there.py.", tmp_path) == ["gone.py", "src/gone.toml"]
    assert missing("@here ask ann@example.org about @types/node and @app.route('/x')", tmp_path) == []


def test_a_command_that_there_is_not_is_named_with_the_nearest() -> None:
    assert asked_for("/reviw src") == "reviw"
    assert {asked_for(each) for each in (" /reviw", "/src/a.py is odd", "/tmp", "why /x?")} == {""}
    said = unknown_command("reviw", ["review", "commit"])
    assert said == "there is no command /reviw, so the model reads it as it is; did you mean /review?"
    assert unknown_command("xyz", []) == "there is no command /xyz, so the model reads it as it is"


def test_a_picture_for_a_model_that_is_not_known_to_see_is_said_to_be_in_vain() -> None:
    (said,) = unseen_pictures(config(sees=False), "", [PICTURE])
    assert said.startswith("desk/big is not known to see pictures: it is told the name of a.png, and")
    assert unseen_pictures(config(sees=False), "", [PICTURE, PICTURE]) == [said], "each is named once"
    assert "sees_images = true where [providers.desk]" in said
    assert unseen_pictures(config(sees=True), "", [PICTURE]) == []
    assert unseen_pictures(config(sees=False), "desk/unlisted", [PICTURE]) == []


def test_all_of_it_is_said_by_covey_run_and_the_prompt_is_answered(home: Home) -> None:
    picture = home.project / "a.png"
    picture.write_bytes(b"\x89PNG")
    done = home.covey("run", "-q", "-a", str(picture), "/nosuch about @gone.py")
    assert (done.returncode, done.stdout) == (0, "You said: /nosuch about @gone.py\n")
    assert "there is no file gone.py here" in done.stderr
    assert "there is no command /nosuch" in done.stderr
    assert "scripted/default is not known to see pictures" in done.stderr
    quiet = home.covey("run", "-q", "what about src/a.py and ann@example.org?")
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_23_of_files_that_a_prompt_mentions_it_is_said_what_the_model_does_not_see(home: Home) -> None:
    (home.project / "huge.txt").write_text("a line\n" * 30_000)
    (home.project / "small.txt").write_text("a line\n")
    (home.project / "bin.dat").write_bytes(b"\0\1\2")
    (home.project / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    done = home.covey("run", "see @huge.txt @small.txt @bin.dat and @shot.png")
    assert done.returncode == 0
    assert "@huge.txt: 144467 of 210000 bytes are not shown\n" in done.stderr
    assert "@bin.dat: This is a binary file of 3 bytes\n" in done.stderr
    assert "it is told the name of shot.png, and sees nothing of it" in done.stderr
    assert "small.txt" not in done.stderr
