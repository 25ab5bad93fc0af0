data {
  train = table([[1, 0, 0], [2, 0, 1], [3, 0, 1], [4, 0, 0]])
  x     : f32[2]
  y     : class[2]
}
model { s = linear(x, 2) }
train {
  loss      = cross_entropy(s, y)
  optimizer = adam(1e-2, eps = 1e-60)
  batch     = 2
  epochs    = 3
}
