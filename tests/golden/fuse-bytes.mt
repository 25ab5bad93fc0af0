# An operand that is a map of the data's bytes is computed while it is loaded.
data {
  train = idx("x", "y")
  x     : u8[28, 28]
  y     : f32[128]
}

model {
  z = linear(flatten(x) / 255 - 0.5, 128)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 64
}
