"""What people who know Keras, PyTorch or scikit-learn write, and what is written here. What layers, losses, optimizers and metrics
are called elsewhere is the compiler's table (compiler/front/habits.def), which operators.py reads."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Iterable, Mapping, Optional

from .operators import Operator, table
from .spec import nearest

_MADE = "a model has its loss, optimizer and metrics from the beginning: mtc.Sequential(layers, loss=..., optimizer=..., metrics=[...])"
_SEVERAL = "it is said when a model is made: mtc.compile(..., gpus=2), or processes=2 on the processor; fit starts the others"
_TARGET = "where it runs is said when it is made: target='cuda' or target='cpu'"
_BY_ITSELF = "fit trains, and predict and evaluate are without dropout by themselves: leave it out"
_STEPS = "fit does all steps of a training: model.fit(X, y, epochs=...)"
_WEIGHTS = "weights are model.params['linear1.weight'], and model.state_dict() has copies of all"
_MEAN = "it is mtc.Mean(1) of channels [channels, length], as Conv1d gives them, and mtc.Mean(0) of a sequence [length, features]"
_ONE_ROW = ("what Conv1d gives, [8, 60] say, is pooled as an image of one row: mtc.Reshape((8, 1, 60)), and then mtc.MaxPool2d((1, 2)), "
            "mtc.AvgPool2d((1, 2)) or mtc.GlobalMaxPool2d()")

MODULE: Mapping[str, str] = {
    "load_model": "a file has weights, and the model makes of them what they are: mtc.compile(MODEL).load(FILE), or Sequential(...).load(FILE)",
    "load": "model.load(FILE) reads weights",
    "save": "model.save(FILE) writes a checkpoint",
    "export": "model.export(FILE) writes ONNX",
    "Input": "the shape of an example is input_shape= of mtc.Sequential, where the first layer does not tell it",
    "InputLayer": "the shape of an example is input_shape= of mtc.Sequential, where the first layer does not tell it",
    "Bidirectional": "it is bidirectional=True of mtc.RNN, mtc.GRU and mtc.LSTM",
    "GlobalAveragePooling1D": _MEAN,
    "AdaptiveAvgPool1d": _MEAN,
    "MaxPool1d": _ONE_ROW,
    "MaxPooling1D": _ONE_ROW,
    "AvgPool1d": _ONE_ROW,
    "AveragePooling1D": _ONE_ROW,
    "GlobalMaxPooling1D": _ONE_ROW,
    "TextVectorization": "words are numbers before a network sees them: np.unique(words, return_inverse=True)[1]; or text(...) and tokens(...) "
                         "in the text of a model (docs/language.md)",
    "Lambda": "what no layer does is a line in the text of a model, which mtc.compile takes",
    "Module": "networks are mtc.Sequential([...]), or a model file for mtc.compile",
    "ModelCheckpoint": "fit(checkpoint=FILE, save_best=True) writes it",
    "CSVLogger": "fit(log=FILE) writes a log, and what fit returns has the numbers: history.to_jsonl(FILE), mtc.plot(history)",
    "TensorBoard": "fit(log=FILE) writes a log, which mtc.plot draws; programs of mtc have --tensorboard (docs/program.md)",
    "LearningRateScheduler": "a schedule stands in the place of the learning rate, mtc.Adam(mtc.Cosine(1e-3)); a callback may call model.set(lr=...)",
    "ZeroPadding2D": "it is padding= of mtc.Conv2d",
    "RandomZoom": "it is mtc.RandomResizedCrop",
    "to_categorical": "y are classes; one-hot rows are for loss='soft_cross_entropy'",
    "ReduceLROnPlateau": "it is a schedule: mtc.Adam(mtc.Plateau(1e-3))",
    "DataParallel": _SEVERAL,
    "DistributedDataParallel": _SEVERAL,
    "DataLoader": "fit takes whole arrays, and draws the batches itself",
    "TensorDataset": "fit takes whole arrays, and draws the batches itself",
    "tensor": "fit and predict take arrays of NumPy, and tensors of any library",
    "MLPClassifier": "mtc.Classifier",
    "MLPRegressor": "mtc.Regressor",
    "train_test_split": "fit(validation_split=0.2) holds a part back; scikit-learn has the function",
}
MODEL: Mapping[str, str] = {
    "compile": _MADE,
    "train": _BY_ITSELF,
    "eval": _BY_ITSELF,
    "to": _TARGET,
    "cuda": _TARGET,
    "cpu": _TARGET,
    "parameters": _WEIGHTS,
    "named_parameters": _WEIGHTS,
    "weights": _WEIGHTS,
    "get_weights": _WEIGHTS,
    "set_weights": "model.load_state_dict({name: array})",
    "load_weights": "model.load(FILE)",
    "save_weights": "model.save(FILE)",
    "forward": "model.predict(X)",
    "predict_classes": "model.predict(X) has the classes, model.predict_proba(X) their probabilities",
    "backward": _STEPS,
    "step": _STEPS,
    "zero_grad": _STEPS,
    "train_on_batch": _STEPS,
    "partial_fit": "another fit goes on where the one before ended: model.fit(X, y, epochs=1)",
    "to_onnx": "model.export(FILE)",
    "count_params": "model.description['parameters'] is their number, and model.summary() has those of each layer",
    "add": "layers are a list: mtc.Sequential([first, second])",
    "append": "layers are a list: mtc.Sequential([first, second])",
}
_FROZEN = "what is not trained is named when a model is made: mtc.Sequential(..., freeze=['linear1.*']), or freeze in the train block"
_WRITTEN = "model.params['linear1.weight'][...] = values writes it"
_RATE = "model.set(lr=1e-3) changes a learning rate"
SETTINGS: Mapping[str, str] = {  # attributes of a model that are set elsewhere
    "trainable": _FROZEN,
    "requires_grad": _FROZEN,
    "lr": _RATE,
    "learning_rate": _RATE,
    "seed": "model.reset(seed=1) begins anew with it",
    "training": _BY_ITSELF,
    "stop_training": "a callback that returns True ends the training",
}
PARAMETER: Mapping[str, str] = {  # and of a weight
    "trainable": _FROZEN,
    "requires_grad": _FROZEN,
    "data": _WRITTEN,
    "grad": _STEPS,
}
_SHUFFLES = "each epoch has the examples in an order of its own, which the seed draws"
FIT: Mapping[str, str] = {
    "shuffle": _SHUFFLES,
    "steps_per_epoch": "an epoch is all examples once; fewer are X[:n], y[:n]",
    "initial_epoch": "resume=FILE goes on from a checkpoint, and another fit from the one before",
    "class_weight": "sample_weight has what each example counts: sample_weight=numpy.asarray(weights)[y]; the text has "
                    "cross_entropy(..., class_weights = [...])",
    "lr": "it is the optimizer's: mtc.Sequential(..., optimizer=mtc.Adam(1e-3)), and model.set(lr=1e-3) changes it",
    "learning_rate": "it is the optimizer's: mtc.Sequential(..., optimizer=mtc.Adam(1e-3)), and model.set(lr=1e-3) changes it",
    "patience": "early_stopping=5 ends a training after so many epochs without a better one",
    "validation_freq": "validation data are evaluated after each epoch",
    "gpus": _SEVERAL,
    "processes": _SEVERAL,
    "workers": "the program uses all processors; OMP_NUM_THREADS says otherwise",
}
ARGUMENTS: Mapping[str, str] = {  # of layers
    "activation": "an activation is a layer of its own, behind it: mtc.ReLU()",
    "units": "a layer takes what it reads and what it gives, as in PyTorch: mtc.Linear(784, 128)",
    "filters": "a layer takes the channels that it reads and those that it gives, as in PyTorch: mtc.Conv2d(3, 16, 3) or mtc.Conv1d(3, 16, 3)",
    "input_shape": "it is an argument of the network: mtc.Sequential(layers, input_shape=...)",
    "input_dim": "it is an argument of the network: mtc.Sequential(layers, input_shape=...)",
    "kernel_initializer": "it is init='he_normal()', in the words of the language",
    "use_bias": "it is bias",
    "return_sequences": "all states are given unless last=True",
    "batch_first": "an example is [length, features], and the batch is none of its axes",
}
LAYER: Mapping[str, str] = {
    "trainable": "layers that are not trained are named when a network is made: mtc.Sequential(..., freeze=['linear1.*'])",
}
OF_ONES_OWN = ("one of your own is a line in the text of a model, which mtc.compile takes, or a change of Sequential(...).source "
               "(docs/python.md, \"A loss or metric of one's own\")")
EARLY_STOPPING: Mapping[str, str] = {
    "restore_best_weights": "it is restore_best, and True unless given",
    "mode": "the report knows whether it is to fall or to rise",
    "verbose": "fit(verbose=...) has it",
}


def letters(word: str) -> str:
    """"LayerNorm" and "layer_norm" have the same, as the compiler compares them."""
    return word.replace("_", "").lower()


def operator_called(word: str) -> Optional[Operator]:
    """The function of the language that has this name somewhere, or here; None: there is none."""
    plain = letters(word)
    named = (each for each in table() if plain in map(letters, (each["name"], each["class"], *each["synonyms"])))
    return next(named, None)


def of_language(word: str) -> str:
    """Which class stands for the function that a word means elsewhere; or where that function is to be had."""
    operator = operator_called(word)
    if operator is None:
        return ""
    name = operator["name"]
    from . import layers, losses, optimizers

    kinds = (getattr(module, title) for module in (layers, losses, optimizers) for title in module.__all__)
    classes = [f"mtc.{kind.__name__}" for kind in kinds if kind.text.split("(")[0] == name]
    if classes:
        return f"; it is called {' or '.join(classes)}"
    if operator["kind"] == "metric":
        return f"; it is a metric: mtc.Sequential(..., metrics=[{name!r}])"
    return f"; it is {name}(...) in the text of a model, which mtc.compile takes (docs/language.md)"


def hint(word: str, cures: Mapping[str, str], known: Iterable[str]) -> str:
    """": the cure" of a habit; else which of the known names is near."""
    return f": {cures[word]}" if word in cures else nearest(word, known)


def unexpected(method: Callable[..., Any], name: str, hint: str = "") -> str:
    """What Python would say of an argument, and which was meant: the hint, or the one whose name is near."""
    known = [each for each in inspect.signature(method).parameters if each not in ("self", "rest", "unknown")]
    return f"{method.__name__}() got an unexpected keyword argument '{name}'{hint or nearest(name, known)}"
