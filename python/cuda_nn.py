"""NeuralNetworkGPU as tutorials import it: ``from cuda_nn import NeuralNetworkGPU``. See mtc.tutorial."""

from mtc.tutorial import NeuralNetworkGPU

__all__ = ["NeuralNetworkGPU"]
