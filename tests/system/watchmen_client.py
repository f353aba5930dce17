"""A client of watchmen, written to its contract (plain HTTP, JSON): registers, pings until it is its turn."""

import http.client
import json
import time


class Refused(Exception):
    pass


class Client:
    def __init__(self, address, id, gpus, mode="queue", req_gpu_num=0, token=None, every=0.05):
        self.address, self.id, self.gpus, self.mode, self.req, self.token, self.every = address, id, gpus, mode, req_gpu_num, token, every
        self.granted = None

    def ask(self, method, path, body=None, headers=None, raw=None):
        c = http.client.HTTPConnection(self.address, timeout=20)
        headers = {**({"X-Auth-Token": self.token} if self.token else {}), **({"Content-Type": "application/json"} if body is not None or raw is not None else {}), **(headers or {})}
        c.request(method, path, json.dumps(body) if body is not None else raw, headers)
        r = c.getresponse()
        self.status, self.headers, data = r.status, r.headers, r.read()
        c.close()
        return json.loads(data) if data[:1] in (b"{", b"[") else data.decode()

    def register(self):
        got = self.ask("POST", "/client/register", {"id": self.id, "gpus": self.gpus, "mode": self.mode, "req_gpu_num": self.req})
        if got["status"] != "ok":
            raise Refused(got["msg"])

    def ping(self):
        got = self.ask("POST", "/client/ping", {"id": self.id})
        if got["status"] != "ok":
            raise Refused(got["msg"])
        return got["msg"], got["available_gpus"]

    def cancel(self):
        return self.ask("POST", "/client/cancel", {"id": self.id})

    def wait(self, seconds=20):
        self.register()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            status, gpus = self.ping()
            if status == "ready":  # "ok" is no such word: the library goes on asking then
                self.granted = gpus
                return gpus
            if status in ("timeout", "cancelled"):
                raise Refused(status)
            time.sleep(self.every)
        raise TimeoutError(self.id)
