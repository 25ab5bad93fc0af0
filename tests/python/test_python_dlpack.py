"""DLPack and parameters of the Python package: memory shared with others, shown by addresses, and its lifetime.

What PyTorch shares is in test_python_torch.py."""

import ctypes
import gc
import re
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest

from conftest import ROOT

import mtc
from mtc import dlpack, lending
from mtc.dlpack import DeviceArray, from_dlpack, to_capsule
from mtc.library import Session

pytestmark = pytest.mark.quick

CPU = (dlpack.CPU, 0)
with_numpy_2_1 = pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0",
                                    reason="np.from_dlpack is asked for a copy, a bool, or memory that may be written: NumPy 2.1")


class Owner:
    """Memory, and whether it is still there."""

    def __init__(self, values):
        self.values = values


def owned(values):
    """An array in the memory of an owner, and a reference that tells whether the owner is alive."""
    owner = Owner(np.ascontiguousarray(values))
    array = DeviceArray(owner.values.ctypes.data, owner.values.shape, "f32", CPU, owner)
    return array, weakref.ref(owner)


def numbers(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def address(array):
    return array.__array_interface__["data"][0]


# ---- Consuming ----


def test_consumes_numpy_without_a_copy():
    values = numbers(3, 4)
    array = from_dlpack(values)
    assert (array.pointer, array.shape, array.strides) == (values.ctypes.data, (3, 4), (4, 1))
    assert (array.dtype, array.device, array.nbytes, array.is_contiguous) == ("f32", CPU, 48, True)
    assert np.shares_memory(array.numpy(), values)


def test_strides_and_offset():
    values = numbers(6, 4)
    part = from_dlpack(values[1::2, ::-1].T)
    assert part.shape == (4, 3) and part.strides == (-1, 8) and not part.is_contiguous
    assert part.pointer == values.ctypes.data + (4 + 3) * 4
    assert np.array_equal(part.numpy(), values[1::2, ::-1].T)
    assert from_dlpack(values[:1, :1]).is_contiguous  # strides of axes of one element do not matter


@pytest.mark.parametrize("dtype", [pytest.param("bool", marks=with_numpy_2_1), "uint8", "uint16", "uint32", "uint64",
                                   "int8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_types(dtype):
    values = np.array([0, 1, 1, 0], dtype)
    array = from_dlpack(values)
    assert array.numpy().dtype == values.dtype and np.array_equal(np.from_dlpack(array), values)


def test_refuses_what_it_cannot_hold():
    with pytest.raises(BufferError, match="complex64"):
        from_dlpack(np.zeros(3, np.complex64))
    with pytest.raises(TypeError, match="__dlpack__ is expected, not list"):
        from_dlpack([1, 2])


def test_vectors_are_refused_and_deleted():
    """Numbers in lanes; the producer's deleter is called all the same."""
    array, alive = owned(numbers(4))
    capsule = array.__dlpack__()
    managed = dlpack._Managed.from_address(dlpack._capsule_pointer(capsule, dlpack._NAMES[0]))
    managed.tensor.dtype.lanes = 4
    with pytest.raises(BufferError, match="vectors of 4"):
        from_dlpack(capsule)
    del array, capsule
    gc.collect()
    assert alive() is None


def test_byte_offset():
    values = numbers(8)
    capsule = DeviceArray(values.ctypes.data, (4,), "f32", CPU, values).__dlpack__()
    dlpack._Managed.from_address(dlpack._capsule_pointer(capsule, dlpack._NAMES[0])).tensor.byte_offset = 8
    array = from_dlpack(capsule)
    assert array.pointer == values.ctypes.data + 8 and array.is_aligned == (values.ctypes.data % 16 == 8)
    assert array.numpy().tolist() == [2, 3, 4, 5]


def test_no_strides_are_row_major():
    values = numbers(2, 3)
    capsule = DeviceArray(values.ctypes.data, (2, 3), "f32", CPU, values).__dlpack__()
    dlpack._Managed.from_address(dlpack._capsule_pointer(capsule, dlpack._NAMES[0])).tensor.strides = None
    assert from_dlpack(capsule).strides == (3, 1)


def test_a_capsule_is_consumed_once():
    array, alive = owned(numbers(3))
    capsule = array.__dlpack__()
    taken = from_dlpack(capsule)
    assert '"used_dltensor"' in repr(capsule)
    with pytest.raises(BufferError, match="consumed before"):
        from_dlpack(capsule)
    del array, capsule
    assert alive() is not None and taken.numpy().tolist() == [0, 1, 2]
    del taken
    gc.collect()
    assert alive() is None


def test_later_versions_are_refused():
    array, alive = owned(numbers(3))
    capsule = array.__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    dlpack._ManagedVersioned.from_address(dlpack._capsule_pointer(capsule, dlpack._NAMES[1])).major = 2
    with pytest.raises(BufferError, match="version 2 of DLPack, mtc 1"):
        from_dlpack(capsule)
    del array, capsule
    gc.collect()
    assert alive() is None


class OldProducer:
    """Before DLPack 1.0: no argument max_version."""

    def __init__(self, array):
        self.array, self.streams = array, []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.array.__dlpack__()


def test_old_producers_and_streams():
    values = numbers(3)
    on_host = OldProducer(DeviceArray(values.ctypes.data, (3,), "f32", CPU, values))
    on_gpu = OldProducer(DeviceArray(4096, (3,), "f32", (dlpack.CUDA, 1)))
    assert from_dlpack(on_host).numpy().tolist() == [0, 1, 2] and on_host.streams == [None]
    assert str(from_dlpack(on_gpu).device) == "cuda:1" and on_gpu.streams == [dlpack.LEGACY_DEFAULT_STREAM]


# ---- Producing ----


def test_numpy_shares_the_memory():
    array, alive = owned(numbers(2, 3))
    pointer = array.pointer
    shared = np.from_dlpack(array)
    assert address(shared) == pointer
    del array
    assert alive() is not None and shared.tolist() == [[0, 1, 2], [3, 4, 5]]
    del shared
    gc.collect()
    assert alive() is None


def test_nobody_consumed_the_capsule():
    for versioned in (False, True):
        owner = Owner(numbers(3))
        alive = weakref.ref(owner)
        capsule = to_capsule(owner.values.ctypes.data, (3,), (1,), "f32", CPU, owner, versioned=versioned)
        del owner
        assert alive() is not None
        del capsule
        assert alive() is None


def test_strided_producer():
    values = numbers(4, 6)
    array = DeviceArray(values.ctypes.data, (6, 4), "f32", CPU, values, strides=(1, 6))
    assert np.array_equal(np.from_dlpack(array), values.T) and np.array_equal(np.asarray(array), values.T)


@with_numpy_2_1
def test_copies_where_asked():
    array, _ = owned(numbers(2, 3))
    copy = np.from_dlpack(array, copy=True)
    assert address(copy) != array.pointer and np.array_equal(copy, array.numpy())
    assert np.array(array, np.float64).dtype == np.float64
    on_gpu = DeviceArray(4096, (3,), "f32", (dlpack.CUDA, 0))
    with pytest.raises(BufferError, match="cannot be had without a copy on cpu"):
        on_gpu.__dlpack__(dl_device=CPU, copy=False)
    with pytest.raises(BufferError, match="on cuda:0"):
        array.__dlpack__(dl_device=(dlpack.CUDA, 0))
    with pytest.raises(BufferError, match="its own library copies it"):
        on_gpu.numpy()


@with_numpy_2_1
def test_reads_what_the_host_does_not_reach():
    """With strides, also negative ones: one read of all between the first element and the last."""
    values, calls = numbers(4, 5), []

    def read(host, memory, size):
        calls.append(size)
        ctypes.memmove(host, memory, size)

    cuda = (dlpack.CUDA, 0)
    part = values[1:3, ::-2]
    array = DeviceArray(part.ctypes.data, part.shape, "f32", cuda, values, strides=(5, -2), read=read)
    assert np.array_equal(array.numpy(), part) and calls == [(5 + 4 + 1) * 4]
    assert np.array_equal(np.from_dlpack(array, device="cpu"), part)


@with_numpy_2_1
def test_read_only():
    values = numbers(3)
    values.flags.writeable = False
    array = from_dlpack(values)
    assert array.read_only and not array.numpy().flags.writeable and not np.from_dlpack(array).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        array.__dlpack__()  # a consumer of before 1.0 could not know
    assert np.from_dlpack(from_dlpack(numbers(3))).flags.writeable


def test_bf16_is_read_as_f32():
    bits = (np.array([1, -2.5], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    array = DeviceArray(bits.ctypes.data, (2,), "bf16", CPU, bits)
    assert array.numpy().dtype == np.float32 and array.numpy().tolist() == [1, -2.5] and array.nbytes == 4


def test_empty_and_scalar():
    scalar = np.array(2.5)
    assert from_dlpack(scalar).numpy() == 2.5 and np.from_dlpack(from_dlpack(scalar)) == 2.5
    assert from_dlpack(np.zeros((0, 3), np.float32)).numpy().shape == (0, 3)


# ---- Lifetimes ----


def test_thousands_leave_nothing_behind():
    array, _ = owned(numbers(3))
    before = len(dlpack._given)
    for _ in range(5000):
        np.from_dlpack(array)
        array.__dlpack__()
        from_dlpack(from_dlpack(array.__dlpack__(max_version=(1, 0))))
    assert len(dlpack._given) == before


def test_deleted_by_other_threads():
    """By threads that Python started, many at once."""
    alive = []

    def share():
        for _ in range(200):
            array, reference = owned(numbers(16))
            alive.append(reference)
            assert np.from_dlpack(array)[3] == 3

    threads = [threading.Thread(target=share) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert not any(reference() for reference in alive)


# Keeps a struct as a library in C does, and deletes it: in a thread that Python does not know, or after Python ended.
HOLDER = """
#include <pthread.h>
#include <stddef.h>
struct managed { char tensor[48]; void *context; void (*deleter)(struct managed *); };
static struct managed *held;
static void *delete_held(void *unused) {
    held->deleter(held);
    held = NULL;
    return unused;
}
void hold(struct managed *managed) { held = managed; }
void delete_in_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, delete_held, NULL);
    pthread_join(thread, NULL);
}
__attribute__((destructor)) static void at_the_end(void) {
    if (held)
        held->deleter(held);
}
"""


@pytest.fixture(scope="module")
def holder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("holder")
    (folder / "holder.c").write_text(HOLDER)
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", folder / "holder.c", "-o", folder / "holder.so",
                    "-lpthread"], check=True)
    return folder / "holder.so"


START = f"""
import ctypes, sys
sys.path.insert(0, {str(ROOT / "python")!r})
import numpy as np
from mtc import dlpack, lending
from mtc.dlpack import DeviceArray

class Owner:
    def __init__(self):
        self.values = np.arange(4, dtype=np.float32)
    def __del__(self):
        print("the owner is gone", flush=True)

def made():
    owner = Owner()
    return DeviceArray(owner.values.ctypes.data, (4,), "f32", (1, 0), owner)

def give_to_c():
    capsule = made().__dlpack__()
    library = ctypes.CDLL(sys.argv[1])
    library.hold(ctypes.c_void_p(dlpack._capsule_pointer(capsule, dlpack._NAMES[0])))
    dlpack._capsule_rename(capsule, dlpack._USED_NAMES[0])
    return library
"""


def python(holder, text):
    done = subprocess.run([sys.executable, "-X", "dev", "-c", START + textwrap.dedent(text), holder],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def test_deleted_by_a_thread_of_c(holder):
    assert python(holder, """
        library = give_to_c()
        print("held", len(dlpack._given), flush=True)
        library.delete_in_thread()  # without the interpreter's lock
        print("deleted", len(dlpack._given), flush=True)
    """) == "held 1\nthe owner is gone\ndeleted 0\n"


def test_deleted_after_python_ended(holder):
    """The deleter is C's then; the owner was alive until the process ended."""
    assert python(holder, "give_to_c()\nprint('held')") == "held\n"


@pytest.mark.parametrize("where", ["global", "builtins", "module", "cycle", "thread", "atexit"])
def test_alive_when_python_ends(holder, where):
    """Capsules nobody took, and arrays that share memory, wherever they are held, end without a fault."""
    python(holder, f"""
        import atexit, builtins, threading, time
        def share():
            return [made().__dlpack__(), np.from_dlpack(made()), dlpack.from_dlpack(made().__dlpack__()),
                    dlpack.from_dlpack(np.ones(3)), give_to_c()]
        if {where!r} == "atexit":  # runs after the package's own
            atexit.unregister(dlpack._leave_to_c)
            atexit.register(lambda: globals().update(kept=share()))
            atexit.register(dlpack._leave_to_c)
        else:
            kept = share()
        if {where!r} == "builtins":
            builtins.kept = kept
        if {where!r} == "module":
            dlpack.kept = sys.kept = kept
        if {where!r} == "cycle":
            kept.append(kept)
            del kept
        if {where!r} == "thread":
            threading.Thread(target=lambda kept=kept: time.sleep(60), daemon=True).start()
            del kept
    """)


# ---- Parameters ----

FILTERS = """
param lr = 0.05 in 0..1

data {
  train = npz("train.npz")
  image : f32[3, 6, 6]
  label : class[4]
}

model {
  conv1 = conv2d(image, 5, 3, padding = 1, bias = false)
  bn1   = batch_norm(conv1)
  fc    = linear(flatten(relu(bn1)), 4)
}

train {
  loss      = cross_entropy(fc, label)
  metric    = accuracy(fc, label)
  optimizer = sgd(lr, momentum = 0.9)
  batch     = 8
  epochs    = 2
}
"""
SHAPES = {"conv1.weight": (5, 3, 3, 3), "bn1.weight": (5,), "bn1.bias": (5,), "bn1.running_mean": (5,),
          "bn1.running_var": (5,), "fc.weight": (4, 180), "fc.bias": (4,)}


def filters_data(examples=32):
    rng = np.random.default_rng(3)
    return rng.normal(0, 1, (examples, 3, 6, 6)).astype(np.float32), rng.integers(0, 4, examples).astype(np.uint8)


@pytest.fixture
def model():
    made = mtc.compile(FILTERS, target="cpu", seed=1)
    yield made
    made.close()


def test_names_and_shapes(model):
    assert {name: weight.shape for name, weight in model.params.items()} == SHAPES
    assert len(model.params) == len(SHAPES) and "fc.weight" in model.params and "nothing" not in model.params
    assert list(model.params.states()) == [f"{name}.momentum" for name in SHAPES if "running" not in name]
    weight = model.params["fc.weight"]
    assert (weight.dtype, weight.size, weight.nbytes, weight.ndim, len(weight)) == (np.float32, 720, 2880, 2, 4)
    assert repr(weight) == "Parameter('fc.weight', f32[4, 180], weight of line 13)"
    assert "fc.bias" in repr(model.params)
    with pytest.raises(KeyError, match="did you mean 'fc.weight'?"):
        model.params["fc.weigth"]
    with pytest.raises(TypeError, match="cannot be removed"):
        del model.params["fc.bias"]


def test_copies(model):
    weight = model.params["fc.weight"]
    copy = np.asarray(weight)
    assert np.array_equal(copy, weight.numpy()) and copy.shape == (4, 180) and copy.dtype == np.float32
    copy[:] = 0
    assert weight.numpy().any() and weight[1, 2] == weight.numpy()[1, 2] and weight[:, 0].shape == (4,)
    assert np.asarray(weight, np.float64).dtype == np.float64


def test_the_memory_in_the_arena(model):
    """No copy: the address is the arena's, plus the offset that the program gave the tensor."""
    arena = model.status["arena"]
    offsets = {tensor["name"]: tensor["offset"] for tensor in model.description["tensors"]}
    for name, parameter in model.params.items():
        shared = np.from_dlpack(parameter)
        assert address(shared) == parameter.data_ptr() == arena + offsets[name]
        assert np.array_equal(shared, parameter.numpy()) and shared.shape == SHAPES[name]


def test_axes_in_another_order_are_a_view(model):
    weight = model.params["conv1.weight"]
    shared = np.from_dlpack(weight)
    assert tuple(step // 4 for step in shared.strides) == weight.strides and sorted(weight.strides)[0] == 1
    assert np.array_equal(shared, weight.numpy())


@with_numpy_2_1
def test_writing_through_shared_memory(model):
    for name in ("fc.weight", "conv1.weight"):
        shared = np.from_dlpack(model.params[name])
        shared[1] = 0.5
        assert (model.params[name].numpy()[1] == 0.5).all() and shared.flags.writeable
        model.params[name][...] = np.zeros(SHAPES[name])
        assert not shared.any()


def test_training_is_seen_by_what_shares_memory(model):
    shared = np.from_dlpack(model.params["fc.weight"])
    before = shared.copy()
    model.fit(*filters_data(), epochs=1, verbose=0)
    assert (shared != before).any() and np.array_equal(shared, model.params["fc.weight"].numpy())


def test_the_memory_goes_before_its_session(monkeypatch):
    """Also where both are garbage of one cycle, of which Python ends the session first."""
    session = mtc.compile(FILTERS, target="cpu", seed=1).session
    calls, functions = [], session.library.functions

    class Told:
        def __getattr__(self, name):
            calls.append(name)
            return getattr(functions, name)

    monkeypatch.setattr(session.library, "functions", Told())
    cycle = [Session(session.library, 1, 0)]
    cycle += [lending.new_array(cycle[0], (5,)), cycle]
    del cycle
    gc.collect()
    assert calls[-2:] == ["mtc_memory_free", "mtc_destroy"] and calls.count("mtc_memory_free") == 1


def test_the_memory_outlives_the_model():
    model = mtc.compile(FILTERS, target="cpu", seed=1)
    shared, expected = np.from_dlpack(model.params["fc.weight"]), model.params["fc.weight"].numpy()
    handle = weakref.ref(model.session.handle)
    model.close()
    gc.collect()
    assert handle() is not None and np.array_equal(shared, expected)
    del shared
    gc.collect()
    assert handle() is None


def test_writing(model):
    values = np.arange(720, dtype=np.float64).reshape(4, 180)
    model.params["fc.weight"] = values[::-1]
    assert np.array_equal(model.params["fc.weight"].numpy(), values[::-1])
    model.params["fc.weight"][2, 5] = -1
    assert model.params["fc.weight"][2, 5] == -1 and model.params["fc.weight"][2, 6] == values[1, 6]
    model.params["fc.bias"] = 3
    model.params["bn1.bias"][...] = [1, 2, 3, 4, 5]
    assert model.params["fc.bias"].numpy().tolist() == [3] * 4 and model.params["bn1.bias"][4] == 5
    model.params["fc.bias.momentum"][...] = 1  # of the optimizer
    assert model.params.states()["fc.bias.momentum"].numpy().tolist() == [1] * 4


@pytest.mark.parametrize(("values", "message"), [
    (np.zeros((180, 4)), "'fc.weight' has the shape [4, 180], the values [180, 4]"),
    (np.full((4, 180), 1e300), "'fc.weight' is stored as f32, which does not reach 1e+300"),
    (np.full((4, 180), "one"), "'fc.weight' is made of numbers (f32), not of <U3"),
])
def test_what_cannot_be_written(model, values, message):
    before = model.params["fc.weight"].numpy()
    with pytest.raises(mtc.DataError, match=re.escape(message)):
        model.params["fc.weight"] = values
    assert np.array_equal(before, model.params["fc.weight"].numpy())


# ---- All of them ----


def test_state_dict_round_trip(model):
    data = filters_data()
    model.fit(*data, epochs=1, verbose=0)
    saved, expected = model.state_dict(), model.predict_proba(data[0])
    assert {name: values.shape for name, values in saved.items()} == SHAPES
    model.fit(*data, epochs=2, verbose=0)
    assert (model.predict_proba(data[0]) != expected).any()
    assert model.load_state_dict(saved) == ([], [])
    assert np.array_equal(model.predict_proba(data[0]), expected)


def test_renaming(model):
    saved = {name: values + 1 for name, values in model.state_dict().items()}
    theirs = {name.replace("conv1", "features.0").replace("fc", "head"): values for name, values in saved.items()}
    model.load_state_dict(theirs, rename={"features.0.weight": "conv1.weight", "head": "fc"})
    assert all(np.array_equal(model.params[name].numpy(), saved[name]) for name in saved)
    model.load_state_dict({name: values + 1 for name, values in theirs.items()},
                          rename=lambda name: name.replace("features.0", "conv1").replace("head", "fc"))
    assert all(np.array_equal(model.params[name].numpy(), saved[name] + 1) for name in saved)
    assert set(model.state_dict(rename={"fc": "head"})) == {name.replace("fc", "head") for name in SHAPES}
    with pytest.raises(mtc.DataError, match="two arrays are called 'fc.bias' after renaming; 'fc.bias' is the second"):
        model.load_state_dict({**theirs, "fc.bias": theirs["head.bias"]}, rename={"head": "fc"})


def test_what_does_not_fit_is_listed(model):
    before = model.state_dict()
    given = {name: values + 1 for name, values in before.items() if name != "fc.bias"}
    given["fc.bais"], given["fc.weight"] = np.zeros(4), np.zeros((180, 4))
    with pytest.raises(mtc.DataError) as error:
        model.load_state_dict(given)
    assert str(error.value) == """the arrays are not those of the model; nothing was changed
  missing: 'fc.bias' [4]
  unexpected: 'fc.bais'; did you mean 'fc.bias'?
  another shape: 'fc.weight' is [4, 180] in the model, [180, 4] here
  other names: rename={'theirs': 'ours'}; only what fits: strict=False"""
    with pytest.raises(mtc.DataError, match="another shape"):  # also where names need not agree
        model.load_state_dict(given, strict=False)
    assert all(np.array_equal(values, model.params[name].numpy()) for name, values in before.items())


def test_some_of_them(model):
    batches = {"bn1.num_batches_tracked": np.array(7)}  # PyTorch's; the model needs none
    result = model.load_state_dict({"fc.bias": np.ones(4), "extra": np.ones(1), **batches}, strict=False)
    assert result.missing == [name for name in SHAPES if name != "fc.bias"] and result.unexpected == ["extra"]
    assert model.params["fc.bias"].numpy().tolist() == [1] * 4
    assert model.load_state_dict({**model.state_dict(), **batches}) == ([], [])


# ---- Tensors of others as data ----


class Tensor:
    """What has DLPack, and is no NumPy array; its memory is said to be on whichever device."""

    def __init__(self, values, device=CPU):
        self.values, self.device, self.streams = values, device, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None, max_version=None):
        self.streams.append(stream)
        steps = [step // self.values.itemsize for step in self.values.strides]
        dtype = dlpack._TYPE_OF_CODE[{"f": 2, "u": 1, "i": 0, "c": 5}[self.values.dtype.kind], 8 * self.values.itemsize]
        return to_capsule(self.values.ctypes.data, self.values.shape, steps, dtype, self.device, self.values)


def test_data_by_dlpack(model):
    images, labels = filters_data()
    expected = model.predict_proba(images)
    tensor = Tensor(images)
    assert np.array_equal(np.asarray(model.predict_proba(tensor)), expected) and tensor.streams == [None]
    assert model.evaluate(tensor, Tensor(labels)) == model.evaluate(images, labels)


class OnGPU:
    """A session on a GPU whose memory is the host's."""

    description, device, handle, pointer = {"target": "cuda"}, 1, None, 0

    class library:
        class functions:
            @staticmethod
            def mtc_memory_read(session, host, memory, size):
                ctypes.memmove(host, memory, size)
                return 0


IMAGE = {"name": "image", "type": "f32", "shape": [4], "classes": 0}
GPU = (dlpack.CUDA, 1)


def aligned(*shape):
    memory = np.zeros(int(np.prod(shape)) + 8, np.float32)
    first = -memory.ctypes.data // 4 % 4
    return memory[first : first + int(np.prod(shape))].reshape(shape)


def test_lent_where_it_lies():
    tensor = Tensor(aligned(3, 4), GPU)
    array = lending.borrow(OnGPU(), IMAGE, tensor, "X")
    assert isinstance(array, DeviceArray) and array.pointer == tensor.values.ctypes.data and array.device == GPU
    assert tensor.streams == [dlpack.LEGACY_DEFAULT_STREAM]
    managed = lending.borrow(OnGPU(), IMAGE, Tensor(aligned(3, 4), (dlpack.CUDA_MANAGED, 0)), "X")
    assert isinstance(managed, DeviceArray)
    on_host = aligned(3, 4)
    assert np.shares_memory(lending.borrow(OnGPU(), IMAGE, Tensor(on_host), "X"), on_host)


@pytest.mark.parametrize(("values", "notice"), [
    (aligned(3, 4).astype(np.float64), "X: it is f64, the field 'image' f32; 96 bytes were copied to the host"),
    (np.asfortranarray(numbers(3, 4)), "X: its strides [1, 3] are not those of elements one behind the other; 48"),
    (aligned(13)[1:].reshape(3, 4), "is not a multiple of 16; 48 bytes were copied to the host"),
])
def test_read_from_the_gpu(values, notice):
    with pytest.warns(mtc.ConversionNotice, match=re.escape(notice)):
        array = lending.borrow(OnGPU(), IMAGE, Tensor(values, GPU), "X")
    assert isinstance(array, np.ndarray) and np.array_equal(array, values) and not np.shares_memory(array, values)


def test_memory_that_cannot_be_read():
    with pytest.raises(mtc.DataError, match="X: a Tensor on cuda:0 cannot be read from here: copy it"):
        lending.borrow(OnGPU(), IMAGE, Tensor(aligned(3, 4), (dlpack.CUDA, 0)), "X")
    with pytest.raises(mtc.DataError, match="X: a Tensor on rocm:0 cannot be read from here: copy it"):
        lending.borrow(OnGPU(), IMAGE, Tensor(aligned(3, 4), (10, 0)), "X")


def test_the_library_of_a_tensor():
    values = numbers(3)
    libraries = {"torch.nn": "torch", "cupy": "cupy", "jaxlib._jax": "jax", "numpy": "numpy", "mine": ""}
    for name, expected in libraries.items():
        made = type("Array", (), {"__module__": name})
        inherited = type("Mine", (made,), {"__module__": "elsewhere"})
        assert dlpack._library_of(made()) == dlpack._library_of(inherited()) == expected
    assert dlpack.like(values, made()) is values and dlpack.like(values, np.zeros(1)) is values


@with_numpy_2_1
def test_memory_of_the_device(model):
    """Freed when the last that shares it is gone, also after the model was closed."""
    array = lending.new_array(model.session, (5, 4))
    shared = np.from_dlpack(array)
    shared[:] = numbers(5, 4)
    handle = weakref.ref(model.session.handle)
    model.close()
    del array
    gc.collect()
    assert handle() is not None and shared[4, 3] == 19
    del shared
    gc.collect()
    assert handle() is None
