# A whole program.
data {
  train = idx("x", "y")
  x     : f32[6]
  y     : f32[2]
}

model {
  h = tanh(linear(x, 4))
  z = linear(h, 2)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 4
  epochs    = 2
}
