"""A list of publishers in a file: what it means, and a clear message for each wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.errors import SpecError
from adsbpc.model import load_spec
from tests.model.test_spec import GOOD

NAMES = (
    st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=20)
    .map(str.strip)
    .filter(lambda name: name.isprintable() and name[:1] not in ("", "#"))
)


def listed(tmp_path: Path, content: bytes | None, name: str = "names.txt") -> tuple[str, ...]:
    file = tmp_path / "campaign.toml"
    file.write_text(GOOD.replace('["P-1", "P-2"]', f'"{name}"'), encoding="utf-8")
    if content is not None:
        (tmp_path / name).write_bytes(content)
    return load_spec(file).campaign.publishers


@pytest.mark.parametrize(
    "content",
    [
        b"P-1\nP-2",
        b"\xef\xbb\xbfP-1\r\nP-2\r\n",
        b"# public\n\n  P-1\t\n   \n#P-3\nP-2\n",
        b"P-1\rP-2\r",
    ],
    ids=["plain", "windows", "comments", "old-mac"],
)
def test_one_name_a_line(content: bytes, tmp_path: Path) -> None:
    assert listed(tmp_path, content) == ("P-1", "P-2")


def test_a_name_may_hold_anything_that_is_seen(tmp_path: Path) -> None:
    assert listed(tmp_path, 'a,b\n"x" #1\nübung\n'.encode()) == ("a,b", '"x" #1', "übung")


def test_the_path_starts_at_the_campaign_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lists").mkdir()
    monkeypatch.chdir(tmp_path / "lists")
    assert listed(tmp_path, b"P-9\n", "lists/names.csv") == ("P-9",)


@given(st.lists(NAMES, min_size=1, unique=True))
def test_a_file_says_what_a_list_says(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    kept = [name for name in names if name not in ("other", "(all)")] or ["P-1"]
    folder = tmp_path_factory.mktemp("lists")
    assert listed(folder, "\n".join(kept).encode()) == tuple(kept)


WRONG = [
    (None, "the file cannot be read (No such file or directory). Check the path, or give a list"),
    (b"", "the file has no names. Write one a line"),
    (b"# nothing\n\n", "the file has no names. Write one a line"),
    (b"PAR1\x00\xff\xfe", "the file is not text in UTF-8 (byte 6). Save it as UTF-8"),
    ("P-1\n".encode("utf-16"), "the file is not text in UTF-8 (byte 1). Save it as UTF-8"),
    (b"P-1\nP\x00-2\n", "line 2, 'P\\x00-2': expected no line breaks or other control characters"),
    ("P-1\nP\u2028Q\n".encode(), "line 2, 'P\\u2028Q': expected no line breaks"),
    (b"P-1\n" * 2_500_000, "the file has more than 1,000,000 bytes. Check that it is a list"),
    (b"P-1\n# x\nP-2\nP-1 \n", "line 4 repeats 'P-1' of line 1. Remove one"),
    (b"P-1\n\n" + b"x" * 201, f"line 3, '{'x' * 60}...': expected a length of at most 200"),
    (b"P-1\nother\n", "publishers lists 'other', which is kept for everything that is not listed"),
]


@pytest.mark.parametrize(("content", "message"), WRONG, ids=range(len(WRONG)))
def test_each_wrong_list_is_explained(content: bytes | None, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        listed(tmp_path, content)
    assert message in str(refused.value)
    assert str(tmp_path / "campaign.toml") in str(refused.value)
    assert len(str(refused.value)) < 600
    (problem,) = refused.value.problems
    assert problem.path == "[campaign] publishers"
    if "other" not in message:
        assert problem.value == repr(str(tmp_path / "names.txt"))


def test_a_folder_is_no_list(tmp_path: Path) -> None:
    (tmp_path / "names.txt").mkdir()
    with pytest.raises(SpecError, match="the file cannot be read"):
        listed(tmp_path, None)


def test_no_name_of_a_file(tmp_path: Path) -> None:
    """An empty text, and one that no file can be named."""
    for name in ("", "a\\u0000b"):
        with pytest.raises(SpecError, match="the file cannot be read"):
            listed(tmp_path, None, name)
