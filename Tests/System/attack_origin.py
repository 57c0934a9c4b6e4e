#!/usr/bin/python3
"""A hostile origin of raw bytes: attack_origin.py ADDRESS PORT [CERTIFICATE KEY]. The path selects the attack."""
import gzip, re, socket, ssl, sys, threading, time

address, port = sys.argv[1], int(sys.argv[2])
context = None
if len(sys.argv) > 3:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(sys.argv[3], sys.argv[4])
OK = b"HTTP/1.1 200 OK\r\n"
GZIP = b"Content-Encoding: gzip\r\n"
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
# Content that does not compress well, so that a cut is in the middle.
PACKED = gzip.compress(bytes(i * i % 251 for i in range(20_000)))


def framed(body, *fields):
    head = OK + b"".join(field + b"\r\n" for field in fields)
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunked(body, *fields):
    head = OK + b"".join(field + b"\r\n" for field in fields)
    return head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"


def forever(connection, start, piece):
    connection.sendall(start)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        connection.sendall(piece)


def answer(connection, path, query, request):
    """Returns whether the connection stays open."""
    send = connection.sendall
    cut = PACKED[: len(PACKED) // 2]
    match path:
        case "honest" | "second-ok": send(framed(b"good"))
        case "honest-chunks": send(chunked(b"good"))
        case "honest-gzip": send(framed(gzip.compress(b"good"), GZIP.strip()))
        case "first":
            send(framed(b"of /first"))
            time.sleep(0.3)
            send(framed(b"evil"))
            print("second answer", "tls-" if context else "plain", file=sys.stderr, flush=True)
        case "second": send(framed(b"of /second"))
        case "lines": forever(connection, OK, b"Cache-Control: max-age=1\r\n" * 1000)
        case "trailers":
            forever(connection, OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n", b"X: y\r\n" * 1000)
        case "interim": forever(connection, b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 1000)
        case "cut-length": send(framed(cut, GZIP.strip()))
        case "cut-chunks": send(chunked(cut, GZIP.strip()))
        case "cut-close":
            send(OK + GZIP + b"\r\n" + cut)
            return False
        case "unframed" | "no-close-notify":
            send(OK + b"\r\nhello")
            return False
        case "both-lengths": send(OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n")
        case "two-lengths": send(OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\ngood!")
        case "huge-length": send(OK + b"Content-Length: 9223372036854775808\r\n\r\ngood")
        case "bare-lf": send(b"HTTP/1.1 200 OK\nContent-Length: 4\n\ngood")
        case "fold": send(OK + b"X: a\r\n b\r\nContent-Length: 4\r\n\r\ngood")
        # A first header line that begins with a blank: libcurl before 8.1 appends it to a freed line.
        case "blank-first": send(OK + b" X: a\r\nContent-Length: 4\r\n\r\ngood")
        case "tab-first": send(OK + b"\tX: " + b"a" * 60_000 + b"\r\nContent-Length: 4\r\n\r\ngood")
        case "interim-blank": send(EARLY + OK + b" X: a\r\nContent-Length: 4\r\n\r\ngood")
        case "honest-interim": send(EARLY + framed(b"good", b"X: a"))
        # 100 MiB of zeros; the same in many members.
        case "bomb": send(framed(BOMB, GZIP.strip()))
        case "endless": forever(connection, OK + b"Transfer-Encoding: chunked\r\n\r\n", ENDLESS)
        case "many-members": send(framed(MEMBER * 100, GZIP.strip()))
        case "redirect": send(b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % query.encode())
        case "long-tag":
            COUNT["long-tag"] = COUNT.get("long-tag", 0) + 1
            if b"If-None-Match" in request: send(b"HTTP/1.1 431 No\r\nContent-Length: 0\r\n\r\n")
            else: send(framed(b"%d" % COUNT["long-tag"], b'ETag: "%s"' % (b"a" * 900)))
        # Validators for which a server may answer 304 for ever, and a 304 for other content. Later the content is new.
        case "future-date" | "star-tag" | "list-tag":
            COUNT[path] = COUNT.get(path, 0) + 1
            if COUNT[path] == 1: send(framed(b"old", *POISON[path]))
            elif b"\r\nIf-" in request: send(b"HTTP/1.1 304 Not Modified\r\n\r\n")
            else: send(framed(b"new"))
        case "other-tag":
            if b"If-None-Match" in request: send(b'HTTP/1.1 304 Not Modified\r\nETag: "b"\r\n\r\n')
            else:
                COUNT[path] = COUNT.get(path, 0) + 1
                send(framed(b"old" if COUNT[path] == 1 else b"new", b'ETag: "%s"' % (b"a" if COUNT[path] == 1 else b"b")))
        case "honest-tag":
            if b'If-None-Match: "a"' in request: send(b'HTTP/1.1 304 Not Modified\r\nETag: W/"a"\r\n\r\n')
            else:
                COUNT[path] = COUNT.get(path, 0) + 1
                send(framed(b"%d" % COUNT[path], b'ETag: "a"'))
        # A body that breaks, and a part that is not its rest; the honest twin has the same ETag.
        case "honest-rest" | "untagged-rest" | "other-rest" | "part-as-whole":
            COUNT[path] = COUNT.get(path, 0) + 1
            if COUNT[path] == 1:
                send(OK + b'Content-Length: 200000\r\nETag: "a"\r\n\r\n' + b"a" * 100_000)
                return False
            if b"Range: bytes=100000-" not in request: send(framed(b"b" * 200_000, b'ETag: "b"'))
            else:
                status, tag = REST[path]
                send(status + tag + b"Content-Range: bytes 100000-199999/200000\r\nContent-Length: 100000\r\n\r\n")
                send((b"a" if path == "honest-rest" else b"b") * 100_000)
        # A header, and two keys of branches, that are canonically equivalent and in another order.
        case "marks": send(framed(b"good", b"Last-Modified: e" + MARKS))
        case "many-marks": send(framed(b'["e%s","e%s"]' % (MARKS[:1000], MARKS[2:1002])))
        case "few-marks": send(framed('["e\u0301","ä"]'.encode()))
        case "branch": send(framed(b'"%s"' % query.encode()))
        case "nul-inside": send(framed(b'{"ttl": 1\0\0\0\0}'))
        case "nul-html": send(framed(b'["a"]\0<html>not JSON</html>'))
        case "nul-end": send(framed(b'["a"]\n\0'))
        case "number": send(framed(query.encode()))
        case "odd-tag":
            asked = re.search(rb"If-None-Match: (.*?)\r\n", request)
            send(framed(asked[1] if asked else b"none", b'ETag: "\xe9"'))
        case _: send(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
    return True


ENDLESS = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
BOMB = gzip.compress(bytes(100 << 20))
MEMBER = gzip.compress(bytes(1 << 20))
COUNT = {}
POISON = {
    "future-date": [b"Last-Modified: Fri, 31 Dec 9998 23:59:59 GMT", b"Date: Fri, 31 Dec 9999 23:59:59 GMT"],
    "star-tag": [b"ETag: *"],
    "list-tag": [b'ETag: "x", *'],
}
PART = b"HTTP/1.1 206 Partial Content\r\n"
REST = {
    "honest-rest": (PART, b'ETag: "a"\r\n'),
    "untagged-rest": (PART, b""),
    "other-rest": (PART, b'ETag: "b"\r\n'),
    "part-as-whole": (OK, b'ETag: "a"\r\n'),
}
MARKS = "\u0301\u0323".encode() * 15_000






def serve(raw):
    connection = raw
    try:
        if context:
            connection = context.wrap_socket(raw, server_side=True)
        buffer = b""
        while True:
            while b"\r\n\r\n" not in buffer:
                data = connection.recv(65536)
                if not data:
                    return
                buffer += data
            request, _, buffer = buffer.partition(b"\r\n\r\n")
            target = request.split(b" ")[1].decode()
            path, _, query = target[1:].partition("?")
            if not answer(connection, path, query, request + b"\r\n\r\n"):
                # With TLS: without close_notify, as if the connection were cut.
                connection.shutdown(socket.SHUT_RDWR)
                return
    except OSError:
        pass
    finally:
        connection.close()


listener = socket.create_server((address, port), backlog=64)
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
