# Activations of a deep network share bytes once they are no longer read.
data {
  train = idx("x", "y")
  x     : f32[512]
  y     : f32[512]
}

model {
  a = relu(linear(x, 512))
  b = relu(linear(a, 512))
  c = relu(linear(b, 512))
  z = linear(c, 512)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 1024
}
