"""Bodies are read within their limits, whatever they claim, and taken apart line by line."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from adsbpc.service.clock import now_us
from adsbpc.service.http.bodies import JSON, read_body
from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest.bodies import NDJSON, check_body
from adsbpc.service.ingest.rows import Checked
from adsbpc.service.settings import IngestSection
from tests.effort import examples
from tests.service.clocks import SetClock
from tests.service.pushed import IMPRESSION, lines, numbered

LIMITS = IngestSection(max_body_bytes=2_048, max_unpacked_bytes=8_192, max_rows=20)
NOW_US = now_us(SetClock())


class Pushed:
    """A request whose body comes in chunks; says how many of them were asked for."""

    def __init__(self, chunks: Iterator[bytes], **headers: str) -> None:
        self.asked = 0
        self._chunks = chunks
        listed = [
            (name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()
        ]
        self._request = Request({"type": "http", "headers": listed}, self._receive)

    async def _receive(self) -> dict[str, Any]:
        self.asked += 1
        chunk = next(self._chunks, None)
        return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

    def read(self, limits: IngestSection = LIMITS) -> bytes:
        return asyncio.run(read_body(self._request, limits))


def read(*chunks: bytes, **headers: str) -> bytes:
    return Pushed(iter(chunks), **headers).read()


def refusal(*chunks: bytes, **headers: str) -> Problem:
    with pytest.raises(Problem) as caught:
        read(*chunks, **headers)
    assert caught.value.to_do
    return caught.value


def checked(body: bytes, media_type: str = NDJSON, limits: IngestSection = LIMITS) -> Checked:
    return check_body(body, media_type, "impressions", "P-1", NOW_US, limits)


def test_a_body_is_what_was_sent() -> None:
    assert read(b"ab", b"", b"c") == b"abc"
    assert read(b"ab", content_length="2") == b"ab"
    assert read() == b""
    assert read(b"x" * 2_048) == b"x" * 2_048


def test_a_body_that_says_it_is_too_large_is_not_read() -> None:
    pushed = Pushed(iter([b"x"] * 5), content_length=str(10 * 2**30))
    with pytest.raises(Problem) as caught:
        pushed.read()
    assert caught.value.status == 413
    assert "[ingest] max_body_bytes" in caught.value.detail
    assert pushed.asked == 0


@pytest.mark.parametrize("length", ["", "5", "-1", "1e9", "²", "9" * 5_000])
def test_a_body_that_lies_about_its_size_is_read_up_to_the_limit(length: str) -> None:
    pushed = Pushed(iter([b"x" * 1_000] * 1_000), content_length=length)
    with pytest.raises(Problem) as caught:
        pushed.read()
    assert caught.value.status == 413
    assert pushed.asked <= 3


@given(st.binary(max_size=8_192), st.integers(1, 500))
def test_gzip_is_unpacked_in_any_chunks(body: bytes, step: int) -> None:
    packed = gzip.compress(body)
    if len(packed) > 2_048:
        return
    chunks = [packed[at : at + step] for at in range(0, len(packed), step)]
    assert read(*chunks, content_encoding="GZIP ") == body


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = gzip.compress(bytes(200 * 2**20), 9)
    limits = IngestSection(max_body_bytes=2**20, max_unpacked_bytes=2**20)
    tracemalloc.start()
    with pytest.raises(Problem) as caught:
        Pushed(iter([bomb]), content_encoding="gzip").read(limits)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.status == 413
    assert "[ingest] max_unpacked_bytes" in caught.value.detail
    assert peak < 5 * 2**20


def test_what_unpacks_to_the_limit_is_taken() -> None:
    assert len(read(gzip.compress(bytes(8_192)), content_encoding="gzip")) == 8_192
    assert refusal(gzip.compress(bytes(8_193)), content_encoding="gzip").status == 413


PACKED = gzip.compress(b"some rows that are packed", mtime=0)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"no gzip", PACKED[:-1], PACKED[:5], PACKED + b"x", PACKED + PACKED,
        PACKED[:-8] + bytes(8), zlib.compress(b"not gzip"),
    ],
)  # fmt: skip
def test_broken_gzip_is_refused(body: bytes) -> None:
    assert refusal(body, content_encoding="gzip").status == 400
    # In one chunk, or in many.
    assert refusal(*(bytes([byte]) for byte in body), content_encoding="gzip").status == 400


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd", "identity, gzip", ""])
def test_other_encodings_are_refused(encoding: str) -> None:
    found = refusal(b"x", content_encoding=encoding)
    assert found.status == 415
    assert found.headers == {"Accept-Encoding": "gzip"}


@pytest.mark.parametrize("media_type", ["", "text/csv", "application/jsonx", "*/*", "x" * 5_000])
def test_other_media_types_are_refused(media_type: str) -> None:
    with pytest.raises(Problem) as caught:
        checked(b"", media_type)
    assert caught.value.status == 415
    assert NDJSON in caught.value.headers["Accept"]
    assert len(caught.value.detail) < 200


def test_media_types_may_have_parameters() -> None:
    body = lines([IMPRESSION])
    assert checked(body, "Application/X-NDJSON; charset=utf-8").table.num_rows == 1


@pytest.mark.parametrize(
    ("body", "good", "bad"),
    [
        (b"", 0, []),
        (b"\n \r\n\n", 0, []),
        (lines(numbered(1, 3)) + b"\n", 3, []),
        (lines(numbered(1, 3)).replace(b"\n", b"\r\n"), 3, []),
        (lines(numbered(1, 2)).replace(b"\n", b"\n\n \n"), 2, []),
        (b"  " + lines(numbered(1, 3)), 3, []),
        (lines(numbered(1, 3)).replace(b"\n", b"\n\t"), 3, []),
        (lines(numbered(1, 2)) + b"\n{", 2, [2]),
        (b"\xff\n" + lines(numbered(1, 2)), 2, [0]),
        (lines([IMPRESSION]) + b"\n" + lines([IMPRESSION]).replace(b"u1", b"\xff"), 1, [1]),
        (lines([IMPRESSION]) + b"\n" + lines([IMPRESSION]).replace(b"u1", b"\\ud800"), 1, [1]),
        (lines([IMPRESSION]) + b"\n" + lines([IMPRESSION]).replace(b"u1", b"\\udc00"), 1, [1]),
        (b"\xef\xbb\xbf" + lines([IMPRESSION]), 0, [0]),
    ],
)
def test_lines_are_rows(body: bytes, good: int, bad: list[int]) -> None:
    found = checked(body)
    assert (found.table.num_rows, list(found.quarantined)) == (good, bad)
    assert set(found.quarantined.values()) <= {"not valid JSON"}


ROW = lines([IMPRESSION])


@pytest.mark.parametrize(
    "body",
    [
        # Two rows on a line, and a row on two lines.
        ROW + ROW + b"\n" + ROW.replace(b", ", b",\n", 1),
        ROW + b"," + ROW + b"\n" + ROW.replace(b", ", b",\n", 1),
        # A brace at the start of a line that belongs to the row above.
        b'{"user_id": [{}\n{}]}\n' + ROW + b" " + ROW,
        b'{"user_id":\n{}}\n' + ROW + b" " + ROW,
        b'{"user_id": "a\n{b"}\n' + ROW + b" " + ROW,
    ],
)
def test_a_line_is_no_more_and_no_less_than_a_row(body: bytes) -> None:
    found = checked(body)
    assert found.rows == body.count(b"\n") + 1
    assert found.table.num_rows == 0


FRAGMENTS = st.sampled_from(
    [
        ROW, ROW, ROW, b"\n", b"\n", b"{", b"}", b",", b"[", b"]", b'"', b"\\", b" ", b"\0",
        b"\xff", b'{"user_id": null}', b'"kind": "view"', b'{"value": NaN}', b"\\u0000",
        b"\r\n", b"{}",
        ROW.replace(b'"u1"', b'"\\ud83d\\ude00"'), ROW.replace(b'"u1"', b'"\\ud83d"'),
        ROW.replace(b'"e1"', b"null"), ROW.replace(b'"e1"', b"1"),
        ROW.replace(b"_id", b"\\u005fid"), ROW.replace(b"}", b', "user_id": "u2"}'),
        ROW.replace(b"{", b'{"x": {"y": []}, '),
        ROW.replace(b", ", b" ,\t"), ROW[:-1], ROW.replace(b"{", b"{,"), b"// " + ROW,
    ]
)  # fmt: skip


@settings(max_examples=examples(100, 1_000))
@given(st.lists(FRAGMENTS, max_size=8).map(b"".join))
def test_a_line_is_judged_the_same_alone_and_among_others(body: bytes) -> None:
    alone = [checked(line) for line in body.split(b"\n") if line.strip()]
    found = checked(body)
    assert found.rows == len(alone) == sum(each.rows for each in alone)
    assert list(found.quarantined) == [k for k, each in enumerate(alone) if each.quarantined]
    assert found.table.to_pylist() == [row for each in alone for row in each.table.to_pylist()]


def test_a_field_that_is_there_twice_has_one_value() -> None:
    """The last, as everywhere in JSON, in whichever way the batch is read."""
    twice = ROW.replace(b"}", b', "user_id": "u2"}')
    for body in (twice, twice + b"\n{"):
        assert checked(body).table["user_id"].to_pylist() == ["u2"]


def test_too_many_rows_are_refused() -> None:
    rows = numbered(1, 21)
    blank = b"\n" * 5
    assert checked(blank + lines(rows[:20]) + blank).table.num_rows == 20
    for body, media_type in (
        (lines(rows), NDJSON),
        (json.dumps(rows).encode(), JSON),
        (ROW * 700, NDJSON),
        (b"[" + b"{}," * 1_000 + b"{}]", JSON),
        (b"\n".join([ROW] * 10) + b"\n" * 20 + ROW, NDJSON),
    ):
        with pytest.raises(Problem) as caught:
            checked(body, media_type)
        assert caught.value.status == 413
        assert "[ingest] max_rows" in caught.value.detail


@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"{}", b"null", b"[]]", b'"rows"', b"\xff", b"[" * 100_000, b"[1" + b"0" * 5_000],
)
def test_what_is_no_array_is_refused(body: bytes) -> None:
    with pytest.raises(Problem) as caught:
        checked(body, JSON, IngestSection())
    assert caught.value.status == 400
    assert len(caught.value.detail) < 300


@given(st.binary(max_size=300))
def test_any_bytes_are_answered(body: bytes) -> None:
    checked(body)
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        with pytest.raises(Problem):
            checked(body, JSON)


BOMBS = """
import resource, sys
from adsbpc.service.http.bodies import JSON
from adsbpc.service.ingest.bodies import NDJSON, check_body
from adsbpc.service.http.problems import Problem
from adsbpc.service.settings import IngestSection

limits = IngestSection()
size = limits.max_unpacked_bytes
bombs = [
    (b"[" + b"{}," * (size // 3) + b"{}]", JSON),
    (b"[" + b"0.5," * (size // 4) + b"0]", JSON),
    (b"{}" * (size // 2), NDJSON),
    (b'{"x": [' + b"{}," * (size // 3) + b"{}]}", NDJSON),
    (b"{\\n" * (size // 2), NDJSON),
    (b"{}" + b"\\n" * size + b"{}", NDJSON),
    (b"\\n" * size, NDJSON),
]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for body, media_type in bombs:
    try:
        check_body(body, media_type, "impressions", "P-1", 0, limits)
    except Problem as problem:
        print(problem.status)
    else:
        print("taken")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_bodies_that_grow_in_memory_are_refused_before_they_do() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", BOMBS], check=True, capture_output=True, text=True, timeout=60
    )
    *answers, grown = ran.stdout.split()
    # Blank lines are nothing, however many.
    assert answers == ["413"] * 6 + ["taken"]
    # A copy or two of the body, and not Python objects for each of its brackets.
    assert int(grown) < 200
