"""A proxy between a client and the server that loses requests and answers on purpose."""

import http.server
import threading

import httpx

from conftest import DEADLINE_S


class Proxy:
    """Hands calls on to a server. `cut(number, path)` says what becomes of one: None to hand it on, "before" to close
    without asking the server, "after" to ask and keep the answer back, a status to answer with it as proxies do that
    cannot reach their server."""

    def __init__(self, server, cut):
        proxy = self
        proxy.calls = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except OSError:  # whoever called was killed
                    self.close_connection = True

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                proxy.calls += 1
                what = cut(proxy.calls, self.path)
                if isinstance(what, int):
                    return self.send_error(what)  # a page of HTML
                if what != "before":
                    answer = httpx.request(self.command, server.url + self.path, content=body, timeout=DEADLINE_S)
                if what:
                    self.close_connection = True
                    return
                self.send_response(answer.status_code)
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
