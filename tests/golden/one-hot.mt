# A label as numbers.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  y = linear(x, 3)
}

train {
  loss      = mse(y, one_hot(label, 3))
  optimizer = sgd(0.1)
  batch     = 4
}
