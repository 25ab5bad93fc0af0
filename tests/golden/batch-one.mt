# A batch of one example: the mean over the batch is the example.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  y = linear(x, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 1
}
