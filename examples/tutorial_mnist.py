import gzip
import os

import numpy as np

from cuda_nn import NeuralNetworkGPU

FOLDER = os.path.join(os.environ.get("MTC_DATA_DIR", "."), "mnist")


def read(name, header):
    path = os.path.join(FOLDER, name)
    with open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def load(split):
    """Images [N, 784] from 0 to 1, and labels [N]."""
    images = read(split + "-images-idx3-ubyte", 16).reshape(-1, 784)
    return images.astype(np.float32) / 255.0, read(split + "-labels-idx1-ubyte", 8).astype(np.int64)


X_train, y_train = load("train")
X_test, y_test = load("t10k")
print("Training examples:", X_train.shape[0])
print("Test examples:", X_test.shape[0])

nn = NeuralNetworkGPU(input_size=784, hidden_size=128, output_size=10, batch_size=64)
nn.fit(X_train, y_train, epochs=10, learning_rate=0.001, validation_data=(X_test, y_test), verbose=True)

accuracy = nn.evaluate(X_test, y_test)
print(f"Test accuracy: {accuracy * 100:.2f}%")

probabilities = nn.predict(X_test[:5])
for row, digit in zip(probabilities, y_test):
    print(f"predicted {row.argmax()} ({row.max():.1%}), is {digit}")
