# Numbers are computed when compiling.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  n = floor(7 / 2) * 2 % 4 + maximum(1, 0)
  y = linear(x, n)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
