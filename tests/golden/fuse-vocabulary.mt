# Scores of a large vocabulary: a wide product, then rows.
data {
  train = idx("x", "label")
  x     : f32[256]
  label : class[20000]
}

model {
  z = linear(x, 20000)
}

train {
  loss      = cross_entropy(z, label)
  optimizer = sgd(0.1)
  batch     = 64
}
