# A value used twice.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  h = x + relu(linear(x, 6))
  y = linear(h, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
