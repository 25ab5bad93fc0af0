"""Layers that change the data at random in training, or mix examples: those of the compiler's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Type

from .layer import Layer, Sizes, Value
from .operators import Operator, classes, made
from .spec import both

__all__: List[str] = []

IMAGE = "channels rows columns"


class Augmentation(Layer, abstract=True):
    """Of data of any shape."""


class OfImages(Augmentation, abstract=True):
    """Of images of the data, which keep their size where no field says another."""

    takes = gives = IMAGE
    pixels = ""  # that field: of rows and columns

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """The size that the field says."""
        size = getattr(self, self.pixels, None)
        if size is not None:
            found["rows"], found["columns"] = ((each,) for each in both(size))
        return None


class Mixture(Layer, abstract=True):
    """Of data of any shape and their target: in training the loss knows the target of the example that was mixed in too."""

    mixes = True

    def expression(self, x: Value) -> str:
        """A call of x and its target, which gives three values."""
        return self.render(x=x.name, y="y")


class MixtureOfImages(Mixture, abstract=True):
    """Of images of the data and their target."""

    takes = gives = IMAGE


# ---- of the table ----


def _layer(operator: Operator, of_any: Type[Layer], of_images: Type[Layer]) -> Type[Layer]:
    """The class of a function whose first parameters are the data and, of a mixture, their target."""
    data, *rest = operator["parameters"]
    base = of_images if data.get("kind") == "image" else of_any
    targets = {parameter["name"]: "{y}" for parameter in rest[:1] if base.mixes}
    members = {"pixels": parameter["name"] for parameter in rest if parameter.get("kind") == "pixels"}
    return made(operator, base, __name__, {data["name"]: "{x}", **targets}, members=members)


AUGMENTATIONS = classes("augmentation", globals(), lambda operator: _layer(operator, Augmentation, OfImages))
MIXTURES = classes("mixture", globals(), lambda operator: _layer(operator, Mixture, MixtureOfImages))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
