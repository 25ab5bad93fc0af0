# Two layers and a classifier.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  h = relu(linear(x, 4))
  y = linear(h, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
  metric    = accuracy(y, label)
}
