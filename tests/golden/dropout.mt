# Active in training only.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  y = linear(dropout(relu(x), 0.25), 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
