# A choice for each element.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  y = linear(where(x > 0 and x < 1, x, 0.1 * x), 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
