data {
  train = idx("x", "label")
  x     : f32[2]
  label : class[3] = column("label")
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
