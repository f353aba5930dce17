"""A browser's part in opening a UI, by hand: the ticket, the cookie, requests with both, and WebSockets."""

import asyncio
import http.client
import json
import urllib.parse

import websockets

from job_box import gpumgr


class View:
    """One who opened the UI of a job: requests carry his cookie."""

    trust = None

    def __init__(self, box, number, user=None, enter=True, trust=None):
        """trust: of a server with TLS."""
        self.trust = trust
        got = gpumgr(box, "open", number, "--json", user=user)
        assert got.returncode == 0, got.stderr
        self.url = json.loads(got.stdout)["url"]
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.enter_target = parts.netloc, parts.path + "?" + parts.query
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.cookie, self.entered = "", None
        if enter:
            self.enter()

    def enter(self, **headers):
        self.entered = self.ask("GET", self.enter_target, **headers)
        if self.entered.status == 303:
            self.cookie = self.entered.getheader("Set-Cookie").split(";")[0]
        return self.entered

    def connect(self, timeout=60):
        if self.trust:
            return http.client.HTTPSConnection(self.host, timeout=timeout, context=self.trust)
        return http.client.HTTPConnection(self.host, timeout=timeout)

    def ask(self, method, target, body=None, connection=None, **headers):
        """The answer, with its body in .text."""
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        headers.setdefault("Cookie", self.cookie)
        c = connection or self.connect()
        c.request(method, target, body, {k: v for k, v in headers.items() if v})
        answer = c.getresponse()
        answer.text = answer.read()
        if not connection:
            c.close()
        return answer

    def fields(self, target="/say", **headers):
        """What of a request gets to the job: its fields."""
        answer = self.ask("GET", target, **headers)
        assert answer.status == 200, answer.text
        return {k.lower(): v for k, v in json.loads(answer.text)["fields"]}

    def socket(self, origin=None, cookie=None):
        return websockets.connect(f"{'wss' if self.trust else 'ws'}://{self.host}/ws", ssl=self.trust, origin=self.origin if origin is None else origin or None,
                                  extra_headers={"Cookie": self.cookie if cookie is None else cookie}, max_size=1 << 26,
                                  open_timeout=60, close_timeout=10)


def run(work):
    return asyncio.run(work)
