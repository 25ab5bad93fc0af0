# mtc --target cuda --arch sm_90a
# A product of few tiles, whose k the blocks of a cluster have in parts.
data {
  train = idx("x", "y")
  x     : f32[16384]
  y     : f32[64]
}

model {
  z = linear(x, 64, bias = false)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  precision = bf16
  batch     = 256
}
