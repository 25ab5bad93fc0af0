# Adam's whole update is the epilogue of the weight's gradient.
data {
  train = idx("x", "y")
  x     : f32[128]
  y     : f32[128]
}

model {
  z = linear(x, 128, bias = false)
}

train {
  loss      = mse(z, y)
  optimizer = adam(1e-3)
  batch     = 64
}
