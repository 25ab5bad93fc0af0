# The gradient of a linear layer under the squared error.
data {
  train = idx("x", "y")
  x     : f32[6]
  y     : f32[4]
}

model {
  z = linear(x, 4)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 4
}
