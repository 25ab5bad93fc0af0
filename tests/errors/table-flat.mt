data {
  train = table([0, 1, 2])
  x     : f32[2]
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
