"""Every decision is a whole line of its own, whatever is in it and whoever else writes."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adsbpc.errors import ServiceError
from adsbpc.service.auth.audit import AuditLog, _lines_from_the_end
from adsbpc.service.auth.permissions import Principal, Role
from tests.service.clocks import SetClock

KEY = f"adsbpc_{'0123456789abcdef'}_{'S' * 43}"
SHOP = Principal("0123456789abcdef", Role.ADVERTISER, "shoes")
WRITER = """
import sys
from pathlib import Path
from adsbpc.service.auth.audit import AuditLog
from adsbpc.service.clock import SystemClock
log = AuditLog(Path(sys.argv[1]), SystemClock())
for number in range(300):
    log.note(None, "a", sys.argv[2] * 200, "allowed", str(number), sys.argv[2], "")
"""


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def log(tmp_path: Path, clock: SetClock) -> AuditLog:
    return AuditLog(tmp_path / "audit", clock)


def note(log: AuditLog, reason: str = "", target: str = "c1") -> None:
    log.note(SHOP, "read campaign", target, "allowed", reason, "r1", "192.0.2.1")


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which files were put on the disk; they are, really."""
    found: list[str] = []
    fsync = os.fsync

    def remember(descriptor: int) -> None:
        found.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", remember)
    return found


def test_what_a_line_says(log: AuditLog, tmp_path: Path) -> None:
    log.note(SHOP, "read campaign", "c1", "refused", "of another", "r1", "192.0.2.1")
    log.note(None, "authenticate", "", "allowed", "", "r2", "")
    lines = (tmp_path / "audit" / "2026-03-01.jsonl").read_text(encoding="ascii").splitlines()
    assert json.loads(lines[0]) == {
        "at": "2026-03-01T12:00:00.000000+00:00",
        "decision": "refused",
        "action": "read campaign",
        "target": "c1",
        "reason": "of another",
        "key_id": "0123456789abcdef",
        "role": "advertiser",
        "subject": "shoes",
        "request": "r1",
        "address": "192.0.2.1",
    }
    nobody = json.loads(lines[1])
    assert (nobody["key_id"], nobody["role"], nobody["subject"]) == ("", "", "")
    assert log.newest(10) == [nobody, json.loads(lines[0])]


@given(st.lists(st.text(), min_size=1, max_size=5))
@example(["\n", "\r\n", "\x00\x1b[2J", "\x7f", "\x85\u2028\u2029", "\ud800", '"}\n{"', "\\"])
def test_no_text_breaks_a_line(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("audit")
    log = AuditLog(folder, SetClock())
    for text in texts:
        log.note(Principal(text, Role.READER, text), text, text, "allowed", text, text, text)
    content = (folder / "2026-03-01.jsonl").read_bytes()
    assert set(content) <= {ord("\n"), *range(32, 127)}
    assert content.count(b"\n") == len(content.splitlines()) == len(texts)
    for entry, text in zip(log.newest(100), reversed(texts), strict=True):
        free = ("action", "target", "reason", "key_id", "subject", "request", "address")
        assert {entry[name] for name in free} == {text[:300]}


def test_long_fields_are_cut(log: AuditLog, tmp_path: Path) -> None:
    long = "\U0001f511" * 1_000_000
    log.note(Principal(long, Role.READER, long), long, long, "refused", long, long, long)
    assert (tmp_path / "audit" / "2026-03-01.jsonl").stat().st_size < 30_000
    [entry] = log.newest(1)
    assert entry["target"] == "\U0001f511" * 300


@given(st.integers(0, 320))
def test_a_key_that_came_in_by_mistake_is_not_kept(
    tmp_path_factory: pytest.TempPathFactory, before: int
) -> None:
    folder = tmp_path_factory.mktemp("audit")
    log = AuditLog(folder, SetClock())
    text = "/" * before + KEY + "/x"
    log.note(Principal(text, Role.READER, text), text, text, "allowed", text, text, text)
    assert "S" not in (folder / "2026-03-01.jsonl").read_text(encoding="ascii")
    assert log.newest(1)[0]["target"].startswith("/" * min(before, 300))


def test_each_day_has_its_file_in_utc(log: AuditLog, clock: SetClock, tmp_path: Path) -> None:
    clock.moment = datetime(2026, 3, 1, 23, 59, 59, 999_999, UTC)
    note(log, "last")
    clock.pass_seconds(0.000001)
    note(log, "first")
    # The same night, told by a clock of another zone.
    clock.moment = datetime(2026, 3, 3, 0, 30, tzinfo=timezone(timedelta(hours=1)))
    note(log, "zoned")
    assert log.days() == ["2026-03-01", "2026-03-02"]
    assert [entry["reason"] for entry in log.newest(9)] == ["zoned", "first", "last"]
    assert log.newest(1)[0]["at"] == "2026-03-02T23:30:00.000000+00:00"
    (tmp_path / "audit" / "notes.txt").touch()
    (tmp_path / "audit" / "2026-03-01.jsonl.gz").touch()
    assert log.days() == ["2026-03-01", "2026-03-02"]


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        note(AuditLog(tmp_path / "a" / "audit", SetClock()))
    finally:
        os.umask(before)
    folder = tmp_path / "a" / "audit"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()] == [0o600]


def test_refusals_are_on_the_disk(log: AuditLog, synced: list[str]) -> None:
    note(log)
    # The name of the new file.
    assert synced == ["audit"]
    note(log)
    assert synced == ["audit"]
    # Anybody can cause these, as many as they like: nobody waits for the disk.
    log.note(None, "authenticate", "", "refused", "no key", "r1", "")
    assert synced == ["audit"]
    log.note(SHOP, "manage keys", "", "refused", "not this role's", "r1", "")
    assert synced == ["audit", "2026-03-01.jsonl"]
    log.note(SHOP, "manage keys", "", "allowed", "", "r1", "", durable=True)
    assert synced == ["audit", "2026-03-01.jsonl", "2026-03-01.jsonl"]


def test_threads_write_whole_lines(log: AuditLog) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: note(log, f"{n}", target="x" * n), range(400)))
    found = log.newest(1_000)
    assert sorted(int(entry["reason"]) for entry in found) == list(range(400))
    assert all(entry["target"] == "x" * min(int(entry["reason"]), 300) for entry in found)
    left = []
    for descriptor in os.scandir("/proc/self/fd"):
        # Servers of other tests in this process close theirs meanwhile.
        with suppress(FileNotFoundError):
            left.append(Path(descriptor.path).readlink().name)
    assert not [name for name in left if name.endswith(".jsonl")]


def test_servers_write_whole_lines(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), letter]) for letter in "abc"
    ]
    assert [writer.wait(30) for writer in writers] == [0, 0, 0]
    found = AuditLog(tmp_path, SetClock()).newest(10_000)
    for letter in "abc":
        own = [entry for entry in found if entry["request"] == letter]
        # Newest first, and each writer in its own order.
        assert [int(entry["reason"]) for entry in own] == list(reversed(range(300)))
        assert {entry["target"] for entry in own} == {letter * 200}


@given(cut=st.integers(1, 150))
def test_half_a_line_swallows_no_other(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    log = AuditLog(tmp_path_factory.mktemp("audit"), SetClock())
    for reason in ("whole", "half"):
        note(log, reason)
    file = log._folder / "2026-03-01.jsonl"
    os.truncate(file, file.stat().st_size - cut)
    note(log, "after")
    note(log, "last")
    # Without its line break alone, the line is still whole.
    kept = ["half"] if cut == 1 else []
    assert [entry["reason"] for entry in log.newest(9)] == ["last", "after", *kept, "whole"]


def test_damaged_lines_are_passed_over(log: AuditLog) -> None:
    note(log, "one")
    file = log._folder / "2026-03-01.jsonl"
    with file.open("ab") as stream:
        stream.write(b"\n\x00\xff\n[1]\n7\nnull\n{}x\n")
    note(log, "two")
    assert [entry["reason"] for entry in log.newest(9)] == ["two", "one"]


@given(
    sizes=st.lists(st.integers(0, 300), max_size=30),
    days=st.lists(st.integers(0, 3), max_size=30),
    limit=st.integers(-1, 40),
)
def test_the_newest_lines_are_the_end_of_all(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], days: list[int], limit: int
) -> None:
    clock = SetClock()
    log = AuditLog(tmp_path_factory.mktemp("audit"), clock)
    written = []
    for number, (size, passed) in enumerate(zip(sizes, days, strict=False)):
        clock.pass_seconds(86_400 * passed)
        note(log, f"{number}", target="x" * size)
        written.append(f"{number}")
    newest = [entry["reason"] for entry in log.newest(limit)]
    assert newest == written[::-1][: max(limit, 0)]


def test_the_newest_of_a_large_file_are_read_from_its_end(log: AuditLog) -> None:
    """Lines cross the borders of blocks, and the file is larger than many blocks."""
    note(log, "0")
    file = log._folder / "2026-03-01.jsonl"
    line = file.read_bytes()
    with file.open("ab") as stream:
        for number in range(1, 5_000):
            stream.write(line.replace(b'"0"', b'"%d"' % number))
    assert [int(entry["reason"]) for entry in log.newest(4_999)] == list(range(4_999, 0, -1))
    # A hole of 10 GB before the last line: who reads it from its start never comes to an end.
    os.truncate(file, 10 * 2**30)
    note(log, "last")
    assert [entry["reason"] for entry in log.newest(1)] == ["last"]


def test_a_line_without_end_is_no_trap(log: AuditLog) -> None:
    note(log, "first")
    file = log._folder / "2026-03-01.jsonl"
    os.truncate(file, 20 * 2**20)
    note(log, "last")
    assert [entry["reason"] for entry in log.newest(9)] == ["last", "first"]
    assert max(len(line) for line in _lines_from_the_end(file)) < 200_000


def test_an_empty_log(log: AuditLog) -> None:
    assert log.days() == []
    assert log.newest(5) == []
    assert log.newest(-1) == []


def test_what_cannot_be_written_is_told(log: AuditLog, tmp_path: Path) -> None:
    (tmp_path / "audit").rmdir()
    with pytest.raises(ServiceError, match=r"audit log .*2026-03-01\.jsonl: .*No such file"):
        note(log)
    with pytest.raises(ServiceError, match=r"audit log .*: cannot be used"):
        log.newest(1)
    (tmp_path / "file").touch()
    with pytest.raises(ServiceError, match=r"audit log .*: cannot be used"):
        AuditLog(tmp_path / "file" / "audit", SetClock())


def test_a_full_disk_is_told_and_the_next_line_is_whole(log: AuditLog, tmp_path: Path) -> None:
    note(log, "before")
    size = (tmp_path / "audit" / "2026-03-01.jsonl").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, limits[1]))
    try:
        with pytest.raises(ServiceError, match=r"only 50 of \d+ bytes were written"):
            note(log, "lost")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    note(log, "after")
    assert [entry["reason"] for entry in log.newest(9)] == ["after", "before"]
