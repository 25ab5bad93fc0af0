param n = 0
data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  h = x * (1 / n)
  y = linear(h, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
