"""The modules of the page without a page: types, the fold, weight, and what is vendored."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tomllib
import unicodedata
from html.entities import name2codepoint
from pathlib import Path
from typing import Any

from covey.engine.commands.stalled import STORE
from covey.lines.calls import parameters
from covey.permissions.rule_names import RULED
from covey.protocol.argument_names import ALIASES
from covey.protocol.messages import ToolCall
from covey.server.page_files import DIRECTORY, STYLES, page_files

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ["COVEY_WEB_TOOLS"])


def test_the_fold_agrees_with_all_shared_vectors() -> None:
    command = ["node", str(ROOT / "tests/web/vectors.mjs"), str(DIRECTORY / "js"), str(ROOT / "tests/vectors/recorded")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr


def called(module: str, function: str, arguments: list[Any]) -> list[Any]:
    """What a function of a module of the page gives for each of these, by node."""
    script = (
        f"const {{ {function} }} = await import({json.dumps(str(DIRECTORY / 'js' / module))});"
        "let given = ''; for await (const piece of process.stdin) given += piece;"
        f"console.log(JSON.stringify(JSON.parse(given).map((each) => {function}(...each))));"
    )
    command = ["node", "--input-type=module", "-e", script]
    done = subprocess.run(command, input=json.dumps(arguments), capture_output=True, text=True, timeout=60, check=True)
    found: list[Any] = json.loads(done.stdout)
    return found


def test_the_header_of_the_second_file_of_a_diff_is_no_changed_line() -> None:
    diff = "--- a\n+++ a\n@@ -1,1 +1,1 @@\n--- old\n+++ new\n--- b\n+++ b\n@@ -0,0 +1 @@\n+z\n"
    [found] = called("diff.js", "diffRows", [[diff]])
    rows = [(row["kind"], row["text"]) for row in found if row["kind"] != "hunk"]
    assert rows == [("file", "a"), ("removed", "-- old"), ("added", "++ new"), ("file", "b"), ("added", "z")]


def test_that_the_rest_of_a_diff_was_left_out_is_no_line_of_a_file() -> None:
    diff = "--- a\n+++ a\n@@ -1,9 +1,9 @@\n x\n\n-y\n... the rest of the diff is left out\n"
    [[_, *rows]] = called("diff.js", "diffRows", [[diff]])
    assert [row["kind"] for row in rows] == ["same", "same", "removed", "note"]
    assert rows[-1] == {"kind": "note", "old": None, "new": None, "text": "... the rest of the diff is left out"}


def test_arguments_by_names_of_other_agents_are_read_as_the_terminal_reads_them() -> None:
    names = sorted({*ALIASES, *(other for others in ALIASES.values() for other in others)})
    inputs = [{name: "x"} for name in names] + [{a: "x", b: "y"} for a in names for b in names if a < b]
    calls = [ToolCall(id="c", name=tool, input=json.dumps(given), finished=True) for tool in RULED for given in inputs]
    found = called("arguments.js", "parametersOf", [[{"name": call.name, "input": call.input}] for call in calls])
    assert found == [parameters(call) for call in calls]


def test_a_patch_is_named_by_its_files_and_no_name_of_a_call_deceives() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: /project/src/a.py\n*** Move to: b.py\n@@\n-x\n+y\n*** Add File: c.py\n+z\n"
    )
    more = patch + "*** Delete File: d.py\n*** Delete File: e.py\n*** End Patch"
    inputs = [("apply_patch", {"patch": patch}), ("apply_patch", {"input": more}), ("apply_patch", {"patch": "?"})]
    inputs.append(("constructor", {"verb": "$", "what": "ls", "note": ""}))
    found = called("calls.js", "headline", [[{"name": n, "input": json.dumps(i)}, "/project"] for n, i in inputs])
    assert found == [
        {"verb": "Patch", "what": "src/a.py, b.py, c.py", "note": ""},
        {"verb": "Patch", "what": "src/a.py, b.py, c.py", "note": "and 2 more"},
        {"verb": "Patch", "what": "files", "note": ""},
        {"verb": "constructor", "what": "verb=$ what=ls note=", "note": ""},
    ]


def test_a_run_that_waits_for_the_store_is_said_to() -> None:
    assert f"{STORE}: 'Waits for the disk" in (DIRECTORY / "js/status.js").read_text("utf-8")


def test_what_runs_keeps_prompts_out_as_the_server_has_it() -> None:
    options = ["undefined", '{cwd: "src", debug: true, unattended: true}', "{accept_edits: true}"]
    script = (
        f"const {{ SessionRecord }} = await import({json.dumps(str(DIRECTORY / 'js/records.js'))});"
        f"console.log(JSON.stringify([{', '.join(options)}].map((options) => {{ const record = new SessionRecord();"
        "record.runs.set('r', { run: { state: 'active', options } }); return record.keepsOthersOut; })));"
    )
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout) == [False, False, True]


def test_the_types_are_right() -> None:
    command = [str(TOOLS / "node_modules/.bin/tsc"), "-p", str(ROOT / "tests/web/tsconfig.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-4000:]


def test_all_of_the_page_has_at_most_100_kb() -> None:
    """As it is sent: what a browser loads on its first visit."""
    page = page_files()
    sizes = {name: len(file.packed) for name, file in page.files.items() if name != "index.html"}
    assert len(page.index.packed) + sum(sizes.values()) <= 100_000, sizes


def test_modules_are_sent_as_the_same_programs(tmp_path: Path) -> None:
    """What a compiler makes of them is the same, byte for byte, and their comments are gone."""
    names = [name for name in page_files().files if name.endswith(".js")]
    made: dict[str, list[bytes]] = {}
    for kind in ("written", "sent"):
        for name in names:
            path = tmp_path / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((DIRECTORY / name).read_bytes() if kind == "written" else page_files().files[name].data)
        command = [str(TOOLS / "node_modules/.bin/esbuild"), *names, "--minify-whitespace", "--minify-syntax"]
        options = ["--legal-comments=none", f"--outdir={tmp_path / 'out' / kind}", "--outbase=."]
        subprocess.run([*command, *options], cwd=tmp_path / kind, check=True, capture_output=True, timeout=60)
        made[kind] = [(tmp_path / "out" / kind / name).read_bytes() for name in names]
    assert made["sent"] == made["written"]
    assert all(b"@param" not in page_files().files[name].data for name in names)


def test_styles_are_sent_as_the_same_style_sheet(tmp_path: Path) -> None:
    """By the same compiler; and it is smaller than what was written, not only without its comments."""
    written = "\n".join((DIRECTORY / name).read_text("utf-8") for name in STYLES)
    sent = page_files().files["style.css"].data.decode()
    made = []
    for name, text in (("written", written), ("sent", sent)):
        (tmp_path / f"{name}.css").write_text(text, "utf-8")
        command = [str(TOOLS / "node_modules/.bin/esbuild"), f"{name}.css", "--minify"]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
        assert not done.stderr, done.stderr
        made.append(re.sub(r"(?<=[:,]) ", "", done.stdout))  # it leaves the values of variables as they are written
    assert made[0] == made[1]
    assert len(sent) < 0.97 * len(written) and "/*" not in sent


def test_every_sign_that_is_used_is_drawn() -> None:
    drawn = set(re.findall(r'data-icon="(\w*)"\]', (DIRECTORY / "icons.css").read_text("utf-8")))
    texts = {
        path.name: path.read_text("utf-8") for path in (*(DIRECTORY / "js").glob("*.js"), DIRECTORY / "index.html")
    }
    used = {
        name
        for text in texts.values()
        for name in re.findall(r"""(?:data-icon=|glyph\(|iconButton\()["'](\w*)["']""", text)
    }
    assert len(used) >= 12 and used <= drawn, used - drawn


def test_modules_fit_in_a_head() -> None:
    long = {
        path.name: count
        for path in (DIRECTORY / "js").glob("*.js")
        if (count := len(path.read_text("utf-8").splitlines())) > 400
    }
    assert long == {}


def test_nothing_becomes_markup_or_code() -> None:
    names = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser")
    found = [
        f"{path.name}: {name}"
        for path in (DIRECTORY / "js").glob("*.js")
        for name in names
        if name in path.read_text("utf-8")
    ]
    assert found == []


def test_what_is_vendored_is_made_from_what_was_published(tmp_path: Path) -> None:
    about = tomllib.loads((DIRECTORY / "vendor/vendor.toml").read_text("utf-8"))["markdown-it"]
    lock = json.loads((TOOLS / "node_modules/.package-lock.json").read_text("utf-8"))
    assert lock["packages"]["node_modules/markdown-it"]["integrity"] == about["integrity"]
    command = ["node", str(ROOT / "tests/web/vendor/build.mjs"), str(TOOLS), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    for name in (about["file"], "markdown-it.LICENSE"):
        assert (tmp_path / name).read_bytes() == (DIRECTORY / "vendor" / name).read_bytes(), name
    assert hashlib.sha256((tmp_path / about["file"]).read_bytes()).hexdigest() == about["sha256"]


def test_what_is_vendored_parses_as_what_was_published() -> None:
    """All documents of this project, HTML, every name of HTML 4 and what only looks like one, and signs beside emphasis."""
    published = TOOLS / "node_modules/markdown-it/dist/browser/markdown-it.esm.min.mjs"
    texts = [path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")]
    names = [*name2codepoint, "apos"]
    texts += [
        " ".join(f"&{name};" for name in names),
        "[a](/&auml;?b=1&copy=2 '&quot;') &no; &amp &; &#8594; &#x41; &#0;",
    ]
    texts.append("``` &lt;x&gt;\na\n```")
    texts.append(
        "<div>\n*a*\n</div>\n\n<!-- b\n\nc --> <b>d</b> https://e.example/_f_ <https://g.example/%C3%A4> ![h][i]\n\n[i]: <j k>"
    )
    signs = [chr(code) for code in range(0x20, 0x20000) if unicodedata.category(chr(code))[0] in "PS"]
    texts.append("\n\n".join(f"*a{sign}*b *{sign}*c" for sign in signs))
    command = ["node", str(ROOT / "tests/web/vendor/compare.mjs"), str(published), str(DIRECTORY / "vendor")]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert done.stdout == f"{len(texts)} texts, the same\n"
