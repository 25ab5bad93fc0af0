# mtc --set hidden=7
# A param set on the command line.
param hidden = 5

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  y = linear(linear(x, hidden), 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
