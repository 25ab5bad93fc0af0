data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label, label_smoothing = 1.5)
  optimizer = sgd(0.1)
}
