"""What is kept is whole or missing, never wrong; nothing planted is run, read or deleted."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import pickle
import sqlite3
import unicodedata
from pathlib import Path

import pytest

from research.errors import StoreError
from research.store import PAGE, Store, clear, digest, key_of, prune, stats
from tests.conftest import PYTHONPATH

KEY = key_of({"work": "one"})


def sql(folder: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(folder / "cache.db")
    with connection:
        connection.execute(statement, values)
    connection.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def open_store(folder: Path, reports: list[str]) -> Store:
    return Store(folder, reports.append)


def test_what_is_put_is_found_with_its_receipt(folder: Path) -> None:
    store = Store(folder)
    ref = store.put(KEY, b"value", {"seconds": 1.5})
    assert ref == hashlib.sha256(b"value").hexdigest()
    store.close()
    found = Store(folder).find(KEY)
    assert found is not None
    assert (found.ref, found.data, found.receipt) == (ref, b"value", {"seconds": 1.5})
    assert Store(folder).find(key_of({"work": "two"})) is None


def test_its_folder_and_files_are_the_users_alone(folder: Path) -> None:
    Store(folder).put(KEY, b"value", {})
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_keys_are_the_same_for_either_unicode_form_and_any_order() -> None:
    assert key_of({"a": "é", "b": 1}) == key_of({"b": 1, "a": unicodedata.normalize("NFD", "é")})
    assert key_of({"a": "e"}) != key_of({"a": "é"})
    assert key_of({"a": 1}) == hashlib.sha256(b'{"a":1}').hexdigest()
    with pytest.raises(ValueError, match="JSON"):
        key_of({"a": float("nan")})


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_keys_do_not_depend_on_hash_seed_or_locale(seed: str, tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "from research.store import key_of; print(key_of({'b': {'y', }.pop(), 'a': 'ß'}))"
    environment = {"PYTHONHASHSEED": seed, "LC_ALL": "C", "PYTHONPATH": PYTHONPATH}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == key_of({"a": "ß", "b": "y"})


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE Cache SET value = X'00' WHERE key LIKE 'value:%'",
        "UPDATE Cache SET value = substr(value, 1, 3) WHERE key LIKE 'value:%'",
        "UPDATE Cache SET value = 'text' WHERE key LIKE 'value:%'",
        "DELETE FROM Cache WHERE key LIKE 'value:%'",
        "UPDATE Cache SET value = X'ff' || substr(value, 2) WHERE key LIKE 'trace:%'",
        "UPDATE Cache SET value = substr(value, 1, 20) WHERE key LIKE 'trace:%'",
        "UPDATE Cache SET value = X'' WHERE key LIKE 'trace:%'",
    ],
)
def test_damage_counts_as_missing_and_is_reported(folder: Path, damage: str) -> None:
    reports: list[str] = []
    store = open_store(folder, reports)
    other = store.put(key_of({"work": "two"}), b"untouched", {})
    store.put(KEY, b"value", {})
    store.close()
    sql(folder, damage + f" AND key NOT IN ('value:{other}', 'trace:{key_of({'work': 'two'})}')")
    store = open_store(folder, reports)
    assert store.find(KEY) is None
    assert len(reports) == (0 if damage.startswith("DELETE") else 1)
    assert store.find(key_of({"work": "two"})) is not None
    store.put(KEY, b"value", {})
    assert store.find(KEY) is not None


def test_a_trace_moved_to_another_key_is_damaged(folder: Path) -> None:
    reports: list[str] = []
    store = open_store(folder, reports)
    store.put(KEY, b"value", {})
    sql(folder, "UPDATE Cache SET key = ? WHERE key LIKE 'trace:%'", f"trace:{key_of('other')}")
    assert store.find(key_of("other")) is None
    assert "damaged" in reports[0]


class Bomb:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.system, (f"touch {self.mark}",)


def test_a_planted_pickle_runs_nothing(folder: Path, tmp_path: Path) -> None:
    store = Store(folder)
    store.put(KEY, b"value", {})
    bomb = pickle.dumps(Bomb(tmp_path / "ran"))
    for mode in (1, 2, 3, 4):
        sql(folder, "UPDATE Cache SET mode = ?, value = ?", mode, bomb)
        assert store.find(KEY) is None
    sql(folder, "UPDATE Cache SET raw = 0, key = ? WHERE key LIKE 'trace:%'", bomb)
    assert store.find(KEY) is None
    store.put(KEY, b"value", {})
    assert not (tmp_path / "ran").exists()


def test_a_planted_file_name_reads_and_deletes_nothing(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    store = Store(folder)
    store.put(KEY, b"value", {})
    (folder / "link").symlink_to(outside)
    for name in ("../outside", str(outside), "link"):
        sql(folder, "UPDATE Cache SET filename = ?, mode = 2", name)
        assert store.find(KEY) is None
        store.put(KEY, b"value", {})
        sql(folder, "UPDATE Cache SET filename = ?", name)
        store.put(KEY, b"other", {})
        assert outside.read_text() == "precious"


def test_a_store_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="the store can't open"):
        Store(tmp_path / "file" / "store")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "cache.db").write_bytes(b"this is no database" * 1000)
    with pytest.raises(StoreError, match="the store can't open"):
        Store(tmp_path / "bad")
    for look in (stats, clear, lambda folder: prune(folder, 0)):
        with pytest.raises(StoreError, match="the store can't be used"):
            look(tmp_path / "bad")


def test_a_full_disk_leaves_what_was_there(folder: Path) -> None:
    store = Store(folder)
    store.put(KEY, b"value", {})
    pages = store._shelf._sql("PRAGMA page_count").fetchone()[0]
    store._shelf._sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="the store can't write"):
        store.put(key_of("big"), os.urandom(1 << 20), {})
    found = store.find(KEY)
    assert found is not None
    assert found.data == b"value"
    assert store.find(key_of("big")) is None


def test_only_pages_go_when_it_is_full_oldest_first(folder: Path) -> None:
    store = Store(folder)
    refs = [store.put(key_of(n), bytes([n]) * 1000, {}, PAGE) for n in range(4)]
    paid = store.put(key_of("paid"), b"p" * 1000, {})
    for n, ref in enumerate(refs):
        sql(folder, "UPDATE Cache SET access_time = ? WHERE key = ?", n, f"value:{ref}")
    store.close()
    store = Store(folder)
    assert store.find(key_of(0)) is not None  # used now, so no longer the oldest
    store.close(limit=3500)
    store = Store(folder)
    assert [store.value(ref) is not None for ref in refs] == [True, False, False, True]
    assert store.value(paid) is not None
    store.close(limit=0)
    store = Store(folder)
    assert [store.value(ref) for ref in refs] == [None] * 4
    assert store.value(paid) is not None
    assert prune(folder, 0, everything=True) == 1


def test_stats_and_clear(folder: Path) -> None:
    store = Store(folder)
    secret = store.secret()
    store.put(key_of(1), b"x" * 10, {}, PAGE)
    store.put(key_of(2), b"y" * 20, {})
    assert {name: (count, size) for name, (count, size) in stats(folder).items() if name != "traces"} == {
        "pages": (1, 10),
        "other values": (1, 20),
    }
    clear(folder)
    assert stats(folder) == {}
    assert store.secret() == secret


def test_the_secret_stays_and_is_its_own(folder: Path, tmp_path: Path) -> None:
    store = Store(folder)
    assert len(store.secret()) == 32
    assert Store(folder).secret() == store.secret()
    assert Store(tmp_path / "other").secret() != store.secret()
    assert len(Store(None).secret()) == 32


def test_without_a_folder_it_lives_in_memory() -> None:
    store = Store(None)
    store.put(KEY, b"value", {"seconds": 1})
    found = store.find(KEY)
    assert found is not None
    assert found.data == b"value"
    store.close()


def _add_one(folder: str, path: str, times: int) -> None:
    async def work() -> None:
        store = Store(Path(folder))
        for _ in range(times):
            async with store.claim(KEY):
                number = int(Path(path).read_text())
                await asyncio.sleep(0.001)
                Path(path).write_text(str(number + 1))

    asyncio.run(work())


def test_a_claim_is_held_by_one_process_at_a_time(folder: Path, tmp_path: Path) -> None:
    Store(folder).close()
    counter = tmp_path / "counter"
    counter.write_text("0")
    context = multiprocessing.get_context("spawn")
    crowd = [context.Process(target=_add_one, args=(str(folder), str(counter), 10)) for _ in range(4)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(30)
    assert counter.read_text() == "40"


def _hold(folder: str, ready: str) -> None:
    async def work() -> None:
        async with Store(Path(folder)).claim(KEY):
            Path(ready).touch()
            await asyncio.sleep(60)

    asyncio.run(work())


async def test_a_claim_ends_with_its_owner(folder: Path, tmp_path: Path) -> None:
    store = Store(folder)
    owner = multiprocessing.get_context("spawn").Process(target=_hold, args=(str(folder), str(tmp_path / "ready")))
    owner.start()
    while not (tmp_path / "ready").exists():
        await asyncio.sleep(0.01)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), store.claim(KEY):
            pass
    owner.kill()
    owner.join(10)
    async with asyncio.timeout(5), store.claim(KEY):
        pass


def test_digest_of_text_is_of_its_utf8() -> None:
    assert digest("é") == hashlib.sha256("é".encode()).hexdigest()
