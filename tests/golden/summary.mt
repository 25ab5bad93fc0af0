# Layers, shapes, parameters, arithmetic and memory.
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
  optimizer = adam(1e-3)
  batch     = 64
  metric    = accuracy(z, label)
}
