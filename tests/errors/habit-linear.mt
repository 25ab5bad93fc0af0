data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  h = linear(x, 784, 32)
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = adam(1e-3)
}
