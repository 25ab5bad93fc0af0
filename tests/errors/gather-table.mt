data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[7]
}

model {
  e = gather(x, label)
  y = linear(x, 7)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
