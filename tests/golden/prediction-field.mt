# A prediction that is computed already is copied.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  z = linear(x, 3)
}

train {
  loss      = cross_entropy(z, label)
  optimizer = sgd(0.1)
  predict   = x
  batch     = 32
}
