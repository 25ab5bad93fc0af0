"""Answers POST /predict, whose body is the bytes of images, with a line of JSON: a list of scores for each image.

    python3 server.py ./libnet.so mnist.safetensors --port 8080
    tail -c 784 digit.pgm | curl --data-binary @- http://127.0.0.1:8080/predict"""

import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from net import TYPES, Net


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        size = int(self.headers.get("Content-Length", 0))
        if self.path != "/predict" or not 0 < size <= 1 << 20 or size % self.server.bytes_of_one:
            self.answer(400, {"error": f"expected POST /predict with a multiple of {self.server.bytes_of_one} bytes"})
        else:
            self.answer(200, self.server.predict(np.frombuffer(self.rfile.read(size), self.server.type)).tolist())

    def answer(self, code, value):
        body = json.dumps(value).encode() + b"\n"
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """A thread for each request, which takes a net that no other has, or makes one: they share the weights."""

    def __init__(self, address, net):
        super().__init__(address, Handler)
        self.net, self.idle, self.lock = net, [], threading.Lock()
        self.type = np.dtype(TYPES[net.inputs[0].type.decode()])
        self.bytes_of_one = net.inputs[0].elements * self.type.itemsize

    def predict(self, images):
        with self.lock:
            net = self.idle.pop() if self.idle else self.net.share()
        try:
            return net(images)
        finally:
            with self.lock:
                self.idle.append(net)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("weights", nargs="?", help="safetensors; unless given, those in the library")
    parser.add_argument("--port", type=int, default=8080)
    options = parser.parse_args()
    server = Server(("127.0.0.1", options.port), Net(options.library, options.weights))
    print(f"listening on 127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
