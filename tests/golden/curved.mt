# Activations and a loss that are made of two pieces.
data {
  train = idx("a", "b")
  x     : f32[4]
  y     : f32[2]
}

model {
  h      = mish(linear(x, 3))
  output = elu(linear(h, 2), 0.5)
}

train {
  loss      = huber(output, y, delta = 2)
  optimizer = sgd(0.1)
  batch     = 4
}
