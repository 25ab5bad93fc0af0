"""Images as examples: folders of PNG and JPEG files, the files of CIFAR-10, and predictions from photos."""

import os
import shutil
import struct
import subprocess
import time

import numpy as np
import pytest

from image_files import GREY, PALETTE, chunk, cifar, jpeg_maker, png
from test_sockets import ended, free_port, torchrun

pytestmark = pytest.mark.quick

BAD_DATA, NO_INPUT = 65, 66
HEIGHT, WIDTH = 5, 7
MODEL = """data {
  train = images("train"RESIZE)
  image : u8[CHANNELS, 5, 7]
  label : class[3]
}
model {
  x      = flatten(image) * 1
  logits = linear(x / 255, 3)
}
train {
  loss      = cross_entropy(logits, label)
  predict   = x
  optimizer = sgd(0.1)
  batch     = 4
  epochs    = 1
}
"""


def model(channels=3, resize=False):
    return MODEL.replace("CHANNELS", str(channels)).replace("RESIZE", ", resize = true" if resize else "")


CLASSES = model().replace("  predict   = x\n", "").replace("flatten(image) * 1", "flatten(image)")


@pytest.fixture(scope="module")
def jpeg(tmp_path_factory):
    return jpeg_maker(tmp_path_factory.mktemp("jpeg"))


def noise(seed=0, channels=3, height=HEIGHT, width=WIDTH):
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def slope(channels=3, height=HEIGHT, width=WIDTH):
    """What JPEG keeps nearly as it is."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    return (40 + 12 * y + 9 * x + 20 * c).astype(np.uint8)


class Data:
    def __init__(self, path):
        self.path = path

    def write(self, name, content):
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_bytes(content)
        return self.path / name

    def classes(self, split="train"):
        for k, name in enumerate(("cat", "dog", "eel")):
            for i in range(4):
                self.write(f"{split}/{name}/{i}.png", png(noise(10 * k + i)))
        return self


@pytest.fixture
def data(tmp_path):
    return Data(tmp_path)


@pytest.fixture(scope="module")
def program(compile_model, tmp_path_factory):
    """program(**options): a trained program and its weights."""
    made = {}

    def make(**options):
        key = repr(sorted(options.items()))
        if key not in made:
            folder = tmp_path_factory.mktemp("trained")
            Data(folder).classes()
            compiled = compile_model(model(**options))
            compiled("--data", folder, "--save", folder / "w", "--quiet")
            made[key] = compiled, folder / "w"
        return made[key]

    return make


@pytest.fixture
def read(program, data):
    """read(content): the planes that a program of these channels sees of a file; what it says where it must refuse it."""

    def read_file(content, channels=3, *flags, code=0, **options):
        compiled, weights = program(channels=channels, **options)
        done = compiled("predict", "--load", weights, "--input", data.write("photo", content), *flags, check=False)
        assert done.returncode == code, done.stderr
        if code:
            return done.stderr
        values, path = done.stdout.rstrip("\n").rsplit("\t", 1)
        assert path.endswith("/photo")
        return np.array(values.split("\t"), float).reshape(channels, HEIGHT, WIDTH)

    return read_file


def planes(pixels):
    return pixels.transpose(2, 0, 1)


def brightness(pixels):
    return (pixels @ np.array([19595, 38470, 7471]) + 32768 >> 16)[None]


# ---- what is read ----

def test_png_of_colours_and_grey(read):
    colours, grey = noise(), noise(1, 1)
    assert np.array_equal(read(png(colours)), planes(colours))
    assert np.array_equal(read(png(grey), 1), planes(grey))
    assert np.array_equal(read(png(grey)), planes(grey).repeat(3, 0))
    assert np.array_equal(read(png(colours), 1), brightness(colours))


@pytest.mark.parametrize("interlaced", [False, True])
def test_png_of_every_kind(read, interlaced):
    colours, grey = noise(2), noise(3, 1)
    alpha = np.concatenate([colours, noise(4, 1)], 2)
    assert np.array_equal(read(png(alpha, interlaced=interlaced)), planes(colours))
    assert np.array_equal(read(png(np.concatenate([grey, noise(5, 1)], 2), interlaced=interlaced), 1), planes(grey))
    for bits in (1, 2, 4, 8):
        few = grey >> 8 - bits
        assert np.array_equal(read(png(few, bits=bits, interlaced=interlaced), 1), planes(few) * (255 // (2 ** bits - 1)))
        table = np.random.default_rng(bits).integers(0, 256, (2 ** bits, 3), dtype=np.uint8)
        content = png(few, PALETTE, bits, chunk(b"PLTE", table.tobytes()), interlaced)
        assert np.array_equal(read(content), planes(table[few[:, :, 0]]))


def test_transparent_colours_are_kept(read):
    colours = noise(6)
    assert np.array_equal(read(png(colours, before=chunk(b"tRNS", bytes(6)))), planes(colours))
    table = noise(7).reshape(-1, 3)[:4]
    index = noise(8, 1) & 3
    content = png(index, PALETTE, 8, chunk(b"PLTE", table.tobytes()) + chunk(b"tRNS", b"\0\x80"))
    assert np.array_equal(read(content), planes(table[index[:, :, 0]]))


def test_gamma_and_text_do_not_matter(read):
    colours = noise(9)
    before = chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(b"tEXt", b"Comment\0a cat")
    assert np.array_equal(read(png(colours, before=before)), planes(colours))


@pytest.mark.parametrize("options", [(), ("progressive",)])
def test_jpeg(read, jpeg, options):
    assert abs(read(jpeg(slope(), 100, *options)) - planes(slope())).max() <= 2
    assert abs(read(jpeg(slope(1), 100, *options), 1) - planes(slope(1))).max() <= 1
    assert abs(read(jpeg(slope(1), 100, *options)) - planes(slope(1))).max() <= 1
    assert abs(read(jpeg(slope(), 100, *options), 1) - brightness(slope())).max() <= 2


def scaled(pixels, height, width):
    """Each pixel of the result: the triangle-weighted mean of those around its centre."""
    for axis, out in ((1, width), (0, height)):
        size = pixels.shape[axis]
        scale = size / out
        centre = (np.arange(out)[:, None] + 0.5) * scale
        weight = np.maximum(0, 1 - abs(np.arange(size) + 0.5 - centre) / max(scale, 1))
        pixels = np.moveaxis(np.tensordot(weight / weight.sum(1, keepdims=True), pixels, (1, axis)), 0, axis)
    return pixels


@pytest.mark.parametrize("height, width", [(5, 14), (10, 7), (3, 4), (50, 61), (1, 1), (400, 3)])
def test_resize(read, height, width):
    pixels = noise(11, 3, height, width)
    expected = planes(scaled(pixels.astype(float), HEIGHT, WIDTH))
    assert abs(read(png(pixels), 3, resize=True) - expected).max() <= 0.501
    assert np.array_equal(read(png(pixels), 3, "--resize"), read(png(pixels), 3, resize=True))


# ---- what is refused ----

def test_another_size(read):
    message = read(png(noise(0, 3, 6, 7)), code=BAD_DATA)
    assert "photo: is 7 x 6 pixels (width x height), expected 7 x 5" in message and "--resize" in message


def test_a_huge_image_is_not_even_tried(read):
    def promise(size):
        header = struct.pack(">IIBBBBB", size, size, 8, GREY, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"")

    assert "is no whole PNG image" in read(promise(1 << 20), 3, "--resize", code=BAD_DATA)
    assert "100000 x 100000 pixels; at most 67108864" in read(promise(100000), 3, "--resize", code=BAD_DATA)


def test_cut_off_files(read, jpeg):
    whole = png(noise())
    for end in (9, 20, 40, len(whole) // 2, len(whole) - 13, len(whole) - 5):
        assert "photo: is no whole PNG image" in read(whole[:end], code=BAD_DATA)
    whole = jpeg(slope())
    for end in (4, 30, len(whole) // 2, len(whole) - 3):
        assert "photo: is no whole JPEG image" in read(whole[:end], code=BAD_DATA)


def test_damaged_files(read):
    whole = bytearray(png(noise()))
    whole[50] ^= 1
    assert "is no whole PNG image" in read(bytes(whole), code=BAD_DATA)


def test_other_formats(read):
    deep = noise().astype(np.uint16) * 257
    assert "16 bits" in read(png(deep, bits=16), code=BAD_DATA)
    animated = png(noise(), before=chunk(b"acTL", struct.pack(">II", 2, 0)))
    assert "is animated" in read(animated, code=BAD_DATA)
    for name, content in (("GIF", b"GIF89a" + bytes(20)), ("WebP", b"RIFF\0\0\0\0WEBPVP8 "), ("TIFF", b"II*\0" + bytes(20))):
        assert f"is a {name} file; images are PNG or JPEG" in read(content, code=BAD_DATA)


def test_inks(read, jpeg):
    assert "CMYK" in read(jpeg(slope(4)), code=BAD_DATA)


# ---- folders ----

@pytest.fixture
def train(compile_model, data):
    def run(*flags, code=0, **options):
        done = compile_model(model(**options))("--data", data.path, *flags, check=False, cwd=data.path)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr if code else done.stdout

    return run


def test_classes_are_the_folders(compile_model, data):
    data.classes()
    program = compile_model(CLASSES)
    program("--data", data.path, "--save", data.path / "w", "--epochs", "60", "--quiet")
    assert "0 cat, 1 dog, 2 eel" in program("info", data.path / "w").stdout
    lines = program("predict", "--load", data.path / "w", "--input", data.path / "train").stdout.splitlines()
    assert lines[0] == "class\tprobability\tfile" and len(lines) == 13
    words = [line.split("\t") for line in lines[1:]]
    assert [word for word, _, _ in words] == ["cat"] * 4 + ["dog"] * 4 + ["eel"] * 4
    assert [path.split("/train/")[1] for _, _, path in words][:5] == ["cat/0.png", "cat/1.png", "cat/2.png", "cat/3.png", "dog/0.png"]


def test_hidden_files_and_files_beside_the_folders_do_not_count(train, data):
    data.classes()
    train("--save", "a", "--quiet")
    data.write("train/.cache/x", b"x")
    data.write("train/README", b"x")
    data.write("train/cat/.DS_Store", b"x")
    train("--save", "b", "--quiet")
    assert (data.path / "a").read_bytes() == (data.path / "b").read_bytes()


@pytest.mark.parametrize("name, content, message", [
    ("cat/note.txt", b"hello", "train/cat/note.txt: is no image: a folder of images holds images only, files .png, .jpg or .jpeg"),
    ("cat/9.JPG", b"hello", "train/cat/9.JPG: is no image, neither PNG nor JPEG"),
    ("cat/9.png", b"", "train/cat/9.png: is empty, expected a PNG or JPEG image"),
    ("cat/deep/1.png", b"", "train/cat/deep: is a folder within a class's folder, where images are expected"),
    ("fox/0.png", png(noise()), "train: has folders for 4 classes, and 'label' has 3"),
    ("dog/2.png", png(noise(0, 3, 9, 9)), "train/dog/2.png: is 9 x 9 pixels (width x height), expected 7 x 5"),
])
def test_bad_folders(train, data, name, content, message):
    data.classes()
    data.write(f"train/{name}", content)
    assert message in train(code=BAD_DATA)


def test_bad_files_are_named_and_counted(train, data):
    data.classes()
    for name in ("cat/3.png", "dog/0.png", "dog/1.png", "dog/2.png", "eel/0.png", "eel/1.png"):
        data.write(f"train/{name}", b"?")
    message = train(code=BAD_DATA)
    places = [message.index(f"train/{name}: is no image") for name in ("cat/3.png", "dog/0.png", "dog/1.png", "dog/2.png", "eel/0.png")]
    assert places == sorted(places) and "eel/1.png" not in message
    assert "  and 1 more\n  6 of 12 files cannot be used; --bad-rows skip leaves such files out\n" in message


def test_bad_files_are_left_out(compile_model, data):
    data.classes()
    for name in ("dog/0.png", "eel/note.txt"):
        data.write(f"train/{name}", b"?")
    program = compile_model(CLASSES)
    done = program("--data", data.path, "--bad-rows", "skip", "--epochs", "60", "--save", data.path / "w")
    assert "warning: 2 bad images were left out; the first: " in done.stderr and "train/dog/0.png: is no image" in done.stderr
    assert not (data.path / ".train.mtc-cache").exists()

    def predict(*flags):
        lines = program("predict", "--load", data.path / "w", "--bad-rows", "skip", *flags).stdout.splitlines()
        assert lines[0] == "class\tprobability\tfile"
        return [(word, path.split("/train/")[1]) for word, _, path in (line.split("\t") for line in lines[1:])]

    rows = predict("--input", data.path / "train")
    assert len(rows) == 13 and [path for word, path in rows if word == "nan"] == ["dog/0.png", "eel/note.txt"]
    assert predict("--data", data.path, "--split", "train") == [row for row in rows if row[0] != "nan"]
    assert [word for word, _ in rows if word != "nan"] == ["cat"] * 4 + ["dog"] * 3 + ["eel"] * 4
    for path in (data.path / "train").glob("*/*"):
        path.write_bytes(b"?")
    done = program("--data", data.path, "--bad-rows", "skip", check=False)
    assert done.returncode == BAD_DATA and "no image can be used; the first bad one: " in done.stderr


def test_images_to_predict_come_in_one_folder(compile_model, data):
    data.classes()
    program = compile_model(CLASSES)
    program("--data", data.path, "--save", data.path / "w", "--quiet")
    for count in (2, 3):
        inputs = [item for i in range(count) for item in ("--input", data.path / f"train/cat/{i}.png")]
        done = program("predict", "--load", data.path / "w", *inputs, check=False)
        assert done.returncode == 64 and "put them in a folder: --input FOLDER" in done.stderr


# ---- what is written is no image ----

@pytest.mark.parametrize("args", [
    ["--save", "train/cat/0.png"], ["--save", "train/dog/run.safetensors"], ["--log", "train/run.jsonl"],
    ["--save", "train/cat/../w"], ["--save", "link/w"], ["--save", "elsewhere.png"], ["--log", "hard.png"],
    ["--save", "w", "--log", "new-link"], ["--tensorboard", "train/cat"], ["--tensorboard", "train/new/run"],
    ["predict", "--input", "train", "--output", "train/dog/1.png"], ["predict", "--output", "train/dog/new.npy"],
    ["predict", "--input", "shots", "--output", "shots/a.npy"], ["predict", "--input", "shots/0.png", "--output", "shots/0.png"],
])
def test_outputs_among_images(compile_model, data, monkeypatch, args):
    data.classes()
    monkeypatch.chdir(data.path)
    program = compile_model(CLASSES)
    data.write("shots/0.png", png(noise()))
    os.symlink("train/eel", "link")
    os.symlink("train/eel/0.png", "elsewhere.png")
    os.link("train/eel/1.png", "hard.png")
    os.symlink("train/eel/2.png", "new-link")
    before = {path: path.read_bytes() for path in data.path.rglob("*") if path.is_file()}
    command = ["predict", "--load", "weights"] if args[0] == "predict" else []
    done = program(*command, "--data", ".", *(args[1:] if command else args), check=False, cwd=data.path)
    assert done.returncode == 73, done.stderr
    assert "a folder of images" in done.stderr or "it would be overwritten" in done.stderr
    assert {path: path.read_bytes() for path in data.path.rglob("*") if path.is_file()} == before


def test_outputs_beside_images(compile_model, data, monkeypatch):
    data.classes()
    monkeypatch.chdir(data.path)
    for _ in range(2):
        compile_model(CLASSES)("--data", ".", "--save", "w", "--log", "train.jsonl", "--quiet", cwd=data.path)


def test_empty_and_missing_folders(train, data):
    assert "no data folder 'train'" in train(code=NO_INPUT)
    (data.path / "train").mkdir()
    assert "train: has no folders: each class has one" in train(code=BAD_DATA)
    data.write("train/0.png", png(noise()))
    assert "1 file lies in the folder itself" in train(code=BAD_DATA)
    (data.path / "train/cat").mkdir()
    assert "train/cat: the folder of a class holds no images" in train(code=BAD_DATA)


def test_unreadable_file(train, data):
    data.classes()
    os.symlink("nowhere", data.path / "train/cat/x.png")
    assert "train/cat/x.png: cannot open" in train(code=NO_INPUT)


# ---- kept images ----

def test_kept_images(train, data):
    def weights(name):
        train("--save", name, "--quiet")
        return (data.path / name).read_bytes()[-500:]

    data.classes()
    kept = data.path / ".train.mtc-cache"
    first = weights("a")
    assert kept.stat().st_size == 48 + 12 * 3 * HEIGHT * WIDTH
    stamp = kept.stat().st_mtime_ns
    assert weights("b") == first and kept.stat().st_mtime_ns == stamp
    damaged = bytearray(kept.read_bytes())
    damaged[-1] ^= 1
    kept.write_bytes(damaged)
    assert weights("c") == first and kept.read_bytes() != bytes(damaged)
    time.sleep(0.01)
    data.write("train/cat/0.png", png(noise(99)))
    assert weights("d") != first
    kept.unlink()
    train("--no-cache", "--quiet")
    assert not kept.exists()


# ---- CIFAR-10 ----

CIFAR = """data {
  train = cifar10("batches", "train")
  test  = cifar10("batches", "test")
  image : u8[3, 32, 32]
  label : class[10]
}
model {
  x      = flatten(image) * 1
  logits = linear(x / 255, 10)
}
train {
  loss      = cross_entropy(logits, label)
  predict   = x
  optimizer = sgd(0.01)
  batch     = 8
  epochs    = 1
}
"""


@pytest.fixture
def batches(data):
    for i in range(1, 6):
        data.write(f"batches/data_batch_{i}.bin", cifar([i, 0, 9], i)[0])
    data.write("batches/test_batch.bin", cifar([3, 4], 7)[0])
    return data


def test_cifar(compile_model, batches):
    program = compile_model(CIFAR)
    program("--data", batches.path, "--save", batches.path / "w", "--quiet")
    expected = {"test": cifar([3, 4], 7)[1], "train": np.concatenate([cifar([i, 0, 9], i)[1] for i in range(1, 6)])}
    for split, pixels in expected.items():
        out = batches.path / f"{split}.npy"
        program("predict", "--data", batches.path, "--load", batches.path / "w", "--split", split, "--output", out)
        assert np.array_equal(np.load(out), pixels.reshape(len(pixels), -1))


def test_photos_for_a_program_of_cifar(compile_model, batches):
    program = compile_model(CIFAR)
    program("--data", batches.path, "--save", batches.path / "w", "--quiet")
    pixels = noise(1, 3, 32, 32)
    np.save(batches.path / "array.npy", planes(pixels)[None])
    photo = program("predict", "--load", batches.path / "w", "--input", batches.write("a.png", png(pixels)))
    assert photo.stderr.startswith("1 image predicted in ")
    array = program("predict", "--load", batches.path / "w", "--input", batches.path / "array.npy").stdout
    assert photo.stdout.rsplit("\t", 1)[0] + "\n" == array


@pytest.mark.parametrize("name, content, message", [
    ("data_batch_2.bin", cifar([1, 2])[0][:-1], "data_batch_2.bin: has 6145 bytes, expected records of 3073"),
    ("data_batch_2.bin", b"", "data_batch_2.bin: has 0 bytes, expected records of 3073"),
    ("data_batch_4.bin", cifar([1, 10])[0], "data_batch_4.bin: the label of record 1 is 10, expected 0 to 9"),
])
def test_bad_records(compile_model, batches, name, content, message):
    batches.write(f"batches/{name}", content)
    done = compile_model(CIFAR)("--data", batches.path, check=False)
    assert done.returncode == BAD_DATA and message in done.stderr


def test_a_missing_batch(compile_model, batches):
    (batches.path / "batches/data_batch_5.bin").unlink()
    done = compile_model(CIFAR)("--data", batches.path, check=False)
    assert done.returncode == NO_INPUT and "no data file 'batches/data_batch_5.bin'" in done.stderr


# ---- splits and words ----

SPLIT = """data {
  train = images("train")
  test  = images("test")
  image : u8[5, 7]
  label : class[300]
}
model { logits = linear(flatten(image) / 255, 300) }
train {
  loss      = cross_entropy(logits, label)
  metric    = accuracy(logits, label)
  optimizer = sgd(0.1)
  batch     = 4
  epochs    = 40
}
"""


def test_labels_of_test_images_are_those_of_training(compile_model, data):
    """The test folder lacks a class, so that its own numbers would be others."""
    data.classes().classes("test")
    shutil.rmtree(data.path / "test/cat")
    program = compile_model(SPLIT)
    program("--data", data.path, "--save", data.path / "w", "--quiet")
    assert "accuracy 1\n" in program("eval", "--data", data.path, "--load", data.path / "w").stdout


def test_a_class_that_training_lacks(compile_model, data):
    data.classes().classes("test")
    data.write("test/fox/0.png", png(noise()))
    done = compile_model(SPLIT)("--data", data.path, check=False)
    assert done.returncode == BAD_DATA and "test: 'fox' is no class of the training images" in done.stderr


def test_a_split_of_one_folder(compile_model, data):
    data.classes("all")
    text = SPLIT.replace('train = images("train")\n  test  = images("test")', 'examples = images("all")\n  split = 75 / 25')
    assert compile_model(text)("--data", data.path, "--epochs", "1").returncode == 0


def test_images_without_labels(compile_model, data):
    data.classes()
    text = CLASSES.replace("  label : class[3]\n", "").replace("cross_entropy(logits, label)", "mean(logits ^ 2)\n  predict = logits")
    assert compile_model(text)("--data", data.path).returncode == 0


# ---- several processes ----


def ranks(program, *flags, folders):
    """What each found in its own folder: exit codes, and what they said."""
    port = free_port()
    jobs = [subprocess.Popen([*map(str, [program.path, "--data", folder, "--save", "w", "--quiet", *flags])], cwd=folders[0], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**os.environ, "OMP_NUM_THREADS": "1", **torchrun(rank, len(folders), port)})
            for rank, folder in enumerate(folders)]
    codes, _, told = ended(jobs)
    return codes, told


@pytest.fixture
def shared(compile_model, tmp_path):
    """A program, two folders with the same twelve images, and what one process makes of them."""
    program = compile_model(CLASSES, "--shards", 2)
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
        Data(folder).classes()
    program("--data", folders[0], "--save", tmp_path / "alone", "--quiet", "--no-cache")
    return program, folders, (tmp_path / "alone").read_bytes()


def images(folder):
    return sorted(folder.glob("train/*/*.png"))


def test_each_rank_decodes_a_part(shared):
    """What the other decodes may be anything here, as long as it has the name."""
    program, folders, expected = shared
    for file in images(folders[0])[6:] + images(folders[1])[:6]:
        file.write_bytes(png(noise(99)))
    for flags in ["--no-cache"], [], []:
        codes, told = ranks(program, *flags, folders=folders)
        assert not any(codes) and (folders[0] / "w").read_bytes() == expected, told


def test_who_has_kept_images_gives_them(shared):
    program, folders, expected = shared
    program("--data", folders[1], "--save", folders[1] / "w", "--quiet")
    codes, told = ranks(program, folders=folders)
    assert not any(codes) and (folders[0] / "w").read_bytes() == expected, told


def test_a_bad_file_is_every_rank_s(shared):
    program, folders, _ = shared
    for folder in folders:
        images(folder)[2].write_bytes(b"x" * 100)
    codes, told = ranks(program, folders=folders)
    assert codes[0] == BAD_DATA and codes[1] and told.count("error: ") == 1 and "1 of 12 files cannot be used" in told, told
    codes, told = ranks(program, "--bad-rows", "skip", folders=folders)
    program("--data", folders[0], "--save", folders[0] / "alone", "--quiet", "--bad-rows", "skip")
    assert not any(codes) and told.count("1 bad image was left out") == 1 and (folders[0] / "w").read_bytes() == (folders[0] / "alone").read_bytes()


def test_ranks_have_one_list(shared):
    program, folders, _ = shared
    images(folders[1])[2].rename(folders[1] / "train/cat/x.png")
    codes, told = ranks(program, folders=folders)
    assert all(codes) and told.count("error: ") == 1 and "has another list of images than rank 0" in told, told
    shutil.rmtree(folders[1] / "train")
    codes, told = ranks(program, folders=folders)
    assert codes[1] == NO_INPUT and codes[0] and told.count("error: ") == 1 and "b/train" in told, told
