# mtc --target cuda --arch sm_90a
# The gradient of filters has all taps in a tile; a product of few tiles, the other blocks of a cluster for parts of k.
data {
  train = idx("x", "y")
  x     : f32[64, 16, 16]
  y     : f32[64]
}

model {
  near = relu(conv2d(x, 64, 3, padding = 1, bias = false))
  seen = relu(conv2d(near, 64, 3, padding = 1, bias = false))
  z    = linear(flatten(seen), 64, bias = false)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  precision = bf16
  batch     = 256
}
