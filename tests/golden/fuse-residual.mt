# A value that two layers read is stored once.
data {
  train = idx("x", "y")
  x     : f32[256]
  y     : f32[256]
}

model {
  h = relu(linear(x, 256))
  z = h + relu(linear(h, 256))
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 64
}
