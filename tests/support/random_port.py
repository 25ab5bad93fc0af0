"""kernels_lib/random.h once more, in NumPy: counter-based numbers that every target draws alike."""

import numpy as np

MASK = 0xFFFFFFFF


def philox(key, counter):
    """Philox4x32-10 of one counter: four words."""
    c, key0, key1 = list(counter), key & MASK, key >> 32
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ key0, q & MASK, (p >> 32) ^ c[3] ^ key1, p & MASK]
        key0, key1 = (key0 + 0x9E3779B9) & MASK, (key1 + 0xBB67AE85) & MASK
    return c


def block(seed, stream, step, number):
    return philox(seed, [number & MASK, step & MASK, (number >> 32 & 0xFFFF) | (step >> 32 & 0xFFFF) << 16, stream])


def uniform(seed, stream, step, shape):
    """In [0, 1), for the elements of a tensor."""
    def unit(element):
        words = block(seed, stream, step, element >> 2)
        return (words[element & 3] >> 8) * 2.0**-24

    return np.array([unit(element) for element in range(np.prod(shape))]).reshape(shape)


def shuffle_key(seed, epoch):
    words = block(seed, MASK, epoch, 0)
    return words[1] << 32 | words[0]


def mix(key, round_, x):
    multiplier = np.uint64(0xD6E8FEB86659FD93)
    with np.errstate(over="ignore"):
        z = (np.uint64((key + round_ * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF) + x) * multiplier
        z ^= z >> np.uint64(32)
        return z * multiplier >> np.uint64(32)


def permutation(key, n):
    """Where 0 .. n - 1 land: a Feistel network over a power of two, walked until it falls below n."""
    bits = max(8, (n - 1).bit_length())
    low_bits = np.uint64(bits - bits // 2)
    low_mask, high_mask = np.uint64((1 << bits - bits // 2) - 1), np.uint64((1 << bits // 2) - 1)
    result, open_ = np.arange(n, dtype=np.uint64), np.arange(n)
    while open_.size:
        low, high = result[open_] & low_mask, result[open_] >> low_bits
        for round_ in range(0, 6, 2):
            high ^= mix(key, round_, low) & high_mask
            low ^= mix(key, round_ + 1, high) & low_mask
        result[open_] = high << low_bits | low
        open_ = open_[result[open_] >= n]
    return result.astype(np.int64)
