# The gradient of the bias rides along with that of the weight, updates included.
data {
  train = idx("x", "y")
  x     : f32[128]
  y     : f32[128]
}

model {
  z = linear(x, 128)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1, momentum = 0.9)
  batch     = 64
}
