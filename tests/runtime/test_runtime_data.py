"""Data files: found where they should be, read whatever their form, refused when anything about them is wrong."""

import gzip
import struct

import numpy as np
import pytest

from fake_data import examples, idx_bytes

pytest_plugins = ["fake_model"]

BAD_DATA, NO_INPUT = 65, 66


def rewrite(name, change):
    return lambda folder: folder.write(name, change(folder.file(name).read_bytes()))


def labels(values, dtype):
    return lambda folder: folder.write("train-labels", idx_bytes(np.asarray(values, dtype)))


def images(count, *shape, dtype="u1"):
    return lambda folder: folder.write("train-images", idx_bytes(np.zeros((count, *shape), dtype)))


def repacked(change):
    def damage(folder):
        packed = folder.compress("train-images")
        folder.write("train-images.gz", change(packed))

    return damage


def in_header(index, byte):
    return lambda content: content[:index] + bytes([byte]) + content[index + 1:]


def label_of(example, value):
    return rewrite("train-labels", lambda content: content[:8 + example] + bytes([value]) + content[9 + example:])


# what is wrong with the files -> what the message says
BAD = {
    "empty": (rewrite("train-images", lambda _: b""), ["train-images", "is empty"]),
    "short magic": (rewrite("train-images", lambda content: content[:3]), ["ends within the header"]),
    "short header": (rewrite("train-images", lambda content: content[:10]), ["ends within the header"]),
    "no magic": (rewrite("train-images", in_header(0, 0x50)), ["not an IDX file", "00 00", "50 00"]),
    "unknown type": (rewrite("train-images", in_header(2, 0x0A)), ["no element type has the code 0x0a"]),
    "no dimension": (rewrite("train-images", in_header(3, 0)), ["1 to 8 dimensions", "found 0"]),
    "many dimensions": (rewrite("train-images", in_header(3, 200)), ["1 to 8 dimensions", "found 200"]),
    "fraction": (rewrite("train-images", lambda _: bytes([0, 0, 0x0D, 3]) + struct.pack(">3I16f", 1, 4, 4, *[0] * 6, 0.5, *[0] * 9)),
                 ["example 0, element [1, 2] is 0.5", "not fit in u8, the type of field 'image'", "the file holds f32"]),
    "other shape": (images(203, 4, 5), ["'image'", "[4, 4]", "[4, 5]"]),
    "other rank": (images(203, 16), ["'image'", "[4, 4]", "[16]"]),
    "no examples": (images(0, 4, 4), ["holds no examples"]),
    "cut off": (rewrite("train-images", lambda content: content[:-1]), ["cut off", "promises 3248 bytes", "found 3247"]),
    "no data": (rewrite("train-images", lambda content: content[:16]), ["cut off", "found 0"]),
    "too long": (rewrite("train-images", lambda content: content + b"x"), ["longer than its header", "3248 bytes"]),
    "vast": (rewrite("train-images", lambda content: content[:4] + b"\xff" * 4 + content[8:]), ["4294967295 examples", "at most"]),
    "vast, cut off": (rewrite("train-images", lambda content: content[:4] + b"\x7f" + b"\xff" * 3 + content[8:]), ["cut off", "promises 34359738352"]),
    "counts differ": (labels(np.zeros(204), "u1"), ["train-labels", "204", "train-images", "203"]),
    "label too large": (label_of(17, 3), ["train-labels", "example 17", "label 3", "class[3]", "0 to 2"]),
    "negative label": (labels([-1] + [0] * 202, "i1"), ["example 0", "label -1"]),
    "label with a fraction": (labels([2, 1.5, *[0] * 201], "f4"), ["example 1 has the label 1.5", "class[3], so expected whole numbers from 0 to 2"]),
    "label is no number": (labels([2, np.nan, *[0] * 201], "f4"), ["example 1 has the label NaN"]),
    "float label too large": (labels([*[0] * 202, 3], "f8"), ["example 202 has the label 3;", "expected 0 to 2"]),
    "labels of rank 2": (labels(np.zeros((203, 1)), "u1"), ["'label'", "[]", "[1]"]),
    "gzip cut off": (repacked(lambda packed: packed[:-20]), ["train-images.gz", "not a whole gzip file: unexpected end of file"]),
    "gzip header only": (repacked(lambda packed: packed[:10]), ["train-images.gz"]),
    "gzip corrupt": (repacked(lambda packed: packed[:100] + b"\xff" * 40 + packed[140:]), ["train-images.gz"]),
    "gzip checksum": (repacked(lambda packed: packed[:-8] + b"\0" * 4 + packed[-4:]), ["not a whole gzip file", "data"]),
    "gzip of a short file": (repacked(lambda packed: gzip.compress(gzip.decompress(packed)[:50])), ["cut off", "found 34"]),
    "gzip of nothing": (repacked(lambda packed: gzip.compress(b"")), ["is empty"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_file(case, fake, folder):
    damage, says = BAD[case]
    damage(folder)
    message = fake(folder, "--save", "w.safetensors", code=BAD_DATA)
    for text in says:
        assert text in message
    assert not (folder / "w.safetensors").exists()


def test_a_shape_of_more_elements_than_64_bits_count(fake, folder):
    """Counted in 64 bits it would have the 16 elements of an image, and be told to be reshaped: 16 (2^62 + 1) = 2^66 + 16."""
    shape = 1, 16, 2**31 + 2**16 + 1, 2**31 - 2**16 + 1
    folder.write("train-images", bytes([0, 0, 8, 4]) + struct.pack(">4I", *shape))
    message = fake(folder, code=BAD_DATA)
    assert "[4, 4], found [16, 2147549185, 2147418113]" in message and "reshape" not in message


def test_missing_file_lists_every_place(fake, folder):
    folder.file("test-images").unlink()
    message = fake(folder, code=NO_INPUT, env={"MTC_DATA_DIR": "/data", "XDG_CACHE_HOME": "/cache"})
    assert "no data file 'fake/test-images'" in message
    for place in (folder.path, "/data", "/cache/mtc"):
        assert f"\n    {place}/fake/test-images\n" in message
        assert f"\n    {place}/fake/test-images.gz\n" in message


def test_folder_in_place_of_a_file(fake, folder):
    folder.file("train-images").unlink()
    folder.file("train-images").mkdir()
    assert "no data file 'fake/train-images'" in fake(folder, code=NO_INPUT)


def test_unreadable_input(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    assert "nothing.npy: cannot open: No such file" in fake(folder, "predict", "--load", "w", "--input", "nothing.npy", code=NO_INPUT)
    assert "fake/test-images: is no image" in fake(folder, "predict", "--load", "w", "--input", "fake", code=BAD_DATA)


def losses(text):
    return [line.rsplit("|", 1)[0] for line in text.splitlines() if line.startswith("epoch")]


@pytest.mark.parametrize("place", ["--data", "--data, without the folder", "MTC_DATA_DIR", "XDG_CACHE_HOME", "HOME"])
def test_places(place, fake, folder):
    expected, environment, flags = losses(fake(folder)), {}, ()
    target = folder / {"XDG_CACHE_HOME": "else/mtc", "HOME": ".cache/mtc"}.get(place, "else")
    target.mkdir(parents=True)
    folder.file("").rename(target / "fake")
    if place.startswith("--data"):
        flags = ("--data", target / "fake" if "without" in place else target)
    elif place != "HOME":
        environment[place] = str(folder / "else")
    assert losses(fake(folder, *flags, env=environment)) == expected


def test_places_in_their_order(fake, folder):
    """Where several have the data, the first of: beside the model, $MTC_DATA_DIR, $XDG_CACHE_HOME."""
    expected = losses(fake(folder))
    for place in "else", "cache/mtc":
        (folder / place / "fake").mkdir(parents=True)
        for path in folder.file("").iterdir():
            (folder / place / "fake" / path.name).write_bytes(path.read_bytes() if place == "else" else b"damaged")
    environment = {"MTC_DATA_DIR": str(folder / "else"), "XDG_CACHE_HOME": str(folder / "cache")}
    folder.file("").rename(folder / "away")
    assert losses(fake(folder, env=environment)) == expected
    for path in (folder / "else" / "fake").iterdir():
        path.write_bytes(b"damaged")
    (folder / "away").rename(folder.file(""))
    assert losses(fake(folder, env=environment)) == expected


def test_data_flag_is_the_only_place(fake, folder):
    message = fake(folder, "--data", "elsewhere", code=NO_INPUT)
    assert f"{folder.path}/elsewhere/fake/train-images" in message and f"\n    {folder.path}/fake/" not in message


def test_gzip_gives_the_same(fake, folder):
    expected = losses(fake(folder))
    for name in ("train-images", "train-labels", "test-images"):
        folder.compress(name)
    assert losses(fake(folder)) == expected


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4"])
def test_labels_of_any_integer_type(dtype, fake, folder):
    expected = losses(fake(folder))
    folder.write("train-labels", idx_bytes(examples(203)[1].astype(dtype)))
    assert losses(fake(folder)) == expected


# ---- npy, for predict --input ----


def save_npy(folder, array, **options):
    np.save(folder / "x.npy", array, **options)


def raw_npy(header):
    def save(folder):
        text = header.encode()
        (folder / "x.npy").write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text + bytes(16))

    return save


GOOD_HEADER = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 4, 4), }"
BAD_NPY = {
    "type": (lambda folder: save_npy(folder, np.full((2, 4, 4), 0.25)), ["element [0, 0] is 0.25, which does not fit in u8", "the file holds f64"]),
    "shape": (lambda folder: save_npy(folder, np.zeros((2, 16), "u1")), ["[4, 4]", "[16]",
                                                                                            "write image : u8[16] in the model file, and reshape(image, [4, 4])"]),
    "order": (raw_npy(GOOD_HEADER.replace("False", "Maybe")), ["neither True nor False"]),
    "complex": (lambda folder: save_npy(folder, np.zeros((2, 4, 4), "c8")), ["element type"]),
    "scalar": (lambda folder: save_npy(folder, np.uint8(3)), ["shape"]),
    "cut off": (raw_npy(GOOD_HEADER.replace("(1,", "(2,")), ["cut off"]),
    "long": (raw_npy(GOOD_HEADER.replace("(1,", "(0,")), ["holds no examples"]),
    "negative": (raw_npy(GOOD_HEADER.replace("(1,", "(-1,")), ["shape"]),
    "vast": (raw_npy(GOOD_HEADER.replace("(1,", "(99999999999999999999,")), ["a size of its shape is beyond 64 bits"]),
    "no shape": (raw_npy("{'descr': '|u1', 'fortran_order': False, }"), ["shape"]),
    "unclosed shape": (raw_npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 4"), ["shape"]),
    "garbage": (raw_npy("\x00\x01"), ["element type"]),
    "header": (lambda folder: (folder / "x.npy").write_bytes(b"\x93NUMPY\x01\0\xff\0{"), ["ends within its header"]),
    "magic": (lambda folder: (folder / "x.npy").write_bytes(b"\x93NUM"), ["NUMPY"]),
}


@pytest.mark.parametrize("dtype", ["|u1", "<i4", ">i2"])
def test_any_order_of_indices(dtype, fake, folder):
    """As pandas and MATLAB have their tables: the first index fastest."""
    images = np.random.default_rng(1).integers(0, 256, (5, 4, 4)).astype(dtype)
    fake(folder, "--save", "w", "--quiet")
    answers = []
    for order in "C", "F":
        save_npy(folder, np.array(images, order=order))
        fake(folder, "predict", "--load", "w", "--input", "x.npy", "--output", "y.npy")
        answers.append((folder / "y.npy").read_bytes())
    assert answers[0] == answers[1]


@pytest.mark.parametrize("case", BAD_NPY)
def test_bad_npy(case, fake, folder):
    write, says = BAD_NPY[case]
    fake(folder, "--save", "w", "--quiet")
    write(folder)
    message = fake(folder, "predict", "--load", "w", "--input", "x.npy", code=BAD_DATA)
    assert "x.npy" in message
    for text in says:
        assert text in message
