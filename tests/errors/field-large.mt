data {
  train = idx("images", "labels")
  x     : f32[2000000000, 2000000000, 2000000000]
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
