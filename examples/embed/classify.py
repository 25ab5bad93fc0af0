"""Says which digit images show:  python3 classify.py ./libnet.so mnist.safetensors digit.pgm..."""

import re
import sys

import numpy as np

from net import Net


def read_image(path):
    with open(path, "rb") as file:
        found = re.fullmatch(rb"P5\s28\s28\s255\s(.{784})", file.read(), re.S)
    if not found:
        sys.exit(f"{path}: is no PGM of 28 x 28")
    return np.frombuffer(found[1], np.uint8)


net = Net(sys.argv[1], sys.argv[2])
for path in sys.argv[3:]:
    scores = net(read_image(path))[0]
    print(f"{path}: {scores.argmax()} ({scores.max():.3f})")
net.close()
