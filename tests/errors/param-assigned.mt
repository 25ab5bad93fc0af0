param n = 3
data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  n = 4
  y = linear(x, n)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
