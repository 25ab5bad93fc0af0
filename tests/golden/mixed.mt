# A loss of two targets predicts what it compares with both.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  seen, other, s = mixup(x, label)
  y              = linear(seen, 3)
}

train {
  loss      = s * cross_entropy(y, label) + (1 - s) * cross_entropy(y, other)
  optimizer = sgd(0.1)
  batch     = 4
}
