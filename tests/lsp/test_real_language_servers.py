"""Real language servers: ruff and ty, as they are on the PATH."""

from __future__ import annotations

import pytest

from tests.lsp.conftest import Languages

pytestmark = pytest.mark.anyio

MODULE = "def add(ü: int, b: int) -> int:\n    return ü + b\n\n\ngrüße = '😀'; total = add(1, 2)\n"
USER = "from shop.sums import add\n\nprint('😀', add(3, 4))\n"


async def test_a_python_project_with_ruff_and_ty(languages: Languages) -> None:
    languages.file("pyproject.toml", "[project]\nname = 'shop'\nversion = '1'\n")
    languages.file("shop/__init__.py", "")
    module, user = languages.file("shop/sums.py", MODULE), languages.file("shop/use.py", USER)
    await languages.use(auto=True)
    assert languages.host.views() == [], "none was needed yet"

    user.write_text(USER.replace("add(3, 4)", "add(3, 'four', undefined_name)"))
    found = await languages.host.complaints(user)
    assert found is not None
    said = "\n".join(complaint.text for complaint in found)
    assert {"ruff", "ty"} <= {view.name for view in languages.host.views()}
    assert "undefined_name" in said and "line 3: error" in said
    user.write_text(USER)
    assert [each for each in await languages.host.complaints(user) or () if each.severity == "error"] == []

    found_at = await languages.call("definition", file_path="shop/use.py", line=3, name="add")
    assert found_at.content == "shop/sums.py:1: def add(ü: int, b: int) -> int:"
    references = await languages.call("references", file_path="shop/sums.py", line=1, name="add")
    assert {line.partition(": ")[0] for line in references.content.splitlines()} == {
        *("shop/sums.py:1", "shop/sums.py:5", "shop/use.py:1", "shop/use.py:3")
    }
    symbols = await languages.call("symbols", file_path="shop/sums.py")
    assert "function add (lines 1-2)" in symbols.content

    output = await languages.call("rename", file_path="shop/sums.py", line=5, name="add", new_name="plus")
    assert module.read_text() == MODULE.replace("add", "plus")
    assert user.read_text() == USER.replace("add", "plus")
    assert sorted(file.path.name for file in output.files) == ["sums.py", "use.py"]
