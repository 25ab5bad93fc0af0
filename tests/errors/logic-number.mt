data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  assert 1 and 2
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
