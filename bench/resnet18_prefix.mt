# ResNet-18 up to one of its eight blocks, then its last two layers: what bench/figures measures the forward pass of, and the
# time of a block is the difference of two. Nothing of the network is trained, so that the plan's memory is a forward pass's.
include "../models/residual.mt"
param blocks   = 8 in 0..8
param examples = 64 in 1..4096  # of a batch

data {
  train = npz("none.npz")  # there is no such file: bench draws random numbers
  image : f32[3, 224, 224]
  t     : f32[1]
}

model {
  apart = linear(t, 1)  # what is trained, since something must be
  conv1 = conv2d(image, 64, 7, stride = 2, padding = 3, bias = false)
  bn1   = batch_norm(conv1)
  h     = max_pool(relu(bn1), 3, stride = 2, padding = 1)
  repeat block in 0..blocks {
    h = basic(h, 64 * 2^floor(block / 2), stride = 1 + minimum(block, 1) * (1 - block % 2), name = "block{block}")
  }
  fc = linear(global_avg_pool(h), 1000)
}

train {
  loss      = mse(apart, t)
  predict   = fc
  optimizer = sgd(0.1)
  freeze    = ["conv1*", "b*", "fc*"]
  batch     = examples
}
