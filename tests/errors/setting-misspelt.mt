data {
  train = idx("x", "y")
  x     : f32[4]
  label : class[3]
}

model {
  y = linear(x, 3)
}

train {
  loss     = cross_entropy(y, label)
  optimzer = sgd(0.1)
}
