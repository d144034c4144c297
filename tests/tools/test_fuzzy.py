"""Which names are found for a few letters, in which order, and where the letters are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.tools import fuzzy
from covey.tools.fuzzy import Match, Ranking, fold


def ranked(query: str, *paths: str, limit: int = 20, at_once: int = 1000) -> list[Match]:
    names = sorted(paths, key=lambda path: (len(path), path))
    ranking = Ranking(query, limit)
    folded = [fold(name) for name in names]
    for start in range(0, len(names), at_once):
        ranking.take(names, folded, ranking.select(folded, range(start, min(start + at_once, len(names)))))
    return ranking.best()


def order(query: str, *paths: str, limit: int = 20) -> list[str]:
    return [match.path for match in ranked(query, *paths, limit=limit)]


def shown(query: str, path: str) -> str:
    """The path with the letters that were typed as capitals, the others as dots."""
    (match,) = ranked(query, path)
    return "".join(c.upper() if place in match.places else "." for place, c in enumerate(path))


def test_the_better_a_name_fits_the_earlier_it_comes() -> None:
    paths = [
        "a/very/deep/place/index",  # exactly this
        "z/indexes.py",  # begins with it
        "z/file_index.py",  # a word of it
        "z/reindexed.py",  # inside
        "index/of/all.py",  # a word of a directory
        "preindexed/x.py",  # inside of a directory's name
        "z/iznzdzezx.py",  # in this order
        "izn/dzezx.py",  # in this order, somewhere
    ]
    assert order("index", *reversed(paths)) == paths


def test_among_equals_the_shorter_path_comes_first_and_then_the_alphabet_decides() -> None:
    assert order("main", "b/main.py", "a/main.py", "main.py", "src/deep/main.py") == [
        "main.py", "a/main.py", "b/main.py", "src/deep/main.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "path", ["file_index.py", "fileIndex.ts", "FileIndex.java", "file-index.md", "file.index", "file index"]
)
def test_first_letters_of_words_find_a_name(path: str) -> None:
    assert order("fi", "x/" + path, "x/ofbis.py") == ["x/" + path, "x/ofbis.py"]
    assert order("filin", "x/" + path) == ["x/" + path]
    assert ranked("fIn", path)[0].places == (0, path.lower().index("i", 2), path.lower().index("n", 4))


def test_letters_that_begin_words_make_up_for_gaps() -> None:
    assert order("fidx", "configindex.py", "file_index.py")[0] == "file_index.py"
    assert order("abc", "xaxbxxxxc", "xaxbxc") == ["xaxbxc", "xaxbxxxxc"]


def test_a_query_with_a_slash_is_about_the_path() -> None:
    paths = ["src/tools/file_index.py", "src/file.py", "docs/tools.md", "tools/find.py"]
    assert order("tools/fi", *paths) == ["tools/find.py", "src/tools/file_index.py"]
    assert order("s/fi", *paths)[0] == "src/file.py"
    assert shown("t/fin", "a/t/file_in.py") == "..T/F....IN..."
    assert order("src/tools/file_index.py", *paths) == ["src/tools/file_index.py"]


def test_the_places_are_where_the_letters_are() -> None:
    assert shown("index", "a/file_index.py") == ".......INDEX..."
    assert shown("py", "a/b.py") == "....PY"
    assert shown("ab", "a/b.py") == "A.B..."
    assert shown("main", "xmain/ymain.py") == ".......MAIN..."
    assert shown("xmain", "xmain/y.py") == "XMAIN....."
    assert shown("fpy", "f/x.py") == "F...PY"


def test_case_and_accents_do_not_matter_and_places_count_code_points() -> None:
    paths = ["Übersicht/Größe.md", "cafe\u0301/menü.txt", "ΑΒΓ.txt", "İstanbul.md"]
    for query, path, letters in [
        ("GRÖSSE", paths[0], "Größe"),
        ("groe", paths[0], ""),
        ("ubersicht", paths[0], "Übersicht"),
        ("café", paths[1], "cafe"),
        ("menu", paths[1], "menü"),
        ("αβγ", paths[2], "ΑΒΓ"),
        ("istanbul", paths[3], "İstanbul"),
    ]:
        found = [match for match in ranked(query, *paths) if match.path == path]
        if letters:
            assert "".join(path[place] for place in found[0].places) == letters
    assert order("grosse", "Große.md") == ["Große.md"]


def test_blanks_in_a_query_mean_nothing_and_no_query_means_everything() -> None:
    assert order("file  index", "file_index.py", "x.py") == ["file_index.py"]
    assert order("", "bb", "a", "ccc", limit=2) == ["a", "bb"]
    assert ranked(" ", "a")[0].places == ()
    assert order("zz", "a", "b") == []


def test_what_a_regular_expression_would_take_for_its_own_is_plain_text() -> None:
    for query in (".*", "a+b", "[x]", "^a", "\\d", "(", "]-^"):
        assert order(query, "nothing") == []
        assert order(query, f"x{query}y") == [f"x{query}y"]


def test_a_kind_that_has_enough_is_not_looked_for_any_more() -> None:
    names = [f"d{number:05}/main{number:05}.py" for number in range(20_000)]
    ranking = Ranking("main", 10)
    folded = [fold(name) for name in names]
    for start in range(0, len(names), 100):
        ranking.take(names, folded, ranking.select(folded, range(start, start + 100)))
    assert len(ranking.best()) == 10
    assert ranking.classified == 100
    assert ranking.survivors is None


def test_once_there_is_enough_only_so_many_names_are_looked_at_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzy, "CLOSE_LOOKS", 300)
    names = [f"xmxaxixnx{number:05}.py" for number in range(5_000)]
    ranking = Ranking("main", 10)
    for start in range(0, len(names), 100):
        ranking.take(names, names, ranking.select(names, range(start, start + 100)))
    assert ranking.classified == 300
    assert len(ranking.best()) == 10


def test_a_name_that_means_harm_costs_no_more_than_others() -> None:
    names = ["a" * 4000 + f"/{'a_' * 100}{number}" for number in range(20)]
    assert ranked("a" * 90 + "b", *names) == []
    assert len(ranked("a" * 90, *names)) == 20


NAMES = st.lists(st.text(st.sampled_from("abAB_/.é1"), min_size=1, max_size=12), unique=True, max_size=30)


@given(NAMES, st.text(st.sampled_from("abé1/_ "), max_size=4), st.integers(1, 5))
def test_whatever_is_asked_the_letters_are_at_their_places_and_slices_change_nothing(
    names: list[str], query: str, at_once: int
) -> None:
    found = ranked(query, *names, limit=1000)
    assert found == ranked(query, *names, limit=1000, at_once=at_once)
    wanted = fold("".join(query.split()))
    for match in found:
        assert fold("".join(match.path[place] for place in match.places)) == wanted
        assert list(match.places) == sorted(set(match.places))
    in_order = [name for name in names if _has(fold(name), wanted)]
    assert sorted(match.path for match in found) == sorted(in_order)


def _has(name: str, query: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in query)
