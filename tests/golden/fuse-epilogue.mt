# Product, bias and ReLU are one kernel; so are the gradient's mask and the product before it.
data {
  train = idx("x", "y")
  x     : f32[256]
  y     : f32[256]
}

model {
  h = relu(linear(x, 512))
  z = linear(h, 256)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 64
}
