"""A UI as a job runs one: HTTP with all that a proxy can get wrong, and WebSockets by Debian's python3-websockets. Started as
`ui_app.py PORT [HOST]`, it says "up" when it listens; PORT+1 would be taken by nobody: HTTP and WebSockets share the port, for a proxy
sees one. It imports nothing of ours."""

import asyncio
import hashlib
import json
import sys

import websockets

PIECE = b"0123456789abcdef" * 4096


async def read_head(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").split("\r\n")[:-2]
    method, target, _ = line.split(" ")
    return method, target, [f.split(": ", 1) for f in fields]


async def body_pieces(reader, fields):
    names = {k.lower(): v for k, v in fields}
    if names.get("transfer-encoding") == "chunked":
        while n := int(await reader.readline(), 16):
            yield await reader.readexactly(n)
            await reader.readline()
        await reader.readline()
    left = int(names.get("content-length", 0))
    while left:
        piece = await reader.read(min(left, 65536))
        if not piece:
            return
        left -= len(piece)
        yield piece


def reply(writer, status, body=b"", *fields):
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


async def send_large(writer, n):
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {n}\r\n\r\n".encode())
    while n:
        piece = PIECE[:n]
        writer.write(piece)
        n -= len(piece)
        await writer.drain()


async def one(reader, writer):
    """False: the connection is over."""
    method, target, fields = await read_head(reader)
    path, _, query = target.partition("?")
    if path == "/upload":
        digest, n = hashlib.sha256(), 0
        async for piece in body_pieces(reader, fields):
            digest.update(piece)
            n += len(piece)
        reply(writer, "200 OK", json.dumps({"bytes": n, "sha256": digest.hexdigest()}).encode())
        return True
    async for _ in body_pieces(reader, fields):
        pass
    if path == "/say":  # what came in
        body = json.dumps({"method": method, "target": target, "fields": fields, "port": int(sys.argv[1])}).encode()
        reply(writer, "200 OK", b"" if method == "HEAD" else body, "Content-Type: application/json")
    elif path == "/large":
        await send_large(writer, int(query))
    elif path == "/until-close":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + b"all of it\n" * 1000)
        return False
    elif path == "/chunks":
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for word in (b"one ", b"two ", b"three"):
            writer.write(b"%x\r\n%s\r\n" % (len(word), word))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
    elif path == "/nothing":
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    elif path == "/same":
        writer.write(b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n")
    elif path == "/cookies":
        reply(writer, "200 OK", b"set", "Set-Cookie: hidden=1; Path=/; HttpOnly", "Set-Cookie: open=2; Domain=localhost; Path=/",
              "Set-Cookie: gpumgr_session_7000=stolen; Path=/", "Set-Cookie: __Host-gpumgr_ui_7100=x; Path=/; Secure")
    elif path == "/moved":
        host = dict((k.lower(), v) for k, v in fields)["host"]
        reply(writer, "302 Found", b"", f"Location: http://{host}/say?moved")
    elif path == "/gone":  # without an answer
        return False
    elif path == "/":
        reply(writer, "200 OK", PAGE, "Content-Type: text/html; charset=utf-8")
    else:
        reply(writer, "404 Not Found", b"no such page")
    return True


PAGE = b"""<!doctype html><title>A job's own page</title><h1>A job's own page</h1><p id=heard>nothing yet</p><script>
const s = new WebSocket(location.href.replace(/^http/, 'ws').replace(/[/][^/]*$/, '/ws'));
s.onopen = () => s.send('from the page');
s.onmessage = m => document.getElementById('heard').textContent = m.data;
</script>
"""


async def serve_http(reader, writer):
    try:
        while await one(reader, writer):
            await writer.drain()
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def echo(ws):
    async for message in ws:
        if message == "close":
            await ws.close(4000, "as you wish")
        elif isinstance(message, str) and message.startswith("large "):
            await ws.send(b"x" * int(message.split()[1]))
        else:
            await ws.send(message if isinstance(message, bytes) else "you said: " + message)


async def dispatch(reader, writer, ws_port):
    """The first line says which of the two it is for."""
    head = await reader.readuntil(b"\r\n\r\n")
    if b"upgrade: websocket" not in head.lower():
        again = asyncio.StreamReader(limit=1 << 20)
        again.feed_data(head)

        async def feed():
            while piece := await reader.read(65536):
                again.feed_data(piece)
                while len(again._buffer) > 1 << 20:
                    await asyncio.sleep(0.001)
            again.feed_eof()
        task = asyncio.ensure_future(feed())
        await serve_http(again, writer)
        task.cancel()
        return
    up_reader, up_writer = await asyncio.open_connection("127.0.0.1", ws_port)
    up_writer.write(head)

    async def copy(a, b):
        try:
            while piece := await a.read(65536):
                b.write(piece)
                await b.drain()
            b.write_eof()
        except OSError:
            pass
    await asyncio.gather(copy(reader, up_writer), copy(up_reader, writer))
    writer.close()
    up_writer.close()


async def main():
    port, host = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    async with websockets.serve(echo, "127.0.0.1", 0, max_size=1 << 26) as ws:
        ws_port = ws.sockets[0].getsockname()[1]

        async def take(reader, writer):
            try:
                await dispatch(reader, writer, ws_port)
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
        async with await asyncio.start_server(take, host, port, limit=1 << 20):
            print("up", flush=True)
            await asyncio.Future()


asyncio.run(main())
