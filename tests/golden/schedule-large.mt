# A large step: a CUDA graph, a node for each phase.
data {
  train = idx("x", "y")
  x     : f32[4096]
  y     : f32[4096]
}

model {
  h = relu(linear(x, 4096))
  z = linear(h, 4096)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 1024
}
