data {
  train = idx("images", "labels")
  x     : f32[2, 6]
  label : class[3]
}
model {
  a = conv1d(reshape(x, [2, 2, 3]), 4, 3)
  b = conv1d(x, 4, 7)
  c = conv1d(x, 4, [3, 3])
  d = conv1d(x, 4, 3, padding = -1)
  y = a + b + c + d
}
train {
  loss      = cross_entropy(linear(flatten(y), 3), label)
  optimizer = sgd(0.1)
}
