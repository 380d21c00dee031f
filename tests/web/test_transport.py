"""The HTTP client against a server that misbehaves: deadlines, caps, codings, certificates, pinned addresses."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from research import network
from research.errors import ResearchError
from research.network import look_up
from research.transport import (
    BadAddress,
    BadCoding,
    Caps,
    Client,
    Incomplete,
    TimedOut,
    TooLarge,
    TransportError,
    Unreachable,
    Untrusted,
)
from tests import faults
from tests.conftest import PYTHONPATH
from tests.faults import FaultServer

BODY = b"<p>" + b"Lorem ipsum. " * 500 + b"</p>"


async def test_a_request_sends_what_it_was_given_and_no_more() -> None:
    async with FaultServer({"/x": faults.reply(b"hello", headers={"Set-Cookie": "a=b"})}) as server:
        async with Client(headers={"User-Agent": "research/0.1"}) as client:
            for _ in range(2):
                reply = await client.request(
                    "POST", server.url("/x?a=1"), deadline=5, json={"q": "ü"}, headers={"X-Key": "k"}
                )
                assert (reply.status, reply.body) == (200, b"hello")
                assert reply.headers["content-TYPE"] == "text/html; charset=utf-8"
        assert server.connections == 1  # kept alive
        for request in server.requests:
            assert dict(request.headers) == {
                "host": f"127.0.0.2:{server.port}",
                "user-agent": "research/0.1",
                "accept-encoding": "gzip",
                "x-key": "k",
                "content-type": "application/json",
                "content-length": str(len(request.body)),
            }
            assert json.loads(request.body) == {"q": "ü"}


async def test_user_info_becomes_basic_authentication() -> None:
    async with FaultServer({"/": faults.reply(b"x")}) as server, Client() as client:
        await client.request("GET", server.url().replace("//", "//Aladdin:open%20sesame@"), deadline=5)
        assert server.requests[0].header("authorization") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="  # RFC 7617's own


async def test_redirects_are_not_followed() -> None:
    async with FaultServer({"/x": faults.redirect("/y")}) as server, Client() as client:
        reply = await client.request("GET", server.url("/x"), deadline=5)
        assert (reply.status, reply.headers["location"]) == (302, "/y")
        assert server.paths() == ["/x"]


async def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FaultServer({}) as proxy, FaultServer({"/": faults.reply(b"direct")}) as server, Client() as client:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url())
        assert (await client.request("GET", server.url(), deadline=5)).body == b"direct"
        assert proxy.connections == 0


@pytest.mark.parametrize("path", ["/drip", "/hang", "/hang-after-head"])
async def test_a_deadline_ends_what_never_ends(path: str) -> None:
    routes = {
        "/drip": faults.drip(b"x" * 1000, every=0.05),
        "/hang": faults.hang(),
        "/hang-after-head": faults.raw(faults.head(200, {"Content-Length": "10"}), close=False),
        "/fine": faults.reply(b"fine", after=0.2),
    }
    async with FaultServer(routes) as server, Client() as client:
        fine = asyncio.create_task(client.request("GET", server.url("/fine"), deadline=5))
        with pytest.raises(TimedOut, match=r"within 0\.4 s") as error:
            await client.request("GET", server.url(path), deadline=0.4)
        assert error.value.passing
        assert (await fine).body == b"fine"


@pytest.mark.parametrize(
    "act",
    [
        faults.short(BODY),
        faults.chunked(BODY, complete=False),
        faults.gzipped(BODY, cut=9),
        faults.gzipped(BODY, cut=4),
        faults.reset(),
        faults.reset(faults.head(200, {"Content-Length": "100"}) + b"some"),
        faults.raw(b""),
        faults.raw(b"HTTP/1.1 200 OK\r\nContent-Le"),
        faults.raw(b"nonsense\r\n\r\n"),
        faults.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabcdefg"),
        faults.raw(faults.head(200, {"Transfer-Encoding": "chunked"}) + b"zz\r\nabc\r\n0\r\n\r\n"),
    ],
)
async def test_a_body_that_is_cut_short_is_no_body(act: faults.Act) -> None:
    async with FaultServer({"/": act}) as server, Client() as client:
        with pytest.raises(Incomplete) as error:
            await client.request("GET", server.url(), deadline=5)
        assert error.value.passing


@pytest.mark.parametrize("act", [faults.chunked(BODY), faults.gzipped(BODY), faults.gzipped(BODY, coding="x-gzip")])
async def test_sound_bodies_are_whole(act: faults.Act) -> None:
    async with FaultServer({"/": act}) as server, Client() as client:
        assert (await client.request("GET", server.url(), deadline=5)).body == BODY


async def test_gzip_of_several_members_and_with_padding() -> None:
    import gzip

    packed = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0"
    act = faults.reply(packed, headers={"Content-Encoding": "gzip"})
    nothing = faults.reply(b"", headers={"Content-Encoding": "gzip"})
    async with FaultServer({"/": act, "/nothing": nothing}) as server, Client() as client:
        assert (await client.request("GET", server.url(), deadline=5)).body == b"one two"
        assert (await client.request("GET", server.url("/nothing"), deadline=5)).body == b""


@pytest.mark.parametrize("coding", ["br", "zstd", "deflate", "gzip, gzip", "br, gzip", "gzip, identity", "compress"])
async def test_other_and_stacked_codings_are_refused(coding: str) -> None:
    act = faults.reply(BODY, headers={"Content-Encoding": coding})
    async with FaultServer({"/": act}) as server, Client() as client:
        with pytest.raises(BadCoding):
            await client.request("GET", server.url(), deadline=5)


async def test_repeated_coding_headers_are_stacked_codings() -> None:
    body = faults.head(200, {"Content-Encoding": "gzip", "content-encoding": "gzip", "Content-Length": "1"}) + b"x"
    async with FaultServer({"/": faults.raw(body)}) as server, Client() as client:
        with pytest.raises(BadCoding):
            await client.request("GET", server.url(), deadline=5)


async def test_what_says_gzip_and_is_not_is_refused() -> None:
    act = faults.reply(BODY, headers={"Content-Encoding": "gzip"})
    async with FaultServer({"/": act}) as server, Client() as client:
        with pytest.raises(BadCoding):
            await client.request("GET", server.url(), deadline=5)


async def test_a_bomb_is_refused_in_little_memory() -> None:
    async with FaultServer({"/": faults.bomb(1 << 30)}) as server, Client() as client:
        tracemalloc.start()
        try:
            with pytest.raises(TooLarge):
                await client.request("GET", server.url(), deadline=10, caps=Caps(decoded=20_000_000))
            assert tracemalloc.get_traced_memory()[1] < 64_000_000
        finally:
            tracemalloc.stop()


async def test_bytes_on_the_wire_are_capped() -> None:
    async with FaultServer({"/": faults.endless(b"x" * 10_000)}) as server, Client() as client:
        with pytest.raises(TooLarge):
            await client.request("GET", server.url(), deadline=10, caps=Caps(wire=100_000))


async def test_a_stream_can_be_left_early_and_its_first_piece_is_small() -> None:
    async with FaultServer({"/": faults.endless(b"x" * 10_000)}) as server, Client() as client:
        async with client.stream("GET", server.url(), deadline=5) as stream:
            pieces = stream.pieces()
            first = await anext(pieces)
            assert 0 < len(first) <= network.FIRST_READ
            assert stream.wire == stream.decoded == len(first)
            await pieces.aclose()  # type: ignore[attr-defined]
        for _ in range(100):
            if server.active == 0:
                break
            await asyncio.sleep(0.02)
        assert server.active == 0  # the connection was closed


async def test_a_stream_gives_pieces_as_they_come() -> None:
    async def act(writer: asyncio.StreamWriter, request: faults.Received) -> None:
        writer.write(faults.head(200, {"Transfer-Encoding": "chunked"}))
        for piece in (b"data: 1\n\n", b"data: 2\n\n"):
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await going_on.wait()
        writer.write(b"0\r\n\r\n")

    going_on = asyncio.Event()
    async with (
        FaultServer({"/": act}) as server,
        Client() as client,
        client.stream("GET", server.url(), deadline=5) as stream,
    ):
        pieces = stream.pieces()
        assert await anext(pieces) == b"data: 1\n\n"
        going_on.set()
        assert [piece async for piece in pieces] == [b"data: 2\n\n"]


async def test_cancelling_closes_the_connection() -> None:
    async with FaultServer({"/": faults.hang()}) as server, Client() as client:
        task = asyncio.create_task(client.request("GET", server.url(), deadline=60))
        await server.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_nobody_listens() -> None:
    async with FaultServer({}) as server:
        gone = server.url()
    async with Client() as client:
        with pytest.raises(Unreachable) as error:
            await client.request("GET", gone, deadline=5)
        assert error.value.passing


async def test_messages_hold_no_key() -> None:
    async with FaultServer({}) as server, Client() as client:
        url = server.url("/path?key=canary#canary").replace("//", "//canary:canary@")
        server.routes["/path"] = faults.raw(b"")
        with pytest.raises(TransportError) as error:
            await client.request("GET", url, deadline=5)
        assert "/path" in str(error.value)
        assert "canary" not in str(error.value)


@pytest.mark.parametrize("url", ["", "x", "http://", "http://[::1", "ftp://127.0.0.1/", "http://127.0.0.1:x/", "/x"])
async def test_what_is_no_url_is_told(url: str) -> None:
    async with Client() as client:
        with pytest.raises(BadAddress):
            await client.request("GET", url, deadline=5)


# Pinned addresses


async def test_only_what_the_look_up_gave_is_dialled() -> None:
    asked: list[tuple[str, int]] = []

    async def addresses(host: str, port: int) -> Sequence[str]:
        asked.append((host, port))
        return ["127.0.0.2"]

    async with FaultServer({"/": faults.reply(b"pinned")}) as server, Client(addresses=addresses) as client:
        url = server.url(host="rebinding.example")
        assert (await client.request("GET", url, deadline=5)).body == b"pinned"
        assert server.requests[0].header("host") == f"rebinding.example:{server.port}"
        assert asked == [("rebinding.example", server.port)]


async def test_connections_are_not_shared_between_names_of_one_address() -> None:
    asked: list[str] = []

    async def addresses(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.2"]

    async with FaultServer({"/": faults.reply(b"x")}) as server, Client(addresses=addresses) as client:
        for host in ("one.example", "two.example", "one.example"):
            await client.request("GET", server.url(host=host), deadline=5)
        assert asked == ["one.example", "two.example"]
        assert server.connections == 2


async def test_a_policys_refusal_comes_through_before_any_connection() -> None:
    class Refused(ResearchError):
        pass

    async def addresses(host: str, port: int) -> Sequence[str]:
        raise Refused("no")

    async with FaultServer({}) as server, Client(addresses=addresses) as client:
        with pytest.raises(Refused):
            await client.request("GET", server.url(), deadline=5)
        assert server.connections == 0


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async def addresses(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.3", "127.0.0.2"]

    async with FaultServer({"/": faults.reply(b"second")}) as server, Client(addresses=addresses) as client:
        assert (await client.request("GET", server.url(host="two.example"), deadline=5)).body == b"second"


async def test_the_systems_look_up() -> None:
    assert await look_up("127.0.0.1", 80) == ["127.0.0.1"]
    assert "127.0.0.1" in await look_up("localhost", 80)
    for name in ("", "a" * 70 + ".example", "with..dots.example"):
        with pytest.raises(OSError, match="could not be resolved"):
            await look_up(name, 80)


async def test_a_resolver_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr(network.socket, "getaddrinfo", lambda *a, **k: released.wait(20) and [])
    monkeypatch.setattr(network, "LOOK_UP_DEADLINE", 0.1)
    try:
        with pytest.raises(OSError, match="could not be resolved"):
            await look_up("slow.example", 80)
        async with Client() as client:
            with pytest.raises(TimedOut):
                await client.request("GET", "http://slow.example/", deadline=0.05)
    finally:
        released.set()


@contextmanager
def served(answer: Callable[[socket.socket], None], host: str = "127.0.0.2") -> Iterator[int]:
    """The port of a server in a thread of its own, so that it goes on while the event loop is busy."""
    with socket.create_server((host, 0)) as listener:

        def run() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    connection.settimeout(10)
                    answer(connection)

        threading.Thread(target=run, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


async def test_a_connection_that_ended_while_the_loop_was_busy_is_not_used_again() -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(faults.head(200, {"Content-Length": "5"}) + b"hello")

    with served(answer) as port:
        async with Client() as client:
            for _ in range(3):
                assert (await client.request("GET", f"http://127.0.0.2:{port}/", deadline=5)).body == b"hello"
                time.sleep(0.02)


async def test_what_stands_around_chunks_is_capped_too() -> None:
    around = b"1;" + b"x" * 8_000 + b"\r\na\r\n"
    head = faults.head(200, {"Content-Type": "text/html", "Transfer-Encoding": "chunked"})
    async with FaultServer({"/": faults.raw(head + around * 500 + b"0\r\n\r\n")}) as server, Client() as client:
        with pytest.raises(TooLarge):
            await client.request("GET", server.url(), deadline=5, caps=Caps(wire=1_000_000))


async def test_a_body_byte_by_byte_leaves_others_their_turn() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with (
        FaultServer({"/": faults.chunked(b"a" * 6_400, size=1)}) as server,
        Client() as client,
        client.stream("GET", server.url(), deadline=5) as stream,
    ):
        first = await anext(pieces := stream.pieces())
        await asyncio.sleep(0.05)  # the rest has come in
        task = asyncio.ensure_future(others())
        assert first + b"".join([piece async for piece in pieces]) == b"a" * 6_400
        task.cancel()
    assert turns >= 6_400 // 64 - 2


async def test_an_early_answer_is_read_although_the_request_is_not_taken() -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(1_000)
        connection.sendall(faults.head(413, {"Content-Length": "3"}) + b"big")
        time.sleep(1)

    with served(answer) as port:
        async with Client() as client:
            began = time.monotonic()
            reply = await client.request("POST", f"http://127.0.0.2:{port}/", deadline=5, json="x" * 20_000_000)
            assert (reply.status, reply.body) == (413, b"big")
            assert time.monotonic() - began < 4


async def test_an_address_that_swallows_connections_does_not_take_the_whole_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "NEXT_ADDRESS", 0.1)
    with socket.socket() as full:
        async with FaultServer({"/": faults.reply(b"hello")}) as server:
            full.bind(("127.0.0.3", server.port))
            full.listen(0)
            waiting = [socket.socket() for _ in range(4)]
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(("127.0.0.3", server.port))

            async def both(host: str, port: int) -> Sequence[str]:
                return ["127.0.0.3", "127.0.0.2"]

            async with Client(addresses=both) as client:
                assert (await client.request("GET", server.url(), deadline=5)).body == b"hello"
            for one in waiting:
                one.close()


async def test_a_port_that_is_none() -> None:
    async with Client() as client:
        with pytest.raises(Unreachable):
            await client.request("GET", "http://127.0.0.1:99999/", deadline=5)


# Certificates


AUTHORITY = """
[ca]
default_ca = own
[own]
database = index.txt
new_certs_dir = .
default_md = sha256
policy = any
copy_extensions = copy
rand_serial = yes
[any]
commonName = supplied
"""


def _certificate(folder: Path, host: str, end: str) -> tuple[Path, Path]:
    """A self-signed certificate for `host`, valid from 2020 to `end`, and its key, made by the system's openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl command on this machine")
    (folder / "ca.cnf").write_text(AUTHORITY)
    (folder / "index.txt").touch()
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem"]
    names = ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"]
    ca = ["openssl", "ca", "-config", "ca.cnf", "-batch", "-selfsign", "-keyfile", "key.pem", "-in", "asked.csr"]
    dates = ["-startdate", "20200101000000Z", "-enddate", end]
    for command in (
        ["openssl", "req", *curve, *names, "-out", "asked.csr"],
        [*ca, *dates, "-out", "certificate.pem", "-notext"],
    ):
        subprocess.run(command, cwd=folder, capture_output=True, timeout=30, check=True)
    return folder / "certificate.pem", folder / "key.pem"


def _tls(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


async def _loopback(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.2"]


async def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = _certificate(tmp_path, "secure.example", end="20990101000000Z")
    async with FaultServer({"/": faults.reply(b"secret")}, tls=_tls(*pair)) as server:
        async with Client(addresses=_loopback) as client:
            with pytest.raises(Untrusted) as error:  # self-signed
                await client.request("GET", server.url(host="secure.example"), deadline=5)
            assert not error.value.passing
        monkeypatch.setenv("SSL_CERT_FILE", str(pair[0]))
        async with Client(addresses=_loopback) as client:
            reply = await client.request("GET", server.url(host="secure.example"), deadline=5)
            assert reply.body == b"secret"
            with pytest.raises(Untrusted):  # trusted, but for another host
                await client.request("GET", server.url(host="other.example"), deadline=5)
    assert len(server.requests) == 1


async def test_a_body_without_a_length_is_whole_only_with_a_farewell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = _certificate(tmp_path, "secure.example", end="20990101000000Z")
    monkeypatch.setenv("SSL_CERT_FILE", str(pair[0]))
    farewell = [True, False]

    def answer(connection: socket.socket) -> None:
        with _tls(*pair).wrap_socket(connection, server_side=True) as channel:
            channel.recv(65_536)
            channel.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello")
            if farewell.pop(0):
                channel.unwrap()

    with served(answer) as port:
        async with Client(addresses=_loopback) as client:
            url = f"https://secure.example:{port}/"
            assert (await client.request("GET", url, deadline=5)).body == b"hello"
            with pytest.raises(Incomplete):
                await client.request("GET", url, deadline=5)


async def test_expired_certificates_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = _certificate(tmp_path, "secure.example", end="20200201000000Z")
    monkeypatch.setenv("SSL_CERT_FILE", str(pair[0]))
    act = faults.reply(b"secret")
    async with FaultServer({"/": act}, tls=_tls(*pair)) as server, Client(addresses=_loopback) as client:
        with pytest.raises(Untrusted):
            await client.request("GET", server.url(host="secure.example"), deadline=5)
    assert server.requests == []


def test_verification_is_switched_off_nowhere() -> None:
    package = Path(network.__file__).parent
    for module in package.rglob("*.py"):
        text = module.read_text(encoding="utf-8")
        assert "verify=False" not in text, module
        assert "CERT_NONE" not in text, module


def test_a_hanging_look_up_does_not_hold_up_the_exit() -> None:
    script = """
import asyncio, socket, threading
socket.getaddrinfo = lambda *a, **k: threading.Event().wait(60)
from research.transport import Client, TimedOut
async def main():
    async with Client() as client:
        try:
            await client.request("GET", "http://slow.example/", deadline=0.1)
        except TimedOut:
            print("timed out")
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, timeout=30, text=True)
    assert done.stdout.strip() == "timed out", done.stderr
    assert time.monotonic() - began < 30


# Recording


async def test_cassettes_record_and_replay_through_the_pinned_transport(tmp_path: Path) -> None:
    vcr = pytest.importorskip("vcr")
    cassette = str(tmp_path / "cassette.yaml")
    async with FaultServer({"/a": faults.gzipped(BODY)}) as server:
        url = server.url("/a?x=1", host="named.example")
        with vcr.use_cassette(cassette, record_mode="once"):
            async with Client(addresses=_loopback) as client:
                recorded = await client.request("GET", url, deadline=5)
        assert len(server.requests) == 1
    with vcr.use_cassette(cassette, record_mode="none") as played:
        async with Client(addresses=_loopback) as client:
            replayed = await client.request("GET", url, deadline=5)
    assert played.all_played
    assert recorded.body == replayed.body == BODY
