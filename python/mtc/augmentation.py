"""Layers that change the data at random in training, or mix examples: those of the compiler's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Type

from .images import IMAGE, OfImages
from .layer import Layer, Value
from .operators import Operator, classes, made

__all__: List[str] = []

class Augmentation(Layer, abstract=True):
    """Of data of any shape."""


class AugmentationOfImages(Augmentation, OfImages, abstract=True):
    """Of images of the data."""


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
    return made(operator, base, __name__, {data["name"]: "{x}", **targets})


AUGMENTATIONS = classes("augmentation", globals(), lambda operator: _layer(operator, Augmentation, AugmentationOfImages))
MIXTURES = classes("mixture", globals(), lambda operator: _layer(operator, Mixture, MixtureOfImages))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
