# Concatenation has no kernel: who reads it, reads its parts. Only products want their part of the gradient in memory.
data {
  train = idx("x", "y")
  x     : f32[256]
  y     : f32[256]
}

model {
  a = linear(x, 128)
  b = linear(x, 128)
  z = relu(concat([a, b], axis = 0))
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.1)
  batch     = 64
}
