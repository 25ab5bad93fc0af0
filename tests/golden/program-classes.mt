# A whole program with classes, dropout and a metric.
data {
  train = idx("x", "y")
  x     : f32[6]
  label : class[3]
}

model {
  h = dropout(relu(linear(x, 4)), 0.5)
  z = linear(h, 3)
}

train {
  loss      = cross_entropy(z, label)
  optimizer = adam(1e-2)
  batch     = 4
  metric    = accuracy(z, label)
}
