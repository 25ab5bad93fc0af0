data {
  train = idx("images", "labels")
  x     : f32[6]
  t     : f32[1]
}
model {
  y = linear(x, 1)
}
train {
  loss      = cross_entropy(y, t)
  metric    = accuracy(y, t)
  optimizer = sgd(0.1)
}
