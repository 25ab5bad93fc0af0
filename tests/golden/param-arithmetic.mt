# Computing with a run-time number gives a run-time number.
param gain = 0.5

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  y = linear(x, 3) * (2 * gain ^ 2 - 1) + sqrt(gain)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
