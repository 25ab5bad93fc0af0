data {
  train = idx("images", "labels")
  batch = 3
  batch_size = 3
  x     : f32[6]
  label : class[3]
}
model {
  y = linear(x, 3)
  optimizer = sgd(0.1)
  epochs = 5
}
train {
  loss      = cross_entropy(y, label)
  split     = 80 / 20
}
