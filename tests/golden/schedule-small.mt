# A small step: one persistent kernel.
data {
  train = idx("x", "y")
  x     : f32[64]
  label : class[10]
}

model {
  h = relu(linear(x, 32))
  z = linear(h, 10)
}

train {
  loss      = cross_entropy(z, label)
  optimizer = sgd(0.1)
  batch     = 64
}
