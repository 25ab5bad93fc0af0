# Ways to write a number.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  h = x * 1 + 2.5 - 1e-3 + 6.02E+23 - 0.0
  y = linear(h, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
