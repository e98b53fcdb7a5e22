"""A name node and data node of our own, started by tests, that speak WebHDFS: as much of it as is
asked by Hadoop's client, that of Spark's executors too, and by fsspec's."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, Thread
from time import time
from typing import Any
from urllib.parse import parse_qs

from werkzeug.serving import make_server
from werkzeug.wrappers import Request

Start = Callable[..., Any]
_REDIRECTED = {"OPEN", "CREATE", "APPEND"}


@dataclass
class _File:
    content: bytes
    permission: str
    modified: int = field(default_factory=lambda: int(time() * 1000))

    def status(self, name: str) -> dict[str, Any]:
        return {
            **_STATUS, "pathSuffix": name, "type": "FILE", "length": len(self.content),
            "modificationTime": self.modified, "permission": self.permission,
        }  # fmt: skip


_STATUS = {
    "accessTime": 0, "blockSize": 2**27, "childrenNum": 0, "fileId": 1, "group": "all",
    "length": 0, "modificationTime": 1, "owner": "somebody", "pathSuffix": "", "replication": 1,
    "storagePolicy": 0, "type": "DIRECTORY", "permission": "700",
}  # fmt: skip


class _RefusedError(Exception):
    def __init__(self, status: str, kind: str, told: str) -> None:
        super().__init__(told)
        self.status, self.kind = status, kind


class HdfsServer:
    """`late` while what is created or renamed appears in no list. `moved` has, for programs in
    Python and in Java, the files whose bytes each has read or written. `seen` hears of everything
    that was done: by whom, what, and with which path."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").disabled = True
        self.files: dict[str, _File] = {}
        self._folders, self._hidden = {"/"}, set[str]()
        self.behave()
        self._lock = Lock()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.url = f"webhdfs://127.0.0.1:{self._server.server_port}"

    def behave(self) -> None:
        self.late = False
        self.seen: Callable[[str, str, str], None] = lambda *_: None
        self.moved: dict[str, set[str]] = {"python": set(), "java": set()}

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def _answer(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        request = Request(environ)
        given = {
            key.lower(): values[0] for key, values in parse_qs(environ["QUERY_STRING"]).items()
        }
        path = "/" + request.path.removeprefix("/webhdfs/v1").strip("/")
        op = given["op"].upper()
        body = request.get_data()
        if op in _REDIRECTED and "at" not in given:
            headers = [("Location", f"{request.url}&at=data"), ("Content-Length", "0")]
            start("307 Temporary Redirect", headers)
            return []
        agent = "java" if "Java" in request.headers["User-Agent"] else "python"
        try:
            with self._lock:
                if op in _REDIRECTED:
                    self.moved[agent].add(path)
                found = getattr(self, f"_{op.lower()}")(path, given, body)
            self.seen(agent, op, given.get("destination", path))
        except _RefusedError as error:
            told = {"exception": error.kind, "javaClassName": f"java.io.{error.kind}"}
            if error.kind == "FileAlreadyExistsException":
                told["javaClassName"] = f"org.apache.hadoop.fs.{error.kind}"
            content = json.dumps({"RemoteException": {**told, "message": str(error)}}).encode()
            start(error.status, _headers(content))
            return [content]
        if isinstance(found, bytes):
            start("200 OK", _headers(found))
            return [found]
        content = b"" if found is None else json.dumps(found).encode()
        start("201 Created" if op == "CREATE" else "200 OK", _headers(content))
        return [content]

    # ---- operations ----------------------------------------------------------------------------

    def _getfilestatus(self, path: str, *_: Any) -> dict[str, Any]:
        if path in self.files:
            return {"FileStatus": self.files[path].status("")}
        if path in self._folders:
            return {"FileStatus": _STATUS}
        raise _missing(path)

    def _liststatus(self, path: str, *_: Any) -> dict[str, Any]:
        if path in self.files:
            return {"FileStatuses": {"FileStatus": [self.files[path].status("")]}}
        if path not in self._folders:
            raise _missing(path)
        start = path.rstrip("/") + "/"
        found = [
            file.status(name.removeprefix(start))
            for name, file in self.files.items()
            if _is_in(name, start) and name not in self._hidden
        ]
        found += [
            {**_STATUS, "pathSuffix": name.removeprefix(start)}
            for name in self._folders
            if _is_in(name, start)
        ]
        return {"FileStatuses": {"FileStatus": found}}

    def _getfileblocklocations(self, path: str, *_: Any) -> dict[str, Any]:
        whole = {"offset": 0, "length": len(self.files[path].content), "corrupt": False}
        where = {"hosts": ["localhost"], "names": ["127.0.0.1:0"], "cachedHosts": []}
        found = {**whole, **where, "storageTypes": ["DISK"], "topologyPaths": ["/rack/127.0.0.1:0"]}
        return {"BlockLocations": {"BlockLocation": [found]}}

    def _open(self, path: str, given: dict[str, str], _: bytes) -> bytes:
        if path not in self.files:
            raise _missing(path)
        content, first = self.files[path].content, int(given.get("offset", 0))
        return content[first : first + int(given.get("length", len(content)))]

    def _create(self, path: str, given: dict[str, str], body: bytes) -> None:
        if path in self.files and given.get("overwrite", "false") != "true":
            raise _RefusedError("403 Forbidden", "FileAlreadyExistsException", f"{path} is there")
        self._mkdirs(path.rpartition("/")[0] or "/")
        self._put(path, _File(body, given.get("permission", "644")))

    def _append(self, path: str, given: dict[str, str], body: bytes) -> None:
        if path not in self.files:
            raise _missing(path)
        before = self.files[path]
        self.files[path] = _File(before.content + body, before.permission)

    def _mkdirs(self, path: str, *_: Any) -> dict[str, bool]:
        while path not in self._folders:
            self._folders.add(path)
            path = path.rpartition("/")[0] or "/"
        return {"boolean": True}

    def _rename(self, path: str, given: dict[str, str], _: bytes) -> dict[str, bool]:
        target = given["destination"].rstrip("/")
        taken = target in self.files or target in self._folders
        if taken or target.rpartition("/")[0] not in self._folders:
            return {"boolean": False}
        if path in self.files:
            self._put(target, self.files.pop(path))
            return {"boolean": True}
        if path not in self._folders:
            return {"boolean": False}
        for name in [each for each in self.files if each.startswith(f"{path}/")]:
            self._put(target + name.removeprefix(path), self.files.pop(name))
        moved = {each for each in self._folders if each == path or each.startswith(f"{path}/")}
        self._folders -= moved
        self._folders |= {target + each.removeprefix(path) for each in moved}
        return {"boolean": True}

    def _delete(self, path: str, *_: Any) -> dict[str, bool]:
        gone = [each for each in self.files if each == path or each.startswith(f"{path}/")]
        for name in gone:
            del self.files[name]
        folders = {each for each in self._folders if each == path or each.startswith(f"{path}/")}
        self._folders -= folders
        return {"boolean": bool(gone or folders)}

    def _setpermission(self, path: str, given: dict[str, str], _: bytes) -> None:
        if path in self.files:
            self.files[path].permission = given["permission"]

    def _put(self, path: str, file: _File) -> None:
        self.files[path] = file
        if self.late:
            self._hidden.add(path)


def _is_in(name: str, folder: str) -> bool:
    return name.startswith(folder) and name != folder and "/" not in name.removeprefix(folder)


def _missing(path: str) -> _RefusedError:
    return _RefusedError("404 Not Found", "FileNotFoundException", f"File {path} does not exist.")


def _headers(content: bytes) -> list[tuple[str, str]]:
    # No type: the client in the jars that pyspark brings lacks a class to read it.
    return [("Content-Length", str(len(content)))]
