"""An S3 server on this machine that tells what it was asked for: moto's, which we did not write."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

REGION = "us-east-1"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}


class Request(NamedTuple):
    """One that the server was sent. ``kind``: what S3's manual calls it; ``key_id``: of the keys that signed it."""

    kind: str
    key: str
    size: int
    bucket: str = ""
    key_id: str = ""


class Store:
    """A bucket and what was asked of it; ``url`` is the server's endpoint."""

    bucket = "lake"

    def __init__(self, url: str, requests: list[Request]) -> None:
        self.url, self._requests = url, requests
        self.answer: Callable[[Request], str | None] = lambda request: None
        """The status that a request is refused with; None lets it pass."""
        self.client: Any = boto3.client(
            "s3", endpoint_url=url, region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test")

    @contextmanager
    def watched(self) -> Iterator[list[Request]]:
        """Yield a list that holds the requests of the block once the block has ended."""
        before, seen = len(self._requests), []
        yield seen
        seen += self._requests[before:]

    @contextmanager
    def answering(self, answer: Callable[[Request], str | None]) -> Iterator[None]:
        """Ask ``answer`` about each request of a block before it is served."""
        usual, self.answer = self.answer, answer
        try:
            yield
        finally:
            self.answer = usual

    def keys(self, prefix: str = "") -> list[str]:
        """Every object that anybody sees, without the empty ones that stand for directories."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        found = [one["Key"] for page in pages for one in page.get("Contents", [])]
        return sorted(key for key in found if not key.endswith("/"))

    def uploads(self, prefix: str = "") -> list[str]:
        """Keys of the uploads that are neither completed nor aborted."""
        found = self.client.list_multipart_uploads(Bucket=self.bucket, Prefix=prefix).get("Uploads", [])
        return sorted(one["Key"] for one in found if one["Key"].startswith(prefix))


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing: requests are counted, not printed."""


@contextmanager
def served() -> Iterator[Store]:
    """Serve a store with an empty bucket."""
    requests: list[Request] = []
    moto = DomainDispatcherApplication(create_backend_app)

    def noting(environ: dict[str, Any], start: Any) -> Any:
        bucket, _, key = environ["PATH_INFO"].lstrip("/").partition("/")
        signed = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition("/")[0]
        request = Request(_kind(environ, key), key, int(environ.get("CONTENT_LENGTH") or 0), bucket, signed)
        requests.append(request)
        if (status := store.answer(request)) is None:
            return moto(environ, start)
        environ["wsgi.input"].read(request.size)
        start(status, [("Content-Length", "0")])
        return []

    server = make_server("127.0.0.1", 0, noting, threaded=True, request_handler=_Quiet)
    store = Store(f"http://127.0.0.1:{server.server_port}", requests)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        store.client.create_bucket(Bucket=store.bucket)
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _kind(environ: dict[str, Any], key: str) -> str:
    method, query = environ["REQUEST_METHOD"], environ.get("QUERY_STRING", "")
    copied = "Copy" if "HTTP_X_AMZ_COPY_SOURCE" in environ else ""
    if "uploadId=" in query:
        return {"PUT": f"UploadPart{copied}", "POST": "CompleteMultipartUpload", "DELETE": "AbortMultipartUpload",
                "GET": "ListParts"}[method]
    if "uploads" in query.split("&") or query.startswith("uploads"):
        return {"POST": "CreateMultipartUpload", "GET": "ListMultipartUploads"}[method]
    if not key:
        return {"GET": "ListObjects", "POST": "DeleteObjects"}.get(method, f"{method} bucket")
    return {"GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject",
            "PUT": "CopyObject" if copied else "PutObject"}.get(method, method)
